"""Texts with a secret of each kind, and texts that a successor needs whole. All invented.

A secret is put together here from parts, so that no scanner of repositories takes this file for a leak.
"""

from __future__ import annotations

from typing import NamedTuple


class Secret(NamedTuple):
    """A *text*, and the part of it that must not be kept."""

    kind: str
    text: str
    value: str


def _alnum(length: int, salt: int = 7) -> str:
    """Letters and digits that look random and are always the same."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    state, found = salt * 7919 + 1, []
    for _ in range(length):
        state = (state * 1103515245 + 12345) % 2**31
        found.append(letters[(state >> 8) % 62])
    return "".join(found)


def _upper(length: int) -> str:
    return _alnum(length * 2, 3).upper()[:length]


def _hex(length: int, salt: int = 5) -> str:
    return "".join("0123456789abcdef"[ord(one) % 16] for one in _alnum(length, salt))


def _key(begins: str, length: int) -> str:
    return begins + _alnum(length)


def _pem(kind: str, lines: int = 6) -> str:
    body = "\n".join(_alnum(64, line + 1) for line in range(lines))
    return f"-----BEGIN {kind}-----\n{body}\n-----END {kind}-----"


def _bare(kind: str, value: str, before: str = "it said ") -> Secret:
    return Secret(kind, f"{before}{value} and went on", value)


JWT = f"eyJ{_alnum(20)}.eyJ{_alnum(40, 2)}.{_alnum(43, 3)}"

SECRETS = [
    # API keys, bare: as a log or a reply shows them
    _bare("openai", _key("sk-", 48)),
    _bare("openai project", _key("sk-proj-", 60)),
    _bare("openai service", f"sk-svcacct-{_alnum(20)}-{_alnum(20, 2)}_{_alnum(20, 3)}"),
    _bare("anthropic", _key("sk-ant-api03-", 93)),
    _bare("openrouter", "sk-or-v1-" + _hex(64)),
    _bare("groq", _key("gsk_", 52)),
    _bare("xai", _key("xai-", 80)),
    _bare("perplexity", _key("pplx-", 48)),
    _bare("replicate", _key("r8_", 37)),
    _bare("huggingface", _key("hf_", 34)),
    _bare("google", _key("AIza", 35)),
    _bare("google oauth secret", _key("GOCSPX-", 28)),
    _bare("google refresh", f"1//0{_alnum(60)}"),
    _bare("google access", f"ya29.{_alnum(80)}"),
    _bare("aws key id", "AKIA" + _upper(16)),
    _bare("aws temporary", "ASIA" + _upper(16)),
    _bare("github classic", _key("ghp_", 36)),
    _bare("github oauth", _key("gho_", 36)),
    _bare("github app", _key("ghs_", 36)),
    _bare("github fine-grained", f"github_pat_{_alnum(22)}_{_alnum(59, 2)}"),
    _bare("gitlab", _key("glpat-", 20)),
    _bare("gitlab runner", _key("glrt-", 20)),
    _bare("slack bot", f"xoxb-{'1234567890'}-{'1234567890123'}-{_alnum(24)}"),
    _bare("slack app", f"xapp-1-A{_upper(10)}-1234567890123-{_hex(64)}"),
    _bare("stripe live", _key("sk_" + "live_", 24)),
    _bare("stripe restricted", _key("rk_" + "live_", 24)),
    _bare("stripe webhook", _key("whsec_", 32)),
    _bare("npm", _key("npm_", 36)),
    _bare("pypi", f"pypi-AgEIcHlwaS5vcmc{_alnum(60)}"),
    _bare("telegram", f"123456789:AA{_alnum(33)}"),
    _bare("sendgrid", f"SG.{_alnum(22)}.{_alnum(43, 2)}"),
    _bare("twilio", "SK" + _hex(32)),
    _bare("digitalocean", "dop_v1_" + _hex(64)),
    _bare("shopify", "shpat_" + _hex(32)),
    _bare("square", f"EAAA{_alnum(60)}", "square token "),
    _bare("doppler", _key("dp.pt.", 43)),
    _bare("linear", _key("lin_api_", 40)),
    _bare("notion", _key("ntn_", 46)),
    _bare("figma", _key("figd_", 40)),
    _bare("databricks", "dapi" + _hex(32)),
    _bare("vault", _key("hvs.", 90)),
    _bare("terraform cloud", f"{_alnum(14)}.atlasv1.{_alnum(64, 2)}"),
    _bare("age key", "AGE-SECRET-KEY-1" + _upper(58)),
    _bare("discord bot", f"MT{_alnum(24)}.{_alnum(6, 2)}.{_alnum(38, 3)}"),
    _bare("docker hub", _key("dckr_pat_", 27)),
    _bare("grafana", f"glsa_{_alnum(32)}_{_hex(8)}"),
    _bare("newrelic", "NRAK-" + _upper(27)),
    _bare("sentry", f"sntrys_eyJ{_alnum(80)}"),
    _bare("supabase", "sbp_" + _hex(40)),
    _bare("jwt", JWT, "cookie: "),
    # names that tell
    Secret("env", f"export OPENAI_API_KEY={_alnum(30)}", _alnum(30)),
    Secret("env hex", f"API_KEY={_hex(32)}", _hex(32)),
    Secret("aws secret", f"aws_secret_access_key = {_alnum(38)}/+", _alnum(38)),
    Secret("env quoted", f"STRIPE_KEY='{_alnum(20)}'", _alnum(20)),
    Secret("json", f'{{"client_secret": "{_alnum(24)}", "port": 1}}', _alnum(24)),
    Secret("escaped json", f'{{\\"access_token\\": \\"{_alnum(24)}\\"}}', _alnum(24)),
    Secret("yaml", f"  db_password: {_alnum(12)}", _alnum(12)),
    Secret("toml", f'secret_key = "{_alnum(50)}"', _alnum(50)),
    Secret("camel case", f"const authToken = '{_alnum(22)}'", _alnum(22)),
    Secret("prose", "the password is: hunter2fish", "hunter2fish"),
    Secret("markdown", "**Password:** letmein99", "letmein99"),
    Secret("table", f"| api_key | {_alnum(32)} |", _alnum(32)),
    Secret("flag", f"psql --password {_alnum(12)} -h db", _alnum(12)),
    Secret("flag equals", f"deploy --token={_alnum(22)}", _alnum(22)),
    Secret("query", f"https://api.example/v1?access_token={_alnum(24)}&page=2", _alnum(24)),
    Secret("signed url", f"https://b.example/k?X-Amz-Signature={_hex(64)}&X-Amz-Date=1", _hex(64)),
    Secret("sas url", f"https://a.blob.example/c?sv=2023&sig={_alnum(43)}%3D", _alnum(43)),
    Secret("curl user", f"curl -u deploy:{_alnum(14)} https://x.example", _alnum(14)),
    Secret("mysql flag", f"mysql -uroot -p{_alnum(12)} shop", _alnum(12)),
    Secret("netrc", f"machine x.example login bob password {_alnum(14)}", _alnum(14)),
    Secret("npmrc", f"//registry.example/:_authToken={_alnum(36)}", _alnum(36)),
    Secret("django", f"SECRET_KEY = 'django-insecure-{_alnum(50)}'", _alnum(50)),
    # headers
    Secret("bearer", f"curl -H 'Authorization: Bearer {_alnum(20)}'", _alnum(20)),
    Secret("basic", f"Authorization: Basic {_alnum(24)}==", _alnum(24)),
    Secret("token header", f"Authorization: token {_alnum(24)}", _alnum(24)),
    Secret("bare header", f"authorization: {_alnum(40)}", _alnum(40)),
    Secret("json header", f'"Authorization": "Bearer {_alnum(20)}"', _alnum(20)),
    Secret("api key header", f"X-Api-Key: {_alnum(32)}", _alnum(32)),
    Secret("proxy header", f"Proxy-Authorization: Basic {_alnum(24)}", _alnum(24)),
    Secret("cookie header", f"Cookie: sessionid={_alnum(32)}; lang=de", _alnum(32)),
    Secret("set-cookie", f"Set-Cookie: session={_alnum(32)}; Path=/", _alnum(32)),
    # connection strings
    Secret("postgres", f"postgres://app:{_alnum(10)}@db.example/prod", _alnum(10)),
    Secret("postgres driver", f"postgresql+asyncpg://app:{_alnum(10)}@db:5432/x", _alnum(10)),
    Secret("mongodb", f"mongodb+srv://u:{_alnum(10)}@c0.example/t", _alnum(10)),
    Secret("redis", f"redis://:{_alnum(10)}@cache:6379/0", _alnum(10)),
    Secret("amqp", f"amqps://svc:{_alnum(10)}@mq.example/v", _alnum(10)),
    Secret("url with @", "postgres://app:p@ss0word@db.example/prod", "ss0word"),
    Secret("ado", f"Server=db;User Id=sa;Password={_alnum(10)};Encrypt=true", _alnum(10)),
    Secret("azure", f"AccountName=a;AccountKey={_alnum(60)}==;EndpointSuffix=x", _alnum(60)),
    Secret("sentry dsn", f"https://{_hex(32)}@o1.ingest.example/2", _hex(32)),
    Secret("libpq", f"host=db user=app password={_alnum(10)} dbname=x", _alnum(10)),
    Secret("slack hook", f"https://hooks.slack.com/services/T{_upper(8)}/B{_upper(8)}/{_alnum(24)}", _alnum(24)),
    Secret("discord hook", f"https://discord.com/api/webhooks/123456789012345678/{_alnum(68)}", _alnum(68)),
    # private keys
    *(
        Secret(kind.lower(), _pem(kind), _alnum(64, 2))
        for kind in (
            "RSA PRIVATE KEY",
            "EC PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PRIVATE KEY",
            "ENCRYPTED PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        )
    ),
    Secret("private key, cut off", _pem("RSA PRIVATE KEY")[:300], _alnum(64, 2)),
    Secret("private key, one line", _pem("RSA PRIVATE KEY").replace("\n", "\\n"), _alnum(64, 2)),
    Secret(
        "private key, quoted", "\n".join(f"> {line}" for line in _pem("EC PRIVATE KEY").splitlines()), _alnum(64, 2)
    ),
]

KEPT = [
    "commit 2b5d642 follows f0081d6d8c1e4a5b9f3e2d1c0b9a8f7e6d5c4b3a",
    f"git checkout {_hex(40)} && git show {_hex(7)}",
    f"sha256:{_hex(64)}",
    f"image: registry.example/app@sha256:{_hex(64)}",
    f"md5 {_hex(32)}",
    f'etag: "{_hex(32)}"',
    f'"integrity": "sha512-{_alnum(86)}=="',
    f"    --hash=sha256:{_hex(64)}",
    f'checksum = "{_hex(64)}"',
    f"golang.org/x/text v0.14.0 h1:{_alnum(43)}=",
    'resolved "https://x.example/lodash-4.17.21.zip#679591c564c3bffaae8454cf0b3df370c3d6911c"',
    f"![plot](data:image/png;base64,iVBORw0KGgo{_alnum(400)}==)",
    f'"image_url": {{"url": "data:image/jpeg;base64,/9j/4AAQ{_alnum(300)}"}}',
    f"ssh-rsa AAAAB3NzaC1yc2E{_alnum(200)} bob@host",
    f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5{_alnum(43)} bob@host",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0B\n-----END CERTIFICATE-----",
    "session 6f1c2f3e-8f0a-4f4e-9d55-0a8b7b1f2c3d",
    "session_token: 6f1c2f3e-8f0a-4f4e-9d55-0a8b7b1f2c3d",
    "trace 01HV3ZK8Q4M7W2X9Y6T5R4E3W2 of run r260304050607-a1b2c3",
    "arn:aws:iam::123456789012:role/deploy",
    "CACHE_KEY=f0081d6d8c1e4a5b9f3e2d1c0b9a8f7e6d5c4b3a",
    "edited /home/a/secrets/token.py and ~/.ssh/config",
    "SSH_KEY=/home/a/.ssh/id_ed25519",
    "private_key_path: ./keys/dev.pem",
    "password: $DB_PASSWORD",
    "API_KEY=${API_KEY}",
    "api_key: {{ vault_api_key }}",
    "token: <your token>",
    "password: none",
    "password: ********",
    "password=REDACTED",
    "max_tokens: 4096, tokens=250,000, token: 12",
    "input_tokens=120034 output_tokens=889",
    "The token: the parser reads it twice.",
    "the token is read by the lexer and the key is a string",
    "password: it must be at least twelve characters long",
    "def check(password: str, token: str | None = None) -> bool:",
    "token = await client.get_token(scope)",
    "secret_name=prod/db/main",
    "SORT_KEY=created_at",
    "PRIMARY_KEY = id",
    "FOREIGN KEY (user_id) REFERENCES users(id)",
    "api_key = os.environ['API_KEY']",
    "const token = req.headers.authorization",
    "http://localhost:8080/a@b",
    "git@github.com:owner/repo.git",
    "https://user@host.example/path",
    "ping bob@example.com about ana:the-lead@team",
    "task-force-of-doom-2024-and-beyond, risk-assessment-2025-final",
    "NEXT_ACTION: run `pytest tests/test_token.py::test_key`",
    "12:30 the secret is out; key points: three",
    "port 8443, webhook /hooks/inbound, ticket OPS-2217, PR #4182",
    "mkdir -p src/app && cp -p a b && docker run -p 8080:80 -u 1000:1000 x",
    'ps -u bob; sort -u names.txt; curl -u "$USER:$PASS" https://x',
    "mysql -u root -p shop",
    "Authorization: required for /admin; authorization: none needed",
    "Authorization: Bearer $TOKEN",
    "bearer of bad news, bearer authentication is on",
    "cookie: accepted; Cookie consent: shown",
    "the machine login was fine, password reset was sent",
    "sk-learn and scikit-learn differ; risk-free",
    "AKIA is how such keys begin",
    "https://hooks.slack.com/services/ is where they live",
    "docs at https://x.example/?page=2&sig=none&token=",
    "数据库密码在保险箱里,端口 8443",
    "tests/__snapshots__/Login.test.tsx.snap:12",
    "node_modules/@babel/core@7.24.0_supports-color@9.4.0",
    "[[OFFLOAD: handle=a1b2c3d4e5f6, worker=ana, msg=12, bytes=40960]]",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty.txt",
]

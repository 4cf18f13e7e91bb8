from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.redaction import redact

PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn\n" * 6 + "-----END RSA PRIVATE KEY-----"
GITHUB = "ghp_" + "a1B2c3D4e5" * 4
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"

SECRETS = [
    ("the key is sk-ant-api03-Ab1xYz90Ab1xYz90Ab1xYz90 now", "sk-ant-api03-Ab1xYz90Ab1xYz90Ab1xYz90"),
    ("OPENAI_API_KEY=sk-proj-abcdefghij0123456789", "sk-proj-abcdefghij0123456789"),
    (f"git push https://{GITHUB}@github.com/o/r", GITHUB),
    ("token gho_" + "x" * 36, "gho_" + "x" * 36),
    ("github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz", "11ABCDEFG0abcdefghijkl"),
    ("aws AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI"),
    ("slack xoxb-123456789012-abcdefABCDEF", "xoxb-123456789012"),
    (f"cookie: {JWT}", JWT),
    ("curl -H 'Authorization: Bearer abcdEFGH12345678'", "abcdEFGH12345678"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("postgres://app:hunter2@db.example/prod", "hunter2"),
    ("redis://:s3cr3tpw@cache:6379/0", "s3cr3tpw"),
    ("Server=db;User Id=sa;Password=Pa55w0rd!;Encrypt=true", "Pa55w0rd!"),
    ("AccountName=a;AccountKey=q1w2e3r4t5y6u7i8o9p0==;EndpointSuffix=x", "q1w2e3r4t5y6u7i8o9p0"),
    ("password: hunter2", "hunter2"),
    ("password: 48151623", "48151623"),
    ('{"db_password": "correct horse battery"}', "correct horse battery"),
    ('{\\"api_key\\": \\"abcd9876wxyz\\"}', "abcd9876wxyz"),
    ("**Password:** letmein99", "letmein99"),
    ("export STRIPE_KEY='zq81-mmqa-7781'", "zq81-mmqa-7781"),
    ("clientSecret = Zx81kk20aa", "Zx81kk20aa"),
    ("dbPassword=Zx81kk20aa", "Zx81kk20aa"),
    ("https://api.example/v1?access_token=Zx81kk20aa&page=2", "Zx81kk20aa"),
    ("deploy --token Zx81kk20aa --force", "Zx81kk20aa"),
    ("API_KEY=0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
    ("hook https://hooks.slack.com/services/T000/B000/XXXXXXXX", "T000/B000"),
    (PEM, "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn"),
    (PEM[:200], "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn"),
]

KEPT = [
    "commit 2b5d642 follows f0081d6d8c1e4a5b9f3e2d1c0b9a8f7e6d5c4b3a",
    "sha256 of nothing: e3b0c442",
    "session 6f1c2f3e-8f0a-4f4e-9d55-0a8b7b1f2c3d",
    "session_token: 6f1c2f3e-8f0a-4f4e-9d55-0a8b7b1f2c3d",
    "CACHE_KEY=f0081d6d8c1e4a5b9f3e2d1c0b9a8f7e6d5c4b3a",
    "edited /home/a/secrets/token.py and ~/.ssh/config",
    "SSH_KEY=/home/a/.ssh/id_ed25519",
    "password: $DB_PASSWORD",
    "API_KEY=${API_KEY}",
    "token: <your token>",
    "password: none",
    "max_tokens: 4096, tokens=250,000, token: 12",
    "The token: the parser reads it twice.",
    "SORT_KEY=created_at",
    "PRIMARY_KEY = id",
    "api_key = os.environ['API_KEY']",
    "http://localhost:8080/a@b",
    "git@github.com:owner/repo.git",
    "task-force-of-doom-2024-and-beyond, risk-assessment-2025-final",
    "NEXT_ACTION: run `pytest tests/test_token.py::test_key`",
    "12:30 the secret is out; key points: three",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_of_a_known_shape_goes(text: str, secret: str) -> None:
    assert secret not in redact(text)
    assert "[redacted:" in redact(text)


@pytest.mark.parametrize("text", KEPT)
def test_what_a_successor_needs_stays(text: str) -> None:
    assert redact(text) == text


def test_the_name_and_the_rest_of_the_line_stay() -> None:
    assert redact("export DB_PASSWORD=hunter2 # for CI") == "export DB_PASSWORD=[redacted:password] # for CI"
    assert redact("postgres://app:hunter2@db/prod") == "postgres://app:[redacted:password]@db/prod"
    assert redact('{"password": "x y", "port": 1}') == '{"password": "[redacted:password]", "port": 1}'


def test_text_behind_a_private_key_that_was_cut_off_stays() -> None:
    """A handoff is not swallowed by a key that has no end (hermes PR #69294)."""
    text = PEM[:120] + "\n\n## Next exact action\n\nRun the parser tests."
    assert redact(text) == "[redacted:private-key]\n\n## Next exact action\n\nRun the parser tests."


def test_two_private_keys_do_not_take_what_lies_between() -> None:
    assert redact(f"{PEM}\nbetween\n{PEM}") == "[redacted:private-key]\nbetween\n[redacted:private-key]"


@given(st.lists(st.sampled_from([*(text for text, _ in SECRETS), *KEPT, "\n", " ", "=", ":", "'"]), max_size=12))
def test_redacting_twice_changes_nothing(parts: list[str]) -> None:
    once = redact(" ".join(parts))
    assert redact(once) == once


@given(st.text(max_size=200))
def test_any_text_can_be_redacted_twice(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "unit",
    [
        "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJaaaaaaaa.", "a-", "sk-", "a", "A_", "password", "password=", "://",
        "a://", "bearer ", "x_KEY ", "--token ", '\\"password\\": ', "AAAAAAAAAAAAAAAAAAAAAAAA\n", "https://a:",
    ],
)  # fmt: skip
def test_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        began = time.perf_counter()
        redact(unit * (size // len(unit)))
        return time.perf_counter() - began

    small, large = min(seconds(50_000) for _ in range(3)), seconds(400_000)
    assert large < 8 * small * 3 + 0.2

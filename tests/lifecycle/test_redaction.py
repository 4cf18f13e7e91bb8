from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.identifiers import Identifier
from lifecycle.proofs import ParsedHandoff
from lifecycle.redaction import redact
from tests.lifecycle.redaction_cases import KEPT, SECRETS, Secret

PEM = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0Z3VS5JJcds3xfn\n" * 6 + "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)
def test_a_secret_of_a_known_shape_goes(secret: Secret) -> None:
    found = redact(secret.text)
    assert secret.value not in found
    assert "[redacted:" in found


@pytest.mark.parametrize("text", KEPT)
def test_what_a_successor_needs_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.kind)
def test_a_secret_goes_wherever_it_stands(secret: Secret) -> None:
    """In a list, in a quoted reply, at the end of a file without a line break."""
    for around in ("- {}\n- next", "> {}\n\nnext", "before\n{}"):
        assert secret.value not in redact(around.format(secret.text))


def test_redaction_shortens_nothing_else() -> None:
    text = "\n".join(KEPT)
    everything = "\n\n".join([text, *(secret.text for secret in SECRETS), text])
    found = redact(everything)
    assert found.startswith(text)
    assert found.endswith(text)


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


@given(st.lists(st.sampled_from([*(secret.text for secret in SECRETS), *KEPT, "\n", " ", "=", ":", "'"]), max_size=12))
def test_redacting_twice_changes_nothing(parts: list[str]) -> None:
    once = redact(" ".join(parts))
    assert redact(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "mysql -pA1b2c3d4e5 -pF6g7h8i9j0",
        "shpat_" + "82862814329af007" * 2 + "glpat-yNdDR0rQC5Zpq4bageWu",
        "sbp_" + "8286281432" * 4 + "glrt-yNdDR0rQC5Zpq4bageWu",
    ],
)
def test_two_secrets_without_anything_between_them_both_go(text: str) -> None:
    """What the first one hides stands alone when that is gone."""
    once = redact(text)
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
        "cookie: a=", "; a=bbbbbbbb", "mysql ", "mysql a -p", "-u a:", "login a password ", "| token | ", "|", "?sig=",
        "https://aaaaaaaaaaaaaaaaaaaa1", "M", "MMMMMMMMMMMMMMMMMMMMMMMM.", "a.atlasv1.", "SG.aaaaaaaaaaaaaaaa.",
        "glpat-", "EAAA", "12345678:", "authorization: ", "password is", "_", "dp.pt.", "key-", "://a:b@", " ", "1",
    ],
)  # fmt: skip
def test_time_grows_with_the_text_and_not_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        # Of the processor: a machine with much to do makes any text slow.
        began = time.process_time()
        redact(unit * (size // len(unit)))
        return time.process_time() - began

    small, large = min(seconds(8_000) for _ in range(3)), min(seconds(64_000) for _ in range(2))
    assert large < 8 * small * 3 + 0.2


def test_no_secret_of_an_answer_gets_into_the_ledger() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    checkpoint = Checkpoint(
        state=State.HANDOFF,
        files_changed="none",
        commands_run=f"git push https://{secret}@github.com/o/r",
        result="pushed",
        blocker="none",
        next_action=f"use {secret}",
    )
    parsed = ParsedHandoff(
        renewal_id="r1",
        answer=f"token {secret}",
        checkpoint=checkpoint,
        reply_row=1,
        session_id="s1",
        draft_text=f"# Handoff\n{secret}",
        identifiers=(Identifier(kind="url", text=f"https://{secret}@github.com/o/r"),),
    )
    kept = parsed.model_dump_json()
    assert secret not in kept
    assert kept.count("[redacted:") == 5
    assert ParsedHandoff.recall(kept) == parsed

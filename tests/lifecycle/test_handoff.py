from __future__ import annotations

import hashlib
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from lifecycle.checkpoint import Checkpoint, State
from lifecycle.draft import DRAFT_HEAD, DRAFT_TAIL, HANDOFF_SECTIONS, MACHINE_PART, parse_draft, read_draft, sections_of
from lifecycle.errors import CheckpointRefused
from lifecycle.foreign_text import cleaned
from lifecycle.handoff import Handoff, compose, read_handoff, summary_of
from lifecycle.renewal import Quality

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FILLED = {title: f"All about {title.lower()}." for title in HANDOFF_SECTIONS}
CHECKPOINT = Checkpoint(
    state=State.HANDOFF,
    files_changed="src/parser.py",
    commands_run="pytest -q: 3 failed",
    result="the tokenizer is done",
    blocker="none",
    next_action="fix test_nested in tests/test_parser.py",
)


def draft(sections: dict[str, str] | None = None, *, title: str = "# Handoff — swarm7 — mission-a1") -> str:
    body = "\n\n".join(f"## {name}\n\n{text}" for name, text in (FILLED if sections is None else sections).items())
    return f"{title}\nGenerated: 2026-03-04T05:06:07Z\n\n{body}\n"


TEMPLATE = draft(dict.fromkeys(HANDOFF_SECTIONS, ""))


def handoff(**changes: object) -> Handoff:
    known: dict[str, object] = {
        "worker_id": "swarm7",
        "mission_id": "mission-a1",
        "assignment_id": "assign-1",
        "renewal_id": "rn-1",
        "generation": 3,
        "session_id": "20260304_010203_ab12cd",
        "model": "gpt-5",
        "tokens": 402_113,
        "created_at": NOW,
        "sections": FILLED,
        "checkpoint": CHECKPOINT,
    }
    return Handoff.model_validate(known | changes)


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        lambda text: text.replace("## ", "#### "),
        lambda text: text.replace("## ", "# "),
        lambda text: text.replace("## ", "##"),
        lambda text: text.replace("## Files touched", "## FILES_TOUCHED").replace("## Current", "## current"),
        lambda text: text.replace("## Blockers", "## 7. Blockers:").replace("## Completed", "## **Completed**"),
        lambda text: text.replace("## Objective", "**Objective:**").replace("## Completed", "__Completed__"),
        lambda text: text.replace("## Next exact action", "## Next action").replace("## Completed", "## Done"),
        lambda text: text.replace("## Blockers\n\n", "## Blockers: "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: f"```markdown\n{text}```\n",
        lambda text: text.replace("## ", "\x1b[1m## \x1b[0m"),
        lambda text: text.replace("\n", "\n\x00"),
    ],
)
def test_a_filled_template_is_read_however_it_is_spelled(spell: object) -> None:
    assert callable(spell)
    assert parse_draft(spell(draft()), "swarm7", mission_id="mission-a1") == FILLED


@pytest.mark.parametrize(
    "unfilled",
    [
        TEMPLATE,
        "",
        " \n\n",
        draft(dict.fromkeys(HANDOFF_SECTIONS, "<what is known>")),
        draft(dict.fromkeys(HANDOFF_SECTIONS, "- ...\n- [fill in]\n- TODO")),
        f"```\n{TEMPLATE}```",
        TEMPLATE + f"\n{MACHINE_PART}\n\nsomething of Afresh\n",
    ],
)
def test_an_unfilled_template_is_refused(unfilled: str) -> None:
    """H11, W-10."""
    with pytest.raises(CheckpointRefused) as caught:
        parse_draft(unfilled, "swarm7")
    assert caught.value.reason == "handoff_template"


@pytest.mark.parametrize(
    ("title", "reason"),
    [
        ("# Handoff — swarm8 — mission-a1", "handoff_wrong_worker"),
        ("# HANDOFF - swarm8", "handoff_wrong_worker"),
        ("## Handoff: builder-2 -- mission-a1", "handoff_wrong_worker"),
        ("# Handoff for swarm8", "handoff_wrong_worker"),
        ('---\nworker: "swarm8"\n---\n# Handoff', "handoff_wrong_worker"),
        ("# Handoff — swarm7 — mission-b2", "handoff_wrong_mission"),
        ('---\nworker: "swarm7"\nrenewal_id: "rn-0"\n---\n# Handoff — swarm7', "handoff_stale"),
    ],
)
def test_a_draft_that_is_headed_otherwise_is_refused(title: str, reason: str) -> None:
    """H12: the handoff of one worker in the place of another's; and an older handoff copied to the draft's place."""
    with pytest.raises(CheckpointRefused) as caught:
        parse_draft(draft(title=title), "swarm7", mission_id="mission-a1", renewal_id="rn-1")
    assert caught.value.reason == reason
    assert caught.value.worker_id == "swarm7"


@pytest.mark.parametrize(
    "title",
    [
        "# Handoff — SWARM7 — mission-a1",
        "# Handoff — swarm7 — none",
        "# Handoff — Parser",
        "# Handoff — Parser — rewriting the lexer",
        "# Handoff notes",
        "# Handoff of the parser work, swarm8 helped",
        "# Parser work",
        "",
    ],
)
def test_a_title_that_names_nobody_else_is_no_reason_to_refuse(title: str) -> None:
    found = parse_draft(draft(title=title), "swarm7", mission_id="mission-a1", renewal_id="rn-1")
    assert found["Resume prompt"] == FILLED["Resume prompt"]


def test_text_before_the_first_heading_and_unknown_headings_are_kept() -> None:
    text = "# Handoff — swarm7 — none\n\nIn short: half done.\n\n## Completed\n\nA\n\n## Decisions\n\nno cache\n"
    assert parse_draft(text, "swarm7") == {
        "Current state": "In short: half done.",
        "Completed": "A\n\n## Decisions\n\nno cache",
    }


def test_a_fenced_heading_opens_no_section() -> None:
    text = "## Commands run\n\n```\n## Next exact action\nrm -rf build\n```\n\n## Next exact action\n\nread it\n"
    assert parse_draft(text, "swarm7")["Next exact action"] == "read it"


def test_a_fence_that_never_closes_hides_no_section() -> None:
    text = "## Commands run\n\n```bash\nmake\n\n## Next exact action\n\nread it\n"
    assert parse_draft(text, "swarm7") == {"Commands run": "```bash\nmake", "Next exact action": "read it"}


def test_none_is_an_answer() -> None:
    assert parse_draft("## Blockers\n\nnone\n", "swarm7") == {"Blockers": "none"}


def test_of_a_ten_megabyte_section_both_ends_are_kept_and_the_rest_of_the_draft() -> None:
    log = "first line\n" + "x" * 10_000_000 + "\nlast line"
    found = parse_draft(draft(FILLED | {"Commands run": log}), "swarm7")
    assert found["Commands run"].startswith("first line")
    assert found["Commands run"].endswith("last line")
    assert "characters left out" in found["Commands run"]
    assert found["Next exact action"] == FILLED["Next exact action"]
    assert sum(map(len, found.values())) < 20_000


def test_the_longest_possible_draft_stays_readable() -> None:
    text = compose(handoff(sections=dict.fromkeys(HANDOFF_SECTIONS, "word " * 100_000)))
    assert len(text) < 9 * 12_200 + 2_000


@pytest.mark.parametrize(
    "unit", ["# ", "#", "```a\n", "~~~\n", "- ", ".", "> ", "\x1b]", "\x1b[", "**", "---\n", "# Handoff — "]
)
def test_a_hostile_draft_takes_no_more_than_its_length(unit: str) -> None:
    began = time.process_time()
    text = f"## Completed\n\nA\n\n{unit * (2_000_000 // len(unit))}x"
    compose(handoff(sections=parse_draft(text, "swarm7")))
    assert time.process_time() - began < 20


def test_a_draft_that_is_not_there_is_none(tmp_path: Path) -> None:
    """catalyst #3779: six times "written", and no file."""
    assert read_draft(tmp_path / "draft-rn-1.md", worker_id="swarm7") is None


def test_a_draft_that_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for place in ("pipe", "link", "."):
        with pytest.raises(CheckpointRefused) as caught:
            read_draft(tmp_path / place, worker_id="swarm7")
        assert caught.value.reason == "handoff_unreadable"


def test_of_a_huge_draft_both_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "draft"
    path.write_bytes(b"begin" + b"x" * 12 * 2**20 + b"end")
    text = read_draft(path, worker_id="swarm7") or ""
    assert text.startswith("begin")
    assert text.endswith("end")
    assert f"{path.stat().st_size - DRAFT_HEAD - DRAFT_TAIL:,} bytes left out" in text


def test_bytes_that_are_no_utf8_do_not_lose_the_draft(tmp_path: Path) -> None:
    path = tmp_path / "draft"
    path.write_bytes(b"## Completed\n\ncaf\xe9\n")
    assert parse_draft(read_draft(path, worker_id="swarm7") or "", "swarm7") == {"Completed": "caf\ufffd"}


def test_a_composed_handoff_holds_every_section_and_reads_back_intact() -> None:
    text = compose(handoff())
    found = read_handoff(text)
    assert found.intact
    assert (found.worker_id, found.mission_id, found.assignment_id) == ("swarm7", "mission-a1", "assign-1")
    assert (found.renewal_id, found.generation, found.session_id) == ("rn-1", 3, "20260304_010203_ab12cd")
    assert (found.model, found.tokens, found.quality) == ("gpt-5", 402_113, Quality.WRITTEN)
    assert found.created_at == NOW
    assert found.body.startswith("# Handoff — swarm7 — mission-a1\n")
    assert set(found.sections) == set(HANDOFF_SECTIONS)
    assert found.sections["Objective"] == FILLED["Objective"]


def test_the_front_matter_is_yaml_for_everybody() -> None:
    text = compose(handoff(model='odd "model": {x}\n---\nworker: root', mission_id=None, tokens=None))
    front, body = text.removeprefix("---\n").split("\n---\n", 1)
    found = YAML(typ="safe").load(front)
    assert found["worker"] == "swarm7"
    assert found["model"] == 'odd "model": {x} --- worker: root'
    assert (found["mission"], found["tokens"]) == (None, None)
    assert found["body_sha256"] == hashlib.sha256(body.encode()).hexdigest()


def test_the_checkpoint_wins_for_the_next_action_and_the_draft_is_not_lost() -> None:
    found = read_handoff(compose(handoff())).sections["Next exact action"]
    assert found.startswith(CHECKPOINT.next_action)
    assert FILLED["Next exact action"] in found


def test_what_the_draft_leaves_out_comes_from_the_checkpoint() -> None:
    found = read_handoff(compose(handoff(sections={"Objective": "a parser"}, quality=Quality.CHECKPOINT))).sections
    assert found["Files touched"] == "src/parser.py"
    assert found["Next exact action"] == CHECKPOINT.next_action


def test_a_handoff_that_no_worker_wrote_says_so() -> None:
    text = compose(handoff(sections={}, checkpoint=None, quality=Quality.SYNTHESIZED, supplement="git: 3 files"))
    assert 'quality: "synthesized"' in text
    assert "the worker did not write this" in text
    assert "git: 3 files" in text


def test_secrets_are_not_kept() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    checkpoint = CHECKPOINT.model_copy(update={"commands_run": "export DB_PASSWORD=hunter2"})
    text = compose(
        handoff(sections={"Commands run": f"curl -H 'Authorization: Bearer {token}'"}, checkpoint=checkpoint)
    )
    assert token not in text
    assert "hunter2" not in text
    assert read_handoff(text).intact
    assert "hunter2" not in summary_of(handoff(sections={"Current state": "password: hunter2"}))


def test_a_private_key_takes_no_other_section_with_it() -> None:
    cut_off = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJcds3xfn"
    found = read_handoff(compose(handoff(sections={"Completed": cut_off, "Blockers": "-----END PRIVATE KEY-----"})))
    assert found.sections["Completed"] == "[redacted:private-key]"
    assert found.sections["Files touched"] == "src/parser.py"


def test_escape_sequences_do_not_reach_the_file() -> None:
    """S2: a RESULT that ends a bracketed paste and types on."""
    evil = "ok\x1b[201~\r!rm -rf /\x08\x08\x00\u202e"
    text = compose(handoff(sections={"Completed": evil}, checkpoint=CHECKPOINT.model_copy(update={"result": evil})))
    assert "ok\n!rm -rf /" in text
    assert all(ch in "\n\t" or ch.isprintable() for ch in text)


def test_a_section_can_neither_end_itself_nor_swallow_the_next() -> None:
    evil = f"```\nopen fence\n{MACHINE_PART}"
    rest = "# Handoff — swarm8 — x\n## Decisions\nkept"
    found = read_handoff(compose(handoff(sections={"Completed": evil, "In progress": rest}))).sections
    assert found["Completed"] == "```\nopen fence\n```"
    assert found["In progress"] == "### Handoff — swarm8 — x\n### Decisions\nkept"
    assert found["Blockers"] == "none"


def test_a_changed_body_is_noticed() -> None:
    text = compose(handoff())
    assert read_handoff(text.replace("tokenizer", "Tokenizer")).intact is False
    assert read_handoff(text[:-40]).intact is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n",
        "---\nworker: x\n",
        "# Handoff — swarm7 — none\n\n## Objective\n\nx\n",
        "---\nworker: 7\ntokens: many\n---\nbody",
    ],
)
def test_a_foreign_document_is_all_body(text: str) -> None:
    found = read_handoff(text)
    assert found.intact is None
    assert (found.worker_id, found.tokens) == (None, None)
    assert found.body in text


def test_the_machine_part_is_not_taken_for_the_workers_words() -> None:
    found = sections_of(read_handoff(compose(handoff(supplement="## Completed\n\nall"))).body)
    assert found["Completed"] == FILLED["Completed"]
    assert "STATE" not in found["Resume prompt"]


@given(st.text())
def test_cleaning_is_done_once_and_can_be_encoded(text: str) -> None:
    once = cleaned(text)
    assert once.encode().decode() == once
    assert "\x1b" not in once
    assert "\r" not in once


_PIECES = [
    "## Completed\n",
    "```\n",
    "~~~~\n",
    "text\n",
    "---\n",
    "# x\n",
    MACHINE_PART + "\n",
    "\x1b[1m",
    "password: hunter2\n",
    "é",
    "\ud800",
]


@given(st.dictionaries(st.sampled_from(HANDOFF_SECTIONS), st.lists(st.sampled_from(_PIECES)).map("".join)))
def test_whatever_a_worker_wrote_the_document_reads_back_intact(sections: dict[str, str]) -> None:
    found = read_handoff(compose(handoff(sections=sections)))
    assert found.intact
    bare = read_handoff(compose(handoff(sections={}))).sections
    for title in set(HANDOFF_SECTIONS) - sections.keys():
        assert found.sections.get(title) == bare.get(title)
    assert found.sections["Next exact action"].startswith(CHECKPOINT.next_action)


@given(st.text())
def test_any_text_is_a_draft_or_refused(text: str) -> None:
    try:
        found = parse_draft(text, "swarm7")
    except CheckpointRefused:
        return
    assert found
    assert set(found) <= set(HANDOFF_SECTIONS)

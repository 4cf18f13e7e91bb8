"""The pages of docs/: what they show of a configuration is valid, and every command of theirs is run."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from lifecycle import errors
from lifecycle.decision import Action, Decision
from lifecycle.ending import block_outright
from lifecycle.settings import load_settings
from tests.deployments.conftest import COMMAND, REPOSITORY, Done, Operator

DOCS = Path(__file__).parents[2] / "docs"

RUN_HERE = ("install", "policy", "answering")
RUN_ELSEWHERE = {
    "several-hosts": "tests/deployments/operations/test_several_hosts.py",
    "notifications": "tests/deployments/operations/test_notifications.py",
    "api": "tests/deployments/operations/test_api_document.py",
}
"""Pages whose commands need several hosts, or a server with its webhooks."""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)


def commands(page: str) -> list[list[str]]:
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines), lines
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


@pytest.fixture
def reader(running: Operator, prefect_api: str, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Somebody who types what a page says, beside a worker that runs; Afresh's Prefect server is there already."""
    monkeypatch.setenv("PREFECT_API_URL", prefect_api)
    running.stage.fill(70_000)
    return running


@pytest.mark.parametrize("page", sorted(path.stem for path in DOCS.glob("*.md")))
def test_every_page_is_run_somewhere_and_each_configuration_it_shows_is_valid(page: str, afresh: Operator) -> None:
    assert page in (*RUN_HERE, *RUN_ELSEWHERE, "fidelity", "guarantees", "performance")
    for text in blocks(page, "toml"):
        afresh.toml.write_text(text)
        assert load_settings(environ={**os.environ, **afresh.environment()}).path == afresh.toml


@pytest.mark.prefect
def test_the_commands_of_installing_do_what_the_page_says(reader: Operator) -> None:
    typed = commands("install")
    assert [words[0] for words in typed] == ["afresh"] * len(typed)
    done = {" ".join(words[1:]): run(reader, words) for words in typed if words[1] != "serve"}

    assert "swarm1" in done["status"].out
    assert "over the handoff limit of 60,000; idle" in done["renew swarm1 --dry-run"].out
    assert done["renew swarm1 --why first try"].code == 0
    assert "renewed" in done["history swarm1"].out
    assert "Next exact action" in done["handoff show swarm1"].out
    assert "KillMode=process" in done["install-units --user --dry-run"].out
    assert ["afresh", "serve"] in typed, "it is tried in test_serve.py"


def test_the_commands_of_answering_do_what_the_page_says(running: Operator) -> None:
    with running.host() as host:
        worker = host.worker("swarm1")
        decision = Decision(action=Action.BLOCK, reason="for the page", block="no_progress")
        block_outright(host, worker, decision, host.read(worker, host.process(worker)))

    done = {words[1]: run(running, words) for words in commands("answering")}

    assert "no_progress" in done["blocked"].out
    assert done["answer"].code == 0
    assert "no_progress" not in done["status"].out
    assert "it is nearly done" in done["events"].out


def test_the_reasons_and_answers_of_the_page_are_the_ones_there_are() -> None:
    text = (DOCS / "answering.md").read_text()
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - {"handoff_answer"}
    known = {getattr(kind, "reason", "") for kind in vars(errors).values()}
    source = "\n".join(path.read_text() for path in (REPOSITORY / "lifecycle").rglob("*.py"))
    assert {reason for reason in named if reason not in known and f'"{reason}"' not in source} == set()


def test_the_commands_of_policies_do_what_the_page_says(running: Operator) -> None:
    done = {" ".join(words[1:]): run(running, words) for words in commands("policy")}

    assert [row["policy"] for row in done["status --json"].json] == [
        {"soft": 30_000, "handoff": 60_000, "hard": 90_000}
    ]
    assert "swarm1" in done["sweep --dry-run"].out
    assert {call.code for call in done.values()} <= {0, 1}


def run(operator: Operator, words: list[str]) -> Done:
    done = operator(*words[1:])
    assert done.code in (0, 1), (words, done)
    assert "Traceback" not in done.err
    return done


@pytest.mark.prefect
def test_serve_ends_with_a_signal_as_the_page_says(reader: Operator) -> None:
    """Started and ended at once: what it does in between is tried in test_serve.py."""
    process = subprocess.Popen(
        [*COMMAND, "serve"], cwd=REPOSITORY, env=reader.environment(), stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        assert "starting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()

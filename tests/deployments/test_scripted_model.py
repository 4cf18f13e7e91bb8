"""The scripted model at the level of HTTP; the agent's own view of it is tested with the agent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pydantic import ValidationError

from deployments.demo.script import Kind
from deployments.demo.scripted_model import ScriptedModel

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("terminal", "write_file", "read_file")]
DRAFT = "/srv/agents/profiles/swarm1/memory/handoffs/draft-r-1a2b.md"
ARCHIVE = "/srv/afresh/archive/swarm1/20260101T000000Z-r-1a2b.md"
REQUEST = f"""CONTEXT_HANDOFF_REQUIRED
Your context is 400,000 tokens long.
WORKER: swarm1
MISSION: mission-seeds
RENEWAL_ID: r-1a2b
DRAFT: {DRAFT}
Use these headings:
## Current state
## Next exact action
STATE: HANDOFF
NEXT_ACTION: <the one exact next step>
RENEWAL_ID: r-1a2b"""
CORRECTION = f"CONTEXT_HANDOFF_REQUIRED correction\nRENEWAL_ID: r-1a2b\nDRAFT: {DRAFT}\nThe fields BLOCKER are missing."
RESUME = f"""RESUME_AFTER_HANDOFF
RENEWAL_ID: r-1a2b
HANDOFF: {ARCHIVE}
STATE: IN_PROGRESS
NEXT_ACTION: <the next exact action>
NEXT_ACTION: append entry 7 to the ledger"""
HEADINGS = (
    "Current state",
    "Objective",
    "Completed",
    "In progress",
    "Files touched",
    "Commands run",
    "Blockers",
    "Next exact action",
    "Resume prompt",
)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


def call(model: ScriptedModel, method: str, path: str, body: object = None) -> tuple[int, Any]:
    connection = HTTPConnection(urlsplit(model.base_url).netloc, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def ask(model: ScriptedModel, *messages: dict[str, Any], tools: bool = True) -> dict[str, Any]:
    status, reply = call(model, "POST", "/v1/chat/completions", {"messages": messages, "tools": TOOLS if tools else []})
    assert status == 200, reply
    message: dict[str, Any] = reply["choices"][0]["message"]
    return message


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ordered(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    calls = message.get("tool_calls", [])
    return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]


def turn(model: ScriptedModel, *before: dict[str, Any], result: str = "done") -> list[dict[str, Any]]:
    """Play the agent's part of one turn: give every tool call a result, until a text ends it."""
    messages = list(before)
    while True:
        message = ask(model, *messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return messages
        messages.append({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": result})


def fields(text: str) -> dict[str, str]:
    return {label: value for label, _, value in (line.partition(": ") for line in text.splitlines())}


def test_the_model_list_tells_the_context_length(model: ScriptedModel) -> None:
    model.change(context_length=64_000)
    _, listed = call(model, "GET", "/v1/models")
    assert [entry["context_length"] for entry in listed["data"]] == [64_000]


def test_a_handoff_request_writes_the_named_draft_and_then_answers_with_its_renewal_id(model: ScriptedModel) -> None:
    first, request = user("Please catalogue the seeds."), user(REQUEST)
    messages = turn(model, *turn(model, first), request)
    calls = [entry for message in messages[4:] for entry in ordered(message)]
    assert [(name, arguments["path"]) for name, arguments in calls] == [("write_file", DRAFT)]
    found = fields(messages[-1]["content"])
    assert found["STATE"] == "HANDOFF"
    assert found["RENEWAL_ID"] == "r-1a2b"
    assert set(found) >= {"FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION"}


def test_the_draft_holds_nine_filled_headings_and_the_words_of_the_mission(model: ScriptedModel) -> None:
    messages = turn(model, user("Please catalogue the seeds."))
    [(_, arguments)] = ordered(ask(model, *messages, user(REQUEST)))
    draft = arguments["content"]
    parts = dict(part.split("\n", 1) for part in draft.split("\n## ")[1:])
    assert tuple(parts) == HEADINGS
    assert all(len(body.split()) >= 1 for body in parts.values())
    assert len(draft.split()) > 150
    assert "Please catalogue the seeds." in draft
    assert "ledger.txt" in parts["Files touched"]
    assert draft.startswith("# Handoff — swarm1 — mission-seeds")


@pytest.mark.parametrize(
    ("manner", "claim"),
    [
        ("garbage", lambda text: "STATE" not in text),
        ("partial", lambda text: "STATE: HANDOFF" in text and "NEXT_ACTION" not in text),
        ("bold", lambda text: text.startswith("**STATE:** HANDOFF")),
        ("wrong_id", lambda text: "RENEWAL_ID: r-1a2b" not in text and "RENEWAL_ID: " in text),
        ("no_file", lambda text: "STATE: HANDOFF" in text),
    ],
)
def test_a_handoff_can_go_wrong_in_every_scripted_manner(model: ScriptedModel, manner: str, claim: Any) -> None:
    model.change(handoff=manner)
    messages = turn(model, user(REQUEST))
    assert claim(messages[-1]["content"])
    wrote = any(name == "write_file" for message in messages for name, _ in ordered(message))
    assert wrote == (manner not in ("garbage", "no_file"))


def test_the_correction_of_a_bad_first_answer_is_answered_well(model: ScriptedModel) -> None:
    model.change(first_handoff="partial")
    bad = turn(model, user(REQUEST))
    assert "NEXT_ACTION" not in bad[-1]["content"]
    good = turn(model, *bad, user(CORRECTION))
    assert fields(good[-1]["content"])["NEXT_ACTION"].startswith("append entry")
    assert fields(good[-1]["content"])["RENEWAL_ID"] == "r-1a2b"


def test_a_resume_reads_the_archive_and_repeats_the_next_action(model: ScriptedModel) -> None:
    messages = turn(model, user(RESUME))
    assert ordered(messages[1]) == [("read_file", {"path": ARCHIVE})]
    found = fields(messages[-1]["content"])
    assert (found["STATE"], found["RENEWAL_ID"]) == ("IN_PROGRESS", "r-1a2b")
    assert found["NEXT_ACTION"] == "append entry 7 to the ledger"


def test_a_resume_without_a_next_action_takes_it_from_the_file_it_read(model: ScriptedModel) -> None:
    resume = RESUME.replace("append entry 7 to the ledger", "the one that the HANDOFF file states; reply first")
    read = json.dumps({"content": "8|## Next exact action\n9|append entry 9\n10|\n"})
    assert fields(turn(model, user(resume), result=read)[-1]["content"])["NEXT_ACTION"] == "append entry 9"


def test_a_continue_takes_the_step_it_names_with_a_real_command(model: ScriptedModel) -> None:
    messages = turn(model, user("CONTINUE r-1a2b: append entry 7 to the ledger"))
    assert ordered(messages[1]) == [("terminal", {"command": "echo 'entry 7' >> ledger.txt"})]
    assert "Entry 7" in messages[-1]["content"]
    assert ordered(ask(model, *messages, user("go on")))[0][1]["command"] == "echo 'entry 8' >> ledger.txt"


def test_a_continue_that_refers_to_the_handoff_takes_the_step_that_was_read_there(model: ScriptedModel) -> None:
    read = json.dumps({"content": "8|## Next exact action\n9|\n10|append entry 9\n11|\n"})
    messages = turn(model, user(RESUME), result=read)
    order = user("CONTINUE r-1a2b: take the next exact action of your handoff now")
    assert ordered(ask(model, *messages, order)) == [("terminal", {"command": "echo 'entry 9' >> ledger.txt"})]


def test_a_given_next_action_is_stated_in_document_and_checkpoint_as_it_is(model: ScriptedModel) -> None:
    model.change(next_action="{!touch x}")
    messages = turn(model, user(REQUEST))
    [(_, arguments)] = ordered(messages[1])
    assert "## Next exact action\n{!touch x}\n" in arguments["content"]
    assert fields(messages[-1]["content"])["NEXT_ACTION"] == "{!touch x}"


def test_a_cancelled_renewal_goes_back_to_work(model: ScriptedModel) -> None:
    messages = turn(model, user("RENEWAL_CANCELLED r-1a2b: carry on with your task"))
    assert [name for name, _ in ordered(messages[1])] == ["terminal"]
    assert model.requests[-1].kind is Kind.CANCELLED


def test_a_checkpoint_request_is_answered_without_a_tool_and_without_an_old_renewal_id(model: ScriptedModel) -> None:
    asked = "CHECKPOINT_REQUESTED\nReply once:\nSTATE: IN_PROGRESS\nBLOCKER: <x>\nNEXT_ACTION: <y>"
    messages = turn(model, user(RESUME), {"role": "assistant", "content": "…"}, user(asked))
    assert fields(messages[-1]["content"])["STATE"] == "IN_PROGRESS"
    assert "RENEWAL_ID" not in messages[-1]["content"]


def test_directives_in_the_last_user_text_are_obeyed_in_order(model: ScriptedModel) -> None:
    order = '[[tool terminal {"command": "ls"}]] [[tool read_file {"path": "a"}]] [[say 12]]'
    messages = turn(model, user(order))
    names = [name for message in messages for name, _ in ordered(message)]
    assert names == ["terminal", "read_file"]
    assert len(messages[-1]["content"].split()) == 12


def test_queued_answers_are_given_once_each_and_only_to_ordinary_turns(model: ScriptedModel) -> None:
    model.say("first", "second")
    assert ask(model, user("x"), tools=False)["content"] != "first"
    assert "HANDOFF" in turn(model, user(REQUEST))[-1]["content"]
    assert [ask(model, user("x"))["content"], ask(model, user("x"))["content"]] == ["first", "second"]
    assert ask(model, user("x")).get("tool_calls")


def test_calls_without_tools_get_what_they_ask_for(model: ScriptedModel) -> None:
    judge = ask(model, user("rm -rf x\nRespond with exactly one word: APPROVE, DENY, or ESCALATE"), tools=False)
    title = ask(model, user("Generate a short, descriptive title (3-7 words)"), tools=False)
    summary = ask(model, user("Create a structured handoff summary of the conversation"), tools=False)
    assert judge["content"] == "APPROVE"
    assert 0 < len(title["content"].split()) <= 7
    assert "ledger" in summary["content"]


def test_a_stream_carries_the_same_reply_and_ends_with_the_usage(model: ScriptedModel) -> None:
    connection = HTTPConnection(urlsplit(model.base_url).netloc, timeout=10)
    body = {"stream": True, "messages": [user("[[say 300]]")], "tools": TOOLS}
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    raw = connection.getresponse().read().decode()
    connection.close()
    lines = [line.removeprefix("data: ") for line in raw.splitlines() if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert len("".join(delta.get("content", "") for delta in deltas).split()) == 300
    assert len(deltas) > 4
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["prompt_tokens"] == model.requests[-1].tokens > 0


def test_prompt_tokens_follow_the_request_and_the_weight_of_the_conversation(model: ScriptedModel) -> None:
    system = {"role": "system", "content": "s" * 37_000}
    ask(model, system, user("x" * 3_700))
    assert model.requests[-1].tokens == pytest.approx(11_000, rel=0.02)
    model.change(weight=20)
    ask(model, system, user("x" * 3_700))
    assert model.requests[-1].tokens == pytest.approx(30_000, rel=0.03)


def test_a_conversation_can_be_told_how_full_it_is_and_grows_from_there(model: ScriptedModel) -> None:
    messages = turn(model, user("go on [[tokens 300000]]"))
    assert model.requests[-1].tokens == pytest.approx(300_000, abs=50)
    turn(model, *messages, user("x" * 37_000))
    assert model.requests[-1].tokens == pytest.approx(310_000, abs=200)
    turn(model, user("a new session"))
    assert model.requests[-1].tokens < 1_000


@pytest.mark.parametrize("status", [429, 500])
def test_a_fault_answers_with_its_status_until_it_is_lifted(model: ScriptedModel, status: int) -> None:
    assert call(model, "POST", "/script", {"fault": status})[0] == 200
    body = {"messages": [user(REQUEST)], "tools": TOOLS}
    answered, error = call(model, "POST", "/v1/chat/completions", body)
    assert (answered, error["error"]["code"]) == (status, status)
    call(model, "POST", "/script", {"fault": None})
    assert call(model, "POST", "/v1/chat/completions", body)[0] == 200


def test_a_silent_model_holds_the_line_until_it_is_closed() -> None:
    failures: list[Exception] = []

    def wait_for_answer(model: ScriptedModel) -> None:
        try:
            ask(model, user(REQUEST))
        except (RemoteDisconnected, ConnectionResetError) as error:
            failures.append(error)

    with ScriptedModel() as model:
        model.change(handoff="never")
        asking = threading.Thread(target=wait_for_answer, args=(model,))
        asking.start()
        asking.join(0.5)
        assert asking.is_alive()
    asking.join(5)
    assert not asking.is_alive()
    assert len(failures) == 1


def test_a_slow_answer_waits_as_long_as_it_was_told(model: ScriptedModel) -> None:
    model.change(handoff_delay=0.6)
    asking = threading.Thread(target=ask, args=(model, user(REQUEST)))
    asking.start()
    asking.join(0.3)
    assert asking.is_alive()
    asking.join(5)
    assert not asking.is_alive()


def test_an_unknown_knob_is_refused_by_name_and_changes_nothing(model: ScriptedModel) -> None:
    before = model.script
    status, error = call(model, "POST", "/script", {"handof": "good", "delay": 3})
    assert status == 400
    assert "handof" in error["error"]["message"]
    assert model.script == before
    with pytest.raises(ValidationError):
        model.change(handoff="rude")


def test_it_serves_as_a_program_of_its_own() -> None:
    command = [sys.executable, "-m", "deployments.demo.scripted_model", "--port", "0"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            connection = HTTPConnection(urlsplit(address).netloc, timeout=10)
            connection.request("GET", "/script")
            assert json.loads(connection.getresponse().read())["handoff"] == "good"
            connection.close()
        finally:
            server.terminate()

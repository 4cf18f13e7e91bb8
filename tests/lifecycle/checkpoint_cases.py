"""Labelled replies: which are checkpoints and which are not. Ids (C1, H11, W-34) are those of public reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from lifecycle.checkpoint import State

VALUES = {
    "STATE": "HANDOFF",
    "FILES_CHANGED": "importer/rows.py, tests/test_rows.py",
    "COMMANDS_RUN": "pytest -q (12 passed)",
    "RESULT": "parser finished; importer half done",
    "BLOCKER": "none",
    "NEXT_ACTION": "finish importer/rows.py, then run pytest -q",
}
TEMPLATE = (
    "STATE: DONE | BLOCKED | NEEDS_INPUT | HANDOFF | IN_PROGRESS\nFILES_CHANGED: exact paths or none\n"
    "COMMANDS_RUN: exact commands or none\nRESULT: concrete result/proof\nBLOCKER: blocker or none\n"
    "NEXT_ACTION: exact recommended next action"
)
REQUEST = (
    "CONTEXT_HANDOFF_REQUIRED\nWorker rn: write a durable handoff, then reply with exactly this checkpoint:\n"
    "STATE: HANDOFF\nFILES_CHANGED: ...\nCOMMANDS_RUN: ...\nRESULT: current state and what landed\n"
    "BLOCKER: blocker or none\nNEXT_ACTION: exact next step after renewal\n"
)

Shape = Callable[[str, str], str]


class Good(NamedTuple):
    """A reply that is a checkpoint. *expected* are the fields that differ from `VALUES`."""

    name: str
    text: str
    expected: dict[str, str | None] = {}
    note: str = ""
    state: State = State.HANDOFF
    purpose: Literal["handoff", "resume", "any"] = "handoff"


class Bad(NamedTuple):
    """A reply that is none, and why."""

    name: str
    text: str
    reason: str
    missing: tuple[str, ...] = ()
    purpose: Literal["handoff", "resume", "any"] = "handoff"


def plain(label: str, value: str) -> str:
    return f"{label}: {value}"


def block(shape: Shape = plain, *, joint: str = "\n", order: Iterable[str] = tuple(VALUES), **values: str) -> str:
    """The six lines in a *shape*; keywords change values."""
    return joint.join(shape(label, (VALUES | values)[label]) for label in order)


def without(*labels: str, **values: str) -> str:
    return block(plain, order=[label for label in VALUES if label not in labels], **values)


def words(label: str) -> str:
    return label.replace("_", " ").capitalize()


def numbered(text: str, form: str) -> str:
    return "\n".join(form.format(number) + line for number, line in enumerate(text.split("\n"), 1))


def table(*, header: bool = True, shape: Shape = lambda label, value: f"| {label} | {value} |", **values: str) -> str:
    return ("| Field | Value |\n|---|:---|\n" if header else "") + block(shape, **values)


LOWER = {label.lower(): value for label, value in VALUES.items()}
SHAPES: dict[str, Shape] = {
    "plain": plain,
    "bold label, colon outside (C1)": lambda label, value: f"**{label}**: {value}",
    "bold label, colon inside": lambda label, value: f"**{label}:** {value}",
    "bold label, colon inside, no space": lambda label, value: f"**{label}:**{value}",
    "bold colon": lambda label, value: f"{label}**:** {value}",
    "bold line": lambda label, value: f"**{label}: {value}**",
    "bold value": lambda label, value: f"{label}: **{value}**",
    "bold label and bold value": lambda label, value: f"**{label}**: **{value}**",
    "bold italic": lambda label, value: f"***{label}:*** {value}",
    "italic label": lambda label, value: f"*{label}*: {value}",
    "italic by underscores": lambda label, value: f"_{label}_: {value}",
    "bold by underscores": lambda label, value: f"__{label}:__ {value}",
    "bullet": lambda label, value: f"- {label}: {value}",
    "star bullet": lambda label, value: f"* {label}: {value}",
    "plus bullet": lambda label, value: f"+ {label}: {value}",
    "dot bullet": lambda label, value: f"• {label}: {value}",
    "bold bullet": lambda label, value: f"- **{label}**: {value}",
    "bullet and code": lambda label, value: f"* `{label}`: `{value}`",
    "check box": lambda label, value: f"- [x] {label}: {value}",
    "heading with value (C4)": lambda label, value: f"### {label}: {value}",
    "heading above value": lambda label, value: f"## {label}\n{value}\n",
    "closed heading above value": lambda label, value: f"## {label} ##\n\n{value}\n",
    "bold heading above value": lambda label, value: f"**{label}**\n{value}\n",
    "quote": lambda label, value: f"> {label}: {value}",
    "nested quote": lambda label, value: f"> > **{label}**: {value}",
    "code label": lambda label, value: f"`{label}`: {value}",
    "code label with colon": lambda label, value: f"`{label}:` {value}",
    "code value": lambda label, value: f"{label}: `{value}`",
    "code line": lambda label, value: f"`{label}: {value}`",
    "lower case": lambda label, value: f"{label.lower()}: {value}",
    "words": lambda label, value: f"{words(label)}: {value}",
    "hyphens": lambda label, value: f"{label.replace('_', '-')}: {value}",
    "escaped underscores": lambda label, value: f"**{label.replace('_', chr(92) + '_')}**: {value}",
    "space before the colon": lambda label, value: f"{label} : {value}",
    "no space": lambda label, value: f"{label}:{value}",
    "full-width colon": lambda label, value: f"{label}：{value}",
    "indented": lambda label, value: f"    {label}: {value}",
    "value below the label": lambda label, value: f"{label}:\n{value}",
    "blank lines between": lambda label, value: f"{label}: {value}\n",
    "emoji before the label": lambda label, value: f"✅ {label}: {value}",
    "no-break spaces": lambda label, value: f"\u00a0{label}:\u00a0{value}",
    "zero-width characters": lambda label, value: f"\u200b{label}\u200d:\u2060 {value}\u200b",
    "ANSI colours": lambda label, value: f"\x1b[1;32m{label}\x1b[0m: {value}\x1b[K",
    "control characters": lambda label, value: f"\x00{label}:\x07 {value}\x00",
    "trailing spaces": lambda label, value: f"{label}: {value}  ",
    "table row": lambda label, value: f"| {label} | {value} |",
    "bold table row": lambda label, value: f"| **{label}** | {value} |",
    "code table row": lambda label, value: f"|`{label}`|`{value}`|",
    "table row with a colon": lambda label, value: f"| {label}: | {value} |",
}
"""Every way of writing a line that is accepted."""

FENCED = f"```text\n{block()}\n```"
LONG_RESULT = "parser finished:\n- rows\n- columns\n\nImporter half done."
LISTED = "do this:\n1. finish importer/rows.py\n2. run pytest -q"
LOG = "the log says\nstate: blocked by lock\nresult: 3 failed"

GOOD = [
    *(Good(name, block(shape)) for name, shape in SHAPES.items()),
    Good("a table with a header", table()),
    Good("a table with text around", f"Here it is.\n\n{table()}\n\nBye."),
    Good("a table cell with a bar", table(RESULT="a \\| b"), {"result": "a | b"}),
    Good("numbered", numbered(block(), "{}. ")),
    Good("numbered with brackets", numbered(block(), "{}) **")),
    Good("any order", block(order=sorted(VALUES))),
    Good("reverse order", block(order=reversed(VALUES))),
    Good("any order after a label-like line of prose", f"Result: good so far.\n\n{block(order=sorted(VALUES))}"),
    Good(
        "several shapes in one block", "\n".join(s(k, VALUES[k]) for s, k in zip(SHAPES.values(), VALUES, strict=False))
    ),
    Good("CRLF and BOM (C6)", "\ufeff" + block(joint="\r\n")),
    Good("CR only", block(joint="\r")),
    Good("line separators", block(joint="\u2028")),
    Good("stop after the state (C3)", block(STATE="HANDOFF.")),
    Good("comma and note", block(STATE="HANDOFF, two checks open"), note="two checks open"),
    Good("dash and note", block(STATE="HANDOFF - two checks open"), note="two checks open"),
    Good("em dash and note", block(STATE="**HANDOFF** — 2 checks"), note="2 checks"),
    Good("number in brackets", block(STATE="HANDOFF (2)"), note="2"),
    Good("note that holds a state's word", block(STATE="HANDOFF - blocked by lock"), note="blocked by lock"),
    Good("note that denies", block(STATE="HANDOFF - not all checks ran"), note="not all checks ran"),
    Good("emoji before the state", block(STATE="✅ HANDOFF")),
    Good("emoji after the state", block(STATE="HANDOFF ✅"), note="✅"),
    Good("state in brackets", block(STATE="[HANDOFF]")),
    Good("state in quotes", block(STATE='"HANDOFF"')),
    Good("state in italics", block(STATE="_HANDOFF_")),
    Good("state in lower case", block(STATE="handoff")),
    Good("note on the next line", block(STATE="HANDOFF\ntwo checks open"), note="two checks open"),
    Good("NEEDS-INPUT", block(STATE="NEEDS-INPUT"), state=State.NEEDS_INPUT),
    Good("needs input", block(STATE="needs input"), state=State.NEEDS_INPUT),
    Good("IN PROGRESS", block(STATE="**IN PROGRESS**"), state=State.IN_PROGRESS),
    Good("escaped IN_PROGRESS", block(STATE="IN\\_PROGRESS"), state=State.IN_PROGRESS),
    Good("BLOCKED", block(STATE="BLOCKED"), state=State.BLOCKED),
    Good("DONE", block(STATE="DONE"), state=State.DONE),
    Good("DONE with nothing left", block(STATE="DONE", NEXT_ACTION="none"), {"next_action": "none"}, state=State.DONE),
    Good("resumed with nothing to do", block(NEXT_ACTION="n/a"), {"next_action": "n/a"}, purpose="resume"),
    Good("nothing to do, asked by nobody", block(NEXT_ACTION=""), {"next_action": ""}, purpose="any"),
    Good("no files", block(FILES_CHANGED="none", COMMANDS_RUN=""), {"files_changed": "none", "commands_run": ""}),
    Good(
        "continue with something", block(NEXT_ACTION="continue with rows.py"), {"next_action": "continue with rows.py"}
    ),
    Good("text before (C4)", "line\n" * 20 + block()),
    Good("text before without a blank line", f"The handoff is written.\n{block()}"),
    Good("text after", f"{block()}\n\nI stop here and wait for the renewal."),
    Good("a rule after", f"{block()}\n---\nI stop here."),
    Good("a code fence after", f"{block()}\n\n```\nSTATE: DONE\n```"),
    Good(
        "multi-line values",
        block(RESULT=LONG_RESULT, NEXT_ACTION=LISTED),
        {"result": LONG_RESULT, "next_action": LISTED},
    ),
    Good("a list of files", block(FILES_CHANGED="\n- a.py\n- b.py"), {"files_changed": "- a.py\n- b.py"}),
    Good(
        "a list after a blank line",
        f"{block(NEXT_ACTION='finish rows.py')}\n\n- run pytest\n- push\n\nThat is all.",
        {"next_action": "finish rows.py\n\n- run pytest\n- push"},
    ),
    Good(
        "a paragraph announced by a colon",
        f"{block(NEXT_ACTION='run this:')}\n\n```\npytest -q\n\ngit push\n```\n\nThanks.",
        {"next_action": "run this:\n\n```\npytest -q\n\ngit push\n```"},
    ),
    Good(
        "a fence inside a value",
        block(COMMANDS_RUN="\n```bash\npytest -q\n```"),
        {"commands_run": "```bash\npytest -q\n```"},
    ),
    Good(
        "a fence that begins behind the label",
        block(COMMANDS_RUN="```bash\nSTATE: DONE\n```"),
        {"commands_run": "```bash\nSTATE: DONE\n```"},
    ),
    Good(
        "a multi-line value in a quote",
        "> " + block(RESULT="one\ntwo").replace("\n", "\n> "),
        {"result": "one\ntwo"},
    ),
    Good("a stray closing fence", f"{block()}\n```"),
    Good("a fence left open", f"{block(NEXT_ACTION='run')}\n```\npytest", {"next_action": "run\n```\npytest\n```"}),
    Good("indented lines", block(RESULT="\n- one\n  - two\n- three"), {"result": "- one\n  - two\n- three"}),
    Good("indented lines below a line", block(RESULT="one\n  two\n    three"), {"result": "one\ntwo\n  three"}),
    Good("file patterns are no italics", block(FILES_CHANGED="*.py and lib/*"), {"files_changed": "*.py and lib/*"}),
    Good("dunder names are no bold", block(FILES_CHANGED="__init__"), {"files_changed": "__init__"}),
    Good("the whole reply in a fence", FENCED),
    Good("the whole reply in a fence of tildes", f"\n~~~~\n{block()}\n~~~~\n"),
    Good("the whole reply in a quoted fence", "> " + FENCED.replace("\n", "\n> ")),
    Good("JSON (C7)", json.dumps({"type": "result", "result": f"Done.\n{block()}"})),
    Good("JSON in a fence", f"```json\n{json.dumps({'result': block()}, indent=2)}\n```"),
    Good("JSON string", json.dumps(block())),
    Good("JSON list", json.dumps([{"role": "user", "content": REQUEST}, {"role": "assistant", "content": [block()]}])),
    Good("JSON with raw line ends", '{"result": "' + block() + '"}'),
    Good("JSON whose string is fenced", json.dumps({"result": FENCED})),
    Good("a label-like line in a value (C8)", block(RESULT=LOG), {"result": LOG}),
    Good(
        "a label-like line in capitals",
        block(RESULT="the log says\nSTATE: BLOCKED by lock"),
        {"result": "the log says\nSTATE: BLOCKED by lock"},
    ),
    Good(
        "a label-like line after a blank one",
        block(RESULT="the log says\n\nstate: blocked by lock"),
        {"result": "the log says\n\nstate: blocked by lock"},
    ),
    Good(
        "a label-like line in the last value",
        block(NEXT_ACTION="find out why the log says\nstate: blocked by lock"),
        {"next_action": "find out why the log says\nstate: blocked by lock"},
    ),
    Good(
        "a label-like line before its field",
        block(COMMANDS_RUN="pytest -q\nresult: 12 passed"),
        {"commands_run": "pytest -q\nresult: 12 passed"},
    ),
    Good(
        "bullets like labels in a value",
        block(RESULT="\n- State: rows done\n- Blocker: none seen"),
        {"result": "- State: rows done\n- Blocker: none seen"},
    ),
    Good("a label-like line before the block", f"Result: tests pass.\nBlocker: none so far.\n\n{block()}"),
    Good("a summary before the block", f"{without('STATE').title()}\n\n{block()}"),
    Good("the request, then the answer (C2)", f"{REQUEST}\n\n{block()}"),
    Good("the template, then the answer", f"{TEMPLATE}\n{block()}"),
    Good("an older block, then the answer (C2)", f"{block(STATE='DONE', RESULT='old')}\n\n{block()}"),
    Good("two blocks without a blank line", f"{block(STATE='DONE', RESULT='old')}\n{block()}"),
    Good("two blocks in another order", "\n".join(2 * [block(order=sorted(VALUES))])),
    Good(
        "a block quoted inside the answer",
        block(RESULT="I got\n> " + block(STATE="DONE").replace("\n", "\n> ")),
        {"result": "I got\n> " + block(STATE="DONE").replace("\n", "\n> ")},
    ),
    Good("a whole block, then half of one (W-34)", f"{block()}\n\nSTATE: IN_PROGRESS\nFILES_CHANGED: x"),
    Good("half of one glued to a whole one", f"{block()}\nSTATE: IN_PROGRESS\nFILES_CHANGED: x"),
    Good("half of one, then a whole block", f"STATE: DONE\nFILES_CHANGED: x\n\nAgain:\n\n{block()}"),
    Good("an example in a fence, then the answer (C5)", f"````\n```\n{TEMPLATE}\n```\n````\n\n{block()}"),
    Good("with the renewal id", f"{block()}\nRENEWAL_ID: r-7f3a", {"renewal_id": "r-7f3a"}),
    Good("with the renewal id above", f"RENEWAL_ID: r-7f3a\n{block()}", {"renewal_id": "r-7f3a"}),
    Good(
        "with the renewal id inside",
        block().replace("\nRESULT", "\nRENEWAL_ID: r-7f3a\nRESULT"),
        {"renewal_id": "r-7f3a"},
    ),
    Good("with the renewal id decorated", f"{block()}\n\n**Renewal-ID**: `R-7F3A`.", {"renewal_id": "R-7F3A"}),
    Good("with no renewal id to give", f"{block()}\nRENEWAL_ID: none"),
    Good("with the worker", f"WORKER: alice\n{block()}"),
    Good("with the worker and more words", f"Worker ID: alice — Builder\n{block()}"),
    Good("under its own heading", f"# Handoff — Alice — orchard\n\n{block()}"),
    Good("a log that names a worker", block(RESULT="log:\nworker: idle"), {"result": "log:\nworker: idle"}),
    Good("prose about a worker", f"Worker: connection lost at noon.\n{block()}"),
    Good("lone surrogates", block(RESULT="\ud800 ok"), {"result": "\ufffd ok"}),
    Good("joined emoji stay whole", block(RESULT="👩‍💻 ok"), {"result": "👩‍💻 ok"}),
]

BAD = [
    Bad("nothing", "", "checkpoint_missing"),
    Bad("prose", "All done, the tests are green. Shall I go on?", "checkpoint_missing"),
    Bad("done in prose (C7)", "DONE. The state is HANDOFF and the result is good.", "checkpoint_missing"),
    Bad("one label-like line", "Result: all tests pass.", "checkpoint_missing"),
    Bad("other labels", "STATUS: HANDOFF\nFILES: a\nNEXT: b", "checkpoint_missing"),
    Bad("an echoed command (C9)", "printf 'STATE: HANDOFF [exit %s]'", "checkpoint_missing"),
    Bad("JSON without a block", '{"result": "ok", "state": 3}', "checkpoint_missing"),
    Bad("translated labels", "ZUSTAND: HANDOFF\nDATEIEN: a\nERGEBNIS: b", "checkpoint_missing"),
    *(Bad(f"no {label}", without(label), "checkpoint_incomplete", (label,)) for label in VALUES),
    Bad("a state alone", "STATE: HANDOFF", "checkpoint_incomplete", tuple(VALUES)[1:]),
    Bad("cut off", without("BLOCKER", "NEXT_ACTION"), "checkpoint_incomplete", ("BLOCKER", "NEXT_ACTION")),
    Bad(
        "two halves (never mixed)",
        f"{without('BLOCKER', 'NEXT_ACTION')}\n\n{without('FILES_CHANGED', 'COMMANDS_RUN', 'RESULT', STATE='DONE')}",
        "checkpoint_incomplete",
        ("FILES_CHANGED", "COMMANDS_RUN", "RESULT"),
    ),
    Bad(
        "two halves in bold",
        f"**STATE**: DONE\n**FILES_CHANGED**: x\n\n{without('FILES_CHANGED')}",
        "checkpoint_incomplete",
        ("FILES_CHANGED",),
    ),
    Bad(
        "halves in two JSON strings",
        json.dumps([without("RESULT"), "RESULT: fine"]),
        "checkpoint_incomplete",
        ("RESULT",),
    ),
    Bad(
        "nobody can say which state is meant",
        block(
            order=["RESULT", "STATE", "FILES_CHANGED", "COMMANDS_RUN", "BLOCKER", "NEXT_ACTION"],
            RESULT="log\nSTATE: DONE",
        ),
        "checkpoint_incomplete",
        ("RESULT",),
    ),
    Bad("a log's state above a half", f"state: blocked by lock\n\n{without('STATE')}", "checkpoint_incomplete"),
    Bad("a log's state below a half", f"{without('STATE')}\n\nstate: blocked by lock", "checkpoint_incomplete"),
    Bad(
        "a half, then the beginning of the next",
        f"{without('STATE')}\n\nSTATE: DONE\nFILES_CHANGED: x",
        "checkpoint_incomplete",
    ),
    Bad("half a block above a fenced one", f"{without('RESULT')}\n\n{FENCED}", "checkpoint_incomplete", ("RESULT",)),
    Bad("NEEDS_REVIEW", block(STATE="NEEDS_REVIEW"), "checkpoint_state_unknown"),
    Bad("an empty state", block(STATE=""), "checkpoint_state_unknown"),
    Bad("a sentence for a state", block(STATE="almost HANDOFF"), "checkpoint_state_unknown"),
    Bad("a state denied", block(STATE="not DONE"), "checkpoint_state_unknown"),
    Bad("a state denied behind", block(STATE="DONE not yet"), "checkpoint_state_unknown"),
    Bad("a state in doubt", block(STATE="DONE?"), "checkpoint_state_unknown"),
    Bad("a longer word", block(STATE="DONE-ish"), "checkpoint_state_unknown"),
    Bad("a longer name", block(STATE="HANDOFF_READY"), "checkpoint_state_unknown"),
    Bad(
        "all states (W-34)",
        block(STATE="DONE | BLOCKED | NEEDS_INPUT | HANDOFF | IN_PROGRESS"),
        "checkpoint_state_unknown",
    ),
    Bad("two states by a slash", block(STATE="DONE/HANDOFF"), "checkpoint_state_unknown"),
    Bad("two states by or", block(STATE="handoff or done"), "checkpoint_state_unknown"),
    Bad("two states by a comma", block(STATE="**HANDOFF**, **DONE**"), "checkpoint_state_unknown"),
    Bad("two states by an arrow", block(STATE="IN_PROGRESS -> HANDOFF"), "checkpoint_state_unknown"),
    Bad("two states by a space", block(STATE="HANDOFF DONE"), "checkpoint_state_unknown"),
    Bad("two states on two lines", block(STATE="\n- HANDOFF\n- DONE"), "checkpoint_state_unknown"),
    Bad("two states in a table", table(STATE="DONE | HANDOFF"), "checkpoint_state_unknown"),
    Bad("a struck state", block(STATE="~~DONE~~ HANDOFF"), "checkpoint_state_unknown"),
    Bad("the template (H11)", TEMPLATE, "checkpoint_template"),
    Bad("the request (H11)", REQUEST, "checkpoint_template"),
    Bad(
        "the request echoed into bold", REQUEST.replace("STATE:", "**STATE:**"), "checkpoint_template", purpose="resume"
    ),
    Bad(
        "the template with a real state",
        TEMPLATE.replace("DONE | BLOCKED | NEEDS_INPUT | HANDOFF | ", ""),
        "checkpoint_template",
    ),
    Bad("angle brackets", block(lambda label, value: f"{label}: <{value}>"), "checkpoint_template"),
    Bad("one field of the template", block(NEXT_ACTION="exact recommended next action"), "checkpoint_template"),
    Bad("one field in bold", block(RESULT="**Concrete result / proof.**"), "checkpoint_template"),
    Bad("dots", block(FILES_CHANGED="..."), "checkpoint_template", purpose="any"),
    Bad("an ellipsis", block(COMMANDS_RUN="…"), "checkpoint_template", purpose="any"),
    Bad("braces", block(NEXT_ACTION="{{next_action}}"), "checkpoint_template", purpose="any"),
    Bad("labels alone", block(lambda label, _: f"{label}:"), "checkpoint_template"),
    Bad(
        "a state and labels",
        "STATE: HANDOFF\n" + block(lambda label, _: f"{label}:", order=[*VALUES][1:]),
        "checkpoint_template",
    ),
    Bad("an answer, then the template", f"{block()}\n\n{TEMPLATE}", "checkpoint_template"),
    *(
        Bad(f"next action {action!r}", block(NEXT_ACTION=action), "checkpoint_next_action")
        for action in (
            "",
            "-",
            "none",
            "None.",
            "**none**",
            "`none`",
            "N/A",
            "n.a.",
            "null",
            "nothing",
            "TBD",
            "✅",
            "continue",
            "Continue...",
            "Continue with the task.",
            "continue where I left off",
            "carry on",
            "Wait for renewal.",
            "await the renewal",
            "keep going",
            "proceed",
            "resume work after the renewal",
            "same as above",
            "none - nothing left to do",
            "no further action needed",
        )
    ),
    Bad("blocked with no next action", block(STATE="BLOCKED", NEXT_ACTION="none"), "checkpoint_next_action"),
    Bad("another worker's label (H12)", f"WORKER: bob\n{block()}", "checkpoint_wrong_worker"),
    Bad("another worker's id at the end", f"{block()}\nWORKER_ID: **bob**", "checkpoint_wrong_worker"),
    Bad("another worker's id in words", f"Worker: bob-2 — Builder\n{block()}", "checkpoint_wrong_worker"),
    Bad(
        "another worker's heading (H12)",
        f"# Handoff — bob — orchard\nGenerated: now\n\n{block()}",
        "checkpoint_wrong_worker",
    ),
    Bad(
        "another worker's heading with hyphens", f"**Handoff - bob-2 - orchard**\n{block()}", "checkpoint_wrong_worker"
    ),
    Bad("another renewal (C2)", f"{block()}\nRENEWAL_ID: r-0000", "checkpoint_wrong_renewal"),
    Bad("another renewal above", f"**RENEWAL_ID:** r-0000\n{block()}", "checkpoint_wrong_renewal"),
    Bad("another renewal and more words", f"{block()}\n\nRenewal id: r-0000, as before", "checkpoint_wrong_renewal"),
    Bad("a longer renewal id", f"{block()}\nRENEWAL_ID: r-7f3a-2", "checkpoint_wrong_renewal"),
    Bad(
        "an old answer of another renewal",
        f"RENEWAL_ID: r-7f3a\n{block()}\n\nRENEWAL_ID: r-1\n{block()}",
        "checkpoint_wrong_renewal",
    ),
    Bad("an example (C5)", f"I would answer:\n{FENCED}", "checkpoint_fenced_example"),
    Bad("an example in four backticks (C5)", f"So:\n````\n```\n{block()}\n```\n````", "checkpoint_fenced_example"),
    Bad(
        "an example in a long fence with a short one inside",
        f"So:\n````\n```\n{block()}\n````\nDone.",
        "checkpoint_fenced_example",
    ),
    Bad("an example in tildes", f"So:\n~~~\n{block()}\n```\n~~~", "checkpoint_fenced_example"),
    Bad(
        "an example in a quoted fence",
        "So:\n> " + FENCED.replace("\n", "\n> ") + "\nDone.",
        "checkpoint_fenced_example",
    ),
    Bad("an example in a list", f"- ```\n  {block()}\n  ```\n- more", "checkpoint_fenced_example"),
    Bad("an unclosed fence above (C3)", f"Log:\n```\nfailed\n{block(STATE='HANDOFF.')}", "checkpoint_fenced_example"),
    Bad("a fence that a shorter one does not close", f"````\n{block()}\n```", "checkpoint_fenced_example"),
    Bad("an example in JSON", json.dumps({"result": f"Like so:\n{FENCED}\nok"}), "checkpoint_fenced_example"),
]

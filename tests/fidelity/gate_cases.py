"""Labelled handoffs in all decorations: document, reply and what went before, and what ought to become of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

from lifecycle.checkpoint import parse_checkpoint
from lifecycle.conversation import Conversation
from lifecycle.draft import HANDOFF_SECTIONS, sections_of
from lifecycle.handoff import Handoff, compose
from lifecycle.judging import Material
from lifecycle.prompts import HANDOFF
from tests.lifecycle.conversations import BEGAN, asked, called, conversation, said

DRAFT = Path("/p/memory/handoffs/draft-r1.md")
ASKED = asked(f"{HANDOFF}\nDRAFT: {DRAFT}")
WROTE = called("write_file", path=str(DRAFT), content="x")
REPLY = """STATE: HANDOFF
FILES_CHANGED: /srv/seeds/a.csv, /srv/seeds/b.csv
COMMANDS_RUN: pytest -q tests/test_rows.py (12 passed)
RESULT: drawers one and two are counted
BLOCKER: none
NEXT_ACTION: count drawer three and append it to /srv/seeds/ledger.txt
RENEWAL_ID: r1"""

SECTIONS = {
    "Current state": "Drawers one and two of the cabinet are counted and their lines stand in /srv/seeds/ledger.txt; "
    "the counting server on port 8443 is up, and ticket SEED-9 stays open until drawer five is done.",
    "Objective": "Count every packet of all five drawers, one line a packet, so that the spring order can be made.",
    "Completed": "- drawer one: 48 packets\n- drawer two: 31 packets\nBoth were checked against /srv/seeds/a.csv.",
    "In progress": "Drawer three is open on the table; the first nine packets are sorted, none is written down yet.",
    "Files touched": "- /srv/seeds/a.csv\n- /srv/seeds/b.csv\n- /srv/seeds/ledger.txt",
    "Commands run": "- pytest -q tests/test_rows.py: 12 passed\n- wc -l /srv/seeds/ledger.txt: 79",
    "Blockers": "none; the label of packet 77 is hard to read, and nobody has been asked about it so far",
    "Next exact action": "count drawer three and append it to /srv/seeds/ledger.txt",
    "Resume prompt": "You count seeds. Go on with drawer three; never rewrite a line of the ledger, and ask before you "
    "throw a packet away, because the owner wants to see each of them first.",
}
CHINESE = {
    "Current state": "种子柜的第一、第二抽屉已经数完，结果写在 /srv/seeds/ledger.txt；计数服务器在端口 8443 上运行，"
    "工单 SEED-9 要等第五抽屉数完才关闭。",
    "Objective": "数完五个抽屉里的每一包种子，每包一行，春季订货要用这份账本。",
    "Completed": "- 第一抽屉：48 包\n- 第二抽屉：31 包\n两个抽屉都和 /srv/seeds/a.csv 核对过两遍。",
    "In progress": "第三抽屉放在桌上，前九包已经分好，还没有写进账本。",
    "Files touched": "- /srv/seeds/a.csv\n- /srv/seeds/b.csv\n- /srv/seeds/ledger.txt",
    "Commands run": "- pytest -q tests/test_rows.py：12 项通过\n- wc -l /srv/seeds/ledger.txt：79",
    "Blockers": "没有；第 77 包的标签看不清，还没有问过人。",
    "Next exact action": "数第三抽屉并追加到 /srv/seeds/ledger.txt",
    "Resume prompt": "你负责数种子。继续数第三抽屉；绝不改写账本里的任何一行，扔掉任何一包之前先问主人。",
}
WORK = (
    asked("Count the drawers into /srv/seeds/ledger.txt, server on port 8443, see SEED-9."),
    called("terminal", command="pytest -q tests/test_rows.py", outcome='{"exit_code": 0}'),
    called("write_file", path="/srv/seeds/a.csv", content="x"),
    called("read_file", path="/srv/seeds/a.csv"),
    said("Drawer two is counted, /srv/seeds/b.csv is written; /srv/seeds/b.csv has 31 lines."),
)

Shape = Callable[[dict[str, str]], str]


class Case(NamedTuple):
    """*good* says whether a renewal may go on with it as it is."""

    name: str
    good: bool
    material: Material


def headed(form: str = "## {}", *, joint: str = "\n") -> Shape:
    return lambda sections: "\n\n".join(f"{form.format(title)}{joint}{text}" for title, text in sections.items()) + "\n"


def renamed(**names: str) -> Shape:
    changed = {title.replace("_", " "): name for title, name in names.items()}
    return lambda sections: headed()({changed.get(title, title): text for title, text in sections.items()})


TITLE = "# Handoff — swarm1 — m-1\nGenerated: 2026-05-04T12:00:00Z\n\n"
SHAPES: dict[str, Shape] = {
    "plain": headed(),
    "title": lambda sections: TITLE + headed()(sections),
    "title without a mission": lambda sections: f"# Handoff — swarm1 — none\n\n{headed()(sections)}",
    "first level": headed("# {}"),
    "third level": headed("### {}"),
    "closed headings": headed("## {} ##"),
    "bold lines": headed("**{}**"),
    "bold lines with a colon": headed("**{}:**"),
    "underscored bold": headed("__{}__"),
    "bold inside a heading": headed("## **{}**"),
    "upper case": lambda sections: headed()({title.upper(): text for title, text in sections.items()}),
    "lower case": lambda sections: headed()({title.lower(): text for title, text in sections.items()}),
    "headings with a colon": headed("## {}:"),
    "words behind the colon": headed("## {}: ", joint=""),
    "numbered": lambda sections: headed()(
        {f"{n}. {title}": text for n, (title, text) in enumerate(sections.items(), 1)}
    ),
    "hyphens": lambda sections: headed()({title.replace(" ", "-"): text for title, text in sections.items()}),
    "underscores": lambda sections: headed()({title.replace(" ", "_"): text for title, text in sections.items()}),
    "CRLF": lambda sections: headed()(sections).replace("\n", "\r\n"),
    "CR": lambda sections: headed()(sections).replace("\n", "\r"),
    "byte order mark": lambda sections: "\ufeff" + headed()(sections),
    "whole in a fence": lambda sections: f"```markdown\n{headed()(sections)}```\n",
    "whole in tildes": lambda sections: f"~~~\n{headed()(sections)}~~~\n",
    "own front matter": lambda sections: f"---\nworker: swarm1\nrenewal_id: r1\n---\n{headed()(sections)}",
    "other front matter": lambda sections: f"---\ntitle: seeds\ndate: today\n---\n{headed()(sections)}",
    "other names": renamed(
        Current_state="Status",
        Objective="Goal",
        Completed="Done",
        Files_touched="Files changed",
        Blockers="Blocker",
        Commands_run="Commands",
        Next_exact_action="Next step",
    ),
    "other order": lambda sections: headed()(dict(reversed(sections.items()))),
    "words before the first heading": lambda sections: f"I wrote this at noon.\n\n{headed()(sections)}",
    "headings of its own": lambda sections: headed()(sections) + "\n## Notes\nthe lamp is broken\n",
    "a fence inside": lambda sections: headed()(
        {**sections, "Commands run": f"```\n## not a heading\n{sections['Commands run']}\n```"}
    ),
    "an open fence at the end": lambda sections: headed()(sections) + "```\nlog\n",
    "a quoted request": lambda sections: headed()({**sections, "Objective": f"> CONTEXT {sections['Objective']}"}),
    "escape sequences": lambda sections: headed()(sections).replace("Drawer", "\x1b[1mDrawer\x1b[0m"),
    "trailing spaces": lambda sections: headed()(sections).replace("\n", "  \n"),
    "emoji": headed(joint="\n\n✅ "),
    "a table": lambda sections: headed()(
        {
            **sections,
            "Files touched": "| file | state |\n|---|---|\n| /srv/seeds/a.csv | done |\n| /srv/seeds/b.csv | done |",
        }
    ),
    "very long": lambda sections: headed()({**sections, "Completed": sections["Completed"] + "\n- packet" * 3_000}),
}
REPLIES: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "bold": lambda text: re.sub(r"^(\w+):", r"**\1:**", text, flags=re.MULTILINE),
    "fenced": lambda text: f"```\n{text}\n```",
    "after words": lambda text: f"The document is written.\n\n{text}",
    "bullets": lambda text: re.sub(r"^", "- ", text, flags=re.MULTILINE),
    "without an id": lambda text: text.rpartition("\n")[0],
}


def material(draft: str | None = None, reply: str = REPLY, **changes: Any) -> Material:
    given = {
        "worker_id": "swarm1",
        "mission_id": "m-1",
        "renewal_id": "r1",
        "reply": reply,
        "draft": headed()(SECTIONS) if draft is None else draft,
        "draft_path": DRAFT,
        "written_at": BEGAN + timedelta(hours=1),
        "asked_at": BEGAN + timedelta(minutes=6),
        "asked_row": len(WORK) + 1,
        "conversation": after(),
    }
    return Material.model_validate({**given, **changes})


def composed() -> str:
    """The handoff before, as it was saved: with the checkpoint's next action, and what Afresh added."""
    handoff = Handoff(
        worker_id="swarm1",
        mission_id="m-1",
        renewal_id="r0",
        generation=1,
        created_at=BEGAN,
        sections=sections_of(headed()(SECTIONS)),
        checkpoint=parse_checkpoint(REPLY.replace("drawer three", "drawer two").replace("r1", "r0")),
        supplement="collected",
    )
    return compose(handoff)


def after(*later: dict[str, Any]) -> Conversation:
    return conversation(*WORK, ASKED, WROTE, *later)


def cases() -> list[Case]:
    found = [*_good(), *_bad()]
    assert len({case.name for case in found}) == len(found)
    return found


def _good() -> Iterator[Case]:
    for name, shape in SHAPES.items():
        yield Case(f"good: {name}", True, material(shape(SECTIONS)))
        yield Case(f"good in Chinese: {name}", True, material(shape(CHINESE)))
    for name, wrapped in REPLIES.items():
        yield Case(f"good, the reply {name}", True, material(reply=wrapped(REPLY)))
    for title in ("Completed", "Files touched", "Commands run", "Blockers", "Next exact action"):
        without = {name: text for name, text in SECTIONS.items() if name != title}
        yield Case(f"good: {title} stands in the checkpoint", True, material(headed()(without)))
    short = headed()({**SECTIONS, "Current state": "Two drawers are counted."})
    yield Case("good: two identifiers are appended", True, material(short.replace("port 8443", "its port")))
    yield Case(
        "good: looked again", True, material(conversation=after(called("terminal", command="git status | head")))
    )
    yield Case("good: read again", True, material(conversation=after(called("read_file", path="/srv/seeds/a.csv"))))
    yield Case("good: mended once more", True, material(conversation=after(WROTE)))
    yield Case("good: the first of its mission", True, material(previous=None))
    yield Case("good: longer than the one before", True, material(previous=headed()(CHINESE)))
    yield Case("good: done, with nothing left", True, material(reply=REPLY.replace("HANDOFF", "DONE", 1)))
    yield Case("good: waits for a person", True, material(reply=REPLY.replace("HANDOFF", "NEEDS_INPUT", 1)))
    yield Case("good: blocked", True, material(reply=REPLY.replace("HANDOFF", "BLOCKED", 1)))
    yield Case("good: written by a shell", True, material(conversation=conversation(
        *WORK, ASKED, called("terminal", command=f"cat > {DRAFT} <<EOF"))))  # fmt: skip
    yield Case("good: nobody worked before", True, material(conversation=conversation(ASKED, WROTE), asked_row=1))


def _bad() -> Iterator[Case]:
    body = headed()(SECTIONS)
    heads = {
        "another worker": "---\nworker: swarm2\n---\n",
        "another worker's title": "# Handoff — swarm2 — m-1\n\n",
        "another mission": "# Handoff — swarm1 — m-2\n\n",
        "another mission's front matter": "---\nmission: m-2\n---\n",
        "another renewal": "---\nworker: swarm1\nrenewal_id: r0\n---\n",
    }
    for name, head in heads.items():
        for shape in ("plain", "bold lines", "numbered", "CRLF"):
            yield Case(f"bad: {name}, {shape}", False, material(head + SHAPES[shape](SECTIONS)))
    empty = dict.fromkeys(HANDOFF_SECTIONS, "")
    echoes = {
        "empty": "",
        "blank": " \n\n\t\n",
        "headings alone": headed()(empty),
        "bold headings alone": headed("**{}**")(empty),
        "angle brackets": headed()(dict.fromkeys(HANDOFF_SECTIONS, "<fill in>")),
        "brackets": headed()(dict.fromkeys(HANDOFF_SECTIONS, "[what was done]")),
        "dots": headed()(dict.fromkeys(HANDOFF_SECTIONS, "...")),
        "to do": headed()(dict.fromkeys(HANDOFF_SECTIONS, "TODO")),
        "braces": headed()(dict.fromkeys(HANDOFF_SECTIONS, "{state}")),
    }
    for name, text in echoes.items():
        yield Case(f"bad: the template, {name}", False, material(text))
        yield Case(f"bad: the template with a title, {name}", False, material(TITLE + text))
    thin = {"Current state": "Work is going on.", "Next exact action": "count drawer three"}
    log = "```\n" + "12:00:01 INFO packet counted\n" * 400 + "```"
    thins = {
        "thin": headed()(thin),
        "a log and nothing else": headed()({**thin, "Completed": log}),
        "thin everywhere": headed()(dict.fromkeys(HANDOFF_SECTIONS, "ok")),
        "no objective": headed()({name: text for name, text in SECTIONS.items() if name != "Objective"}),
        "no state": headed()({name: text for name, text in SECTIONS.items() if name != "Current state"}),
        "one sentence": "Two drawers are counted, three are left.",
        "one word": "done",
    }
    for name, text in thins.items():
        yield Case(f"bad: {name}", False, material(text))
    much = dict.fromkeys(
        ("Current state", "Completed", "In progress"), "the packet was counted and written down " * 300
    )
    long = headed()({**SECTIONS, **much})
    yield Case("bad: collapsed", False, material(previous=long))
    yield Case("bad: the one before, word for word", False, material(previous=composed()))
    yield Case(
        "bad: the one before in another shape", False, material(SHAPES["bold lines"](SECTIONS), previous=composed())
    )
    nameless = re.sub(r"/srv/seeds/\w+\.\w+|8443|SEED-9|tests/test_rows\.py", "it", body)
    bare = re.sub(r"/srv/seeds/\w+\.\w+|tests/test_rows\.py", "it", REPLY)
    for name, reply in REPLIES.items():
        lost = material(nameless, reply=reply(bare))
        yield Case(f"bad: identifiers lost, the reply {name}", False, lost)
    others = re.sub(r"(seeds/\w)", r"\1x", body).replace("8443", "8444")
    yield Case("bad: other identifiers", False, material(others, reply=REPLY.replace("seeds/", "seed/")))
    works = {
        "a command": called("terminal", command="make deploy"),
        "a file": called("write_file", path="/srv/seeds/c.csv", content="x"),
        "a patch": called("patch", path="/srv/seeds/a.csv", patch="x"),
        "a look that writes": called("terminal", command="cat a > b"),
        "a delegate": called("delegate_task", goal="count drawer three"),
        "code": called("execute_code", code="count()"),
    }
    for name, call in works.items():
        yield Case(f"bad: went on with {name}", False, material(conversation=after(call)))
    before = BEGAN + timedelta(minutes=1)
    yield Case("bad: older than the request", False, material(written_at=before))
    yield Case("bad: older than the request, no call names it", False, material(
        written_at=before, conversation=conversation(*WORK, ASKED)))  # fmt: skip
    answers = {
        "on it": "I will write it at once.",
        "another renewal's": REPLY.replace("r1", "r0"),
        "half": "\n".join(REPLY.split("\n")[:4]),
        "vague": re.sub(r"NEXT_ACTION:.*", "NEXT_ACTION: continue", REPLY),
        "no action": re.sub(r"NEXT_ACTION:.*", "NEXT_ACTION: none", REPLY),
        "the request": re.sub(r": .*", ": <fill in>", REPLY),
        "an example": f"I would say:\n```\n{REPLY}\n```\n",
        "another worker's": f"WORKER: swarm2\n{REPLY}",
        "two states": REPLY.replace("HANDOFF", "HANDOFF | DONE", 1),
        "no state of ours": REPLY.replace("HANDOFF", "REVIEW", 1),
        "empty": "",
    }
    for name, answered in answers.items():
        for shape in ("plain", "bold lines"):
            yield Case(f"bad: the reply is {name}, {shape}", False, material(SHAPES[shape](SECTIONS), reply=answered))

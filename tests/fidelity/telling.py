"""Two stories, a seed ledger and a release review, with facts planted from the first row to the last."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lifecycle.tokens import counter
from tests.fidelity import wording_en, wording_zh
from tests.fidelity.facts import Fact, Kind
from tests.fidelity.session import BLOCK, Noise, Session
from tests.lifecycle.repositories import Tree

Story = Literal["ledger", "review"]
Language = Literal["en", "zh"]

LOG_LINES = 3_000
LOG_SHARE = 0.6
"""The log of a review is never more than this part of the session; in a short one it has fewer lines."""

COMPACTED_FROM = 100_000
"""A session of so many tokens was compacted once, in its middle."""

EARLY = 0.4
"""The file of an earlier handoff knows what was said in this part of the session."""

KILLED_IN = "python -m importer.migrate --all --commit"
SECRET = "ghp_" + "Zk4Tq9Wb2Lx7Vn3Rm8Yc5Hd1Js6Gf0PaQe2U"  # made up here


@dataclass
class Telling:
    """A session as its rows, what was planted in it, and where the worker's orders stand beside it."""

    story: Story
    language: Language
    tokens: int
    session: Session
    facts: list[Fact] = field(default_factory=list)
    early: list[Fact] = field(default_factory=list)
    next_action: str = ""
    next_needles: tuple[str, ...] = ()
    early_action: str = ""
    mission: str = ""
    mission_rules: tuple[str, ...] = ()
    soul: str = ""
    words: dict[str, str] = field(default_factory=dict)
    open_calls: bool = False

    def of(self, kind: Kind) -> list[Fact]:
        return [fact for fact in self.facts if fact.kind == kind]


class Teller:
    """Tells one story. *scale* is how much is planted: more in a longer session."""

    def __init__(self, story: Story, language: Language, tokens: int, cwd: Path, *, killed: bool) -> None:
        self.wording: Any = wording_en if language == "en" else wording_zh
        self.words, self.names = dict(self.wording.WORDS), list(self.wording.NAMES)
        if story == "review":
            self.words |= {key: text for key, text in self.wording.REVIEW.items() if isinstance(text, str)}
        self.scale = 1 if tokens < 50_000 else 2 if tokens < 200_000 else 3
        seed = tokens + (7 if language == "zh" else 0) + (1 if story == "review" else 0)
        self.chance = random.Random(seed)  # noqa: S311 - no secret
        self.session, self.noise = Session(seed), Noise(language, seed, cwd)
        self.cwd, self.killed = cwd, killed
        self.made = Telling(story, language, tokens, self.session, words=self.words, open_calls=killed)
        self.planted: list[Callable[[], None]] = []
        self._count, self._log_tokens = counter(), 0

    def tell(self) -> Telling:
        self._begin()
        for plant in (self._recall, self._decisions, self._artefacts, self._taken_back, self._later_rules):
            plant()
        if self.made.story == "review":
            self._requests()
        self.chance.shuffle(self.planted)
        self._spread()
        self._end()
        self._never_said()
        return self.made

    def fact(self, kind: Kind, told: str, *needles: str, back: tuple[str, ...] = ()) -> Fact:
        found = Fact(kind=kind, told=told, needles=needles, back=back)
        self.made.facts.append(found)
        return found

    def _begin(self) -> None:
        """Seven rules: of a review all in the first request; of a ledger in request, mission and profile."""
        review = self.made.story == "review"
        rules = list(self.wording.REVIEW_RULES if review else self.wording.SEED_RULES)
        said = rules if review else rules[:3]
        listed = "\n".join(f"{number}. {text}" for number, (text, _) in enumerate(said, 1))
        self.made.mission = self.words["mission"]
        if not review:
            self.made.mission_rules = tuple(text for text, _ in rules[3:5])
            self.made.soul = f"{self.words['rules_title']}\n" + "\n".join(f"- {text}" for text, _ in rules[5:])
        for text, needles in rules:
            self.fact("rule", text, *needles)
        self.session.ask(self.words["first"].format(rules=f"{self.words['rules_title']}\n{listed}\n"))
        self.session.say(self.words["answer"].format(told=self.words["summary"]))

    def _recall(self) -> None:
        """Half are identifiers, half plain values; half are said by people, half found by the worker."""
        kinds = ("quota", "port", "owner", "ticket", "quota", "url", "owner", "commit")
        for number, name in enumerate(self.chance.sample(self.names, 8 * self.scale)):
            how = kinds[number % len(kinds)]
            told = self.words[how].format(name=name, value=(value := self._value(how)))
            fact = self.fact("recall", told, name, value)
            self.planted.append(self._said(fact, by_worker=number % 2 == 1))

    def _decisions(self) -> None:
        for name in self.chance.sample(self.names, 2 + 2 * self.scale):
            value, other = self._word(), self._word()
            told = self.words["decision"].format(name=name, value=value, other=other)
            self.planted.append(self._said(self.fact("decision", told, name, value, other), by_worker=False))

    def _artefacts(self) -> None:
        for name in self.names[: 5 * self.scale]:
            path = str(self.cwd / "src" / f"{self._word()}.py")
            told = self.words["file"].format(path=path)
            self.fact("artefact", told, path)
            self.planted.append(self._wrote(path, name))
        for number in range(3 * self.scale):
            command, code = f"pytest -q tests/test_{self._word()}.py", number % 2
            told = self.words["command"].format(command=command, code=code)
            self.fact("artefact", told, command, f"exit {code}")
            self.planted.append(self._ran(command, code))

    def _taken_back(self) -> None:
        """A choice that was reversed, a ban that was lifted, and what a person undid."""
        for name in self.chance.sample(self.names, 1 + self.scale):
            value, other = self._word(), self._word()
            reversed_, reversal = (
                self.words["reversed"].format(name=name, value=other),
                self.words["reversal"].format(name=name, value=value, other=other),
            )
            self.fact("must_abstain", reversed_, name, other, back=(name, value, other))
            self.planted.append(self._both(reversed_, reversal))
        folder = str(self.cwd / self._word())
        lifted, lifting = self.words["lifted"].format(value=folder), self.words["lifting"].format(value=folder)
        ban = lifted.split(folder)[0].strip()
        self.fact("must_abstain", lifted, ban, folder, back=(folder, lifting.strip(". 。").rpartition(" ")[2]))
        self.planted.append(self._both(lifted, lifting))
        for name in self.chance.sample(self.names, 2):
            told = self.words["undone"].format(name=name, value=(value := self._value("quota")))
            self.fact("must_abstain", told, name, value)
            self.planted.append(lambda told=told: self.session.undo(told, self.words["answer"].format(told=told)))  # type: ignore[misc]
        command = f'curl -H "Authorization: Bearer {SECRET}" http://localhost:9000/items'
        self.fact("must_abstain", command, SECRET)
        self.planted.append(lambda: self.session.call("terminal", {"output": "[]", "exit_code": 0}, command=command))

    def _later_rules(self) -> None:
        for text, needles in self.wording.REVIEW_LATER if self.made.story == "review" else self.wording.SEED_LATER:
            told = self.words["later"].format(rule=text)
            self.planted.append(self._said(self.fact("rule", told, *needles), by_worker=False))

    def _requests(self) -> None:
        """A pool of mixed requests, and the log that somebody pastes."""
        for number in range(12):
            text = self.wording.REVIEW["requests"][number % 5]
            asked = text.format(number=400 + number, path=self.cwd / "hooks" / f"{self._word()}.py")
            self.planted.append(lambda asked=asked: self._asked(asked))  # type: ignore[misc]
        each = self._count(self.noise.log(200)) / 200
        lines = min(LOG_LINES, int(self.made.tokens * LOG_SHARE / each))
        halves = [self.noise.log(lines // 2) for _ in range(2)]
        self._log_tokens = int(lines * each)
        self.planted.append(lambda: self._asked(f"{self.words['log']}\n{halves[0]}"))
        command = "cat /var/log/release.log"
        self.planted.append(
            lambda: self.session.call("terminal", {"output": halves[1], "exit_code": 0}, command=command)
        )

    def _spread(self) -> None:
        """Planted events with noise between them, until the session is as long as it ought to be."""
        planted = self._log_tokens + 120 * len(self.planted)
        turns = max(2, (self.made.tokens - planted) // (BLOCK + 70))
        done = 0
        for number, plant in enumerate(self.planted):
            plant()
            if number == int(len(self.planted) * EARLY):
                self._write_early()
            if number == len(self.planted) // 2 and self.made.tokens >= COMPACTED_FROM:
                self.session.compact(self.words["summary"])
            while done < turns * (number + 1) // len(self.planted):
                self.noise.turn(self.session, done)
                done += 1

        short = self.made.tokens - self._count(self.session.words)
        for number in range(done, done + max(0, round(short / (BLOCK + 70)))):
            self.noise.turn(self.session, number)

    def _write_early(self) -> None:
        """What a handoff of that hour says: all that was said by then, as it was then."""
        said = self.session.words
        self.made.early = [fact for fact in self.made.facts if fact.told in said]
        self.made.early_action = self.words["next"].format(
            value=self._word(), name=self._word(), path=self.cwd / "hooks" / f"{self._word()}.py"
        )

    def _end(self) -> None:
        """To-dos, a failing test, last words; in a review an anchor, and behind it, if it is killed, an open call."""
        tree = Tree(self.cwd)
        branch = f"work/{self._word()}"
        tree.git("checkout", "--quiet", "-b", branch)
        head, dirty = tree.git("rev-parse", "HEAD").strip(), f"src/{self._word()}.py"
        tree.write(dirty, "rows = 2\n")
        self.fact("artefact", self.words["branch"].format(value=branch), branch)
        self.fact("artefact", self.words["head"].format(value=head[:12]), f"{head[:12]}…")
        self.fact("artefact", self.words["dirty"].format(value=dirty), dirty)

        todos = [self.words["todo"].format(name=name) for name in self.chance.sample(self.names, 3)]
        items = [
            {"id": str(number), "content": text, "status": status}
            for number, (text, status) in enumerate(zip(todos, ("completed", "in_progress", "pending"), strict=True))
        ]
        self.session.call("todo", {"todos": items}, todos=items)
        for text in todos[1:]:
            self.fact("continuation", self.words["todo_told"].format(value=text), text)
        name, fixture, row = self._word(), f"{self._word()}.json", str(self.chance.randrange(1_000, 9_000))
        self._asked(self.words["go"].format(name=name))
        failed = self.words["failed"].format(value=fixture)
        self.session.call("terminal", {"output": failed, "exit_code": 1}, command=f"pytest -q tests/test_{name}.py")
        self.fact("continuation", self.words["blocker"].format(name=name, value=fixture), fixture)
        hook = self.cwd / "hooks" / f"{fixture.removesuffix('.json')}.py"
        self.made.next_action = self.words["next"].format(value=fixture, name=name, path=hook)
        target = fixture if self.made.story == "ledger" else str(hook)
        self.made.next_needles = (target, f"pytest -q tests/test_{name}.py")
        if self.made.story == "review":
            self._anchor()
        else:
            step = self.words["step"].format(name=name, value=row)
            self.session.say(step)
            self.fact("continuation", step, name, row)
        if self.killed:
            self.session.call("terminal", None, command=KILLED_IN)
            self.fact("continuation", self.words["unknown"].format(value=KILLED_IN), KILLED_IN)

    def _anchor(self) -> None:
        """A note that the worker writes for itself; its path must cross, and its words are what it knew last."""
        done, path = str(self.chance.randrange(3, 11)), str(self.cwd / "notes" / "anchor.md")
        content = self.words["anchor"].format(done=done, action=self.made.next_action)
        self.session.call("write_file", {"resolved_path": path, "files_modified": [path]}, path=path, content=content)
        words = self.words["anchored"].format(done=done)
        self.session.say(words)
        self.fact("artefact", self.words["file"].format(path=path), path)
        self.fact("continuation", words, "12", done)

    def _never_said(self) -> None:
        """Facts of the same form with values that nobody ever said."""
        for name in self.chance.sample(self.names, 3):
            value = self._value("quota")
            self.fact("must_abstain", self.words["quota"].format(name=name, value=value), name, value)
        port = self._value("port")
        self.fact("must_abstain", self.words["port"].format(name=self.names[0], value=port), self.names[0], port)

    def _said(self, fact: Fact, *, by_worker: bool) -> Callable[[], None]:
        def plant() -> None:
            if by_worker:
                path = str(self.cwd / "vendor" / f"{self._word()}.txt")
                self.session.call("read_file", {"content": fact.told}, path=path)
                self.session.say(self.words["answer"].format(told=fact.told))
            else:
                self._asked(fact.told)

        return plant

    def _both(self, first: str, then: str) -> Callable[[], None]:
        def plant() -> None:
            self._asked(first)
            self._asked(then)

        return plant

    def _asked(self, text: str) -> None:
        self.session.ask(text)
        self.session.say(self.words["answer"].format(told=text.split("\n", 1)[0][:60]))

    def _wrote(self, path: str, name: str) -> Callable[[], None]:
        def plant() -> None:
            self.session.ask(self.words["go"].format(name=name))
            result = {"resolved_path": path, "files_modified": [path]}
            self.session.call("write_file", result, path=path, content=f"# {name}\nrows = []\n")
            self.session.say(self.words["wrote"].format(name=name))

        return plant

    def _ran(self, command: str, code: int) -> Callable[[], None]:
        return lambda: self.session.call("terminal", {"output": "1 passed", "exit_code": code}, command=command)

    def _word(self) -> str:
        """A name that stands nowhere else."""
        return "".join(self.chance.choice("bdfgklmnprstvz") + self.chance.choice("aeiou") for _ in range(4))

    def _value(self, how: str) -> str:
        match how:
            case "quota":
                return str(self.chance.randrange(1_001, 9_999))
            case "port":
                return str(self.chance.randrange(10_000, 60_000))
            case "ticket":
                return f"SEED-{self.chance.randrange(100, 9_999)}"
            case "url":
                return f"https://{self._word()}.example.org/{self._word()}"
            case "commit":
                return f"{self.chance.getrandbits(44) | 0xA00000000A1:011x}"
            case _:
                return f"{self._word()}@{self._word()}"

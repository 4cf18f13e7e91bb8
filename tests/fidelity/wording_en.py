"""What is said in the English sessions."""

from __future__ import annotations

NAMES = [
    "apricot",
    "barley",
    "clover",
    "damson",
    "elder",
    "fennel",
    "garlic",
    "hazel",
    "iris",
    "juniper",
    "kale",
    "lovage",
    "millet",
    "nettle",
    "oregano",
    "parsley",
    "quince",
    "radish",
    "sorrel",
    "thyme",
    "tansy",
    "violet",
    "woodruff",
    "yarrow",
]

WORDS = {
    "first": "Keep the seed ledger of this folder. {rules}\nBegin with the parser.",
    "mission": "Keep the seed ledger: one service a seed, each with its own importer.",
    "rules_title": "Standing rules:",
    "quota": "The {name} quota is {value} packets.",
    "port": "The {name} service listens on port {value}.",
    "ticket": "Ticket {value} tracks the {name} importer.",
    "url": "The {name} catalogue is at {value} now.",
    "commit": "The {name} importer was last good at commit {value}.",
    "owner": "The owner of {name} answers as {value}.",
    "answer": "Noted: {told}",
    "decision": "We decided for {name}: {value} instead of {other}, because imports must be repeatable.",
    "reversed": "For {name} we take {value} as the store.",
    "reversal": "I take that back: for {name} we use {value}, not {other}, as the store.",
    "undone": "The {name} quota is {value} packets.",
    "lifted": "Never edit the folder {value}.",
    "lifting": "The ban on {value} is lifted: you may edit it again.",
    "go": "Go on with the {name} importer.",
    "wrote": "The {name} importer is written.",
    "todo": "migrate the {name} importer",
    "blocker": "tests/test_{name}.py fails: the fixture {value} is missing",
    "failed": "AssertionError: the fixture {value} is missing",
    "step": "I am in the middle of the {name} migration, at row {value}.",
    "next": "restore the fixture {value}, then run pytest -q tests/test_{name}.py",
    "summary": "The importers were begun; the seeds are counted.",
    "thin": "Work is going on.",
    "file": "{path} was written",
    "command": "ran `{command}`, exit {code}",
    "branch": "on branch {value}",
    "head": "HEAD is {value}",
    "dirty": "{value} is changed and not committed",
    "unknown": "`{value}` was running: its effect is unknown",
    "done": "{count} importers are written and their tests were run",
    "later": "From now on {rule}",
    "todo_told": "open: {value}",
    "decided": "{told}",
    "padding": "The importer reads its page, checks each packet against the list and writes what it found in order.",
}

SEED_RULES = (
    ("never delete a line of ledger.txt", ("delete", "ledger.txt")),
    ("never commit to the branch release-7", ("commit", "release-7")),
    ("do not open more than 12 files at once", ("12 files",)),
    ("always run ruff before pytest", ("ruff", "pytest")),
    ("blue ink only in reports/2026.txt", ("blue ink", "reports/2026.txt")),
    ("ask before anything touches /srv/vault", ("ask", "/srv/vault")),
    ("keep every importer under 300 lines", ("300 lines",)),
)
SEED_LATER = (
    ("write all amounts in grams.", ("amounts", "grams")),
    ("the file quotas.csv is read-only.", ("quotas.csv", "read-only")),
)

REVIEW = {
    "first": "You do the release review of version 4.2. {rules}\nGo through the requests one by one.",
    "mission": "Release review of version 4.2: go through the requests, one report a request.",
    "requests": (
        "Review request PR-{number}: it touches {path}.",
        "What does the word idempotent mean? One sentence, please.",
        "Is the title of the release note in PR-{number} spelled right?",
        "Why is the nightly job slow? Look at the log.",
        "Compare PR-{number} with the one before it.",
    ),
    "anchor": "Release review 4.2: {done} of 12 requests are reviewed. Next: {action}",
    "anchored": "The anchor is written: {done} of 12 requests are reviewed.",
    "next": "check the webhook signature in {path}, then run pytest -q tests/test_{name}.py",
    "log": "Here is the log of the night.",
}
REVIEW_RULES = (
    ("Python 3.11 only, and tests with pytest", ("3.11", "pytest")),
    ("regression tests first, before any fix", ("regression tests first",)),
    ("no schema change in this release", ("no schema change",)),
    ("the API path /api/v2/items stays compatible", ("/api/v2/items", "compatible")),
    ("webhooks arrive at /hooks/release/v4 and nowhere else", ("/hooks/release/v4",)),
    ("the internal port is 7443", ("port", "7443")),
    ("mask personal numbers in every report: keep the last four digits", ("mask", "last four digits")),
)
REVIEW_LATER = (
    ("every report names its reviewer.", ("report", "names its reviewer")),
    ("do not quote customers by name.", ("quote customers",)),
)

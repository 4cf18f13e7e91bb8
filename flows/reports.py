"""A page for people on each renewal and each block: Markdown artifacts of their runs.

What workers wrote is data: it stands in code fences that it cannot close, without control characters and secrets,
and so is neither drawn as HTML nor followed as a link.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.settings import PREFECT_UI_URL

from lifecycle.choice import Choice
from lifecycle.foreign_text import bounded, cleaned
from lifecycle.host import Host
from lifecycle.redaction import redact
from lifecycle.renewal import Block, Blocked, Outcome, Renewal, Renewed, Stored
from tasks.artifact import own_client, show, shown_only

RENEWAL = "afresh-renewal-"
"""Before the worker's id: the key under which its renewals stand, one version each."""

BLOCK = "afresh-block-"
"""Before the worker's id: the key under which its blocks stand."""

LONGEST = 4_000
"""Characters of a worker's text that a page quotes from each end."""


def report(host: Host, outcome: Outcome) -> None:
    """Make the page of *outcome*, if it is one that people read about."""
    with shown_only():
        match outcome:
            case Renewed(renewal=renewal) | Stored(renewal=renewal):
                show("markdown", RENEWAL + renewal.worker_id.lower(), page_of_renewal(renewal))
            case Blocked(renewal=renewal, block=placed):
                page = page_of_block(host.settings.host_name, renewal, placed, answer_form(host))
                show("markdown", BLOCK + renewal.worker_id.lower(), page)


def fenced(text: str) -> str:
    """*text* as a code block of Markdown that it cannot leave."""
    shown = bounded(redact(cleaned(text)), LONGEST, LONGEST)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`+", shown))])
    return f"{fence}text\n{shown}\n{fence}"


def page_of_renewal(renewal: Renewal) -> str:
    """Before, handoff, after and times of a renewal that ended well, or of a handoff that was only stored."""
    before, saved, proof = renewal.reading, renewal.saved, renewal.acknowledgement
    ended = renewal.purpose == "renew"
    goes = f"generation {renewal.generation} → {renewal.generation + 1}" if ended else "handoff stored"
    lines = [f"# {renewal.worker_id}: {goes}", "", f"Renewal `{renewal.renewal_id}`, because:", fenced(renewal.why)]
    lines += ["", "| | session | tokens |", "|---|---|---|"]
    if before is not None:
        lines.append(f"| before | {_code(before.session_id)} | {_tokens(before.tokens)} ({before.source}) |")
    if proof is not None:
        lines.append(f"| after | {_code(proof.session_id)} | {_tokens(proof.baseline)} |")
    if saved is not None:
        lines += ["", "## Handoff", "", f"{saved.quality.capitalize()}; `{saved.archive}`, SHA-256 `{saved.sha256}`"]
        lines += ["", "Result:", fenced(saved.summary), "", "Next action:", fenced(saved.next_action)]
    lines += ["", "## Times", "", "| phase | UTC | seconds since it was opened |", "|---|---|---|"]
    lines += [
        f"| {phase} | {at:%H:%M:%S} | {(at - renewal.opened_at).total_seconds():.1f} |"
        for phase, at in renewal.phase_times.items()
    ]
    return "\n".join(lines)


def page_of_block(host_name: str, renewal: Renewal, placed: Block, form: str | None) -> str:
    """Reason, evidence, and each answer with its command and its link to the form."""
    worker = renewal.worker_id
    lines = [
        f"# {worker} is blocked: {placed.reason}",
        "",
        f"At {placed.phase}, {placed.at:%Y-%m-%d %H:%M:%S} UTC, on {host_name}; renewal `{renewal.renewal_id}`.",
        "**The worker is DOWN.**" if placed.worker_down else "The worker is up.",
        "",
        fenced(placed.detail),
        "",
        "## What to do",
        "",
        "| answer | what it does | command |",
        "|---|---|---|",
    ]
    for name in placed.choices:
        choice = Choice(name)
        file = " FILE" if choice is Choice.USE_TEXT else ""
        link = f"[{choice}]({prefilled(form, worker, choice)})" if form else choice.value
        lines.append(f"| {link} | {choice.meaning} | `afresh answer {worker} {choice}{file}` |")
    lines += ["", "Each answer above leads to its form."] if form else []
    lines += ["", "## Evidence", "", fenced(placed.evidence or "(none)")]
    return "\n".join(lines)


def answer_form(host: Host) -> str | None:
    """The address of the form that answers on this host; None where no `answer` is deployed for it."""
    base, name = PREFECT_UI_URL.value(), host.settings.host_name
    with own_client() as client:
        found = client.read_deployments(flow_filter=FlowFilter(name=FlowFilterName(any_=["answer"])))
    ours = [one.id for one in found if one.parameters.get("host", "") in ("", name)]
    return f"{base}/deployments/deployment/{ours[0]}/run" if ours and base else None


def prefilled(form: str, worker_id: str, choice: Choice) -> str:
    """The form with worker and answer filled in."""
    # The page decodes the value once more than a browser does.
    given = quote(json.dumps({"worker_id": worker_id, "answer": choice.value}), safe="")
    return f"{form}?parameters={given}"


def _code(text: str | None) -> str:
    return f"`{text}`" if text and re.fullmatch(r"[\w.:-]+", text) else "-"


def _tokens(tokens: int | None) -> str:
    return "unknown" if tokens is None else f"{tokens:,}"

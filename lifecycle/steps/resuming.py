"""Step 7: the new session is told where it was, with proof that it heard."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lifecycle import prompts
from lifecycle.delivery import deliver
from lifecycle.errors import NotReady
from lifecycle.host import Host
from lifecycle.packing import resumption, write_pack
from lifecycle.renewal import Phase, Renewal, ResumePrompt, RunningSession, SavedHandoff
from lifecycle.resumption import LAST_WORDS, STATES
from lifecycle.steps.standing import advance, remembering, standing
from lifecycle.wording import own_words
from lifecycle.worker import Worker


def send_resume_prompt(host: Host, worker: Worker, running: RunningSession, saved: SavedHandoff) -> ResumePrompt:
    """Type the resume prompt once; the row that proves it stands in a session that is not the old one.

    Raises:
        NotDelivered, Interfered, AgentGone
        NotReady: the prompt landed in the old conversation, so the start was not clean.
    """
    renewal = standing(host, saved.renewal_id)
    if renewal.phase.reached(Phase.RESUMED) and renewal.resume is not None:
        return renewal.resume
    # A prompt that was begun names the pack as it was then.
    begun = renewal.delivery is not None and renewal.delivery.kind == "resume"
    written = None if begun else write_pack(host, worker, renewal, saved)
    text = _text(host, worker, renewal, saved, written)
    row = deliver(
        host,
        worker,
        text,
        kind="resume",
        intent=renewal.delivery,
        remember=remembering(host, renewal.renewal_id),
    )
    if row.session_id == running.old_session_id:
        msg = f"{worker.worker_id}: the new agent resumed the old conversation {row.session_id}; its start is not clean"
        raise NotReady(msg, worker_id=worker.worker_id, reason="not_fresh")
    path = host.paths(worker).pack(renewal.renewal_id)
    pack = path if str(path) in text else None
    prompt = ResumePrompt(renewal_id=renewal.renewal_id, row=row, text=text, pack=pack)
    advance(host, worker, standing(host, renewal.renewal_id), Phase.RESUMED, resume=prompt, delivery=None)
    return prompt


def _text(host: Host, worker: Worker, renewal: Renewal, saved: SavedHandoff, written: tuple[Path, str] | None) -> str:
    if renewal.delivery is not None and renewal.delivery.kind == "resume":
        return renewal.delivery.text
    how = resumption(host, worker, saved)
    write = partial(
        prompts.resume,
        worker_id=worker.worker_id,
        renewal_id=renewal.renewal_id,
        mission_id=renewal.mission_id,
        assignment_id=renewal.assignment_id,
        archive=saved.archive,
        sha256=saved.sha256,
        summary=saved.summary,
        next_action=saved.next_action,
        after_reboot=renewal.substitute == "reboot",
        pack=written,
        instead=LAST_WORDS.get(how),
        state=STATES[how],
    )
    return write(own_words=own_words(host, worker, write(own_words=False)))

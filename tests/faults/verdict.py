"""The verdict over one case."""

from __future__ import annotations

from lifecycle.prompts import OUR_MARKERS
from lifecycle.value import Value
from tests.faults import observer
from tests.faults.play import Play, is_running

WRONG = ("silent", "lost", "doubled", "wrong_kill", "false_typing")


class Verdict(Value):
    """How a case ended: *end* is resumed, blocked, parked or silent; *wrongs* are broken promises, in words."""

    end: str
    reason: str
    wrongs: dict[str, str] = {}

    @property
    def ending(self) -> str:
        return f"{self.end}:{self.reason}" if self.end in ("blocked", "parked") else self.end


def judged(play: Play) -> Verdict:
    """Look at everything once more, at the end of the case."""
    end, reason = _end(play)
    wrongs = {
        "silent": reason if end == "silent" else "",
        "lost": _lost(play),
        "doubled": _doubled(play),
        "wrong_kill": _wrong_kill(play),
        "false_typing": _false_typing(play),
        "other": "; ".join(play.problems),
    }
    return Verdict(end=end, reason=reason, wrongs={name: words for name, words in wrongs.items() if words})


def _end(play: Play) -> tuple[str, str]:
    newest, living = play.renewal, play.watch.living(play.stage)
    if newest is not None and newest.block is not None and newest.is_open:
        # One that never shows its input line is no worker: a block may call it down (`not_ready`).
        says, is_down = newest.block.worker_down, not living
        if says != is_down and not (says and not play.stage.is_ready()):
            return "silent", f"blocked ({newest.block.reason}): it says worker_down={says}, and {len(living)} live"
        return "blocked", newest.block.reason
    if newest is not None and newest.is_open and play.is_parked():
        return ("parked", play.record.parked_why) if living else ("silent", "parked, and no agent lives")
    answered = observer.answered_sessions(play.stage.rows(), play.old_sessions)
    if len(living) == 1 and answered and observer.renewed(play.renewals):
        return "resumed", ""
    stands = f"{newest.phase}, end {newest.end}" if newest else "no renewal"
    return "silent", f"{stands}; {len(living)} agents live; {len(answered)} new sessions have answered"


def _lost(play: Play) -> str:
    if play.watch.living(play.stage):
        return ""
    newest = play.renewal
    told = newest is not None and newest.is_open and newest.block is not None and newest.block.worker_down
    return "" if told else "no agent lives and no block says that the worker is down"


def _doubled(play: Play) -> str:
    for stage in (play.stage, play.bystander, *play.more):
        pairs = play.watch.doubled(stage)
        if pairs:
            return f"{stage.worker_id}: alive at once: {sorted(pairs)}"
    ended = observer.renewed(play.renewals)
    most = play.expect.renewals
    return f"{len(ended)} renewals ended renewed, not {most}" if len(ended) > most else ""


def _wrong_kill(play: Play) -> str:
    expect = play.expect
    if not expect.bystander_dies and [seen.pid for seen in play.watch.living(play.bystander)] != [play.neighbour_pid]:
        return f"the neighbour's agent {play.neighbour_pid} is gone"
    if not expect.window_closes and not is_running(play.window_pid):
        return "the program of the second window is gone"
    unsaved = play.watch.gone_unsaved(play.stage)
    if unsaved and not expect.agent_dies:
        return f"agent {unsaved[0].pid} ended while no handoff was on disk"
    return ""


def _false_typing(play: Play) -> str:
    rows = play.stage.rows()
    twice = observer.our_texts_twice(rows)
    if twice:
        return f"delivered twice: {twice}"
    if not play.expect.bystander_dies:
        if play.bystander.rows() != play.neighbour_rows:
            return "the neighbour's transcript has grown"
        if play.watch.living(play.bystander) and not play.bystander.is_ready():
            return "the neighbour's input line is not empty"
    # After a reboot another pane has its id.
    shown = "" if play.expect.window_closes else play.screen_of(play.window_pane)
    was_typed = play.sink.exists() and play.sink.read_text()
    if was_typed or any(marker in shown for marker in OUR_MARKERS):
        return f"typed into the second window: {shown[:200]}"
    if not play.expect.approved_by_human and observer.approvals(rows):
        return "a dialog was answered"
    canary = play.root / "canary"
    if canary.exists():
        return f"a shell ran: {canary.read_text()[:200]}"
    return ""

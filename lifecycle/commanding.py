"""Typing one of the agent's own commands."""

from __future__ import annotations

from lifecycle.errors import NotDelivered
from lifecycle.failed_turn import refuse_in_trouble
from lifecycle.host import Host
from lifecycle.input_line import SHOWN_WITHIN, paste, shown, takes_text
from lifecycle.waiting import DeadlinePassed, wait_until
from lifecycle.worker import Worker


def type_command(host: Host, worker: Worker, command: str) -> None:
    """Type one of the agent's own commands, which leaves no row; the caller looks for its effect.

    Raises:
        NotDelivered, Interfered, AgentGone
    """
    agent = host.agent(worker)
    refuse_in_trouble(host, worker)
    look = takes_text(host, worker, command, while_busy=False)
    paste(host, worker, command, look)
    try:
        look = wait_until(lambda: shown(host, worker, command), SHOWN_WITHIN, host.clock)
    except DeadlinePassed as error:
        msg = f"{worker.worker_id}: {command} does not show in the input line; Enter was not pressed"
        raise NotDelivered(msg, worker_id=worker.worker_id, evidence=host.look(worker).evidence()) from error
    if look.screen is not None and agent.shows_text(look, command):
        host.terminal(worker).press_enter(look.screen.pane_id)

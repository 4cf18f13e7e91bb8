"""What the server does by itself: it ends dead runs, and tells people through Prefect's notification blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import StateType
from prefect.events import emit_event
from prefect.events.actions import ActionTypes, ChangeFlowRunState, SendNotification
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectNotFound

from deployments.address import public_url
from deployments.prefect_environment import HEARTBEAT
from flows.hosting import NOTICED_ON, SWEPT, sweeps_of
from lifecycle.outage import INTERVALS
from lifecycle.settings import Settings

PREFIX = "Afresh: "
TELLS = f"{PREFIX}tell "

TAG = "afresh"
"""On every deployment of ours."""

FLOWS = ["sweep", "renew", "request-handoff", "request-checkpoint", "answer", "recover"]

STATES = ["Renewed", "Spared", "Blocked", "Parked", "Refused", "Stored", "Requested", "Answered"]
"""The names of ended runs that are ours: events carry the name of a state, not its type."""

ENDED = {f"prefect.flow-run.{name}" for name in ["Completed", "Failed", "Cancelled", "Crashed", *STATES]}

MISSED_HEARTBEATS = 3
"""Runs whose machine stalls are not dead. Every process that runs our flows beats at the same pace."""

PENDING_AT_MOST = timedelta(minutes=5)

NOTICES = {
    "blocked": ({"blocked"}, "a worker waits for your answer"),
    "parked": ({"parked"}, "a renewal waits for its provider"),
    "fleet hold": ({"breaker"}, "a limit or a lost login holds every worker of an account"),
    "attention": (
        {"absent", "dialog", "not_an_agent", "wedged", "unreadable", "unexamined", "server_gone", "rebooted", "idle"},
        "a worker is not as it should be",
    ),
}
"""Kinds of what Afresh tells once per occurrence, by the automation that sends it on."""

AWAITED = "afresh.sweep.awaited"
"""From here on sweeps are waited for, also where none has ended yet."""


def apply(settings: Settings, missing: list[str]) -> list[str]:
    """Make the server's automations those of *settings*; applied again they stay the same. Returns their names.

    Blocks that are named and not there are added to *missing*; nothing is sent to them.
    """
    with get_client(sync_client=True) as client:
        blocks = [block for name in settings.notify.blocks if (block := _block(client, name, missing)) is not None]
        wanted = [*tidying(), *(notifying(settings, blocks) if blocks else ())]
        for automation in wanted:
            _put(client, automation)
        _remove_others(client, settings, {automation.name for automation in wanted})
    if blocks:
        emit_event(AWAITED, resource=sweeps_of(settings.host_name))
    return [automation.name for automation in wanted]


def tidying() -> list[AutomationCore]:
    """Runs that died with their process or machine are marked so, and their places come free."""
    ours = _runs()
    return [
        AutomationCore(
            name=f"{PREFIX}crash runs without a heartbeat",
            description="The process or the machine of the run is gone; its slot comes free.",
            trigger=EventTrigger(
                # A run can die before its first heartbeat has arrived.
                after={"prefect.flow-run.heartbeat", "prefect.flow-run.Running"},
                expect={"prefect.flow-run.heartbeat"} | ENDED,
                match=ours[0],
                match_related=ours[1],
                for_each={"prefect.resource.id"},
                posture=Posture.Proactive,
                threshold=1,
                within=MISSED_HEARTBEATS * HEARTBEAT,
            ),
            actions=[_crash("the run gave no sign of life any more: its process or machine is gone")],
        ),
        AutomationCore(
            name=f"{PREFIX}crash runs that never begin",
            description="The Prefect worker died between taking the run and starting it; its slot comes free.",
            trigger=EventTrigger(
                after={"prefect.flow-run.Pending"},
                expect={"prefect.flow-run.Running", "prefect.flow-run.Cancelling"} | ENDED,
                match=ours[0],
                match_related=ours[1],
                for_each={"prefect.resource.id"},
                posture=Posture.Proactive,
                threshold=1,
                within=PENDING_AT_MOST,
            ),
            actions=[_crash("the run was taken and never begun: the Prefect worker died in between")],
        ),
    ]


def notifying(settings: Settings, blocks: Sequence[UUID]) -> list[AutomationCore]:
    """What is told through *blocks*. Once per occurrence: for that Afresh's ledger stands, or the state of a run."""
    host = settings.host_name
    told = [
        AutomationCore(
            name=_telling(name, host),
            description=f"Tells that {what}.",
            trigger=EventTrigger(
                expect={f"afresh.notice.{kind}" for kind in kinds},
                match=ResourceSpecification({"prefect.resource.id": "afresh.notices.*", NOTICED_ON: host}),
                posture=Posture.Reactive,
                threshold=1,
                within=timedelta(0),
            ),
            actions=_send(
                blocks,
                "{{ event.payload.subject }}",
                "{{ event.payload.body }}\nhost: {{ event.payload.host }}\n{{ event.payload.link }}",
            ),
        )
        for name, (kinds, what) in NOTICES.items()
    ]
    match, _ = _runs()
    crashed = AutomationCore(
        name=_telling("crashed", host),
        description=f"Tells that a run of {host} crashed.",
        trigger=EventTrigger(
            expect={"prefect.flow-run.Crashed"},
            match=match,
            # The deployments of `afresh serve`, which is alone on its server, and of this host's work pool.
            match_related=ResourceSpecification(
                {
                    "prefect.resource.role": "deployment",
                    "prefect.resource.name": [*FLOWS, *(f"{flow}-{host}" for flow in FLOWS)],
                }
            ),
            posture=Posture.Reactive,
            threshold=1,
            within=timedelta(0),
        ),
        actions=_send(
            blocks,
            "crashed: {{ flow.name }} {{ flow_run.parameters.worker_id }}",
            "{{ flow_run.state.message }}\n"
            "The next sweep goes on with what was cut off; `afresh recover` does it now.\n"
            "{{ flow_run|ui_url }}",
        ),
    )
    return [*told, crashed, _unswept(settings, blocks)]


def _unswept(settings: Settings, blocks: Sequence[UUID]) -> AutomationCore:
    """Once for each sweep that was the last; it is armed by the next one."""
    host = settings.host_name
    return AutomationCore(
        name=_telling("no sweep", host),
        description=f"Tells that no sweep of {host} has ended for {INTERVALS} intervals.",
        trigger=EventTrigger(
            after={SWEPT, AWAITED},
            expect={SWEPT},
            match=ResourceSpecification({"prefect.resource.id": sweeps_of(host)["prefect.resource.id"]}),
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=INTERVALS * settings.sweep_interval,
        ),
        actions=_send(
            blocks,
            f"no sweep on {host}",
            f"No sweep of {host} has ended for {INTERVALS} intervals; nobody looks after its workers.\n"
            f"Is the Prefect worker of pool {host} (or `afresh serve`) running? `afresh sweep` does one by hand.\n"
            f"{public_url(settings, settings.server.port)}/runs",
        ),
    )


def _runs() -> tuple[ResourceSpecification, ResourceSpecification]:
    """Runs of our flows alone: others on the same server may beat more slowly."""
    return (
        ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
        ResourceSpecification({"prefect.resource.role": "flow", "prefect.resource.name": FLOWS}),
    )


def _crash(message: str) -> ActionTypes:
    return ChangeFlowRunState(state=StateType.CRASHED, message=message)


def _send(blocks: Iterable[UUID], subject: str, body: str) -> list[ActionTypes]:
    return [SendNotification(block_document_id=block, subject=subject, body=body) for block in blocks]


def _block(client: SyncPrefectClient, name: str, missing: list[str]) -> UUID | None:
    kind, _, called = name.partition("/")
    try:
        return client.read_block_document_by_name(called, kind, include_secrets=False).id
    except ObjectNotFound:
        missing.append(name)
        return None


def _put(client: SyncPrefectClient, automation: AutomationCore) -> None:
    """Create or change it. Of several with its name, which two hosts can make at once, one is left."""
    found = _named(client, automation.name)
    if not found:
        client.create_automation(automation)
        found = _named(client, automation.name)
    elif _content(found[0]) != _content(automation):
        # Who switched it off meant it.
        client.update_automation(found[0].id, automation.model_copy(update={"enabled": found[0].enabled}))
    for extra in found[1:]:
        client.delete_automation(extra.id)


def _named(client: SyncPrefectClient, name: str) -> list[Automation]:
    return sorted(client.read_automations_by_name(name), key=lambda automation: str(automation.id))


def _content(automation: AutomationCore) -> dict[str, Any]:
    """What counts of it. A change resets what its trigger has counted so far, so none is made without need."""
    trigger = automation.trigger.model_dump(mode="python", exclude={"id"})
    actions = [action.model_dump(mode="json") for action in automation.actions]
    return {"description": automation.description, "trigger": trigger, "actions": actions}


def _telling(what: str, host_name: str) -> str:
    """Name an automation that tells. Each host has its own, for each names its own blocks."""
    return f"{TELLS}{what} on {host_name}"


def _remove_others(client: SyncPrefectClient, settings: Settings, wanted: set[str]) -> None:
    """Ours that are wanted no more: those that tell of other hosts stay."""
    for automation in client.read_automations():
        name = automation.name
        is_anothers = name.startswith(TELLS) and not name.endswith(f" on {settings.host_name}")
        if name.startswith(PREFIX) and name not in wanted and not is_anothers:
            client.delete_automation(automation.id)

"""All cases of the matrix."""

from __future__ import annotations

from tests.faults import (
    cases_agent,
    cases_disks,
    cases_documents,
    cases_fleet,
    cases_hermes,
    cases_lives,
    cases_machine,
    cases_memory,
    cases_panes,
    cases_permissions,
    cases_places,
    cases_recovery,
    cases_signals,
    cases_tmux,
)
from tests.faults.case import Case

CASES: list[Case] = [
    *cases_signals.CASES,
    *cases_agent.CASES,
    *cases_lives.CASES,
    *cases_tmux.CASES,
    *cases_panes.CASES,
    *cases_machine.CASES,
    *cases_permissions.CASES,
    *cases_disks.CASES,
    *cases_places.CASES,
    *cases_recovery.CASES,
    *cases_documents.CASES,
    *cases_memory.CASES,
    *cases_fleet.CASES,
    *cases_hermes.CASES,
]

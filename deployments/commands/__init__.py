"""The commands, one noun a module."""

from __future__ import annotations

import typer

from deployments.commands import (
    archives,
    blocks,
    checkpoints,
    control,
    demonstration,
    deploying,
    doctor,
    events,
    files,
    handoffs,
    histories,
    kept_results,
    recovering,
    renewals,
    serving,
    status,
    units,
    watching,
)


def register(app: typer.Typer) -> None:
    """Add every command to *app*, in the order of the help page."""
    if app.registered_commands:
        return
    for module in (
        status,
        renewals,
        recovering,
        handoffs,
        histories,
        archives,
        files,
        kept_results,
        checkpoints,
        blocks,
        control,
        events,
        serving,
        deploying,
        units,
        watching,
        doctor,
        demonstration,
    ):
        module.add_to(app)

"""The kinds of agent that Afresh knows, by the name that a configuration uses."""

from __future__ import annotations

from lifecycle.agents import Agent
from lifecycle.agents.hermes.agent import HermesAgent
from lifecycle.errors import ConfigurationError

KINDS: dict[str, Agent] = {"hermes": HermesAgent()}


def agent_of_kind(name: str) -> Agent:
    """Find an adapter.

    Raises:
        ConfigurationError: there is none of this name.
    """
    if name not in KINDS:
        msg = f"unknown kind of agent {name!r}; known: {', '.join(KINDS)}"
        raise ConfigurationError(msg)
    return KINDS[name]

"""Sharing a budget of tokens among sections by need and weight. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def shared(needs: Mapping[str, int], weights: Mapping[str, float], total: int) -> dict[str, int]:
    """What each gets: never more than it needs, together never more than *total*; what one leaves over goes on."""
    granted = dict.fromkeys(needs, 0)
    open_ones = {name for name, need in needs.items() if need > 0}
    left = max(0, total)
    while open_ones and left > 0:
        weight = sum(weights.get(name, 1.0) for name in open_ones)
        fair = {name: left * weights.get(name, 1.0) / weight for name in open_ones}
        content = {name for name in open_ones if needs[name] <= fair[name]}
        if not content:
            granted |= {name: int(fair[name]) for name in open_ones}
            break
        for name in content:
            granted[name] = needs[name]
        left -= sum(needs[name] for name in content)
        open_ones -= content
    return granted

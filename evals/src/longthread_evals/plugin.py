"""What this package adds to Longthread."""

from __future__ import annotations

from longthread.plugins import OfferedPlaces, hookimpl


@hookimpl
def offer_commands() -> OfferedPlaces:
    """Return the group of commands `longthread eval`."""
    return {"eval": "longthread_evals.commands:evals"}

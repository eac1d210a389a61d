"""What the package offers: a model and a source, both called `demo`."""

from __future__ import annotations

from longthread.plugins import OfferedPlaces, hookimpl


@hookimpl
def offer_models() -> OfferedPlaces:
    """Return the demo model."""
    return {"demo": "longthread_demo.chat:demo_model"}


@hookimpl
def offer_sources() -> OfferedPlaces:
    """Return the demo database."""
    return {"demo": "longthread_demo.spaceflight:demo_source"}

"""Identifiers: UUIDv7 text, so that ids sort by the time they were made."""

from __future__ import annotations

import uuid

import uuid_utils


def new_id() -> str:
    """A new id, such as `0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f`."""
    return str(uuid_utils.uuid7())


def new_id_after(other: str | None) -> str:
    """A new id that sorts after `other`, which may come from a machine whose clock is ahead."""
    fresh = new_id()
    if other is None or fresh > other:
        return fresh
    try:
        return str(uuid.UUID(int=uuid.UUID(other).int + 1))
    except ValueError:  # not one of ours
        return fresh

"""Identifiers: UUIDv7 text, so that ids sort by the time they were made."""

from __future__ import annotations

import uuid_utils


def new_id() -> str:
    """A fresh id, e.g. `0192f0c1-5a0e-7cc3-98c4-dc0c0c07398f`."""
    return str(uuid_utils.uuid7())

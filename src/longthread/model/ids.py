"""Identifiers: UUIDv7 text, which sorts by the time it was made; short ids for many small rows."""

from __future__ import annotations

import base64
import os
import time
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


def short_id() -> str:
    """A new id of 16 letters and digits, such as `06c8f1g2k80p3t9v`, which sorts by its time in milliseconds. Two
    of one millisecond are equal once in four billion times."""
    return _letters(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(4))


def local_id() -> str:
    """A new id of 10 letters and digits, for what has an id within a thread alone."""
    return _letters(os.urandom(10))[:10]


def _letters(data: bytes) -> str:
    return base64.b32hexencode(data).decode().lower()

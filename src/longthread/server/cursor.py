"""Cursors: opaque texts that say where a listing continues."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from longthread.errors import CursorUnknown
from longthread.model.thread import Archived, Thread
from longthread.store import listing
from longthread.store.driver import Transaction

_LARGEST = 2**63 - 1
"""The largest integer of a store."""


def encode_cursor(*values: str | int) -> str:
    """A cursor that holds `values`."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[Any]) -> list[Any]:
    """The values of a cursor, which are of `kinds`. Raises CursorUnknown where no such listing gave it."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or [type(value) for value in values] != list(kinds) or not all(map(_sane, values)):
        raise CursorUnknown
    return values


async def thread_page(
    tx: Transaction,
    user: str,
    limit: int,
    cursor: str | None,
    damaged: dict[str, str],
    *,
    below: bool = False,
    archived: Archived = "exclude",
    pinned: bool = False,
    tag: str = "",
) -> tuple[list[Thread], str | None]:
    """Return a user's conversations, the latest active first, and the cursor of the next page. Raises CursorUnknown.

    `damaged` gets the ids of conversations that cannot be read and are skipped, each with the reason.
    """
    at, thread_id = decode_cursor(cursor, str, str) if cursor else listing.LATEST
    among: dict[str, Any] = {"below": below, "archived": archived, "pinned": pinned, "tag": tag}
    threads = await listing.list_threads(
        tx, user_id=user, limit=limit + 1, before=(at, thread_id), **among, unreadable=damaged
    )
    if len(threads) <= limit:
        return threads, None
    last = threads[limit - 1]
    return threads[:limit], encode_cursor(last.updated_at.isoformat(timespec="microseconds"), last.id)


def _sane(value: Any) -> bool:
    """Whether a store accepts a value: cursors come from outside."""
    if isinstance(value, int):
        return 0 <= value <= _LARGEST
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)

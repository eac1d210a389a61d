"""Bundles: before schema version 33, many ended runs were one compressed value. An upgrade unpacks them."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import Any

from longthread.store.decoding import UNREADABLE, damaged
from longthread.store.driver import Row
from longthread.store.run_blob import tightened

TAKE = (
    "DELETE FROM run_bundles WHERE (thread_id, first_id) IN (SELECT thread_id, first_id FROM run_bundles LIMIT 16) "
    "RETURNING thread_id, first_id, last_id, body"
)
"""Deletes and returns some bundles, in SQL for both backends."""
_FORM = b"\x01"
"""The first byte. After it, compressed: a line with the columns, then a line for each run."""
_AS_IT_WAS = b"="
"""Starts a run's line that holds its compressed body unchanged, in base64."""
_FIX = (
    "Restore a backup. Or give these runs up: DELETE FROM run_bundles WHERE thread_id = '{thread_id}' AND first_id = "
    "'{first_id}'"
)


def unpacked(bundle: Row) -> Iterator[dict[str, Any]]:
    """Yield a bundle's rows of `runs`. Raises `RowDamaged`."""
    try:
        body = bytes(bundle["body"])
        if body[:1] != _FORM:
            raise ValueError("its form is not known")
        head, *lines = zlib.decompress(body[1:]).split(b"\n")
        columns = {name: _each(value, len(lines)) for name, value in json.loads(head).items()}
        for line, values in zip(lines, zip(*columns.values(), strict=True), strict=True):
            own = dict(zip(columns, values, strict=True))
            yield {**own, "thread_id": bundle["thread_id"], "body": _body(line)}
    except UNREADABLE as error:
        what = "runs {first_id} to {last_id} of thread {thread_id}, which were packed together,".format(**bundle)
        raise damaged(f"{what} ({_FIX.format(**bundle)})", error) from error


def insertion(row: Row, mark: str) -> str:
    """Return the INSERT statement of a `runs` row; `mark` is a placeholder with `{}` for the name."""
    values = ", ".join(mark.format(name) for name in row)
    return f"INSERT INTO runs ({', '.join(row)}) VALUES ({values})"


def _body(line: bytes) -> bytes:
    return base64.b64decode(line[1:]) if line.startswith(_AS_IT_WAS) else tightened(line)


def _each(column: Any, count: int) -> list[Any]:
    return column if isinstance(column, list) else [column] * count

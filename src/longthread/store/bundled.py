"""Many ended runs of a thread as one compressed value: their rows, whole. What they share is in it once."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from longthread.store.decoding import UNREADABLE, damaged
from longthread.store.driver import Row
from longthread.store.encoding import dump
from longthread.store.run_blob import loosened, readable, tightened

_FORM = b"\x01"
"""The first byte. Behind it, compressed: a line with the columns, then a line for each run with what it did."""
_LEVEL = 9
_AS_IT_WAS = b"="
"""Begins the line of a run whose body would not be compressed to the same again: it stands there as it was."""
_OPEN = 2
"""Bundles that are kept open: who reads a page of a conversation asks for its runs one by one."""
_APART = ("thread_id", "body")
_ADDED: Mapping[str, Any] = {}
"""Columns that runs have got since there are bundles, with what they have in a bundle from before."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Runs of a thread, in the order of their ids, and what they are found by: see `run_bundles`."""

    first_id: str
    last_id: str
    runs: int
    first_step: int
    stop_step: int
    prompts: str | None
    ended_at: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Bundled:
    """A run in a bundle: its columns, but for its thread and its body, and that as it stands there."""

    columns: Row
    line: bytes

    @property
    def id(self) -> str:
        return str(self.columns["id"])

    def read(self, thread_id: str) -> dict[str, Any]:
        """Its row, for who only reads it."""
        return {**self.columns, "thread_id": thread_id, "body": self._body(readable)}

    def row(self, thread_id: str) -> dict[str, Any]:
        """Its row as it was before it was bundled."""
        return {**self.columns, "thread_id": thread_id, "body": self._body(tightened)}

    def _body(self, made: Callable[[bytes], bytes]) -> bytes:
        if self.line.startswith(_AS_IT_WAS):
            try:
                return base64.b64decode(self.line[len(_AS_IT_WAS) :])
            except ValueError as error:
                raise damaged(f"run {self.id}, which was put together with others,", error) from error
        return made(self.line)


def bundled(row: Row) -> Bundled:
    """A row of `runs`, to be bundled."""
    body = bytes(row["body"])
    line = loosened(body) or _AS_IT_WAS + base64.b64encode(body)
    return Bundled({name: value for name, value in row.items() if name not in _APART}, line)


def bundle_of(runs: Sequence[Bundled]) -> Bundle:
    """Runs of one thread as a bundle. They come in the order of their ids."""
    rows = [run.columns for run in runs]
    columns = {name: _column([row[name] for row in rows]) for name in rows[0]}
    lines = [dump(columns).encode(), *(run.line for run in runs)]
    prompts = dict.fromkeys(name for row in rows for name in (row["prompts"] or "").split())
    return Bundle(
        first_id=rows[0]["id"],
        last_id=rows[-1]["id"],
        runs=len(rows),
        first_step=min(row["first_step"] for row in rows),
        stop_step=max(row["stop_step"] for row in rows),
        prompts=" ".join(prompts) or None,
        ended_at=max(row["ended_at"] for row in rows),
        body=_FORM + zlib.compress(b"\n".join(lines), _LEVEL),
    )


def _column(values: Sequence[Any]) -> Any:
    """What the runs have in a column, or the one value that they all have."""
    return values[0] if all(value == values[0] for value in values) else values


def runs_in(bundle: Row) -> Sequence[Bundled]:
    """The runs in a bundle, in the order of their ids.

    Raises:
        RowDamaged: nothing can be made of it.
    """
    return _opened(bytes(bundle["body"]), bundle["thread_id"])


@lru_cache(maxsize=_OPEN)
def _opened(body: bytes, thread_id: str) -> tuple[Bundled, ...]:
    try:
        if body[: len(_FORM)] != _FORM:
            raise ValueError("its form is not known")
        head, *lines = zlib.decompress(body[len(_FORM) :]).split(b"\n")
        columns = {name: _each(value, len(lines)) for name, value in {**_ADDED, **json.loads(head)}.items()}
        return tuple(
            Bundled(dict(zip(columns, values, strict=True)), line)
            for line, values in zip(lines, zip(*columns.values(), strict=True), strict=True)
        )
    except UNREADABLE as error:
        raise damaged(f"runs of thread {thread_id} that were put together", error) from error


def _each(column: Any, count: int) -> Sequence[Any]:
    return column if isinstance(column, list) else [column] * count

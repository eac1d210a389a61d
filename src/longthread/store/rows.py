"""Values to rows of the store and back: JSON, times, threads and entries."""

from __future__ import annotations

import json
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from itertools import repeat
from operator import itemgetter
from types import TracebackType
from typing import Any, TypeVar

from longthread.errors import RowDamaged
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.model.thread import PINNED, RESERVED, TITLED, Thread
from longthread.store.driver import Row


def dump(value: Any) -> str:
    """Return a value as JSON. Keys keep their order, mappings become objects, other types their text."""
    return _ENCODER.encode(value)


def like_pattern(text: str) -> str:
    """Return the pattern of LIKE for what contains a text, with the escape character `\\`."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _encode_other(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_encode_other)

T = TypeVar("T")

UNREADABLE = (
    zlib.error,
    ValueError,  # JSON, UTF-8, msgpack and times too
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    NotImplementedError,  # a kind that the serializer does not know
)
"""Errors that damaged bytes cause when decoded."""
_REASON_CHARS = 200


def make_damage_error(what: str, error: Exception | str, kind: type[RowDamaged] = RowDamaged) -> RowDamaged:
    """Return the error for stored bytes that cannot be decoded."""
    said = error if isinstance(error, str) else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return kind(reason=f"{what} cannot be read: {said[:_REASON_CHARS]}.")


class Decoding:
    """Decodes part of a thread in a `with` block, and raises `RowDamaged` if that fails.

    Args:
        error: `ValueDamaged` where a serializer builds the application's objects: its classes may have changed.
    """

    # Not a generator, which costs three times as much: a turn enters several.
    __slots__ = ("_error", "_id", "_kind", "_thread_id")

    def __init__(self, thread_id: str, kind: str, id_: object, error: type[RowDamaged] = RowDamaged) -> None:
        self._thread_id, self._kind, self._id, self._error = thread_id, kind, id_, error

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, UNREADABLE):
            raise make_damage_error(
                f"{self._kind} {self._id} of thread {self._thread_id}", error, self._error
            ) from error


def decoder(make: Callable[[Row], T]) -> Callable[[Row], T]:
    """Wrap `make` so that a row it cannot decode raises `RowDamaged`."""

    @wraps(make)
    def decode(row: Row) -> T:
        try:
            return make(row)
        except UNREADABLE as error:
            place = ", ".join(f"{name} {row[name]}" for name in ("thread_id", "id", "seq", "idx") if name in row)
            raise make_damage_error(f"a row ({place})", error) from error

    return decode


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SIBLINGS = uuid.UUID("6c6f6e67-7468-5265-8164-656e74727921")
"""Namespace of siblings' ids."""


def entry_row(thread_id: str, draft: Draft, *, parent_seq: int, seq: int, at: str, replaces: int = 0) -> dict[str, Any]:
    return {
        "thread_id": thread_id,
        "seq": seq,
        "parent_seq": parent_seq,
        "id": draft.id,
        "role": draft.role,
        "text": draft.text,
        "tool_calls": dump([call.to_json() for call in draft.tool_calls]) if draft.tool_calls else None,
        "tool_call_id": draft.tool_call_id,
        "name": draft.name,
        "payload": draft.payload,
        "tokens": draft.tokens,
        "latency_ms": draft.latency_ms,
        "run_id": draft.run_id,
        "metadata": dump(draft.metadata) if draft.metadata else None,
        "created_at": at,
        "replaces": replaces or None,
    }


@decoder
def thread_of(row: Row) -> Thread:
    noted = dict(json.loads(row["metadata"]))
    return Thread(
        id=row["id"],
        user_id=row["user_id"],
        title=row["title"],
        source=row["source"],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
        tip=int(row["tip"]),
        entry_count=int(row["entry_count"]),
        first_seq=int(row["first_seq"]),
        tool_categories=tuple(json.loads(row["tool_categories"])),
        tags=tuple(json.loads(row["tags"])),
        agent_id=row["agent_id"],
        parent_id=row.get("parent_thread_id"),
        metadata={key: value for key, value in noted.items() if not key.startswith(RESERVED)},
        expires_at=moment_of(row["expires_at"]) if row["expires_at"] else None,
        archived_at=moment_of(row["archived_at"]) if row["archived_at"] else None,
        pinned_at=_pinned_at(noted),
        titled=str(noted[TITLED]) if noted.get(TITLED) else None,
    )


def _pinned_at(noted: Mapping[str, Any]) -> datetime | None:
    """Return since when a thread is pinned. Another program may have written something else there: it is not, then."""
    try:
        return moment_of(noted[PINNED])
    except (KeyError, TypeError, ValueError):
        return None


def moment_of(text: str) -> datetime:
    """Parse a time; without a zone, as other programs write it, it is UTC."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def micros_of(text: str) -> int:
    """Parse a time as microseconds since 1970."""
    return (moment_of(text) - _EPOCH) // _MICROSECOND


def time_at(micros: int) -> str:
    """Return microseconds since 1970 as a time is stored."""
    return (_EPOCH + micros * _MICROSECOND).isoformat(timespec="microseconds")


def threads_of(rows: Iterable[Row], unreadable: dict[str, str] | None = None) -> list[Thread]:
    """Decode threads. `unreadable` receives damaged ones with the reason; without it, raises `RowDamaged`."""
    found = []
    for row in rows:
        try:
            found.append(thread_of(row))
        except RowDamaged as error:
            if unreadable is None:
                raise
            unreadable[row["id"]] = error.reason
    return found


def of_thread(thread_id: str) -> Decoding:
    """Return the decoding block for a thread's own row."""
    return Decoding(thread_id, "the row", "in `threads`")


@decoder
def entry_of(row: Row) -> Entry:
    calls, metadata = row["tool_calls"], row["metadata"]
    return _make_entry(row, json.loads(calls) if calls else (), json.loads(metadata) if metadata else {})


_TAKEN = (
    *("id", "role", "text", "tool_call_id", "name", "payload", "tokens", "latency_ms", "run_id"),
    *("thread_id", "seq"),
)
"""Columns that are entry fields unchanged."""


def entries_of(rows: Sequence[Row]) -> list[Entry]:
    """Decode entries by column and their JSON in one parse, which takes a third less time for a window."""
    try:
        calls = iter(_parse_values([row["tool_calls"] for row in rows if row["tool_calls"]]))
        metadata = iter(_parse_values([row["metadata"] for row in rows if row["metadata"]]))
        columns: dict[str, Iterable[Any]] = {name: map(itemgetter(name), rows) for name in _TAKEN}
        columns["tool_calls"] = [
            tuple(map(ToolCall.from_json, next(calls))) if row["tool_calls"] else () for row in rows
        ]
        columns["metadata"] = [next(metadata) if row["metadata"] else {} for row in rows]
        columns["parent_seq"] = map(parent_of, rows)
        columns["created_at"] = map(datetime.fromisoformat, map(itemgetter("created_at"), rows))
        columns["replaces"] = [row["replaces"] or 0 for row in rows]
        made: list[Entry] = list(map(object.__new__, repeat(Entry, len(rows))))
        for name, values in columns.items():
            deque(map(getattr(Entry, name).__set__, made, values), maxlen=0)
        return made
    except (*UNREADABLE, StopIteration):
        return [entry_of(row) for row in rows]  # says which row it is that is damaged


def _parse_values(texts: Sequence[str]) -> list[Any]:
    values: list[Any] = json.loads(f"[{','.join(texts)}]") if texts else []
    if len(values) != len(texts):
        raise ValueError
    return values


def _make_entry(row: Row, calls: Sequence[Any], metadata: Mapping[str, Any]) -> Entry:
    return Entry(  # fields in their order cost less than by their names
        row["id"],
        row["role"],
        row["text"],
        tuple(map(ToolCall.from_json, calls)) if calls else (),
        row["tool_call_id"],
        row["name"],
        row["payload"],
        row["tokens"],
        row["latency_ms"],
        row["run_id"],
        metadata,
        row["thread_id"],
        row["seq"],
        parent_of(row),
        datetime.fromisoformat(row["created_at"]),
        row["replaces"] or 0,
    )


def parent_of(row: Row) -> int:
    """Return the parent's seq; 0 if retention deleted the parent: its seq remains in the row."""
    parent: int = row["parent_seq"]
    return parent if parent >= row.get("first_seq", 1) else 0


def in_their_places(rows: Sequence[Row], versions: Mapping[int, Row], before: int) -> list[Row]:
    """Show the newest versions in place of the rows, last first; `before` is what precedes the last of them."""
    parents = [*(row["seq"] for row in rows[1:]), before]
    return [
        {**versions.get(row["seq"], row), "seq": row["seq"], "parent_seq": parent, "replaces": None}
        for row, parent in zip(rows, parents, strict=True)
    ]


def sibling_id(draft: Draft, parent_seq: int, *more: int) -> str:
    """Return a deterministic id for `draft` after `parent_seq`."""
    calls = json.loads(dump([call.to_json() for call in draft.tool_calls]))
    payload = None if draft.full_payload is None else draft.full_payload.hex()
    content = [draft.id, parent_seq, draft.role, draft.text, draft.tool_call_id, draft.name, payload, calls, *more]
    return str(uuid.uuid5(_SIBLINGS, json.dumps(content, ensure_ascii=False, sort_keys=True)))

"""The store's tables, read from its database, so that work on all of them includes later additions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

from longthread.store.driver import Row, Transaction

ColumnType = Literal["text", "integer", "real", "bytes"]
ColumnForm = Literal["plain", "time", "json", "vector"]
THREADS = "threads"
ENTRIES = "entries"
RUNS = "runs"
CHECKPOINTS = "checkpoints"
IMPORTED = "imported"
"""The model of vectors that another program stored."""
_THREAD_COLUMN = "thread_id"
_THREAD_NUMBER = "thread"
"""The column of a thread's number, where its id would take most of the place."""
_NUMBER_OF = "(SELECT t.number FROM threads t WHERE t.id = {})"
_FIRST = (THREADS, ENTRIES, RUNS, "steps", "events")
"""Tables that readers of an export look for first."""
_REBUILT = ("recall_", "gateway_nodes", "workers", "background_jobs")
"""Prefixes of derived tables, and of those about processes."""
_DERIVED = (
    *_REBUILT,
    *("gateway_salt", "idempotency_keys", "queued_questions", "provider_keys", "share_links", "board_link"),
    *("access_sessions", "access_links", "access_secrets", "access_tries"),
)
"""The same, and prefixes of tables about requests and access: each store has its own, and none is copied."""
_OF_EACH_STORE = frozenset({(THREADS, "number"), (THREADS, "incarnation")})
"""Columns that each store fills itself."""
_OF_ITS_WORK = _OF_EACH_STORE | {("thread_clients", "owner")}
_OF_ITS_WORK |= {(RUNS, name) for name in ("attempt", "claimable", "crashes", "steps_before", "stop_by")}
"""The same, and columns without meaning beside another store's work: its gateway's salt, and who may claim its runs."""


@dataclass(frozen=True, slots=True)
class StoreColumn:
    """A column. `read` and `write` are the SQL that selects and inserts the same value on every backend; `size` is SQL
    for its bytes. `form` marks text with several equivalent spellings, and native vectors: their value is little-endian
    32-bit floats."""

    name: str
    kind: ColumnType
    form: ColumnForm
    required: bool
    has_default: bool
    read: str
    write: str
    size: str


@dataclass(frozen=True)
class StoreTable:
    """A table. `key` is its primary key; `thread` the column of the thread, None in a table that threads share;
    `needs` the tables that it refers to."""

    name: str
    columns: tuple[StoreColumn, ...]
    key: tuple[str, ...]
    thread: str | None
    needs: frozenset[str]

    @cached_property
    def by_name(self) -> Mapping[str, StoreColumn]:
        return {column.name: column for column in self.columns}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The columns that order one thread's rows, or those of a shared table."""
        return tuple(name for name in self.key if name != self.thread)

    def of_thread(self, value: str) -> str:
        """Return the SQL condition of one thread's rows. `value` is the SQL of its id, such as `:thread_id`."""
        of = _NUMBER_OF.format(value) if self.thread == _THREAD_NUMBER else value
        return f'"{self.thread}" = {of}'

    @cached_property
    def size(self) -> str:
        """SQL for a row's bytes."""
        return " + ".join(column.size for column in self.columns)

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.form == "vector")


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables, each after the tables that it refers to, in the same order on every backend."""

    all: tuple[StoreTable, ...]

    @property
    def of_threads(self) -> tuple[StoreTable, ...]:
        """Tables of threads' rows, `threads` first, without derived ones."""
        return tuple(t for t in self.all if t.thread is not None and not t.name.startswith(_DERIVED))

    @property
    def derived_tables(self) -> tuple[StoreTable, ...]:
        """Tables whose rows can be derived from a thread's other rows."""
        return tuple(t for t in self.all if t.thread is not None and t.name.startswith(_DERIVED))

    @property
    def shared_tables(self) -> tuple[StoreTable, ...]:
        """Tables whose rows belong to no thread, without derived ones."""
        return tuple(t for t in self.all if t.thread is None and not t.name.startswith(_DERIVED))

    @property
    def of_backups(self) -> tuple[StoreTable, ...]:
        """Tables that a backup holds: all that cannot be derived, and that are not about processes."""
        return tuple(t for t in self.all if not t.name.startswith(_REBUILT))

    @property
    def shape(self) -> list[tuple[object, ...]]:
        """Names, kinds of columns, and keys, which are equal on every backend."""
        return [(t.name, t.key, t.thread, [(c.name, c.kind, c.has_default) for c in t.columns]) for t in self.all]

    def __contains__(self, name: str) -> bool:
        return any(table.name == name for table in self.all)

    def __getitem__(self, name: str) -> StoreTable:
        return next(table for table in self.all if table.name == name)


async def read_tables(tx: Transaction, *, whole: bool = False) -> Tables:
    """Return the database's current tables; if `whole`, with the columns that mean something with all others alone."""
    left_out = _OF_EACH_STORE if whole else _OF_ITS_WORK
    references = await tx.fetch("select_references")
    columns: dict[str, list[Row]] = {}
    for row in await tx.fetch("select_columns"):
        columns.setdefault(row["table_name"], []).append(row)
    found = {name: _table(name, rows, references, left_out) for name, rows in columns.items()}
    return Tables(_in_order(found))


def canonical(column: StoreColumn, value: Any) -> Any:
    """Return the one spelling that all equal values share."""
    if value is None or column.form in {"plain", "vector"}:
        return value
    try:
        if column.form == "time":
            return datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="microseconds")
        return json.dumps(json.loads(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (ValueError, RecursionError):
        return value


def _table(
    name: str, rows: Sequence[Row], references: Iterable[Row], left_out: frozenset[tuple[str, str]]
) -> StoreTable:
    key = sorted((row for row in rows if row["key"]), key=lambda row: int(row["key"]))
    return StoreTable(
        name=name,
        columns=tuple(_column(row) for row in rows if (name, row["name"]) not in left_out),
        key=tuple(row["name"] for row in key),
        thread=_thread_column(name, [row["name"] for row in rows]),
        needs=frozenset(row["target"] for row in references if row["table_name"] == name and row["target"] != name),
    )


def _column(row: Row) -> StoreColumn:
    if row["name"] == _THREAD_NUMBER:
        read = f'(SELECT t.id FROM threads t WHERE t.number = "{_THREAD_NUMBER}")'
        row = {**row, "kind": "text", "read": read, "write": _NUMBER_OF.format(f":{_THREAD_NUMBER}")}
    return StoreColumn(
        name=row["name"],
        kind=row["kind"],
        form=row["form"],
        required=bool(row["required"]),
        has_default=bool(row["has_default"]),
        read=row["read"],
        write=row["write"],
        size=row["size"],
    )


def _thread_column(name: str, columns: Sequence[str]) -> str | None:
    if name == THREADS:
        return "id"
    return next((each for each in (_THREAD_COLUMN, _THREAD_NUMBER) if each in columns), None)


def _in_order(tables: Mapping[str, StoreTable]) -> tuple[StoreTable, ...]:
    ordered: dict[str, StoreTable] = {}
    while waiting := sorted(tables.keys() - ordered.keys(), key=_rank):
        name = next(name for name in waiting if tables[name].needs <= ordered.keys())
        ordered[name] = tables[name]
    return tuple(ordered.values())


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)

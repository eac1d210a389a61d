"""The tables of a store, as its database tells them: what goes over all of them forgets none that is added later."""

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
_THREAD_COLUMN = "thread_id"
_FIRST = (THREADS, ENTRIES, RUNS, "steps", "events")
"""What a person who reads an export looks for first."""
_DERIVED = "recall_"
"""Tables whose names begin so hold what follows from others: each store makes it anew, and none is copied."""
_OF_THE_STORE = frozenset({(THREADS, "number"), (THREADS, "incarnation")})
"""Columns that each store fills by itself, and that mean nothing in another."""


@dataclass(frozen=True, slots=True)
class StoreColumn:
    """A column. `read` and `write` are SQL: what it is selected and inserted by, the same value on every backend. So is
    `size`, the bytes that a value takes.

    `form` tells text that may be written in several ways and still says the same, and a vector that a database keeps as
    such: it is the bytes of its numbers, 32 bits each, the lowest byte first.
    """

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
    """A table. `key` names the columns of its primary key; `thread` the one that holds the id of the thread that a row
    belongs to, None in a table that threads share; `needs` the tables that it refers to."""

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
        """The columns that order the rows of one thread, or of a table that threads share."""
        return tuple(name for name in self.key if name != self.thread)

    @cached_property
    def size(self) -> str:
        """SQL for the bytes that a row takes."""
        return " + ".join(column.size for column in self.columns)

    @cached_property
    def vectors(self) -> tuple[str, ...]:
        """The columns that the database keeps as vectors."""
        return tuple(column.name for column in self.columns if column.form == "vector")


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables, each behind those that it refers to. The order is the same on every backend."""

    all: tuple[StoreTable, ...]

    @property
    def of_threads(self) -> tuple[StoreTable, ...]:
        """Those whose rows belong to a thread; `threads` itself comes first. Not those that follow from them."""
        return tuple(t for t in self.all if t.thread is not None and not t.name.startswith(_DERIVED))

    @property
    def derived(self) -> tuple[StoreTable, ...]:
        """Those whose rows follow from what the thread's others hold."""
        return tuple(t for t in self.all if t.thread is not None and t.name.startswith(_DERIVED))

    @property
    def shared(self) -> tuple[StoreTable, ...]:
        """Those whose rows belong to no thread. Not those that follow from others."""
        return tuple(t for t in self.all if t.thread is None and not t.name.startswith(_DERIVED))

    @property
    def shape(self) -> list[tuple[object, ...]]:
        """What every backend tells alike: names, kinds of columns, keys."""
        return [(t.name, t.key, t.thread, [(c.name, c.kind, c.has_default) for c in t.columns]) for t in self.all]

    def __contains__(self, name: str) -> bool:
        return any(table.name == name for table in self.all)

    def __getitem__(self, name: str) -> StoreTable:
        return next(table for table in self.all if table.name == name)


async def read_tables(tx: Transaction) -> Tables:
    """The tables that the database has now."""
    references = await tx.fetch("select_references")
    columns: dict[str, list[Row]] = {}
    for row in await tx.fetch("select_columns"):
        columns.setdefault(row["table_name"], []).append(row)
    found = {name: _table(name, rows, references) for name, rows in columns.items()}
    return Tables(_in_order(found))


def canonical(column: StoreColumn, value: Any) -> Any:
    """A value in the one way of writing it that two equal ones share."""
    if value is None or column.form in {"plain", "vector"}:
        return value
    try:
        if column.form == "time":
            return datetime.fromisoformat(value).astimezone(UTC).isoformat(timespec="microseconds")
        return json.dumps(json.loads(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    except (ValueError, RecursionError):
        return value


def _table(name: str, rows: Sequence[Row], references: Iterable[Row]) -> StoreTable:
    key = sorted((row for row in rows if row["key"]), key=lambda row: int(row["key"]))
    return StoreTable(
        name=name,
        columns=tuple(_column(row) for row in rows if (name, row["name"]) not in _OF_THE_STORE),
        key=tuple(row["name"] for row in key),
        thread=_thread_column(name, [row["name"] for row in rows]),
        needs=frozenset(row["target"] for row in references if row["table_name"] == name and row["target"] != name),
    )


def _column(row: Row) -> StoreColumn:
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
    return _THREAD_COLUMN if _THREAD_COLUMN in columns else None


def _in_order(tables: Mapping[str, StoreTable]) -> tuple[StoreTable, ...]:
    ordered: dict[str, StoreTable] = {}
    while waiting := sorted(tables.keys() - ordered.keys(), key=_rank):
        name = next(name for name in waiting if tables[name].needs <= ordered.keys())
        ordered[name] = tables[name]
    return tuple(ordered.values())


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)

"""The tables of a store, as its database tells them: what goes over all of them forgets none that is added later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from longthread.store.driver import Row, Transaction

Kind = Literal["text", "integer", "real", "bytes"]
THREADS = "threads"
_THREAD_COLUMN = "thread_id"
_FIRST = (THREADS, "entries", "runs", "steps", "events")
"""What a person who reads an export looks for first."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `read` and `write` are SQL: what it is selected and inserted by, the same value on every backend."""

    name: str
    kind: Kind
    required: bool
    has_default: bool
    read: str
    write: str


@dataclass(frozen=True)
class Table:
    """A table. `key` names the columns of its primary key; `thread` the one that holds the id of the thread that a row
    belongs to, None in a table that threads share."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    thread: str | None

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        return {column.name: column for column in self.columns}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The columns that order the rows of one thread, or of a table that threads share."""
        return tuple(name for name in self.key if name != self.thread)


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables, each behind those that it refers to. The order is the same on every backend."""

    all: tuple[Table, ...]

    @property
    def of_threads(self) -> tuple[Table, ...]:
        """Those whose rows belong to a thread; `threads` itself comes first."""
        return tuple(table for table in self.all if table.thread is not None)

    @property
    def shared(self) -> tuple[Table, ...]:
        """Those whose rows belong to no thread."""
        return tuple(table for table in self.all if table.thread is None)

    def find(self, name: str) -> Table | None:
        """The table of that name."""
        return next((table for table in self.all if table.name == name), None)


async def read_tables(tx: Transaction) -> Tables:
    """The tables that the database has now."""
    references = await tx.fetch("select_references")
    columns: dict[str, list[Row]] = {}
    for row in await tx.fetch("select_columns"):
        columns.setdefault(row["table_name"], []).append(row)
    found = {name: _table(name, rows, references) for name, rows in columns.items()}
    return Tables(tuple(found[name] for name in _in_order(found, references)))


def _table(name: str, rows: Sequence[Row], references: Iterable[Row]) -> Table:
    key = sorted((row for row in rows if row["key"]), key=lambda row: int(row["key"]))
    return Table(
        name=name,
        columns=tuple(_column(row) for row in rows),
        key=tuple(row["name"] for row in key),
        thread=_thread_column(name, [row["name"] for row in rows], references),
    )


def _column(row: Row) -> Column:
    return Column(
        name=row["name"],
        kind=row["kind"],
        required=bool(row["required"]),
        has_default=bool(row["has_default"]),
        read=row["read"],
        write=row["write"],
    )


def _thread_column(name: str, columns: Sequence[str], references: Iterable[Row]) -> str | None:
    if name == THREADS:
        return "id"
    told = [row["name"] for row in references if row["table_name"] == name and row["target"] == THREADS]
    return _THREAD_COLUMN if _THREAD_COLUMN in (*told, *columns) else None


def _in_order(names: Iterable[str], references: Iterable[Row]) -> list[str]:
    needed = {name: set[str]() for name in sorted(names, key=_rank)}
    for row in references:
        if row["target"] != row["table_name"]:
            needed[row["table_name"]].add(row["target"])
    ordered: list[str] = []
    while len(ordered) < len(needed):
        ordered.append(next(name for name in needed if name not in ordered and needed[name] <= set(ordered)))
    return ordered


def _rank(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)

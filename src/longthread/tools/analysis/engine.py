"""What every database engine offers to a source: hardened connections, and its schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import Result, fetch
from longthread.tools.analysis.rows import Rows
from longthread.tools.analysis.schema import Schema

NO_DATABASE = "The database is not there, or this account may not use it. Check its name and what is granted."


def place(number: int, dialect: str) -> str:
    """How a statement writes the place of its parameter `number`, the first of which is 1."""
    return f":p{number}" if dialect in ("sqlite", "mysql") else f"${number}"


class SourceConnection(ABC):
    """One read-only connection, used by one thread at a time; `interrupt` may come from any other."""

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """Runs a statement of ours, whose result is small: catalog queries and statistics."""

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """Runs a statement that somebody else wrote and the guard let through. `parameters` are the values of its
        places, which are written as `place` writes them for the dialect.

        Raises SqlFailed, SqlRefused, SourceLocked, Interrupted.
        """

    def fetch(self, sql: str, limits: Limits, *, keep: int, cell: int, parameters: Sequence[Any] = ()) -> Result:
        """Runs a statement like `query`; its first `keep` rows with cells of up to `cell` characters, the others
        counted."""
        return fetch(self.interrupt, self.query(sql, parameters), limits, keep=keep, cell=cell)

    @abstractmethod
    def interrupt(self) -> None:
        """Stops the statement that is running, if one is. Never raises."""

    def abandon(self) -> bool:
        """Ends, by force, a statement that heeds no interrupt; False where that cannot be done."""
        return False

    def lives(self) -> bool:
        """Whether the connection is any good; False once its process has ended."""
        return True

    @abstractmethod
    def reset(self) -> None:
        """Makes the connection as good as new: no transaction, no state of the last user."""

    @abstractmethod
    def close(self) -> None:
        """Ends the connection."""


class Engine(ABC):
    """One database. `connect` may be called from several threads."""

    dialect: str
    name: str
    notes: Sequence[str] = ()
    """What could not be read, for people to know."""
    table_notes: Mapping[str, Sequence[str]] = MappingProxyType({})
    """What was guessed of a table, by its label."""

    @abstractmethod
    def connect(self) -> SourceConnection:
        """A new hardened connection. Raises SourceError."""

    @abstractmethod
    def read_schema(self, connection: SourceConnection) -> Schema:
        """All tables with their columns, keys and comments."""

    @abstractmethod
    def mark(self, connection: SourceConnection) -> str:
        """A cheap text that differs whenever the schema may have changed."""

    def stale(self) -> bool:
        """Whether the data moved, so that open connections must be replaced."""
        return False

    def functions(self, connection: SourceConnection) -> frozenset[str]:
        """Names of functions, defined in this database, that only read."""
        del connection
        return frozenset()

    def defined(self, connection: SourceConnection) -> frozenset[str]:
        """Names of all functions that are defined in this database, whatever they do, in small letters."""
        del connection
        return frozenset()

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The definitions of the views, by label: a CREATE VIEW or its query."""
        del connection
        return {}

    @abstractmethod
    def close(self) -> None:
        """Frees what the engine holds."""

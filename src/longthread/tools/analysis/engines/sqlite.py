"""SQLite files, opened without writing, attaching or loading code."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from longthread.errors import SourceIsStore, SourceLocked, SourceUnreadable, SqlFailed, SqlRefused, SqlTooLarge
from longthread.store.schema import APPLICATION_ID
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits
from longthread.tools.analysis.quoting import literal, quote_identifier
from longthread.tools.analysis.result import Rows
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table, comments_of, labels_of_checks

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_WRITES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
# Full-text tables read these inside SQLite, for any caller.
_INNER_PRAGMAS = frozenset({"data_version", "page_size"})
_FUNCTIONS_REFUSED = frozenset(
    {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer", "lsdir", "fsdir", "zipfile", "sqlite_dbpage"}
)
_MAKES = """
    char concat concat_ws format printf group_concat string_agg hex quote replace zeroblob randomblob unistr_quote
    json_array json_object json_group_array json_group_object json_insert json_replace json_set json_patch json_quote
    json_pretty jsonb_array jsonb_object jsonb_group_array jsonb_group_object jsonb_insert jsonb_replace jsonb_set
    jsonb_patch
"""
_MAKERS = frozenset(_MAKES.split())
"""Functions whose result may be larger than their arguments."""
_SEARCHERS = frozenset({"instr", "replace", "like", "glob"})
"""Functions whose time grows with the product of their arguments' sizes."""
_TABLE_FUNCTIONS = ("json_each", "json_tree", "generate_series")
"""Table functions. SQLite declares each at its first use, which looks like CREATE TABLE: so we use them first."""
_EXPLAINS = re.compile(r"(?:\s|--[^\n]*\n|/\*[^*]*\*+(?:[^*/][^*]*\*+)*/)*EXPLAIN\b", re.I)
_CALLED = re.compile(r"(\w+)\(-?\d+\)")
# An R-tree prepares its own writes when it is opened for reading; the file is read-only whatever it prepares.
_RTREE_PARTS = ("_node", "_rowid", "_parent")


def is_sqlite(path: Path) -> bool:
    """Whether a file is a SQLite database and not empty. SQLite itself opens it: to open and close the file otherwise
    would drop the locks that SQLite has on it in this process."""
    try:
        # Immutable: takes no lock, and creates no file.
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)) as database:
            database.execute("PRAGMA schema_version").fetchone()
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CANTOPEN)
    return path.stat().st_size > 0


class SqliteEngine(Engine):
    """One SQLite file."""

    dialect = "sqlite"

    def __init__(self, path: Path, source: str, limits: Limits) -> None:
        self.name = path.stem
        self._path = path
        self._source = source
        self._limits = limits
        self._identity = self._stat()

    def connect(self) -> SqliteConnection:
        """Raises SourceUnreadable, SourceLocked."""
        try:
            return self._connect("mode=ro")
        except SourceUnreadable:
            # In WAL mode SQLite cannot create its -shm file on a read-only disk. Without a -wal file the main file
            # is complete.
            wal = self._path.with_name(self._path.name + "-wal")
            if wal.exists() or os.access(self._path.parent, os.W_OK):
                raise
            return self._connect("mode=ro&immutable=1")

    def _connect(self, mode: str) -> SqliteConnection:
        uri = f"file:{quote(str(self._path.resolve()))}?{mode}"
        connection = None
        with translate_errors(self._source):
            raw = sqlite3.connect(
                uri,
                uri=True,
                timeout=self._limits.lock_seconds,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=0,  # a cached statement of ours must not pass a stranger's authorization
            )
            try:
                raw.execute("PRAGMA query_only = ON")
                raw.execute("SELECT count(*) FROM sqlite_master").fetchone()
                # Asked of what was opened, so no name, link or copy hides a store.
                if raw.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,):
                    raise SourceIsStore(source=self._source)
                connection = SqliteConnection(raw, self._source, self._limits)
            finally:
                if connection is None:
                    raw.close()
        return connection

    def read_schema(self, connection: SourceConnection) -> Schema:
        """Three queries, however many tables there are; more only if a view is broken."""
        kinds = _list_relations(connection)
        columns: dict[str, list[Column]] = {}
        keys: dict[str, list[tuple[int, str]]] = {}
        foreign: dict[str, dict[int, list[tuple[str, str, str | None]]]] = {}
        comments = {name: comments_of(sql) for name, (_, sql) in kinds.items()}
        labels = {name: labels_of_checks(sql, self.dialect) for name, (_, sql) in kinds.items()}
        for table, name, type_name, required, key, hidden in _read_pragma(
            connection, kinds, 'p.name, p.type, p."notnull", p.pk, p.hidden', "pragma_table_xinfo", "p.cid"
        ):
            if hidden != 1:
                comment = comments[table].columns.get(name)
                listed = labels[table].get(name.casefold(), ())
                column = Column(name, type_name or "", not (required or key), key > 0, comment, listed)
                columns.setdefault(table, []).append(column)
            if key:
                keys.setdefault(table, []).append((key, name))
        for table, number, target, own, other in _read_pragma(
            connection, kinds, 'p.id, p."table", p."from", p."to"', "pragma_foreign_key_list", "p.id, p.seq"
        ):
            foreign.setdefault(table, {}).setdefault(number, []).append((target, own, other))
        primary = {name: tuple(column for _, column in sorted(keys.get(name, []))) for name in kinds}
        folded = {name.casefold(): name for name in kinds}
        return Schema(
            Table(
                label=name,
                sql=quote_identifier(name),
                kind="view" if kind == "view" else "table",
                comment=comments[name].table,
                columns=tuple(columns.get(name, [])),
                primary_key=primary[name],
                foreign_keys=tuple(_foreign_key(parts, folded, primary) for parts in foreign.get(name, {}).values()),
            )
            for name, (kind, _) in kinds.items()
        )

    def mark(self, connection: SourceConnection) -> str:
        """A hash of the CREATE statements."""
        digest = hashlib.sha256()
        for row in connection.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY type, name"
        ):
            digest.update("\0".join(str(part) for part in row).encode("utf-8", "replace"))
        return digest.hexdigest()

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The CREATE VIEW statements."""
        return {name: sql for name, (kind, sql) in _list_relations(connection).items() if kind == "view"}

    def stale(self) -> bool:
        """Whether the path now has another file. Open connections would read the old one."""
        identity = self._stat()
        changed = identity is not None and identity != self._identity
        self._identity = identity or self._identity
        return changed

    def identity(self) -> tuple[int, int] | None:
        """Return the identity of the file. Each connection reads its content again."""
        return self._identity

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino


class SqliteConnection(SourceConnection):
    """A connection that only reads: by mode, `query_only`, an authorizer and limits."""

    def __init__(self, raw: sqlite3.Connection, source: str, limits: Limits) -> None:
        self._raw = raw
        self._source = source
        self._limits = limits
        self._trusted = False
        self._denied = ""
        self._allowed = limits.value_bytes
        raw.text_factory = lambda text: text.decode("utf-8", "replace")
        for category, value in (
            (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
            (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
            (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
        ):
            raw.setlimit(category, value)
        self._allow(limits.value_bytes)
        raw.set_authorizer(self._authorize)
        for function in _TABLE_FUNCTIONS:
            with contextlib.suppress(SqlFailed):  # this SQLite was built without it
                self.execute(f"SELECT 1 FROM {function}(1)").close()

    def execute(self, sql: str) -> Rows:
        self._trusted = True
        self._allow(self._limits.value_bytes)
        try:
            rows = self._run(sql, {})
            return Rows(rows.columns, iter(list(rows)), _binary)
        finally:
            self._trusted = False

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        given = {f"p{number}": value for number, value in enumerate(parameters, 1)}
        self._allow(self._largest(sql, given))
        try:
            return self._run(sql, given)
        except SqlFailed:
            self._allow(self._limits.value_bytes)
            raise

    def _largest(self, sql: str, parameters: Mapping[str, Any]) -> int:
        """Bytes that one value of the statement may have, by the functions that SQLite's program for it calls. Without
        a call that builds values any stored value may be read; else the limit shrinks with the number of calls."""
        limits = self._limits
        if _EXPLAINS.match(sql):
            return limits.value_bytes
        program = list(self._run(f"EXPLAIN {sql}", parameters))
        called = [found[1] for step in program if (found := _CALLED.fullmatch(str(step[5])))]
        joined = [step for step in program if step[1] == "Concat"]
        made = len(joined) + sum(name in _MAKERS for name in called)
        if not made:
            return limits.value_bytes
        searched = max(1, sum(name in _SEARCHERS for name in called))
        return int(min(limits.built_bytes / math.sqrt(searched), limits.value_bytes / made))

    def _allow(self, size: int) -> None:
        self._allowed = size
        self._raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, size)

    def _run(self, sql: str, parameters: Mapping[str, Any]) -> Rows:
        self._denied = ""
        with translate_errors(self._source, lambda: (self._denied, self._allowed)):
            cursor = self._raw.execute(sql, parameters)
        columns = [entry[0] for entry in cursor.description or ()]
        return Rows(columns, self._fetch_rows(cursor), _binary)

    def _fetch_rows(self, cursor: sqlite3.Cursor) -> Iterator[Sequence[Any]]:
        try:
            with translate_errors(self._source, lambda: (self._denied, self._allowed)):
                yield from cursor
        finally:
            cursor.close()

    def interrupt(self) -> None:
        try:
            self._raw.interrupt()
        except sqlite3.ProgrammingError:  # closed in the meantime: nothing is running
            return

    def reset(self) -> None:
        if self._raw.in_transaction:
            self._raw.rollback()

    def close(self) -> None:
        self._raw.close()

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION:
            allowed = (second or "").lower() not in _FUNCTIONS_REFUSED
        elif self._trusted:
            # Our own catalog queries use table-valued pragmas, which SQLite declares by writes to a schema of its own.
            allowed = True
        elif action == sqlite3.SQLITE_READ:
            allowed = not (first or "").lower().startswith("pragma_")
        elif action in _READS:
            allowed = True
        elif action == sqlite3.SQLITE_PRAGMA:
            allowed = first in _INNER_PRAGMAS and second is None
        else:
            allowed = action in _WRITES and (first or "").endswith(_RTREE_PARTS)
        if not allowed:
            self._denied = (
                f"it would do something else than read ({_name_action(action)} {second or first or ''})".replace(
                    " )", ")"
                )
            )
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


@contextmanager
def translate_errors(source: str, state: Callable[[], tuple[str, int]] = lambda: ("", 0)) -> Iterator[None]:
    """Translates SQLite's errors."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translation(error, source, *state()) from error
    except MemoryError as error:
        raise SqlTooLarge(reason="it needs more memory than there is.") from error


def _translation(error: sqlite3.Error, source: str, denied: str, allowed: int) -> Exception:
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    message = str(error)
    if code == sqlite3.SQLITE_INTERRUPT:
        return Interrupted()
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return SourceLocked(source=source)
    if code == sqlite3.SQLITE_NOTADB:
        return SourceUnreadable(source=source, reason="it is not a SQLite database (or it is encrypted).")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM):
        return SourceUnreadable(source=source, reason=f"{message}.")
    if code == sqlite3.SQLITE_AUTH or denied:
        return SqlRefused(reason=f"{denied or message}.")
    if code == sqlite3.SQLITE_TOOBIG:
        return SqlTooLarge(
            reason=f"a value would be larger than {allowed:,} bytes. In a query that makes values (||, replace, "
            "printf, group_concat, JSON) none may be larger. Leave those out to read larger stored values."
        )
    return SqlFailed(reason=f"{message}.")


def _list_relations(connection: SourceConnection) -> dict[str, tuple[str, str]]:
    """(kind, CREATE statement) by name, without shadow tables and SQLite's own tables."""
    return {
        name: (kind, sql or "")
        for name, kind, sql in connection.execute(
            "SELECT l.name, l.type, m.sql FROM pragma_table_list l JOIN sqlite_master m ON m.name = l.name "
            "AND m.type IN ('table', 'view') WHERE l.schema = 'main' AND l.type IN ('table', 'view', 'virtual') "
            "AND l.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY l.name COLLATE NOCASE"
        )
    }


def _read_pragma(
    connection: SourceConnection, names: Iterable[str], values: str, function: str, order: str
) -> Iterator[Sequence[Any]]:
    """Rows of a table-valued pragma. A broken view makes the query fail: it is then left out."""
    chosen = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name IN ({})"
    query = f"SELECT m.name, {values} FROM ({chosen}) m JOIN {function}(m.name) p ORDER BY m.name, {order}"
    try:
        yield from list(connection.execute(query.format(", ".join(map(literal, names)) or "NULL")))
    except SqlFailed:
        for name in names:
            with contextlib.suppress(SqlFailed):
                yield from list(connection.execute(query.format(literal(name))))


def _foreign_key(
    parts: list[tuple[str, str, str | None]], folded: dict[str, str], primary: dict[str, tuple[str, ...]]
) -> ForeignKey:
    target = folded.get(parts[0][0].casefold(), parts[0][0])
    # Without named columns a key refers to the other table's primary key.
    references = tuple(other for _, _, other in parts if other) or primary.get(target, ())
    return ForeignKey(tuple(own for _, own, _ in parts), target, references)


def _binary(value: bytes) -> str:
    return f"x'{value.hex()}'"


def _name_action(action: int) -> str:
    for name in ("ATTACH", "DETACH", "PRAGMA", "INSERT", "UPDATE", "DELETE", "FUNCTION", "TRANSACTION", "SAVEPOINT"):
        if getattr(sqlite3, f"SQLITE_{name}") == action:
            return name
    return "READ" if action == sqlite3.SQLITE_READ else "CHANGE"

"""DuckDB: database files, and in-memory databases for data files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from longthread.errors import SourceFailed, SourceLocked, SourceUnreadable, SqlFailed, SqlRefused, SqlTooLarge
from longthread.tools.analysis.engine import Engine, SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits
from longthread.tools.analysis.quoting import literal, quote_identifier
from longthread.tools.analysis.result import Rows, iso
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table, labels_of_checks, labels_of_type

_PLAIN = frozenset(
    {"sqlnull", "null", "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint"}
    | {"uinteger", "ubigint", "uhugeint", "double", "decimal", "varchar", "blob"}
)
"""Types that Python's own hold without loss."""
_TEMPORAL = ("date", "time")
_READING = frozenset({"SELECT", "EXPLAIN", "MULTI"})
"""Statement types of DuckDB's parser that may run; MULTI is PIVOT, which needs two passes."""
_FETCHED = 256

_COLUMNS = """
    SELECT c.schema_name, c.table_name, c.column_name, c.data_type, c.is_nullable, c.comment
    FROM duckdb_columns() c WHERE NOT c.internal AND c.database_name = current_database()
    ORDER BY c.schema_name, c.table_name, c.column_index
"""
_TABLES = """
    SELECT schema_name, table_name, 'table', comment, estimated_size FROM duckdb_tables()
    WHERE NOT internal AND database_name = current_database()
    UNION ALL
    SELECT schema_name, view_name, 'view', comment, NULL FROM duckdb_views()
    WHERE NOT internal AND database_name = current_database()
    ORDER BY 1, 2
"""
_KEYS = """
    SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names,
           constraint_text
    FROM duckdb_constraints()
    WHERE database_name = current_database() AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY', 'CHECK')
    ORDER BY schema_name, table_name, constraint_index
"""
_VIEWS = """
    SELECT schema_name, view_name, sql FROM duckdb_views()
    WHERE NOT internal AND database_name = current_database()
"""
_MACROS = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND function_type = 'macro'"
_DEFINED = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal"


@dataclass(frozen=True)
class DuckdbType:
    """`type` is the type to cast to, if `cast`; `read` converts the result."""

    type: str
    cast: bool = False
    read: Callable[[Any], Any] | None = None


def shape_of(type_: Any) -> DuckdbType:
    """How to read a type (an object of DuckDB's)."""
    kind = str(type_.id)
    if kind in _PLAIN:
        return DuckdbType(str(type_))
    if kind == "float":
        return DuckdbType("VARCHAR", cast=True, read=float)  # as a double it would get digits that it does not have
    if kind == "bignum":
        return DuckdbType("VARCHAR", cast=True, read=Decimal)  # Python makes no whole number of so many digits
    if kind in ("list", "array"):
        return _list(shape_of(type_.children[0][1]))
    if kind == "struct":
        return _struct([(str(name), shape_of(child)) for name, child in type_.children])
    if kind == "map":
        return _map(*(shape_of(child) for _, child in type_.children))
    return DuckdbType("VARCHAR", cast=True, read=iso if kind.startswith(_TEMPORAL) else None)


def convert_rows(rows: Iterable[Sequence[Any]], shapes: Sequence[DuckdbType]) -> Iterator[Sequence[Any]]:
    """Converts the values of rows."""
    if not any(shape.read for shape in shapes):
        yield from rows
        return
    for row in rows:
        yield [_read(shape, value) for shape, value in zip(shapes, row, strict=True)]


def format_binary(value: bytes) -> str:
    r"""A binary value as DuckDB writes it: `a\x00\xFF`."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b"\"'\\" else f"\\x{byte:02X}" for byte in value)


def _read(shape: DuckdbType, value: Any) -> Any:
    return value if shape.read is None or value is None else shape.read(value)


def _list(item: DuckdbType) -> DuckdbType:
    def read(values: Sequence[Any]) -> list[Any]:
        return [_read(item, value) for value in values]

    return DuckdbType(f"{item.type}[]", item.cast, read if item.read else None)


def _struct(fields: Sequence[tuple[str, DuckdbType]]) -> DuckdbType:
    if not all(name for name, _ in fields):  # a row, whose fields have places only
        return DuckdbType("VARCHAR", cast=True)

    def read(values: dict[str, Any]) -> dict[str, Any]:
        return {name: _read(shape, values[name]) for name, shape in fields}

    inner = ", ".join(f"{quote_identifier(name)} {shape.type}" for name, shape in fields)
    needed = any(shape.read for _, shape in fields)
    return DuckdbType(f"STRUCT({inner})", any(shape.cast for _, shape in fields), read if needed else None)


def _map(key: DuckdbType, item: DuckdbType) -> DuckdbType:
    def read(values: dict[Any, Any]) -> dict[Any, Any]:
        return {_read(key, name): _read(item, value) for name, value in values.items()}

    needed = key.read or item.read
    return DuckdbType(f"MAP({key.type}, {item.type})", key.cast or item.cast, read if needed else None)


class DuckdbEngine(Engine):
    """A DuckDB database file, or what a subclass opens."""

    dialect = "duckdb"
    views_are_tables = False
    """Whether the views are ours and stand for files."""

    def __init__(self, path: Path, source: str, limits: Limits) -> None:
        self.name = path.stem
        self._path = path
        self._source = source
        self._limits = limits
        self._lock = threading.Lock()
        self._spill = spill_folder(path)
        self._root: duckdb.DuckDBPyConnection | None = None

    def connect(self) -> DuckdbConnection:
        """Raises SourceLocked while another process writes to the file, SourceUnreadable for any other file."""
        with self._lock, translate_errors(self._source):
            if self._root is None:
                self._root = self._open()
            return DuckdbConnection(self._root.cursor(), self._source)

    def _open(self) -> duckdb.DuckDBPyConnection:
        root = duckdb.connect(str(self._path), read_only=True, config=settings(self._limits, self._spill))
        # Another source over the same file shares the database, and has locked it already.
        with contextlib.suppress(duckdb.InvalidInputException):
            lock(root)
        return root

    def read_schema(self, connection: SourceConnection) -> Schema:
        """Three queries, however many tables there are."""
        columns: dict[tuple[str, str], list[Column]] = {}
        primary: dict[tuple[str, str], tuple[str, ...]] = {}
        foreign: dict[tuple[str, str], list[ForeignKey]] = {}
        checked: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
        for schema, table, kind, names, target, references, text in connection.execute(_KEYS):
            if kind == "PRIMARY KEY":
                primary[schema, table] = tuple(names)
            elif kind == "CHECK":
                checked.setdefault((schema, table), {}).update(labels_of_checks(text, self.dialect))
            else:
                key = ForeignKey(tuple(names), label_of(schema, target), tuple(references))
                foreign.setdefault((schema, table), []).append(key)
        for schema, table, name, type_name, nullable, comment in connection.execute(_COLUMNS):
            is_key = name in primary.get((schema, table), ())
            labels = labels_of_type(type_name) or checked.get((schema, table), {}).get(name.casefold(), ())
            column = Column(name, type_name, nullable and not is_key, is_key, comment or None, labels)
            columns.setdefault((schema, table), []).append(column)
        return Schema(
            Table(
                label=label_of(schema, name),
                sql=quote_identifier(name)
                if schema == "main"
                else f"{quote_identifier(schema)}.{quote_identifier(name)}",
                kind="view" if kind == "view" and not self.views_are_tables else "table",
                comment=comment or None,
                columns=tuple(columns.get((schema, name), [])),
                primary_key=primary.get((schema, name), ()),
                foreign_keys=tuple(foreign.get((schema, name), [])),
                estimated_rows=size,
            )
            for schema, name, kind, comment, size in connection.execute(_TABLES)
        )

    def mark(self, connection: SourceConnection) -> str:
        """A hash over the catalog: it is in memory."""
        digest = hashlib.sha256()
        for query in (_COLUMNS, _KEYS, "SELECT schema_name, table_name, comment FROM duckdb_tables() ORDER BY 1, 2"):
            digest.update(repr(list(connection.execute(query))).encode("utf-8", "replace"))
        return digest.hexdigest()

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The CREATE VIEW statements."""
        return {label_of(row[0], row[1]): row[2] for row in connection.execute(_VIEWS)}

    def functions(self, connection: SourceConnection) -> frozenset[str]:
        """The macros of the database, which can do no more than a query."""
        return frozenset(str(row[0]).casefold() for row in connection.execute(_MACROS))

    def list_functions(self, connection: SourceConnection) -> frozenset[str]:
        """Scalar and table macros."""
        return frozenset(str(row[0]).casefold() for row in connection.execute(_DEFINED))

    def close(self) -> None:
        """Closes the database and removes its folder for spilled data."""
        with self._lock:
            root, self._root = self._root, None
        if root is not None:
            root.close()
        with contextlib.suppress(OSError):  # never made, or in use by another source over the same file
            self._spill.rmdir()


class DuckdbConnection(SourceConnection):
    """A connection in a read-only transaction, to a database without external access."""

    def __init__(self, raw: duckdb.DuckDBPyConnection, source: str) -> None:
        self._raw = raw
        self._source = source
        self._in_transaction = False

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        with translate_errors(self._source, self._reset_after_error):
            statements = self._raw.extract_statements(sql)
            if len(statements) != 1 or statements[0].type.name not in _READING:
                raise SqlRefused(reason="DuckDB does not take it for one query.")
            if not self._in_transaction:
                self._raw.execute("BEGIN TRANSACTION READ ONLY")
                self._in_transaction = True
            explains = statements[0].type.name == "EXPLAIN"
            shapes = [] if explains else self._shapes(sql, parameters)
            self._raw.execute(statements[0] if explains else _cast(sql, shapes), parameters or None)
            columns = [str(entry[0]) for entry in self._raw.description or ()]
        return Rows(columns, self._fetch_rows([shape for _, shape in shapes]), format_binary)

    def _shapes(self, sql: str, parameters: Sequence[Any]) -> list[tuple[str, DuckdbType]]:
        """The columns and how to read their values, by a query without rows."""
        if sql.lstrip().upper().startswith(("DESCRIBE", "SUMMARIZE", "SHOW")):
            return []
        self._raw.execute(f"SELECT * FROM (\n{_plain(sql)}\n) LIMIT 0", parameters or None)
        return [(str(name), shape_of(type_)) for name, type_, *_ in self._raw.description or ()]

    def _fetch_rows(self, shapes: Sequence[DuckdbType]) -> Iterator[Sequence[Any]]:
        with translate_errors(self._source, self._reset_after_error):
            while rows := self._raw.fetchmany(_FETCHED):
                yield from convert_rows(rows, shapes)

    def _reset_after_error(self) -> None:
        # DuckDB refuses everything until an aborted transaction is rolled back.
        with contextlib.suppress(duckdb.Error):
            self.reset()

    def interrupt(self) -> None:
        with contextlib.suppress(duckdb.Error):  # closed in the meantime: nothing is running
            self._raw.interrupt()

    def reset(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            self._raw.execute("ROLLBACK")

    def close(self) -> None:
        self._raw.close()


def settings(limits: Limits, spill: Path) -> dict[str, str | bool | int | float | list[str]]:
    """Settings of every DuckDB connection: limits, and no extensions."""
    return {
        "memory_limit": f"{limits.memory_mb}MB",
        "temp_directory": str(spill),
        "max_temp_directory_size": f"{limits.spill_mb}MB",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
    }


def lock(root: duckdb.DuckDBPyConnection, readable: Sequence[Path] = ()) -> None:
    """Restricts the database to its own file and `readable`, and locks the settings."""
    if readable:
        root.execute(f"SET allowed_paths = [{', '.join(literal(str(path)) for path in readable)}]")
    root.execute("SET enable_external_access = false")
    root.execute("SET lock_configuration = true")


def spill_folder(path: Path) -> Path:
    """The folder for spilled data: one for each file and process, as DuckDB wants equal settings."""
    digest = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"longthread-spill-{os.getpid()}-{digest}"


def label_of(schema: str, name: str) -> str:
    """A table's name, with its schema unless that is `main`."""
    return name if schema == "main" else f"{schema}.{name}"


@contextmanager
def translate_errors(source: str, failed: Any = None) -> Iterator[None]:
    """Translates DuckDB's errors."""
    try:
        yield
    except (duckdb.Error, RuntimeError, MemoryError) as error:
        if failed is not None:
            failed()
        raise _translation(error, source) from error


def _translation(error: Exception, source: str) -> Exception:
    message = _plain_message(error)
    if isinstance(error, duckdb.InterruptException):
        return Interrupted()
    if "Could not set lock" in message or "different configuration" in message:
        return SourceLocked(source=source)
    if "not a valid DuckDB database" in message:
        return SourceUnreadable(source=source, reason="it is not a DuckDB database.")
    if "Maximum line size" in message:
        reason = (
            f"a line is longer than can be read ({message.split('Possible Solution')[0].strip()}) Shorten its values."
        )
        return SourceUnreadable(source=source, reason=reason)
    if isinstance(error, duckdb.PermissionException):
        return SqlRefused(reason="it would read or write outside of the source.")
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        return SqlTooLarge(reason="it needs more memory than the source may use. Aggregate or filter first.")
    if isinstance(error, duckdb.ConnectionException):
        return SourceFailed(source=source, reason=message)
    return SqlFailed(reason=message)


def _plain_message(error: Exception) -> str:
    """DuckDB's message without the statement and the data in it."""
    lines = []
    for line in str(error).splitlines():
        if line.startswith(("LINE ", "Traceback", "  file = ")):  # the last begins a list of all of a reader's settings
            break
        if line.strip() and not line.startswith("Original Line:"):  # a line of data, which may be very long
            lines.append(line.strip()[:250])
    return " ".join(lines)[:500]


def _cast(sql: str, shapes: Sequence[tuple[str, DuckdbType]]) -> str:
    """Casts columns to text whose values Python's types would lose digits of."""
    if not any(shape.cast for _, shape in shapes):
        return sql
    shown = ", ".join(
        f"c{at}{f'::{shape.type}' if shape.cast else ''} AS {quote_identifier(name)}"
        for at, (name, shape) in enumerate(shapes)
    )
    return f"SELECT {shown} FROM (\n{_plain(sql)}\n) AS q({', '.join(f'c{at}' for at in range(len(shapes)))})"


def _plain(sql: str) -> str:
    return sql.strip().rstrip(";")

"""PostgreSQL, in read-only transactions that are rolled back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import errors as postgres
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.conninfo import make_conninfo
from psycopg.pq import ExecStatus
from psycopg.types.json import set_json_loads

from longthread.errors import (
    SourceError,
    SourceFailed,
    SourceIsStore,
    SourceLocked,
    SourceLoginFailed,
    SourceUnreachable,
    SourceUnreadable,
    SqlFailed,
    SqlRefused,
)
from longthread.store.schema import MIGRATIONS
from longthread.tools.analysis.address import SourceUrl, scrub_message, secrets_of
from longthread.tools.analysis.engine import NO_DATABASE, Engine, SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.result import Rows, iso
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table, labels_of_checks

_CANCEL_SECONDS = 5.0
_GRACE = 10_000

# What people made: no system catalogs, no tables of extensions, no partitions (their parent stands for them).
_RELATIONS = """
    SELECT c.oid, n.nspname, c.relname, c.relkind::text AS kind, pg_catalog.pg_table_is_visible(c.oid) AS visible,
           pg_catalog.obj_description(c.oid, 'pg_class') AS comment, c.reltuples
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND n.nspname NOT LIKE 'pg\\_temp\\_%'
      AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
      AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT'))
      AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_class'::regclass
                      AND d.objid = c.oid AND d.deptype = 'e')
"""
_TABLES = f"{_RELATIONS} ORDER BY pg_catalog.pg_table_is_visible(c.oid) DESC, n.nspname, c.relname"
# Of enumerations, domains over them, and arrays of either.
_LABELS = """
    WITH RECURSIVE types(id, enumeration) AS (
        SELECT DISTINCT enumtypid, enumtypid FROM pg_catalog.pg_enum
        UNION
        SELECT t.oid, o.enumeration FROM types o JOIN pg_catalog.pg_type t
        ON t.typbasetype = o.id OR (t.typelem = o.id AND t.typcategory = 'A')
    )
    SELECT types.id, array_agg(e.enumlabel::text ORDER BY e.enumsortorder) AS labels
    FROM types JOIN pg_catalog.pg_enum e ON e.enumtypid = types.enumeration GROUP BY types.id
"""
_COLUMNS = f"""
    SELECT r.oid, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
           pg_catalog.col_description(r.oid, a.attnum), l.labels
    FROM ({_RELATIONS}) r JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid
    LEFT JOIN ({_LABELS}) l ON l.id = a.atttypid
    WHERE a.attnum > 0 AND NOT a.attisdropped
      AND pg_catalog.has_column_privilege(r.oid, a.attnum, 'SELECT')
    ORDER BY r.oid, a.attnum
"""
_KEYS = f"""
    SELECT k.conrelid, k.contype::text, k.confrelid,
           (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.conkey) WITH ORDINALITY u(number, place)
            JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number),
           (SELECT array_agg(a.attname::text ORDER BY u.place) FROM unnest(k.confkey) WITH ORDINALITY u(number, place)
            JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number),
           CASE k.contype WHEN 'c' THEN pg_catalog.pg_get_constraintdef(k.oid) END
    FROM pg_catalog.pg_constraint k JOIN ({_RELATIONS}) r ON r.oid = k.conrelid
    WHERE k.contype IN ('p', 'f', 'c') AND k.conparentid = 0
    ORDER BY k.conrelid, k.conname
"""
_FUNCTIONS = """
    SELECT DISTINCT lower(p.proname) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND p.prokind IN ('f', 'a', 'w')
    GROUP BY lower(p.proname) HAVING bool_and(p.provolatile IN ('i', 's') AND NOT p.prosecdef)
"""
_DEFINED = """
    SELECT DISTINCT lower(p.proname) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d WHERE d.classid = 'pg_catalog.pg_proc'::regclass
                      AND d.objid = p.oid AND d.deptype = 'e')
"""
_VIEWS = f"""
    SELECT r.nspname, r.relname, r.visible, pg_catalog.pg_get_viewdef(r.oid) FROM ({_RELATIONS}) r
    WHERE r.kind IN ('v', 'm')
"""
_STORES = "SELECT FROM pg_catalog.pg_class WHERE relname = %s AND relkind IN ('r', 'p')"
_KINDS = {"v": "view", "m": "view"}
_TEXTS = (
    "interval", "uuid", "inet", "cidr", "record", "int4range", "int8range", "numrange", "daterange", "tsrange",
    "tstzrange", "int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange",
    "tstzmultirange",
)  # fmt: skip
"""Types that are read as text: Python's own lose something, or look different."""


def build_options(url: SourceUrl) -> dict[str, Any]:
    """Options for libpq. Several servers are `host=a,b&port=1,2` or `host=a:1&host=b:2`."""
    named = {"host": url.host, "port": url.port, "dbname": url.database, "user": url.username}
    given: dict[str, Any] = {name: value for name, value in (named | {"password": url.password}).items() if value}
    given |= {name: values[-1] for name, values in url.query.items()}
    hosts = url.query.get("host", ())
    split = [_SERVER.fullmatch(host) for host in hosts]
    if "port" in url.query:
        given["port"] = ",".join(url.query["port"])
    elif any(split):
        given["port"] = ",".join(found["port"] if found else "" for found in split)
        hosts = tuple(found["host"] if found else host for found, host in zip(split, hosts, strict=True))
    return given | ({"host": ",".join(hosts)} if hosts else {})


_SERVER = re.compile(r"(?P<host>[a-zA-Z0-9.-]*):(?P<port>\d+)")


class PostgresqlEngine(Engine):
    """One PostgreSQL database, through psycopg."""

    dialect = "postgresql"

    def __init__(self, url: SourceUrl, source: str, limits: Limits) -> None:
        self.name = url.database or "postgres"
        self._source = source
        self._limits = limits
        self._secrets = secrets_of(url)
        self._options = build_options(url)

    def connect(self) -> PostgresqlConnection:
        """Raises SourceUnreachable, SourceLoginFailed; SourceUnreadable: the database is missing or forbidden."""
        milliseconds = int(self._limits.seconds * 1000) + _GRACE  # a second fence: we cancel first
        settings = (
            "-c default_transaction_read_only=on "
            f"-c statement_timeout={milliseconds} -c idle_in_transaction_session_timeout={milliseconds} "
            # A backslash in a text is a letter, as the guard reads it, whatever the database says.
            f"-c standard_conforming_strings=on -c DateStyle=ISO -c extra_float_digits=1 -c bytea_output=hex "
            f"-c lock_timeout={int(self._limits.lock_seconds * 1000)}"
        )
        given: dict[str, Any] = {
            "connect_timeout": self._limits.connect_seconds,
            "application_name": "longthread",
        } | self._options
        given["options"] = f"{given.get('options', '')} {settings}".strip()
        try:
            raw = psycopg.connect(make_conninfo(**given))
        except (psycopg.Error, OSError, ValueError) as error:
            # The cause is not chained: drivers may print the connection string.
            reason = (scrub_message(error, self._secrets).strip().splitlines() or ["no answer"])[0][:300]
            raise self._classify_failure(error, f"{reason.rstrip('.')}.") from None
        raw.read_only = True
        self._refuse_store(raw)
        for type_name in ("date", "time", "timetz", "timestamp", "timestamptz"):
            raw.adapters.register_loader(type_name, _IsoText)
        for type_name in _TEXTS:
            raw.adapters.register_loader(type_name, _Text)
        set_json_loads(_document, raw)
        return PostgresqlConnection(raw, self._source, self._secrets)

    def _refuse_store(self, raw: psycopg.Connection[Any]) -> None:
        """Close the connection and raise SourceIsStore if the database holds a store, in any schema, also if this user
        may not read it. The server answers, so that no other host, user or pooler hides it."""
        try:
            holds_store = raw.execute(_STORES, [MIGRATIONS]).fetchone() is not None
            raw.rollback()
        except psycopg.Error as error:
            raw.close()
            raise self._classify_failure(
                error, f"{scrub_message(error, self._secrets).strip()[:300].rstrip('.')}."
            ) from None
        if holds_store:
            raw.close()
            raise SourceIsStore(source=self._source)

    def _classify_failure(self, error: Exception, reason: str) -> SourceError:
        """The error for a failed connection."""
        if _is_about_password(error):
            return SourceLoginFailed(source=self._source, reason=reason, variable="PGPASSWORD", file="~/.pgpass")
        if _NO_DATABASE.search(str(error)):
            return SourceUnreadable(source=self._source, reason=f"{reason} {NO_DATABASE}")
        return SourceUnreachable(source=self._source, reason=reason)

    def read_schema(self, connection: SourceConnection) -> Schema:
        """Three queries, however many tables there are."""
        tables = list(connection.execute(_TABLES))
        labels = {row[0]: row[2] if row[4] else f"{row[1]}.{row[2]}" for row in tables}
        primary: dict[int, tuple[str, ...]] = {}
        foreign: dict[int, list[ForeignKey]] = {}
        checked: dict[int, dict[str, tuple[str, ...]]] = {}
        for oid, kind, target, own, other, check in connection.execute(_KEYS):
            if kind == "p":
                primary[oid] = tuple(own)
            elif kind == "c":
                checked.setdefault(oid, {}).update(labels_of_checks(check, self.dialect))
            elif target in labels:
                foreign.setdefault(oid, []).append(ForeignKey(tuple(own), labels[target], tuple(other)))
        columns: dict[int, list[Column]] = {}
        for oid, name, type_name, nullable, comment, enumerated in connection.execute(_COLUMNS):
            is_key = name in primary.get(oid, ())
            listed = tuple(enumerated or checked.get(oid, {}).get(name.casefold(), ()))
            columns.setdefault(oid, []).append(Column(name, type_name, nullable, is_key, comment or None, listed))
        return Schema(
            Table(
                label=labels[oid],
                sql=quote_identifier(name) if visible else f"{quote_identifier(schema)}.{quote_identifier(name)}",
                kind="view" if kind in _KINDS else "table",
                comment=comment or None,
                columns=tuple(columns.get(oid, [])),
                primary_key=primary.get(oid, ()),
                foreign_keys=tuple(foreign.get(oid, [])),
                estimated_rows=int(rows) if rows >= 0 and kind != "v" else None,
            )
            for oid, schema, name, kind, visible, comment, rows in tables
        )

    def mark(self, connection: SourceConnection) -> str:
        """Hashes of the catalog, computed by the server: a large schema need not be sent."""
        digest = hashlib.sha256()
        shape = "SELECT md5(coalesce(string_agg(x::text, ',' ORDER BY x::text), '')) FROM ({}) x"
        tables = f"SELECT oid, nspname, relname, kind, visible, comment FROM ({_RELATIONS}) t"
        for query in (tables, _COLUMNS, _KEYS, _DEFINED):
            digest.update(str(connection.execute(shape.format(query)).first()).encode())
        return digest.hexdigest()

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The queries of views and materialized views."""
        return {
            name if visible else f"{schema}.{name}": sql for schema, name, visible, sql in connection.execute(_VIEWS)
        }

    def functions(self, connection: SourceConnection) -> frozenset[str]:
        """Own functions that are declared to write nothing and run with the caller's rights."""
        return frozenset(str(row[0]) for row in connection.execute(_FUNCTIONS))

    def list_functions(self, connection: SourceConnection) -> frozenset[str]:
        """All own functions except those of extensions."""
        return frozenset(str(row[0]) for row in connection.execute(_DEFINED))


_NO_DATABASE = re.compile(r"FATAL: +(database \S+ does not exist|permission denied for database)")
"""In another language the error is SourceUnreachable."""


def _is_about_password(error: Exception) -> bool:
    """Whether the password is missing or wrong. The message may be in any language."""
    if not isinstance(error, psycopg.Error):
        return False
    needed = error.pgconn is not None and error.pgconn.needs_password
    return needed or re.search(r"password|authentication failed", str(error)) is not None


class _Text(Loader):
    """Loads a value as text."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


class _IsoText(_Text):
    """Loads dates and times as ISO text: Python has no infinity, no year 0 and no year 10000."""

    def load(self, data: Buffer) -> str:
        return iso(super().load(data))


def _document(text: str | bytes) -> Any:
    found = json.loads(text, parse_float=Decimal)
    return "null" if found is None else found  # which is no NULL


class PostgresqlConnection(SourceConnection):
    """A connection whose transactions are read-only and rolled back."""

    def __init__(self, raw: psycopg.Connection[Any], source: str, secrets: list[str]) -> None:
        self._raw = raw
        self._source = source
        self._secrets = secrets

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        cursor = psycopg.RawCursor(self._raw) if parameters else self._raw.cursor()
        given = [Decimal(repr(value)) if isinstance(value, float) else value for value in parameters]  # as 0.1 is
        # Row by row, so that no large result is in memory; and by the extended protocol, which takes one statement.
        rows = cursor.stream(sql.encode(), given or None)
        with self._translate_errors():
            first = next(rows, None)
            names = [column.name for column in cursor.description or ()]
            columns = self._describe_columns(sql) if first is None else names
        # Without a declared precision it may be an average, or another quotient.
        quotients = {at for at, column in enumerate(cursor.description or ()) if column.precision is None}
        return Rows(columns, self._fetch_rows(first, rows, cursor), quotients=quotients)

    def _describe_columns(self, sql: str) -> list[str]:
        """The columns of a statement without rows, for which the driver has none."""
        line = self._raw.pgconn
        for prepared in (line.prepare(b"", sql.encode()), line.describe_prepared(b"")):
            if prepared.status != ExecStatus.COMMAND_OK:
                return []  # the transaction is over, or it cannot be prepared
        return [(prepared.fname(at) or b"").decode("utf-8", "replace") for at in range(prepared.nfields)]

    def _fetch_rows(
        self, first: Sequence[Any] | None, rows: Iterator[Sequence[Any]], cursor: psycopg.Cursor[Any]
    ) -> Iterator[Sequence[Any]]:
        try:
            with self._translate_errors():
                if first is not None:
                    yield first
                    yield from rows
        finally:
            with self._translate_errors():
                rows.close()  # type: ignore[attr-defined] # a generator: it cancels what is left of the result
                cursor.close()

    def interrupt(self) -> None:
        if not self._raw.closed:
            with contextlib.suppress(psycopg.Error, OSError):  # the server is gone: so is the statement
                self._raw.cancel_safe(timeout=_CANCEL_SECONDS)

    def lives(self) -> bool:
        """Whether the session is alive: the socket says so without a query."""
        try:
            while not self._raw.closed and select.select([self._raw.fileno()], [], [], 0)[0]:
                self._raw.pgconn.consume_input()  # notices, and at last that there is no more
        except (psycopg.Error, OSError, ValueError):
            return False
        return not self._raw.closed

    def reset(self) -> None:
        with self._translate_errors():
            self._raw.rollback()
            self._raw.autocommit = True
            self._raw.execute("DISCARD ALL")
            self._raw.autocommit = False
            self._raw.read_only = True

    def close(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self._raw.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            with contextlib.suppress(psycopg.Error):
                self._raw.rollback()
            raise self._translation(error) from error

    def _translation(self, error: psycopg.Error) -> Exception:
        message = scrub_message(error.diag.message_primary or error, self._secrets)
        hint = scrub_message(error.diag.message_hint or "", self._secrets)
        reason = " ".join(f"{message.rstrip('.')}. {hint}".split())
        if isinstance(error, postgres.QueryCanceled):
            return Interrupted()
        if isinstance(error, postgres.LockNotAvailable):
            return SourceLocked(source=self._source)
        if isinstance(error, postgres.ReadOnlySqlTransaction):
            return SqlRefused(reason=reason)
        if isinstance(error, postgres.AdminShutdown | postgres.IdleInTransactionSessionTimeout) or self._raw.closed:
            return SourceUnreachable(source=self._source, reason=reason)
        if error.sqlstate is None:
            return SourceFailed(source=self._source, reason=reason)
        return SqlFailed(reason=reason)

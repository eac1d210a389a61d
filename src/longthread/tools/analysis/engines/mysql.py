"""MySQL and MariaDB, through PyMySQL, in connections whose every transaction is read-only and is rolled back.

It limits the size of a row and never sends a plain password without TLS.
"""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import select
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
from pymysql.constants import ER, FIELD_TYPE
from pymysql.converters import escape_string
from pymysql.cursors import Cursor, SSCursor
from pymysql.protocol import MysqlPacket

from longthread.errors import (
    SourceError,
    SourceFailed,
    SourceLocked,
    SourceLoginFailed,
    SourceUnreachable,
    SourceUnreadable,
    SourceUnsupported,
    SqlFailed,
    SqlRefused,
)
from longthread.tools.analysis.address import SourceUrl, scrub_message, secrets_of
from longthread.tools.analysis.dialects.mysql import with_values
from longthread.tools.analysis.engine import NO_DATABASE, Engine, SourceConnection
from longthread.tools.analysis.limits import Interrupted, Limits
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.result import Rows, iso
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table, labels_of_type

_LARGEST = 64 * 2**20
"""Bytes of one row. PyMySQL has no limit, and a row of a thousand columns may have gigabytes."""
_PLAIN = frozenset({b"mysql_clear_password", b"dialog"})
Raw: TypeAlias = "pymysql.Connection[Any]"
_Value = Callable[[Any], Any]

_RESET = 0x1F
"""COM_RESET_CONNECTION, for which PyMySQL has no name."""
_GRACE = 10
"""Seconds after our own limit, when the server ends a statement by itself."""
_MODE = "IF(FIND_IN_SET('ONLY_FULL_GROUP_BY', @@sql_mode), 'ONLY_FULL_GROUP_BY', '')"
"""The guard parses texts as the default mode does. Only a flag that does not change this is kept."""
_JOINED = 1_000_000
"""Bytes of a GROUP_CONCAT: the default of 1,024 cuts silently."""
_READING = re.compile(r"[\s(]*(?:SELECT|WITH|VALUES|TABLE|EXPLAIN|DESCRIBE|DESC|SHOW)\b", re.I)
_STOPPED = frozenset({ER.QUERY_INTERRUPTED, ER.FILSORT_ABORT, 1969, 3024})
_READ_ONLY = 1792
_GONE = frozenset({0, 1053, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2014, 2055, 4031})
_NUMBERS = {
    FIELD_TYPE.TINY: int, FIELD_TYPE.SHORT: int, FIELD_TYPE.LONG: int, FIELD_TYPE.INT24: int, FIELD_TYPE.LONGLONG: int,
    FIELD_TYPE.YEAR: int, FIELD_TYPE.FLOAT: float, FIELD_TYPE.DOUBLE: float, FIELD_TYPE.DECIMAL: Decimal,
    FIELD_TYPE.NEWDECIMAL: Decimal,
}  # fmt: skip


class WireConnection(pymysql.Connection):
    """PyMySQL's connection with these limits."""

    _taken = 0

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        self._taken = 0
        return super()._read_packet(packet_type)  # type: ignore[no-any-return, no-untyped-call]

    def _read_bytes(self, num_bytes: int) -> bytes:
        self._taken += num_bytes
        if self._taken > _LARGEST:
            self._force_close()
            reason = f"a row has more than {_LARGEST:,} bytes. Select fewer columns, or LEFT(…) of them."
            raise SqlFailed(reason=reason)
        return super()._read_bytes(num_bytes)  # type: ignore[misc, no-any-return]

    def _force_close(self) -> None:
        result = getattr(self, "_result", None)
        if result is not None:  # else PyMySQL would read it to its end
            result.unbuffered_active = False
        super()._force_close()  # type: ignore[misc]

    def _process_auth(self, plugin_name: bytes, auth_packet: MysqlPacket, handler: Any = None) -> MysqlPacket:
        # Without TLS anybody could answer and ask for it, and PyMySQL would send it.
        if plugin_name in _PLAIN and not self._secure:  # type: ignore[attr-defined]
            reason = "the server wants the password in plain text, which is sent over TLS or a Unix socket alone"
            raise pymysql.OperationalError(2061, reason)
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc, no-any-return]


class MysqlConnection(SourceConnection):
    """One session. `kill` ends the statement of a session, over another connection."""

    def __init__(self, raw: Raw, source: str, secrets: list[str], limits: Limits, kill: Callable[[int], None]) -> None:
        self._raw = raw
        self._source = source
        self._secrets = secrets
        self._limits = limits
        self._kill = kill
        self._abandoned = False
        self._stopped = False
        """Whether the statement was interrupted: some functions then return a value."""
        # A second descriptor of the socket, for other threads.
        self._line = socket.socket(fileno=os.dup(raw._sock.fileno()))  # type: ignore[attr-defined]
        with contextlib.ExitStack() as undoing:
            undoing.callback(self.close)
            with self._translate_errors():
                self._settle()
            undoing.pop_all()

    def _settle(self) -> None:
        """Sets the session's variables."""
        waits = max(1, int(self._limits.lock_seconds))
        most = self._limits.seconds + _GRACE
        own = f"max_execution_time = {int(most * 1000)}"
        version = self._raw.get_server_info()  # type: ignore[no-untyped-call]
        if "mariadb" in str(version).casefold():
            # Its own bound of a recursive query ends it without a word.
            own = f"max_statement_time = {most}, max_recursive_iterations = 4294967295"
        self._do(
            f"SET NAMES utf8mb4, autocommit = 0, sql_mode = {_MODE}, lock_wait_timeout = {waits}, "
            f"innodb_lock_wait_timeout = {waits}, group_concat_max_len = {_JOINED}, {own}"
        )
        self._do("SET SESSION TRANSACTION READ ONLY")
        self._wait(None)  # a statement has a watch

    def _wait(self, seconds: float | None) -> None:
        self._raw._read_timeout = seconds  # type: ignore[attr-defined]

    def _do(self, sql: str) -> None:
        with contextlib.closing(self._raw.cursor(Cursor)) as cursor:
            cursor.execute(sql)

    def execute(self, sql: str) -> Rows:
        self._stopped = False
        with self._translate_errors(), contextlib.closing(self._raw.cursor(Cursor)) as cursor:
            cursor.execute(sql)
            shapes = _shapes(cursor)
            rows = [_convert_row(row, shapes) for row in cursor.fetchall()]
        self._check()
        return Rows(_names(cursor), iter(rows), _binary)

    def _check(self) -> None:
        if self._stopped:
            raise Interrupted

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> Rows:
        if not _READING.match(sql):  # a read-only transaction may change session settings
            raise SqlRefused(reason="it is no query.")
        text = with_values(sql, [_format_literal(value) for value in parameters]) if parameters else sql
        cursor = self._raw.cursor(SSCursor)
        self._stopped = False
        with self._translate_errors():
            cursor.execute(text)
            first = cursor.fetchone() if cursor.description else None
        return Rows(_names(cursor), self._fetch_rows(first, cursor), _binary, _find_computed_columns(cursor))

    def _fetch_rows(self, first: Sequence[Any] | None, cursor: SSCursor) -> Iterator[Sequence[Any]]:
        shapes = _shapes(cursor)
        row = first
        try:
            with self._translate_errors():
                while row is not None:
                    self._check()
                    yield _convert_row(row, shapes)
                    row = cursor.fetchone()
            self._check()
        finally:
            if row is not None:  # the server would go on sending
                self.interrupt()
            with contextlib.suppress(pymysql.Error, UnicodeError):
                cursor.close()

    def interrupt(self) -> None:
        self._stopped = True
        if self._raw.open:
            self._kill(self._raw.thread_id())  # type: ignore[no-untyped-call]

    def abandon(self) -> bool:
        """Shuts the socket down. The server ends the statement at its own time limit."""
        self._abandoned = True
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)
        return True

    def lives(self) -> bool:
        """Whether the session is alive: an idle one becomes readable only when the server has ended it."""
        try:
            return self._raw.open and not self._abandoned and not select.select([self._line], [], [], 0)[0]
        except (OSError, ValueError):  # closed
            return False

    def reset(self) -> None:
        self._wait(self._limits.connect_seconds)
        with self._translate_errors():
            self._raw._execute_command(_RESET, b"")  # type: ignore[attr-defined]
            self._raw._read_ok_packet()  # type: ignore[attr-defined]
            self._settle()

    def close(self) -> None:
        self._line.close()
        with contextlib.suppress(pymysql.Error):
            self._raw.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except pymysql.Error as error:
            raise self._translation(error) from error
        except UnicodeError as error:
            self._raw.close()  # in the middle of an answer
            raise SqlFailed(reason="a text in it is not UTF-8. Select HEX(…) of it.") from error
        except (OSError, ValueError) as error:  # the socket was shut down inside of TLS
            raise self._lost("the connection ended") from error

    def _translation(self, error: pymysql.Error) -> Exception:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        reason = " ".join(scrub_message(error.args[-1] if error.args else error, self._secrets).split()).rstrip(".")
        if number in _STOPPED:
            return Interrupted()
        if number == ER.LOCK_WAIT_TIMEOUT:
            return SourceLocked(source=self._source)
        if number == _READ_ONLY:
            return SqlRefused(reason=f"{reason}.")
        if number in _GONE or not self._raw.open:
            return self._lost(reason or "the connection ended")
        if isinstance(error, pymysql.InterfaceError):
            return SourceFailed(source=self._source, reason=f"{reason}.")
        return SqlFailed(reason=f"{reason}.")

    def _lost(self, reason: str) -> Exception:
        return Interrupted() if self._abandoned else SourceUnreachable(source=self._source, reason=f"{reason}.")


def _names(cursor: Cursor) -> list[str]:
    return [column[0] for column in cursor.description or ()]


def _find_computed_columns(cursor: Cursor) -> set[int]:
    """The places of computed columns, such as averages."""
    result = cursor._result  # type: ignore[attr-defined] # PyMySQL's description does not say it
    return {at for at, column in enumerate(result.fields or ()) if not column.org_name} if result else set()


def _shapes(cursor: Cursor) -> list[_Value | None]:
    """A converter for each column's text, or None."""
    return [_shape(int(column[1]), int(column[3] or 0)) for column in cursor.description or ()]


def _shape(kind: int, length: int) -> _Value | None:
    if kind == FIELD_TYPE.BIT:
        return lambda value: f"{int.from_bytes(value, 'big'):0{length}b}"
    if kind == FIELD_TYPE.JSON:
        return _document
    if kind in (FIELD_TYPE.DATETIME, FIELD_TYPE.TIMESTAMP):
        # Not Python's own type, which has neither a year 0 nor a day 0.
        return iso
    return _NUMBERS.get(kind)


def _convert_row(row: Sequence[Any], shapes: Sequence[_Value | None]) -> list[Any]:
    pairs = zip(row, shapes, strict=True)
    return [value if shape is None or value is None else shape(value) for value, shape in pairs]


def _binary(value: bytes) -> str:
    return f"0x{value.hex()}"


def _document(text: str) -> Any:
    found = json.loads(text, parse_float=Decimal)
    return text if found is None else found  # which is no NULL


def _format_literal(value: Any) -> str:
    """A parameter as a literal: PyMySQL has no server-side parameters."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        exact = format(Decimal(repr(value)), "f")  # as 0.1 is, where that has not more digits than a DECIMAL
        number = exact if len(exact) < 60 else repr(value)
        return f"({number})" if value < 0 else number  # a minus before it makes no comment
    return f"'{escape_string(str(value))}'"


_KILL_SECONDS = 5
_OPTIONS = frozenset({"unix_socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_key_password"})
_SWITCHES = frozenset({"ssl_disabled", "ssl_verify_cert", "ssl_verify_identity"})
_PASSWORDS = "~/.my.cnf"
_NO_DATABASE = frozenset({ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR})
_LOGIN = frozenset({ER.ACCESS_DENIED_ERROR, 1698, 3118, 4151})

_TABLES = """
    SELECT TABLE_NAME, TABLE_TYPE = 'VIEW', IF(TABLE_TYPE = 'VIEW', '', TABLE_COMMENT), TABLE_ROWS
    FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED', 'VIEW')
    ORDER BY TABLE_NAME
"""
_COLUMNS = """
    SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE = 'YES', COLUMN_COMMENT, COLUMN_KEY = 'PRI'
    FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() AND FIND_IN_SET('select', PRIVILEGES)
    ORDER BY TABLE_NAME, ORDINAL_POSITION
"""
_KEYS = """
    SELECT TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME
    FROM information_schema.KEY_COLUMN_USAGE
    WHERE TABLE_SCHEMA = DATABASE() AND (CONSTRAINT_NAME = 'PRIMARY' OR REFERENCED_TABLE_SCHEMA = DATABASE())
    ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION
"""
_MARKED = (
    "SELECT CONCAT_WS(' ', QUOTE(TABLE_NAME), TABLE_TYPE, QUOTE(TABLE_COMMENT)) AS line FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = DATABASE()",
    "SELECT CONCAT_WS(' ', QUOTE(TABLE_NAME), QUOTE(COLUMN_NAME), ORDINAL_POSITION, COLUMN_TYPE, IS_NULLABLE, "
    "COLUMN_KEY, PRIVILEGES, QUOTE(COLUMN_COMMENT)) AS line FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = DATABASE()",
    "SELECT CONCAT_WS(' ', QUOTE(TABLE_NAME), QUOTE(CONSTRAINT_NAME), QUOTE(COLUMN_NAME), ORDINAL_POSITION, "
    "QUOTE(REFERENCED_TABLE_NAME), QUOTE(REFERENCED_COLUMN_NAME)) AS line FROM information_schema.KEY_COLUMN_USAGE"
    " WHERE TABLE_SCHEMA = DATABASE()",
    "SELECT QUOTE(ROUTINE_NAME) AS line FROM information_schema.ROUTINES"
    " WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'FUNCTION'",
)
_MARK = """
    SELECT count(*), BIT_XOR(CAST(CONV(LEFT(MD5(line), 16), 16, 10) AS UNSIGNED)),
           BIT_XOR(CAST(CONV(RIGHT(MD5(line), 16), 16, 10) AS UNSIGNED))
    FROM ({}) shape
"""
_DEFINED = (
    "SELECT ROUTINE_NAME FROM information_schema.ROUTINES"
    " WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE = 'FUNCTION'"
)
_VIEWS = "SELECT TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE()"


class MysqlEngine(Engine):
    """One database of a MySQL or MariaDB server. Its stored functions are never allowed: they might write."""

    dialect = "mysql"

    def __init__(self, url: SourceUrl, source: str, limits: Limits) -> None:
        if not url.database:
            reason = "the URL names no database. Write mysql://user@host/DATABASE."
            raise SourceUnsupported(source=source, reason=reason)
        self.name = url.database
        self._source = source
        self._limits = limits
        password = url.password or os.environ.get("MYSQL_PWD") or _option_file_password()
        self._secrets = [*secrets_of(url), *filter(None, [password])]
        self._given = _options(url, source) | {"charset": "utf8mb4", "conv": {}, "autocommit": None}
        self._given["password"] = password.encode("utf-8", "surrogateescape")
        self._context = None if any(name.startswith("ssl_") for name in self._given) else _make_unverified_context()

    def connect(self) -> MysqlConnection:
        """Raises SourceUnreachable, SourceLoginFailed; SourceUnreadable: the database is missing or forbidden."""
        try:
            raw = self._connect_raw(self._limits.connect_seconds, self.name)
        except (pymysql.Error, OSError, ValueError, RuntimeError) as error:
            # The cause is not chained: it may hold what was sent.
            number, text = error.args[0] if error.args else 0, error.args[-1] if error.args else "no answer"
            reason = (scrub_message(text, self._secrets).strip().splitlines() or ["no answer"])[0][:300]
            raise self._classify_failure(number, f"{reason.rstrip('.')}.") from None
        return MysqlConnection(raw, self._source, self._secrets, self._limits, self._kill)

    def _classify_failure(self, number: object, reason: str) -> SourceError:
        """The error for a failed connection, by the server's error number."""
        if number in _LOGIN:
            return SourceLoginFailed(source=self._source, reason=reason, variable="MYSQL_PWD", file=_PASSWORDS)
        if number in _NO_DATABASE:
            return SourceUnreadable(source=self._source, reason=f"{reason} {NO_DATABASE}")
        return SourceUnreachable(source=self._source, reason=reason)

    def _connect_raw(self, seconds: float, database: str | None) -> Raw:
        waits: dict[str, Any] = {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
        if self._context is None:
            return WireConnection(**self._given, **waits, database=database)
        raw: Raw = WireConnection(**self._given, **waits, database=database, ssl_disabled=True, defer_connect=True)
        # PyMySQL does the same (TLS where the server has it), but would load all authorities each time.
        raw.ssl, raw.ctx = True, self._context  # type: ignore[attr-defined]
        raw.connect()
        return raw

    def _kill(self, session: int) -> None:
        """Kills the statement of a session. Never raises."""
        with (
            contextlib.suppress(pymysql.Error, OSError, ValueError, RuntimeError),
            contextlib.closing(self._connect_raw(_KILL_SECONDS, None)) as other,
        ):
            other.query(f"KILL QUERY {session}")

    def read_schema(self, connection: SourceConnection) -> Schema:
        """Three queries, however many tables there are."""
        columns: dict[str, list[Column]] = {}
        for table, name, type_name, nullable, comment, is_key in connection.execute(_COLUMNS):
            known = columns.setdefault(table, [])
            labels = labels_of_type(type_name)
            known.append(Column(name, type_name, bool(nullable), bool(is_key), comment or None, labels))
        primary: dict[str, list[str]] = {}
        foreign: dict[str, dict[str, tuple[str, list[str], list[str]]]] = {}
        for table, key, column, target, referenced in connection.execute(_KEYS):
            if target is None:
                primary.setdefault(table, []).append(column)
            elif target in columns:
                own = foreign.setdefault(table, {}).setdefault(key, (target, [], []))
                own[1].append(column)
                own[2].append(referenced)
        return Schema(
            (
                Table(
                    label=name,
                    sql=quote_identifier(name, self.dialect),
                    kind="view" if is_view else "table",
                    comment=comment or None,
                    columns=tuple(columns[name]),
                    primary_key=tuple(primary.get(name, ())),
                    foreign_keys=tuple(
                        ForeignKey(tuple(own), target, tuple(other))
                        for target, own, other in foreign.get(name, {}).values()
                    ),
                    estimated_rows=None if is_view or rows is None else int(rows),
                )
                for name, is_view, comment, rows in connection.execute(_TABLES)
                if name in columns
            ),
            home=self.name,
        )

    def mark(self, connection: SourceConnection) -> str:
        """Hashes of the catalog, computed by the server: a large schema need not be sent."""
        return " ".join(str(connection.execute(_MARK.format(lines)).first()) for lines in _MARKED)

    def views(self, connection: SourceConnection) -> dict[str, str]:
        """The queries of views that the account may see."""
        return {name: sql for name, sql in connection.execute(_VIEWS) if sql}

    def list_functions(self, connection: SourceConnection) -> frozenset[str]:
        """The stored functions that the account may call."""
        return frozenset(str(row[0]).casefold() for row in connection.execute(_DEFINED))


def _make_unverified_context() -> ssl.SSLContext:
    """TLS without certificate checks."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _option_file_password() -> str:
    """The client password in the user's option file."""
    options = configparser.RawConfigParser(allow_no_value=True, strict=False)
    try:
        options.read(Path(_PASSWORDS).expanduser(), "utf-8")
        return (options.get("client", "password", fallback=None) or "").strip("'\"")
    except (OSError, ValueError, RuntimeError, configparser.Error):  # unreadable
        return ""


def _options(url: SourceUrl, source: str) -> dict[str, Any]:
    """The driver's options from a URL. Raises SourceUnsupported for an unknown one: some would let a server read
    files."""
    given: dict[str, Any] = {
        "host": url.host,
        "port": url.port or 0,
        "user": url.username,
        "program_name": "longthread",
    }
    for name, values in url.query.items():
        text = values[-1]
        if name in _OPTIONS:
            given[name] = text
        elif name in _SWITCHES:
            given[name] = text.casefold() in ("1", "true", "yes", "on")
        elif (name, text.casefold()) != ("charset", "utf8mb4"):  # the default
            known = ", ".join(["charset=utf8mb4", *sorted(_OPTIONS | _SWITCHES)])
            raise SourceUnsupported(source=source, reason=f"the option {name} is not known; known are {known}.")
    return given

"""MySQL and MariaDB, through PyMySQL."""

from __future__ import annotations

import configparser
import contextlib
import os
import ssl
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import ER

from longthread.errors import SourceError, SourceLoginFailed, SourceUnreachable, SourceUnreadable, SourceUnsupported
from longthread.tools.analysis.address import SourceUrl, scrub_message, secrets_of
from longthread.tools.analysis.engine import NO_DATABASE, Engine, SourceConnection
from longthread.tools.analysis.engines.mysqlsession import MysqlConnection, Raw, WireConnection
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table, labels_of_type

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

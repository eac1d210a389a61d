"""PostgreSQL databases for tests, made from a template. A test that only wrote rows leaves its database to the next.

To make a database and to drop it costs the server more than most tests do. So rows are taken out where all else is as
it was made: nobody is connected, no statement has touched the catalog, nothing is known of what tables hold. Otherwise
the database is dropped.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from longthread.tools.analysis.address import SourceUrl

PATIENCE = 1.0
"""Seconds in which a connection that was closed is gone from the server too."""
PAGES = 8
"""Pages of a table that may be left: what was deleted is in them still, and statements are planned by their number."""
_CATALOGS = re.findall(
    r"\w+",
    "pg_attrdef pg_attribute pg_constraint pg_default_acl pg_depend pg_description pg_event_trigger pg_extension "
    "pg_index pg_inherits pg_largeobject_metadata pg_namespace pg_policy pg_proc pg_publication pg_rewrite pg_sequence "
    "pg_statistic pg_statistic_ext pg_trigger pg_type",
)
_WRITES = " + ".join(f"pg_stat_get_tuples_{done}(oid)" for done in ("inserted", "updated", "deleted"))
_CHANGED = (
    # Whatever changes a schema writes to one of these. A connection's writes are counted before it is gone.
    f"SELECT 'written', sum({_WRITES})::text, NULL FROM pg_class WHERE oid IN "
    + "('{}'::regclass)".format("'::regclass, '".join(_CATALOGS))
    + " UNION ALL SELECT 'pg_auth_members', count(*)::text, max(xmin::text::bigint)::text FROM pg_auth_members"
    " UNION ALL SELECT 'pg_shdepend', count(*)::text, max(xmin::text::bigint)::text FROM pg_shdepend"
    " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
_OWN = "relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace, 'pg_toast'::regnamespace)"
_TABLES = f"SELECT oid::regclass::text FROM pg_class WHERE relkind = 'r' AND {_OWN} ORDER BY 1"
_RELATIONS = (
    "SELECT oid::text, relowner::text, concat_ws(' ', relname, relkind, relpersistence, relchecks, relhasrules, "
    "relhastriggers, relrowsecurity, relforcerowsecurity, CASE relkind WHEN 'r' THEN reltuples END, reloptions, "
    f"relacl) FROM pg_class WHERE {_OWN} ORDER BY oid"
)
_SETTINGS = (
    "SELECT 'settings', count(*)::text, NULL FROM pg_db_role_setting WHERE setdatabase IN (0, (SELECT oid FROM "
    "pg_database WHERE datname = current_database()))"
)
_COUNT_ANEW = (
    "SELECT setval(seqrelid, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL"
)
_ANY_ORDER = "SET LOCAL lock_timeout = '1s'; SET LOCAL session_replication_role = replica"
_GROWN = (
    f"SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'i') AND {_OWN} AND pg_relation_size(oid) > {PAGES * 8192}"
)
_OTHERS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend'"
)


@contextmanager
def database(server: str, template: str | None = None) -> Iterator[str]:
    """The URL of a database that is dropped at the end."""
    with psycopg.connect(server, autocommit=True) as connection:
        name = _made(connection, template)
    try:
        yield _url(server, name)
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            _drop(connection, name)


def _made(connection: psycopg.Connection[Any], template: str | None) -> str:
    name = f"longthread_test_{os.getpid()}_{os.urandom(4).hex()}"
    # The files of so small a template are copied sooner than its pages are written to the log.
    like = f" TEMPLATE {template} STRATEGY FILE_COPY" if template else " STRATEGY FILE_COPY"
    connection.execute(f"CREATE DATABASE {name}{like}".encode())
    return name


def _drop(connection: psycopg.Connection[Any], name: str) -> None:
    connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _url(server: str, name: str) -> str:
    return replace(SourceUrl.parse(server), database=name).text()


@dataclass
class _Clean:
    """A database as its template is, and a connection that stays open to clean it."""

    name: str
    connection: psycopg.Connection[Any]
    tables: list[str]
    kept: list[str]
    print: list[Any]


class Databases:
    """Lends databases with the schema of a template and nothing else."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._admin = psycopg.connect(server, autocommit=True)
        self._clean: list[_Clean] = []

    @contextmanager
    def lent(self, *, new: bool = False) -> Iterator[str]:
        """The URL of a database for one test; a `new` one is this test's alone."""
        held = self._clean.pop() if self._clean and not new else self._new()
        try:
            yield _url(self._server, held.name)
        finally:
            if not new and _is_cleaned(held):
                self._clean.append(held)
            else:
                self._gone(held)

    def close(self) -> None:
        """Drop what is left."""
        for held in self._clean:
            self._gone(held)
        self._admin.close()

    def _new(self) -> _Clean:
        name = _made(self._admin, self._template)
        connection = psycopg.connect(_url(self._server, name), autocommit=True)
        tables = [table for (table,) in connection.execute(_TABLES.encode()).fetchall()]
        full = _full(connection, tables)
        held = _Clean(name, connection, [table for table in tables if table not in full], full, [])
        held.print = _print(held)
        return held

    def _gone(self, held: _Clean) -> None:
        held.connection.close()
        _drop(self._admin, held.name)


def _is_cleaned(held: _Clean) -> bool:
    """Whether a database is again as its template is."""
    with suppress(psycopg.Error):  # a test may cut every connection, drop tables, hold locks
        if not _is_left(held.connection):
            return False
        if full := _full(held.connection, held.tables):
            deleted = ";".join(f"DELETE FROM {table}" for table in full)
            held.connection.execute(f"BEGIN; {_ANY_ORDER}; {deleted}; COMMIT".encode())
        held.connection.execute(_COUNT_ANEW.encode())
        return _print(held) == held.print and held.connection.execute(_GROWN.encode()).fetchall() == [(0,)]
    return False


def _is_left(connection: psycopg.Connection[Any]) -> bool:
    """Whether nobody else is connected."""
    until = time.monotonic() + PATIENCE
    while connection.execute(_OTHERS.encode()).fetchall() != [(0,)]:
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def _full(connection: psycopg.Connection[Any], tables: list[str]) -> list[str]:
    """The tables that hold rows."""
    asked = ", ".join(f"EXISTS (SELECT FROM {table})" for table in tables)
    found = connection.execute(f"SELECT {asked}".encode()).fetchone()
    assert found is not None
    return [table for table, is_full in zip(tables, found, strict=True) if is_full]


def _print(held: _Clean) -> list[Any]:
    """What differs when anything but the rows of a table has changed."""
    rows = "".join(f" UNION ALL (SELECT t::text, NULL, NULL FROM {table} t ORDER BY 1)" for table in held.kept)
    asked = f"{_CHANGED} UNION ALL {_SETTINGS} UNION ALL ({_RELATIONS}){rows}"
    return held.connection.execute(asked.encode()).fetchall()

"""A Longthread of the next schema version, and stores of other versions: how upgrades are tested."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg
import pytest

from longthread.cli.commands import db
from longthread.store import schema as schema_module
from longthread.store.backends import sqlite
from longthread.store.maintenance import space
from longthread.store.schema import SCHEMA_VERSION, schema

NEXT = SCHEMA_VERSION + 1


def become_next(patch: pytest.MonkeyPatch, upgrade: str = "SELECT 1;", *, views: str = "") -> None:
    """Make this Longthread one of the next schema version, with this upgrade on both backends. `views` comes after the
    views."""

    def next_schema(dialect: str, part: str) -> str:
        if part == f"upgrade_{SCHEMA_VERSION}":
            return upgrade
        return schema.__wrapped__(dialect, part) + views * (part == "views")

    for module in (schema_module, db, space):
        patch.setattr(module, "SCHEMA_VERSION", NEXT)
    for backend in (schema_module, sqlite):
        patch.setattr(backend, "schema", next_schema)


def set_version(address: str, version: int) -> None:
    """Let a store say that it has another schema version."""
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file:
            file.execute(f"PRAGMA user_version = {version}")
        return
    with psycopg.connect(address) as connection:
        connection.execute("DELETE FROM longthread_migrations")
        connection.execute("INSERT INTO longthread_migrations VALUES (%s, '', '')", [version])

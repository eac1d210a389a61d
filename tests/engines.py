"""The engines that a source may have, for tests that ask the same of each."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest
from tests import mysqlserver

ENGINES = [
    "sqlite",
    "duckdb",
    pytest.param("postgresql", marks=pytest.mark.postgres),
    pytest.param("mysql", marks=pytest.mark.mysql),
]


def made_database(request: pytest.FixtureRequest, script: str, folder: Path) -> str:
    """Run a script in a new database of the engine that is the parameter of a fixture, and return its address."""
    path = folder / f"made.{request.param}"
    if request.param == "sqlite":
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
    elif request.param == "duckdb":
        with closing(duckdb.connect(str(path))) as base:
            base.execute(script)
    elif request.param == "mysql":
        url = str(request.getfixturevalue("mysql_url"))
        mysqlserver.run(url, script)
        return url
    else:
        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(script.encode())
        return url
    return str(path)

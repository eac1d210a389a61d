"""A store at version 26 of the schema, made by the code of commit 21aa923.

In it are a thread with a row in every table (`full`), one with forty runs of which 29 are in a bundle (`t`), one of a
LangGraph application (`graph`), and questions that are wishes to go on (`words`). Beside the rows are that
code's exports of them.
"""

from __future__ import annotations

import lzma
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

FOLDER = Path(__file__).parent / "version_26"


def read(name: str) -> str:
    """What one of the files holds."""
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes()).decode()


def make_version_26(address: str) -> str:
    """Make the store in an empty database, whose address comes back."""
    if "://" in address:
        with psycopg.connect(address) as connection:
            connection.execute(read("postgres.sql").encode())
    else:
        with closing(sqlite3.connect(address)) as file:
            file.executescript(read("sqlite.sql"))
    return address

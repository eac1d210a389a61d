"""A word that is planted everywhere, and looked for everywhere: in all tables, in what they hold packed, and in the
files."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psycopg

from longthread.memory.index.postings import hash_of
from longthread.memory.index.terms import terms
from longthread.messages.fields import _expand
from longthread.store import run_rows

CANARY = "kanarienvogel4711"


def marks(*vectors: bytes) -> list[bytes]:
    """The bytes by which it is known: the word itself, its terms as the indexes have them, vectors of texts with it."""
    hashes = [hash_of(term).to_bytes(8, "little") for term in terms(CANARY)]
    return [CANARY.encode(), *hashes, *vectors]


def places(address: str, wanted: Sequence[bytes]) -> set[str]:
    """The columns in which any of it stands, in any table of the database."""
    found: set[str] = set()
    for table, column, value in _values(address):
        texts = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value]
        texts += [_unpacked(text) for text in texts]
        if any(mark in text for mark in wanted for text in texts):
            found.add(f"{table}.{column}")
    return found


def _unpacked(data: bytes) -> bytes:
    """What is packed in bytes, in each of the ways that there are; nothing where they are none of these."""
    found = []
    for unpack in (zlib.decompress, _expand, run_rows._expand_body, lambda data: zlib.decompress(data[1:])):
        with suppress(zlib.error, ValueError, LookupError):
            found.append(unpack(data))
    return b"".join(found)


def _values(address: str) -> Iterator[tuple[str, str, Any]]:
    if "://" not in address:
        with closing(sqlite3.connect(address)) as file:
            names = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            yield from _rows(file, names, {})
    else:
        with psycopg.connect(address, autocommit=True) as server:
            tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            vectors = server.execute(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND udt_name = 'vector'"
            ).fetchall()
            yield from _rows(server, [row[0] for row in server.execute(tables)], dict.fromkeys(vectors, True))


def _rows(
    connection: Any, names: Sequence[str], vectors: dict[tuple[str, str], bool]
) -> Iterator[tuple[str, str, Any]]:
    for name in names:
        cursor = connection.execute(f'SELECT * FROM "{name}"')
        columns = [column[0] for column in cursor.description]
        for row in cursor.fetchall():
            for column, value in zip(columns, row, strict=True):
                if value is None:
                    continue
                plain = value if isinstance(value, str | bytes) and (name, column) not in vectors else None
                yield name, column, str(value) if plain is None else plain


def in_files(address: str, wanted: Sequence[bytes]) -> set[str]:
    """The files of the database in which any of it stands; those of a server on another machine cannot be read."""
    if "://" not in address:
        paths = [Path(f"{address}{ending}") for ending in ("", "-wal", "-shm")]
    else:
        with psycopg.connect(address, autocommit=True) as server:
            server.execute("CHECKPOINT")
            [[folder, oid]] = server.execute(
                "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
            ).fetchall()
        paths = list((Path(folder) / "base" / str(oid)).glob("*"))
    found = set()
    for path in paths:
        if path.is_file():
            data = path.read_bytes()
            found |= {path.name for mark in wanted if mark in data}
    return found


def in_folder(folder: Path, wanted: Sequence[bytes]) -> set[str]:
    """The files below a folder, by their paths in it, in which any of it stands. Some go while others are read."""
    found = set()
    for path in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError):
            data = path.read_bytes() if path.is_file() else b""
            if any(mark in data for mark in wanted):
                found.add(str(path.relative_to(folder)))
    return found

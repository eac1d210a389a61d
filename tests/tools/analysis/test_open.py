from __future__ import annotations

import asyncio
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from longthread.cli.whole_store import output
from longthread.errors import (
    InvalidInput,
    LongthreadError,
    SourceEmpty,
    SourceLocked,
    SourceNotFound,
    SourceUnreachable,
    SourceUnreadable,
    SourceUnsupported,
)
from longthread.store.transfer.foreign import open_foreign
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source

Opened = Callable[..., Awaitable[Source]]


async def test_the_demo_is_a_source(demo: Source) -> None:
    assert (demo.spec, demo.name, demo.dialect) == ("demo", "spaceflight", "sqlite")
    assert len(await demo.fingerprint()) == 16


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("missing.sqlite", None, SourceNotFound, "no source at"),
        ("empty.sqlite", b"", SourceEmpty, "no tables"),
        ("fake.sqlite", b"hello, this is no database at all" * 50, SourceUnreadable, "not a SQLite database"),
        ("fake.db", b"\x00" * 4096, SourceUnreadable, "not a SQLite database"),
        ("torn.sqlite", b"SQLite format 3\x00" + b"\xff" * 2000, SourceUnreadable, "database"),
        ("fake.duckdb", b"nothing of the kind" * 100, SourceUnreadable, "not a DuckDB database"),
        ("picture.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 20, SourceUnreadable, "binary file"),
        ("noise.csv", bytes(range(1, 256)) * 9, SourceUnreadable, "binary file"),
        ("nobodys.csv", b"a,b\n1,\x81\xff\x98\n", SourceUnreadable, "UTF-8"),
        ("nothing.csv", b"", SourceEmpty, "no tables"),
        ("broken.json", b'{"a": 1', SourceUnreadable, "broken.json"),
        ("fake.parquet", b"PAR1 and nothing else", SourceUnreadable, "fake.parquet"),
        ("letter.docx", b"PK\x03\x04", SourceUnsupported, "kind is not known"),
    ],
)
async def test_a_file_that_is_no_source_says_why(
    tmp_path: Path, name: str, content: bytes | None, error: type[LongthreadError], says: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=says) as raised:
        await open_source(str(path))
    assert name in str(raised.value)


async def test_a_database_without_tables_is_empty(make_sqlite: Any) -> None:
    with pytest.raises(SourceEmpty):
        await open_source(str(make_sqlite("CREATE TABLE t (a); DROP TABLE t;")))


async def test_a_folder_without_data_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(SourceUnreadable, match=r"no data files \(CSV, TSV, Parquet, JSON, JSON Lines and Excel"):
        await open_source(str(tmp_path))


@pytest.mark.parametrize("spec", ["", "   ", "\0", "x" * 10_000, "~nobody-of-that-name/x.csv"])
async def test_senseless_paths_are_not_found(spec: str) -> None:
    with pytest.raises(SourceNotFound) as raised:
        await open_source(spec)
    assert len(str(raised.value)) < 500


async def test_a_locked_sqlite_file_says_so(opened: Opened, make_sqlite: Any) -> None:
    path = make_sqlite("CREATE TABLE t (a INTEGER)")
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - it is another program, and only its pipe is read
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"ready"
        with pytest.raises(SourceLocked, match="locked by another program"):
            await opened(path, lock_seconds=0.1)
        other.communicate()
    assert await (await opened(path)).fingerprint()


async def test_a_locked_duckdb_file_says_so(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "busy.duckdb"
    code = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); c.execute('CREATE TABLE t (a INT)'); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(  # noqa: ASYNC220 - it is another program, and only its pipe is read
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"ready"
        with pytest.raises(SourceLocked):
            await opened(path)
        other.communicate()
    assert (await opened(path)).dialect == "duckdb"


async def test_the_same_duckdb_file_can_be_opened_twice(opened: Opened, tmp_path: Path, ask: Any) -> None:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS a")
    first, second = await opened(tmp_path / "x.duckdb"), await opened(f"duckdb:///{tmp_path}/x.duckdb")
    for source in (first, second):
        assert (await ask(source, "run_sql", sql="SELECT a FROM t"))["data"]["rows"] == [[7]]


async def test_a_database_in_wal_mode_is_read_while_it_is_written(opened: Opened, tmp_path: Path, ask: Any) -> None:
    path = tmp_path / "wal.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);")
        source = await opened(path)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO t VALUES (2)")
        assert (await ask(source, "run_sql", sql="SELECT a FROM t"))["data"]["rows"] == [[1]]
        writer.execute("COMMIT")
        assert (await ask(source, "run_sql", sql="SELECT a FROM t"))["data"]["rows"] == [[1], [2]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_wal_database_in_a_read_only_folder(opened: Opened, tmp_path: Path, ask: Any) -> None:
    folder = tmp_path / "frozen"
    folder.mkdir()
    with closing(sqlite3.connect(folder / "wal.sqlite")) as writer:
        writer.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);")
    folder.chmod(0o555)
    try:
        source = await opened(folder / "wal.sqlite")
        assert (await ask(source, "run_sql", sql="SELECT a FROM t"))["data"]["rows"] == [[1]]
    finally:
        folder.chmod(0o755)


async def test_urls_open_files(opened: Opened, make_sqlite: Any) -> None:
    source = await opened(f"sqlite:///{make_sqlite('CREATE TABLE t (a)')}")
    assert source.dialect == "sqlite"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("oracle://me:hunter2@db.example/x", SourceUnsupported),
        ("snowflake://me:hunter2@account/x", SourceUnsupported),
        ("postgresql://me:hunter2@host:port/x", InvalidInput),
        ("postgresql://me:hunter2@[::1/x", InvalidInput),
        ("sqlite:////nowhere/hunter2-not/../x.db?password=hunter2", SourceNotFound),
        ("postgresql//me:hunter2@host/x", SourceNotFound),
        ("sqlite://", SourceEmpty),
        ("duckdb:///:memory:", SourceEmpty),
    ],
)
async def test_bad_urls_are_refused_without_their_password(spec: str, error: type[LongthreadError]) -> None:
    with pytest.raises(error) as raised:
        await open_source(spec)
    told = str(raised.value).replace("hunter2-not", "")
    assert "hunter2" not in told
    assert raised.value.__cause__ is None or "hunter2@" not in str(raised.value.__cause__)


async def test_a_server_that_does_not_answer_is_unreachable() -> None:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with pytest.raises(SourceUnreachable, match="refused") as raised:
            await open_source(f"postgresql+psycopg2://me:hunter2@127.0.0.1:{port}/x?password=hunter2")
    assert "hunter2" not in f"{raised.value}{raised.value.__cause__}{raised.value.details}"
    assert f"127.0.0.1:{port}" in str(raised.value)


async def _as_source(path: Path, isolated: bool) -> None:
    async with await open_source(str(path), limits=Limits(isolated=isolated)) as source:
        assert (await source.schema()).tables


async def _as_anothers(path: Path) -> None:
    async with open_foreign(str(path)) as foreign:
        assert foreign.tables is not None


async def _as_a_place_for_an_export(path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a SQLite database"), output(path, "store.db", force=True):
        raise AssertionError("it must not be written")


@pytest.mark.parametrize("name", ["shop.sqlite", "shop"])
@pytest.mark.parametrize(
    "look",
    [
        lambda path: _as_source(path, isolated=True),
        lambda path: _as_source(path, isolated=False),
        _as_anothers,
        _as_a_place_for_an_export,
    ],
    ids=["source", "source in this process", "another's", "export"],
)
async def test_who_has_a_database_open_in_this_process_keeps_its_locks(
    tmp_path: Path, make_sqlite: Any, name: str, look: Callable[[Path], Awaitable[None]]
) -> None:
    path = make_sqlite("CREATE TABLE t (a)").rename(tmp_path / name)
    other = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('INSERT INTO t VALUES (2)')"
    with closing(sqlite3.connect(path, isolation_level=None)) as ours:
        ours.execute("BEGIN IMMEDIATE")
        ours.execute("INSERT INTO t VALUES (1)")
        await look(path)
        command = [sys.executable, "-c", other]
        tried = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        ours.execute("COMMIT")
    assert "database is locked" in tried.stderr


@pytest.mark.parametrize("name", ["x.db", "x.sqlite", "x", "x.duckdb", "x.csv"])
async def test_a_database_is_known_by_what_is_in_it(tmp_path: Path, make_sqlite: Any, name: str) -> None:
    made = make_sqlite("CREATE TABLE t (a)").rename(tmp_path / name)
    async with await open_source(str(made)) as source:
        assert source.dialect == "sqlite"
    made.unlink()
    with closing(duckdb.connect(str(made))) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
    async with await open_source(str(made)) as source:
        assert source.dialect == "duckdb"

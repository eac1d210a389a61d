"""Longthread's store and its data folder are never a source, however they are named."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from longthread import Catalog
from longthread.errors import LongthreadError, SourceEmpty, SourceError, SourceIsStore, SourceNotFound
from longthread.settings import Settings
from longthread.store.open import open_store
from longthread.tools.analysis.address import SourceUrl
from longthread.tools.analysis.open import open_source
from longthread.tools.own_files import OwnFiles
from longthread.tools.sources import Opener
from longthread.tools.trial import open_trial

pytestmark = pytest.mark.one_backend

CSV = "id,name\n1,one\n"


@pytest.fixture
def data(tmp_path: Path, sqlite_template: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with a store, what SQLite keeps beside it, a key and an upload. The working folder is beside it."""
    folder = tmp_path / "data"
    upload = folder / "uploads" / "sources" / "1"
    upload.mkdir(parents=True)
    shutil.copyfile(sqlite_template, folder / "conversations.db")
    for name in ("conversations.db-wal", "conversations.db-shm", "secret.key", "mine.csv"):
        (folder / name).write_text(CSV)
    (folder / "postgres" / "base").mkdir(parents=True)
    (folder / "postgres" / "base" / "1259").write_text(CSV)
    (upload / "sales.csv").write_text(CSV)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return folder


def settings_of(data: Path, **given: Any) -> Settings:
    return Settings.of(data_dir=data, sql_isolated=False, **given)


async def opens(spec: str, settings: Settings) -> None:
    opener = Opener(settings)
    try:
        await (await opener.open(spec, "ada")).close()
    finally:
        await opener.close()


def linked(make: Callable[[Path, Path], None], to: str, name: str) -> Callable[[Path], str]:
    def spec(data: Path) -> str:
        made = Path(name).absolute()
        made.parent.mkdir(exist_ok=True)
        make(made, data / to)
        return name

    return spec


SPELLINGS: dict[str, Callable[[Path], str]] = {
    "its path": lambda data: str(data / "conversations.db"),
    "a relative path": lambda data: "../data/conversations.db",
    "a path with dots": lambda data: f"{data}/uploads/../conversations.db",
    "a URL": lambda data: f"sqlite:///{data / 'conversations.db'}",
    "a relative URL": lambda data: "sqlite:///../data/conversations.db",
    "a URL with options": lambda data: f"sqlite:///{data / 'conversations.db'}?mode=ro",
    "a URL of DuckDB": lambda data: f"duckdb:///{data / 'conversations.db'}",
    "an encoding": lambda data: f"{data / 'conversations.db'}?encoding=utf-8",
    "a link": linked(Path.symlink_to, "conversations.db", "link.db"),
    "a link to the folder": lambda data: f"{_link(data)}/conversations.db",
    "another name of the file": linked(Path.hardlink_to, "conversations.db", "other.db"),
    "another name of the key": linked(Path.hardlink_to, "secret.key", "key.csv"),
    "a link to the key": linked(Path.symlink_to, "secret.key", "key.csv"),
    "another name of the log": linked(Path.hardlink_to, "conversations.db-wal", "wal.csv"),
    "another name of a server's file": linked(Path.hardlink_to, "postgres/base/1259", "table.csv"),
    "the log": lambda data: str(data / "conversations.db-wal"),
    "the folder": str,
    "a folder in it": lambda data: str(data / "postgres" / "base"),
    "the key": lambda data: str(data / "secret.key"),
    "a folder with a link": lambda data: str(Path(linked(Path.symlink_to, "secret.key", "f/k.csv")(data)).parent),
    "a folder with its file": lambda data: str(Path(linked(Path.hardlink_to, "secret.key", "f/k.csv")(data)).parent),
}


def _link(data: Path) -> str:
    Path("elsewhere").symlink_to(data)
    return "elsewhere"


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_nothing_of_the_data_folder_is_a_source(data: Path, spelling: str) -> None:
    spec = SPELLINGS[spelling](data)
    with pytest.raises(SourceIsStore, match="never a source"):
        await opens(spec, settings_of(data))


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
async def test_a_store_elsewhere_is_none_either(data: Path, tmp_path: Path, end: str) -> None:
    settings = settings_of(data, database=str(tmp_path / "work" / "talk.db"))
    Path("talk.db").write_bytes((data / "conversations.db").read_bytes())
    Path(f"x{end}.csv").write_text(CSV)
    if end:
        Path(f"talk.db{end}").hardlink_to(f"x{end}.csv")
        Path("y.csv").symlink_to(f"talk.db{end}")
    else:
        Path("y.csv").symlink_to("talk.db")
    with pytest.raises(SourceIsStore):
        await opens("y.csv", settings)
    if end:
        with pytest.raises(SourceIsStore):
            await opens(f"x{end}.csv", settings)


async def test_what_users_have_is_asked(data: Path) -> None:
    Path("shop.csv").write_text(CSV)
    Path("twice.csv").hardlink_to("shop.csv")
    for spec in (f"{data}/uploads/sources/1/sales.csv", f"{data}/mine.csv", "shop.csv", "twice.csv", ".", "demo"):
        await opens(spec, settings_of(data))
    with closing(sqlite3.connect("shop.db")) as made:
        made.execute("CREATE TABLE t (a)")
    await opens("shop.db", settings_of(data))
    with pytest.raises(SourceNotFound):
        await opens(f"file:{data}/conversations.db?mode=ro", settings_of(data))


def test_an_embedded_server_s_folder_is_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    (folder / "t.csv").write_text(CSV)
    own = OwnFiles.of(Settings.of(data_dir=tmp_path / "data", database=f"embedded:{folder}"))
    assert own.holds(folder / "t.csv") and not own.holds(tmp_path)


@pytest.mark.parametrize("isolated", [True, False])
async def test_a_copy_of_a_store_is_refused_by_its_mark(tmp_path: Path, sqlite_template: str, isolated: bool) -> None:
    copy = shutil.copyfile(sqlite_template, tmp_path / "harmless.sqlite")
    opener = Opener(Settings.of(data_dir=tmp_path / "data", sql_isolated=isolated))
    try:
        for spec in (str(copy), f"sqlite:///{copy}", f"duckdb:///{copy}"):
            with pytest.raises(SourceIsStore, match="harmless"):
                await opener.open(spec, "ada")
    finally:
        await opener.close()


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("spec", [".", "shop.csv"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
async def test_a_file_of_its_own_is_not_read_that_comes_while_the_source_is_open(
    data: Path, link: Callable[[Path, Path], None], spec: str, isolated: bool
) -> None:
    Path("shop.csv").write_text(CSV)
    opener = Opener(Settings.of(data_dir=data, sql_isolated=isolated))
    try:
        async with await opener.open(spec, "ada") as source:
            await source.schema()
            Path("more.csv").write_text(CSV)
            await source.schema()
            Path("shop.csv").unlink()
            link(Path("shop.csv"), data / "secret.key")
            for _ in range(2):
                with pytest.raises(SourceIsStore):
                    await source.work(lambda connection: connection.query("SELECT * FROM shop"))
            Path("shop.csv").unlink()
            Path("shop.csv").write_text(CSV)
            await source.work(lambda connection: connection.query("SELECT * FROM shop"))
    finally:
        await opener.close()


def spelled(url: str) -> dict[str, str]:
    """The same database of PostgreSQL, named in other ways."""
    plain = SourceUrl.parse(url)
    with psycopg.connect(url) as connection:
        info = connection.info
        socket, port, name, user = info.host, info.port, info.dbname, info.user
    found = {
        "its own": url,
        "with options": replace(plain, query={**plain.query, "options": ("-c search_path=pg_catalog",)}).text(),
        "of a library": url.replace("postgresql://", "postgresql+psycopg://", 1),
        "short": url.replace("postgresql://", "postgres://", 1),
    }
    if socket.startswith("/"):
        found["all in options"] = f"postgresql:///?host={socket}&port={port}&dbname={name}&user={user}"
    return found


@pytest.mark.postgres
@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_database_of_postgresql_that_holds_a_store_is_none(store_address: str, tmp_path: Path) -> None:
    for how, url in spelled(store_address).items():
        for database in (store_address, str(tmp_path / "other.db")):
            with pytest.raises(SourceIsStore) as raised:
                await opens(url, Settings.of(data_dir=tmp_path / "data", database=database))
            assert raised.value.source, how


@pytest.mark.postgres
async def test_a_role_that_may_not_read_the_store_sees_that_it_is_there(postgres_url: str, tmp_path: Path) -> None:
    name = SourceUrl.parse(postgres_url).database
    role = f"reader_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        try:
            connection.execute("CREATE SCHEMA talk")
            connection.execute("CREATE TABLE talk.longthread_migrations (number int)")
            connection.execute("CREATE TABLE public.shop (a int)")
            connection.execute(f"GRANT CONNECT ON DATABASE {name} TO {role}".encode())
            connection.execute(f"GRANT SELECT ON public.shop TO {role}".encode())
            reader = replace(SourceUrl.parse(postgres_url), username=role).text()
            settings = Settings.of(data_dir=tmp_path / "data")
            with pytest.raises(SourceIsStore):
                await opens(reader, settings)
            connection.execute("DROP SCHEMA talk CASCADE")
            await opens(reader, settings)
        finally:
            connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


async def test_no_tool_of_the_catalog_asks_the_store(store_address: str, tmp_path: Path) -> None:
    settings = Settings.of(data_dir=tmp_path / "data", database=store_address, sql_isolated=False)
    tool = {
        "kind": "tool",
        "name": "peek",
        "type": "query",
        "description": "Peeks.",
        "schema": {"name": "peek", "parameters": {"type": "object", "properties": {}}},
        "implementation": {"database": "store", "sql_template": "SELECT user_id, title FROM threads"},
    }
    async with open_store(store_address) as store:
        await Catalog(store).apply([{"kind": "source", "name": "store", "address": store_address}, tool])
        async with open_trial(store, settings, "peek") as peek:
            try:
                told = str(await peek.run({}, "trial"))
            except SourceError as error:
                told = str(error)
        assert "never a source" in told
        with pytest.raises(LongthreadError, match="never a source"):
            async with open_trial(store, settings, "run_sql", source="store"):
                raise AssertionError("it was opened")


async def test_an_empty_file_is_empty_still(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "x.db")) as made:
        made.execute("CREATE TABLE t (a)")
        made.execute("DROP TABLE t")
    with pytest.raises(SourceEmpty):
        await open_source(str(tmp_path / "x.db"))

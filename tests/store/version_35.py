"""What the gateway kept at version 35 of the schema, written by the code of commit ef8863f4.

`rows` are the rows of five conversations by table, `export` is that code's export of them, and `calls` what it read of
their calls: Anthropic's with tools and a refused reply, a request without a reply, Responses with and without `store`,
and a chat completion.
"""

from __future__ import annotations

import base64
import json
import lzma
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

from longthread.store import gateway as calls
from longthread.store.driver import Transaction

FOLDER = Path(__file__).parent / "version_35"


def read(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes())


def rows() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each row with its table, without those that triggers write."""
    for line in read("rows.jsonl").decode().split("\n"):
        found = json.loads(line)
        if not found["table"].startswith("recall_"):
            yield found["table"], {name: _value(name, value) for name, value in found["row"].items()}


def _value(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return bool(value) if name == "refused" else value


def insert(address: str) -> None:
    """Write the rows into a store that is at this version."""
    if "://" in address:
        with psycopg.connect(address) as connection:
            for table, row in rows():
                marks = ", ".join(f"%({name})s" for name in row)
                connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})".encode(), row)
        return
    with closing(sqlite3.connect(address)) as file, file:
        for table, row in rows():
            marks = ", ".join(f":{name}" for name in row)
            file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)


async def expect_calls(tx: Transaction) -> None:
    """Expect that each call is read as it was."""
    for thread_id, expected in json.loads(read("calls.json")).items():
        found = [_plain(call) for call in (await calls.calls_until(tx, thread_id, 99)).values()]
        assert not any(call.pop("broken") for call in found), "nothing that broke off was kept then"
        assert found == expected
        for call in (await calls.calls_until(tx, thread_id, 99)).values():
            assert "model" in await calls.find_frame(tx, thread_id, call.frame)


def _plain(call: calls.GatewayCall) -> dict[str, Any]:
    values = {name: getattr(call, name) for name in calls.GatewayCall.__dataclass_fields__}
    return {
        name: value.hex() if isinstance(value, bytes) else list(value) if name == "hidden" else value
        for name, value in values.items()
    }

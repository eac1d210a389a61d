"""Rows that code of before the first release wrote, and upgrades left in their form, are read as ever.

`older/export` is the export of such a store: of threads with a row in every table (`full`), with forty runs (`t`), of a
LangGraph application (`graph`), and of five conversations of the gateway. `older/calls` is what the code that wrote the
gateway's calls read of them: Anthropic's with tools and a refused reply, a request without a reply, Responses with and
without `store`, and a chat completion.
"""

from __future__ import annotations

import io
import json
import lzma
from pathlib import Path
from typing import Any

from tests.contract.history import KINDS, run_id, turn

from longthread.gateway.stored_calls import rebuild_missing
from longthread.langgraph import LongthreadSaver
from longthread.store import gateway, runs
from longthread.store.driver import Driver
from longthread.store.transfer.archive_reader import ImportTarget, import_threads
from longthread.store.transfer.threads import TransferOutcome

THREADS = 9


def read(name: str) -> bytes:
    return lzma.decompress((Path(__file__).parent / "older" / f"{name}.xz").read_bytes())


async def imported(store: Driver) -> TransferOutcome:
    file = io.BytesIO(read("export.jsonl"))
    into = ImportTarget("default", takes_over=True)
    return await import_threads(store, file, "the export", into, lambda *_: None)


async def test_they_are_imported_and_exported_as_they_are(store: Driver) -> None:
    assert (await imported(store)).written == THREADS
    assert (await imported(store)).same == THREADS


async def test_calls_of_the_gateway_are_read_as_before(store: Driver) -> None:
    await imported(store)
    async with store.reading() as tx:
        for thread_id, expected in json.loads(read("calls.json")).items():
            found = list((await gateway.calls_until(tx, thread_id, 99)).values())
            assert [plain(call) for call in found] == expected
            for call in found:
                assert not call.broken, "nothing that broke off was kept then"
                assert "model" in await gateway.find_frame(tx, thread_id, call.frame)


def plain(call: gateway.GatewayCall) -> dict[str, Any]:
    values = {name: getattr(call, name) for name in gateway.GatewayCall.__dataclass_fields__ if name != "broken"}
    return {
        name: value.hex() if isinstance(value, bytes) else list(value) if name == "hidden" else value
        for name, value in values.items()
    }


async def test_messages_of_the_gateway_are_indexed(store: Driver) -> None:
    await imported(store)
    assert await rebuild_missing(store) == len(json.loads(read("calls.json")))


async def test_conversations_go_on(store: Driver, store_address: str) -> None:
    await imported(store)
    async with store.writing() as tx:
        await turn(tx, 40)
    async with store.reading() as tx:
        found = await runs.list_runs(tx, "t", limit=100)
        assert [run.id for run in found] == [run_id(number) for number in range(40, -1, -1)]
        telling = [number for number in range(41) if KINDS[number % len(KINDS)] != "silent"]
        assert len(await runs.steps_from(tx, "t", 0)) == 2 * len(telling)
    async with LongthreadSaver.from_conn_string(store_address) as saver:
        last = await saver.aget_tuple({"configurable": {"thread_id": "graph"}})
        assert last is not None
        said = [message.content for message in last.checkpoint["channel_values"]["messages"]]
        assert said == ["question 0", "答 1", "question 1", "答 3"]

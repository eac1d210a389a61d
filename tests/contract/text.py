"""Text: every character, in any size, is read back unchanged; what cannot be stored is refused alike."""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import chain

import pytest
from tests.contract.base import USER, Contract, draft, extend, position, thread_with

from longthread.errors import LongthreadError
from longthread.model.entry import Draft, ToolCall
from longthread.store import log
from longthread.store.driver import Driver, Transaction

PLANE = 0x10000
SURROGATES = range(0xD800, 0xE000)
BIG = 20_000_000
"""Bytes of the largest entry that every backend must take."""

_Write = Callable[[Transaction, str], Awaitable[object]]
WRITES: dict[str, _Write] = {
    "text": lambda tx, bad: log.extend(tx, "t", [draft("x", bad)]),
    "id": lambda tx, bad: log.extend(tx, "t", [draft(bad)]),
    "name": lambda tx, bad: log.extend(tx, "t", [draft("x", name=bad)]),
    "tool_call_id": lambda tx, bad: log.extend(tx, "t", [draft("x", tool_call_id=bad)]),
    "title": lambda tx, bad: log.create_thread(tx, "new", user_id=USER, title=bad),
    "thread": lambda tx, bad: log.create_thread(tx, bad, user_id=USER),
    "rename": lambda tx, bad: log.rename_thread(tx, "t", bad, user_id=USER),
    "source": lambda tx, bad: log.set_source(tx, "t", bad),
}


class TextContract(Contract):
    """What text columns hold."""

    @pytest.mark.parametrize("plane", range(sys.maxunicode // PLANE + 1))
    async def test_every_character_comes_back(self, store: Driver, plane: int) -> None:
        first, last = max(1, plane * PLANE), (plane + 1) * PLANE
        parts = [range(first, SURROGATES.start), range(SURROGATES.stop, last)] if plane == 0 else [range(first, last)]
        text = "".join(map(chr, chain(*parts)))
        full = draft(
            "every", text, name=text[:5000], tool_calls=(ToolCall("c", "n", {"k": text}),), metadata={"k": text}
        )
        await thread_with(store)
        await extend(store, full)
        async with store.reading() as tx:
            entry = await log.find_entry(tx, "t", "every")
        assert entry.text == text
        assert entry.says_the_same_as(full)
        assert entry.metadata == full.metadata

    @pytest.mark.parametrize(
        "text", ["\r\n \t\n", " ", "e\u0301 é ﬁ", "\ufeffBOM", "\u202eleft", "'); --", "{}", "null"]
    )
    async def test_nothing_is_trimmed_normalized_or_read_as_something_else(self, store: Driver, text: str) -> None:
        await thread_with(store)
        await extend(store, draft(text, text))
        async with store.writing() as tx:
            await log.create_thread(tx, text, user_id=USER, title=text, source=text)
        async with store.reading() as tx:
            entry = await log.find_entry(tx, "t", text)
            thread = await log.find_thread(tx, text, user_id=USER)
        assert (entry.id, entry.text, thread.id, thread.title, thread.source) == (text,) * 5

    async def test_a_big_entry_comes_back(self, store: Driver) -> None:
        # Nothing repeats, so that no compression makes it small.
        text = random.Random(7).randbytes(BIG // 2).hex().replace("00", "数")
        big = draft("big", text, payload=text.encode()[::-1])
        await thread_with(store, "before")
        await extend(store, big)
        async with store.reading() as tx:
            entry = await log.find_entry(tx, "t", "big")
        assert len(text.encode()) > BIG
        assert entry.says_the_same_as(big)

    @pytest.mark.parametrize("column", WRITES)
    @pytest.mark.parametrize("bad", ["a\x00b", "\x00", "a\ud800b", "\udfff"], ids=["nul", "only", "high", "low"])
    async def test_what_no_database_can_store_is_refused_and_nothing_is_written(
        self, store: Driver, column: str, bad: str
    ) -> None:
        await thread_with(store, "a")
        with pytest.raises(LongthreadError, match=r"NUL|surrogate"):
            async with store.writing() as tx:
                await log.extend(tx, "t", [draft("with it")])
                await WRITES[column](tx, bad)
        assert await position(store) == (1, 1)
        await extend(store, draft("b"))

    async def test_a_nul_is_kept_where_bytes_and_json_are(self, store: Driver) -> None:
        held = Draft(
            "x", "assistant", "t", (ToolCall("c", "n", {"k\x00": "\x00"}),), payload=b"\x00", metadata={"m": "\x00"}
        )
        await thread_with(store)
        await extend(store, held, replace(held, id="y", tool_calls=(), payload=b""))
        async with store.reading() as tx:
            found = await log.find_entry(tx, "t", "x")
        assert found.says_the_same_as(held)
        assert found.metadata == held.metadata

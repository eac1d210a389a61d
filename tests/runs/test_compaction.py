"""Ended runs are put together behind turns: nobody waits for it, and nobody who reads can tell."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from tests.analysts import OpenAnalyst
from tests.script import COUNT, finish

from longthread.runs import compaction as behind
from longthread.runs.analyst import Analyst
from longthread.server.history import history
from longthread.store import bundling
from longthread.store.bundling import bundle_all
from longthread.testing import ScriptedChatModel
from longthread.testing.contract.bundles import rows, seen


def reply(messages: list[BaseMessage]) -> Any:
    """A call, then an answer: four entries a turn."""
    return finish("3.") if messages[-1].type == "tool" else COUNT


async def asked(analyst: Analyst, shop: str, turns: int) -> None:
    for _ in range(turns):
        handle = await analyst.ask("How many orders?", thread_id="t", source=shop, user_id="u")
        assert (await handle.wait()).type == "finished"
        await analyst.settle()


async def test_a_thread_is_looked_at_now_and_then(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "BEHIND_A_TURN", 4)
    monkeypatch.setattr(behind, "EVERY", 12)
    looked: list[str] = []

    async def look(store: Any, thread_id: str) -> int:
        looked.append(thread_id)
        return await bundling.bundle_some(store, thread_id)

    monkeypatch.setattr(behind, "bundle_some", look)
    analyst = await open_analyst(ScriptedChatModel(reply))
    await asked(analyst, shop, 5)
    assert looked == ["t"], "behind the third turn"
    assert (await rows(analyst.store))[1] == []
    before = (await seen(analyst.store))["runs"]
    await asked(analyst, shop, 2)
    assert looked == ["t", "t"]
    own, [(first, last, count)] = await rows(analyst.store)
    assert (len(own), count) == (2, 5)
    assert first < last < own[0]
    after = (await seen(analyst.store))["runs"]
    assert (len(after), after[2:]) == (7, before)


async def test_a_page_of_a_conversation_is_the_same(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(ScriptedChatModel(reply))
    await asked(analyst, shop, 20)

    async def page() -> Any:
        async with analyst.store.reading() as tx:
            return await history(tx, "t", user_id="u", limit=200)

    before = await page()
    assert (len(before["runs"]), before["runs"][0]["last_event_seq"] > 0) == (20, True)
    assert await bundle_all(analyst.store, "t") == 19
    assert await page() == before

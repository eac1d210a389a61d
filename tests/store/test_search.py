"""Search: what is looked for and where it is looked for are folded alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from longthread.model.entry import Draft
from longthread.store import listing, log
from longthread.store.driver import Driver, Transaction


@pytest.mark.parametrize("text", ["ÄPFEL und Birnen", "Éire", "ПРИВЕТ, мир", "İstanbul", "火箭 ROCKETS"])
@pytest.mark.parametrize("fold", [str, str.lower, str.upper])
async def test_letters_of_every_language_find_themselves_in_either_case(
    store: Driver, text: str, fold: Callable[[str], str]
) -> None:
    async with store.writing() as tx:
        await log.create_thread(tx, "said", user_id="u")
        await log.extend(tx, "said", [Draft(id="a", role="user", text=text)])
        await log.create_thread(tx, "titled", user_id="u", title=text)
        await log.create_thread(tx, "other", user_id="u")

    async def found(tx: Transaction) -> list[str]:
        return sorted(thread.id for thread, _ in await listing.search_threads(tx, fold(text), user_id="u"))

    assert await _everywhere(store, found) == ["said", "titled"]


async def _everywhere(store: Driver, look: Callable[[Transaction], Awaitable[list[str]]]) -> list[str]:
    """What is found through the writer and through each reader, which must be the same."""
    async with store.writing() as tx:
        first = await look(tx)
    for _ in range(3):
        async with store.reading() as tx:
            assert await look(tx) == first
    return first

"""Search: query and text are folded alike, whatever the language."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.base import USER, Contract, draft, extend, thread_with

from longthread.model.entry import Draft
from longthread.store import listing, log
from longthread.store.driver import Driver


class SearchContract(Contract):
    """`search_threads`."""

    async def test_both_languages_are_found_and_wildcards_are_text(self, store: Driver) -> None:
        texts = {"1": "运载火箭有哪些？", "2": "100% of Rockets", "3": "100 percent", "4": "a_b\\c", "5": "axb"}
        for thread_id, text in texts.items():
            await _say(store, thread_id, text)
        assert await _found(store, "火箭") == ["1"]
        assert await _found(store, "rockets") == ["2"]
        assert await _found(store, "100%") == ["2"]
        assert await _found(store, "%") == ["2"]
        assert await _found(store, "A_B") == await _found(store, "\\") == ["4"]
        assert await _found(store, "'; DROP TABLE threads; --") == []
        assert await _found(store, "") == sorted(texts)

    @pytest.mark.parametrize("text", ["ÄPFEL und Birnen", "Éire", "ПРИВЕТ, мир", "İstanbul", "ΟΔΟΣ", "火箭 ROCKETS"])
    @pytest.mark.parametrize("fold", [str, str.lower, str.upper])
    async def test_letters_of_every_language_find_themselves_in_either_case(
        self, store: Driver, text: str, fold: Callable[[str], str]
    ) -> None:
        await _say(store, "said", text)
        async with store.writing() as tx:
            await log.create_thread(tx, "titled", user_id=USER, title=text)
            await log.create_thread(tx, "other", user_id=USER)
        assert await _found(store, fold(text)) == ["said", "titled"]

    async def test_the_newest_text_that_holds_it_is_told_and_titles_too(self, store: Driver) -> None:
        await thread_with(store)
        await extend(store, draft("a", "old rocket"), draft("b", "new rocket"), draft("c", "nothing"))
        async with store.writing() as tx:
            await log.create_thread(tx, "titled", user_id=USER, title="A rocket")
            found = {thread.id: hit[:3] for thread, hit in await listing.search_threads(tx, "ROCKET", user_id=USER)}
            titled = [thread.id for thread in await listing.search_titles(tx, "ROCKET", user_id=USER)]
            assert await listing.search_titles(tx, "rocket", user_id="other") == []
        assert found == {"t": ("new rocket", "b", "user"), "titled": ("A rocket", None, None)}
        assert titled == ["titled"]

    async def test_only_questions_and_answers_are_searched(self, store: Driver) -> None:
        await thread_with(store)
        await extend(
            store,
            Draft("s", "system", "rocket"),
            Draft("t", "tool", "rocket", tool_call_id="c", name="rocket"),
            Draft("a", "assistant", "an answer"),
        )
        assert await _found(store, "rocket") == []
        assert await _found(store, "answer") == ["t"]

    async def test_the_latest_active_come_first_and_so_many_as_are_asked_for(self, store: Driver) -> None:
        for n in range(4):
            await _say(store, f"t{n}", "rocket")
        async with store.reading() as tx:
            found = await listing.search_threads(tx, "rocket", user_id=USER, limit=3)
        assert [thread.id for thread, _ in found] == ["t3", "t2", "t1"]


async def _say(store: Driver, thread_id: str, text: str) -> None:
    await thread_with(store, thread_id=thread_id)
    await extend(store, draft("a", text), thread_id=thread_id)


async def _found(store: Driver, text: str) -> list[str]:
    async with store.reading() as tx:
        found = sorted(thread.id for thread, _ in await listing.search_threads(tx, text, user_id=USER))
    async with store.writing() as tx:
        assert sorted(thread.id for thread, _ in await listing.search_threads(tx, text, user_id=USER)) == found
    return found

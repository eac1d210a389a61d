"""`longthread.store.boards`: saved results and links to them."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.base import USER, Contract, thread_with

from longthread.errors import BoardFull, BoardNotFound, CardNotFound, InvalidInput, ShareNotFound, ThreadNotFound
from longthread.memory.forget import forget_user, look_at_thread
from longthread.store import boards, leases, log, share_links
from longthread.store.boards import Board, BoardCard, BoardChange, CardParameter, NewCard
from longthread.store.driver import Driver
from longthread.store.maintenance import deletions, jobs
from longthread.store.maintenance.jobs import Job
from longthread.store.queries import Sql

_READ = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
_SINCE = CardParameter("since", "date", "2026-01-31")


def card(title: str, **given: object) -> NewCard:
    """A result of thread `t`."""
    saved = NewCard(title, "How many?", "t", "e", "demo", "SELECT 1 AS n", {"wide": True}, {"columns": ["n"]}, _READ)
    return replace(saved, **given)  # type: ignore[arg-type] # each test gives fields of it


async def board_with(store: Driver, *titles: str) -> tuple[Board, list[BoardCard]]:
    """A board of `USER` with cards of thread `t`."""
    await thread_with(store, "a", user_id=USER)
    async with store.writing() as tx:
        board = await boards.create(tx, "Launches 发射", user_id=USER)
        return board, [await boards.add_card(tx, board, card(title)) for title in titles]


async def counts(store: Driver) -> list[int]:
    """How many boards, cards, links and jobs there are."""
    async with store.reading() as tx:
        tables = ("boards", "board_cards", "board_links", "background_jobs")
        found = [await tx.fetch(Sql(f'SELECT count(*) AS rows FROM "{name}"')) for name in tables]
        return [int(row["rows"]) for [row] in found]


def _after(seconds: float) -> int:
    """A moment as jobs store it."""
    return int((time.time() + seconds) * 1000)


class BoardContract(Contract):
    """Boards, their cards, schedules and links."""

    async def test_a_board_keeps_its_cards_in_their_order(self, store: Driver) -> None:
        board, [first, second] = await board_with(store, "one", "two")
        async with store.writing() as tx:
            assert await boards.lock(tx, board.id, user_id=USER) != board, "it was just changed"
            await boards.change(tx, board, BoardChange(title="Other", order=[second.id, first.id]))
            for order in ([first.id], [first.id, first.id], [first.id, second.id, "x"]):
                with pytest.raises(InvalidInput):
                    await boards.change(tx, board, BoardChange(order=order))
        async with store.reading() as tx:
            [found] = await boards.of_user(tx, USER)
            assert (found.title, found.cards, found.refresh_every) == ("Other", 2, None)
            assert [each.id for each in await boards.cards_of(tx, board.id)] == [second.id, first.id]
            kept = await boards.find_card(tx, board.id, first.id)
        assert kept == first
        assert (kept.thread_id, kept.entry_id, kept.read_at, kept.look) == ("t", "e", _READ, {"wide": True})
        async with store.writing() as tx:
            await boards.change_card(tx, board.id, kept, title="three", look={"view": "chart"})
            changed = await boards.find_card(tx, board.id, first.id)
            assert changed == replace(kept, title="three", look={"view": "chart"})
            await boards.delete_card(tx, board.id, first.id)
            with pytest.raises(CardNotFound):
                await boards.delete_card(tx, board.id, first.id)
            with pytest.raises(CardNotFound):
                await boards.find_card(tx, "another", second.id)

    async def test_another_users_board_is_as_if_it_did_not_exist(self, store: Driver) -> None:
        board, _ = await board_with(store, "one")
        async with store.writing() as tx:
            for attempt in (boards.find, boards.lock, boards.delete):
                with pytest.raises(BoardNotFound):
                    await attempt(tx, board.id, user_id="other")
            assert await boards.of_user(tx, "other") == []
            assert (await boards.find(tx, board.id, user_id=None)).user_id == USER

    async def test_there_are_only_so_many_boards_and_cards(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(boards, "MOST_BOARDS", 1)
        monkeypatch.setattr(boards, "MOST_CARDS", 1)
        board, _ = await board_with(store, "one")
        async with store.writing() as tx:
            with pytest.raises(BoardFull):
                await boards.create(tx, "more", user_id=USER)
            with pytest.raises(BoardFull):
                await boards.add_card(tx, board, card("two"))

    async def test_a_refresh_that_began_before_a_change_writes_nothing(self, store: Driver) -> None:
        board, [kept] = await board_with(store, "one")
        async with store.writing() as tx:
            await boards.save_error(tx, kept, {"type": "sql_failed"})
            failed = await boards.find_card(tx, board.id, kept.id)
            assert (failed.error, failed.result) == ({"type": "sql_failed"}, kept.result)
            await boards.save_result(tx, kept, {"columns": ["m"]})
            fresh = await boards.find_card(tx, board.id, kept.id)
            assert (fresh.error, fresh.result) == (None, {"columns": ["m"]})
            assert fresh.read_at > kept.read_at
            asked = await boards.ask_anew(tx, board, kept.id, "SELECT {{since}} AS d", [_SINCE])
            await boards.save_result(tx, kept, {"columns": ["late"]})
            await boards.save_error(tx, kept, {"type": "late"})
            assert await boards.find_card(tx, board.id, kept.id) == asked
            with pytest.raises(CardNotFound):
                await boards.ask_anew(tx, board, "none", "SELECT 1", [])

    async def test_a_boards_values_are_those_of_its_parameters(self, store: Driver) -> None:
        board, [kept, other] = await board_with(store, "one", "two")
        async with store.writing() as tx:
            asked = await boards.ask_anew(tx, board, kept.id, "SELECT {{since}} AS d", [_SINCE])
            board = await boards.lock(tx, board.id, user_id=USER)
            assert asked.values(board.given) == [_SINCE]
            await boards.change(tx, board, BoardChange(given={"since": "2026-02-28"}))
            board = await boards.lock(tx, board.id, user_id=USER)
            changed = await boards.find_card(tx, board.id, kept.id)
            assert (changed.values(board.given)[0].value, changed.revision) == ("2026-02-28", asked.revision + 1)
            assert changed.values({"since": 5}) == [_SINCE], "a value of another kind does not hold"
            wrong: list[dict[str, Any]] = [{"since": each} for each in ("", "2026-02-30", "soon", 3, True, None)]
            for given in [*wrong, {"until": "2026-01-01"}]:
                with pytest.raises(InvalidInput):
                    await boards.change(tx, board, BoardChange(given=given))
            for huge in (2**63, -(2**63) - 1, 10**400):
                with pytest.raises(InvalidInput, match="64 bits"):
                    boards.check_value("n", "number", huge)
            boards.check_value("n", "number", 2**63 - 1)
            for kind, value in (("number", float("inf")), ("number", True), ("number", "1"), ("text", "x" * 1001)):
                with pytest.raises(InvalidInput):
                    boards.check_value("n", kind, value)  # type: ignore[arg-type] # they are literals
            with pytest.raises(InvalidInput):
                await boards.ask_anew(
                    tx, board, other.id, "SELECT {{since}} AS d", [CardParameter("since", "text", "")]
                )

    async def test_a_board_keeps_values_of_its_cards_alone(self, store: Driver) -> None:
        board, [kept, other] = await board_with(store, "one", "two")
        async with store.writing() as tx:
            await boards.ask_anew(tx, board, kept.id, "SELECT {{since}} AS d", [_SINCE])
            board = await boards.lock(tx, board.id, user_id=USER)
            await boards.ask_anew(tx, board, kept.id, "SELECT {{n}} AS n", [CardParameter("n", "number", 1)])
            assert (await boards.find(tx, board.id, user_id=USER)).given == {"n": 1}
            await boards.delete_card(tx, board.id, kept.id)
            board = await boards.lock(tx, board.id, user_id=USER)
            await boards.ask_anew(tx, board, other.id, "SELECT {{m}} AS m", [CardParameter("m", "number", 2)])
            assert (await boards.find(tx, board.id, user_id=USER)).given == {"m": 2}

    async def test_a_schedule_is_one_job_that_comes_again(self, store: Driver) -> None:
        board, _ = await board_with(store, "one")
        job = Job("board", board.id)
        async with store.writing() as tx:
            await leases.register(tx, "w")
            await boards.change(tx, board, BoardChange(refresh_every="day"))
            board = await boards.find(tx, board.id, user_id=USER)
            assert 86_000 < board.seconds_left <= 86_400
            assert await job.claim(tx, "w") is None, "it is not due yet"
            await tx.run(Sql("UPDATE background_jobs SET due_at = 0"))
            assert await jobs.waiting(tx, limit=5) == [job]
            assert await job.claim(tx, "w") == 0
            await boards.keep_schedule(tx, board, "w", refreshed=False)
            await job.done(tx, "w")
            for behind, waits in ((30, False), (600, True)):
                at = await tx.run(Sql("UPDATE background_jobs SET due_at = :due"), due=_after(3600 + behind))
                assert at == 1
                assert (await jobs.waiting(tx, limit=5) == [job]) == waits, "servers' clocks differ"
            [row] = await tx.fetch(Sql("SELECT owner, due_at FROM background_jobs"))
            assert row["owner"] is None, "it waits for its next turn"
            await tx.run(Sql("UPDATE background_jobs SET due_at = 0"))
            await job.claim(tx, "w")
            await boards.keep_schedule(tx, board, "w", refreshed=True)
            later = await boards.find(tx, board.id, user_id=USER)
            assert later.refreshed_at is not None
            assert board.refreshed_at is not None
            assert later.refreshed_at >= board.refreshed_at
            assert replace(later, refreshed_at=later.refreshed_at - timedelta(days=1)).seconds_left == 0
            assert replace(later, refreshed_at=later.refreshed_at + timedelta(days=9)).seconds_left == 0
            await job.call_off(tx)
            await boards.note_schedules(tx)
            await boards.note_schedules(tx)
            assert await jobs.waiting(tx, limit=5) == [job]
            await boards.change(tx, later, BoardChange(refresh_every=""))
            assert (await boards.find(tx, board.id, user_id=USER)).refresh_every is None
            await boards.delete(tx, board.id, user_id=USER)
        assert await counts(store) == [0, 0, 0, 0]

    async def test_a_card_outlives_its_conversation_unless_that_is_forgotten(self, store: Driver) -> None:
        board, [kept] = await board_with(store, "one")
        async with store.writing() as tx:
            await share_links.cards_to_show(tx, board.id)
            await share_links.create_for_board(tx, board.id, {"title": "shown"}, user_id=USER, expires_at=None)
            await deletions.begin(tx, "t", user_id=USER, seconds=60)
            assert (await boards.find_card(tx, board.id, kept.id)).thread_id is None
            await deletions.undo(tx, "t", user_id=USER)
            assert (await boards.find_card(tx, board.id, kept.id)).thread_id == "t"
        found = await look_at_thread(store, "t", user_id=USER)
        assert (found.rows["board_cards"], found.rows["board_links"]) == (1, 1)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
            assert (await boards.find_card(tx, board.id, kept.id)) == replace(kept, thread_id=None)
            assert len(await share_links.of_board(tx, board.id)) == 1
        await thread_with(store, "a", user_id=USER)
        async with store.writing() as tx:
            again = await boards.add_card(tx, board, card("two"))
            await log.delete_thread(tx, "t", user_id=USER, with_memories=True)
            assert await boards.cards_of(tx, board.id) == [replace(kept, thread_id=None)]
            assert again.id not in {each.id for each in await boards.cards_of(tx, board.id)}
            assert len(await share_links.of_board(tx, board.id)) == 1, "it shows nothing of this one"

    async def test_a_link_ends_with_a_conversation_that_it_shows_though_its_card_is_gone(self, store: Driver) -> None:
        board, [kept] = await board_with(store, "one")
        async with store.writing() as tx:
            _, token = await share_links.create_for_board(
                tx, board.id, {"title": "shown"}, user_id=USER, expires_at=None
            )
            await boards.delete_card(tx, board.id, kept.id)
            _, empty = await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=None)
        found = await look_at_thread(store, "t", user_id=USER)
        assert (found.rows["board_cards"], found.rows["board_links"]) == (0, 1)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER, with_memories=True)
            with pytest.raises(ShareNotFound):
                await share_links.read_board(tx, token)
            assert await share_links.read_board(tx, empty) == {}, "it shows nothing of the conversation"

    async def test_what_is_shared_or_saved_while_its_conversation_is_forgotten_does_not_survive(
        self, store: Driver
    ) -> None:
        board, _ = await board_with(store, "one")

        async def share() -> list[BoardCard]:
            async with store.writing() as tx:
                await boards.lock(tx, board.id, user_id=USER)
                if shown := await share_links.cards_to_show(tx, board.id):
                    await share_links.create_for_board(tx, board.id, {"title": "shown"}, user_id=USER, expires_at=None)
                return shown

        async def save() -> None:
            async with store.writing() as tx:
                await boards.add_card(tx, await boards.lock(tx, board.id, user_id=USER), card("two"))

        for attempt in (share, save):
            await thread_with(store, "a", user_id=USER)
            async with store.writing() as tx:
                await log.lock(tx, "t")
                await tx.run("delete_board_links_of_thread", thread_id="t")
                await tx.run("delete_cards_of_thread", thread_id="t")
                late = asyncio.create_task(attempt())
                await asyncio.wait([late], timeout=0.5)  # without a lock, it is done by now
                await tx.run("delete_thread", id="t", user_id=USER)
            if attempt is save:
                with pytest.raises(ThreadNotFound):
                    await late
            else:
                assert await late == []
        assert (await counts(store))[1:3] == [0, 0]

    async def test_boards_go_with_their_user(self, store: Driver) -> None:
        board, _ = await board_with(store, "one")
        async with store.writing() as tx:
            await boards.change(tx, board, BoardChange(refresh_every="week"))
            await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=None)
            await boards.create(tx, "another's", user_id="other")
        gone = await forget_user(store, USER)
        assert {name: gone.rows[name] for name in ("boards", "board_links")} == {"boards": 1, "board_links": 1}
        assert await counts(store) == [1, 0, 0, 0]

    async def test_a_board_has_only_so_many_links_that_work(
        self, store: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(share_links, "MOST_LINKS", 1)
        board, _ = await board_with(store, "one")
        past = datetime(2020, 1, 1, tzinfo=UTC)
        async with store.writing() as tx:
            for expires in (past, past, None):
                await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=expires)
            with pytest.raises(BoardFull, match="1 links to this board"):
                await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=None)
        assert (await counts(store))[2] == 1, "those that have expired are deleted"

    async def test_a_link_shows_a_board_as_it_was_until_it_ends(self, store: Driver) -> None:
        board, _ = await board_with(store, "one")
        past = datetime(2020, 1, 1, tzinfo=UTC)
        async with store.writing() as tx:
            first, token = await share_links.create_for_board(
                tx, board.id, {"title": "那时"}, user_id=USER, expires_at=None
            )
            _, late = await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=past)
            assert await share_links.of_board(tx, board.id) == [first]
            assert await share_links.read_board(tx, token) == {"title": "那时"}
            for wrong in (late, "", "x", "\ud800"):
                with pytest.raises(ShareNotFound):
                    await share_links.read_board(tx, wrong)
            with pytest.raises(ShareNotFound):
                await share_links.revoke_of_board(tx, "another", first.id)
            await share_links.revoke_of_board(tx, board.id, first.id)
            with pytest.raises(ShareNotFound):
                await share_links.read_board(tx, token)
            await share_links.create_for_board(tx, board.id, {}, user_id=USER, expires_at=None)
            await boards.delete(tx, board.id, user_id=USER)
        assert await counts(store) == [0, 0, 0, 0]

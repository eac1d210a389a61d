"""Runs: one writer a thread, taken over from dead processes, and lost by processes that were only taken for dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.contract.base import USER, Contract, OpenStore, registered

from longthread.errors import KeyReused, LeaseLost, RunInProgress, RunRepeated, StoreError
from longthread.model.entry import Draft
from longthread.model.run import Event, Mark, Run, RunStatus
from longthread.store import leases, listing, log, run_events, runs, wait_list
from longthread.store.driver import Driver
from longthread.store.listing import RunState, latest_runs, run_states
from longthread.store.runs import Lease, NewRun
from longthread.store.wait_list import QuestionKey

_Alive = Callable[[str], bool]


def alive(owner: str) -> bool:
    return True


def dead(owner: str) -> bool:
    return False


async def begun(
    store: Driver, run_id: str = "r1", *, thread_id: str = "t", owner: str = "first", alive: _Alive = alive
) -> Lease:
    async with store.writing() as tx:
        await log.create_thread(tx, thread_id, user_id=USER)
        await registered(tx, owner)
        plan = NewRun(run_id, "question", "source", "model", "auto", 5)
        return await runs.begin(tx, thread_id, plan, owner=owner, alive=alive)


async def run_of(store: Driver, run_id: str = "r1") -> Run:
    async with store.reading() as tx:
        run = await runs.find_run(tx, "t", run_id)
    assert run is not None
    return run


async def taken_over(store: Driver, *, alive: _Alive = dead) -> Lease:
    run = await run_of(store)
    async with store.writing() as tx:
        await registered(tx, "second")
        return await runs.take_over(tx, run, owner="second", alive=alive)


class RunContract(Contract):
    """Leases and fencing, steps, events and folds."""

    async def test_a_second_run_is_refused_while_the_first_is_held(self, store: Driver) -> None:
        lease = await begun(store)
        with pytest.raises(RunInProgress, match="r1"):
            await begun(store, "r2", owner="second")
        with pytest.raises(RunInProgress, match="r1"):
            await taken_over(store, alive=alive)
        await begun(store, "r2", thread_id="other")
        async with store.writing() as tx:
            assert await runs.find_run(tx, "t", "r2") is None
            await runs.check(tx, lease)

    async def test_of_many_that_begin_at_once_one_does(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            async with first.writing() as tx:
                await log.create_thread(tx, "t", user_id=USER)
            stores = [first, second] * 4
            outcomes = await asyncio.gather(
                *(begun(store, f"r{n}", owner=f"o{n}") for n, store in enumerate(stores)), return_exceptions=True
            )
            assert sorted(type(o).__name__ for o in outcomes) == ["Lease"] + ["RunInProgress"] * 7

    async def test_of_many_that_take_over_at_once_one_keeps_it(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await begun(first)
            async with first.writing() as tx:
                await registered(tx, "second")

            def only_first_is_dead(owner: str) -> bool:
                return owner != "first"

            outcomes = await asyncio.gather(
                *(taken_over(store, alive=only_first_is_dead) for store in [first, second] * 4), return_exceptions=True
            )
            assert sorted(type(o).__name__ for o in outcomes) == ["Lease"] + ["RunInProgress"] * 7

    @pytest.mark.parametrize("why", ["gone", "dead"])
    async def test_a_run_is_taken_over_when_its_owner_is_gone(self, store: Driver, why: str) -> None:
        first = await begun(store)
        if why == "gone":
            async with store.writing() as tx:
                await leases.remove(tx, "first")
        second = await taken_over(store, alive=dead if why == "dead" else alive)
        assert second == Lease("t", "r1", "second", 2)
        async with store.writing() as tx:
            assert await runs.is_held(tx, await run_of(store), alive=alive)
            await runs.check(tx, second)
            with pytest.raises(LeaseLost, match="r1"):
                await runs.check(tx, first)

    async def test_an_earlier_execution_by_the_same_worker_writes_nothing(self, store: Driver) -> None:
        first = await begun(store)
        async with store.writing() as tx:
            await runs.give_back(tx, first)
            second = await runs.take_over(tx, await run_of(store), owner="first", alive=alive)
            await runs.go_on(tx, second, "another")
            with pytest.raises(LeaseLost):
                await runs.check(tx, first)
        assert (second.owner, second.attempt, (await run_of(store)).model) == ("first", 2, "another")

    async def test_a_former_owner_writes_nothing(self, store: Driver) -> None:
        first = await begun(store)
        async with store.writing() as tx:
            step = await runs.start_step(tx, first, "model")
        second = await taken_over(store)
        async with store.writing() as tx:
            for attempt in (
                lambda: runs.check(tx, first),
                lambda: runs.end(tx, first, "finished", {"answer": "stale"}),
                lambda: runs.start_step(tx, first, "tool", action="stale"),
                lambda: runs.finish_step(tx, first, step, "done", elapsed_ms=1, thought="stale"),
            ):
                with pytest.raises(LeaseLost, match="r1"):
                    await attempt()
        run = await run_of(store)
        assert (run.status, run.outcome) == ("running", {})
        async with store.writing() as tx:
            [only] = await runs.steps_from(tx, "t", 0)
            assert (only.status, only.thought) == ("running", "")
            await runs.end(tx, second, "finished", {"answer": "x"})
        assert (await run_of(store)).outcome == {"answer": "x"}

    @pytest.mark.parametrize("status", ["finished", "paused", "failed"])
    async def test_an_ended_run_has_no_lease(self, store: Driver, status: RunStatus) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await runs.end(tx, lease, status, {"reason": "x", "深": [None, 1.5]})
            for attempt in (
                lambda: runs.check(tx, lease),
                lambda: runs.start_step(tx, lease, "model"),
            ):
                with pytest.raises(LeaseLost):
                    await attempt()
        run = await run_of(store)
        assert (run.status, run.outcome) == (status, {"reason": "x", "深": [None, 1.5]})
        assert run.ended_at is not None

    async def test_a_new_run_ends_the_one_whose_owner_died_and_says_so(self, store: Driver) -> None:
        first = await begun(store)
        async with store.writing() as tx:
            await run_events.append_events(tx, [_event(1)])
        await begun(store, "r2", owner="second", alive=dead)
        async with store.writing() as tx:
            with pytest.raises(LeaseLost):
                await runs.check(tx, first)
            events = await run_events.events_after(tx, "t", "r1", 0)
        assert [(e.seq, e.type, e.data) for e in events][1:] == [(2, "paused", {"reason": "interrupted"})]
        assert (await run_of(store)).status == "paused"

    async def test_the_database_itself_allows_one_live_run_a_thread(self, store: Driver) -> None:
        lease = await begun(store)
        names = ("question", "source", "model", "protocol", "continues", "owner")
        row = {"thread_id": "t", "id": "r2", "max_steps": 1, "first_step": 0, "now": log.now()}
        row |= {
            "told": "[]",
            "last_event": 0,
            **dict.fromkeys(("question_seq", "agent_id", "agent_version", "agent_parts", "asker", "key_id")),
        }
        row |= dict.fromkeys(names, "x")
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await tx.run("insert_run", **row)
        async with store.writing() as tx:
            await runs.end(tx, lease, "finished", {})
            await tx.run("insert_run", **row)
        assert (await run_of(store, "r2")).status == "running"

    async def test_steps_are_counted_over_the_threads_runs_and_come_back(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            manifest = [{"entry": "a", "how": "whole", "tokens": 3}]
            assert await runs.start_step(tx, lease, "model", manifest=manifest) == 0
            args = {"sql": "SELECT '火箭'", "n": [1, None]}
            assert await runs.start_step(tx, lease, "tool", action="run_sql", args=args, call_id="c") == 1
            await runs.finish_step(tx, lease, 0, "failed", elapsed_ms=5, thought="思", usage={"input_tokens": 7})
            await runs.finish_step(tx, lease, 1, "done", elapsed_ms=6, action="run_sql", observation={"ok": True})
            await runs.end(tx, lease, "finished", {})
        second = await begun(store, "r2")
        async with store.writing() as tx:
            assert await runs.start_step(tx, second, "model") == 2
            model, tool, last = await runs.steps_from(tx, "t", 0)
            assert [step.index for step in await runs.steps_between(tx, "t", 1, 2)] == [1]
        assert (model.kind, model.status, model.thought, model.usage) == ("model", "failed", "思", {"input_tokens": 7})
        assert list(model.manifest) == manifest
        assert (tool.action, tool.args, tool.call_id, tool.observation) == ("run_sql", args, "c", {"ok": True})
        assert (tool.elapsed_ms, last.elapsed_ms, last.run_id, last.status) == (6, None, "r2", "running")
        assert (await run_of(store, "r2")).first_step == 2

    async def test_events_are_read_in_order_from_any_number_on(self, store: Driver) -> None:
        await begun(store)
        events = [_event(n, {"delta": f"第{n}"}) for n in range(1, 21)]
        async with store.writing() as tx:
            assert await run_events.last_event(tx, "t", "r1") == 0
            await run_events.append_events(tx, events)
        async with store.reading() as tx:
            assert await run_events.events_after(tx, "t", "r1", 0) == events
            assert await run_events.events_after(tx, "t", "r1", 5, limit=3) == events[5:8]
            assert await run_events.events_after(tx, "t", "r1", 20) == []
            assert await run_events.last_event(tx, "t", "r1") == 20
            assert await run_events.events_of_type(tx, "t", "r1", "text") == events
            assert await run_events.events_of_type(tx, "t", "r1", "finished") == []
        with pytest.raises(StoreError):
            async with store.writing() as tx:
                await run_events.append_events(tx, [_event(21), _event(20)])
        async with store.reading() as tx:
            assert await run_events.last_event(tx, "t", "r1") == 20

    async def test_withdrawn_text_leaves_its_numbers(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await run_events.append_events(tx, [_event(n) for n in range(1, 4)])
            await run_events.withdraw_text(tx, lease, 2, 3)
        async with store.reading() as tx:
            assert [event.seq for event in await run_events.events_after(tx, "t", "r1", 0)] == [1]
            assert await run_events.last_event(tx, "t", "r1") == 3

    async def test_a_run_that_is_called_off_says_what_it_was_writing(self, store: Driver) -> None:
        await begun(store)
        async with store.writing() as tx:
            await run_events.append_events(tx, [_event(n, {"message_id": "m", "delta": f"第{n}"}) for n in (1, 2)])
            run = await runs.find_run(tx, "t", "r1")
            assert run is not None
            await runs.call_off(tx, run, {"reason": "stopped"})
        async with store.reading() as tx:
            run = await runs.find_run(tx, "t", "r1")
        assert run is not None
        assert (run.status, run.outcome) == ("paused", {"reason": "stopped", "unfinished": "第1第2", "message_id": "m"})

    async def test_text_of_many_runs_is_stored_together_where_its_lease_is_held(self, store: Driver) -> None:
        first = await begun(store)
        async with store.writing() as tx:
            await log.create_thread(tx, "u", user_id=USER)
            other = await runs.begin(tx, "u", NewRun("r9", "q", "s", "m", "auto", 5), owner="o", alive=alive)
        texts = [_event(n, {"delta": f'第{n} "x"\n'}) for n in (1, 2)]
        texts.append(replace(_event(1, {"delta": "x"}), thread_id="u", run_id="r9"))
        for _ in range(2):  # the second time, nothing is stored that is there
            async with store.writing() as tx:
                assert await runs.check_all(tx, [first, other, replace(other, owner="else")]) == {"r1", "r9"}
                await run_events.save_texts(tx, texts)
        async with store.reading() as tx:
            assert await run_events.events_after(tx, "t", "r1", 0) == texts[:2]
            assert await run_events.events_after(tx, "u", "r9", 0) == texts[2:]

    async def test_runs_are_written_without_waiting_for_a_lock(self, store: Driver, open_store: OpenStore) -> None:
        lease = await begun(store)
        if store.dialect == "sqlite":
            return  # who writes there has waited for all others
        async with open_store() as other, other.writing() as theirs:
            await log.position(theirs, "t")
            async with store.writing() as tx:
                assert await runs.check_all(tx, [lease]) == set()

    async def test_the_states_of_runs_are_looked_at_together(self, store: Driver) -> None:
        lease = await begun(store)
        places = [("t", "r1"), ("t", "none"), ("none", "r1")]
        async with store.writing() as tx:
            assert await run_states(tx, places, alive=alive) == {"r1": RunState("running", 0, True)}
            await run_events.append_events(tx, [_event(1), _event(2)])
            assert await run_states(tx, places, alive=dead) == {"r1": RunState("interrupted", 2, True)}
            step = await runs.start_step(tx, lease, "tool", marks=[Mark(3, "step_started", 0)])
            assert (await run_states(tx, places, alive=alive))["r1"].last_event == 3
            await runs.finish_step(tx, lease, step, "done", elapsed_ms=1)
            await runs.end(tx, lease, "finished", {}, event=4)
            assert (await run_states(tx, places, alive=alive))["r1"][:2] == ("finished", 4)

    async def test_what_a_step_tells_is_not_kept_twice(self, store: Driver) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await run_events.append_events(tx, [_event(n) for n in range(1, 6)])
            await run_events.remove_text(tx, lease, 2, 4)
            assert [event.seq for event in await run_events.events_after(tx, "t", "r1", 0)] == [1, 5]
            await run_events.withdraw_text(tx, lease, 5, 5)
            assert await run_events.last_event(tx, "t", "r1") == 5, "somebody may have read it"
            step = await runs.start_step(tx, lease, "tool", action="run_sql", call_id="c")
            await runs.finish_step(tx, lease, step, "done", elapsed_ms=1, action="run_sql", observation={"ok": True})
            text = '{"ok": true, "data": "火"}'
            [entry] = await log.extend(tx, "t", [Draft("result", "tool", text, tool_call_id="c")])
            await runs.refer_step(tx, "t", step, entry.seq)
        async with store.reading() as tx:
            [found] = await runs.steps_from(tx, "t", step)
            assert (found.entry_seq, found.observation) == (entry.seq, {"ok": True, "data": "火"})
            assert await runs.saved_prompt(tx, "t", "p") is None
        async with store.writing() as tx:
            await runs.save_prompt(tx, "t", "p", b"\x00body")
            await runs.save_prompt(tx, "t", "p", b"another")
            assert await runs.saved_prompt(tx, "t", "p") == b"\x00body"

    async def test_a_fold_replaces_the_one_before(self, store: Driver) -> None:
        await begun(store)
        async with store.writing() as tx:
            assert await runs.saved_fold(tx, "t") is None
            for seq in (3, 7):
                await runs.save_fold(tx, "t", seq, {"表": [seq]})
            assert await runs.saved_fold(tx, "t") == (7, {"表": [7]})
            await runs.move_fold(tx, "t", 9, 4)
            assert await runs.saved_fold(tx, "t") == (9, {"表": [7], "queries": 4})

    async def test_a_list_of_threads_tells_how_each_ones_last_run_stands(self, store: Driver) -> None:
        for name in ("ended", "held", "left"):
            lease = await begun(store, "r1", thread_id=name, owner=name)
            if name == "ended":
                async with store.writing() as tx:
                    await runs.end(tx, lease, "paused", {})
        async with store.writing() as tx:
            await log.create_thread(tx, "none", user_id=USER)
            threads = await listing.list_threads(tx, user_id=USER)
            said = await latest_runs(tx, threads, user_id=USER, alive=lambda owner: owner == "held")
        assert said == {"ended": "paused", "held": "running", "left": "interrupted"}

    async def test_a_key_stands_for_one_question(self, store: Driver) -> None:
        key = QuestionKey("k", "a hash")
        lease = await begun(store)
        async with store.writing() as tx:
            assert await wait_list.find_key(tx, USER, key) is None
            await wait_list.save_key(tx, USER, key, thread_id="t", run_id=lease.run_id)
        async with store.writing() as tx:
            assert await wait_list.find_key(tx, USER, key) == ("t", lease.run_id)
            assert await wait_list.find_key(tx, "another", key) is None
            with pytest.raises(RunRepeated):
                await wait_list.save_key(tx, USER, key, thread_id="t", run_id="r2")
            with pytest.raises(KeyReused):
                await wait_list.find_key(tx, USER, QuestionKey("k", "another hash"))

    async def test_a_key_is_free_after_a_day(self, store: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
        lease = await begun(store)
        async with store.writing() as tx:
            await wait_list.save_key(tx, USER, QuestionKey("k", "a hash"), thread_id="t", run_id=lease.run_id)
        another = QuestionKey("k", "another hash")
        with monkeypatch.context() as patched:
            patched.setattr(wait_list, "KNOWN_FOR", -timedelta(hours=1))
            async with store.writing() as tx:
                assert await wait_list.find_key(tx, USER, another) is None
                await wait_list.save_key(tx, USER, another, thread_id="t", run_id="r2")
        async with store.reading() as tx:
            assert await wait_list.find_key(tx, USER, another) == ("t", "r2")


def _event(seq: int, data: dict[str, object] | None = None) -> Event:
    return Event(
        "t", "r1", seq, "text", data or {"message_id": "m", "delta": ""}, datetime(2026, 1, 1, 0, 0, seq, tzinfo=UTC)
    )

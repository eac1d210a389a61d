"""Random histories of a conversation that is pruned: both backends hold the same, and nothing is lost."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.exploring import explore
from tests.memory.threads import counted

from longthread.context.window import PreviousCall, ViewRequest, fit, spots_of
from longthread.context.window_cache import WindowCache
from longthread.errors import ThreadNotFound
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.memory.summary.digest import tokens_of
from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.memory.summary.summaries import SummaryConfig
from longthread.messages.message import Message
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.runs.start import _whole_units
from longthread.store import log, summaries
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.summaries import ThreadSummary
from longthread.testing.failpoints import Failpoints
from longthread_evals.view_watch import orphans

POLICY = PruningPolicy(max_messages=12, threshold=4, summary=SummaryConfig(max_tokens=200))
BUDGET = 500
_examples = itertools.count()
Work = Callable[[Driver], Awaitable[Any]]


class Crash(BaseException):
    """The process is gone."""


class Writer:
    """A model that writes a short summary, nothing, too much, or fails."""

    name = "test:writer"
    topics_only = False

    def __init__(self, how: str) -> None:
        self.how = how

    async def write(self, instructions: str, text: str) -> str:
        if self.how == "fails":
            raise RuntimeError("down")
        if "index" in instructions:
            return '["price checks"]'
        return {"empty": "", "long": text * 2, "well": f"So much: {len(text)}."}[self.how]


class PruningMachine(RuleBasedStateMachine):
    """Each store is open twice, as if by two processes."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.addresses = addresses
        self.thread = f"t{next(_examples)}"
        self.numbers = itertools.count()
        self.policy = POLICY
        self.cut = False
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.stores: list[Driver] = []
        self.others: list[Driver] = []
        self.hot: dict[int, WindowCache] = {}
        self.past: dict[int, PreviousCall] = {}
        self.runner.run(self._open())

    async def _open(self) -> None:
        for found in (self.stores, self.others):
            found += [await self.stack.enter_async_context(open_store(address)) for address in self.addresses]

    def teardown(self) -> None:
        self._all(self._delete)
        self.runner.run(self.stack.aclose())
        self.runner.close()

    def _all(self, work: Work) -> list[Any]:
        """The same on every store, with the same outcome."""
        found = [self.runner.run(_on(work, store)) for store in self.stores]
        assert all(each == found[0] for each in found), found
        return found

    async def _delete(self, store: Driver) -> None:
        async with store.writing() as tx:
            await log.delete_thread(tx, self.thread, user_id="u")

    async def _create(self, store: Driver) -> None:
        async with store.writing() as tx:
            await log.create_thread(tx, self.thread, user_id="u")

    @initialize()
    def begin(self) -> None:
        self._all(self._create)

    @rule(
        calls=st.integers(0, 2), size=st.sampled_from([5, 5, 60, 900]), chinese=st.booleans(), turns=st.integers(1, 3)
    )
    def ask(self, calls: int, size: int, chinese: bool, turns: int) -> None:
        """Questions are asked: what the model sees fits, and is whole."""
        for _ in range(turns):
            number = next(self.numbers)
            drafts = _turn(str(number), calls, size, chinese)
            self._all(lambda store, drafts=drafts: self._ask(store, drafts))

    async def _ask(self, store: Driver, drafts: Sequence[Draft]) -> Any:
        place = self.stores.index(store)
        hot = self.hot.setdefault(place, WindowCache(self.policy.max_messages))
        async with store.writing() as tx:
            thread = await log.find_thread(tx, self.thread, user_id="u")
            found = await hot.read(tx, thread)
            cold = await WindowCache(self.policy.max_messages).read(tx, thread)
            assert (found.summary, found.stale) == (cold.summary, cold.stale)
            assert [each.entry for each in cold.spots][-len(found.spots) or 99 :] == [
                each.entry for each in found.spots
            ]
            added = await log.extend(tx, self.thread, drafts[:1])
        spots = _whole_units([*found.spots, *spots_of(added)])
        kept = found.summary
        summary, topics = (kept.summary, kept.topics) if kept else ("", ())
        wanted = ViewRequest(BUDGET, past=self.past.get(place), summary=summary, topics=topics, mark=found.mark)
        fitted = fit(spots, wanted)
        assert fitted.view.tokens <= BUDGET
        assert orphans(fitted.messages) == 0
        assert all(spot.entry.seq > found.mark for spot in spots)
        self.past[place] = PreviousCall(fitted.segments, fitted.view.summary.text)
        async with store.writing() as tx:
            more = await log.extend(tx, self.thread, drafts[1:])
        hot.keep(thread, [*spots, *spots_of(more)], mark=found.mark)
        return _texts(fitted.messages), fitted.segments

    @rule(back=st.integers(0, 40))
    def rewind(self, back: int) -> None:
        """The conversation goes back to an earlier answer, or to its beginning."""

        async def work(store: Driver) -> None:
            branch = await self._branch(store)
            ends = [0, *(entry.seq for entry in branch if entry.kind == "answer")]
            async with store.writing() as tx:
                await log.set_tip(tx, self.thread, ends[-1 - back % len(ends)] if back else ends[-1])

        self._all(work)

    @rule(which=st.integers(0, 40))
    def edit(self, which: int) -> None:
        """A question is asked in another way: a new branch."""
        drafts = _turn(f"{next(self.numbers)}e", 1, 5, False)

        async def work(store: Driver) -> None:
            questions = [entry for entry in await self._branch(store) if entry.role == "user"]
            if questions:
                async with store.writing() as tx:
                    parent = questions[which % len(questions)].parent_seq
                    await log.extend(tx, self.thread, drafts, parent=parent)

        self._all(work)

    @rule(how=st.sampled_from(["none", "none", "well", "fails", "empty", "long"]))
    def pass_over(self, how: str) -> None:
        before = [self.runner.run(self._branch(store)) for store in self.stores]
        self._all(lambda store: self._pass(store, how))
        assert [self.runner.run(self._branch(store)) for store in self.stores] == before
        again = self._all(lambda store: self._pass(store, "none"))
        for store, kept in zip(self.stores, again, strict=True):
            self.runner.run(self._check(store, kept))

    async def _pass(self, store: Driver, how: str) -> ThreadSummary | None:
        past = self.past.get(self.stores.index(store)) if store in self.stores else None
        return await prune_thread(
            store,
            self.thread,
            self.policy,
            view=past.segments if past else (),
            extract=counted,
            summarizer=None if how == "none" else Writer(how),
        )

    async def _check(self, store: Driver, kept: ThreadSummary | None) -> None:
        """What a pass leaves: all of the branch is in the summary or in the window, and no more than fits in each."""
        branch = await self._branch(store)
        behind = [entry for entry in branch if kept is None or entry.seq > kept.last_seq]
        assert await self._kept(store) == kept
        assert len(behind) <= self.policy.max_messages or not any(entry.role == "user" for entry in behind[1:])
        if kept is None:
            return
        # What retention has deleted cannot be summarised in another way.
        if branch[0].seq <= kept.last_seq:
            assert tokens_of(kept.summary) <= self.policy.summary.max_tokens
            assert kept.config_hash == self.policy.summary.hash
        if not self.cut:
            assert kept.message_count + len(behind) == len(branch)
            assert kept.last_seq in {entry.seq for entry in branch}

    @rule(number=st.integers(1, 12))
    def crash(self, number: int) -> None:
        """A process dies in the middle of a pass: all is as it was, or the pass is done."""

        async def work(store: Driver) -> Any:
            count = 0

            def reach(boundary: str) -> None:
                nonlocal count
                count += 1
                if count == number:
                    raise Crash(boundary)

            before, kept = await self._branch(store), await self._kept(store)
            try:
                await self._pass(Failpoints(store, reach), "none")
            except Crash as crash:
                if str(crash) != "after COMMIT":
                    assert await self._kept(store) == kept
            assert await self._branch(store) == before
            return count

        self._all(work)

    @rule(passes=st.integers(2, 3))
    def at_once(self, passes: int) -> None:
        """Several processes make a pass at the same time: one counts."""

        async def work(store: Driver) -> Any:
            other = self.others[self.stores.index(store)]
            past = self.past.get(self.stores.index(store))
            view = past.segments if past else ()
            some = itertools.islice(itertools.cycle([store, other]), passes)
            await asyncio.gather(
                *(prune_thread(each, self.thread, self.policy, view=view, extract=counted) for each in some)
            )
            return await self._kept(store)

        for store, kept in zip(self.stores, self._all(work), strict=True):
            self.runner.run(self._check(store, kept))

    @rule()
    def delete_meanwhile(self) -> None:
        """The thread is deleted while a pass is under way: nothing of it comes back."""

        async def work(store: Driver) -> Any:
            async def prepare() -> None:
                await self._delete(store)

            await prune_thread(store, self.thread, self.policy, view=(), prepare=prepare, extract=counted)
            with suppress(ThreadNotFound):
                await self._delete(store)
            for table in ("conversation_summaries", "memory_topics"):
                async with store.reading() as tx:
                    sql = Sql(f"SELECT 1 FROM {table} WHERE thread_id = :thread_id")
                    assert not await tx.fetch(sql, thread_id=self.thread)
            await self._create(store)

        self._all(work)
        self.past.clear()
        self.cut = False

    @rule(window=st.integers(2, 20))
    def retain(self, window: int) -> None:
        """Retention deletes what is older than a window."""

        async def work(store: Driver) -> None:
            policy = RetentionPolicy(entries_before="9", window=window)
            retention = Retention(policy, CheckpointKeeper(), lambda owner: True)
            await prune(store, retention, lambda *_: None, apply=True)

        self._all(work)
        self.cut = True

    @rule(tokens=st.sampled_from([150, 200, 400]))
    def change_settings(self, tokens: int) -> None:
        self.policy = replace(POLICY, summary=SummaryConfig(max_tokens=tokens))

    @invariant()
    def all_hold_the_same(self) -> None:
        async def work(store: Driver) -> Any:
            async with store.reading() as tx:
                sql = Sql("SELECT topic, mention_count FROM memory_topics WHERE thread_id = :thread_id ORDER BY topic")
                topics = await tx.fetch(sql, thread_id=self.thread)
            kept = await self._kept(store)
            branch = await self._branch(store)
            counts = {row["topic"]: int(row["mention_count"]) for row in topics}
            assert bool(counts) <= (kept is not None)
            return kept, [(e.seq, e.id, e.text) for e in branch], counts

        self._all(work)

    async def _branch(self, store: Driver) -> list[Entry]:
        async with store.reading() as tx:
            thread = await log.find_thread(tx, self.thread, user_id="u")
            return await log.branch(tx, self.thread, thread.tip, limit=10_000)

    async def _kept(self, store: Driver) -> ThreadSummary | None:
        async with store.reading() as tx:
            found = await summaries.find_thread(tx, self.thread)
            return found.kept if found else None


async def _on(work: Work, store: Driver) -> Any:
    return await work(store)


def _turn(name: str, calls: int, size: int, chinese: bool) -> list[Draft]:
    asked = f"第{name}季度如何？" if chinese else f"How about {name}? The limit is {name}000 euros."
    drafts = [Draft(f"{name}-q", "user", asked + "x" * size, metadata={"kind": "question"})]
    for number in range(calls):
        call = ToolCall(f"call_{number}", "run_sql", {"sql": f"SELECT {number}"})
        result = {"ok": number == 0, "data": {"query": "q1", "sql": "", "rows": [["y" * size]]}, "error": "no"}
        drafts.append(Draft(f"{name}-c{number}", "assistant", "", tool_calls=(call,)))
        drafts.append(Draft(f"{name}-r{number}", "tool", json.dumps(result), tool_call_id=call.id))
    return [*drafts, Draft(f"{name}-a", "assistant", f"It is {name}.", metadata={"kind": "answer"})]


def _texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


@pytest.mark.postgres
def test_random_histories_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: PruningMachine(addresses), examples=6, steps=20)


@pytest.mark.slow
@pytest.mark.postgres
def test_many_long_random_histories_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: PruningMachine(addresses), examples=100, steps=40)

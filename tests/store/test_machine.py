"""Random histories on SQLite, on PostgreSQL and in memory: after each step all three hold the same."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.exploring import explore
from tests.store.reference import Node, ReferenceLog, content_of

from longthread.errors import LongthreadError
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.model.entry import Draft, Entry, ToolCall
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.open import open_store

THREADS = ("a", "b")
_examples = itertools.count()

texts = st.sampled_from(["one", "two", "三"])
drafts = st.builds(
    Draft,
    id=st.sampled_from([f"m{n}" for n in range(6)]),
    role=st.sampled_from(["user", "assistant"]),
    text=texts,
    tool_calls=st.sampled_from([(), (ToolCall("c", "n", {"k": [1, "值"]}),)]),
    payload=st.sampled_from([None, b"\x00raw"]),
)
batches = st.lists(drafts, max_size=4)
places = st.one_of(st.none(), st.integers(-1, 14))
thread_ids = st.sampled_from(THREADS)
Work = Callable[[Transaction, str], Awaitable[Any]]


class LogMachine(RuleBasedStateMachine):
    """Threads of one example carry its number, so that every example finds the stores as good as empty."""

    def __init__(self, addresses: Sequence[str]) -> None:
        super().__init__()
        self.addresses = addresses
        self.example = next(_examples)
        self.reference = ReferenceLog()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.stores: list[Driver] = []
        self.runner.run(self._open())

    def teardown(self) -> None:
        for thread_id, tree in list(self.reference.trees.items()):
            self.delete(thread_id, tree.user_id)
        self.runner.run(self.stack.aclose())
        self.runner.close()

    async def _open(self) -> None:
        self.stores = [await self.stack.enter_async_context(open_store(address)) for address in self.addresses]

    def _name(self, thread_id: str) -> str:
        return f"{self.example}-{thread_id}"

    def _do(self, thread_id: str, work: Work, expected: Callable[[], Any]) -> None:
        """The same on every store and in memory: the same outcome, or the same type of error."""
        wanted = _outcome_of(expected)
        for store in self.stores:

            async def attempt(store: Driver = store) -> Any:
                async with store.writing() as tx:
                    return await work(tx, self._name(thread_id))

            assert self.runner.run(_outcome(attempt())) == wanted, store.dialect

    @initialize()
    def begin(self) -> None:
        for thread_id in THREADS:
            self.create(thread_id, "u")

    @rule(thread_id=thread_ids, user=st.sampled_from(["u", "u", "v"]))
    def create(self, thread_id: str, user: str) -> None:
        self._do(
            thread_id,
            lambda tx, name: log.create_thread(tx, name, user_id=user),
            lambda: self.reference.create_thread(thread_id, user_id=user),
        )

    @rule(thread_id=thread_ids, batch=batches, parent=places, expect=places)
    def extend(self, thread_id: str, batch: list[Draft], parent: int | None, expect: int | None) -> None:
        self._do(
            thread_id,
            lambda tx, name: log.extend(tx, name, batch, parent=parent, expect=expect),
            lambda: self.reference.extend(thread_id, batch, parent=parent, expect=expect),
        )

    @rule(thread_id=thread_ids, batch=batches)
    def extend_at_the_tip(self, thread_id: str, batch: list[Draft]) -> None:
        self.extend(thread_id, batch, None, None)

    @rule(thread_id=thread_ids, batch=batches, parent=st.integers(-1, 14))
    def add(self, thread_id: str, batch: list[Draft], parent: int) -> None:
        self._do(
            thread_id,
            lambda tx, name: log.add(tx, name, batch, parent=parent),
            lambda: self.reference.add(thread_id, batch, parent=parent),
        )

    @rule(thread_id=thread_ids, which=st.integers(0, 30), text=texts)
    def edit(self, thread_id: str, which: int, text: str) -> None:
        """Send an entry of the branch again with another text, and what stood behind it."""
        tree = self.reference.trees.get(thread_id)
        branch = self.reference.branch(thread_id, tree.tip) if tree else []
        if branch:
            at = which % len(branch)
            old = branch[at].draft
            batch = [Draft(old.id, old.role, text), *(node.draft for node in branch[at + 1 :])]
            self.extend(thread_id, batch, branch[at].parent_seq, None)

    @rule(thread_id=thread_ids, seq=st.integers(-1, 14))
    def rewind(self, thread_id: str, seq: int) -> None:
        self._do(
            thread_id,
            lambda tx, name: log.set_tip(tx, name, seq),
            lambda: self.reference.set_tip(thread_id, seq),
        )

    @rule(thread_id=thread_ids, user=st.sampled_from(["u", "v"]))
    def delete(self, thread_id: str, user: str) -> None:
        self._do(
            thread_id,
            lambda tx, name: log.delete_thread(tx, name, user_id=user),
            lambda: self.reference.delete_thread(thread_id, user_id=user),
        )

    @rule(window=st.integers(1, 4))
    def prune(self, window: int) -> None:
        """Everything is old enough; so many entries stay."""
        policy = RetentionPolicy(entries_before="9", window=window)
        for store in self.stores:
            retention = Retention(policy, CheckpointKeeper(), lambda owner: True)
            self.runner.run(prune(store, retention, lambda *_: None, apply=True))
        for thread_id in self.reference.trees:
            self.reference.prune(thread_id, window)

    @rule(thread_id=thread_ids, batch=batches)
    def roll_back(self, thread_id: str, batch: list[Draft]) -> None:
        async def work(tx: Transaction, name: str) -> None:
            await log.extend(tx, name, batch)
            raise ZeroDivisionError

        def expected() -> None:
            if thread_id not in self.reference.trees:
                self.reference.extend(thread_id, batch)
            raise ZeroDivisionError

        self._do(thread_id, work, expected)

    @rule(thread_id=thread_ids, batch=st.lists(drafts, min_size=1, max_size=3), turns=st.integers(0, 40))
    def break_off_and_repeat(self, thread_id: str, batch: list[Draft], turns: int) -> None:
        """A client dies while it writes; another opens the store and repeats what was not acknowledged."""
        if thread_id not in self.reference.trees:
            return

        async def break_off(store: Driver) -> None:
            async def write() -> None:
                async with store.writing() as tx:
                    await log.extend(tx, self._name(thread_id), batch)

            task = asyncio.ensure_future(write())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        async def crash() -> None:
            for store in self.stores:
                await break_off(store)
            await self.stack.aclose()
            await self._open()

        self.runner.run(crash())
        self.extend(thread_id, batch, None, None)

    @rule(
        begun_with=batches,
        writers=st.lists(st.lists(drafts, min_size=1, max_size=2), min_size=2, max_size=3),
        expecting=st.booleans(),
    )
    def write_at_once(self, begun_with: list[Draft], writers: list[list[Draft]], expecting: bool) -> None:
        """What writers leave who write at the same time is what they leave one after the other, in some order."""
        possible = []
        for order in itertools.permutations(range(len(writers))):
            alone = ReferenceLog()
            alone.create_thread("race", user_id="u")
            alone.extend("race", begun_with)
            tip = alone.trees["race"].tip if expecting else None
            outcomes = {
                n: _outcome_of(lambda n=n, log=alone, tip=tip: log.extend("race", writers[n], expect=tip))
                for n in order
            }
            possible.append(([outcomes[n] for n in range(len(writers))], _tree_of(alone, "race")))
        for store in self.stores:
            assert self.runner.run(self._race(store, begun_with, writers, expecting)) in possible, store.dialect

    async def _race(self, store: Driver, begun_with: list[Draft], writers: list[list[Draft]], expecting: bool) -> Any:
        name = self._name("race")

        async def write(batch: list[Draft]) -> Any:
            async with store.writing() as tx:
                return await log.extend(tx, name, batch, expect=tip if expecting else None)

        async with store.writing() as tx:
            await log.create_thread(tx, name, user_id="u")
            await log.extend(tx, name, begun_with)
            tip, _ = await log.position(tx, name)
        outcomes = await asyncio.gather(*(_outcome(write(batch)) for batch in writers))
        left = _plain_tree(await _stored(store, name))
        async with store.writing() as tx:
            await log.delete_thread(tx, name, user_id="u")
        return list(outcomes), left

    @invariant()
    def all_hold_the_same(self) -> None:
        for thread_id in THREADS:
            wanted = _tree_of(self.reference, thread_id)
            stored = [self.runner.run(_stored(store, self._name(thread_id))) for store in self.stores]
            for store, found in zip(self.stores, stored, strict=True):
                assert _plain_tree(found) == wanted, store.dialect
            ids = [[entry.id for entry in found[1]] for found in stored if found]
            assert all(each == ids[0] for each in ids)
            self._see_own_ids(thread_id, ids[0] if ids else [])

    def _see_own_ids(self, thread_id: str, ids: list[str]) -> None:
        tree = self.reference.trees.get(thread_id)
        if tree is not None:
            assert len(set(ids)) == len(ids)
            assert [node.own for node in tree.nodes.values()] == [
                entry_id == node.draft.id for entry_id, node in zip(ids, tree.nodes.values(), strict=True)
            ]


Stored = tuple[tuple[int, int], list[Entry], list[list[int]]]


async def _stored(store: Driver, name: str) -> Stored | None:
    """A thread as a store has it: its position, its entries, and the branch that ends in the tip and in each entry."""
    async with store.reading() as tx:
        try:
            tip, count = await log.position(tx, name)
        except LongthreadError:
            assert await log.entries_between(tx, name, 0, 999) == []
            return None
        entries = await log.entries_between(tx, name, 0, 999)
        branches = [await log.branch(tx, name, seq) for seq in (tip, *(entry.seq for entry in entries))]
    return (tip, count), entries, [[entry.seq for entry in branch] for branch in branches]


def _plain_tree(stored: Stored | None) -> Any:
    return stored and (stored[0], [_plain(entry) for entry in stored[1]], stored[2])


def _tree_of(reference: ReferenceLog, thread_id: str) -> Any:
    tree = reference.trees.get(thread_id)
    if tree is None:
        return None
    branches = [reference.branch(thread_id, seq) for seq in (tree.tip, *tree.nodes)]
    return (
        (tree.tip, tree.count),
        [_plain(node) for node in tree.nodes.values()],
        [[node.seq for node in branch] for branch in branches],
    )


def _plain(value: Any) -> Any:
    """An outcome as it can be compared: entries as their place and content, and None for what only one side returns."""
    if isinstance(value, Entry):
        draft = Draft(
            log.sent_id(value), value.role, value.text, value.tool_calls, value.tool_call_id, value.name, value.payload
        )
        return value.seq, value.parent_seq, content_of(draft)
    if isinstance(value, Node):
        return value.seq, value.parent_seq, value.content
    return [_plain(item) for item in value] if isinstance(value, list) else None


def _outcome_of(work: Callable[[], Any]) -> Any:
    try:
        return _plain(work())
    except (LongthreadError, ZeroDivisionError) as error:
        return type(error).__name__


async def _outcome(work: Awaitable[Any]) -> Any:
    try:
        return _plain(await work)
    except (LongthreadError, ZeroDivisionError) as error:
        return type(error).__name__


@pytest.mark.postgres
def test_random_histories_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: LogMachine(addresses), examples=6, steps=20)


@pytest.mark.slow
@pytest.mark.postgres
def test_many_long_random_histories_are_the_same_everywhere(tmp_path: Path, postgres_url: str) -> None:
    addresses = [str(tmp_path / "c.db"), postgres_url]
    explore(lambda: LogMachine(addresses), examples=150, steps=50)


async def test_more_than_a_whole_branch_holds_is_written_anew(store: Driver) -> None:
    """Only what retention has deleted is passed over."""
    first, both = [Draft("b", "user", "two")], [Draft("a", "user", "one"), Draft("b", "user", "two")]
    reference = ReferenceLog()
    reference.create_thread("t", user_id="u")
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        for batch in (first, both):
            assert _plain(await log.extend(tx, "t", batch)) == _plain(reference.extend("t", batch))
    assert _plain_tree(await _stored(store, "t")) == _tree_of(reference, "t")

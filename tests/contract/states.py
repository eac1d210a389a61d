"""Conversation states (document 003): over the log, one user's, and gone when they have expired."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.contract.base import USER, Contract, branch_ids, registered, rows_of, thread_with
from tests.contract.runs import alive

from longthread.errors import RunInProgress, ThreadTaken
from longthread.store import log, runs, states
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import expire, expire_states
from longthread.store.queries import Sql
from longthread.store.runs import NewRun

A, B, C = ({"role": "user", "content": text} for text in "abc")
TEXT = {"type": "text", "text": "go on"}
SPLIT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}, TEXT], "x": 1}
"""A message that is two entries."""


async def store_state(
    store: Driver, history: Sequence[Any], scid: str = "t", ttl: float | None = None, user: str = USER
) -> None:
    async with store.writing() as tx:
        await states.store_state(
            tx, scid, history, user_id=user, client_type="cursor", signature="one", expires_at=states.expiry(ttl)
        )


async def update_state(store: Driver, history: Sequence[Any], signature: str | None = None, user: str = USER) -> bool:
    async with store.writing() as tx:
        return await states.update_state(tx, "t", history, user_id=user, signature=signature)


async def read_state(store: Driver, scid: str = "t", user: str = USER) -> dict[str, Any] | None:
    async with store.writing() as tx:
        return await states.read_state(tx, scid, user_id=user)


async def shown(store: Driver, scid: str = "t") -> Any:
    """The history in the relation."""
    query = Sql("SELECT CAST(authoritative_history AS TEXT) AS history FROM conversation_state WHERE scid = :scid")
    async with store.reading() as tx:
        [row] = await tx.fetch(query, scid=scid)
    return json.loads(row["history"])


class StateContract(Contract):
    """`longthread.store.states`, `longthread.store.maintenance.retention`."""

    async def test_a_state_is_a_thread(self, store: Driver) -> None:
        await store_state(store, [A, SPLIT])
        state = await read_state(store)
        assert state is not None and state["authoritative_history"] == [A, SPLIT] == await shown(store)
        assert (state["client_type"], state["last_signature"], state["access_count"]) == ("cursor", "one", 1)
        assert len(await branch_ids(store)) == 3
        assert await update_state(store, [A, SPLIT, B], "two")
        assert len(await branch_ids(store)) == 4
        assert await update_state(store, [A, C])
        state = await read_state(store)
        assert state is not None and state["authoritative_history"] == [A, C] == await shown(store)
        assert (state["last_signature"], state["access_count"]) == ("two", 2)
        async with store.writing() as tx:
            assert await log.count_entries(tx, "t") == 5
            assert await states.delete_state(tx, "t", user_id=USER)
        assert await rows_of(store) == {}
        assert not await update_state(store, [])
        assert await read_state(store) is None

    async def test_any_thread_is_a_state(self, store: Driver) -> None:
        await thread_with(store, "a", "b")
        state = await read_state(store)
        assert state is not None and state["authoritative_history"] == await shown(store)
        assert (state["client_type"], state["last_signature"], state["access_count"]) == ("unknown", None, 1)
        assert await update_state(store, [*state["authoritative_history"], C], "sig")
        assert (await branch_ids(store))[:2] == ["a", "b"]
        assert len(await branch_ids(store)) == 3

    async def test_another_user_s_is_none(self, store: Driver) -> None:
        await store_state(store, [A])
        assert await read_state(store, user="other") is None
        assert not await update_state(store, [], user="other")
        async with store.writing() as tx:
            assert not await states.delete_state(tx, "t", user_id="other")
        with pytest.raises(ThreadTaken):
            await store_state(store, [B], user="other")
        assert await shown(store) == [A]

    async def test_what_retention_has_left_is_shown(self, store: Driver) -> None:
        await store_state(store, [A, SPLIT, B])
        for cut, left in {2: [SPLIT, B], 3: [{"role": "user", "content": [TEXT]}, B], 4: [B]}.items():
            async with store.writing() as tx:
                await log.position(tx, "t")
                await tx.run("prune_entries", thread_id="t", cut=cut)
                await tx.run("move_first_seq", thread_id="t", first_seq=cut)
            state = await read_state(store)
            assert state is not None and state["authoritative_history"] == left == await shown(store)
        assert await update_state(store, [A, SPLIT, B, C])
        assert await shown(store) == [A, SPLIT, B, C]

    async def test_it_does_not_change_below_a_run(self, store: Driver) -> None:
        await store_state(store, [A], ttl=-1)
        async with store.writing() as tx:
            plan = NewRun("r1", "question", "source", "model", "auto", 5)
            await registered(tx, "somebody")
            await runs.begin(tx, "t", plan, owner="somebody", alive=alive)
        for change in (store_state(store, [B]), update_state(store, [B])):
            with pytest.raises(RunInProgress):
                await change
        found = await expire(store)
        assert (found.threads, found.busy) == (0, 1)
        assert (await shown(store))[0] == A

    async def test_what_has_expired_is_deleted(self, store: Driver) -> None:
        for scid, ttl in {"t": -1, "later": 3600, "never": None, "child": -1, "parent": -1}.items():
            await store_state(store, [A], scid, ttl)
        await thread_with(store, "a", thread_id="of later")
        async with store.writing() as tx:
            await tx.run("write_state", id="of later", user_id=USER, now=log.now(), expires_at=states.expiry(-1))
            for child, parent in {"child": "parent", "of later": "later"}.items():
                await tx.run(
                    Sql("UPDATE threads SET parent_thread_id = :parent WHERE id = :id"), id=child, parent=parent
                )
        assert await read_state(store) is None
        found = await expire(store)
        assert (found.threads, found.busy, found.damaged) == (3, 0, {})
        async with store.reading() as tx:
            left = [row["id"] for row in await tx.fetch(Sql("SELECT id FROM threads ORDER BY id"))]
        assert left == ["later", "never", "of later"]  # what another conversation asked goes with that

    async def test_it_is_deleted_in_the_background(self, store: Driver) -> None:
        expiring = asyncio.create_task(expire_states(store, 0.01))
        await store_state(store, [A], ttl=-1)
        while await rows_of(store):  # noqa: ASYNC110 - a database sends no event
            await asyncio.sleep(0.01)
        expiring.cancel()
        with pytest.raises(asyncio.CancelledError):
            await expiring

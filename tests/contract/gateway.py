"""The gateway's calls and nodes: one user's, found by number, gone with their thread."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.contract.base import USER, Contract, rows_of, thread_with
from tests.contract.runs import begun

from longthread.errors import RowDamaged
from longthread.store import gateway as calls
from longthread.store import log, runs
from longthread.store.driver import Driver
from longthread.store.gateway import GatewayCall, GatewayPosition, KnownNode
from longthread.store.queries import Sql

_LAST, _FIRST = 2**63 - 1, -(2**63)
CALL = GatewayCall(
    thread_id="t",
    n=1,
    response_id="resp_1",
    dialect="anthropic",
    upstream="up",
    family="claude-opus",
    model="claude-opus-5",
    frame="f",
    tools=0,
    status=200,
    asked_seq=1,
    reply_seq=2,
    reply_end=2,
    asked=1,
    ends=2,
    previous=0,
    base=0,
    hidden=[(0, False, '{"type":"thinking"}'), (1, True, '{"field":"id","value":"ü"}')],
    hidden_hash=b"\0\xff",
    restored=1,
    dropped=2,
    usage={"output_tokens": 3},
    head={"id": "resp_1", "usage": {"output_tokens": 3}, "status": "completed"},
    started_at="2026-01-02T03:04:05.678000+00:00",
    elapsed_ms=12,
)


async def kept(store: Driver, *made: GatewayCall, thread_id: str = "t") -> None:
    """Write calls of a thread of two entries, whose ends are nodes."""
    await thread_with(store, "asked", "replied", thread_id=thread_id)
    async with store.writing() as tx:
        await log.position(tx, thread_id)
        for call in made:
            await calls.add_call(tx, replace(call, thread_id=thread_id))
        await calls.add_nodes(tx, thread_id, [(1, 0, _FIRST, 0), (2, 0, _LAST, 1), (2, 1, 77, 1)])
        await calls.add_frame(tx, replace(CALL, thread_id=thread_id), {"system": '"Be brief."'})
        await calls.add_frame(tx, replace(CALL, thread_id=thread_id), {"system": '"another"'})


class GatewayContract(Contract):
    """`longthread.store.gateway`."""

    async def test_a_call_is_given_back_as_it_was(self, store: Driver) -> None:
        second = replace(CALL, n=2, tools=5, hidden=[], hidden_hash=None, reply_seq=None, reply_end=None, head={})
        second = replace(second, broken="client")
        await kept(store, CALL, second, replace(second, n=3, tools=6))
        async with store.reading() as tx:
            assert await calls.find_call(tx, "t", 1) == CALL
            assert await calls.find_call(tx, "t", 9) is None
            assert await calls.calls_until(tx, "t", 2) == {1: CALL, 2: second}
            assert await calls.calls_among(tx, "t", [2, 1, 9]) == [CALL, second]
            assert await calls.calls_among(tx, "nobody", [1]) == []
            assert await calls.position(tx, "t") == GatewayPosition(3, 5, has_frame=False, has_node=False)
            assert await calls.position(tx, "nobody") == GatewayPosition(0, 0, has_frame=False, has_node=False)
            assert await calls.find_frame(tx, "t", "f") == {"system": '"Be brief."'}
            assert await calls.find_frame(tx, "t", "g") == {}

    async def test_what_a_request_needs_to_know(self, store: Driver) -> None:
        await kept(store, CALL, replace(CALL, n=2, tools=5))
        async with store.writing() as tx:
            await log.position(tx, "t")
            there = KnownNode(_LAST, "t", 2, 1)
            found = await calls.position(tx, "t", frame="f", node=there)
            assert found == GatewayPosition(2, 5, has_frame=True, has_node=True)
            others = [replace(there, node=5), replace(there, seq=1), replace(there, call=2)]
            assert not any([(await calls.position(tx, "t", node=each)).has_node for each in others])
            nothing = await calls.position(tx, "nobody", frame="f", node=there)
            assert nothing == GatewayPosition(0, 0, has_frame=False, has_node=False)

    async def test_a_call_without_its_frame_is_damaged(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.writing() as tx:
            await tx.run(Sql("DELETE FROM gateway_frames"))
            with pytest.raises(RowDamaged, match="its frame is gone"):
                await calls.find_call(tx, "t", 1)

    async def test_nodes_are_found_by_their_user(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.reading() as tx:
            found = await calls.known_replies(tx, USER, [_FIRST, _LAST, 5])
            assert [(each.node, each.thread_id, each.seq, each.call, each.tip) for each in found] == [
                (_LAST, "t", 2, 1, 2)
            ]
            assert await calls.known_replies(tx, "another", [_FIRST, _LAST]) == []
            assert [(each.seq, each.place) for each in await calls.known_replies(tx, USER, [77])] == [(2, 1)]
            assert [each.seq for each in await calls.thread_nodes(tx, "t", [_LAST, 77, 5])] == [2]
            assert await calls.thread_nodes(tx, "other", [_LAST]) == []

    async def test_of_a_reply_in_many_conversations_the_newest_and_the_own_are_found(self, store: Driver) -> None:
        names = [f"t{number:02}" for number in range(40)]
        for name in names:
            await kept(store, CALL, thread_id=name)
        async with store.reading() as tx:
            found = await calls.known_replies(tx, USER, [_LAST], "t00")
            assert sorted(each.thread_id for each in found) == ["t00", *names[9:]]

    async def test_an_expired_thread_has_no_nodes(self, store: Driver) -> None:
        await kept(store, CALL)
        for seconds, expected in ((3600, 1), (-1, 0)):
            async with store.writing() as tx:
                await log.position(tx, "t")
                await calls.expire_after(tx, "t", seconds)
                assert len(await calls.known_replies(tx, USER, [_LAST])) == expected
                assert len(await calls.thread_nodes(tx, "t", [_LAST])) == expected

    async def test_what_is_above_expires_no_sooner(self, store: Driver) -> None:
        async with store.writing() as tx:
            for name, above in (("top", None), ("over", "top"), ("t", "over"), ("never", None), ("below", "never")):
                await log.create_thread(tx, name, user_id=USER, parent=above)
            await calls.expire_after(tx, "over", -1)
            await calls.expire_after(tx, "top", 10)
            first = (await log.find_thread(tx, "over", user_id=USER)).expires_at
            await calls.expire_after(tx, "t", 3600)
            await calls.expire_after(tx, "below", 3600)
            await calls.expire_after(tx, "t", 60)
            found = {each: (await log.find_thread(tx, each, user_id=USER)).expires_at for each in ("top", "over", "t")}
            assert (await log.find_thread(tx, "never", user_id=USER)).expires_at is None
        assert found["over"] == first, "it has expired"
        assert found["top"] and found["t"] and found["top"] > found["t"]

    async def test_a_thread_says_whether_a_run_goes_on_in_it(self, store: Driver) -> None:
        await kept(store, CALL)
        lease = await begun(store)
        await begun(store, "r2", thread_id="another")
        async with store.writing() as tx:
            assert [(await calls.position(tx, name)).has_run for name in ("t", "nobody")] == [True, False]
            await runs.end(tx, lease, "finished", {})
            assert not (await calls.position(tx, "t")).has_run

    async def test_what_was_refused_and_what_is_forgotten(self, store: Driver) -> None:
        await kept(store, CALL, replace(CALL, n=2))
        async with store.writing() as tx:
            await log.position(tx, "t")
            await calls.refuse(tx, "t", [2])
            await calls.forget_names(tx, "t", 1)
        async with store.reading() as tx:
            made = await calls.calls_until(tx, "t", 9)
            assert [call.refused for call in made.values()] == [False, True]
            assert (made[1].response_id, made[1].head, made[1].usage) == (None, {}, CALL.usage)
            assert await calls.known_replies(tx, USER, [77]) == []
            assert len(await calls.known_replies(tx, USER, [_LAST])) == 1

    async def test_missing_nodes_are_noticed(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.writing() as tx:
            assert await calls.threads_without_nodes(tx) == []
            await tx.run(Sql("DELETE FROM gateway_nodes"))
            assert await calls.threads_without_nodes(tx) == [("t", USER)]

    async def test_clients_are_counted(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.writing() as tx:
            first = {"client_type": "unknown", "client": "codex"}
            await calls.note_client(tx, "t", last_signature="one", owner="o", **first)
            second = {"client_type": "cursor", "client": "cursor"}
            await calls.note_client(tx, "t", last_signature=None, owner="other", **second)
            assert await calls.owner_of(tx, "t") == "o"
            [row] = await tx.fetch(Sql("SELECT * FROM thread_clients"))
            assert await calls.client_of(tx, "t") == ("cursor", 1)
            assert await calls.client_of(tx, "other") is None
        assert (row["client_type"], row["client"], row["last_signature"], row["access_count"]) == (
            "cursor",
            "cursor",
            "one",
            2,
        )

    async def test_an_owner_is_put_where_clients_came_without_one(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.writing() as tx:
            assert not await calls.has_unowned(tx)
            await calls.note_client(tx, "t", last_signature="one", owner=None, client_type="unknown", client="codex")
            assert await calls.has_unowned(tx)
            assert [await calls.is_unowned(tx, "t", user) for user in (USER, "another")] == [True, False]
            await calls.put_owner(tx, "t", "o")
            assert await calls.owner_of(tx, "t") == "o"
            assert (await calls.has_unowned(tx), await calls.is_unowned(tx, "t", USER)) == (False, False)
            assert await calls.threads_without_nodes(tx) == [("t", USER)], "its nodes are others now"

    async def test_the_salt_is_set_once(self, store: Driver) -> None:
        async with store.writing() as tx:
            assert await calls.find_salt(tx) is None
            assert [await calls.put_salt(tx, salt) for salt in ("first", "second")] == ["first", "first"]
            assert await calls.find_salt(tx) == "first"

    async def test_a_deleted_thread_takes_its_calls_along(self, store: Driver) -> None:
        await kept(store, CALL)
        async with store.writing() as tx:
            await log.delete_thread(tx, "t", user_id=USER)
        assert await rows_of(store) == {}

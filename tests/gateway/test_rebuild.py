"""The index of nodes: where a request goes on from, also if that changes meanwhile. It is derived: rebuilt from entries
and calls, row for row. Without it nothing is restored."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.gateway.shapes import SHAPES, turn

from longthread.gateway.clients import Client
from longthread.gateway.dialects import DIALECTS
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.keep import Answered, SentRequest, keep
from longthread.gateway.request import Asked
from longthread.gateway.state import messages_until
from longthread.gateway.stored_calls import rebuild_missing
from longthread.gateway.tree import Place, find_place, hidden_until
from longthread.langgraph.saver.retention import CheckpointKeeper
from longthread.memory.forget import delete_thread
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.maintenance.deletions import prune
from longthread.store.maintenance.retention import Retention, RetentionPolicy
from longthread.store.open import open_store
from longthread.store.queries import Sql, queries
from longthread.store.transfer.copy import copy_store

pytestmark = pytest.mark.one_backend

Message = dict[str, Any]
OF_USER = "WHERE thread IN (SELECT number FROM threads WHERE user_id LIKE :user)"
ALL = (
    "SELECT t.id AS thread_id, n.seq, n.place, n.node, n.call "
    "FROM gateway_nodes n JOIN threads t ON t.number = n.thread "
    "WHERE t.user_id LIKE :user ORDER BY t.id, n.seq, n.place"
)


async def nodes_of(store: Driver, user: str = "%") -> list[dict[str, Any]]:
    async with store.reading() as tx:
        return [dict(row) for row in await tx.fetch(Sql(ALL), user=user)]


async def without_nodes(store: Driver, user: str = "%") -> None:
    async with store.writing() as tx:
        await tx.run(Sql(f"DELETE FROM gateway_nodes {OF_USER}"), user=user)


async def say(
    driver: Driver,
    dialect: Dialect,
    said: Sequence[Any],
    answer: Message | None,
    *,
    user: str = "ada",
    **fields: Any,
) -> str:
    """Write a call as the gateway does; return its thread."""
    body = {"model": "m", dialect.items: list(said), "tools": [{"type": "function", "name": "f"}], **fields}
    asked = Asked.read(dialect, user, json.dumps(body).encode())
    async with driver.reading() as tx:
        place = await find_place(tx, asked, None, "up", "m")
    named = dialect.is_named(asked.fields)
    sent = SentRequest(asked, "up", "m", "m", Client("unknown", "sdk"), log.now(), named=named)
    if place.decides is not None and place.decides.thread_id == place.thread_id:
        sent = replace(sent, base=place.decides.n, base_ends=place.decides.ends)
    reply = dialect.reply(json.dumps(answer, ensure_ascii=False).encode()) if answer else None
    await keep(driver, place, sent, Answered(reply, 200 if answer else 500, 1))
    return place.thread_id


ANTHROPIC, RESPONSES, COMPLETIONS = DIALECTS["anthropic"], DIALECTS["responses"], DIALECTS["completions"]


def claude(number: int, text: str, *, calls_tool: bool = False) -> Message:
    thinking = {"type": "thinking", "thinking": f"想 {number}", "signature": f"s{number}"}
    content: list[Any] = [thinking, {"type": "text", "text": text}]
    if calls_tool:
        content.append({"type": "tool_use", "id": f"t{number}", "name": "f", "input": {"b": 1, "a": [1.0, None]}})
    return {"id": f"msg_{number}", "role": "assistant", "model": "m", "content": content, "usage": {"output_tokens": 3}}


TWO = [{"type": "text", "text": "Hi"}, {"type": "text", "text": "again"}]
SAID = st.sampled_from(["", "Hello", "你好", TWO, None])
STEP = st.tuples(st.integers(0, 9), st.integers(0, 3), SAID, st.sampled_from(["是", ""]), st.booleans(), st.booleans())


async def branches(store: Driver, user: str, steps: Sequence[Any]) -> None:
    """Conversations that go on from any earlier one, cut or changed, some without a reply."""
    known: list[list[Message]] = [[]]
    for number, (which, cut, said, text, calls_tool, fails) in enumerate(steps):
        history = known[which % len(known)]
        history = history[: len(history) - cut] if cut < len(history) else history
        results = [
            {"type": "tool_result", "tool_use_id": block["id"], "content": "12:00"}
            for block in (history[-1]["content"] if history and history[-1]["role"] == "assistant" else ())
            if block["type"] == "tool_use"
        ]
        texts = [{"type": "text", "text": said}] if isinstance(said, str) else said or []
        messages = [*history, turn([*results, *texts] if results else said)]
        answer = None if fails else claude(number, text, calls_tool=calls_tool)
        await say(store, ANTHROPIC, messages, answer, user=user)
        if answer is not None:
            known.append([*messages, {"role": "assistant", "content": answer["content"]}])


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(steps=[(0, 0, "", "是", False, False), (0, 0, "", "", False, False)])
@given(steps=st.lists(STEP, min_size=1, max_size=6))
def test_any_branches_are_rebuilt_row_for_row(store_address: str, steps: Sequence[Any]) -> None:
    async def check() -> None:
        async with open_store(store_address) as store:
            user = uuid.uuid4().hex
            await branches(store, user, steps)
            written = await nodes_of(store, user)
            await without_nodes(store, user)
            await rebuild_missing(store)
            assert await nodes_of(store, user) == written

    asyncio.run(check())


@pytest.mark.parametrize(("dialect", "said"), SHAPES)
async def test_messages_in_any_form_have_the_same_nodes_again(store: Driver, dialect: str, said: list[Any]) -> None:
    for count in range(1, len(said) + 1):
        await say(store, DIALECTS[dialect], said[:count], None)
    written = await nodes_of(store)
    await without_nodes(store)
    await rebuild_missing(store)
    assert written
    assert await nodes_of(store) == written


async def test_the_providers_ids_are_found_again(store: Driver) -> None:
    output: list[Any] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e1"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "看", "annotations": []}]},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "e2"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"b\": 1}"},
        {"type": "custom_tool_call", "id": "ct_1", "call_id": "c2", "name": "g", "input": "text"},
    ]  # fmt: skip
    answer = {"id": "resp_1", "status": "completed", "model": "m", "output": output}
    await say(store, RESPONSES, [turn("Hello")], answer)
    results = [{"type": "function_call_output", "call_id": id_, "output": "ok"} for id_ in ("c1", "c2")]
    again = {"id": "resp_2", "status": "completed", "model": "m", "output": [output[1] | {"id": "msg_2"}]}
    await say(store, RESPONSES, [turn("Hello"), *output, *results], again)
    await say(store, RESPONSES, [turn("Secret")], answer | {"id": "resp_3"}, store=False)
    chat = {"role": "assistant", "content": "是", "reasoning_content": "想", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}  # fmt: skip
    choices = [{"message": chat, "finish_reason": "stop"}]
    await say(store, COMPLETIONS, [turn("Hello")], {"id": "chat_1", "choices": choices})
    written = await nodes_of(store)
    assert sum(row["place"] > 0 for row in written) == 6 + 2, "nobody asks for a chat completion by its id"
    await without_nodes(store)
    assert await rebuild_missing(store) == 3
    assert await nodes_of(store) == written
    assert await rebuild_missing(store) == 0


async def test_only_what_is_missing_is_rebuilt_and_for_its_user(store: Driver) -> None:
    for user in ("ada", "bob"):
        await say(store, ANTHROPIC, [turn("Hello")], claude(1, "yes"), user=user)
    written = await nodes_of(store)
    async with store.writing() as tx:
        await tx.run(
            Sql("DELETE FROM gateway_nodes WHERE thread = (SELECT number FROM threads WHERE id = :id)"),
            id=written[0]["thread_id"],
        )
    assert await rebuild_missing(store) == 1
    assert await nodes_of(store) == written


async def test_a_thread_that_cannot_be_read_keeps_no_other_from_being_rebuilt(store: Driver) -> None:
    broken = await say(store, ANTHROPIC, [turn("Hello")], claude(1, "yes"))
    fine = await say(store, ANTHROPIC, [turn("Good day")], claude(2, "yes"))
    await without_nodes(store)
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE entries SET payload = substr(payload, 1, 20) WHERE thread_id = :id"), id=broken)
    assert await rebuild_missing(store) == 1
    assert {row["thread_id"] for row in await nodes_of(store)} == {fine}


async def long_conversation(store: Driver, turns: int = 6) -> tuple[str, list[Message]]:
    said: list[Message] = []
    for number in range(turns):
        said.append(turn(f"question {number}"))
        answer = claude(number, f"answer {number}")
        thread_id = await say(store, ANTHROPIC, said, answer, system=f"frame {number // 3}")
        said.append({"role": "assistant", "content": answer["content"]})
    return thread_id, said


async def restored(store: Driver, said: list[Message]) -> int | None:
    """How many hidden parts could be restored for a client that strips thinking; None: none decides, or not all."""
    asked = Asked.read(ANTHROPIC, "ada", json.dumps({"model": "m", "messages": [*said, turn("and now?")]}).encode())
    async with store.reading() as tx:
        place = await find_place(tx, asked, None, "up", "m")
        found = await hidden_until(tx, asked, place.decides) if place.decides else None
    return None if found is None else len(found)


async def rows(store: Driver, table: str) -> int:
    async with store.reading() as tx:
        [row] = await tx.fetch(Sql(f'SELECT count(*) AS n FROM "{table}"'))
    return int(row["n"])


async def test_a_copy_restores_as_the_original_does(store: Driver, other_address: str) -> None:
    _, said = await long_conversation(store)
    assert await restored(store, said) == 6
    async with open_store(other_address) as other:
        await copy_store(store, other, lambda *_: None)
        assert await restored(other, said) is None
        assert await rebuild_missing(other) == 1
        assert await nodes_of(other) == await nodes_of(store)
        assert await restored(other, said) == 6


async def test_with_old_entries_go_their_calls_nodes_and_frames(store: Driver) -> None:
    thread_id, said = await long_conversation(store)
    policy = RetentionPolicy(checkpoints=None, entries_before=log.now(), window=4)
    retention = Retention(policy, CheckpointKeeper(), lambda owner: False)
    told = await prune(store, retention, lambda *_: None, apply=False)
    done = await prune(store, retention, lambda *_: None, apply=True)
    assert told.rows == done.rows == {"entries": 8, "gateway_nodes": 8, "gateway_calls": 4, "gateway_frames": 1}
    assert (await rows(store, "gateway_calls"), await rows(store, "gateway_frames")) == (2, 1)
    assert await restored(store, said) is None, "all or nothing"
    async with store.reading() as tx:
        assert await messages_until(tx, ANTHROPIC, thread_id, 12) is None, "part of a conversation is another one"
    # The conversation goes on where it was, under the next number.
    again = await say(store, ANTHROPIC, [*said, turn("more")], claude(9, "yes"))
    async with store.reading() as tx:
        assert (again, (await calls.position(tx, thread_id)).n) == (thread_id, 7)
    # Its beginning is gone, and with it what the nodes stand for.
    await without_nodes(store)
    await rebuild_missing(store)
    assert await nodes_of(store) == [row for row in await nodes_of(store) if row["place"]]
    assert await restored(store, said) is None


async def test_a_deleted_conversation_leaves_nothing(store: Driver) -> None:
    thread_id, said = await long_conversation(store)
    await say(store, ANTHROPIC, said[:3], claude(7, "other"))
    await delete_thread(store, thread_id, user_id="ada")
    for table in ("gateway_calls", "gateway_frames", "gateway_nodes", "thread_clients", "entries"):
        assert await rows(store, table) == 0
    assert await restored(store, said) is None


def asked_of(said: Sequence[Message]) -> Asked:
    return Asked.read(ANTHROPIC, "ada", json.dumps({"model": "m", "messages": list(said)}).encode())


async def find(store: Driver, said: Sequence[Message]) -> Place:
    async with store.reading() as tx:
        return await find_place(tx, asked_of(said), None, "up", "m")


async def write(store: Driver, place: Place, said: Sequence[Message], text: str) -> Message:
    answer = {"id": text, "role": "assistant", "model": "m", "content": [{"type": "text", "text": text}]}
    sent = SentRequest(asked_of(said), "up", "m", "m", Client("unknown", "sdk"), log.now())
    await keep(store, place, sent, Answered(ANTHROPIC.reply(json.dumps(answer).encode()), 200, 1))
    return {"role": "assistant", "content": text}


async def talk(store: Driver, turns: int) -> tuple[str, list[Message]]:
    said: list[Message] = []
    for number in range(turns):
        said.append(turn(f"question {number}"))
        place = await find(store, said)
        said.append(await write(store, place, said, f"answer {number}"))
    return place.thread_id, said


async def log_of(store: Driver, thread_id: str) -> list[tuple[int, int, str]]:
    async with store.reading() as tx:
        entries = await log.entries_between(tx, thread_id, 1, 99)
    return [(entry.seq, entry.parent_seq, entry.text) for entry in entries]


async def test_a_question_that_came_twice_at_once_is_one_entry(store: Driver) -> None:
    thread_id, said = await talk(store, 1)
    said.append(turn("more"))
    one, two = await find(store, said), await find(store, said)
    await write(store, one, said, "first")
    await write(store, two, said, "second")
    assert await log_of(store, thread_id) == [
        (1, 0, "question 0"),
        (2, 1, "answer 0"),
        (3, 2, "more"),
        (4, 3, "first"),
        (5, 3, "second"),
    ]


async def test_a_conversation_that_goes_on_meanwhile_gets_a_branch(store: Driver) -> None:
    thread_id, said = await talk(store, 1)
    mine, other = [*said, turn("mine")], [*said, turn("other")]
    place = await find(store, mine)
    assert place.branch == "main"
    await write(store, await find(store, other), other, "theirs")
    await write(store, place, mine, "yours")
    assert (await log_of(store, thread_id))[2:] == [(3, 2, "other"), (4, 3, "theirs"), (5, 2, "mine"), (6, 5, "yours")]


async def test_a_beginning_that_is_deleted_meanwhile_is_not_gone_on_from(store: Driver) -> None:
    thread_id, said = await talk(store, 6)
    rewound = [*said[:2], turn("again")]
    place = await find(store, rewound)
    assert place.last is not None
    policy = RetentionPolicy(checkpoints=None, entries_before=log.now(), window=4)
    await prune(store, Retention(policy, CheckpointKeeper(), lambda owner: False), lambda *_: None, apply=True)
    await write(store, place, rewound, "anew")
    parents = {text: parent for _, parent, text in await log_of(store, thread_id)}
    assert parents["question 0"] == 0, "the whole request is a branch of its own"
    assert parents.keys() == {"question 0", "answer 0", "again", "anew"} | {each["content"] for each in said[-4:]}


async def test_a_reply_is_found_however_many_results_are_behind_it(store: Driver) -> None:
    thread_id, said = await talk(store, 12)
    for more in (1, 7, 8, 9, 80):
        results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "x"} for n in range(more)]
        place = await find(store, [*said, {"role": "user", "content": results}])
        assert (place.thread_id, place.joined, place.branch) == (thread_id, 12, "main")
    place = await find(store, [*said[:2], *(turn(f"changed {n}") for n in range(100))])
    assert (place.thread_id, place.joined, place.branch) == (thread_id, 1, "fork")


async def test_replies_are_looked_up_by_their_nodes(store: Driver) -> None:
    """Without statistics, too: not by reading all conversations of the user."""
    await talk(store, 1)
    sql = queries(store.dialect)["select_known_replies"]
    explained = Sql(f"EXPLAIN {'QUERY PLAN ' if store.dialect == 'sqlite' else ''}{sql}")
    async with store.reading() as tx:
        rows = await tx.fetch(explained, user_id="ada", nodes="[1,2]", own=None, client="", now=log.now())
    plan = "\n".join(str(value) for row in rows for value in row.values())
    assert "gateway_nodes_by_node" in plan
    assert "gateway_nodes_pkey" not in plan and "PRIMARY KEY (thread=" not in plan

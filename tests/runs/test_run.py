"""The run loop: protocols, budgets, facts, stopping, conflicts."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, events_of, finish

from longthread.errors import (
    InvalidInput,
    LeaseLost,
    NothingToResume,
    QuestionTooLong,
    RunInProgress,
    StoreError,
    ThreadNotFound,
)
from longthread.model.entry import Draft
from longthread.runs.analyst import Analyst
from longthread.runs.events import EventStream
from longthread.settings import Settings
from longthread.store import listing, log, run_events, runs
from longthread.testing import ScriptedChatModel
from longthread.testing.failpoints import Failpoints
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread.tools.sources import RunSources

pytestmark = pytest.mark.one_backend

PROTOCOLS = ["auto", "native", "json"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_question_is_answered_with_steps_citations_and_queries(
    open_analyst: OpenAnalyst, shop: str, protocol: Any
) -> None:
    analyst = await open_analyst([call("list_tables"), COUNT, finish("There are 3 customers [q1], not 7.")])
    handle = await analyst.ask("How many customers?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    events = await events_of(handle)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[0].type == "started"
    final = events[-1]
    assert final.type == "finished"
    assert final.data["answer"] == "There are 3 customers [q1], not 7."
    assert final.data["citations"] == [{"number": "3", "query": "q1"}, {"number": "7", "query": None}]
    assert [(q["query"], q["sql"]) for q in final.data["queries"]] == [("q1", "SELECT COUNT(*) AS n FROM customers")]
    actions = [event.data["action"] for event in events if event.type == "step_finished"]
    assert actions == ["list_tables", "run_sql"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_follow_up_knows_what_was_explored_also_in_another_process(
    open_analyst: OpenAnalyst, shop: str, protocol: Any
) -> None:
    first = await open_analyst([call("list_tables"), call("describe_table", table="customers"), COUNT, finish("3")])
    handle = await first.ask("How many customers?", source=shop, protocol=protocol, user_id=first.settings.user)
    await handle.wait()
    model = ScriptedChatModel([finish("fine")])
    second = await open_analyst(model)
    await (
        await second.ask("by country?", thread_id=handle.thread_id, protocol=protocol, user_id=second.settings.user)
    ).wait()
    shown = [message.text for message in model.calls[0].messages]
    assert any("How many customers?" in text for text in shown)
    [listed] = [text for text in shown if "2 of 2 tables, with their rows:" in text]
    assert "customers: 3" in listed and "orders: " in listed
    described = shown[shown.index(listed) + 2]
    assert all(f"\n{name} " in described for name in ("id", "name", "country"))
    assert sum('"ok":true' in text for text in shown) == 1, "the query's"
    assert not any("longthread-knowledge" in text for text in shown), "what stands whole is not told again"


async def test_facts_are_dropped_when_the_schema_has_changed(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([call("list_tables"), finish("ok"), finish("ok")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("What is there?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    connection = sqlite3.connect(shop)
    connection.execute("ALTER TABLE customers ADD COLUMN phone TEXT")
    connection.close()
    await (await analyst.ask("And now?", thread_id=handle.thread_id, user_id=analyst.settings.user)).wait()
    assert not any("longthread-knowledge" in message.text for message in model.calls[-1].messages)
    assert (await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user))["known_tables"] == []


@pytest.mark.parametrize("protocol", ["auto", "json"])
async def test_garbage_then_half_a_json_then_a_call_ends_finished(
    open_analyst: OpenAnalyst, shop: str, protocol: Any
) -> None:
    garbage = "I think I'll look {" if protocol == "json" else '{"thought": "x", "action": '
    half = '{"thought": "half", "action": "run_sq'
    model = ScriptedChatModel([garbage, half, COUNT, finish("3 [q1]")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, handle.thread_id, user_id="default")
        entries = await log.branch(tx, thread.id, thread.tip)
    errors = [json.loads(entry.text)["error"] for entry in entries if "json_parse_error" in entry.text]
    assert [error["raw_response"] for error in errors] == [garbage, half]
    assert all(error["expected"] and ("example" in error) == (protocol == "json") for error in errors)
    # The model saw its own reply, and then what was wrong with it, as text.
    seen = [message.text for message in model.calls[2].messages]
    assert garbage in seen
    assert half in seen
    assert all("raw_response" not in text for text in seen), "the reply stands right before"
    state = await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user)
    assert [step["step_type"] for step in state["steps"]] == ["error", "error", "action", "finish"]
    assert len(state["error_history"]) == 2
    assert state["last_error"] is None, "it recovered"


async def test_three_malformed_replies_in_a_row_fail_the_run_and_keep_everything(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    analyst = await open_analyst(["a", "b", COUNT, "c", "d", "e", finish("Four.")])
    handle = await analyst.ask("How many?", source=shop, protocol="json", user_id=analyst.settings.user)
    final = await handle.wait()
    assert final.type == "failed"
    assert final.data["error"]["type"] == "json_parse_error"
    state = await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user)
    assert [step["step_type"] for step in state["steps"]] == ["error", "error", "action", "error", "error", "error"]
    again = await analyst.ask("Try again", thread_id=handle.thread_id, protocol="json", user_id=analyst.settings.user)
    assert (await again.wait()).type == "finished", "the count starts anew with each run"


async def test_native_calls_with_broken_arguments_become_observations(open_analyst: OpenAnalyst, shop: str) -> None:
    broken = AIMessage(
        content="",
        invalid_tool_calls=[
            {"name": "run_sql", "args": '{"sql": "SELECT', "id": "c1", "error": None, "type": "invalid_tool_call"}
        ],
    )
    model = ScriptedChatModel([broken, "", COUNT, finish("3")])
    analyst = await open_analyst(model)
    final = await (await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)).wait()
    assert final.type == "finished"
    assert any("arguments of run_sql cannot be read" in message.text for message in model.calls[1].messages)
    assert any("empty" in message.text for message in model.calls[2].messages)


async def test_an_unknown_tool_and_a_failing_query_are_observations(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel(
        [call("drop_everything"), call("run_sql", sql="SELECT nope FROM customers"), COUNT, finish("3 [q2]")]
    )
    analyst = await open_analyst(model)
    events = await events_of(await analyst.ask("How many?", source=shop, user_id=analyst.settings.user))
    assert [event.data["ok"] for event in events if event.type == "step_finished"] == [False, False, True]
    assert "run_sql" in model.calls[1].messages[-1].text
    assert events[-1].type == "finished"


async def test_steps_used_up_pause_the_run_and_continue_goes_on(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([call("list_tables"), COUNT, "Progress: counted [q1].", finish("3 [q1]")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("有多少客户？", source=shop, max_steps=2, user_id=analyst.settings.user)
    paused = await handle.wait()
    assert paused.type == "paused"
    assert paused.data["reason"] == "max_steps"
    assert paused.data["summary"] == "Progress: counted [q1]."
    assert "继续" in paused.data["hint"]
    state = await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user)
    assert state["done"] is False
    assert state["messages"][-1]["content"] == "Progress: counted [q1]."
    finished = await (
        await analyst.ask(" 继续。", thread_id=handle.thread_id, max_steps=2, user_id=analyst.settings.user)
    ).wait()
    assert finished.type == "finished"
    assert "有多少客户？" in model.calls[-1].messages[0].text, "the prompt names the question that is continued"
    state = await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user)
    assert (state["question"], state["done"]) == ("有多少客户？", True)


async def test_a_summary_that_the_model_cannot_write_is_a_digest(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNT, call("run_sql", sql="SELECT x"), RuntimeError("no more"), finish("3")])
    handle = await analyst.ask("How many customers?", source=shop, max_steps=2, user_id=analyst.settings.user)
    paused = await handle.wait()
    found = "**Found**: [q1] 1 row: [[3]]"
    for part in ("**Question**: How many customers?", "**Done**", found, "**Problems**", "**Left**"):
        assert part in paused.data["summary"]
    other = await (
        await analyst.ask("Something else", thread_id=handle.thread_id, user_id=analyst.settings.user)
    ).wait()
    assert other.type == "finished"
    assert (await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user))[
        "question"
    ] == "Something else"


async def test_a_model_that_fails_is_retried_then_replaced_then_reported(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([RuntimeError("flaky"), finish("ok")], retry_attempts=1)
    events = await events_of(await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user))
    assert events[-1].type == "finished"
    assert any(event.type == "warning" and "flaky" in event.data["message"] for event in events)

    failing = await open_analyst([RuntimeError("down")], retry_attempts=0)
    handle = await failing.ask("Hello?", source=shop, user_id=failing.settings.user)
    failed = await handle.wait()
    assert failed.data["error"]["type"] == "model_failed"
    assert "down" in failed.data["error"]["message"]
    later = await open_analyst([finish("back")])
    handle = await later.runs.resume(handle.thread_id, user_id=later.settings.user)
    assert (await handle.wait()).data["answer"] == "back"


async def test_a_stopped_run_is_kept_and_can_be_resumed(open_analyst: OpenAnalyst, shop: str) -> None:
    slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT COUNT(*) FROM n"
    analyst = await open_analyst([[COUNT, call("run_sql", sql=slow)]])
    handle = await analyst.ask("Count slowly", source=shop, user_id=analyst.settings.user)
    async for event in handle.events():
        if event.type == "step_finished":
            break
    await handle.stop()
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, handle.thread_id)
        told = await run_events.events_after(tx, handle.thread_id, handle.run.id, 0)
    assert run is not None
    assert (run.status, run.outcome["reason"]) == ("paused", "stopped")
    assert told[-1].type == "paused"

    model = ScriptedChatModel([finish("3 [q1]")])
    second = await open_analyst(model)
    final = await (await second.runs.resume(handle.thread_id, user_id=second.settings.user)).wait()
    assert final.type == "finished"
    results = [message.text for message in model.calls[0].messages if isinstance(message, ToolMessage)]
    assert '"rows":[[3]]' in results[0], "what was finished is kept"
    assert "interrupted" in results[1], "what was not is said to be interrupted"


async def test_a_second_question_during_a_run_is_refused(open_analyst: OpenAnalyst, shop: str) -> None:
    gate = asyncio.Event()

    class Waiting(ScriptedChatModel):
        async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
            await gate.wait()
            return await super()._agenerate(*args, **kwargs)

        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            await gate.wait()
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    analyst = await open_analyst(Waiting([finish("first")]))
    handle = await analyst.ask("One", source=shop, user_id=analyst.settings.user)
    with pytest.raises(RunInProgress):
        await analyst.ask("Two", thread_id=handle.thread_id, user_id=analyst.settings.user)
    with pytest.raises(RunInProgress):
        await (await open_analyst([])).runs.resume(handle.thread_id, user_id="default")
    gate.set()
    assert (await handle.wait()).data["answer"] == "first"
    assert [
        m["content"] for m in (await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user))["messages"]
    ] == ["One", "first"]


async def test_bad_input_is_refused_before_anything_is_written(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([], max_question=1000)
    for question, error in ((" \n", InvalidInput), ("x" * 1001, QuestionTooLong)):
        with pytest.raises(error):
            await analyst.ask(question, source=shop, user_id=analyst.settings.user)
    with pytest.raises(InvalidInput, match="--source"):
        await analyst.ask("Hello?", user_id=analyst.settings.user)
    with pytest.raises(ThreadNotFound):
        await analyst.ask("Hello?", thread_id="nope", user_id=analyst.settings.user)
    with pytest.raises(ThreadNotFound):
        await analyst.runs.resume("nope", user_id=analyst.settings.user)
    async with analyst.store.reading() as tx:
        assert await listing.list_threads(tx, user_id="default") == []


async def test_a_finished_thread_has_nothing_to_resume(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([finish("done")])
    handle = await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    with pytest.raises(NothingToResume):
        await analyst.runs.resume(handle.thread_id, user_id=analyst.settings.user)


async def test_a_question_of_a_megabyte_is_kept_whole_and_shown_cut(open_analyst: OpenAnalyst, shop: str) -> None:
    question = "How many customers? " + "x" * 1_000_000 + " the end \ud800 \x00"
    model = ScriptedChatModel([COUNT, finish("3 [q1]"), finish("3")])
    analyst = await open_analyst(model)
    handle = await analyst.ask(question, source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    shown = model.calls[0].messages[1].text
    assert len(shown) < 200_000
    assert "characters left out" in shown
    assert shown.startswith("How many customers?")
    state = await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user)
    assert len(state["question"]) == len(question)
    assert (
        await (await analyst.ask("again", thread_id=handle.thread_id, user_id=analyst.settings.user)).wait()
    ).type == "finished"


async def test_the_log_holds_every_message_once_over_many_turns(open_analyst: OpenAnalyst, shop: str) -> None:
    turns = 15
    replies = [reply for n in range(turns) for reply in (COUNT, finish(f"answer {n}"))]
    model = ScriptedChatModel(replies)
    analyst = await open_analyst(model, memory_max_messages_per_thread=24)  # there will be 60
    thread_id = None
    for n in range(turns):
        handle = await analyst.ask(f"question {n}", source=shop, thread_id=thread_id, user_id=analyst.settings.user)
        thread_id = handle.thread_id
        await handle.wait()
    state = await analyst.threads.state(str(thread_id), user_id=analyst.settings.user)
    assert [m["content"] for m in state["messages"]] == [
        text for n in range(turns) for text in (f"question {n}", f"answer {n}")
    ]
    async with analyst.store.reading() as tx:
        assert await log.position(tx, str(thread_id)) == (4 * turns, 4 * turns)
    assert len(model.calls[-1].messages) <= 1 + analyst.settings.memory_max_messages_per_thread + 4, (
        "the state holds the hot window and the new turn"
    )
    assert state["sql_history"][-1]["result"]["data"]["query"] == f"q{turns}"


@pytest.mark.parametrize("ids", [("call_0", "call_0"), ("", ""), ("a" * 20, "a" * 20)])
async def test_calls_whose_ids_come_again_keep_their_own_results(
    open_analyst: OpenAnalyst, shop: str, ids: tuple[str, str]
) -> None:
    def native(sql: str, call_id: str) -> AIMessage:
        args = {"sql": sql}
        return AIMessage(content="", tool_calls=[{"name": "run_sql", "args": args, "id": call_id, "type": "tool_call"}])

    two = native("SELECT 11", ids[0])
    two.tool_calls.append(native("SELECT 22", ids[1]).tool_calls[0])
    model = ScriptedChatModel([two, finish("both"), native("SELECT 33", ids[0]), finish("third")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("Two?", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    await (await analyst.ask("Third?", thread_id=handle.thread_id, user_id=analyst.settings.user)).wait()
    shown = model.calls[-1].messages
    results = {m.tool_call_id: m.text for m in shown if isinstance(m, ToolMessage)}
    called = {c["id"]: c["args"]["sql"] for m in shown if isinstance(m, AIMessage) for c in m.tool_calls}
    assert len(results) == 3
    for call_id, sql in called.items():
        assert f"[[{sql.split()[1]}]]" in results[str(call_id)]


async def test_a_model_that_calls_json_parse_error_is_told_there_is_no_such_tool(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    analyst = await open_analyst([call("json_parse_error"), finish("ok")])
    events = await events_of(await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user))
    assert events[-1].type == "finished"
    [observation] = [event.data["observation"] for event in events if event.type == "step_finished"]
    assert observation["error"]["type"] == "unknown_tool"


async def test_what_no_database_can_store_is_replaced_in_a_reply(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([call("run_sql", sql="SELECT 1 -- \ud800"), finish("bad \ud800 text \x00")])
    handle = await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)
    final = await handle.wait()
    assert final.data["answer"] == "bad \ufffd text \ufffd"
    assert (await analyst.threads.state(handle.thread_id, user_id=analyst.settings.user))["done"]


async def test_an_end_that_cannot_be_stored_is_told_as_a_failure(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = EventStream.end

    async def end(self: EventStream, status: Any, outcome: Any, **more: Any) -> None:
        if status == "finished":
            raise StoreError(reason="full")
        await original(self, status, outcome, **more)

    monkeypatch.setattr(EventStream, "end", end)
    analyst = await open_analyst([finish("ok"), finish("ok")])
    handle = await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).data["error"]["type"] == "store_error"
    await analyst.ask("Again?", thread_id=handle.thread_id, user_id=analyst.settings.user)


async def test_a_stop_while_the_end_is_written_leaves_an_end(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = EventStream.end
    ending = asyncio.Event()

    async def end(self: EventStream, status: Any, outcome: Any, **more: Any) -> None:
        ending.set()
        await asyncio.sleep(0.05)
        await original(self, status, outcome, **more)

    monkeypatch.setattr(EventStream, "end", end)
    analyst = await open_analyst([finish("ok")])
    handle = await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)
    await ending.wait()
    await handle.stop()
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, handle.thread_id)
    assert run is not None
    assert run.status == "finished"


async def test_a_second_stop_breaks_off_nothing_of_the_first(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = RunSources.close
    closing, gate, closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def close(self: RunSources) -> None:
        closing.set()
        await gate.wait()
        await original(self)
        closed.set()

    monkeypatch.setattr(RunSources, "close", close)
    analyst = await open_analyst([finish("ok")])
    handle = await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)
    first = asyncio.ensure_future(handle.stop())
    await closing.wait()
    second, third = (
        asyncio.ensure_future(handle.stop()),
        asyncio.ensure_future(analyst.runs.stop(handle.thread_id, user_id=analyst.settings.user)),
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    third.cancel()
    gate.set()
    await asyncio.gather(first, second, third, return_exceptions=True)
    assert closed.is_set()


async def test_a_process_that_lost_its_run_writes_nothing_more(open_analyst: OpenAnalyst, shop: str) -> None:
    gate, asked = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedChatModel):
        async def _astream(self, *args: Any, **kwargs: Any) -> Any:
            asked.set()
            await gate.wait()
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk

    first = await open_analyst(Waiting([COUNT, finish("from the first")]))
    handle = await first.ask("How many?", source=shop, user_id=first.settings.user)
    await asked.wait()
    async with first.store.writing() as tx:
        run = await runs.last_run(tx, handle.thread_id)
        assert run is not None
        # What an expired lease and another process come to.
        await runs.take_over(tx, run, owner="elsewhere/1/x", alive=lambda owner: False)
        before = (await log.position(tx, handle.thread_id), await run_events.last_event(tx, handle.thread_id, run.id))
    gate.set()
    with pytest.raises(LeaseLost):
        await handle.wait()
    async with first.store.reading() as tx:
        after = (await log.position(tx, handle.thread_id), await run_events.last_event(tx, handle.thread_id, run.id))
        steps = await runs.steps_from(tx, handle.thread_id, 0)
    assert after == before
    assert steps == [], "the reply is not written down, and its call is not run"


async def test_a_call_in_flight_is_repeated_only_if_that_is_safe(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for safe, expected in ((True, '"rows":[[3]]'), (False, "interrupted")):
        thread_id = f"safe-{safe}"
        opened = await open_analyst([COUNT])
        dying = Failpoints(opened.store, _die_after_the_second_step())
        analyst = Analyst(dying, opened.settings, models=lambda name, _: ScriptedChatModel([COUNT]))
        with pytest.raises(_Died):
            await (await analyst.ask("How many?", source=shop, thread_id=thread_id, user_id=analyst.settings.user)).task
        monkeypatch.setattr("longthread.runs.start.may_be_alive", lambda owner: False)
        monkeypatch.setattr(
            "longthread.runs.run_setup.analysis_tools",
            lambda source, _, safe=safe: [
                dataclasses.replace(tool, retry_safe=safe) for tool in analysis_tools(source)
            ],
        )
        model = ScriptedChatModel([finish("after")])
        second = await open_analyst(model)
        handle = await second.runs.resume(thread_id, user_id=second.settings.user)
        assert (await handle.wait()).data["answer"] == "after"
        assert expected in model.calls[0].messages[-1].text
        monkeypatch.undo()


class _Died(BaseException):
    """The process is gone, as far as the store can tell."""


def _die_after_the_second_step() -> Callable[[str], None]:
    """A process that dies when its second step has begun, the tool's: nothing is written behind that."""
    steps = 0

    def reach(boundary: str) -> None:
        nonlocal steps
        steps += boundary == "before insert_step"
        if steps == 2 and boundary in {"after COMMIT", "before BEGIN"}:
            raise _Died

    return reach


async def test_facts_survive_a_thread_longer_than_the_window(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([call("list_tables"), finish("ok"), finish("known")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("What is there?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    async with analyst.store.writing() as tx:
        limit = analyst.settings.memory_max_messages_per_thread
        notes = [Draft(id=f"n{n}", role="assistant", text="note") for n in range(limit + 10)]
        await log.extend(tx, handle.thread_id, notes)
        # Kept for an entry that is none of the branch's: as good as none.
        await runs.save_fold(tx, handle.thread_id, 10**6, {})
    await (await analyst.ask("And?", thread_id=handle.thread_id, user_id=analyst.settings.user)).wait()
    system, *_, last = model.calls[-1].messages
    assert '"customers"' in last.text.split("longthread-knowledge")[1]
    assert system.text == model.calls[0].messages[0].text


async def test_a_window_too_small_for_the_prompt_is_said_so(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([finish("x")], memory_context_window=600)
    final = await (await analyst.ask("Hello?", source=shop, user_id=analyst.settings.user)).wait()
    assert final.data["error"]["type"] == "window_too_small"
    assert "MEMORY_CONTEXT_WINDOW" in final.data["error"]["message"]


async def test_another_source_on_a_thread_is_explored_anew(open_analyst: OpenAnalyst, shop: str, tmp_path: Any) -> None:
    other = str(tmp_path / "other.sqlite")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE rockets (name TEXT)")
    connection.close()
    model = ScriptedChatModel([call("list_tables"), finish("customers, orders"), finish("ok")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("What is there?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    await (
        await analyst.ask("And here?", thread_id=handle.thread_id, source=other, user_id=analyst.settings.user)
    ).wait()
    shown = model.calls[-1].messages
    assert not any(isinstance(message, ToolMessage) for message in shown)
    assert [message.text for message in shown[1:]] == ["What is there?", "customers, orders", "And here?"]
    assert (await analyst.threads.find(handle.thread_id, user_id=analyst.settings.user)).source == other


async def test_a_source_is_opened_again_with_the_password_that_it_was_given_with(
    open_analyst: OpenAnalyst, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    async def open_(spec: str, **more: Any) -> Any:
        opened.append(spec)
        source = await open_source(shop, **more)
        source.spec = "postgresql://u@h/db"
        return source

    monkeypatch.setattr("longthread.tools.sources.open_source", open_)
    secret = "postgresql://u:s3cret@h/db"
    first = await open_analyst([finish("one"), finish("two")])
    handle = await first.ask("One?", source=secret, user_id=first.settings.user)
    await handle.wait()
    await (await first.ask("Two?", thread_id=handle.thread_id, user_id=first.settings.user)).wait()
    configured = await open_analyst([finish("three")], source=secret)
    await (await configured.ask("Three?", thread_id=handle.thread_id, user_id=configured.settings.user)).wait()
    stranger = await open_analyst([finish("four")])
    await (await stranger.ask("Four?", thread_id=handle.thread_id, user_id=stranger.settings.user)).wait()
    assert opened == [secret, secret, secret, "postgresql://u@h/db"]
    async with first.store.reading() as tx:
        entries = await log.branch(tx, handle.thread_id, (await log.position(tx, handle.thread_id))[0])
    assert "s3cret" not in repr(entries)


async def test_a_written_summary_is_a_step_and_streams_under_its_own_id(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNT, "Counted so far \ud800 [q1]."])
    handle = await analyst.ask("How many?", source=shop, max_steps=1, user_id=analyst.settings.user)
    events = await events_of(handle)
    paused = events[-1]
    assert paused.data["summary"] == "Counted so far \ufffd [q1]."
    streamed = [
        e.data["delta"] for e in events if e.type == "text" and e.data["message_id"] == paused.data["message_id"]
    ]
    assert "".join(streamed) == paused.data["summary"]
    async with analyst.store.reading() as tx:
        steps = await runs.steps_from(tx, handle.thread_id, 0)
    assert [(step.kind, step.action, step.status) for step in steps] == [
        ("model", "run_sql", "done"),
        ("tool", "run_sql", "done"),
        ("model", "summary", "done"),
    ]


@pytest.mark.parametrize("protocol", ["auto", "native"])
async def test_thinking_and_calls_in_text_are_not_told_or_answered(
    open_analyst: OpenAnalyst, shop: str, protocol: Any
) -> None:
    script = [
        "I look.</think>\n<tool_call>" + json.dumps({"name": "list_tables", "arguments": {}}) + "</tool_call>",
        "Thought: now I count.\nAction: run_sql\nAction Input: SELECT count(*) AS n FROM customers",
        "```sql\nSELECT count(*) AS m FROM orders\n```",
        "<function=run_sql><parameter=sql>SELECT 1",
        "They ask.</think>There are 3.",
    ]
    analyst = await open_analyst(script)
    handle = await analyst.ask("How many?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    events = await events_of(handle)
    assert events[-1].type == "finished"
    assert events[-1].data["answer"] == "There are 3."
    calls = [event.data["action"] for event in events if event.type == "step_finished"]
    assert calls == ["list_tables", "run_sql", "run_sql", "json_parse_error"]
    assert [query["sql"] for query in events[-1].data["queries"]] == [
        "SELECT count(*) AS n FROM customers",
        "SELECT count(*) AS m FROM orders",
    ]
    async with analyst.store.reading() as tx:
        kept = await run_events.events_after(tx, handle.thread_id, handle.run.id, 0)
    assert "".join(event.data["delta"] for event in kept if event.type == "text") in ("", "There are 3.")


async def test_what_a_folder_leaves_out_is_told_in_the_first_run(open_analyst: OpenAnalyst, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.csv").write_text("city,sold\nRome,2\n", encoding="utf-8")
    (folder / "empty.csv").write_bytes(b"")
    analyst = await open_analyst([call("list_tables"), finish("One."), finish("Two.")])
    told = []
    for question in ("Which tables?", "And now?"):
        handle = await analyst.ask(question, source=str(folder), thread_id="t", user_id=analyst.settings.user)
        told.append([event.data["message"] for event in await events_of(handle) if event.type == "warning"])
    assert told == [["empty.csv is left out: it is empty."], []]


async def test_the_demo_model_says_in_its_first_answer_what_is_left_out(store_address: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "sales.csv").write_text("city,sold\nRome,2\nOslo,3\n", encoding="utf-8")
    (folder / "empty 2021.csv").write_bytes(b"")
    given = {"data_dir": tmp_path / "data", "database": store_address, "model": "demo"}
    async with Analyst.open(Settings.load(env_file=None, **given)) as analyst:
        answers = []
        for question in ("How many sales?", "total sold of sales"):
            handle = await analyst.ask(question, source=str(folder), thread_id="t", user_id=analyst.settings.user)
            answers.append((await handle.wait()).data)
    assert "empty 2021.csv is left out: it is empty." in answers[0]["answer"]
    assert "2021" not in [each["number"] for each in answers[0]["citations"]]
    assert "left out" not in answers[1]["answer"]

"""A run's events: told as they happen, kept once, and the same whenever they are read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, events_of, finish

from longthread import Analyst, Settings
from longthread.llm.chat import Chunk
from longthread.model.entry import Draft
from longthread.model.run import Event
from longthread.runs import events as teller
from longthread.runs.run_context import RunContext
from longthread.store import log, run_events, runs
from longthread.store.driver import Driver
from longthread.store.tables import read_tables
from longthread.store.transfer.threads import read_rows
from longthread.testing import ScriptedModel

pytestmark = pytest.mark.one_backend


@pytest.mark.sampled(3)
@pytest.mark.parametrize("together", [False, True], ids=["each piece by itself", "all pieces together"])
@pytest.mark.parametrize("protocol", ["auto", "native", "json"])
async def test_events_are_the_same_live_and_when_they_are_read_again(
    open_analyst: OpenAnalyst, shop: str, together: bool, protocol: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teller, "TICK_SECONDS", 3600.0 if together else 0.0)
    publish_text = RunContext.publish_text

    async def told(self: RunContext, text: str) -> None:
        await publish_text(self, text)
        while self.stream.has_text and not together:  # noqa: ASYNC110 - looked at once a turn of the loop
            await asyncio.sleep(0)

    monkeypatch.setattr(RunContext, "publish_text", told)
    answer = "\n\n  There are 3 customers [q1]. 共3位。  \n"
    if protocol == "json":
        script = ["no call", COUNT, [call("drop"), COUNT], finish(answer)]
    else:
        script = [COUNT, call("drop"), answer]
    analyst = await open_analyst(script)
    handle = await analyst.ask("How many?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    live = await events_of(handle)
    assert [event.seq for event in live] == list(range(1, len(live) + 1))
    async with analyst.store.reading() as tx:
        again = await run_events.events_after(tx, handle.thread_id, handle.run.id, 0)
        later = await run_events.events_after(tx, handle.thread_id, handle.run.id, 4, limit=3)
        steps = await runs.steps_from(tx, handle.thread_id, 0)
        warnings = await run_events.events_of_type(tx, handle.thread_id, handle.run.id, "warning")
    assert again == live
    assert later == live[4:7]
    assert warnings == [event for event in live if event.type == "warning"]
    assert [step.index for step in steps] == list(range(len(steps)))
    if protocol != "json":
        final = live[-1].data
        last = [
            e.data["delta"] for e in live if e.type == "text" and e.data["message_id"] == live[-1].data["message_id"]
        ]
        assert "".join(last) == answer
        assert len(last) == 1 if together else len(last) > 1
        assert final["answer"] == (answer if protocol == "native" else answer.strip())


class Correcting(ScriptedModel):
    """Streams another text than it has said in the end."""

    async def stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Chunk]:
        yield Chunk("Let me see. ")
        async for chunk in super().stream(*args, **kwargs):
            if chunk.message is not None:
                yield chunk


async def test_a_reply_that_is_not_what_was_streamed_leaves_nothing_unfinished(tmp_path: Path) -> None:
    model = Correcting(["There are three."])
    async with Analyst.open(Settings.of(data_dir=tmp_path, model="x"), models=lambda name, own: model) as analyst:
        handle = await analyst.ask("How many?", user_id="ada", source="demo")
        end = await handle.wait()
    assert (end.type, end.data["answer"]) == ("finished", "There are three.")
    assert "unfinished" not in end.data


async def test_a_result_and_an_answer_are_kept_once(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(
        [call("run_sql", sql="SELECT name FROM customers WHERE id = 2"), finish("Zanzibar, and nothing else.")]
    )
    handle = await analyst.ask("Qandahar?", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    where = await places(analyst.store, handle.thread_id, "李雷", "Zanzibar", "Qandahar")
    assert where == {
        "李雷": ["entries.text"],
        "Zanzibar": ["entries.text"],
        "Qandahar": ["entries.text", "threads.title"],
    }
    async with analyst.store.reading() as tx:
        run = await runs.find_run(tx, handle.thread_id, handle.run.id)
        [_, tool, _] = await runs.steps_from(tx, handle.thread_id, 0)
    assert run is not None
    assert (run.question, run.outcome["answer"]) == ("Qandahar?", "Zanzibar, and nothing else.")
    assert tool.observation is not None
    assert tool.observation["data"]["rows"] == [["李雷"]]


async def places(store: Driver, thread_id: str, *words: str) -> dict[str, list[str]]:
    """The columns that hold each word."""
    found: dict[str, list[str]] = {word: [] for word in words}
    async with store.reading() as tx:
        for table in (await read_tables(tx)).of_threads:
            async for row in read_rows(tx, table, thread_id):
                for name, value in row.items():
                    text = value.decode("utf-8", "replace") if isinstance(value, bytes | memoryview) else str(value)
                    for word in words:
                        if word in text or json.dumps(word)[1:-1] in text:
                            found[word].append(f"{table.name}.{name}")
    return {word: sorted(names) for word, names in found.items()}


async def test_what_a_run_did_is_one_row_when_it_has_ended(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNT, finish("3 [q1]"), COUNT, finish("3 [q2]")])
    first = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await first.wait()
    second = await analyst.ask("And now?", thread_id=first.thread_id, user_id=analyst.settings.user)
    await second.wait()
    async with analyst.store.reading() as tx:
        rows = {
            table.name: [row async for row in read_rows(tx, table, first.thread_id)]
            for table in (await read_tables(tx)).of_threads
        }
        steps = await runs.steps_from(tx, first.thread_id, 0)
        assert await runs.steps_between(tx, first.thread_id, 2, 5) == steps[2:5]
    assert rows["steps"] == rows["events"] == []
    assert len(rows["runs"]) == 2
    assert [(step.index, step.run_id) for step in steps] == [
        *((n, first.run.id) for n in range(3)),
        *((n, second.run.id) for n in range(3, 6)),
    ]
    assert len(rows["prompts"]) == 1, "nothing was learned that the prompt would tell"


async def test_a_run_tells_what_is_left_of_it_when_its_entries_were_deleted(
    open_analyst: OpenAnalyst, shop: str
) -> None:
    analyst = await open_analyst([COUNT, finish("3 [q1]"), finish("ok")])
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    async with analyst.store.writing() as tx:
        await tx.run("prune_entries", thread_id=handle.thread_id, cut=5)
    async with analyst.store.reading() as tx:
        run = await runs.find_run(tx, handle.thread_id, handle.run.id)
        events = await run_events.events_after(tx, handle.thread_id, handle.run.id, 0)
        [model, tool, _] = await runs.steps_from(tx, handle.thread_id, 0)
    assert run is not None
    assert (run.question, run.outcome["answer"]) == ("", "")
    assert (model.thought, tool.observation and tool.observation["error"]["type"]) == ("", "expired")
    assert [event.type for event in events][-1] == "finished"


async def test_a_run_that_was_broken_off_is_packed_by_the_next(store: Driver) -> None:
    plan = runs.NewRun("r1", "q?", "s", "m", "auto", 5)
    async with store.writing() as tx:
        await log.create_thread(tx, "t", user_id="u")
        lease = await runs.begin(tx, "t", plan, owner="gone/1/x", alive=lambda owner: True, tells=True)
        [entry] = await log.append(
            tx, "t", [Draft("e", "tool", '{"ok":true,"data":1}', tool_call_id="c")], tip=0, size=0
        )
        step = await runs.start_step(tx, lease, "tool", action="a", args={"x": 1}, call_id="c")
        await runs.finish_step(tx, lease, step, "done", elapsed_ms=4, action="a", entry_seq=entry.seq)
        step = await runs.start_step(tx, lease, "tool", action="b", call_id="d")
        at = (await runs.steps_from(tx, "t", 0))[0].started_at
        await run_events.append_events(tx, [Event("t", "r1", 2, "warning", {"message": "m"}, at)])
        before = await runs.steps_from(tx, "t", 0)
        await runs.begin(tx, "t", runs.NewRun("r2", "q", "s", "m", "auto", 5), owner="x", alive=lambda owner: False)
        assert await runs.steps_from(tx, "t", 0) == before
        events = await run_events.events_after(tx, "t", "r1", 0)
        run = await runs.find_run(tx, "t", "r1")
    assert run is not None
    assert (run.status, run.outcome, run.question) == ("paused", {"reason": "interrupted"}, "q?")
    assert [(event.seq, event.type) for event in events] == [(1, "started"), (2, "warning"), (3, "paused")]
    assert before[0].observation == {"ok": True, "data": 1}
    assert (before[0].call_id, before[1].status) == ("c", "running")

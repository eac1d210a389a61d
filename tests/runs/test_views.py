"""What a past model call was sent, told again from the log: the same messages, prompt and tools."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call
from tests.analysts import OpenAnalyst
from tests.script import COUNT, call, finish

from longthread.errors import EntryNotFound
from longthread.messages.entries import draft_of
from longthread.messages.langchain import all_to_langchain
from longthread.messages.message import Message
from longthread.model.run import Step
from longthread.runs.analyst import Analyst
from longthread.runs.inspect import Sent, calls_of, look, sent
from longthread.store import log, runs
from longthread.testing import ScriptedChatModel
from longthread.view.tokens import message_budget

pytestmark = pytest.mark.one_backend

COUNTED = call("run_sql", sql="SELECT COUNT(*) AS n FROM rockets")
WIDE = call(
    "run_sql",
    sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 80) SELECT i, 'row number ' || i FROM n",
)


async def told_again(analyst: Analyst, thread_id: str) -> list[tuple[Step, Sent]]:
    """Each model call of a thread with what it was sent, from the store alone; reports of progress are left out."""
    async with analyst.store.reading() as tx:
        steps = [s for s in await runs.steps_from(tx, thread_id, 0) if s.kind == "model" and s.action != "summary"]
        return [(step, await sent(tx, step)) for step in steps]


def dumped(messages: Any) -> list[str]:
    return [json.dumps(m.model_dump(), ensure_ascii=False, default=str) for m in messages]


async def check(analyst: Analyst, thread_id: str, model: ScriptedChatModel) -> list[Step]:
    seen = [made for made in model.calls if "The run paused before" not in made.messages[0].text]
    again = await told_again(analyst, thread_id)
    assert len(again) == len(seen) > 0
    for (_, told), made in zip(again, seen, strict=True):
        assert dumped(all_to_langchain(told.messages)) == dumped(made.messages)
        assert [tool.name for tool in told.tools] == [tool["function"]["name"] for tool in made.tools]
    return [step for step, _ in again]


async def window_for(open_analyst: OpenAnalyst, *, messages: int, source: str = "demo", protocol: Any = "auto") -> int:
    """The context window in which so many tokens are left to the messages, whatever prompt and tools cost here."""
    wide = 40_000
    analyst = await open_analyst([finish("Three.")], memory_context_window=wide)
    handle = await analyst.ask("How many?", source=source, protocol=protocol, user_id=analyst.settings.user)
    await handle.wait()
    async with analyst.store.reading() as tx:
        [step] = await runs.steps_from(tx, handle.thread_id, 0)
    fixed = message_budget(wide, output=analyst.settings.max_tokens, fixed=0) - step.usage["budget"]
    return next(
        window
        for window in range(1, wide)
        if message_budget(window, output=analyst.settings.max_tokens, fixed=fixed) >= messages
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ["auto", "native", "json"])
async def test_every_call_is_told_again(open_analyst: OpenAnalyst, protocol: Any) -> None:
    model = ScriptedChatModel(
        [
            *(call("list_tables"), [COUNTED, WIDE], WIDE, finish("3 [q1]")),
            *("{half", WIDE, call("nothing"), finish("Eighty.")),
            *(WIDE, WIDE, "Not yet.", finish("now: eighty")),
            *(step for n in range(6) for step in (WIDE, finish(f"answer {n} " + "and more " * 40))),
        ]
    )
    window = await window_for(open_analyst, messages=2_600, protocol=protocol)
    analyst = await open_analyst(model, memory_context_window=window, memory_summary_threshold=1000)
    thread_id = None
    for n, steps in enumerate([None, None, 2, *[None] * 7]):
        question = "continue" if n == 3 else f"Question {n}: " + "how many? " * (600 if n == 5 else 3)
        handle = await analyst.ask(
            question,
            source="demo",
            thread_id=thread_id,
            protocol=protocol,
            max_steps=steps,
            user_id=analyst.settings.user,
        )
        thread_id = handle.thread_id
        assert (await handle.wait()).type == ("paused" if steps else "finished")
        await analyst.pruner.settle()  # what a view holds does not depend on how fast the machine is
    steps = await check(analyst, str(thread_id), model)
    ways = {segment[2] for step in steps for segment in step.manifest}
    assert ways == {"whole", "condensed", "cut", "left out", "summary", "facts"}
    # As the store writes it.
    assert max(len(json.dumps(step.manifest, separators=(",", ":"))) for step in steps) < 300
    assert len({step.prompt for step in steps}) < len(steps)


async def test_a_page_that_was_recalled_is_shown_whole(open_analyst: OpenAnalyst) -> None:
    page = call("recall_memory", entry_id="")
    model = ScriptedChatModel([finish("Noted."), page, finish("So it is.")])
    analyst = await open_analyst(model, memory_context_window=await window_for(open_analyst, messages=2_000))
    first = await analyst.ask(
        "Keep this: " + "the harbour of Svalbard, " * 2_000, source="demo", user_id=analyst.settings.user
    )
    await first.wait()
    async with analyst.store.reading() as tx:
        [entry] = await log.entries_between(tx, first.thread_id, 1, 1)
    page["args"]["entry_id"] = entry.id
    await (
        await analyst.ask("What was it?", source="demo", thread_id=first.thread_id, user_id=analyst.settings.user)
    ).wait()
    result = model.calls[-1].messages[-1]
    assert result.type == "tool"
    [found] = json.loads(str(result.text))["data"]["found"]  # it is no JSON where it was cut
    assert entry.text.startswith(found["text"]) and len(found["text"]) > 1_000
    assert f"offset {len(found['text'])} gives what follows" in found["more"]


async def test_what_was_left_out_as_stale_is_told_so(open_analyst: OpenAnalyst, shop: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.sqlite")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE rockets (name TEXT)")
    connection.close()
    model = ScriptedChatModel([call("list_tables"), COUNT, finish("3"), finish("no rockets"), finish("none")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    for question in ("And here?", "Really?"):
        await (
            await analyst.ask(question, thread_id=handle.thread_id, source=other, user_id=analyst.settings.user)
        ).wait()
    *_, last = await check(analyst, handle.thread_id, model)
    assert [segment[2:3] + segment[4:] for segment in last.manifest] == [["whole", "stale"]]


async def test_a_call_that_failed_is_told_too(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([COUNT, RuntimeError("down"), finish("3")])
    analyst = await open_analyst(model, retry_attempts=0)
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "failed"
    [first, failed] = await told_again(analyst, handle.thread_id)
    assert (first[0].status, failed[0].status) == ("done", "failed")
    assert failed[0].observation is not None
    assert failed[0].observation["error"] == {"type": "ServerFailed", "message": "down"}
    assert [message.role for message in failed[1].messages] == ["system", "user", "assistant", "tool"]


async def test_a_step_that_was_no_model_call_has_no_view(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNT, finish("3")])
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    async with analyst.store.reading() as tx:
        [tool] = [step for step in await runs.steps_from(tx, handle.thread_id, 0) if step.kind == "tool"]
        with pytest.raises(EntryNotFound, match="step 1"):
            await sent(tx, tool)


async def test_a_call_that_could_not_be_read_is_told_with_its_result(open_analyst: OpenAnalyst, shop: str) -> None:
    model = ScriptedChatModel([finish("Three.")] * 3)
    analyst = await open_analyst(model, memory_context_window=await window_for(open_analyst, messages=900, source=shop))
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    broken = [invalid_tool_call(name="read", args='{"n": ', id=name, error="") for name in ("x", "y")]
    reply = Message("assistant", "Let me see.", invalid_tool_calls=broken, id="a")
    result = Message("tool", "This was malformed. " * 400, tool_call_id="x", id="t")
    async with analyst.store.writing() as tx:  # as of an application whose thread it is too
        tip, size = await log.position(tx, handle.thread_id)
        said = [draft_of(message) for message in (Message("user", "Read it", id="q"), reply, result)]
        await log.append(tx, handle.thread_id, said, tip=tip, size=size)
    for question in ("And now?", "Really?"):
        await (
            await analyst.ask(question, thread_id=handle.thread_id, source=shop, user_id=analyst.settings.user)
        ).wait()
    *_, last = await check(analyst, handle.thread_id, model)
    assert not any(first <= 4 and end >= 5 for first, end, *_ in last.manifest), "they are in different segments"
    [told] = [message for message in model.calls[-1].messages if message.id == "a"]
    assert isinstance(told, AIMessage) and [call["id"] for call in told.tool_calls] == ["x"]
    async with analyst.store.reading() as tx:
        calls = await calls_of(tx, handle.thread_id)
        seen = await look(tx, calls, len(calls))
    assert [entry.text for entry in seen.entries if entry.seq == 4] == [told.text]
    assert seen.tokens == sum(entry.tokens for entry in seen.entries)

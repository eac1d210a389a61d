"""Known facts: told once, behind the messages, and only while no message of the view tells the same whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.context.test_window import spot
from tests.runs.test_views import check
from tests.script import call, events_of, finish

from longthread.context.system_prompt import KNOWLEDGE
from longthread.context.window import FittedView, PreviousCall, ViewRequest, WindowMessage, fit
from longthread.messages.message import Message, tool_call
from longthread.model.fold import Facts, facts_of
from longthread.runs.inspect import calls_of, look, sent
from longthread.store import runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend


def described(table: str, columns: int = 30) -> dict[str, Any]:
    return {"table_name": table, "columns": [{"name": f"{table}_{n}", "type": "TEXT"} for n in range(columns)]}


def conversation(tables: Sequence[str], questions: int = 4) -> list[WindowMessage]:
    """Each table is described once, in the first turn; then come questions with long answers."""
    messages: list[Message] = [Message("user", "What is there?", id="q")]
    for n, table in enumerate(tables):
        messages.append(
            Message(
                "assistant",
                "",
                id=f"a{n}",
                tool_calls=[tool_call(name="describe_table", args={"table": table}, id=f"c{n}")],
            )
        )
        text = json.dumps({"ok": True, "data": described(table)})
        messages.append(Message("tool", text, tool_call_id=f"c{n}", name="describe_table", id=f"r{n}"))
    messages.append(Message("assistant", "These.", id="a"))
    for n in range(questions):
        messages += [
            Message("user", f"Question {n}? 多少？" * 5, id=f"q{n}"),
            Message("assistant", f"So {n}. " * 80, id=f"s{n}"),
        ]
    return [spot(message, seq) for seq, message in enumerate([*messages, Message("user", "And?", id="last")], 1)]


def viewed(spots: Sequence[WindowMessage], budget: int, past: PreviousCall | None = None) -> FittedView:
    facts = facts_of(Facts(), [each.entry for each in spots])
    return fit(spots, ViewRequest(budget, facts=facts, extra=budget // 2, past=past))


def told(fitted: FittedView) -> dict[str, Any]:
    text = fitted.notes.get("facts", "")
    return dict(json.loads(text.split(f"{KNOWLEDGE}\n")[1].split("\n```")[0])) if text else {}


TABLES = [f"table_{n}" for n in range(6)]


def test_what_stands_whole_is_not_told_again() -> None:
    fitted = viewed(conversation(TABLES), 50_000)
    assert fitted.notes == {}
    assert str(fitted.messages).count("table_3_29") == 1


@pytest.mark.parametrize("budget", [300, 600, 1_200, 2_500, 3_500, 5_000, 7_000])
def test_each_table_is_told_whole_once_at_most_and_the_budget_is_kept(budget: int) -> None:
    spots = conversation(TABLES)
    fitted = viewed(spots, budget)
    assert fitted.view.tokens <= budget
    assert fitted.view.tokens == sum(segment.tokens for segment in fitted.segments)
    whole = {part.item.key for part in fitted.view.parts if part.how == "whole"}
    for n, table in enumerate(TABLES):
        assert f"r{n}" not in whole or table not in told(fitted).get("schemas", {})
    assert [each.how for each in fitted.segments][-1:] == (["facts"] if told(fitted) else ["whole"])
    assert viewed(spots, budget).messages == fitted.messages, "the same input gives the same bytes"


def test_when_the_window_moves_on_the_facts_appear() -> None:
    fitted = viewed(conversation(TABLES, questions=12), 6_000)
    assert set(told(fitted)["schemas"]) & set(TABLES)
    assert KNOWLEDGE in fitted.messages[-1].text
    assert not any(KNOWLEDGE in message.text for message in fitted.messages[:-1])


def test_facts_come_and_go_without_changing_what_stands_before_them() -> None:
    spots = conversation(TABLES, questions=12)
    first = viewed(spots[:-1], 6_000)
    second = viewed(spots, 6_000, PreviousCall(first.segments, first.view.summary.text))
    before = [message for message in first.messages if KNOWLEDGE not in message.text]
    assert second.messages[: len(before)] == before
    assert told(first) == told(second)


async def test_a_view_with_facts_is_told_again_byte_for_byte(open_analyst: OpenAnalyst) -> None:
    wide = call("run_sql", sql="SELECT id, 'a long text ' || name FROM rockets, (SELECT 1 UNION SELECT 2)")
    look_around = [call("list_tables"), call("describe_table", table="rockets"), finish("Looked. ")]
    model = ScriptedChatModel([*look_around, *(step for n in range(6) for step in (wide, finish(f"{n} so. " * 60)))])
    analyst = await open_analyst(model, memory_context_window=9_000, memory_summary_threshold=1_000)
    thread_id = None
    for n in range(7):
        handle = await analyst.ask(f"Question {n}?", source="demo", thread_id=thread_id, user_id=analyst.settings.user)
        thread_id = handle.thread_id
        assert (await handle.wait()).type == "finished"
    steps = await check(analyst, str(thread_id), model)
    assert KNOWLEDGE in model.calls[-1].messages[-1].text
    systems = {made.messages[0].text for made in model.calls}
    assert len(systems) == 1, "what the conversation learns does not change how its prompts begin"
    async with analyst.store.reading() as tx:
        seen = await look(tx, await calls_of(tx, str(thread_id)), len(steps))
    [facts] = [entry for entry in seen.entries if entry.how == "facts"]
    assert "rockets" in facts.text
    assert seen.tokens <= seen.step.usage["budget"]


@pytest.mark.parametrize("protocol", ["native", "json"])
async def test_tables_are_told_as_text_and_kept_as_data(open_analyst: OpenAnalyst, shop: str, protocol: Any) -> None:
    look_around = [call("list_tables"), call("describe_table", table="customers"), finish("Looked.")]
    model = ScriptedChatModel(look_around)
    analyst = await open_analyst(model)
    handle = await analyst.ask("What is there?", source=shop, protocol=protocol, user_id=analyst.settings.user)
    events = await events_of(handle)
    prefix = "Observation: " if protocol == "json" else ""
    listing, description = (made.messages[-1].text for made in model.calls[1:])
    assert listing == f"{prefix}2 of 2 tables, with their rows:\ncustomers: 3\norders: 3"
    assert description.startswith(
        f"{prefix}CREATE TABLE customers ( -- 3 rows.\nid INTEGER PRIMARY KEY,\nname TEXT, -- "
    )
    data = [event.data["observation"]["data"] for event in events if event.type == "step_finished"]
    assert (data[0]["tables"], data[1]["columns"][2]["values"]) == (["customers", "orders"], ["UK", "China"])
    async with analyst.store.reading() as tx:
        steps = [step for step in await runs.steps_from(tx, handle.thread_id, 0) if step.kind == "model"]
        again = await sent(tx, steps[-1])
        # A call of an earlier version was sent the JSON, and is shown so.
        earlier = replace(steps[-1], manifest=[segment[:4] for segment in steps[-1].manifest])
        before = await sent(tx, earlier)
    assert again.messages[-1].text == description
    assert json.loads(before.messages[-1].text.removeprefix(prefix))["data"] == data[1]


async def test_a_description_that_left_the_view_is_a_known_fact(open_analyst: OpenAnalyst, shop: str) -> None:
    turns = [(call("run_sql", sql=f"SELECT {n}"), finish(f"{n} so. " * 250)) for n in range(8)]
    described_once = [call("describe_table", table="customers"), finish("Looked.")]
    model = ScriptedChatModel([*described_once, *(each for turn in turns for each in turn)])
    analyst = await open_analyst(model, memory_context_window=6_000)
    for n in range(1 + len(turns)):
        handle = await analyst.ask(f"Question {n}?", source=shop, thread_id="t", user_id=analyst.settings.user)
        assert (await handle.wait()).type == "finished"
    first, last = ("\n".join(message.text for message in model.calls[n].messages) for n in (1, -1))
    assert "CREATE TABLE customers ( -- 3 rows." in first and KNOWLEDGE not in first
    assert "CREATE TABLE customers ( -- 3 rows." not in last
    known = json.loads(last.split(f"{KNOWLEDGE}\n")[1].split("\n```")[0])
    assert known["schemas"]["customers"]["columns"][2]["values"] == ["UK", "China"]

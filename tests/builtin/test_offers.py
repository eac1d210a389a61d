"""Requests offer charts, recall and memories where a conversation needs them, and answer calls of them always."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread.runs.analyst import Analyst
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

DATA = ["sample_rows", "run_sql"]
WIDE = call(
    "run_sql",
    sql="WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 80) SELECT i, 'row number ' || i FROM n",
)


def offered(made: Any) -> list[str]:
    return [tool["function"]["name"] for tool in made.tools]


async def asked(analyst: Analyst, question: str, thread_id: str | None = None) -> str:
    handle = await analyst.ask(question, source="demo", thread_id=thread_id, user_id=analyst.settings.user)
    await handle.wait()
    return handle.thread_id


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("How many rockets are there?", []),
        ("有多少枚火箭？", []),
        ("Draw the launches of each year", ["chart"]),
        ("请画出每年的发射次数", ["chart"]),
        ("What did we find about Falcon 9?", ["recall_memory"]),
        ("上次查过的火箭是哪一枚？", ["recall_memory"]),
        ("From now on, give amounts in euros", ["remember", "forget"]),
        ("以后金额都用欧元", ["remember", "forget"]),
        ("Zeichne ein Diagramm der Starts je Jahr", ["chart"]),
        ("Dessine un graphique des lancements", ["chart"]),
        ("Dibuja un gráfico de los lanzamientos", ["chart"]),
        ("打ち上げ回数をグラフにして", ["chart"]),
        ("Ab jetzt alle Beträge in Euro, merke dir das", ["remember", "forget"]),
        ("Retiens que les montants sont en euros", ["remember", "forget"]),
        ("A partir de ahora, los importes en euros", ["remember", "forget"]),
        ("金額は千円単位と覚えておいて", ["remember", "forget"]),
        ("Wie viele Raketen gibt es?", []),
        ("Combien de fusées y a-t-il ?", []),
        ("¿Cuántos cohetes hay?", []),
        ("ロケットは何機ありますか？", []),
        ("Remember that plot", ["chart", "recall_memory", "remember", "forget"]),
    ],
)
async def test_a_question_is_sent_with_the_tools_that_it_needs(
    open_analyst: OpenAnalyst, question: str, more: list[str]
) -> None:
    model = ScriptedChatModel([finish("Yes.")] * 2)
    analyst = await open_analyst(model)
    thread_id = await asked(analyst, question)
    assert offered(model.calls[0]) == DATA + more
    await asked(analyst, "And of Ariane?", thread_id)
    assert offered(model.calls[1]) == DATA + more  # the prompt's beginning stays what it was


async def test_a_call_of_a_tool_that_was_not_offered_is_answered(open_analyst: OpenAnalyst) -> None:
    model = ScriptedChatModel([call("remember", content="Amounts are in euros."), finish("I will."), finish("1.")])
    analyst = await open_analyst(model)
    thread_id = await asked(analyst, "Amounts are in euros.")
    assert offered(model.calls[0]) == DATA
    assert json.loads(str(model.calls[1].messages[-1].content))["ok"]
    await asked(analyst, "How many?", thread_id)
    assert offered(model.calls[2]) == [*DATA, "remember"]


async def test_recall_is_offered_once_messages_are_left_out(open_analyst: OpenAnalyst) -> None:
    turns = 12
    model = ScriptedChatModel([each for n in range(turns) for each in (WIDE, finish(f"Row {n}. " + "It holds. " * 60))])
    analyst = await open_analyst(model, memory_context_window=6_000)
    thread_id = await asked(analyst, "Which rows?")
    for n in range(1, turns):
        await asked(analyst, f"Which rows of {n}?", thread_id)
    assert offered(model.calls[0]) == DATA
    assert offered(model.calls[-1]) == [*DATA, "recall_memory"]

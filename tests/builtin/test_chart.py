"""A chart of a result, in a run: what the model is told, and what people get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread.builtin.chart import charts_of
from longthread.runs.shared import RunHandle
from longthread.store import log, runs

pytestmark = pytest.mark.one_backend

COUNTRIES = call("run_sql", sql="SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC")
NAMES = call("run_sql", sql="SELECT name FROM customers")


async def charted(handle: RunHandle) -> list[Any]:
    """What the run's charts gave the model."""
    async with handle.store.reading() as tx:
        run = await runs.find_run(tx, handle.thread_id, handle.run.id)
        assert run is not None
        return [
            step.observation for step in await runs.steps_of(tx, run) if (step.kind, step.action) == ("tool", "chart")
        ]


async def test_a_result_is_shown_as_a_chart(open_analyst: OpenAnalyst, shop: str) -> None:
    script = [
        call("chart", mark="bar"),
        COUNTRIES,
        NAMES,
        call("chart", query="q1", mark="bar", x="country", y="n", title="客户"),
        call("chart", query="[q1]", mark="bar", x="contry", y="n"),
        call("chart", query="q9", mark="bar", x="country", y="n"),
        call("chart", mark="pie", x="name"),
        call("chart", mark="bar", x="name", aggregate="count"),
        finish("Here it is."),
    ]
    analyst = await open_analyst(script, max_steps=20)
    handle = await analyst.ask("Chart the customers by country", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    early, good, column, label, mark, newest = await charted(handle)
    assert "no result yet" in early["error"]["message"]
    assert (good["ok"], good["data"]["result"], good["data"]["rows"]) == (True, "q1", 2)
    assert good["data"]["measures"] == {"country": "nominal", "n": "quantitative"}
    assert "values" not in good["data"]["spec"]["data"] and len(json.dumps(good)) < 1_000
    assert (column["error"]["type"], "country" in column["error"]["message"]) == ("unknown_column", True)
    assert "q1, q2" in label["error"]["message"]
    assert "`mark`" in mark["error"]["message"]
    assert newest["data"]["result"] == "q2"
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, handle.thread_id, user_id="default")
        entries = await log.branch(tx, thread.id, thread.tip)
    first, second = charts_of(entries)
    assert first["data"]["values"] == [{"country": "UK", "n": 2}, {"country": "China", "n": 1}]
    assert first["title"] == "客户"
    assert {row["name"] for row in second["data"]["values"]} == {"Ada", "李雷", "Bob"}


async def test_a_result_that_is_no_longer_in_the_window_is_found(open_analyst: OpenAnalyst, shop: str) -> None:
    small = {"memory_max_messages_per_thread": 4}
    analyst = await open_analyst([COUNTRIES, finish("2 [q1].")] + [finish(f"Yes {n}.") for n in range(4)], **small)
    handle = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    for _ in range(4):
        await (await analyst.ask("Sure?", thread_id=handle.thread_id, user_id=analyst.settings.user)).wait()
    again = await open_analyst(
        [call("chart", query="q1", mark="arc", color="country", y="n"), finish("There.")], **small
    )
    last = await again.ask("Chart it", thread_id=handle.thread_id, user_id=again.settings.user)
    await last.wait()
    [seen] = await charted(last)
    assert (seen["ok"], seen["data"]["result"]) == (True, "q1"), seen


async def test_a_result_that_was_cut_is_told_to_be_so(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst(
        [NAMES, call("chart", mark="bar", x="name", aggregate="count"), finish("So.")], sql_rows=2
    )
    handle = await analyst.ask("Chart the names", source=shop, user_id=analyst.settings.user)
    await handle.wait()
    [seen] = await charted(handle)
    assert "holds 2 of 3 rows" in seen["data"]["notes"][0]


SUMS = call("run_sql", sql="SELECT customer_id AS country, SUM(total) AS n FROM orders GROUP BY 1")
BAR = call("chart", mark="bar", x="country", y="n")


async def test_a_chart_waits_for_the_query_of_its_own_reply(open_analyst: OpenAnalyst, shop: str) -> None:
    analyst = await open_analyst([COUNTRIES, finish("2 [q1]"), [SUMS, BAR], finish("See.")])
    first = await analyst.ask("How many?", source=shop, user_id=analyst.settings.user)
    await first.wait()
    again = await analyst.ask("And the sums, as a chart", thread_id=first.thread_id, user_id=analyst.settings.user)
    assert (await again.wait()).type == "finished"
    [seen] = await charted(again)
    assert (seen["ok"], seen["data"]["result"]) == (True, "q2"), seen


async def test_several_queries_and_charts_in_one_reply(open_analyst: OpenAnalyst, shop: str) -> None:
    old = call("chart", query="q1", mark="bar", x="country", y="n")
    analyst = await open_analyst(
        [COUNTRIES, [COUNTRIES, SUMS, BAR, BAR], [COUNTRIES, BAR, SUMS, BAR, old], [BAR, SUMS], finish("See.")]
    )
    handle = await analyst.ask("Chart it", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    seen = [one["data"]["result"] if one["ok"] else one["error"]["message"] for one in await charted(handle)]
    assert seen[:5] == ["q2", "q3", "q4", "q5", "q1"]
    assert "comes behind the chart" in seen[5]


async def test_a_chart_of_a_query_that_failed_is_not_of_an_older_result(open_analyst: OpenAnalyst, shop: str) -> None:
    broken = call("run_sql", sql="SELECT nothing FROM customers")
    analyst = await open_analyst([COUNTRIES, [broken, BAR], BAR, finish("So.")])
    handle = await analyst.ask("Chart it", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    failed, older = await charted(handle)
    assert "query of this reply failed" in failed["error"]["message"]
    assert older["data"]["result"] == "q1"


async def test_a_chart_has_several_measures(open_analyst: OpenAnalyst, shop: str) -> None:
    sql = "SELECT country, COUNT(*) AS n, MIN(id) AS first FROM customers GROUP BY country"
    script = [call("run_sql", sql=sql), call("chart", mark="bar", x="country", y="n, first"), finish("Here.")]
    analyst = await open_analyst(script)
    handle = await analyst.ask("Chart count and first id by country", source=shop, user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    [made] = await charted(handle)
    assert made["data"]["measures"] == {"country": "nominal", "n": "quantitative", "first": "quantitative"}
    assert made["data"]["spec"]["transform"] == [{"fold": ["n", "first"], "as": ["measure", "value"]}]

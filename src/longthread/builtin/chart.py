"""The tool `chart`, which shows a result as a chart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from longthread.builtin.query_results import StoredResult, find_result, find_result_before, result_labels
from longthread.errors import InvalidInput
from longthread.messages.message import Message
from longthread.model.catalog import CHART, QUERIES
from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.model.run import Step
from longthread.model.thread import Thread
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.tools.analysis.chart import AGGREGATES, MARKS, ChartRequest, Data, chart, with_rows
from longthread.tools.arguments import Arguments
from longthread.tools.tool import Tool, as_observation

if TYPE_CHECKING:
    from longthread.context.window import Window  # which needs LangChain


_ABOUT = (
    "Shows the user a result of run_sql as a chart: call it for a trend or several groups, or when asked. `x`, `y` and "
    "`color` are its columns: aggregate and order them in the query. An arc has `y` and `color`."
)
CHART_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Its label; by default the newest."},
        "mark": {"type": "string", "enum": list(MARKS)},
        "x": {"type": "string"},
        "y": {"type": "string", "description": "One column, or several with commas."},
        "color": {"type": "string"},
        "aggregate": {"type": "string", "enum": list(AGGREGATES), "description": "Of y; count needs none."},
        "title": {"type": "string"},
    },
    "required": ["mark"],
}


def chart_tool(store: Driver, thread: Thread, window: Window) -> Tool:
    """`chart` for a run on a thread. It returns the specification without rows; `charts_of` adds them."""
    arguments = Arguments(CHART_PARAMETERS, tool=CHART)

    async def work(given: Mapping[str, Any]) -> Mapping[str, Any]:
        asked = arguments.validate({name: value for name, value in given.items() if value is not None})
        found = await _find_result(asked.get("query", ""), store, thread, window)
        return await asyncio.to_thread(_drawn, found, asked)

    return Tool(CHART, _ABOUT, CHART_PARAMETERS, as_observation(work), retry_safe=True, category="chart")


async def _find_result(label: str, store: Driver, thread: Thread, window: Window) -> StoredResult:
    """A result of the hot window, else of the whole conversation, which is read only then."""
    entries: Sequence[Entry] = [spot.entry for spot in window.spots]
    there = result_labels(entries)
    if label.strip().strip("[]") not in there and not (there and not label.strip()):
        async with store.reading() as tx:
            now = await log.find_thread(tx, thread.id, user_id=thread.user_id)
            entries = await log.branch(tx, thread.id, now.tip, limit=max(1, now.entry_count))
        there = result_labels(entries)
    if not label.strip() and not there:
        raise InvalidInput(reason="The conversation has no result yet. Ask with run_sql first.")
    return find_result(entries, label if label.strip() else there[-1])


def _drawn(found: StoredResult, asked: Mapping[str, Any]) -> dict[str, Any]:
    data = Data(found.columns, found.rows)
    drawn = chart(ChartRequest(**{name: value for name, value in asked.items() if name != "query"}), data, found.label)
    notes = list(drawn.notes)
    if found.shown != f"{len(found.rows)} of {len(found.rows)}":
        notes.insert(0, f"The result holds {found.shown} rows, and only these are shown. Aggregate them in the query.")
    made = {"result": found.label, "rows": len(data.rows), "measures": dict(drawn.measures), "spec": dict(drawn.spec)}
    return made | ({"notes": notes} if notes else {})


def charts_of(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The charts of a conversation, in order, each with the stored rows of its result."""
    calls = {call.id for entry in entries for call in entry.tool_calls if call.name == CHART}
    charts: list[dict[str, Any]] = []
    for at, entry in enumerate(entries):
        asked = entry.role == "tool" and entry.tool_call_id in calls
        spec = _spec(observation_of(entry.text)) if asked else None
        if spec is not None:
            charts.append(_fill_chart(spec, find_result(entries[:at], str(spec["data"]["name"]))))
    return charts


async def chart_of(tx: Transaction, step: Step) -> dict[str, Any] | None:
    """The chart of a call with the stored rows of its result, or None. Raises ResultNotFound."""
    spec = _spec(step.observation or {}) if step.action == CHART else None
    if spec is None:
        return None
    return _fill_chart(
        spec, await find_result_before(tx, step.thread_id, step.entry_seq or 0, str(spec["data"]["name"]))
    )


def _spec(observation: Mapping[str, Any]) -> dict[str, Any] | None:
    """The specification in an observation; None where the call failed or was of another tool of that name."""
    data = observation.get("data")
    spec = data.get("spec") if isinstance(data, dict) else None
    return spec if isinstance(spec, dict) and isinstance(spec.get("data"), dict) and "name" in spec["data"] else None


def _fill_chart(spec: Mapping[str, Any], found: StoredResult) -> dict[str, Any]:
    return with_rows(spec, Data(found.columns, found.rows))


def with_query(
    args: Mapping[str, Any], call_id: str | None, maker: Message, results: Sequence[Message]
) -> Mapping[str, Any]:
    """A chart's arguments with the label of its query in the same reply, if there is one.

    `results` are those of the calls before it. If as many charts follow as queries, they belong together in order; else
    a chart shows the query before it. Raises InvalidInput where that query failed, has not run or comes later.
    """
    calls = list(maker.tool_calls)
    place = next((n for n, call in enumerate(calls) if call["id"] == call_id), len(calls))
    queries = [n for n, call in enumerate(calls) if call["name"] in QUERIES]
    if str(args.get("query") or "").strip() or not queries:
        return args
    charts = [n for n, call in enumerate(calls) if call["name"] == CHART and not call["args"].get("query")]
    before = [n for n in queries if n < place]
    if not before:
        raise InvalidInput(reason="The query of this reply comes behind the chart. Call chart after it.")
    in_order = len(charts) == len(queries) and max(queries) < min(charts) and place in charts
    own = calls[queries[charts.index(place)] if in_order else before[-1]]
    result = next((m for m in results if m.role == "tool" and m.tool_call_id == own["id"]), None)
    observation = observation_of(str(result.text)) if result is not None else {}
    if not observation.get("ok"):
        how = "failed" if result is not None else "has not run"
        raise InvalidInput(reason=f"The query of this reply {how}, so there is no result to show. Mend it, then chart.")
    return {**args, "query": str(observation["data"]["query"])}

"""A chart in the same reply as the query that it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longthread.errors import InvalidInput
from longthread.messages.message import Message
from longthread.model.builtin import CHART, QUERIES
from longthread.model.fold import observation_of


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

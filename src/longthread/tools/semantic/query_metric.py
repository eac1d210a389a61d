"""The tool `query_metric`: metrics by dimensions, compiled to SQL that runs as any other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.errors import InvalidInput
from longthread.model.catalog import QUERY_METRIC
from longthread.model.semantics import DimensionDefinition, MetricDefinition, SemanticLayer, layer_of
from longthread.store import catalog as catalog_store
from longthread.store.driver import Driver
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import run_query
from longthread.tools.catalog import address
from longthread.tools.semantic.compile import MetricRequest, compile_metrics, unproven_key
from longthread.tools.semantic.expressions import KeyJoin
from longthread.tools.tool import Tool, as_observation
from longthread.view.tokens import estimate

TOKENS = 500
"""What the names and meanings of metrics may have in a prompt, and of dimensions; the names of others have as many
again."""
_ABOUT = (
    "Computes metrics that are defined once for everybody: use it, and not run_sql, for what they name. The schema's "
    "last comments list the metrics and dimensions."
)
_METRICS = "Names of metrics."
_BY = "Dimensions to split by; a time also by grain: order_date__month (day, week, month, quarter, year). metric_time \
is each metric's own time."
_WHERE = "A condition over dimensions or metrics, as in SQL."
_ORDER = "Names of what is shown; `desc` behind one turns it."
_LIMIT = "How many rows."
_MOST = 100_000
_NAMES = {"type": "array", "items": {"type": "string"}}
METRIC_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "metrics": {**_NAMES, "description": _METRICS},
        "by": {**_NAMES, "description": _BY},
        "where": {"type": "string", "description": _WHERE},
        "order": {**_NAMES, "description": _ORDER},
        "limit": {"type": "integer", "minimum": 1, "description": _LIMIT},
    },
    "required": ["metrics"],
}


async def semantic_layer(store: Driver, source: Source) -> SemanticLayer:
    """Return the layer of the catalog's sources with this address, without what names hidden tables or columns."""
    async with store.reading() as tx:
        every = await catalog_store.sources(tx)
    own = [each.semantics for each in every if each.is_active and address.is_of(each.address, source.spec)]
    return _visible(layer_of(each for each in own if each), source)


def semantic_tools(source: Source, layer: SemanticLayer) -> list[Tool]:
    """Return the tool of a source that has metrics."""
    if not layer.metrics:
        return []
    work = _Metrics(source, layer).query
    return [Tool(QUERY_METRIC, _ABOUT, METRIC_PARAMETERS, as_observation(work), retry_safe=True, category="database")]


def describe_layer(layer: SemanticLayer, tokens: int = TOKENS) -> Iterator[str]:
    """Yield the metrics and the dimensions as lines of a prompt: names, synonyms and meanings, no SQL."""
    for kind, items in (("Metrics", layer.metrics), ("Dimensions", layer.dimensions)):
        left, told = 2 * tokens, list[str]()
        for each in items.values():
            line = _line(each)
            line = line if left - estimate(line) >= tokens else each.name
            left -= estimate(f"{line}; ")
            if left < 0:
                break
            told.append(line)
        more = [f"{len(items) - len(told)} more"] if len(told) < len(items) else []
        if told:
            yield f"{kind}: {'; '.join([*told, *more])}."


def _line(each: MetricDefinition | DimensionDefinition) -> str:
    also = f" ({', '.join(each.synonyms)})" if each.synonyms else ""
    time = f", a time by {each.grain}" if isinstance(each, DimensionDefinition) and each.grain else ""
    meaning = f": {each.meaning.rstrip('.。')}" if each.meaning else ""
    return " ".join(f"{each.name}{also}{time}{meaning}".split())


def _visible(layer: SemanticLayer, source: Source) -> SemanticLayer:
    metrics = {name: each for name, each in layer.metrics.items() if not source.hides(each.text)}
    while gone := layer.metrics.keys() - metrics.keys():  # and what is calculated from these
        of_gone = re.compile(rf"\b({'|'.join(map(re.escape, gone))})\b", re.I)
        left = {name: each for name, each in metrics.items() if each.table or not of_gone.search(each.sql)}
        if len(left) == len(metrics):
            break
        metrics = left
    dimensions = {name: each for name, each in layer.dimensions.items() if not source.hides(each.text)}
    joins = [
        each
        for each in layer.joins
        if not source.hides(" ".join([each.table, each.to, *each.columns, *each.references]))
    ]
    return SemanticLayer(metrics, dimensions, joins)


class _Metrics:
    def __init__(self, source: Source, layer: SemanticLayer) -> None:
        self._source = source
        self._layer = layer
        self._proven: set[KeyJoin] = set()

    async def query(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a request."""
        request, source = _request(arguments), self._source
        schema = await source.schema()
        compiled = await asyncio.to_thread(compile_metrics, self._layer, schema, source.dialect, request)
        for join in compiled.unproven:
            if join not in self._proven:
                await self._prove(join)
                self._proven.add(join)
        data = await run_query(source, compiled.sql)
        return {"metrics": list(compiled.metrics), **data}

    async def _prove(self, join: KeyJoin) -> None:
        """Check that the columns that a join refers to tell one row. Raises InvalidInput."""
        found = await run_query(self._source, unproven_key(join, self._source.dialect))
        if found["rows"]:
            value = ", ".join(map(str, found["rows"][0]))
            raise InvalidInput(
                reason=f"{join.to.label} has several rows with {', '.join(join.references)} = {value}: joined, they "
                "would count a metric several times. Use a dimension of another table, or mend the join of the source."
            )


def _request(arguments: Mapping[str, Any]) -> MetricRequest:
    limit, where = arguments.get("limit"), arguments.get("where") or ""
    if isinstance(limit, str) and limit.strip().isdecimal():
        limit = int(limit)
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST):
        raise InvalidInput(reason=f"The argument `limit` must be a whole number from 1 to {_MOST}.")
    if not isinstance(where, str):
        raise InvalidInput(reason="The argument `where` must be a text, as country = 'France'.")
    names = {name: _names(arguments, name) for name in ("metrics", "by", "order")}
    return MetricRequest(**names, where=where, limit=limit)


def _names(arguments: Mapping[str, Any], name: str) -> Sequence[str]:
    """Return a list of names, which may be written as one text with commas."""
    value = arguments.get(name)
    items = value.split(",") if isinstance(value, str) else value or []
    if not isinstance(items, list) or not all(isinstance(each, str) for each in items):
        raise InvalidInput(reason=f"The argument `{name}` must be a list of names.")
    return [each.strip() for each in items if each.strip()]

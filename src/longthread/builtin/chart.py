"""The tool `chart`, which shows a result as a chart: a Vega-Lite specification.

The specification names its data by the result's label. `with_rows` adds the rows, which the log has.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

from longthread.context.citations import StoredResult, find_result, find_result_before, result_labels
from longthread.errors import ColumnNotFound, InvalidInput
from longthread.messages.message import Message
from longthread.model.catalog import CHART, QUERIES
from longthread.model.entry import Entry
from longthread.model.fold import observation_of
from longthread.model.run import Step
from longthread.model.thread import Thread
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.tools.analysis.quoting import UniqueNames
from longthread.tools.analysis.result import LARGEST, iso
from longthread.tools.analysis.schema import close_names
from longthread.tools.arguments import Arguments
from longthread.tools.tool import Tool, as_observation

if TYPE_CHECKING:
    from longthread.context.window import Window

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_ROWS = 5_000
"""Rows of a chart at most: the first ones."""
ChartMark = Literal["bar", "line", "area", "point", "arc"]
Aggregate = Literal["count", "sum", "mean", "median", "min", "max"]
FieldType = Literal["quantitative", "temporal", "ordinal", "nominal"]
MARKS: tuple[ChartMark, ...] = get_args(ChartMark)
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)
_MANY_COLORS = 20
_MANY_BARS = 60
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_EXACT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]+")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_NO_MOMENTS = frozenset({"infinity", "-infinity"})
"""Database values that no chart can show."""
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?"
)
_YEAR = re.compile(r"(^|[_ ])(year|yr)([_ ]|$)|年份?$", re.I)
_SPECIAL = re.compile(r"""([\\.\[\]'"])""")


@dataclass(frozen=True, slots=True)
class ChartRequest:
    """A request for a chart. The names are columns of the result; `y` may name several, with commas between them."""

    mark: ChartMark
    x: str | None = None
    y: str | None = None
    color: str | None = None
    aggregate: Aggregate | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A specification without rows, the type of each column that it shows, and notes for the reader."""

    spec: Mapping[str, Any]
    measures: Mapping[str, FieldType]
    notes: Sequence[str]


class Data:
    """The rows of a result, with unique column names. Missing cells are NULL."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        names, size = UniqueNames(key=str), len(columns)
        self.columns = [names.take(column or "column") for column in columns]
        self.rows = [[*row[:size], *[None] * (size - len(row))] for row in rows[:MOST_ROWS]]
        self.total = len(rows)

    def values(self, column: str) -> list[Any]:
        """The values of a column without NULL."""
        at = self.columns.index(column)
        return [row[at] for row in self.rows if row[at] is not None]

    def find(self, name: str) -> str:
        """Finds a column, in any case. Raises ColumnNotFound, with the nearest names."""
        folded = [column for column in self.columns if column.strip().casefold() == name.strip().casefold()]
        if name in self.columns or folded:
            return name if name in self.columns else folded[0]
        close = close_names(name, self.columns)
        which = f"The nearest are: {', '.join(close)}." if close else f"The result has: {', '.join(self.columns[:20])}."
        raise ColumnNotFound(column=name[:100], nearest=which)

    def measure(self, column: str) -> FieldType:
        """The type of a column, by its values."""
        values = self.values(column)
        numbers = [value for value in values if not (isinstance(value, str) and value in _NO_NUMBERS)]
        if numbers and all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers):
            is_year = _YEAR.search(column) and all(value == int(value) and 1000 <= value <= 2999 for value in numbers)
            return "ordinal" if is_year else "quantitative"
        if not values or not all(isinstance(value, str) for value in values):
            return "nominal"
        moments = [text for text in values if text not in _NO_MOMENTS]
        if numbers and _are_exact(numbers):
            return "quantitative"
        return "temporal" if moments and all(_is_moment(text) for text in moments) else "nominal"


def chart(wanted: ChartRequest, data: Data, label: str) -> Chart:
    """Makes the chart of a result. Raises ColumnNotFound; InvalidInput: this chart cannot show these columns."""
    if not data.rows:
        raise InvalidInput(reason=f"The result {label} has no rows: there is nothing to show.")
    measured = _several(wanted, data)
    if measured:
        return _chart_of_several(wanted, data, label, measured)
    names = {"x": wanted.x, "y": wanted.y, "color": wanted.color}
    found = {channel: data.find(name) for channel, name in names.items() if name}
    measures = {column: data.measure(column) for column in dict.fromkeys(found.values())}
    if measures.get(found.get("y", "")) == "quantitative":
        beside = [found[channel] for channel in ("x", "color") if channel in found and found[channel] != found["y"]]
        # Texts of digits alone may be ids.
        ids = [each for each in beside if all(isinstance(v, str) and _WHOLE.fullmatch(v) for v in data.values(each))]
        measures |= dict.fromkeys(ids, "nominal")
    numbers = [column for column in data.columns if data.measure(column) == "quantitative"]
    channels = (_slices if wanted.mark == "arc" else _axes)(wanted, found, measures, numbers)
    encoding = {
        channel: _encode_column(one, aggregate, data, measures) for channel, (one, aggregate) in channels.items()
    }
    return Chart(_spec(wanted, label, encoding), measures, _notes(wanted, data, found, measures))


def _several(wanted: ChartRequest, data: Data) -> list[str]:
    """Return the columns that `y` names, if they are more than one. Raises ColumnNotFound."""
    names = [name for name in (wanted.y or "").split(",") if name.strip()]
    is_one = len(names) < 2 or (wanted.y or "").strip().casefold() in (each.strip().casefold() for each in data.columns)
    return [] if is_one else list(dict.fromkeys(map(data.find, names)))


def _chart_of_several(wanted: ChartRequest, data: Data, label: str, ys: Sequence[str]) -> Chart:
    """Make a chart with a mark for each measure of a row, in the measure's color."""
    if wanted.x is None or wanted.color is not None or wanted.mark not in ("bar", "line", "point"):
        raise InvalidInput(reason="Several columns for y make a bar, line or point chart with x, and without color.")
    x = data.find(wanted.x)
    measures = {column: data.measure(column) for column in (x, *ys)}
    if words := [column for column in ys if measures[column] != "quantitative"]:
        raise InvalidInput(reason=f"Several columns for y must be numbers, and {', '.join(words)} is none.")
    names = UniqueNames(key=str)
    for column in data.columns:
        names.take(column)
    measure, value = names.take("measure"), names.take("value")
    color = {"field": measure, "type": "nominal", "title": None, "sort": list(ys)}
    sized: dict[str, Any] = {"field": value, "type": "quantitative", "title": None}
    if wanted.aggregate is not None:
        sized |= {"aggregate": wanted.aggregate, "title": wanted.aggregate}
    encoding = {"x": _encode_column(x, None, data, measures), "y": sized, "color": color}
    if wanted.mark == "bar":
        encoding["xOffset"] = {"field": measure, "type": "nominal", "sort": list(ys)}
    fold = {"fold": [escape_column(column) for column in ys], "as": [measure, value]}
    spec = _spec(wanted, label, encoding) | {"transform": [fold]}
    return Chart(spec, measures, _notes(wanted, data, {"x": x}, measures))


def _spec(wanted: ChartRequest, label: str, encoding: Mapping[str, Any]) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": wanted.mark, "tooltip": True}
    if wanted.mark == "line":
        mark["point"] = True
    title = {"title": wanted.title.strip()[:200]} if wanted.title.strip() else {}
    return {"$schema": SCHEMA, **title, "data": {"name": label}, "mark": mark, "encoding": encoding}


def with_rows(spec: Mapping[str, Any], data: Data) -> dict[str, Any]:
    """The specification with its rows, for any Vega-Lite viewer."""
    encoded = {one["field"]: one["type"] for one in spec.get("encoding", {}).values() if "field" in one}
    measures = {column: encoded.get(escape_column(column), data.measure(column)) for column in data.columns}
    values = [
        {column: _convert_cell(cell, measures[column]) for column, cell in zip(data.columns, row, strict=True)}
        for row in data.rows
    ]
    return {**spec, "data": {**spec.get("data", {}), "values": values}}


_Channels = dict[str, tuple[str | None, Aggregate | None]]
"""The column and the aggregate of each channel; a count has no column."""


def _axes(
    wanted: ChartRequest, found: Mapping[str, str], measures: Mapping[str, FieldType], numbers: Sequence[str]
) -> _Channels:
    x, y = found.get("x"), found.get("y")
    if x is None or (y is None and wanted.aggregate != "count"):
        raise InvalidInput(reason=f"A {wanted.mark} chart needs x and y; only with the aggregate count it needs no y.")
    # Only bars may be horizontal. Elsewhere y is aggregated.
    axes = ("y", "x") if wanted.aggregate is None or wanted.mark == "bar" else ("y",)
    measured = next((axis for axis in axes if found.get(axis) and measures[found[axis]] == "quantitative"), None)
    if wanted.aggregate == "count":
        channels: _Channels = {"x": (x, None), "y": (None, "count")}
    elif wanted.aggregate is not None:
        if measured is None:
            raise _not_measured(wanted, found, measures, numbers)
        channels = {axis: (found[axis], wanted.aggregate if axis == measured else None) for axis in ("x", "y")}
    else:
        if measured is None and wanted.mark != "point":
            raise _not_measured(wanted, found, measures, numbers)
        channels = {"x": (x, None), "y": (y, None)}
    return channels | ({"color": (found["color"], None)} if "color" in found else {})


def _slices(
    wanted: ChartRequest, found: Mapping[str, str], measures: Mapping[str, FieldType], numbers: Sequence[str]
) -> _Channels:
    of, size = found.get("color") or found.get("x"), found.get("y")
    if of is None or (size is None and wanted.aggregate != "count"):
        raise InvalidInput(reason="An arc chart needs y, the size of a slice, and color, what each slice is of.")
    if wanted.aggregate != "count" and size is not None and measures[size] != "quantitative":
        raise _not_measured(wanted, found, measures, numbers)
    return {"theta": (None if wanted.aggregate == "count" else size, wanted.aggregate), "color": (of, None)}


def _not_measured(
    wanted: ChartRequest, found: Mapping[str, str], measures: Mapping[str, FieldType], numbers: Sequence[str]
) -> InvalidInput:
    types = ", ".join(f"{found[axis]} is {measures[found[axis]]}" for axis in ("x", "y") if axis in found)
    what = f"The {wanted.aggregate} of text or dates" if wanted.aggregate else f"A {wanted.mark} chart without numbers"
    there = f"Columns of numbers: {', '.join(numbers[:20])}." if numbers else "The result has no column of numbers."
    return InvalidInput(reason=f"{what} cannot be shown: {types}. {there} Choose one for y, or the aggregate count.")


def _encode_column(
    column: str | None, aggregate: Aggregate | None, data: Data, measures: Mapping[str, FieldType]
) -> dict[str, Any]:
    if column is None:
        return {"aggregate": "count", "type": "quantitative", "title": "count"}
    measure = measures[column]
    title = " ".join(column.split())  # a break of the line in it would break Vega's own expressions
    encoded: dict[str, Any] = {"field": escape_column(column), "type": measure, "title": title}
    if aggregate is not None:
        encoded |= {"aggregate": aggregate, "title": f"{aggregate} of {title}"}
        encoded["type"] = "quantitative"
    elif measure == "temporal":
        unit = _unit([text for text in data.values(column) if text not in _NO_MOMENTS])
        encoded |= {"timeUnit": unit} if unit else {}
    elif measure == "nominal":
        encoded["sort"] = None  # as the rows are: by the ORDER BY of the query
    return encoded


def escape_column(column: str) -> str:
    """Escapes a column's name: Vega-Lite reads `a.b` and `a[0]` as nested fields."""
    return _SPECIAL.sub(r"\\\1", column)


def _unit(values: Sequence[str]) -> str | None:
    """The UTC time unit of dates and months. In local time a browser could show the day before."""
    if all(_DAY.fullmatch(value) for value in values):
        return "utcyearmonthdate"
    return "utcyearmonth" if all(_MONTH.fullmatch(value) for value in values) else None


def _notes(wanted: ChartRequest, data: Data, found: Mapping[str, str], measures: Mapping[str, FieldType]) -> list[str]:
    notes = []
    if data.total > len(data.rows):
        notes.append(f"Only the first {len(data.rows)} of {data.total} rows are shown. Aggregate them in the query.")
    colors = found.get("color") or (found.get("x") if wanted.mark == "arc" else None)
    many = len(set(map(str, data.values(colors)))) if colors and measures[colors] == "nominal" else 0
    if many > _MANY_COLORS:
        notes.append(f"{colors} has {many} values: colors will be hard to tell apart. Keep the largest in the query.")
    if wanted.mark == "bar" and "x" in found and measures[found["x"]] == "nominal":
        bars = len(set(map(str, data.values(found["x"]))))
        if bars > _MANY_BARS:
            notes.append(f"{found['x']} has {bars} values: that many bars are hard to read.")
    return notes


def _is_moment(text: str) -> bool:
    """Whether a text is a valid date, month or time."""
    if not any(pattern.fullmatch(text) for pattern in (_DAY, _MONTH, _MOMENT)):
        return False
    try:
        datetime.fromisoformat(f"{text}-01" if _MONTH.fullmatch(text) else text)
    except ValueError:
        return False
    return True


def _are_exact(texts: Sequence[Any]) -> bool:
    """Whether texts are exact numbers with many digits, rather than codes."""
    if not all(isinstance(text, str) and _EXACT.fullmatch(text) for text in texts):
        return all(isinstance(text, str) and _DECIMAL.fullmatch(text) for text in texts)
    numbers = [Decimal(text) for text in texts]
    are_long = any(abs(number) > LARGEST or Decimal(repr(float(number))) != number for number in numbers)
    return are_long or all("." in text for text in texts)


def _convert_cell(cell: Any, measure: str) -> Any:
    """A cell for Vega. Infinities, NaN and infinite times become null."""
    if measure == "temporal" and isinstance(cell, str):
        return None if cell in _NO_MOMENTS else iso(cell)
    if measure != "quantitative":
        return cell
    number = float(cell) if isinstance(cell, str) else cell
    return None if isinstance(number, float) and not math.isfinite(number) else number


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
        spec = _read_spec(observation_of(entry.text)) if asked else None
        if spec is not None:
            charts.append(_fill_chart(spec, find_result(entries[:at], str(spec["data"]["name"]))))
    return charts


async def chart_of(tx: Transaction, step: Step) -> dict[str, Any] | None:
    """The chart of a call with the stored rows of its result, or None. Raises ResultNotFound."""
    spec = _read_spec(step.observation or {}) if step.action == CHART else None
    if spec is None:
        return None
    return _fill_chart(
        spec, await find_result_before(tx, step.thread_id, step.entry_seq or 0, str(spec["data"]["name"]))
    )


def _read_spec(observation: Mapping[str, Any]) -> dict[str, Any] | None:
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

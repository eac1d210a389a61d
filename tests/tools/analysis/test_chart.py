"""Charts of results: what each column is taken for, and what a Vega-Lite viewer is given."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from longthread.builtin.chart import AGGREGATES, MARKS, MOST_ROWS, ChartRequest, Data, chart, with_rows
from longthread.errors import ColumnNotFound, InvalidInput

COLUMNS = ["country", "year", "day", "month", "at", "launches", "mass.kg", "部门[名称]", "it's", "launches", "empty"]
ROWS = [
    ["China", 2020, "2020-01-05", "2020-01", "2020-01-05 10:00", 39, "1.50", "研发", True, 1, None],
    ["美国", 2021, "2021-02-06", "2021-02", "2021-02-06T11:30:00Z", 44, "20.25", "市场", False, 2, None],
    [None, 2022, None, "2022-03", "2022-03-07 00:00:01.5", 7.5, "0.10", "研发", None, 3, None],
]


@cache
def schema() -> Draft7Validator:
    """Vega-Lite's own schema, as a package carries it that need not be imported for it."""
    spec = importlib.util.find_spec("altair")
    assert spec is not None and spec.origin is not None
    file = Path(spec.origin).parent / "vegalite" / "v6" / "schema" / "vega-lite-schema.json"
    return Draft7Validator(json.loads(file.read_text("utf-8")))


def made(mark: Any, columns: Any = COLUMNS, rows: Any = ROWS, **wanted: Any) -> dict[str, Any]:
    """The chart with its rows, which Vega-Lite's schema allows."""
    data = Data(columns, rows)
    drawn = chart(ChartRequest(mark, **wanted), data, "q1")
    assert drawn.spec["data"] == {"name": "q1"}
    whole = with_rows(drawn.spec, data)
    for spec in (drawn.spec, whole):
        error = next(schema().iter_errors(json.loads(json.dumps(spec))), None)
        assert error is None, error.message[:500] if error else ""
    return whole


def test_columns_are_taken_for_what_they_hold() -> None:
    data = Data(COLUMNS, ROWS)
    assert {column: data.measure(column) for column in data.columns} == {
        "country": "nominal",
        "year": "ordinal",
        "day": "temporal",
        "month": "temporal",
        "at": "temporal",
        "launches": "quantitative",
        "mass.kg": "quantitative",
        "部门[名称]": "nominal",
        "it's": "nominal",
        "launches_2": "quantitative",
        "empty": "nominal",
    }
    assert Data(["zip"], [["01234"], ["99999"]]).measure("zip") == "nominal"
    assert Data(["年份"], [[2020], [2021]]).measure("年份") == "ordinal"
    assert Data(["year_total"], [[20.5], [2021]]).measure("year_total") == "quantitative"


@pytest.mark.parametrize("mark", MARKS)
def test_every_mark_is_valid(mark: str) -> None:
    whole = made(mark, x="country", y="launches", color="部门[名称]", title="各国发射次数")
    assert whole["title"] == "各国发射次数"
    assert len(whole["data"]["values"]) == len(ROWS)
    for aggregate in AGGREGATES:
        made(mark, x="year", y="launches", aggregate=aggregate)
    made(mark, x="country", aggregate="count")


def test_names_that_vega_would_take_apart_are_escaped_and_their_rows_are_not() -> None:
    whole = made("bar", x="部门[名称]", y="mass.kg", color="it's")
    fields = {channel: encoded["field"] for channel, encoded in whole["encoding"].items()}
    assert fields == {"x": r"部门\[名称\]", "y": r"mass\.kg", "color": r"it\'s"}
    assert whole["encoding"]["y"]["title"] == "mass.kg"
    assert whole["data"]["values"][0]["mass.kg"] == 1.5
    assert whole["data"]["values"][0]["部门[名称]"] == "研发"


def test_days_stay_the_days_they_are_and_names_in_the_order_of_the_rows() -> None:
    assert made("line", x="day", y="launches")["encoding"]["x"]["timeUnit"] == "utcyearmonthdate"
    assert made("line", x="month", y="launches")["encoding"]["x"]["timeUnit"] == "utcyearmonth"
    assert "timeUnit" not in made("line", x="at", y="launches")["encoding"]["x"]
    assert made("bar", x="country", y="launches")["encoding"]["x"]["sort"] is None


@pytest.mark.parametrize("mark", ["bar", "line", "point"])
def test_several_measures_have_a_mark_and_a_color_each(mark: str) -> None:
    whole = made(mark, x="year", y="launches, Mass.KG")
    assert whole["transform"] == [{"fold": ["launches", "mass\\.kg"], "as": ["measure", "value"]}]
    assert {channel: one["field"] for channel, one in whole["encoding"].items()} == {
        "x": "year",
        "y": "value",
        "color": "measure",
        **({"xOffset": "measure"} if mark == "bar" else {}),
    }
    assert [row["mass.kg"] for row in whole["data"]["values"]] == [1.5, 20.25, 0.1]  # exact ones come as texts
    assert made(mark, x="year", y="launches, mass.kg", aggregate="mean")["encoding"]["y"]["aggregate"] == "mean"


def test_columns_keep_their_names_beside_several_measures() -> None:
    columns, rows = ["value", "measure", "a, b", "c"], [["x", 1, 2, 3], ["y", 4, 5, 6]]
    whole = made("line", columns, rows, x="value", y="measure,c")
    assert whole["transform"][0]["as"] == ["measure_2", "value_2"]
    assert made("line", columns, rows, x="value", y="a, b")["encoding"]["y"]["field"] == "a, b"


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"mark": "arc", "x": "year", "y": "launches,mass.kg"}, "make a bar, line or point chart"),
        ({"mark": "line", "x": "year", "y": "launches,mass.kg", "color": "country"}, "without color"),
        ({"mark": "line", "x": "year", "y": "launches,country"}, "country is none"),
        ({"mark": "line", "x": "year", "y": "launches,mess"}, "no column mess|mess"),
    ],
)
def test_several_measures_that_cannot_be_shown_are_refused(wanted: dict[str, Any], problem: str) -> None:
    with pytest.raises((InvalidInput, ColumnNotFound), match=problem):
        made(**wanted)


def test_a_bar_may_lie() -> None:
    encoding = made("bar", x="launches", y="country", aggregate="sum")["encoding"]
    assert (encoding["x"]["aggregate"], "aggregate" in encoding["y"]) == ("sum", False)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"x": "contry", "y": "launches"}, r"no column contry.*nearest are: country"),
        ({"x": "zzz", "y": "launches"}, r"The result has: country, year"),
        ({"x": "country"}, r"needs x and y"),
        ({"y": "launches"}, r"needs x and y"),
        ({"x": "country", "y": "部门[名称]"}, r"country is nominal, 部门\[名称\] is nominal.*count"),
        ({"x": "country", "y": "day", "aggregate": "sum"}, r"sum of text or dates.*numbers: launches"),
    ],
)
def test_what_cannot_be_shown_is_told_with_what_could(wanted: dict[str, Any], problem: str) -> None:
    with pytest.raises((ColumnNotFound, InvalidInput), match=problem):
        chart(ChartRequest("bar", **wanted), Data(COLUMNS, ROWS), "q1")


def test_an_arc_needs_slices_and_no_rows_are_no_chart() -> None:
    with pytest.raises(InvalidInput, match="size of a slice"):
        chart(ChartRequest("arc", x="country"), Data(COLUMNS, ROWS), "q1")
    with pytest.raises(InvalidInput, match="no rows"):
        chart(ChartRequest("bar", x="a", y="b"), Data(["a", "b"], []), "q1")
    assert made("arc", color="country", y="launches")["encoding"]["theta"]["field"] == "launches"


def test_a_name_is_found_in_another_case() -> None:
    assert made("bar", x="Country", y=" LAUNCHES ")["encoding"]["x"]["field"] == "country"


def test_many_rows_are_cut_and_many_names_are_told() -> None:
    rows = [[f"n{number}", number] for number in range(MOST_ROWS + 10)]
    data = Data(["name", "n"], rows)
    drawn = chart(ChartRequest("bar", x="name", y="n", color="name"), data, "q1")
    assert any(f"first {MOST_ROWS} of {MOST_ROWS + 10}" in note for note in drawn.notes)
    assert any("hard to read" in note for note in drawn.notes) and any("tell apart" in note for note in drawn.notes)
    assert len(with_rows(drawn.spec, data)["data"]["values"]) == MOST_ROWS
    assert len(json.dumps(drawn.spec)) < 1_000


def test_numbers_that_json_does_not_have_are_none() -> None:
    rows = [["a", "9" * 400 + ".5"], ["b", "1.5"]]
    whole = made("bar", ["x", "y"], rows, x="x", y="y")
    assert [row["y"] for row in whole["data"]["values"]] == [None, 1.5]


@pytest.mark.parametrize("mark", MARKS)
def test_numbers_are_not_made_of_text(mark: Any) -> None:
    for aggregate in ("sum", "mean", "median", "min", "max"):
        for y in ("部门[名称]", "day", "year"):
            with pytest.raises(InvalidInput, match=r"Columns of numbers: launches, mass\.kg, launches_2\."):
                made(mark, x="country", y=y, color="country", aggregate=aggregate)
    with pytest.raises(InvalidInput, match="no column of numbers"):
        made(mark, ["a", "b"], [["x", "y"]], x="a", y="b", color="a", aggregate="sum")


def test_text_is_measured_beside_numbers_only_where_bars_lie_down() -> None:
    lying = made("bar", x="launches", y="country", aggregate="sum")["encoding"]
    assert (lying["x"]["aggregate"], "aggregate" in lying["y"]) == ("sum", False)
    for mark in ("line", "area", "point"):
        with pytest.raises(InvalidInput):
            made(mark, x="launches", y="country", aggregate="sum")


NO_TIMES = ["2020-99-99", "2020-13", "2021-02-29", "2020-01-05 25:00", "2020-01-05T10:61:00Z", "2020-01-05T10:00+99:00"]
NO_TIMES += ["２０２０-０１-０５", "٢٠٢٠-٠١", "0000-01-01", "2020-1-5"]


@pytest.mark.parametrize("text", NO_TIMES)
def test_what_is_in_no_calendar_is_no_time(text: str) -> None:
    assert Data(["at"], [["2020-01-05"], [text]]).measure("at") == "nominal"


def test_digits_of_other_scripts_are_text() -> None:
    assert Data(["n"], [["１.２"], ["٣.٤"]]).measure("n") == "nominal"


def test_rows_that_lack_cells_or_have_too_many_are_shown() -> None:
    whole = made("bar", ["a", "n"], [["x", 1], ["y"], [], ["z", 2, "more"]], x="a", y="n")
    assert whole["data"]["values"] == [
        {"a": "x", "n": 1},
        {"a": "y", "n": None},
        {"a": None, "n": None},
        {"a": "z", "n": 2},
    ]


LARGE = ["9007199254740993", "2", "-170141183460469231731687303715884105727"]
MEASURES: list[tuple[list[Any], str]] = [
    ([1.5, "NaN", None, "-Infinity"], "quantitative"),
    (["NaN", "Infinity"], "nominal"),
    (LARGE, "quantitative"),
    (["1", "1234567890123.4567"], "quantitative"),
    (["1", "2"], "nominal"),  # a code, by its type
    (["9007199254740993", "0123"], "nominal"),
    (["2020-01-01T10:00:00+00:00", "infinity"], "temporal"),
    (["2020-01-01T10:00:00.123456789"], "temporal"),
    (["infinity"], "nominal"),
    (["0044-03-15 BC", "2020-01-01"], "nominal"),
]


@pytest.mark.parametrize(("values", "measure"), MEASURES)
def test_what_databases_hold_beside_usual_values(values: list[Any], measure: str) -> None:
    assert Data(["v"], [[value] for value in values]).measure("v") == measure


def test_what_no_axis_has_is_left_out() -> None:
    rows = [["2020-01-01 10:00:00+00", 1.5], ["infinity", 2.5], ["2020-01-02T10:00:00+05:30", "NaN"]]
    whole = made("line", ["at", "n"], rows, x="at", y="n")
    assert [encoded["type"] for encoded in whole["encoding"].values()] == ["temporal", "quantitative"]
    assert whole["data"]["values"] == [
        {"at": "2020-01-01T10:00:00+00:00", "n": 1.5},
        {"at": None, "n": 2.5},
        {"at": "2020-01-02T10:00:00+05:30", "n": None},
    ]
    days = made("bar", ["day", "n"], [["2020-01-01", "1"], ["-infinity", "9007199254740993"]], x="day", y="n")
    assert days["encoding"]["x"]["timeUnit"] == "utcyearmonthdate"
    assert [row["n"] for row in days["data"]["values"]] == [1, 9007199254740992]


def test_ids_beside_numbers_are_names_and_stay_apart() -> None:
    rows = [["9007199254740993", 1], ["9007199254740992", 2]]
    whole = made("bar", ["id", "n"], rows, x="id", y="n")
    assert whole["encoding"]["x"]["type"] == "nominal"
    assert [row["id"] for row in whole["data"]["values"]] == ["9007199254740993", "9007199254740992"]


def test_headers_that_are_numbers_or_nothing_are_fields() -> None:
    whole = made("bar", ["country", "2021", "", "a.b[0]"], [["A", 1, 2, 3]], x="country", y="2021")
    assert whole["encoding"]["y"] == {"field": "2021", "type": "quantitative", "title": "2021"}
    assert whole["data"]["values"] == [{"country": "A", "2021": 1, "column": 2, "a.b[0]": 3}]
    assert made("bar", ["country", ""], [["A", 1]], x="country", y="column")["encoding"]["y"]["field"] == "column"
    assert made("bar", ["k", "a\n b"], [["A", 1]], x="k", y="a\n b")["encoding"]["y"]["title"] == "a b"

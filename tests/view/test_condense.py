"""A shortened result keeps its rows: what the reader has elsewhere goes first."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.errors import SqlFailed
from longthread.model.run import Segment
from longthread.tools.tool import make_failure, make_success
from longthread.view.condense import TRUNCATED, condense_result, cut_result, is_condensable
from longthread.view.items import FORM, ViewItem, show_part

SQL = "SELECT country_zh AS country, count(*) AS n FROM rockets GROUP BY country_zh ORDER BY n DESC LIMIT 3"


def result(columns: list[str], rows: list[list[Any]], total: int | None = None, **more: Any) -> str:
    """A result of run_sql, as a model reads it."""
    data = {"query": "q11", "sql": SQL, "columns": columns, "rows": rows, "row_count": len(rows), "total": total}
    data |= {"shown": f"{len(rows)} of {total}", "truncated": False, "notes": [], "elapsed_ms": 8, **more}
    return json.dumps(make_success(data), ensure_ascii=False)


def read(condensed: str) -> Any:
    """The JSON of a shortened result."""
    assert condensed.endswith(TRUNCATED)
    return json.loads(condensed.removesuffix(TRUNCATED))


def test_rows_stay_and_what_the_call_says_goes() -> None:
    rows = [["中国", 5], ["美国", 3], ["俄罗斯", 2]]
    condensed = condense_result(result(["country", "n"], rows, 3))
    assert read(condensed) == {"query": "q11", "columns": ["country", "n"], "rows": rows, "total": 3}


def test_ten_rows_stay_with_the_total() -> None:
    rows = [[f"国家{n}", n] for n in range(54)]
    data = read(condense_result(result(["国家", "数量"], rows, 1_234)))
    assert data["rows"] == [*rows[:10], "… (10 of 1234)"]
    uncounted = read(condense_result(result(["国家", "数量"], rows, shown="54 of more than 100000")))
    assert uncounted["shown"] == "54 of more than 100000", "the total is not known"


@pytest.mark.parametrize("text", ["a long description of it ", "很长的说明文字，一直写下去"])
def test_cells_are_cut_before_columns_and_columns_before_rows(text: str) -> None:
    rows = [[n, f"#{n}", text * 20] for n in range(8)]
    data = read(condense_result(result(["id", "name", "about"], rows, 8), 400))
    assert [row[:2] for row in data["rows"]] == [row[:2] for row in rows]
    assert all(row[2].startswith(text[:7]) and row[2].endswith("…") for row in data["rows"])
    few = read(condense_result(result(["id", "name", "about"], rows, 8)))
    assert (few["columns"], few["rows"]) == (["id", "name", "… (2 of 3)"], [row[:2] for row in rows])


@pytest.mark.parametrize("name", ["column", "列名"])
def test_wide_rows_show_some_columns_and_their_number(name: str) -> None:
    rows = [[f"{name} {n}.{m}" for m in range(40)] for n in range(30)]
    data = read(condense_result(result([f"{name}_{m}" for m in range(40)], rows, 30)))
    assert data["columns"][0] == f"{name}_0"
    assert data["columns"][-1] == f"… ({len(data['columns']) - 1} of 40)"
    assert len(data["rows"]) > 3
    assert all(len(row) == len(data["columns"]) - 1 for row in data["rows"][:-1])


def test_ids_times_and_addresses_give_way_to_what_says_more() -> None:
    ids = [f"01a2267a-f1df-73fb-a66f-972631bd{n:04}" for n in range(12)]
    rows = [[each, "2026-01-01T00:00:00+00:00", f"Falcon {n}", n, "https://a.test/b"] for n, each in enumerate(ids)]
    data = read(condense_result(result(["id", "at", "name", "n", "url"], rows, 12)))
    assert data["columns"] == ["name", "n", "… (2 of 5)"]
    assert data["rows"][1] == ["Falcon 1", 1]


def test_numbers_are_never_cut() -> None:
    rows = [[f"{n}" * 30, 1234567890.1234567] for n in range(9)]
    data = read(condense_result(result(["name", "n"], rows, 9)))
    assert {row[1] for row in data["rows"][:-1]} == {1234567890.1234567}


def test_a_list_of_tables_is_names_first() -> None:
    names = [f"table_{n}" for n in range(40)]
    about = {name: {"rows": 7, "comment": "what it is about"} for name in names}
    listing = {"source": "demo", "dialect": "sqlite", "fingerprint": "ab" * 20, "tables": names, "total": 40}
    data = read(condense_result(json.dumps(make_success(listing | {"shown": "40 of 40", "about": about}))))
    assert (data["tables"], data["total"]) == ([*names[:10], "… (10 of 40)"], 40)
    assert "fingerprint" not in data


def test_columns_of_a_table_keep_name_and_type() -> None:
    columns = [{"name": f"c{n}", "type": "TEXT" if n % 2 else "REAL", "comment": "注释" * 40} for n in range(9)]
    data = read(condense_result(json.dumps(make_success({"table_name": "t", "columns": columns}), ensure_ascii=False)))
    assert data["columns"][0] == {"name": "c0", "type": "REAL"}
    assert data["columns"][-1].endswith("of 9, 2 of 3 fields)")


def test_nested_json_of_an_api_shows_its_items() -> None:
    items = [{"name": f"Item {n}", "price": n, "tags": ["a"] * 9, "text": "x" * 99} for n in range(25)]
    body = {"page": 1, "meta": {"took": 3}, "data": {"items": items}}
    condensed = condense_result(json.dumps(make_success({"status": 200, "body": body, "elapsed_ms": 9})))
    assert read(condensed)["body"]["data"]["items"][1] == {"name": "Item 1", "price": 1}
    assert "of 25, 2 of 4 fields)" in condensed


def test_what_was_recalled_shows_what_it_says() -> None:
    found = [{"entry": "01a2267a-f1df-73fb-a66f-972631bd0aaa", "seq": n, "role": "user", "text": f"{n}: the port is 80"}
             for n in range(4)]  # fmt: skip
    data = read(condense_result(json.dumps(make_success({"found": found}))))
    assert [hit["text"] for hit in data["found"][:4]] == [f"{n}: the port is 80" for n in range(4)]


def test_the_result_of_code_comes_before_its_output() -> None:
    data = read(
        condense_result(json.dumps(make_success({"printed": "line\n" * 300, "result": {"mean": 1.5, "n": [1] * 50}})))
    )
    assert data["result"] == {"mean": 1.5, "n": [*[1] * 10, "… (10 of 50)"]}
    assert data["printed"].startswith("line\nline")


@pytest.mark.parametrize("word", ["blah ", "无用的话"])
def test_an_error_keeps_its_beginning_and_its_remedy(word: str) -> None:
    error = make_failure(SqlFailed(reason=f"no such column: foo. {word * 90}The nearest columns are: food."))
    data = read(condense_result(json.dumps(error, ensure_ascii=False)))
    assert data["error"]["type"] == "sql_failed"
    assert "no such column: foo" in data["error"]["message"]
    assert data["error"]["message"].endswith("The nearest columns are: food.")


def test_a_reply_is_not_repeated_by_the_error_about_it() -> None:
    error = {"type": "json_parse_error", "raw_response": "x" * 300, "message": "The reply is no JSON."}
    assert read(condense_result(json.dumps({"ok": False, "error": error}))) == {
        "error": {"type": "json_parse_error", "message": "The reply is no JSON."}
    }


def test_a_text_of_lines_keeps_the_first_and_their_number() -> None:
    table = "\n".join(["id,name,about", *(f"{n},名字{n},{'说明' * 40}" for n in range(80))])
    condensed = condense_result(table)
    assert condensed.startswith("id,name,about\n0,名字0,")
    assert condensed.count("\n") >= 8
    assert condensed.endswith(f"of 81 lines){TRUNCATED}")
    assert condense_result("x" * 300) == "x" * 200 + TRUNCATED
    assert condense_result("short") == "short"


def test_an_object_of_another_tool_stays_what_it_is() -> None:
    data = read(condense_result(json.dumps({"ok": True, "sql": "SELECT 1", "rows": list(range(100))}), 120))
    assert data["sql"] == "SELECT 1", "no observation of ours: the call may not say it"
    assert data["rows"][-1].endswith("of 100)")


@pytest.mark.parametrize("limit", [80, 120, 200, 500])
def test_some_rows_show_at_any_size(limit: int) -> None:
    for rows in ([["中国", 5]] * 30, [[n, "a text " * 30] for n in range(30)]):
        assert len(read(condense_result(result(["a", "b"], rows, 30), limit))["rows"]) > 1
    assert "中国" in condense_result(result(["a", "b"], [["中国", 5]] * 30, 30), 50)


def test_a_result_that_is_cut_to_its_room_keeps_as_many_rows_as_fit() -> None:
    rows = [[n, f"name {n}"] for n in range(900)]
    data = read(cut_result(result(["id", "name"], rows, 5_000), 3_000))
    assert len(data["rows"]) > 100
    assert data["rows"][:-1] == rows[: len(data["rows"]) - 1]
    assert data["rows"][-1] == f"… ({len(data['rows']) - 1} of 5000)"
    assert "characters left out" in cut_result("word " * 900, 300), "a text without structure loses its middle"


@given(st.text(max_size=400), st.integers(0, 300))
def test_a_cut_result_is_never_longer_than_its_room(text: str, limit: int) -> None:
    rows = json.dumps([[text, n] for n in range(40)], ensure_ascii=False)
    assert len(cut_result(rows, limit + 80)) <= limit + 80


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(exclude_categories=())),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.one_of(st.text(max_size=60), VALUES.map(json.dumps)), st.integers(0, 60))
def test_a_condensed_result_is_shorter_is_known_to_be_and_can_be_sent(text: str, limit: int) -> None:
    condensed = condense_result(text, limit)
    assert is_condensable(text, limit) == (condensed != text) == (len(condensed) < len(text))
    assert condensed.encode().decode() == condensed
    assert condense_result(condensed, limit) == condensed


def test_half_a_character_of_json_is_condensed_to_what_can_be_sent() -> None:
    condensed = condense_result('{"note":"cut here \\ud83d","rows":[' + "0," * 200 + "0]}")
    assert condensed.startswith('{"note":"cut here \ufffd","rows":[0,0')
    assert '"é🎉"' in condense_result('{"note":"\\u00e9\\ud83c\\udf89","rows":[' + "0," * 200 + "0]}")


@pytest.mark.parametrize("depth", [300, 5_000, 100_000])
def test_json_that_is_nested_very_deep_is_cut(depth: int) -> None:
    assert len(condense_result("[" * depth + "]" * depth)) <= 200 + len(TRUNCATED)
    assert len(condense_result('{"a":' * depth + "1" + "}" * depth)) <= 200 + len(TRUNCATED)


def test_numbers_are_condensed_as_they_were_written() -> None:
    numbers = "12345678901234567890123.10,1e400,123456789012345678901234,-0.50,9223372036854775807,-7"
    assert f'"n":[{numbers}]' in condense_result(f'{{"n":[{numbers}],"rows":[{"0," * 200}0]}}')


def test_a_call_of_an_earlier_version_is_rendered_as_it_was() -> None:
    item = ViewItem("t", "tool", result(["country", "n"], [["中国", 5]] * 30, 30), answers="c")
    before = show_part(Segment(1, 1, "condensed", 9), item)
    now = show_part(Segment(1, 1, "condensed", 9, form=FORM), item)
    assert before is not None and str(before.text).startswith("… (rows: 30 items, columns: 2 items) {")
    assert now is not None and now.text == condense_result(item.text)
    middle = show_part(Segment(1, 1, "cut", 9, limit=300), item)
    assert middle is not None and "characters left out" in str(middle.text)
    assert Segment.from_json([1, 1, "condensed", 9]).form == 0
    assert Segment(1, 1, "condensed", 9, form=FORM).to_json() == [1, 1, "condensed", 9, None, None, False, FORM]
    assert Segment(1, 1, "cut", 9, limit=0).to_json() == [1, 1, "cut", 9, None, 0]

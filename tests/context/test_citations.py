"""Which query each number of an answer came from."""

from __future__ import annotations

import json

import pytest

from longthread.context.citations import CitedQuery, citations

pytestmark = pytest.mark.one_backend


def query(label: str, *rows: list[object], **more: object) -> CitedQuery:
    data = {"query": label, "sql": "SELECT …", "rows": list(rows), "row_count": len(rows), **more}
    found = CitedQuery.read(json.dumps({"ok": True, "data": data}))
    assert found is not None
    return found


def cited(answer: str, *queries: CitedQuery) -> dict[str, str | None]:
    return {item["number"]: item["query"] for item in citations(answer, queries)}


def test_numbers_are_traced_to_the_newest_query_that_holds_them() -> None:
    queries = [query("q1", [59]), query("q2", ["USA", 13], ["巴西", 5], total=24)]
    assert cited("59 customers [q1], 13 in the USA, 24 countries, and 7.", *queries) == {
        "59": "q1",
        "13": "q2",
        "24": "q2",
        "7": None,
    }


def test_rows_that_have_a_value_in_the_first_column_are_counted_where_all_are_there() -> None:
    rows: list[list[object]] = [["active", 9], [None, 9], ["sold", 9]]
    assert cited("2 statuses", query("q1", *rows)) == {"2": "q1"}
    assert cited("2 statuses", query("q1", *rows, total=40)) == {"2": None}
    assert cited("2 statuses", query("q1", *rows, truncated=True)) == {"2": None}


def test_numbers_are_found_in_chinese_text_and_with_separators() -> None:
    queries = [query("q3", [1234567, 5.652])]
    assert cited("共1,234,567行，平均5.65分。", *queries) == {"1,234,567": "q3", "5.65": "q3"}


def test_what_a_query_says_itself_is_its_own() -> None:
    queries = [query("q1", [64], sql="SELECT … WHERE day >= '2020-01-01' LIMIT 5"), query("q2", [5])]
    assert cited("64 since 2020-01-01, the first 5", *queries) == {"64": "q1", "2020-01-01": "q1", "5": "q2"}


def test_rounding_is_not_a_licence() -> None:
    assert cited("5.66", query("q1", [5.652])) == {"5.66": None}
    assert cited("6", query("q1", [5.652])) == {"6": None}


def test_code_labels_and_names_are_no_numbers() -> None:
    assert cited("Answer [q12]\n```sql\nSELECT 99\n```\nsee table2 and v1.2.3\n1. one\n 2) two") == {}


def test_a_number_in_a_name_is_the_name_s() -> None:
    queries = [query("q1", ["Falcon 9", 54], ["长征5号", 7]), query("q2", [9], ["5 km", 5])]
    assert cited("Falcon 9 flew 54 times, 长征5号火箭7次.", *queries) == {"54": "q1", "7": "q1"}
    assert cited("9 flew; Falcon 9 did, too; 5 km high", *queries) == {"9": "q2", "5": "q2"}
    assert cited("Falcon 9.5 and Falcon 99", *queries) == {"9.5": None, "99": None}
    assert cited("Saturn 5", *queries) == {"5": "q2"}  # no row says so


def test_numbers_inside_cells_count() -> None:
    assert cited("Launched on 2020.", query("q1", ["2020-07-23"])) == {"2020": "q1"}


def test_only_labelled_queries_are_taken() -> None:
    texts = [
        json.dumps({"ok": True, "data": {"query": "q1", "sql": "SELECT 1", "rows": [[1]]}}),
        json.dumps({"ok": False, "error": {"type": "sql_failed"}}),
        "no json",
    ]
    assert [found and found.label for found in map(CitedQuery.read, texts)] == ["q1", None, None]


def test_a_day_is_traced_to_its_midnight() -> None:
    moments = query("q1", ["2024-01-01T00:00:00"], ["2024-02-01 00:00:00+00:00"], ["2024-03-01T08:30:00"])
    assert cited("2024-01-01, 2024-02-01, 2024-03-01", moments) == {
        "2024-01-01": "q1",
        "2024-02-01": "q1",
        "2024-03-01": None,
    }

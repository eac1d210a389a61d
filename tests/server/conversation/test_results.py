"""The results of queries: page by page, sorted on the server, and whole as files."""

from __future__ import annotations

import csv
import io
import sqlite3
from pathlib import Path
from typing import Any

import openpyxl
import pytest

pytestmark = pytest.mark.one_backend

FEW = "SELECT 2 AS n, 'b' AS name, '2026-01-02' AS day UNION ALL SELECT 1, '', NULL UNION ALL SELECT NULL, 'A', NULL"
MANY = """WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 250)
SELECT n, 9007199254740990 + n AS big, CASE WHEN n % 2 THEN NULL ELSE '' END AS part, n % 3 AS third FROM t"""


def asked(running: Any, question: str = "How many?") -> tuple[str, int]:
    """The thread, and the step that ran a query."""
    done = running.answer(question)
    [step] = running.history(done["thread_id"])["steps"][done["run_id"]]
    return done["thread_id"], step["step"]


def script(sql: str) -> list[dict[str, Any]]:
    return [{"thought": "Count.", "action": "run_sql", "args": {"sql": sql}}, {"finish": "Done [q1]."}]


def page(running: Any, thread: str, step: int, **query: Any) -> Any:
    return running.client.get(f"/api/conversations/{thread}/steps/{step}/result", params=query)


def file(running: Any, thread: str, step: int, format_: str, **query: Any) -> Any:
    given = {"format": format_, **query}
    return running.client.get(f"/api/conversations/{thread}/steps/{step}/result/file", params=given)


def test_a_result_that_is_kept_whole_is_not_asked_again(serve: Any) -> None:
    running = serve(script(FEW))
    thread, step = asked(running)
    found = page(running, thread, step).json()
    assert (found["columns"], found["query"], found["total"]) == (["n", "name", "day"], "q1", 3)
    assert found["rows"] == [[2, "b", "2026-01-02"], [1, "", None], [None, "A", None]]
    assert (found["whole"], found["rerun"]) == (True, False)
    sorted_ = page(running, thread, step, sort="n", limit=2).json()
    assert [row[0] for row in sorted_["rows"]] == [1, 2]
    down = page(running, thread, step, sort="n", descending=True, offset=1).json()
    assert [row[0] for row in down["rows"]] == [1, None], "NULL is last, either way"
    assert [row[1] for row in page(running, thread, step, sort="name").json()["rows"]] == ["", "A", "b"]
    refused = page(running, thread, step, sort="none")
    assert (refused.status_code, refused.json()["code"]) == (409, "unknown_column")


def test_the_rows_that_no_step_keeps_are_asked_for_again(serve: Any) -> None:
    running = serve(script(MANY))
    thread, step = asked(running)
    found = page(running, thread, step, offset=200, limit=100).json()
    assert [row[0] for row in found["rows"]] == list(range(201, 251))
    assert (found["total"], found["whole"], found["rerun"]) == (250, True, True)
    assert found["rows"][-1][1] == "9007199254741240", "no number loses a digit"
    assert [row[2] for row in found["rows"][:2]] == [None, ""]
    down = page(running, thread, step, sort="big", descending=True, limit=3).json()
    assert [row[0] for row in down["rows"]] == [250, 249, 248]
    thirds = page(running, thread, step, sort="third", offset=80, limit=6).json()
    assert [row[0] for row in thirds["rows"]] == [243, 246, 249, 1, 4, 7], "equal ones stay in order"
    assert page(running, thread, step, offset=1000).json()["rows"] == []


def test_all_rows_are_a_file(serve: Any) -> None:
    running = serve(script(MANY))
    thread, step = asked(running, "多少？")
    made = file(running, thread, step, "csv")
    assert made.headers["content-disposition"] == (
        f"attachment; filename=\"result-{step}.csv\"; filename*=UTF-8''%E5%A4%9A%E5%B0%91%EF%BC%9F%20q1.csv"
    ), "it has the question's name"
    assert made.headers["longthread-rerun"] == "true"
    text = made.content.decode("utf-8-sig")
    assert text.splitlines()[:3] == ["n,big,part,third", "1,9007199254740991,,1", '2,9007199254740992,"",2']
    assert len(list(csv.reader(io.StringIO(text)))) == 251
    sheet = openpyxl.load_workbook(io.BytesIO(file(running, thread, step, "xlsx").content)).active
    assert [[cell.value for cell in sheet[row]] for row in (250, 251)] == [
        [249, "9007199254741239", None, 0],
        [250, "9007199254741240", "", 1],
    ]
    assert file(running, thread, step, "parquet").content[:4] == b"PAR1"
    assert file(running, thread, step, "pdf").status_code == 422


def test_a_file_of_what_is_kept_asks_no_database(serve: Any) -> None:
    running = serve(script(FEW))
    thread, step = asked(running)
    made = file(running, thread, step, "csv")
    assert made.headers["longthread-rerun"] == "false"
    assert made.content.decode("utf-8-sig").splitlines() == ["n,name,day", "2,b,2026-01-02", '1,"",', ",A,"]


def test_a_query_is_asked_again_by_the_guard_and_of_the_source_of_its_run(serve: Any, tmp_path: Path) -> None:
    shop = tmp_path / "shop.db"
    with sqlite3.connect(shop) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
        connection.executemany("INSERT INTO orders VALUES (?)", [(n,) for n in range(150)])
    connection.close()
    running = serve(script("SELECT id FROM orders"))
    done = running.answer("How many?", source=str(shop))
    thread = done["thread_id"]
    [step] = running.history(thread)["steps"][done["run_id"]]
    running.answer("And now?", thread_id=thread, source="demo")
    assert page(running, thread, step["step"], offset=149).json()["rows"] == [[149]]
    with sqlite3.connect(shop) as connection:
        connection.execute("DROP TABLE orders")
        connection.execute("CREATE TABLE others (id INTEGER)")
    connection.close()
    gone = page(running, thread, step["step"])
    assert (gone.status_code, gone.json()["code"]) == (409, "unknown_table")
    assert file(running, thread, step["step"], "csv").json()["code"] == "unknown_table"


@pytest.mark.parametrize("path", ["result", "result/file"])
def test_a_step_without_rows_has_no_result(serve: Any, path: str) -> None:
    running = serve([{"thought": "Look.", "action": "list_tables"}, {"finish": "Some."}])
    thread, step = asked(running)
    for place in (step, step - 1, 99):
        answer = running.client.get(f"/api/conversations/{thread}/steps/{place}/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "entry_not_found")


SALES = "city;day;price;tax\nBonn;05.01.2024;1.234,50 €;19 %\nBonn;29.02.2024;0,10 €;7 %\nKöln;01.03.2024;0,20 €;7 %\n"
TOTALS = "SELECT city, MAX(day) AS day, SUM(price) + 0.0::DOUBLE AS total, AVG(tax) AS tax FROM sales GROUP BY city"


def test_a_file_tells_its_formats_to_the_files_of_its_results(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text(SALES, "utf-8")
    running = serve(script(f"{TOTALS} ORDER BY city"), source=str(tmp_path / "sales.csv"))
    thread, step = asked(running)
    [told] = [one for each in running.history(thread)["steps"].values() for one in each if one["step"] == step]
    euro, percent = {"kind": "currency", "unit": "€"}, {"kind": "percent"}
    assert told["observation"]["data"]["formats"] == {"total": euro, "tax": percent}
    shown = list(csv.reader(io.StringIO(file(running, thread, step, "csv", shown=True).text)))
    assert shown[1:] == [["Bonn", "2024-02-29", "€1,234.60", "13%"], ["Köln", "2024-03-01", "€0.20", "7%"]]
    sheet = openpyxl.load_workbook(io.BytesIO(file(running, thread, step, "xlsx").content)).active
    assert sheet is not None
    assert [cell.number_format for cell in sheet[2]] == ["General", "yyyy-mm-dd", '"€"#,##0.00', '0"%"']
    assert (str(sheet["B2"].value), sheet["C2"].value, sheet["D2"].value) == ("2024-02-29 00:00:00", 1234.6, 13)
    chosen = '{"total": {"kind": "unit", "unit": "km", "places": 1}}'
    changed = list(csv.reader(io.StringIO(file(running, thread, step, "csv", shown=True, formats=chosen).text)))
    assert [row[2] for row in changed[1:]] == ["1,234.6 km", "0.2 km"]
    for wrong in ("{", "[]", '{"total": {"kind": "money"}}', '{"total": {"kind": "number", "places": 99}}'):
        refused = file(running, thread, step, "csv", formats=wrong)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), wrong

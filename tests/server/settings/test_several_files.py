"""Several uploaded files as one source: added together or one after the other, joined, replaced, given back."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from tests.server.settings.test_equal_names import told
from tests.server.settings.test_sources import SALES, kept, upload

from longthread.errors import SourceTimeout
from longthread.server.routes import sources
from longthread.tools import uploads as uploads_module

pytestmark = pytest.mark.one_backend

PEOPLE = "国家,people\n中国,1400\n美国,340\n".encode()
JOINED = "SELECT s.国家, people FROM sales s JOIN people p ON p.国家 = s.国家 ORDER BY people"
ASKS = [{"thought": "", "action": "run_sql", "args": {"sql": JOINED}}, {"finish": "Two [q1]."}]


def sent(running: Any, content: bytes, name: str, **given: str) -> str:
    answer = upload(running, content, name, **given)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["upload"])


def post(running: Any, path: str, **body: Any) -> Any:
    return running.client.post(f"/api/sources{path}", json=body)


def tables(running: Any, source: str) -> list[str]:
    return [each["name"] for each in running.client.get(f"/api/sources/{source}/preview").json()["tables"]]


def workbook(path: Path, *sheets: str) -> bytes:
    book = Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in (["a", "b"], [1, 2]):
            sheet.append(row)
    book.save(path)
    return path.read_bytes()


def test_files_that_are_added_together_are_joined_also_after_a_restart(serve: Any) -> None:
    running = serve(ASKS)
    ids = [sent(running, SALES, "sales.csv"), sent(running, PEOPLE, "people.csv")]
    added = post(running, "", uploads=ids)
    assert added.status_code == 201, added.text
    view = {"name": "sales_people", "origin": "catalog", "description": None, "address": None, "upload": ids[0]}
    assert added.json() == view | {"files": ["people.csv", "sales.csv"]}
    assert kept(running) == ["people.csv", "sales.csv"], "no mark stays"
    thread = running.answer("Which?", source="sales_people")["thread_id"]
    assert told(running, thread)[0] == [[["美国", 340], ["中国", 1400]]]
    assert ids[0] in running.client.get("/api/conversations").json()["conversations"][0]["source"]
    running.stop()
    again = serve(ASKS)
    assert tables(again, "sales_people") == ["people", "sales"]
    assert again.client.delete("/api/sources/sales_people").status_code == 204
    assert kept(again) == []


def test_a_conversation_asks_a_file_that_is_added_to_its_source(serve: Any) -> None:
    running = serve([{"finish": "Well."}])
    post(running, "", uploads=[sent(running, SALES, "sales.csv")], name="june", description="What was sold.")
    thread = running.answer("Hello?", source="june")["thread_id"]
    running.stop()
    running = serve(ASKS)
    answer = post(running, "/june/files", uploads=[sent(running, PEOPLE, "people.csv")])
    assert (answer.status_code, answer.json()["files"]) == (200, ["sales.csv", "people.csv"]), answer.text
    assert answer.json()["description"] == "What was sold."
    running.answer("And now?", thread_id=thread)
    rows, schemas = told(running, thread)
    assert rows == [[["美国", 340], ["中国", 1400]]]
    assert len(schemas) == 2


def test_the_tables_of_a_source_keep_their_names_when_a_file_is_added(serve: Any, tmp_path: Path) -> None:
    running = serve(ASKS)
    one, two = (workbook(tmp_path / f"{name}.xlsx", "Orders", "Items") for name in ("one", "two"))
    first = upload(running, one, "one.xlsx").json()
    assert sorted(each["name"] for each in first["tables"]) == ["Items", "Orders"]
    post(running, "", uploads=[first["upload"]])
    assert sorted(tables(running, "one")) == ["Items", "Orders"]
    post(running, "/one/files", uploads=[sent(running, two, "two.xlsx")])
    assert sorted(tables(running, "one")) == ["Items", "Orders", "two_Items", "two_Orders"]
    both = [sent(running, one, "one.xlsx", on_conflict="keep_both"), sent(running, two, "other.xlsx")]
    name = post(running, "", uploads=both).json()["name"]
    assert sorted(tables(running, name)) == ["one_2_Items", "one_2_Orders", "other_Items", "other_Orders"]


def test_equal_names_among_files_that_are_added_together_are_numbered(serve: Any) -> None:
    running = serve(ASKS)
    ids = [sent(running, SALES, name) for name in ("sales.csv", "Sales.csv", "sales.csv")]
    assert post(running, "", uploads=ids, name="all").json()["files"] == ["Sales (2).csv", "sales (3).csv", "sales.csv"]
    assert len(tables(running, "all")) == 3


def test_one_file_of_several_is_replaced(serve: Any) -> None:
    running = serve(ASKS)
    post(running, "", uploads=[sent(running, SALES, "sales.csv"), sent(running, PEOPLE, "people.csv")], name="all")
    thread = running.answer("Which?", source="all")["thread_id"]
    refused = upload(running, PEOPLE, "people.csv").json()
    assert (refused["code"], refused["params"]["source"]) == ("upload_exists", "all")
    replaced = upload(running, "国家,people\n美国,341\n".encode(), "people.csv", on_conflict="replace").json()
    assert (replaced["file"], replaced["source"]["files"]) == ("people.csv", ["people.csv", "sales.csv"])
    running.answer("And now?", thread_id=thread)
    assert told(running, thread)[0][1] == [["美国", 341]]


def test_what_cannot_be_joined_stays_an_upload(serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(tmp_path / "shop.sqlite") as database:
        database.execute("CREATE TABLE t AS SELECT 1 AS a")
    database.close()
    running = serve(ASKS)
    sales, people = sent(running, SALES, "sales.csv"), sent(running, PEOPLE, "people.csv")
    shop = sent(running, (tmp_path / "shop.sqlite").read_bytes(), "shop.sqlite")
    before = kept(running)

    def refuse(path: str, ids: list[str], status: int, code: str) -> str:
        answer = post(running, path, uploads=ids, **({} if path else {"name": "all"}))
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert kept(running) == before
        return str(answer.json()["detail"])

    assert "a database is asked alone" in refuse("", [sales, shop], 422, "upload_refused")
    refuse("", [sales, "0" * 36], 404, "upload_not_found")
    assert post(running, "", uploads=[shop]).status_code == 201
    before = kept(running)
    assert "shop.sqlite takes no other files" in refuse("/shop/files", [sales], 422, "upload_refused")
    assert post(running, "", address=str(tmp_path / "shop.sqlite"), name="mine").status_code == 201
    assert "none of uploaded files" in refuse("/mine/files", [sales], 422, "upload_refused")
    refuse("/none/files", [sales], 404, "definition_not_found")
    assert post(running, "", uploads=[sales], name="all").status_code == 201
    before = kept(running)
    with monkeypatch.context() as patch:
        patch.setattr(uploads_module, "MOST_FILES", 1)
        assert "at most 1 files" in refuse("/all/files", [people], 422, "upload_refused")
    refuse("", [people], 409, "source_taken")
    assert post(running, "/all/files", uploads=[people]).json()["files"] == ["sales.csv", "people.csv"]


def test_one_upload_is_added_to_one_source(serve: Any) -> None:
    running = serve(ASKS)
    names = [post(running, "", uploads=[sent(running, SALES, f"s{n}.csv")]).json()["name"] for n in range(4)]
    shared, own = sent(running, PEOPLE, "people.csv"), [sent(running, PEOPLE, f"p{n}.csv") for n in range(4)]
    with ThreadPoolExecutor() as pool:
        answers = [
            *pool.map(lambda at: post(running, f"/{names[at]}/files", uploads=[own[at], shared]).status_code, range(4))
        ]
    assert sorted(answers) == [200, 404, 404, 404]
    assert len(kept(running)) == 9, "what was refused is still there"
    for at, answer in enumerate(answers):
        if answer == 404:
            assert post(running, f"/{names[at]}/files", uploads=[own[at]]).status_code == 200


def test_a_source_that_does_not_open_gives_its_files_back(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each could be read alone."""
    running = serve(ASKS)
    ids = [sent(running, SALES, "sales.csv"), sent(running, PEOPLE, "people.csv")]

    async def fail(*_: object) -> None:
        raise SourceTimeout(source="sales+people", seconds="1")

    with monkeypatch.context() as patch:
        patch.setattr(sources, "_expect_opens", fail)
        assert post(running, "", uploads=ids).json()["code"] == "source_timeout"
        assert post(running, "", uploads=ids[:1]).status_code == 201
        assert post(running, "/sales/files", uploads=ids[1:]).json()["code"] == "source_timeout"
    assert post(running, "/sales/files", uploads=ids[1:]).json()["files"] == ["sales.csv", "people.csv"]


def test_a_long_name_in_chinese_fits_a_file_system(serve: Any) -> None:
    """It counts bytes, and one of these has three."""
    running = serve(ASKS)
    ids = [sent(running, SALES, f"{'销' * 300}.csv"), sent(running, PEOPLE, f"{'人' * 300}.csv")]
    answer = post(running, "", uploads=ids, name="长")
    assert answer.status_code == 201, answer.text
    assert upload(running, SALES, f"{'销' * 300}.csv", on_conflict="keep_both").json()["file"].endswith("销 (2).csv")

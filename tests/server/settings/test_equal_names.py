"""Files that are uploaded under the name of a source's file: replaced, or kept beside it."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.server.settings.test_sources import ASKS, SALES, kept, upload

from longthread.tools.uploads import Upload, Uploads

pytestmark = pytest.mark.one_backend

MORE = "国家,amount,day,city\n中国,1,2026-03-31,北京\n日本,2,2026-03-01,\n法国,3,2026-03-02,\n".encode()


def add(running: Any, content: bytes, file: str = "sales.csv", **source: str) -> Any:
    sent = upload(running, content, file)
    assert sent.status_code == 201, sent.text
    answer = running.client.post("/api/sources", json={"uploads": [sent.json()["upload"]], **source})
    assert answer.status_code == 201, answer.text
    return answer.json()


def sources(running: Any) -> dict[str, Any]:
    found = running.client.get("/api/sources").json()["sources"]
    return {each["name"]: each["files"] for each in found if each["origin"] == "catalog"}


def told(running: Any, thread: str) -> tuple[list[Any], list[str]]:
    """The rows of a conversation's queries, and the schemas that its entries were written with."""
    rows = [
        step["observation"]["data"]["rows"]
        for steps in running.history(thread)["steps"].values()
        for step in steps
        if step["action"] == "run_sql"
    ]
    exported = running.client.get(f"/api/conversations/{thread}/export", params={"format": "jsonl"}).text
    return rows, list(dict.fromkeys(re.findall(r'"fingerprint": ?"(\w+)"', exported)))


def test_a_file_of_an_equal_name_is_refused_until_somebody_chooses(serve: Any) -> None:
    running = serve(ASKS)
    upload(running, SALES)  # no source: it has no name that could be taken
    add(running, SALES, name="june")
    before = kept(running)
    for name in ("sales.csv", "SALES.CSV", "a folder/sales .csv"):
        refused = upload(running, MORE, name)
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (409, "upload_exists"), name
        assert refused.headers["content-type"] == "application/problem+json"
        assert problem["params"].keys() == {"name", "uploaded_at", "source", "other"}
        assert (problem["params"]["name"], problem["params"]["source"]) == ("sales.csv", "june")
        for told in ("on_conflict=replace", "on_conflict=keep_both", "sales.csv", "june"):
            assert told in problem["detail"]
    assert upload(running, MORE, on_conflict="other").status_code == 422
    assert kept(running) == before, "nothing of what was refused"
    assert upload(running, MORE, "sales.tsv").status_code == 201, "a file of another kind has another name"
    assert running.client.delete("/api/sources/june").status_code == 204
    assert upload(running, MORE).status_code == 201, "the name is free again"


def test_accents_are_one_letter_however_they_are_written(serve: Any) -> None:
    running = serve(ASKS)
    assert add(running, SALES, unicodedata.normalize("NFD", "été.csv"))["files"] == ["été.csv"]
    assert upload(running, SALES, unicodedata.normalize("NFC", "été.csv")).json()["code"] == "upload_exists"


def test_a_file_that_replaces_another_is_asked_by_the_conversations_on_it(serve: Any) -> None:
    running = serve(ASKS)
    source = add(running, SALES, name="june", description="What was sold.")
    thread = running.answer("How many?", source="june")["thread_id"]
    [old] = (running.folder / "data" / "uploads" / "sources").glob("*/*/sales.csv")
    answer = upload(running, MORE, on_conflict="replace")
    assert answer.status_code == 201, answer.text
    assert (answer.json()["source"], answer.json()["file"]) == (source, "sales.csv")
    [table] = answer.json()["tables"]
    assert [each["name"] for each in table["columns"]] == ["国家", "amount", "day", "city"]
    assert old.read_bytes() == MORE, "at the same address"
    assert kept(running) == ["sales.csv"], "and the old file is gone"
    assert sources(running) == {"june": ["sales.csv"]}
    running.answer("And now?", thread_id=thread)
    rows, schemas = told(running, thread)
    assert rows == [[[2]], [[3]]]
    assert len(schemas) == 2
    assert running.client.get("/api/sources/june/preview").json()["tables"] == [table]
    assert running.client.delete("/api/sources/june").status_code == 204
    assert kept(running) == []


@pytest.mark.parametrize("names", [("sales.csv", "sales.csv"), ("sales.csv", "people.csv")])
def test_files_that_replace_others_at_the_same_time_are_whole(
    serve: Any, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    """Of two in one place the later stays, as if it had come after the other; two in two places both do."""
    running = serve(ASKS)
    ids = [upload(running, SALES, name).json()["upload"] for name in dict.fromkeys(names)]
    assert running.client.post("/api/sources", json={"uploads": ids, "name": "june"}).status_code == 201
    before = kept(running), sources(running)
    both, put = asyncio.Barrier(2), Uploads.replace

    async def meet(*given: Any) -> Upload:
        await both.wait()  # both have been tried by now
        return await put(*given)

    monkeypatch.setattr(Uploads, "replace", meet)
    contents = [MORE, f"{MORE.decode()}德国,4,2026-03-04,\n".encode()]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda *sent: upload(running, *sent, on_conflict="replace"), contents, names))
    assert [(each.status_code, each.json()["bytes"]) for each in answers] == [(201, len(each)) for each in contents]
    found = {each.name: each.read_bytes() for each in (running.folder / "data/uploads/sources").glob("*/*/*")}
    assert all(found[name] in [each for each, at in zip(contents, names, strict=True) if at == name] for name in names)
    assert (kept(running), sources(running)) == before
    rows = found["sales.csv"].count(b"\n") - 1
    assert told(running, running.answer("How many?", source="june")["thread_id"])[0] == [[[rows]]]


def test_a_database_is_replaced_as_a_file_of_text_is(serve: Any, tmp_path: Path) -> None:
    def database(rows: int) -> bytes:
        file = tmp_path / f"{rows}.sqlite"
        with closing(sqlite3.connect(file)) as made, made:
            made.execute("CREATE TABLE sales (amount INTEGER)")
            made.executemany("INSERT INTO sales VALUES (?)", [(n,) for n in range(rows)])
        return file.read_bytes()

    running = serve(ASKS)
    add(running, database(2), "sales.sqlite")
    thread = running.answer("How many?", source="sales")["thread_id"]
    assert upload(running, database(5), "sales.sqlite", on_conflict="replace").status_code == 201
    running.answer("And now?", thread_id=thread)
    assert told(running, thread)[0] == [[[2]], [[5]]]


@pytest.mark.parametrize(("content", "given"), [(b"", {}), (b"\n\n", {}), (b"\xff\xff", {"encoding": "utf-8"})])
def test_what_cannot_be_read_replaces_nothing(serve: Any, content: bytes, given: dict[str, str]) -> None:
    running = serve(ASKS)
    add(running, SALES)
    assert upload(running, content, on_conflict="replace", **given).status_code in {409, 422}
    [file] = (running.folder / "data" / "uploads" / "sources").glob("*/*/sales.csv")
    assert (file.read_bytes(), kept(running)) == (SALES, ["sales.csv"])


def test_both_are_kept_under_two_names(serve: Any) -> None:
    running = serve([{"thought": "", "action": "list_tables", "args": {}}, {"finish": "One."}])
    add(running, SALES)
    add(running, SALES, "other.csv", name="sales_3")
    for number, file in ((2, "sales.csv"), (4, "Sales.csv")):  # a source is called sales_3
        shown = upload(running, MORE, file, on_conflict="keep_both").json()
        name = f"{file[:5]}_{number}"
        assert (shown["name"], shown["file"], shown["source"]) == (name, f"{file[:5]} ({number}).csv", None)
        assert shown["tables"][0]["name"] == name
        assert running.client.post("/api/sources", json={"uploads": [shown["upload"]]}).json()["name"] == name
    assert sources(running)["sales"] == ["sales.csv"]
    assert running.client.get("/api/sources/sales/preview").json()["tables"][0]["rows"][0][1] == 10
    for equal in ("sales (2).csv", "sales_2.csv"):
        assert upload(running, MORE, equal).json()["params"]["name"] == "sales (2).csv"
    assert running.answer("Which tables?", source="sales_2")


def test_a_choice_that_was_not_needed_changes_nothing(serve: Any) -> None:
    running = serve(ASKS)
    for choice in ("replace", "keep_both"):
        shown = upload(running, SALES, on_conflict=choice).json()
        assert (shown["name"], shown["file"], shown["source"]) == ("sales", "sales.csv", None)


def test_the_longest_name_has_room_for_a_number(serve: Any) -> None:
    running = serve(ASKS)
    add(running, SALES, "x" * 300 + ".csv")
    shown = upload(running, SALES, "x" * 300 + ".csv", on_conflict="keep_both").json()
    assert shown["file"].endswith("x (2).csv") and shown["name"].endswith("x_2")
    assert running.client.post("/api/sources", json={"uploads": [shown["upload"]]}).status_code == 201

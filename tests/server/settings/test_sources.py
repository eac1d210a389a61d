"""Sources: uploaded, looked into, added, asked, removed."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from openpyxl import Workbook
from tests.server.apps import define

from longthread.errors import UploadNotFound
from longthread.store.schema import APPLICATION_ID
from longthread.tools import sources as previews
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import sample
from longthread.tools.uploads import Uploads

pytestmark = pytest.mark.one_backend

SALES = "国家,amount,day\n中国,10,2026-01-31\n美国,,2026-02-01\n".encode()
ASKS = [
    {"thought": "", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM sales"}},
    {"finish": "Two [q1]."},
]


def upload(running: Any, content: Any, name: str = "sales.csv", **given: str) -> Any:
    return running.client.post("/api/uploads", params={"name": name, **given}, content=content)


def kept(running: Any) -> list[str]:
    """The files that uploads have left."""
    folder = running.folder / "data" / "uploads"
    return sorted(name for _, _, names in os.walk(folder) for name in names)  # a folder may go while it is looked at


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The same table in each form."""
    yield "Sales.CSV", SALES
    duckdb.sql("SELECT * FROM (VALUES ('中国', 10), ('美国', NULL)) AS t(国家, amount)").write_parquet(
        str(folder / "p.parquet")
    )
    yield "sales.parquet", (folder / "p.parquet").read_bytes()
    book = Workbook()
    for row in (["国家", "amount"], ["中国", 10], ["美国", None]):
        book.active.append(row)
    book.save(folder / "b.xlsx")
    yield "sales.xlsx", (folder / "b.xlsx").read_bytes()
    with sqlite3.connect(folder / "s.db") as database:
        database.execute("CREATE TABLE sales (国家 TEXT, amount INTEGER)")
        database.execute("INSERT INTO sales VALUES ('中国', 10), ('美国', NULL)")
    database.close()
    yield "sales.sqlite", (folder / "s.db").read_bytes()


def test_a_file_of_text_is_read_in_the_encoding_that_is_named(serve: Any) -> None:
    running = serve(ASKS, file_encoding="gb18030")  # of files whose encoding nobody names
    text = "城市,n\r\n臺北,3\r\n"

    def sent(encoding: str, name: str = "towns.csv") -> Any:
        given = {"name": name, "encoding": encoding}
        return running.client.post("/api/uploads", params=given, content=text.encode("big5"))

    shown = sent("big5hkscs").json()
    [table] = shown["tables"]
    assert ([each["name"] for each in table["columns"]], table["rows"], shown["notes"]) == (
        ["城市", "n"],
        [["臺北", 3]],
        [],
    )
    assert kept(running) == ["towns.csv"]
    [file] = (running.folder / "data" / "uploads").rglob("towns.csv")
    assert file.read_bytes().decode("utf-8-sig") == text
    refused = sent("utf-8")
    assert (refused.status_code, refused.json()["code"]) == (422, "upload_refused")
    assert "towns.csv was not taken: it is not UTF-8." in refused.json()["detail"]
    refused = sent("cp932", "towns.xlsx")
    assert (refused.status_code, "only .csv" in refused.json()["detail"]) == (422, True)
    assert sent("rot13").status_code == 422
    assert kept(running) == ["towns.csv"]


def test_a_file_of_each_kind_is_shown_with_types_and_first_rows(serve: Any, tmp_path: Path) -> None:
    running = serve(ASKS)
    for name, content in files(tmp_path):
        answer = upload(running, content, name)
        assert answer.status_code == 201, answer.text
        shown = answer.json()
        [table] = shown["tables"]
        assert (shown["file"], shown["bytes"], shown["of"]) == (f"{name[:5]}.{name[6:].lower()}", len(content), 1)
        assert [each["name"] for each in table["columns"]][:2] == ["国家", "amount"]
        assert all(each["type"] for each in table["columns"])
        assert [row[:2] for row in table["rows"]] == [["中国", 10], ["美国", None]]
        assert running.client.delete(f"/api/uploads/{shown['upload']}").status_code == 204
    assert kept(running) == []


GUESSED = b"""Sales of June

product,amount,price,day
Tea,"1.234,56",3 \xe2\x82\xac,01/02/2024
Coffee,"2.345,67",4 \xe2\x82\xac,03/04/2024
Total,"3.580,23",7 \xe2\x82\xac,05/06/2024
"""


def test_what_was_guessed_of_a_file_is_told_before_it_is_a_source_and_afterwards(serve: Any) -> None:
    running = serve(ASKS)
    shown = upload(running, GUESSED).json()
    for told in ("Sales of June", 'begins with "Total"', "kept as text", "1.234,56", "in €"):
        assert [note for note in shown["notes"] if note["table"] == "sales" and told in note["text"]], told
    [sums] = [note for note in shown["notes"] if note["code"] == "sum_row"]
    assert (sums["values"], sums["column"]) == ({"label": "Total"}, None)
    [unit] = [note for note in shown["notes"] if note["code"] == "unit"]
    assert (unit["values"], unit["column"]) == ({"unit": "€"}, "price")
    assert running.client.post("/api/sources", json={"uploads": [shown["upload"]]}).status_code == 201
    assert running.client.get("/api/sources/sales/preview").json()["notes"] == shown["notes"]


def test_an_uploaded_file_is_a_source_at_once_and_after_a_restart_until_it_is_removed(serve: Any) -> None:
    running = serve(ASKS)
    shown = upload(running, SALES).json()
    added = running.client.post("/api/sources", json={"uploads": [shown["upload"]], "description": "What was sold."})
    assert added.status_code == 201, added.text
    view = {"name": "sales", "origin": "catalog", "description": "What was sold.", "address": None}
    view |= {"upload": shown["upload"], "files": ["sales.csv"]}
    assert added.json() == view
    assert view in running.client.get("/api/sources").json()["sources"]
    used = running.client.delete(f"/api/uploads/{shown['upload']}")
    assert (used.status_code, used.json()["code"]) == (409, "definition_in_use")
    asked = running.answer("How many?", source="sales")
    [call] = [step for steps in running.history(asked["thread_id"])["steps"].values() for step in steps]
    assert call["observation"]["data"]["rows"] == [[2]]
    running.stop()
    again = serve(ASKS)
    looked = again.client.get("/api/sources/sales/preview").json()
    assert looked["tables"] == shown["tables"]
    assert again.answer("How many?", source="sales")
    other = upload(again, SALES, on_conflict="keep_both").json()
    for name in ("sales", "demo"):
        taken = again.client.post("/api/sources", json={"uploads": [other["upload"]], "name": name})
        assert (taken.status_code, taken.json()["code"]) == (409, "source_taken")
    assert again.client.post("/api/sources", json={"uploads": [other["upload"]]}).json()["name"] == "sales_2"
    assert again.client.delete("/api/sources/sales").status_code == 204
    assert kept(again) == ["sales (2).csv"]
    for answer in (again.client.delete("/api/sources/sales"), again.client.get("/api/sources/sales/preview")):
        assert (answer.status_code, answer.json()["code"]) == (404, "definition_not_found")


def test_one_upload_becomes_one_source_and_one_name_is_given_once(serve: Any) -> None:
    running = serve(ASKS)

    def add(**body: Any) -> Any:
        return running.client.post("/api/sources", json=body)

    once = upload(running, SALES).json()["upload"]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda n: add(uploads=[once], name=f"one{n}").status_code, range(6)))
        assert sorted(answers) == [201] + [404] * 5
        uploads = [upload(running, SALES, "sold.csv").json()["upload"] for _ in range(4)]
        answers = list(pool.map(lambda each: add(uploads=[each], name="sold").status_code, uploads))
    assert sorted(answers) == [201] + [409] * 3
    [left, *_] = [each for each, answer in zip(uploads, answers, strict=True) if answer == 409]
    assert add(uploads=[left], name="other").status_code == 201, "what was refused is still there"
    assert running.client.delete("/api/sources/sold").status_code == 204
    assert running.answer("How many?", source="other")


async def _pieces() -> AsyncIterator[bytes]:
    yield SALES


async def test_no_server_deletes_the_files_of_sources(tmp_path: Path) -> None:
    """Another one, with another store, may have the same data folder."""
    ours, theirs = (Uploads(tmp_path, 2**20) for _ in range(2))
    source, old, young = [await ours.receive("a.csv", _pieces()) for _ in range(3)]
    for each in (source, old):
        os.utime(each.path.parent, (0, 0))
    source = (await ours.keep([source])).upload
    await theirs.sweep(())
    assert [each.path.exists() for each in (source, old, young)] == [True, False, True]
    await ours.settle(source)
    os.utime(source.path.parent, (0, 0))
    await theirs.sweep(())
    assert await ours.of_address(str(source.path)) == source
    assert source.path.exists()
    with pytest.raises(UploadNotFound):
        await theirs.find(source.id)


async def test_a_file_whose_source_was_never_written_goes_like_one_that_became_none(tmp_path: Path) -> None:
    """The server was killed between the two. It knows its own sources, whose mark it takes away."""
    uploads = Uploads(tmp_path, 2**20)
    lost, own = [(await uploads.keep([await uploads.receive("a.csv", _pieces())])).upload for _ in range(2)]
    await uploads.sweep({own.id})
    assert lost.path.exists(), "it may just be written"
    for each in (lost, own):
        os.utime(each.path.with_name("incoming"), (0, 0))
    await uploads.sweep({own.id})
    assert (lost.path.exists(), list(own.path.parent.iterdir())) == (False, [own.path])


def test_a_file_has_one_source_and_goes_with_no_other(serve: Any, store_address: str, tmp_path: Path) -> None:
    running = serve(ASKS)
    pending = upload(running, SALES).json()["upload"]
    shown = upload(running, SALES).json()["upload"]
    assert running.client.post("/api/sources", json={"uploads": [shown], "name": "orig"}).status_code == 201
    folder = running.folder / "data" / "uploads"
    assert kept(running) == ["sales.csv"] * 2, "no mark stays"
    file = folder / "sources" / shown / "sales.csv"
    (tmp_path / "link").symlink_to(folder)
    for where in (
        file,
        f"{file}?encoding=utf-8",
        file.parent,
        folder / "sources" / ".." / "sources" / shown / "sales.csv",
        tmp_path / "link" / "sources" / shown / "sales.csv",
        f"sqlite:///{file}",
        folder / pending / "sales.csv",
    ):
        told = running.client.post("/api/sources", json={"address": str(where), "name": "alias"})
        assert (told.status_code, told.json()["code"]) == (422, "catalog_invalid"), where
    # An operator may define one all the same.
    for name, where in (("alias", file), ("early", folder / pending / "sales.csv")):
        define(store_address, {"kind": "source", "name": name, "address": str(where)})
    told = running.client.delete(f"/api/uploads/{pending}")
    assert (told.status_code, told.json()["code"]) == (409, "definition_in_use")
    assert running.client.delete("/api/sources/alias").status_code == 204
    assert running.client.get("/api/sources/orig/preview").status_code == 200
    assert kept(running) == ["sales.csv"] * 2
    for path in ("sources/orig", "sources/early", f"uploads/{pending}"):
        assert running.client.delete(f"/api/{path}").status_code == 204
    assert kept(running) == []


def test_a_source_is_asked_by_its_name_whatever_files_lie_where_the_server_runs(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "sales.csv").write_text("amount\n1\n2\n3\n")
    monkeypatch.chdir(tmp_path)
    running = serve(ASKS)
    assert (
        running.client.post("/api/sources", json={"uploads": [upload(running, SALES).json()["upload"]]}).json()["name"]
        == "sales"
    )

    def rows(source: str) -> Any:
        asked = running.answer("How many?", source=source)
        [call] = [step for steps in running.history(asked["thread_id"])["steps"].values() for step in steps]
        return call["observation"]["data"]["rows"]

    assert (rows("sales"), rows("./sales")) == ([[2]], [[3]])


async def test_once_a_table_takes_too_long_no_other_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "slow.sqlite") as database:
        database.execute("CREATE TABLE a (n INTEGER)")
        for name in "bcdef":
            endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS m FROM n"
            database.execute(f"CREATE VIEW {name} AS {endless}")
    database.close()
    asked: list[str] = []
    async with await open_source(str(tmp_path / "slow.sqlite"), limits=Limits(seconds=0.2)) as source:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(previews, "sample", lambda *given: (asked.append(given[1]), sample(*given))[1])
            shown = await previews.preview(source)
    assert asked == ["a", "b"]
    assert [each.problem is None for each in shown] == [True] + [False] * 5
    assert len({each.problem for each in shown[1:]}) == 1


def test_nobody_is_told_where_an_uploaded_file_is(serve: Any) -> None:
    """It is called by its name, in errors and in what a model sees."""
    running = serve([{"thought": "", "action": "list_tables", "args": {}}, {"finish": "One."}])
    texts = []
    for name, content in (
        ("x.parquet", b"PAR1" + b"\xff" * 1_000 + b"PAR1"),
        ("x.json", b'[{"a": 1'),
        ("x.db", b"SQLite format 3\0" + b"\xff" * 5_000),
        ("x.xlsx", b"PK\3\4"),
        ("x.csv", b"\n\n"),
    ):
        told = upload(running, content, name)
        assert told.status_code in {409, 422}
        assert name in told.text
        texts.append(told.text)
    added = running.client.post("/api/sources", json={"uploads": [upload(running, SALES).json()["upload"]]})
    asked = running.answer("Which tables?", source="sales")
    [call] = [step for steps in running.history(asked["thread_id"])["steps"].values() for step in steps]
    assert call["observation"]["data"]["source"] == "sales.csv"
    [file] = (running.folder / "data" / "uploads" / "sources").glob("*/*/sales.csv")
    file.unlink()
    gone = running.client.get("/api/sources/sales/preview")
    assert "The source sales.csv cannot be read" in gone.text
    assert [
        text for text in (*texts, added.text, str(call["observation"]), gone.text) if str(running.folder) in text
    ] == []


def test_a_database_with_the_name_of_a_data_file_is_refused(serve: Any, tmp_path: Path) -> None:
    running = serve(ASKS)
    with duckdb.connect(str(tmp_path / "d.duckdb")) as database:
        database.execute("CREATE TABLE t AS SELECT 1 AS a")
    with sqlite3.connect(tmp_path / "s.sqlite") as lite:
        lite.execute("CREATE TABLE t (a)")
    lite.close()
    for file, kind in (("d.duckdb", "DuckDB"), ("s.sqlite", "SQLite")):
        for name in ("x.csv", "x.json", "x.parquet", *(["x.db"] if kind == "DuckDB" else [])):
            told = upload(running, (tmp_path / file).read_bytes(), name)
            assert (told.status_code, told.json()["code"]) == (422, "upload_refused")
            assert f"it is a {kind} database" in told.text
    assert kept(running) == []


def test_what_is_too_large_broken_off_or_no_table_leaves_nothing(serve: Any) -> None:
    running = serve(ASKS, max_upload_mb=1)
    empty = upload(running, b"", "nothing.csv")
    assert (empty.status_code, empty.json()["code"]) == (422, "upload_refused")
    assert "nothing.csv was not taken: it is empty." in empty.text
    for content in (b"a\n" * 2**20, (b"x" * 2**16 for _ in range(20))):
        told = upload(running, content)
        assert (told.status_code, told.json()["code"]) == (413, "upload_too_large")
    for name, content in (
        ("x.sqlite", b"nothing of SQLite's"),
        ("x.xlsx", b"PK\3\4"),
        ("x.parquet", b"PAR1"),
        ("x.csv", b""),
    ):
        assert upload(running, content, name).status_code in {409, 422}, name
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /api/uploads?name=x.csv HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 900000\r\n\r\n"
        client.sendall(head.encode() + b"a,b\n")
        while not kept(running):
            pass
    while kept(running):
        pass


def test_a_client_that_leaves_while_its_file_is_looked_into_leaves_nothing(serve: Any, tmp_path: Path) -> None:
    running = serve(ASKS, sql_timeout=600)
    with sqlite3.connect(tmp_path / "slow.db") as database:
        endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) AS m FROM n"
        database.execute(f"CREATE VIEW v AS {endless}")
    database.close()
    content = (tmp_path / "slow.db").read_bytes()
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as client:
        head = f"POST /api/uploads?name=x.db HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(content)}\r\n\r\n"
        client.sendall(head.encode() + content)
        while kept(running) != ["x.db"]:
            pass
    while kept(running):
        pass


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("..\\..\\x?encoding=utf-8&y.csv", "x_encoding_utf-8_y.csv"),
        ("/.csv", "data.csv"),
        ("~/a b;c'\"$(x).CSV ", "a_b_c_x.csv"),
        ("销售 额.csv", "销售_额.csv"),
        ("x" * 490 + ".csv", "x" * 100 + ".csv"),
    ],
)
def test_a_hostile_name_stays_in_its_folder(serve: Any, name: str, file: str) -> None:
    running = serve(ASKS)
    assert upload(running, SALES, name).json()["file"] == file
    assert kept(running) == [file]


@pytest.mark.parametrize("name", ["", "\0.csv", "x", "x.exe", "x.csv.exe", "x.duckdb", ".", "csv", "x" * 501])
def test_a_name_of_no_kind_is_refused(serve: Any, name: str) -> None:
    running = serve(ASKS)
    answer = upload(running, SALES, name)
    assert answer.status_code == 422, answer.text
    assert kept(running) == []


def test_a_source_is_added_by_its_address_and_no_password_is_kept(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve(ASKS)
    [*_, (_, database)] = files(tmp_path)
    where = tmp_path / "shop.db"
    where.write_bytes(database)
    added = running.client.post("/api/sources", json={"address": str(where), "name": "店"}).json()
    assert (added["address"], added["files"]) == (str(where), [])
    assert running.answer("How many?", source="店")
    assert running.client.delete("/api/sources/店").status_code == 204
    assert where.exists()
    secret = running.client.post("/api/sources", json={"address": "postgresql://ann:canary@127.0.0.1:1/x"})
    assert (secret.status_code, "canary" in secret.text) == (422, False)
    monkeypatch.setenv("LONGTHREAD_SECRET_SHOP", "canary")
    away = running.client.post("/api/sources", json={"address": "postgresql://ann:${SHOP}@127.0.0.1:1/x"})
    assert (away.status_code, "canary" in away.text, "longthread apply" in away.text) == (422, False, True)
    assert running.client.get("/api/sources").json()["sources"][0]["name"] == "demo"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"uploads": ["x"], "address": "y"},
        {"address": ""},
        {"address": "a\0b"},
        {"address": 7},
        {"address": "demo", "name": "a/b"},
        {"address": "demo", "name": "x" * 101},
        {"address": "demo", "more": 1},
    ],
)
def test_what_is_no_source_is_refused(serve: Any, body: Any) -> None:
    assert serve(ASKS).client.post("/api/sources", json=body).status_code == 422


@pytest.mark.parametrize("upload_id", ["x", "..%2F..", "%2E%2E", "0" * 36, "9" * 100])
def test_an_unknown_upload_is_told(serve: Any, upload_id: str) -> None:
    running = serve(ASKS)
    gone = running.client.delete(f"/api/uploads/{upload_id}")
    assert (gone.status_code, gone.json()["code"]) == (404, "upload_not_found")
    assert running.client.post("/api/sources", json={"uploads": [upload_id]}).status_code == 404


def test_the_store_is_no_source_by_any_route(serve: Any, store_address: str, tmp_path: Path) -> None:
    running = serve(ASKS)
    copy = tmp_path / "copy.sqlite"
    with closing(sqlite3.connect(copy)) as made:
        made.execute("CREATE TABLE threads (id)")
        made.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        made.commit()
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "secret.key").write_text("key", "utf-8")
    for address in (store_address, str(tmp_path / "data"), str(tmp_path / "data" / "secret.key"), str(copy)):
        for answer in (
            running.client.post("/api/sources", json={"address": address}),
            running.client.post("/api/chat", json={"question": "Who?", "source": address}),
            running.client.post("/api/catalog/tools/list_tables/run", json={"source": address}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (409, "source_is_store"), answer.text
    sent = upload(running, copy.read_bytes(), name="copy.sqlite")
    assert (sent.status_code, sent.json()["code"]) == (409, "source_is_store")
    assert kept(running) == []
    assert [each["name"] for each in running.client.get("/api/sources").json()["sources"]] == ["demo"]


def test_other_machines_change_no_sources(serve: Any, tmp_path: Path) -> None:
    running = serve(ASKS, no_login=True)
    running.client.headers["X-Forwarded-For"] = "198.51.100.9"
    assert running.client.get("/api/sources").json()["changeable"] is False
    assert running.client.get("/api/sources/demo/preview").json()["of"] > 1
    for answer in (
        upload(running, SALES),
        running.client.delete("/api/uploads/x"),
        running.client.post("/api/sources", json={"address": "/etc/passwd"}),
        running.client.get("/api/sources/x/preview"),
        running.client.delete("/api/sources/x"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "settings_not_allowed")
    assert kept(running) == []

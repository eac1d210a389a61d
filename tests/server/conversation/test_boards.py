"""Boards: results that are saved, refreshed, given other values, exported and shared."""

from __future__ import annotations

import io
import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import openpyxl
import pytest

from longthread.store import boards

SQL = "SELECT name FROM sites ORDER BY name LIMIT 2"
DEFAULT = {"view": "table", "wide": False}


def script(sql: str) -> list[Any]:
    return [{"thought": "", "action": "run_sql", "args": {"sql": sql}}, {"finish": "Done [q1]."}]


def asked(running: Any, **options: Any) -> tuple[str, int]:
    done = running.answer("Which sites?", **options)
    [step] = running.history(done["thread_id"])["steps"][done["run_id"]]
    return done["thread_id"], step["step"]


def saved(running: Any, **options: Any) -> tuple[str, Any]:
    """A board's path with one card."""
    thread, step = asked(running, **options)
    board = running.client.post("/api/boards", json={"title": "Sites 发射场"}).json()
    path = f"/api/boards/{board['id']}"
    body = {"thread_id": thread, "step": step, "title": "Two sites", "look": DEFAULT}
    made = running.client.post(f"{path}/cards", json=body)
    assert made.status_code == 201, made.text
    return path, made.json()


def test_a_result_is_saved_with_its_question_and_refreshed(serve: Any, tmp_path: Path) -> None:
    file = tmp_path / "sites.csv"
    file.write_text("name\nB\nA\n")
    running = serve(script(SQL))
    path, card = saved(running, source=str(file))
    assert (card["question"], card["title"], card["sql"], card["look"]) == ("Which sites?", "Two sites", SQL, DEFAULT)
    assert (card["result"]["rows"], card["result"]["total"], card["error"]) == ([["A"], ["B"]], 2, None)
    assert card["source"] == str(file)
    file.write_text("name\nC\nD\n")
    whole = running.client.get(path).json()
    assert whole["cards"] == [card], "nothing is asked to look at a board"
    fresh = running.client.post(f"{path}/cards/{card['id']}/refresh").json()
    assert fresh["result"]["rows"] == [["C"], ["D"]]
    assert fresh["read_at"] > card["read_at"]
    file.unlink()
    failed = running.client.post(f"{path}/cards/{card['id']}/refresh").json()
    assert (failed["result"], failed["read_at"]) == (fresh["result"], fresh["read_at"]), "its rows stay"
    assert "sites.csv" in failed["error"]["message"]
    [listed] = running.client.get("/api/boards").json()["boards"]
    assert (listed["title"], listed["cards"]) == ("Sites 发射场", 1)
    assert len(running.model.calls) == 2, "no model is asked"


def test_values_are_bound_and_hold_for_all_cards(serve: Any) -> None:
    running = serve(script("SELECT count(*) AS n FROM launches WHERE launch_date >= '2020-01-01'"))
    path, card = saved(running)
    [[all_]] = card["result"]["rows"]
    sql = "SELECT count(*) AS n FROM launches WHERE launch_date >= {{since}} AND agency <> {{agency}}"
    parameters = [
        {"name": "since", "kind": "date", "value": "2020-01-01", "label": "起始日期"},
        {"name": "agency", "kind": "text", "value": "x' OR 1=1 --", "label": ""},
    ]
    sql = sql.replace(" AND agency <> {{agency}}", " AND {{agency}} <> ''")
    body = {"sql": sql, "parameters": parameters}
    changed = running.client.patch(f"{path}/cards/{card['id']}", json=body)
    assert changed.status_code == 200, changed.text
    assert (changed.json()["sql"], changed.json()["parameters"]) == (sql, parameters)
    assert changed.json()["result"]["rows"] == [[all_]]
    given = running.client.patch(path, json={"given": {"since": "2025-01-01"}})
    assert given.json()["cards"][0]["parameters"][0]["value"] == "2025-01-01"
    later = running.client.post(f"{path}/cards/{card['id']}/refresh").json()
    assert 0 < later["result"]["rows"][0][0] < all_
    assert later["error"] is None
    for wrong in ({"since": "soon"}, {"since": 5}, {"nobody": "x"}):
        assert running.client.patch(path, json={"given": wrong}).status_code == 422
    body = {"sql": "SELECT {{n}} AS n", "parameters": [{"name": "n", "kind": "number", "value": 1}]}
    running.client.patch(f"{path}/cards/{card['id']}", json=body)
    huge = running.client.patch(path, json={"given": {"n": 10**400}})
    assert (huge.status_code, "64 bits" in huge.text) == (422, True)
    number = [{"name": "most", "kind": "number", "value": 3}]
    body = {"sql": "SELECT name FROM sites ORDER BY name LIMIT {{most}}", "parameters": number}
    assert len(running.client.patch(f"{path}/cards/{card['id']}", json=body).json()["result"]["rows"]) == 3


SINCE = [{"name": "since", "kind": "date", "value": "2026-01-01", "label": ""}]


def with_value(serve: Any, tmp_path: Path) -> tuple[Any, str, str, Path]:
    """A board's path, and its card's, which counts the sales since a day, and their file."""
    file = tmp_path / "sales.csv"
    file.write_text("day,n\n2025-06-01,1\n2026-02-01,2\n2026-03-01,3\n")
    running = serve(script("SELECT n FROM sales ORDER BY n"))
    path, card = saved(running, source=str(file))
    body = {"sql": "SELECT n FROM sales WHERE day >= {{since}} ORDER BY n", "parameters": SINCE}
    changed = running.client.patch(f"{path}/cards/{card['id']}", json=body)
    assert changed.json()["result"]["rows"] == [[2], [3]], changed.text
    return running, path, f"{path}/cards/{card['id']}", file


def test_rows_tell_the_values_that_they_were_read_with(serve: Any, tmp_path: Path) -> None:
    running, path, card, file = with_value(serve, tmp_path)
    file.rename(tmp_path / "away.csv")
    running.client.patch(path, json={"given": {"since": "2025-01-01"}})
    late = running.client.post(f"{card}/refresh").json()
    assert late["error"] is not None
    assert (late["parameters"][0]["value"], late["values_read"]) == ("2025-01-01", {"since": "2026-01-01"})
    token = running.client.post(f"{path}/shares", json={}).json()["token"]
    [shown] = running.client.get(f"/api/shared/boards/{token}").json()["cards"]
    assert (shown["parameters"], shown["result"]["rows"]) == (SINCE, [[2], [3]]), "the value is that of the rows"
    (tmp_path / "away.csv").rename(file)
    fresh = running.client.post(f"{card}/refresh").json()
    assert (fresh["values_read"], fresh["result"]["rows"]) == ({"since": "2025-01-01"}, [[1], [2], [3]])
    token = running.client.post(f"{path}/shares", json={}).json()["token"]
    [shown] = running.client.get(f"/api/shared/boards/{token}").json()["cards"]
    assert shown["parameters"][0]["value"] == "2025-01-01"


@pytest.mark.one_backend
def test_a_changed_card_is_answered_with_its_new_value(serve: Any, tmp_path: Path) -> None:
    running, _, card, _ = with_value(serve, tmp_path)
    changed = running.client.patch(card, json={"parameters": [{**SINCE[0], "value": "2026-03-01"}]}).json()
    assert changed["result"]["rows"] == [[3]]
    assert (changed["parameters"][0]["value"], changed["values_read"]) == ("2026-03-01", {"since": "2026-03-01"})


@pytest.mark.one_backend
def test_a_file_has_the_values_of_the_rows_that_the_card_shows(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, path, card, _ = with_value(serve, tmp_path)
    monkeypatch.setattr("longthread.runs.services.boards.KEPT_ROWS", 1)
    assert len(running.client.post(f"{card}/refresh").json()["result"]["rows"]) == 1
    running.client.patch(path, json={"given": {"since": "2025-01-01"}})
    text = running.client.get(f"{card}/file", params={"format": "csv"}).text
    assert text.removeprefix("\ufeff").split() == ["n", "2", "3"]


def test_a_query_that_is_refused_changes_nothing(serve: Any) -> None:
    running = serve(script(SQL))
    path, card = saved(running)
    number = {"name": "n", "kind": "number", "value": 1}
    for body, status, code in (
        ({"sql": "DELETE FROM sites"}, 409, "sql_refused"),
        ({"sql": "SELECT * FROM nowhere"}, 409, "unknown_table"),
        ({"sql": "SELECT {{n}} AS n"}, 422, "invalid_input"),
        ({"sql": "SELECT 1 AS n", "parameters": [number]}, 422, "invalid_input"),
        ({"sql": "SELECT {{n}} AS n", "parameters": [number, number]}, 422, "invalid_input"),
        ({"sql": "SELECT * FROM {{n}}", "parameters": [number]}, 422, "invalid_input"),
        ({"sql": "SELECT {{n}} AS n", "parameters": [{**number, "value": "1"}]}, 422, "invalid_input"),
        ({"look": {"chart": "x" * 20_001}}, 422, "invalid_input"),
    ):
        answer = running.client.patch(f"{path}/cards/{card['id']}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code), body
    assert running.client.get(path).json()["cards"] == [card]


def test_a_result_that_the_step_does_not_keep_whole_is_read_again(serve: Any) -> None:
    running = serve(script("SELECT id, launch_date FROM launches ORDER BY 1"))
    path, card = saved(running)
    assert card["result"]["total"] > len(card["result"]["rows"]) > 100, "of a card there is more than of a step"
    assert card["error"] is None
    sheet = running.client.get(f"{path}/cards/{card['id']}/file", params={"format": "xlsx"})
    assert sheet.headers["content-disposition"].endswith(f"filename*=UTF-8''{quote(card['title'])}.xlsx")
    rows = list(openpyxl.load_workbook(io.BytesIO(sheet.content)).active.values)
    assert (rows[0][0], len(rows)) == ("id", card["result"]["total"] + 1)


@pytest.mark.one_backend
def test_a_file_has_all_rows_of_a_query_with_values(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.runs.services.boards.KEPT_ROWS", 5)
    running = serve(script(SQL))
    path, card = saved(running)
    body = {
        "sql": "SELECT id FROM launches WHERE launch_date >= {{since}}",
        "parameters": [{"name": "since", "kind": "date", "value": "2020-01-01"}],
    }
    changed = running.client.patch(f"{path}/cards/{card['id']}", json=body).json()
    assert (len(changed["result"]["rows"]), changed["result"]["total"] > 5) == (5, True)
    text = running.client.get(f"{path}/cards/{card['id']}/file", params={"format": "csv"}).text
    assert len(text.splitlines()) == changed["result"]["total"] + 1


@pytest.mark.one_backend
def test_a_board_is_changed_and_deleted(serve: Any) -> None:
    running = serve([*script(SQL)])
    path, card = saved(running)
    board = running.client.get(path).json()
    second = {"thread_id": card["thread_id"], "step": asked(running)[1], "title": "b", "look": {}}
    assert running.client.post(f"{path}/cards", json={**second, "step": 0}).json()["code"] == "entry_not_found"
    changed = running.client.patch(path, json={"title": "Other", "refresh_every": "day", "order": [card["id"]]}).json()
    assert (changed["title"], changed["refresh_every"]) == ("Other", "day")
    assert running.client.patch(path, json={"refresh_every": None}).json()["refresh_every"] is None
    assert running.client.patch(path, json={"order": []}).status_code == 422
    assert running.client.patch(path, json={"refresh_every": "minute"}).status_code == 422
    thread = card["thread_id"]
    running.client.delete(f"/api/conversations/{thread}")
    [kept] = running.client.get(path).json()["cards"]
    assert (kept["thread_id"], kept["message"], kept["result"]) == (None, None, card["result"])
    assert running.client.delete(f"{path}/cards/{card['id']}").status_code == 204
    assert running.client.delete(f"{path}/cards/{card['id']}").json()["code"] == "card_not_found"
    assert running.client.post(f"{path}/cards/{card['id']}/refresh").json()["code"] == "card_not_found"
    assert running.client.delete(path).status_code == 204
    for answer in (running.client.get(path), running.client.delete(path), running.client.patch(path, json={})):
        assert answer.json()["code"] == "board_not_found"
    assert board["id"] not in running.client.get("/api/boards").text


def test_a_link_shows_the_board_as_it_was_without_addresses(
    serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sites.csv"
    file.write_text("name\nB\nA\n")
    running = serve(script(SQL))
    path, card = saved(running, source=str(file))
    made = running.client.post(f"{path}/shares", json={"ttl_seconds": 3600}).json()
    assert made["path"] == f"/s/b/{made['token']}"
    answer = running.client.get(f"/api/shared/boards/{made['token']}")
    shown = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert (shown["title"], shown["cards"][0]["result"]["rows"]) == ("Sites 发射场", [["A"], ["B"]])
    for hidden in (str(tmp_path), card["thread_id"], '"error"', '"source"'):
        assert hidden not in json.dumps(shown), hidden
    file.write_text("name\nsecret\n")
    running.client.post(f"{path}/cards/{card['id']}/refresh")
    running.client.patch(path, json={"title": "Other"})
    assert running.client.get(f"/api/shared/boards/{made['token']}").json() == shown, "what came later is not shared"
    [listed] = running.client.get(f"{path}/shares").json()["shares"]
    assert listed["id"] == made["id"]
    monkeypatch.setattr("longthread.store.share_links.MOST_LINKS", 1)
    assert running.client.post(f"{path}/shares", json={}).json()["code"] == "board_full"
    assert running.client.delete(f"{path}/shares/{made['id']}").status_code == 204
    assert running.client.get(f"/api/shared/boards/{made['token']}").json()["code"] == "share_not_found"
    running.client.delete(f"{path}/cards/{card['id']}")
    assert running.client.post(f"{path}/shares", json={}).json()["code"] == "nothing_on_board"


def test_a_schedule_refreshes_its_cards_once_it_is_due(serve: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(boards, "SECONDS", {"hour": 0.2, "day": 86_400})
    file = tmp_path / "sites.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE sites (name TEXT)")
        connection.execute("INSERT INTO sites VALUES ('A')")
    running = serve(script(SQL))
    path, card = saved(running, source=str(file))
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE sites SET name = 'Z'")
    running.client.patch(path, json={"refresh_every": "day"})
    assert running.client.get(path).json()["cards"] == [card]
    running.client.patch(path, json={"refresh_every": None})
    running.client.patch(path, json={"refresh_every": "hour"})
    while (found := running.client.get(path).json()["cards"][0]) == card:
        pass
    assert found["result"]["rows"] == [["Z"]]

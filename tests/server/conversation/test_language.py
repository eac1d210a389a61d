"""Warnings of runs and notes of results in the language of the page. What is stored stays English."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_user_stream import Frame, run_of, until, watched

from longthread.server.page import PageLanguage, translate_text

pytestmark = pytest.mark.one_backend

SCRIPT = [
    {"thought": "Look.", "action": "list_tables"},
    {"thought": "Sum.", "action": "run_sql", "args": {"sql": "SELECT sum(n) AS n FROM sales WHERE city = 'Bon'"}},
    {"finish": "None [q1]."},
]
LEFT_OUT = {"en": "empty.csv is left out: it is empty.", "zh": "empty.csv 已略去：它是空的。"}
NEAREST = {
    "en": "No sales.city is 'Bon'. The nearest values are: 'Bonn'.",
    "zh": "没有 sales.city 为 'Bon' 的行。最接近的值：'Bonn'。",
}
LANGUAGES: tuple[PageLanguage, ...] = ("en", "zh")


def write_files(folder: Path) -> str:
    """Write a source that a run warns of, and whose results have notes."""
    folder.mkdir()
    (folder / "sales.csv").write_text("city,n\nBonn,1\nParis,2\n", encoding="utf-8")
    (folder / "empty.csv").touch()
    return str(folder)


def said(events: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The warnings and notes of a run's events."""
    warnings = [each["value"]["message"] for each in events if each.get("name") == "longthread.warning"]
    results = [json.loads(each["content"]) for each in events if each["type"] == "TOOL_CALL_RESULT"]
    return warnings, [note for each in results for note in each["data"].get("notes", ())]


def noted(steps: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The notes of the steps of a history."""
    return [note for each in steps.values() for step in each for note in step["observation"]["data"].get("notes", ())]


def read(running: Any, path: str, **options: str) -> list[dict[str, Any]]:
    """The events of a stream that has ended."""
    answer = running.client.get(path, params=options)
    assert answer.status_code == 200, answer.text
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def events_of(frames: Iterator[Frame]) -> list[dict[str, Any]]:
    """The events of the run that is watched, to its end."""
    return [each.data["event"] for each in until(frames, "run", type="RUN_FINISHED") if each.name == "run"]


def test_pages_in_both_languages_watch_one_run(serve: Any, tmp_path: Path) -> None:
    running = serve(SCRIPT, source=write_files(tmp_path / "files"))
    running.model.shut.set()
    asked = running.ask("How many in Bon?")
    with watched(running, run_of(asked), lang="zh") as chinese, watched(running, run_of(asked)) as english:
        until(english, "run", type="RUN_STARTED")
        running.model.shut.clear()
        live = {"zh": said(events_of(chinese)), "en": said(events_of(english))}
    for language in LANGUAGES:
        assert LEFT_OUT[language] in live[language][0]
        assert {LEFT_OUT[language], NEAREST[language]} <= set(live[language][1])
        assert said(read(running, asked["events"], lang=language)) == live[language]


def test_a_history_is_in_the_language_of_the_page(serve: Any, tmp_path: Path) -> None:
    running = serve(SCRIPT, source=write_files(tmp_path / "files"))
    asked = running.answer("How many in Bon?")
    thread = asked["thread_id"]
    for language in LANGUAGES:
        found = running.history(thread, lang=language)
        assert found["run"]["warnings"] == found["runs"][0]["warnings"] == [LEFT_OUT[language]]
        assert noted(found["steps"]) == [LEFT_OUT[language], NEAREST[language]]
    assert running.history(thread) == running.history(thread, lang="en")
    assert said(read(running, asked["events"])) == said(read(running, asked["events"], lang="en"))
    token = running.client.post(f"/api/conversations/{thread}/shares", json={}).json()["token"]
    shared = running.client.get(f"/api/shared/{token}", params={"lang": "zh"}).json()
    assert noted(shared["steps"]) == [NEAREST["zh"]]  # what is left out may name files


def test_a_queued_question_is_watched_in_the_language_of_the_page(serve: Any, tmp_path: Path) -> None:
    running = serve([{"finish": "Hello."}, *SCRIPT], source=write_files(tmp_path / "files"))
    running.model.shut.set()
    first = running.ask("Hello")
    waits = running.ask("How many in Bon?", thread_id=first["thread_id"], when_busy="enqueue")
    with running.client.stream("GET", waits["events"], params={"lang": "zh"}) as answer:
        running.model.shut.clear()
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    assert NEAREST["zh"] in said([json.loads(line[6:]) for line in lines])[1]


def test_another_language_is_refused(serve: Any) -> None:
    running = serve([])
    for path in ("/api/events", "/api/chat/history"):
        answer = running.client.get(path, params={"thread_id": "t", "lang": "fr"})
        assert (answer.status_code, answer.json()["errors"][0]["at"]) == (422, "query.lang")


def test_a_text_that_nothing_says_stays_as_it_is() -> None:
    for text in ("Nobody says this.", "", "The model call failed: " * 100):
        assert [translate_text(text, language) for language in LANGUAGES] == [text, text]

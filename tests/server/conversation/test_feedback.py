"""What people think of answers: given, changed, taken back, listed, and asked again as an evaluation set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread_evals.gold_questions import read_questions

pytestmark = pytest.mark.one_backend

SQL = "SELECT 40 + 1 AS n"
SCRIPT = [{"action": "run_sql", "args": {"sql": SQL}}, {"finish": "There are **41** rockets [q1]."}]


def answered(running: Any, question: str, **more: Any) -> tuple[str, str]:
    """A conversation and the id of its last answer."""
    thread = running.answer(question, **more)["thread_id"]
    return thread, running.history(thread)["messages"][-1]["id"]


def judge(running: Any, thread: str, answer: str, **opinion: Any) -> int:
    path = f"/api/conversations/{thread}/messages/{answer}/feedback"
    return int(running.client.put(path, json=opinion).status_code)


def test_an_opinion_names_its_answer_and_what_the_model_saw(serve: Any) -> None:
    running = serve(SCRIPT)
    thread, answer = answered(running, "How many rockets?")
    before = running.history(thread)
    assert judge(running, thread, answer, opinion="down", text=" Boosters count, too. ") == 204
    [found] = running.client.get("/api/feedback").json()["feedback"]
    assert (found["opinion"], found["text"]) == ("down", "Boosters count, too.")
    assert (found["question"], found["sql"], found["message_id"]) == ("How many rockets?", SQL, answer)
    assert found["answer"] == "There are **41** rockets [q1]."
    call = running.client.get(f"/api/conversations/{thread}/calls/{found['call']}").json()
    shown = json.dumps(call, ensure_ascii=False)
    assert before["messages"][0]["id"] in shown, "the exact view of the call that answered"
    assert running.history(thread) == before, "no message, no activity, and nothing that others may set"
    assert judge(running, thread, answer, opinion="up") == 204
    [found] = running.client.get("/api/feedback", params={"thread_id": thread}).json()["feedback"]
    assert (found["opinion"], found["text"]) == ("up", "")
    path = f"/api/conversations/{thread}/messages/{answer}/feedback"
    assert [running.client.delete(path).status_code for _ in range(2)] == [204, 204]
    assert running.client.get("/api/feedback").json() == {"feedback": [], "next_cursor": None}


def test_what_is_no_opinion_of_an_answer_is_refused(serve: Any) -> None:
    running = serve(SCRIPT)
    thread, answer = answered(running, "How many rockets?")
    question = running.history(thread)["messages"][0]["id"]
    assert judge(running, thread, question, opinion="up") == 422
    assert judge(running, thread, "none", opinion="up") == 404
    assert judge(running, "none", answer, opinion="up") == 404
    assert judge(running, thread, answer, opinion="sideways") == 422
    assert judge(running, thread, answer, opinion="up", text="x" * 2_001) == 422
    assert running.client.get("/api/feedback", params={"thread_id": "none"}).status_code == 404
    assert running.client.get("/api/feedback", params={"cursor": "none"}).status_code == 404
    assert running.client.get("/api/feedback").json()["feedback"] == []


def test_a_link_to_a_conversation_shows_no_opinion(serve: Any) -> None:
    running = serve(SCRIPT)
    thread, answer = answered(running, "How many rockets?")
    judge(running, thread, answer, opinion="down", text="canary")
    made = running.client.post(f"/api/conversations/{thread}/shares", json={}).json()
    assert "canary" not in running.client.get(f"/api/shared/{made['token']}").text


def test_opinions_are_listed_by_pages(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = None
    for number in range(5):
        more = {"thread_id": thread} if number % 2 else {}
        thread, answer = answered(running, f"Question {number}?", **more)
        judge(running, thread, answer, opinion="up" if number % 2 else "down")
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = running.client.get("/api/feedback", params={"limit": 2, **cursor}).json()
        seen += [each["question"] for each in page["feedback"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [f"Question {number}?" for number in (4, 3, 2, 1, 0)]


def test_opinions_become_the_next_evaluation_set(
    serve: Any, store_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve(SCRIPT)
    thread, first = answered(running, "How many rockets?")
    _, then = answered(running, "那么现役的呢？", thread_id=thread)
    _, other = answered(running, "How many boosters?")
    judge(running, thread, first, opinion="down", text="No: 40.")
    judge(running, thread, then, opinion="up", text="对")
    lines = [json.loads(line) for line in running.client.get("/api/feedback/export").text.splitlines()]
    told = {"db": "demo", "sql": SQL, "thread_id": thread}
    assert lines == [
        told
        | {
            "question": "那么现役的呢？",
            "before": ["How many rockets?"],
            "verdict": "up",
            "comment": "对",
            "message_id": then,
        },
        told | {"question": "How many rockets?", "verdict": "down", "comment": "No: 40.", "message_id": first},
    ]
    running.stop()
    monkeypatch.setenv("LONGTHREAD_DATABASE", store_address)
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path / "data"))
    file = tmp_path / "set.jsonl"
    cli = CliRunner()
    made = cli.invoke(app, ["feedback", "--export", str(file)], catch_exceptions=False)
    assert "2 answers; 1 of them did not help" in made.stderr
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == lines
    good, wrong = read_questions(file)
    assert (good.text, good.gold, good.before) == ("那么现役的呢？", (SQL,), ("How many rockets?",))
    assert (wrong.lacks_gold, wrong.gold) == (True, ())
    down = cli.invoke(app, ["feedback", "--down"], catch_exceptions=False).stdout
    assert "- How many rockets?" in down and "“No: 40.”" in down and "现役" not in down
    viewed = down.split("longthread ")[1].split()
    seen = json.loads(cli.invoke(app, [*viewed, "--json"], catch_exceptions=False).stdout)
    assert seen["call"] == 2, "the second of its run's two calls"
    of_one = cli.invoke(app, ["feedback", thread, "--json"], catch_exceptions=False).stdout
    assert [json.loads(line)["opinion"] for line in of_one.splitlines()] == ["up", "down"]
    del other

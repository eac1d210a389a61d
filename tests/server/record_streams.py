"""Records streams of runs, with the history after them, for the tests of the page's reducer.

`pytest tests/server/record_streams.py` writes them. It is no test: nothing collects it by its name. Run it when the
encoding of events changes, and look at the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import CLERK, EDITOR, HELPER, define, played

RECORDED = Path(__file__).parents[2] / "web" / "src" / "stream" / "recorded"

LOOK = {"thought": "First, which tables there are.", "action": "list_tables"}
COUNT = {
    "thought": "Count.",
    "action": "run_sql",
    "args": {"sql": "SELECT count(*) AS n, 9007199254740993 AS big FROM rockets"},
}
WRONG = {"thought": "", "action": "run_sql", "args": {"sql": "SELECT nothing FROM nowhere"}}
ANSWER = {"finish": "There are **41** rockets [q1].\n\n- one\n- two\n\n| a | b |\n|---|--:|\n| x | 41 |"}
MAIL = {"thought": "", "action": "send_mail", "args": {"to": "ada"}}


@pytest.fixture
def backend() -> str:
    """One backend is enough: streams are the same on both."""
    return "sqlite"


def stream(running: Any, path: str) -> list[dict[str, Any]]:
    """The events of a stream, each with its `id`."""
    events = []
    place = None
    for line in running.client.get(path).text.splitlines():
        if line.startswith("id: "):
            place = line[4:]
        elif line.startswith("data: "):
            events.append({"id": place, "event": json.loads(line[6:])})
    return events


def keep(name: str, running: Any, asked: dict[str, Any]) -> None:
    events = stream(running, asked["events"])
    made = {"events": events, "history": running.history(asked["thread_id"])}
    RECORDED.mkdir(exist_ok=True)
    lines = [f'"{key}": {_lines(value)}' for key, value in made.items()]
    (RECORDED / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _lines(value: Any) -> str:
    """JSON with an event, or a part of the history, in each line."""
    if isinstance(value, list):
        return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n]"
    parts = [f"{json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items()]
    return "{\n" + ",\n".join(parts) + "\n}"


@pytest.mark.parametrize(
    ("name", "script", "options"),
    [
        ("finished", [LOOK, COUNT, WRONG, ANSWER], {}),
        ("paused", [LOOK, COUNT, "Only **looked** so far."], {"max_steps": 1}),
        ("failed", [LOOK, RuntimeError("no luck")], {}),
        ("unreadable", ["{not json", "{again", ANSWER], {"protocol": "json"}),
    ],
)
def test_record(serve: Any, name: str, script: list[Any], options: dict[str, Any]) -> None:
    running = serve(script, retry_attempts=0)
    keep(name, running, running.answer("How many rockets are there?", **options))


def test_record_continued(serve: Any) -> None:
    running = serve([LOOK, "Only looked.", COUNT, ANSWER])
    asked = running.answer("How many?", max_steps=1)
    answer = running.client.post(f"/api/conversations/{asked['thread_id']}/resume", json={"max_steps": 5}).json()
    running.client.get(answer["events"])
    keep("continued", running, answer)


def test_record_stopped(serve: Any) -> None:
    running = serve([LOOK, ANSWER])
    running.model.shut.set()
    asked = running.ask("How many?")
    running.client.post(f"/api/conversations/{asked['thread_id']}/stop")
    keep("stopped", running, asked)


def test_record_approved(serve: Any, store_address: str) -> None:
    define(store_address, *CLERK)
    running = serve([[MAIL, {**MAIL, "args": {"to": "eve"}}], {"finish": "**Sent** one."}])
    asked = running.answer("Write to both.", agent="clerk")
    keep("waiting", running, asked)
    path = f"/api/conversations/{asked['thread_id']}/approvals"
    first, second = running.client.get(path).json()["pending"]
    running.client.post(
        path,
        json={
            "decisions": {
                first["id"]: {"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": "bob"}}},
                second["id"]: {"type": "reject", "message": "Not eve."},
            }
        },
    )
    running.client.get(asked["events"])
    keep("approved", running, asked)


def test_record_asked(serve: Any, store_address: str) -> None:
    define(store_address, *CLERK, HELPER, EDITOR)
    running = serve(played)
    keep("agents", running, running.answer("Report.", agent="editor"))

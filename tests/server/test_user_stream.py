"""`GET /api/events`: a user's conversations, waiting approvals and several runs, over one connection."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from tests.script import call, finish
from tests.server.apps import define_clerk
from tests.server.test_chat import ANSWER, COUNT, LOOK, SCRIPT

from longthread.errors import InvalidInput
from longthread.server.routes.events import AskedRun, Positions
from longthread.server.stream import Position

pytestmark = pytest.mark.one_backend


class Frame(NamedTuple):
    id: str
    name: str
    data: dict[str, Any]


@contextmanager
def watched(running: Any, *runs: str, after: str = "", lang: str = "en") -> Iterator[Iterator[Frame]]:
    """The frames of a stream as they come, without the beats."""
    headers = {"Last-Event-ID": after} if after else {}
    with running.client.stream("GET", "/api/events", params={"run": runs, "lang": lang}, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _frames(answer.iter_lines())


def _frames(lines: Iterator[str]) -> Iterator[Frame]:
    found: dict[str, str] = {}
    for line in lines:
        if line:
            field, _, value = line.partition(": ")
            found[field] = value
        elif "data" in found:
            yield Frame(found["id"], found["event"], json.loads(found["data"]))
            found = {}
        else:
            found = {}


def until(frames: Iterator[Frame], name: str, **wanted: Any) -> list[Frame]:
    """The frames up to the first of a name, with these values."""
    seen: list[Frame] = []
    for frame in frames:
        seen.append(frame)
        data = frame.data.get("event", frame.data) if name == "run" else frame.data
        if frame.name == name and wanted.items() <= data.items():
            return seen
    pytest.fail(f"the stream ended after {seen}")


def told(frames: list[Frame], run_id: str) -> list[dict[str, Any]]:
    return [frame.data["event"] for frame in frames if frame.name == "run" and frame.data["run_id"] == run_id]


def own(running: Any, asked: dict[str, str]) -> list[dict[str, Any]]:
    """A run's events, from the stream of the run alone."""
    text = running.client.get(asked["events"]).text
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def run_of(asked: dict[str, str]) -> str:
    return f"{asked['thread_id']}/{asked['run_id']}"


def test_runs_and_the_list_come_over_one_connection(serve: Any) -> None:
    running = serve(lambda messages: ANSWER)
    running.model.shut.set()
    first, second = (running.ask(f"How many {each}?") for each in ("rockets", "launches"))
    with watched(running, run_of(first), run_of(second)) as frames:
        seen = until(frames, "conversations")
        assert [each["label"] for each in seen[-1].data["conversations"]] == ["How many launches?", "How many rockets?"]
        assert [each["status"] for each in seen[-1].data["conversations"]] == ["running"] * 2
        seen += until(frames, "approvals")
        assert seen[-1].data == {"waiting": []}
        running.model.shut.clear()
        finished: set[str] = set()
        while finished < {first["thread_id"], second["thread_id"]}:
            seen += until(frames, "conversation", status="finished")
            finished.add(seen[-1].data["id"])
        running.client.patch(f"/api/conversations/{first['thread_id']}", json={"label": "Rockets"})
        seen += until(frames, "conversation", label="Rockets")
        archived = f"/api/conversations/{second['thread_id']}"
        running.client.patch(archived, json={"archived": True})
        seen += until(frames, "archived", id=second["thread_id"])
        running.client.patch(archived, json={"archived": False})
        seen += until(frames, "conversation", id=second["thread_id"], archived_at=None)
        running.client.delete(f"/api/conversations/{first['thread_id']}?undo_seconds=3600")
        seen += until(frames, "deleted", id=first["thread_id"])
    assert told(seen, second["run_id"]) == own(running, second)
    assert told(seen, first["run_id"])[-1]["type"] == "RUN_FINISHED"


def test_a_client_that_comes_back_misses_nothing_and_gets_nothing_twice(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = [running.answer(f"How many {n}?") for n in range(2)]
    runs = [run_of(each) for each in asked]
    with watched(running, *runs) as frames:
        whole = _to_the_ends(frames, {"approvals", *(each["run_id"] for each in asked)})
    for each in asked:
        assert told(whole, each["run_id"]) == own(running, each)
    for place in range(1, len(whole)):
        open_ = {each["run_id"] for each in asked} - {_ended(frame) for frame in whole[:place]}
        with watched(running, *runs, after=whole[place - 1].id) as frames:
            rest = _to_the_ends(frames, open_)
        for each in asked:
            assert told(whole[:place] + rest, each["run_id"]) == told(whole, each["run_id"])


def _to_the_ends(frames: Iterator[Frame], open_: set[str]) -> list[Frame]:
    """The frames up to the ends of these runs, and to the first of these names."""
    seen: list[Frame] = []
    while open_:
        seen.append(next(frames))
        open_ = open_ - {seen[-1].name, _ended(seen[-1])}
    return seen


def _ended(frame: Frame) -> str:
    """The run that a frame ends, or nothing."""
    return frame.data["run_id"] if frame.name == "run" and frame.data["event"]["type"] == "RUN_FINISHED" else ""


def test_calls_that_wait_are_told_to_all_that_watch(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve([call("send_mail", to="ada"), finish("Sent.")])
    with watched(running) as frames:
        until(frames, "approvals", waiting=[])
        asked = running.ask("Write to Ada.", agent="clerk")
        [waiting] = until(frames, "approvals")[-1].data["waiting"]
        assert (waiting["thread_id"], waiting["run_id"]) == (asked["thread_id"], asked["run_id"])
        [mail] = waiting["calls"]
        assert (mail["tool"], mail["args"]) == ("send_mail", {"to": "ada"})
        path = f"/api/conversations/{asked['thread_id']}/approvals"
        running.client.post(path, json={"decisions": {mail["id"]: {"type": "reject"}}})
        assert until(frames, "approvals")[-1].data == {"waiting": []}


def test_a_run_that_is_not_there_is_gone_and_the_others_come(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("How many?")
    with watched(running, "none/r1", run_of(asked), f"{asked['thread_id']}/r2") as frames:
        seen = until(frames, "run", type="RUN_FINISHED")
        while len([each for each in seen if each.name == "gone"]) < 2:
            seen.append(next(frames))
    assert sorted((each.data["thread_id"], each.data["run_id"]) for each in seen if each.name == "gone") == sorted(
        [("none", "r1"), (asked["thread_id"], "r2")]
    )


def test_a_run_is_read_on_from_a_position(serve: Any) -> None:
    running = serve([LOOK, COUNT, ANSWER])
    asked = running.answer("How many?")
    with watched(running, f"{run_of(asked)}:2") as frames:
        seen = until(frames, "run", type="RUN_FINISHED")
    whole = own(running, asked)
    rest = told(seen, asked["run_id"])
    assert 0 < len(rest) < len(whole)
    assert rest == whole[-len(rest) :]


def test_an_id_of_another_stream_is_refused(serve: Any) -> None:
    running = serve(SCRIPT)
    for after in ("x", "1", "abc.1", "abc.1,x", ",1,2"):
        for given in ({"headers": {"Last-Event-ID": after}}, {"params": {"after": after, "run": "t/r"}}):
            answer = running.client.get("/api/events", **({"params": {"run": "t/r"}} | given))
            # The second part of one is no position at all.
            expected = (422, "invalid_input") if after == "abc.1,x" else (404, "position_unknown")
            assert (answer.status_code, answer.json()["code"]) == expected


@pytest.mark.one_backend
def test_runs_and_positions_are_read_as_they_are_written() -> None:
    asked = AskedRun.parse("a/b:c/r1:6.2")
    assert asked == AskedRun(("a/b:c", "r1"), Position(6, 2))
    assert AskedRun.parse("t/r") == AskedRun(("t", "r"), Position())
    for bad in ("", "t", "t/", "/r", "t/r:x", "t/r:1:2"):
        with pytest.raises(InvalidInput):
            AskedRun.parse(bad)
    for text in ("k3v9a0x1.12,6.2", ",7"):
        assert str(Positions.parse(text, [asked])) == text
    assert str(Positions.parse(None, [asked])) == ",6.2"

"""Questions that wait: for the run of their conversation, for a person's decision, or for room."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.server.apps import define_clerk
from tests.server.test_chat import frames, until, watching

ANSWERS: list[Any] = [{"finish": f"Answer {n}."} for n in range(1, 6)]
WRITE = {"action": "send_mail", "args": {"to": "ada"}}


def gated(serve: Any, script: Any = ANSWERS, **settings: Any) -> Any:
    """A server whose model waits before it says anything."""
    running = serve(script, **settings)
    running.model.shut.set()
    return running


def put(running: Any, question: str, thread_id: str, when_busy: str = "enqueue", **headers: str) -> dict[str, Any]:
    """Asks in a busy conversation: the question is queued."""
    body = {"question": question, "thread_id": thread_id, "when_busy": when_busy}
    answer = running.client.post("/api/chat", json=body, headers=headers)
    assert answer.status_code == 202, answer.text
    queued: dict[str, Any] = answer.json()
    assert "queued_id" in queued, queued
    return queued


def refused(running: Any, **body: Any) -> tuple[int, str]:
    answer = running.client.post("/api/chat", json=body)
    return answer.status_code, answer.json()["code"]


def queue(running: Any, thread_id: str) -> list[str]:
    """The questions that wait."""
    found = running.client.get(f"/api/conversations/{thread_id}/queue").json()["queue"]
    assert [each["position"] for each in found] == list(range(1, len(found) + 1))
    assert running.history(thread_id)["queue"] == found
    return [each["question"] for each in found]


def said(running: Any, thread_id: str) -> list[str]:
    return [each["content"] for each in running.history(thread_id)["messages"]]


def state(running: Any, queued: dict[str, Any]) -> dict[str, Any]:
    path = queued["events"].removesuffix("/events")
    found: dict[str, Any] = running.client.get(path).json()
    assert found["queued_id"] == queued["queued_id"]
    return found


@contextmanager
def reading(running: Any, path: str) -> Iterator[Callable[[], list[Any]]]:
    """Reads a stream in a thread, from now on; call it for all events when the stream has ended."""
    events: list[Any] = []
    opened = threading.Event()

    def read() -> None:
        with watching(running, path) as lines:
            for line in lines:
                opened.set()
                if line.startswith("data: "):
                    events.append(json.loads(line[6:]))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert opened.wait(20)

    def all_of() -> list[Any]:
        reader.join(30)
        assert not reader.is_alive(), "the stream did not end"
        return events

    yield all_of


def finished(running: Any, queued: dict[str, Any]) -> dict[str, Any]:
    """The last event of a question that is queued, or was."""
    return frames(running.client.get(queued["events"]).text)[-1][1]


def test_questions_wait_for_the_run_and_are_answered_in_order(serve: Any) -> None:
    running = gated(serve)
    asked = running.ask("One?")
    thread = asked["thread_id"]
    second, third = put(running, "Two?", thread), put(running, "Three?", thread)
    assert (second["position"], third["position"]) == (1, 2)
    assert queue(running, thread) == ["Two?", "Three?"]
    assert state(running, third) == {**third, "position": 2, "run_id": None}
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    assert listed["queued"] == 2
    assert said(running, thread) == ["One?"]
    with reading(running, second["events"]) as events:
        running.model.shut.clear()
        told = events()
    assert [told[0]["type"], told[-1]["type"]] == ["RUN_STARTED", "RUN_FINISHED"]
    assert told[-1]["result"]["answer"] == "Answer 2."
    assert finished(running, third)["result"]["answer"] == "Answer 3."
    assert said(running, thread) == ["One?", "Answer 1.", "Two?", "Answer 2.", "Three?", "Answer 3."]
    assert queue(running, thread) == []


def test_a_queued_questions_stream_goes_on_where_it_was_cut_also_when_its_run_has_begun(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    second = put(running, "Two?", thread)
    running.model.shut.clear()
    whole = frames(running.client.get(second["events"]).text)
    run = state(running, second)
    assert run["position"] is None
    again = frames(running.client.get(f"/api/conversations/{thread}/runs/{run['run_id']}/events").text)
    assert again == whole, "the events of the run, with their ids"
    rest = running.client.get(second["events"], headers={"Last-Event-ID": whole[1][0]})
    assert frames(rest.text) == whole[2:]
    assert running.client.get(second["events"], params={"after": whole[-1][0]}).status_code == 204


def test_an_interrupting_question_stops_the_run_and_is_the_next(serve: Any) -> None:
    running = gated(serve)
    asked = running.ask("One?")
    thread = asked["thread_id"]
    second = put(running, "Two?", thread)
    third = put(running, "Three?", thread, "interrupt")
    assert third["position"] == 1
    assert frames(running.client.get(asked["events"]).text)[-1][1]["outcome"]["type"] == "cancelled"
    running.model.shut.clear()
    finished(running, third)
    finished(running, second)
    assert [each for each in said(running, thread) if each.endswith("?")] == ["One?", "Three?", "Two?"]
    assert [run["status"] for run in running.history(thread)["runs"]] == ["paused", "finished", "finished"]


@pytest.mark.one_backend
def test_an_urgent_question_begins_at_once_where_nothing_is_under_way(serve: Any) -> None:
    running = serve(ANSWERS)
    thread = running.answer("One?")["thread_id"]
    for n, when in enumerate(("interrupt", "rollback", "enqueue"), 2):
        assert "run_id" in running.answer(f"{n}?", thread_id=thread, when_busy=when)
    assert len(said(running, thread)) == 8


def test_a_rolled_back_run_is_another_branch(serve: Any) -> None:
    running = serve([{"finish": "First."}, {"finish": "Replaced."}, {"finish": "Then."}])
    thread = running.answer("One?")["thread_id"]
    running.model.shut.set()
    left = running.ask("Two?", thread_id=thread)
    queued = put(running, "Two, but better?", thread, "rollback")
    waits = put(running, "Three?", thread)
    running.model.shut.clear()
    finished(running, queued)
    finished(running, waits)
    assert said(running, thread) == ["One?", "First.", "Two, but better?", "Replaced.", "Three?", "Then."]
    told = frames(running.client.get(left["events"]).text)
    assert told[0][1]["metadata"]["longthread"]["question"] == "Two?", "nothing is lost"
    [call] = [call for call in running.model.calls if "Two, but better?" in str(call.messages[-1].content)][:1]
    assert "Two?" not in [str(message.content) for message in call.messages]


@pytest.mark.one_backend
def test_the_first_question_of_a_conversation_is_rolled_back(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    better = put(running, "One, better?", thread, "rollback")
    running.model.shut.clear()
    finished(running, better)
    assert said(running, thread)[0] == "One, better?"
    assert len(said(running, thread)) == 2


@pytest.mark.one_backend
def test_who_rejects_is_refused_while_a_run_is_under_way_or_questions_wait(serve: Any) -> None:
    running = gated(serve, max_runs=1)
    thread = running.ask("One?")["thread_id"]
    assert refused(running, question="Two?", thread_id=thread) == (409, "run_in_progress")
    other = running.ask("Over the limit?")  # as reject, too: a limit only delays
    assert refused(running, question="And?", thread_id=other["thread_id"]) == (409, "questions_wait")
    running.model.shut.clear()
    assert finished(running, other)["type"] == "RUN_FINISHED"


@pytest.mark.one_backend
def test_a_removed_question_is_never_asked(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    key = {"Idempotency-Key": "of the second"}
    second = put(running, "Two?", thread, **key)
    third = put(running, "Three?", thread)
    path = second["events"].removesuffix("/events")
    with reading(running, second["events"]) as events:
        assert running.client.delete(path).status_code == 204
        [told] = events()
    assert told == {
        "type": "CUSTOM",
        "name": "longthread.question_removed",
        "value": {"queued_id": second["queued_id"]},
    }
    for method, at in (("DELETE", path), ("GET", path), ("GET", second["events"])):
        answer = running.client.request(method, at)
        assert (answer.status_code, answer.json()["code"]) == (404, "question_not_found")
    body = {"question": "Two?", "thread_id": thread, "when_busy": "enqueue"}
    again = running.client.post("/api/chat", json=body, headers=key)
    assert (again.status_code, again.json()["code"]) == (404, "question_not_found"), "its client does not bring it back"
    assert queue(running, thread) == ["Three?"]
    running.model.shut.clear()
    finished(running, third)


@pytest.mark.one_backend
def test_a_queued_question_is_asked_once_under_its_key(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    key = {"Idempotency-Key": "k"}
    queued = put(running, "Two?", thread, **key)
    assert put(running, "Two?", thread, **key) == queued
    running.model.shut.clear()
    finished(running, queued)
    body = {"question": "Two?", "thread_id": thread, "when_busy": "enqueue"}
    asked = running.client.post("/api/chat", json=body, headers=key).json()
    assert asked["run_id"] == state(running, queued)["run_id"]
    assert said(running, thread).count("Two?") == 1


def test_the_same_request_many_times_at_once_is_one_question_also_of_a_queue_with_room_for_one(serve: Any) -> None:
    running = gated(serve, max_queued=1)
    thread = running.ask("One?")["thread_id"]
    answers: list[Any] = []

    def ask() -> None:
        answers.append(put(running, "Two?", thread, **{"Idempotency-Key": "k"}))

    asking = [threading.Thread(target=ask) for _ in range(6)]
    for each in asking:
        each.start()
    for each in asking:
        each.join(30)
    assert len(answers) == 6
    assert len({each["queued_id"] for each in answers}) == 1
    running.model.shut.clear()
    finished(running, answers[0])


@pytest.mark.one_backend
def test_an_answer_is_no_queued_question(serve: Any) -> None:
    running = serve(ANSWERS)
    thread = running.answer("One?")["thread_id"]
    answer = running.history(thread)["messages"][-1]
    found = running.client.get(f"/api/conversations/{thread}/queue/{answer['id']}")
    assert (found.status_code, found.json()["code"]) == (404, "question_not_found")


@pytest.mark.one_backend
def test_a_queue_has_an_end(serve: Any) -> None:
    running = gated(serve, max_queued=1)
    thread = running.ask("One?")["thread_id"]
    queued = put(running, "Two?", thread)
    assert refused(running, question="Three?", thread_id=thread, when_busy="enqueue") == (429, "queue_full")
    running.model.shut.clear()
    finished(running, queued)


@pytest.mark.parametrize("limit", ["max_runs", "max_runs_per_user"])
def test_a_limit_only_delays(serve: Any, limit: str) -> None:
    running = gated(serve, **{limit: 2})
    asked = [running.ask(f"Question {n}?") for n in range(5)]
    assert ["run_id" in each for each in asked] == [True, True, False, False, False]
    statuses = [each["status"] for each in running.client.get("/api/conversations").json()["conversations"]]
    assert sorted(str(each) for each in statuses) == ["None"] * 3 + ["running"] * 2
    running.model.shut.clear()
    for each in asked:
        assert finished(running, each)["type"] == "RUN_FINISHED"
    assert "longthread_queued_questions 0" in running.client.get("/metrics").text


def test_a_burst_begins_no_more_than_a_user_may(serve: Any) -> None:
    running = gated(serve, max_runs_per_user=2)
    answers: list[Any] = []
    asking = [threading.Thread(target=lambda n=n: answers.append(running.ask(f"{n}?"))) for n in range(8)]
    for each in asking:
        each.start()
    for each in asking:
        each.join(30)
    assert sum("run_id" in each for each in answers) == 2
    running.model.shut.clear()
    for each in answers:
        assert finished(running, each)["type"] == "RUN_FINISHED"


@pytest.mark.one_backend
def test_a_stop_ends_the_run_and_the_queue_goes_on(serve: Any) -> None:
    running = gated(serve)
    asked = running.ask("One?")
    thread, run_id = asked["thread_id"], asked["run_id"]
    queued = put(running, "Two?", thread)
    stop = f"/api/conversations/{thread}/stop?run_id={run_id}"
    assert running.client.post(stop).status_code == 200
    with watching(running, queued["events"]) as lines:
        until(lines, "RUN_STARTED")
    again = running.client.post(stop)
    assert (again.status_code, again.json()["run"]["status"]) == (200, "running"), "sent twice, it stops one run"
    running.model.shut.clear()
    assert finished(running, queued)["type"] == "RUN_FINISHED"
    assert [run["status"] for run in running.history(thread)["runs"]] == ["paused", "finished"]


def test_questions_wait_for_a_decision_but_who_sees_the_call_may_say_something_else(
    serve: Any, store_address: str
) -> None:
    define_clerk(store_address)
    running = gated(serve, [WRITE, {"finish": "Sent."}, {"finish": "Well."}, WRITE, {"finish": "As you like."}])
    asked = running.ask("Write!", agent="clerk")
    thread = asked["thread_id"]
    queued = put(running, "And then?", thread)
    running.model.shut.clear()
    calls = frames(running.client.get(asked["events"]).text)[-1][1]["result"]["calls"]
    third = put(running, "Something else?", thread)
    assert queue(running, thread) == ["And then?", "Something else?"], "nobody who asked has seen the call"
    decisions = {"decisions": {call["id"]: {"type": "approve"} for call in calls}}
    assert running.client.post(f"/api/conversations/{thread}/approvals", json=decisions).status_code == 202
    assert finished(running, queued)["type"] == "RUN_FINISHED"
    finished(running, third)
    assert running.history(thread)["run"]["status"] == "waiting", "the third one writes"
    assert "run_id" in running.answer("No!", thread_id=thread, when_busy="enqueue")
    assert said(running, thread)[-1] == "As you like."


@pytest.mark.one_backend
def test_a_queue_is_told_of_and_goes_with_its_conversation(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    with watching(running, "/api/events") as lines:
        next(line for line in lines if line.startswith("event: approvals"))
        queued = put(running, "Two?", thread)
        assert any('"queued":1' in line for line in lines)
    with reading(running, queued["events"]) as events:
        assert running.client.delete(f"/api/conversations/{thread}").status_code == 204
        assert events()[-1]["name"] == "longthread.question_removed"
    assert running.client.get(queued["events"]).json()["code"] == "thread_not_found"


def test_a_queue_survives_its_server(serve: Any) -> None:
    running = gated(serve)
    thread = running.ask("One?")["thread_id"]
    queued = put(running, "Two?", thread)
    running.stop()
    after = serve(ANSWERS)
    assert finished(after, queued)["result"]["answer"] == "Answer 1."
    assert said(after, thread)[-2:] == ["Two?", "Answer 1."]


def test_a_question_through_one_server_waits_for_the_run_of_another_and_begins_once(serve: Any) -> None:
    first, second = gated(serve), gated(serve)
    thread = first.ask("One?")["thread_id"]
    queued = [put(second, f"Next {n}?", thread) for n in range(3)]
    urgent = put(second, "At once?", thread, "interrupt")
    with watching(second, urgent["events"]) as lines:
        first.model.shut.clear()
        second.model.shut.clear()
        until(lines, "RUN_FINISHED")
    for each in queued:
        assert finished(first, each)["type"] == "RUN_FINISHED"
    questions = [each for each in said(second, thread) if each.endswith("?")]
    assert questions == ["One?", "At once?", "Next 0?", "Next 1?", "Next 2?"]
    assert len(first.model.calls) + len(second.model.calls) <= 5


def test_a_question_whose_source_is_gone_fails_and_the_queue_goes_on(serve: Any, tmp_path: Any) -> None:
    shop = tmp_path / "shop.csv"
    shop.write_text("a,b\n1,2\n")
    running = gated(serve, max_runs=1)
    running.ask("One?")
    body = {"question": "Two?", "source": str(shop), "when_busy": "enqueue"}
    gone = running.client.post("/api/chat", json=body).json()
    behind = put(running, "Three?", gone["thread_id"])
    shop.unlink()
    running.model.shut.clear()
    assert finished(running, gone)["type"] == "RUN_ERROR"
    assert finished(running, behind)["type"] == "RUN_ERROR", "it asks the same source"

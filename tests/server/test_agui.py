"""AG-UI's endpoint, over a real socket."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from tests.server.apps import define_clerk
from tests.server.test_chat import ANSWER, COUNT, LOOK, frames

pytestmark = pytest.mark.one_backend

MAIL = [[{"thought": "", "action": "send_mail", "args": {"to": "ada"}}], {"finish": "Ada was told."}]


def user(text: str, id_: str) -> dict[str, Any]:
    return {"id": id_, "role": "user", "content": text}


def assistant(text: str, id_: str) -> dict[str, Any]:
    return {"id": id_, "role": "assistant", "content": text}


def run(running: Any, run_id: str, messages: list[Any], *, agent: str = "analyst", **more: Any) -> list[dict[str, Any]]:
    """The events of a request."""
    body = {"threadId": "t", "runId": run_id, "messages": messages, **more}
    answer = running.client.post(f"/ag-ui/{agent}", json=body)
    assert answer.status_code == 200, answer.text
    return [event for _, event in frames(answer.text)]


def applied(events: list[dict[str, Any]]) -> dict[str, str]:
    """The assistant's texts as a client has them at the end, by id."""
    texts: dict[str, str] = {}
    for event in events:
        match event["type"]:
            case "TEXT_MESSAGE_START":
                texts[event["messageId"]] = ""
            case "TEXT_MESSAGE_CONTENT":
                texts[event["messageId"]] += event["delta"]
            case "MESSAGES_SNAPSHOT":
                theirs = [each for each in event["messages"] if each["role"] == "assistant"]
                texts = {each["id"]: each["content"] for each in theirs if each.get("content")}
    return texts


def said(events: list[dict[str, Any]]) -> str:
    """The assistant's last text."""
    return list(applied(events).values())[-1]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def shown(running: Any, thread: str = "t") -> list[tuple[str, str]]:
    """The active branch, as the page shows it."""
    return [(each["role"], each["content"]) for each in running.history(thread)["messages"]]


def view(running: Any, call: int) -> list[str]:
    """The texts of the user's and the assistant's messages that a model call saw, without the system prompt."""
    return [str(message.text) for message in running.model.calls[call].messages if message.type in {"human", "ai"}]


def test_a_run_is_told_under_the_clients_ids(serve: Any) -> None:
    running = serve([LOOK, COUNT, ANSWER])
    events = run(running, "r1", [user("How many?", "u1")])
    assert (events[0]["type"], events[0]["runId"], events[0]["protocolVersion"]) == ("RUN_STARTED", "r1", "1.0")
    assert (events[-1]["type"], events[-1]["runId"]) == ("RUN_FINISHED", "r1")
    assert events[-1]["outcome"]["type"] == "success"
    assert said(events) == ANSWER["finish"]
    assert {event["threadId"] for event in events if "threadId" in event} == {"t"}


def test_the_same_run_is_watched_again_and_never_runs_twice(serve: Any) -> None:
    running = serve([LOOK, ANSWER])
    first = run(running, "r1", [user("How many?", "u1")])
    for messages in ([user("How many?", "u1")], []):
        again = run(running, "r1", messages)
        assert kinds(again)[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
        assert again[1]["messages"][0]["id"] == "u1"
        # What was thought is among the messages.
        rest = [event for event in first[1:] if not event["type"].startswith("REASONING")]
        assert again[2:] == rest
    assert len(running.model.calls) == 2
    assert shown(running) == [("user", "How many?"), ("assistant", ANSWER["finish"])]


def test_a_client_that_comes_back_in_the_middle_sees_the_rest_as_it_happens(serve: Any) -> None:
    running = serve([LOOK, ANSWER])
    running.model.shut.set()
    body = {"threadId": "t", "runId": "r1", "messages": [user("How many?", "u1")]}
    with running.client.stream("POST", "/ag-ui/analyst", json=body) as answer:
        assert "RUN_STARTED" in next(answer.iter_lines())
    with running.client.stream("POST", "/ag-ui/analyst", json={**body, "messages": []}) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert "RUN_STARTED" in next(lines)
        assert '"MESSAGES_SNAPSHOT"' in next(lines)
        running.model.shut.clear()
        assert any('"RUN_FINISHED"' in line for line in lines)
    assert len(running.model.calls) == 2


def test_the_same_run_sent_twice_at_once_runs_once(serve: Any) -> None:
    running = serve([LOOK, ANSWER])
    running.model.shut.set()
    body = {"threadId": "t", "runId": "r1", "messages": [user("How many?", "u1")]}
    answers: list[httpx.Response] = []

    def post() -> None:
        answers.append(httpx.post(f"{running.url}/ag-ui/analyst", json=body, timeout=30))

    both = [threading.Thread(target=post) for _ in range(2)]
    for each in both:
        each.start()
    running.model.shut.clear()
    for each in both:
        each.join()
    told = [[event for _, event in frames(answer.text)] for answer in answers]
    assert [(answer.status_code, said(events)) for answer, events in zip(answers, told, strict=True)] == [
        (200, ANSWER["finish"])
    ] * 2
    assert shown(running) == [("user", "How many?"), ("assistant", ANSWER["finish"])]


def test_a_conversation_goes_on_and_equal_messages_are_ours(serve: Any) -> None:
    running = serve([{"finish": "One. "}, {"finish": "Two."}])
    told = [user("First?", "u1"), assistant("One.", "theirs"), user("Second?", "u2")]
    run(running, "r1", told[:1])
    run(running, "r2", told)
    assert shown(running) == [("user", "First?"), ("assistant", "One."), ("user", "Second?"), ("assistant", "Two.")]
    snapshot = run(running, "r2", [])[1]
    assert [each["id"] for each in snapshot["messages"]][::2] == ["u1", "u2"]
    assert [each["content"] for each in snapshot["messages"]] == ["First?", "One.", "Second?"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([user("Second?", "u9")], ["Second?"], id="cut at the beginning"),
        pytest.param(
            [user("First?", "u1"), assistant("1", "a"), user("Second?", "u2")], ["First?", "1", "Second?"], id="changed"
        ),
        pytest.param([user("First?", "u1"), user("Other?", "u3")], ["First?", "Other?"], id="without the answer"),
        pytest.param([user("First?", "u1")], ["First?"], id="asked again"),
    ],
)
def test_what_a_client_changed_or_cut_is_a_branch(serve: Any, told: list[Any], expected: list[str]) -> None:
    running = serve([{"finish": "One."}, {"finish": "New."}])
    run(running, "r1", [user("First?", "u1")])
    before = running.history("t")["messages"]
    run(running, "r2", told)
    assert [text for _, text in shown(running)] == [*expected, "New."]
    assert view(running, -1)[-len(expected) :] == expected
    log = running.client.get("/api/conversations").json()["conversations"][0]
    assert log["message_count"] >= len(before) + 2, "the entries of the branch that was left stay"


def test_an_approval_is_an_interrupt_and_resume_decides_it(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(MAIL)
    first = run(running, "r1", [user("Write to Ada.", "u1")], agent="clerk")
    assert first[-1]["outcome"]["type"] == "interrupt"
    [interrupt] = first[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"type": "approve"}}]
    partial = running.client.post(
        "/ag-ui/clerk",
        json={"threadId": "t", "runId": "r2", "messages": [], "resume": [{**resume[0], "interruptId": "other"}]},
    )
    assert (partial.status_code, partial.json()["code"]) == (409, "run_waiting")
    second = run(running, "r2", [user("Write to Ada.", "u1")], agent="clerk", resume=resume)
    assert (second[0]["type"], second[0]["runId"]) == ("RUN_STARTED", "r2")
    assert (second[-1]["type"], second[-1]["runId"], said(second)) == ("RUN_FINISHED", "r2", "Ada was told.")
    [result] = [event for event in second if event["type"] == "TOOL_CALL_RESULT"]
    assert result["toolCallId"] == interrupt["toolCallId"]
    for run_id, ended in (("r1", "interrupt"), ("r2", "success")):
        again = run(running, run_id, [], agent="clerk", resume=resume)
        assert kinds(again)[:2] == ["RUN_STARTED", "MESSAGES_SNAPSHOT"]
        assert {event["runId"] for event in again if "runId" in event} == {run_id}
        assert kinds(again).count("RUN_STARTED") == kinds(again).count("RUN_FINISHED") == 1
        assert (again[-1]["type"], again[-1]["outcome"]["type"]) == ("RUN_FINISHED", ended)
    assert len(running.model.calls) == 2


def test_a_rejected_call_is_not_made(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve([MAIL[0], {"finish": "Not told."}])
    first = run(running, "r1", [user("Write to Ada.", "u1")], agent="clerk")
    [interrupt] = first[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "cancelled"}]
    second = run(running, "r2", [user("Write to Ada.", "u1")], agent="clerk", resume=resume)
    [decided] = [event["value"]["calls"] for event in second if event.get("name") == "longthread.decided"]
    assert [call["decision"] for call in decided] == ["reject"]
    [result] = [event for event in second if event["type"] == "TOOL_CALL_RESULT"]
    assert '"rejected"' in result["content"]
    assert said(second) == "Not told."


def test_a_run_out_of_steps_is_continued_and_the_client_need_not_show_that(serve: Any) -> None:
    running = serve([LOOK, ANSWER, {"finish": "Thanks."}])
    first = run(running, "r1", [user("How many?", "u1")], forwardedProps={"max_steps": 1, "theme": "dark"})
    [interrupt] = first[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved"}]
    second = run(running, "r2", [user("How many?", "u1")], resume=resume)
    assert (second[0]["runId"], said(second)) == ("r2", ANSWER["finish"])
    told = [user("How many?", "u1"), assistant(said(first), "s"), assistant(said(second), "a"), user("Good.", "u2")]
    run(running, "r3", told)
    assert [text for _, text in shown(running)][-3:] == [ANSWER["finish"], "Good.", "Thanks."]
    assert run(running, "r2", [])[-1]["outcome"]["type"] == "success"


def test_a_text_that_was_withdrawn_is_not_among_the_messages_at_the_end(serve: Any) -> None:
    running = serve([LOOK, ANSWER])
    events = run(running, "r1", [user("How many?", "u1")])
    assert kinds(events).count("TEXT_MESSAGE_START") == 2, "the thought is a text at first"
    assert kinds(events)[-2:] == ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert list(applied(events).values()) == [ANSWER["finish"]]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"messages": []}, 409, "nothing_asked"),
        ({"messages": [assistant("One.", "a")]}, 409, "nothing_asked"),
        ({"messages": [user(" ", "u")]}, 409, "nothing_asked"),
        ({"messages": [user("?", "u")], "tools": [{"name": "x", "description": ""}]}, 409, "not_supported"),
        (
            {"messages": [{"id": "u", "role": "user", "content": [{"type": "image", "source": {}}]}]},
            422,
            "invalid_input",
        ),
        ({"messages": [user("?", "u")], "forwardedProps": {"max_steps": 0}}, 422, "invalid_input"),
        (
            {"messages": [], "resume": [{"interruptId": "x", "status": "resolved"}]},
            404,
            "thread_not_found",
        ),
        ({"messages": [user("?", "u")], "runId": ""}, 422, "invalid_input"),
        ({}, 422, "invalid_input"),
    ],
)
def test_a_wrong_input_is_a_problem(serve: Any, body: dict[str, Any], status: int, code: str) -> None:
    running = serve(["Never asked."])
    running.warm()
    answer = running.client.post("/ag-ui/analyst", json={"threadId": "t", "runId": "r", **body})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert running.client.get("/api/conversations").json()["conversations"] == []

"""Runs over a real socket: asked, watched, cut off, stopped, gone on with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from tests.server.apps import orphaned

from longthread.server import stream

pytestmark = pytest.mark.one_backend

LOOK = {"thought": "Look.", "action": "list_tables"}
COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets"}}
ANSWER = {"finish": "There are **41** rockets [q1]."}
SCRIPT = [LOOK, COUNT, ANSWER]


def frames(text: str) -> list[tuple[str, dict[str, Any]]]:
    """The events of a stream's text, each with its id."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if "data" in fields:
            found.append((fields.get("id", ""), json.loads(fields["data"])))
    return found


@contextmanager
def watching(running: Any, path: str, last: str | None = None) -> Iterator[Iterator[str]]:
    """An open stream, line by line."""
    headers = {"Last-Event-ID": last} if last else {}
    with running.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer.iter_lines()


def until(lines: Iterator[str], kind: str) -> list[str]:
    """The ids of the frames up to the first of a kind."""
    ids = []
    for line in lines:
        if line.startswith("id: "):
            ids.append(line[4:])
        if f'"type":"{kind}"' in line:
            return ids
    raise AssertionError(f"no {kind} came")


def test_a_question_is_answered_over_a_stream(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.ask("How many rockets are there?")
    told = frames(running.client.get(asked["events"]).text)
    assert told[0][1]["type"] == "RUN_STARTED"
    assert told[0][1]["threadId"] == asked["thread_id"]
    assert told[-1][1]["type"] == "RUN_FINISHED"
    assert told[-1][1]["result"]["answer"] == "There are **41** rockets [q1]."
    assert [each["toolCallName"] for _, each in told if each["type"] == "TOOL_CALL_START"] == ["list_tables", "run_sql"]


def test_a_question_is_asked_once_under_its_key(serve: Any) -> None:
    running = serve([{"finish": "41."}, {"finish": "Never said."}])
    question, key = {"question": "How many rockets are there?"}, {"Idempotency-Key": "a-key-of-one-question"}
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: running.client.post("/api/chat", json=question, headers=key), range(4)))
    asked = answers[0].json()
    assert [(answer.status_code, answer.json()) for answer in answers] == [(202, asked)] * 4
    assert frames(running.client.get(asked["events"]).text)[-1][1]["result"]["answer"] == "41."
    assert running.client.post("/api/chat", json=question, headers=key).json() == asked  # also when it has ended
    assert [each["id"] for each in running.client.get("/api/conversations").json()["conversations"]] == [
        asked["thread_id"]
    ]


def test_a_key_is_not_taken_for_another_question(serve: Any) -> None:
    running = serve([{"finish": "41."}, {"finish": "Again."}])
    key = {"Idempotency-Key": "a key"}
    asked = running.client.post("/api/chat", json={"question": "How many?"}, headers=key).json()
    running.client.get(asked["events"])
    refused = running.client.post("/api/chat", json={"question": "How many more?"}, headers=key)
    assert (refused.status_code, refused.json()["code"]) == (409, "key_reused")
    assert running.client.delete(f"/api/conversations/{asked['thread_id']}").is_success
    again = running.client.post("/api/chat", json={"question": "How many more?"}, headers=key)  # gone with its thread
    assert again.status_code == 202
    assert again.json()["thread_id"] != asked["thread_id"]


def test_an_agent_of_the_catalog_is_asked(serve: Any) -> None:
    running = serve([{"finish": "Hello."}, {"finish": "Hello again."}])
    asked = running.answer("Hello", agent="assistant")
    running.answer("Hello?", thread_id=asked["thread_id"])
    offered = [[tool["function"]["name"] for tool in call.tools] for call in running.model.calls]
    assert offered == [["recall_memory", "remember", "forget"]] * 2
    for agent, status, code in (("none", 404, "definition_not_found"), ("analyst", 409, "agent_of_thread")):
        body = {"question": "?", "thread_id": asked["thread_id"], "agent": agent}
        answer = running.client.post("/api/chat", json=body)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_stream_goes_on_from_every_place_it_may_be_cut_at(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("How many?")
    whole = frames(running.client.get(asked["events"]).text)
    for place, (last, _) in enumerate(whole[:-1], 1):
        rest = running.client.get(asked["events"], headers={"Last-Event-ID": last})
        assert frames(rest.text) == whole[place:]
        assert running.client.get(asked["events"], params={"after": last}).text == rest.text
    assert running.client.get(asked["events"], headers={"Last-Event-ID": whole[-1][0]}).status_code == 204


def test_a_client_that_comes_back_in_the_middle_reads_the_rest_as_it_happens(serve: Any) -> None:
    running = serve([LOOK, COUNT, ANSWER])
    running.model.shut.set()
    asked = running.ask("How many?")
    with watching(running, asked["events"]) as lines:
        seen = until(lines, "RUN_STARTED")
    running.model.shut.clear()
    with watching(running, asked["events"], seen[-1]) as lines:
        seen += until(lines, "RUN_FINISHED")
    assert seen == [place for place, _ in frames(running.client.get(asked["events"]).text)]


def test_two_clients_see_the_same_run(serve: Any) -> None:
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    texts: list[str] = []
    readers = [
        threading.Thread(target=lambda: texts.append(httpx.get(running.url + asked["events"], timeout=20).text))
        for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    running.model.shut.clear()
    for reader in readers:
        reader.join()
    assert frames(texts[0]) == frames(texts[1])
    assert frames(texts[0])[-1][1]["type"] == "RUN_FINISHED"


def test_a_silent_stream_beats(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.1)
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    with watching(running, asked["events"]) as lines:
        until(lines, "RUN_STARTED")
        assert [line for line in (next(lines), next(lines), next(lines), next(lines)) if line] == [": beat", ": beat"]


def test_a_second_question_meanwhile_is_refused_with_the_run(serve: Any) -> None:
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    refused = running.client.post("/api/chat", json={"question": "And?", "thread_id": asked["thread_id"]})
    assert refused.status_code == 409
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert (problem["code"], problem["status"], problem["run"]) == ("run_in_progress", 409, asked["run_id"])
    history = running.history(asked["thread_id"])
    assert [message["content"] for message in history["messages"]] == ["How many?"]


def test_a_stopped_run_says_so_and_can_be_gone_on_with(serve: Any) -> None:
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    stopped = running.client.post(f"/api/conversations/{asked['thread_id']}/stop")
    assert stopped.status_code == 200
    assert stopped.json()["run"]["status"] == "paused"
    told = frames(running.client.get(asked["events"]).text)
    assert told[-1][1]["outcome"] == {"type": "cancelled"}
    again = running.client.post(f"/api/conversations/{asked['thread_id']}/stop")
    assert again.json()["run"]["status"] == "paused", "stopping what has stopped changes nothing"
    running.model.shut.clear()
    resumed = running.client.post(f"/api/conversations/{asked['thread_id']}/resume")
    assert resumed.status_code == 202
    assert frames(running.client.get(resumed.json()["events"]).text)[-1][1]["outcome"] == {"type": "success"}
    nothing = running.client.post(f"/api/conversations/{asked['thread_id']}/resume", json={})
    assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_to_resume")


def test_a_run_out_of_steps_pauses_and_goes_on(serve: Any) -> None:
    running = serve([LOOK, COUNT, ANSWER])
    asked = running.answer("How many?", max_steps=1)
    last = frames(running.client.get(asked["events"]).text)[-1][1]
    assert last["outcome"]["type"] == "interrupt"
    assert "list_tables" in last["result"]["summary"]
    resumed = running.client.post(f"/api/conversations/{asked['thread_id']}/resume").json()
    assert frames(running.client.get(resumed["events"]).text)[-1][1]["outcome"] == {"type": "success"}
    history = running.history(asked["thread_id"])
    assert [message["kind"] for message in history["messages"]] == ["question", "summary", "question", "answer"]


def test_a_run_whose_process_died_goes_on_by_itself(
    serve: Any, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = orphaned(store_address, monkeypatch)
    running = serve(SCRIPT)
    path = f"/api/conversations/t1/runs/{run_id}/events"
    until = time.monotonic() + 60
    while (told := frames(running.client.get(path).text))[-1][1]["type"] != "RUN_FINISHED":
        assert (told[-1][0], told[-1][1]["name"]) == ("", "longthread.interrupted"), "it has no place: it is not stored"
        assert time.monotonic() < until
    run = running.history("t1")["run"]
    assert (run["id"], run["status"]) == (run_id, "finished")


def test_what_a_stopped_run_was_writing_is_in_the_history_and_in_what_is_shared(serve: Any) -> None:
    running = serve([{"finish": "The first of all."}, {"finish": "The second."}])
    running.model.cut.set()
    asked = running.ask("One?")
    with watching(running, asked["events"]) as lines:
        until(lines, "TEXT_MESSAGE_CONTENT")
    path = f"/api/conversations/{asked['thread_id']}"
    assert running.client.post(f"{path}/stop").json()["run"]["unfinished"] == "The firs"
    assert [run["unfinished"] for run in running.history(asked["thread_id"])["runs"]] == ["The firs"]
    token = running.client.post(f"{path}/shares", json={}).json()["token"]
    shared = running.client.get(f"/api/shared/{token}").json()
    assert [run["unfinished"] for run in shared["runs"]] == ["The firs"]
    running.model.cut.clear()
    with watching(running, running.client.post(f"{path}/resume").json()["events"]) as lines:
        until(lines, "RUN_FINISHED")
    assert [run["unfinished"] for run in running.history(asked["thread_id"])["runs"]] == ["The firs", ""]


def test_a_stopping_server_ends_its_streams_and_keeps_its_runs(serve: Any) -> None:
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    with watching(running, asked["events"]) as lines:
        until(lines, "RUN_STARTED")
        began = time.monotonic()
        running.server.should_exit = True
        until(lines, "RUN_FINISHED")
        assert list(lines) == [""]
    running.thread.join(10)
    assert time.monotonic() - began < 3
    later = serve(SCRIPT)
    assert later.history(asked["thread_id"])["run"]["outcome"]["reason"] == "stopped"
    assert later.client.post(f"/api/conversations/{asked['thread_id']}/resume").status_code == 202


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"question": " "}, 422, "invalid_input"),
        ({"question": "x" * 201}, 413, "question_too_long"),
        ({"question": "?", "thread_id": ""}, 422, "invalid_input"),
        ({"question": "?", "thread_id": "x" * 1001}, 422, "invalid_input"),
        ({"question": "?", "source": "/no/such/file.sqlite"}, 409, "source_not_found"),
        ({"question": "?", "max_steps": 0}, 422, "invalid_input"),
        ({"question": "?", "protocol": "smoke"}, 422, "invalid_input"),
        ({"question": 5}, 422, "invalid_input"),
        ({"question": "?", "threadId": "t1"}, 422, "invalid_input"),
        ({}, 422, "invalid_input"),
    ],
)
def test_a_wrong_question_is_a_problem(serve: Any, body: dict[str, Any], status: int, code: str) -> None:
    running = serve(SCRIPT, max_question=200)
    answer = running.client.post("/api/chat", json=body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert (problem["status"], problem["code"], problem["instance"]) == (status, code, "/api/chat")
    assert problem["type"] == f"urn:longthread:problem:{code}"
    assert problem["detail"]
    assert running.client.get("/api/conversations").json()["conversations"] == [], "nothing was written"


def test_a_field_that_there_is_not_is_named(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?", max_steps=1)["thread_id"]
    for path in ("/api/chat", f"/api/conversations/{thread}/resume"):
        answer = running.client.post(path, json={"question": "?", "threadId": thread})
        assert answer.status_code == 422
        assert "body.threadId: There is no such field" in answer.json()["detail"]
    assert running.history(thread)["run"]["status"] == "paused"


def test_a_model_that_the_caller_names_wrongly_is_the_callers_error(serve: Any) -> None:
    running = serve(None, model="foo:configured")
    named = running.client.post("/api/chat", json={"question": "?", "model": "foo:bar"})
    assert (named.status_code, named.json()["code"]) == (409, "model_unavailable")
    assert "no provider `foo`" in named.json()["detail"]
    configured = running.client.post("/api/chat", json={"question": "?"})
    assert (configured.status_code, configured.json()["code"]) == (503, "model_unavailable")
    assert "foo:configured" in configured.json()["detail"]


def test_what_is_not_there_is_a_problem(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    for path, code in {
        "/api/nowhere": "not_found",
        "/api/chat/history?thread_id=x": "thread_not_found",
        "/api/state?thread_id=x": "thread_not_found",
        f"/api/conversations/{thread}/runs/x/events": "run_not_found",
        f"/api/conversations/{thread}/steps/99": "entry_not_found",
    }.items():
        answer = running.client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json"), path
        assert answer.json()["code"] == code
    bad = running.client.get(f"/api/conversations/{thread}/runs/x/events", headers={"Last-Event-ID": "x"})
    assert bad.status_code == 422


def test_an_error_of_our_own_says_nothing_of_itself(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    running = serve(SCRIPT)

    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("longthread.server.routes.conversations.listing.list_threads", broken)
    answer = running.client.get("/api/conversations")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "secret" not in answer.text


def test_a_model_that_fails_ends_the_run_with_the_error(serve: Any) -> None:
    running = serve([RuntimeError("no luck")], retry_attempts=0)
    asked = running.answer("How many?")
    last = frames(running.client.get(asked["events"]).text)[-1][1]
    assert (last["type"], last["code"]) == ("RUN_ERROR", "model_failed")
    assert "no luck" in last["message"]
    run = running.history(asked["thread_id"])["run"]
    assert (run["status"], run["outcome"]["error"]["type"]) == ("failed", "model_failed")
    assert any("no luck" in warning for warning in run["warnings"])


def test_a_conversation_that_a_client_names_asks_the_servers_source(serve: Any) -> None:
    running = serve(SCRIPT)
    asked = running.answer("How many?", thread_id="named-by-a-client")
    assert running.history("named-by-a-client")["source"] == "demo"
    assert asked["thread_id"] == "named-by-a-client"
    bare = serve(SCRIPT, source=None)
    answer = bare.client.post("/api/chat", json={"question": "How many?", "thread_id": "another"})
    assert answer.status_code == 404

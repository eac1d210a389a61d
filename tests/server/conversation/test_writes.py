"""A conversation is begun, added to and given a status through the API, without a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.server.apps import CLERK, define_clerk, orphaned

from longthread import Question, Scope
from longthread.errors import CallNotOpen, MessageTaken, ThreadTaken
from longthread.model.entry import ToolCall
from longthread.store import log
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.sampled(2)


def begin(running: Any, **about: Any) -> Any:
    return running.client.post("/api/conversations", json=about)


def append(running: Any, thread: str, role: str, content: str, **more: Any) -> Any:
    return running.client.post(f"/api/conversations/{thread}/messages", json={"role": role, "content": content, **more})


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def said(running: Any, thread: str) -> list[str]:
    return [message["content"] for message in running.history(thread)["messages"]]


def rows(address: str, sql: str, **values: Any) -> list[Any]:
    async def read() -> list[Any]:
        async with open_store(address) as store, store.reading() as tx:
            return [dict(row) for row in await tx.fetch(Sql(sql), **values)]

    return asyncio.run(read())


def heard(messages: Sequence[Any]) -> Any:
    """Answers with all that people said before."""
    return {"finish": " | ".join(str(each.content) for each in messages if each.type == "human")}


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "上海"}'}}


def test_a_conversation_is_begun_before_its_first_question(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve(heard)
    about = {"title": " 火箭 ", "source": "demo", "tags": ["甲", "b"], "metadata": {"ticket": 7}}
    made = begin(running, id="s/1", **about)
    assert made.status_code == 201
    assert made.json() == running.client.get("/api/conversations").json()["conversations"][0]
    wanted = {"id": "s/1", "label": "火箭", "source": "demo", "tags": ["甲", "b"], "metadata": {"ticket": 7}}
    wanted |= {"agent": None, "status": None, "session_status": "active", "message_count": 0}
    assert {key: made.json()[key] for key in wanted} == wanted
    assert said(running, "s/1") == []
    assert code(begin(running, id="s/1")) == (409, "thread_taken")
    running.answer("How many?", thread_id="s/1")
    shown = running.history("s/1")
    assert ([each["content"] for each in shown["messages"]], shown["label"]) == (["How many?", "How many?"], "火箭")
    clerk = begin(running, agent="clerk").json()
    assert (clerk["agent"]["name"], clerk["label"], clerk["source"]) == ("clerk", "", None)
    assert begin(running, agent=clerk["agent"]["id"]).json()["agent"] == clerk["agent"]
    assert begin(running).json()["id"] not in {"s/1", clerk["id"]}
    running.answer("Write.", thread_id=clerk["id"])
    assert running.history(clerk["id"])["agent"]["name"] == CLERK[-1]["name"]


@pytest.mark.parametrize(
    ("about", "status", "kind"),
    [
        ({"agent": "nobody"}, 404, "definition_not_found"),
        ({"source": "/no/such/file.csv"}, 409, "source_not_found"),
        ({"agent": "clerk", "source": "demo"}, 422, "invalid_input"),
        ({"tags": ["x" * 101]}, 422, "invalid_input"),
        ({"metadata": {"x": "y" * 70_000}}, 422, "invalid_input"),
        ({"id": ""}, 422, "invalid_input"),
        ({"title": " "}, 422, "invalid_input"),
        ({"user_id": "ada"}, 422, "invalid_input"),
    ],
)
def test_what_no_conversation_can_be_is_refused_and_nothing_is_begun(
    serve: Any, store_address: str, about: dict[str, Any], status: int, kind: str
) -> None:
    define_clerk(store_address)
    running = serve(heard)
    assert code(begin(running, **about)) == (status, kind)
    assert running.client.get("/api/conversations").json()["conversations"] == []


def test_a_message_is_added_without_a_run_and_the_next_question_sees_it(serve: Any, store_address: str) -> None:
    running = serve(heard)
    thread = begin(running).json()["id"]
    first = append(running, thread, "user", "有多少枚火箭？", id="m1", metadata={"stars": 5})
    assert first.status_code == 201
    assert first.json() == running.history(thread)["messages"][0]
    assert (first.json()["id"], first.json()["metadata"]) == ("m1", {"stars": 5})
    assert append(running, thread, "assistant", "There are 54 rockets.").status_code == 201
    shown = running.history(thread)
    assert (shown["runs"], shown["run"], shown["label"]) == ([], None, "有多少枚火箭？")
    running.answer("And now?", thread_id=thread)
    assert said(running, thread)[-1] == "有多少枚火箭？ | And now?"
    assert append(running, thread, "user", "Noted 记下。").status_code == 201
    running.answer("Last?", thread_id=thread)
    assert said(running, thread)[-1] == "有多少枚火箭？ | And now? | Noted 记下。 | Last?"
    for query in ("54 rockets", "记下"):
        found = running.client.get("/api/conversations", params={"q": query}).json()["conversations"]
        assert [each["id"] for each in found] == [thread]
    [row] = rows(store_address, "SELECT content, role FROM messages WHERE session_id = :id AND id = 'm1'", id=thread)
    assert row == {"content": "有多少枚火箭？", "role": "user"}


def test_a_message_sent_again_is_stored_once_and_another_is_refused(serve: Any) -> None:
    running = serve(heard)
    begin(running, id="t")
    first = append(running, "t", "user", "One", id="m1")
    append(running, "t", "assistant", "Two", id="m2")
    assert append(running, "t", "user", "One", id="m1").json()["id"] == first.json()["id"]
    assert append(running, "t", "assistant", "Two", id="m2", parent_id="m1").status_code == 201
    assert said(running, "t") == ["One", "Two"]
    for role, content, more in (("user", "1", {}), ("system", "One", {}), ("user", "One", {"parent_id": "m2"})):
        assert code(append(running, "t", role, content, id="m1", **more)) == (409, "message_taken")
    assert said(running, "t") == ["One", "Two"]


def test_a_message_behind_another_than_the_last_begins_a_branch(serve: Any) -> None:
    running = serve(heard)
    begin(running, id="t")
    for number in (1, 2, 3):
        append(running, "t", "user", f"Q{number}", id=f"m{number}")
    other = append(running, "t", "user", "Q2'", id="n2", parent_id="m1")
    assert other.json()["siblings"] == {"ids": ["m2", "n2"], "shown": 1}
    assert said(running, "t") == ["Q1", "Q2'"]
    running.client.put("/api/conversations/t/branch", json={"message": "m2"})
    assert said(running, "t") == ["Q1", "Q2", "Q3"], "where a branch was left is kept"
    assert code(append(running, "t", "user", "x", parent_id="none")) == (404, "entry_not_found")
    assert code(append(running, "none", "user", "x")) == (404, "thread_not_found")
    assert append(running, "t", "user", "Q3'", parent_id="n2").status_code == 201
    assert said(running, "t") == ["Q1", "Q2'", "Q3'"]


def test_a_result_stands_behind_its_call_or_nowhere(serve: Any) -> None:
    running = serve(heard)
    begin(running, id="t")
    append(running, "t", "user", "上海天气怎么样？", id="q")
    assert code(append(running, "t", "tool", "Sunny", tool_call_id="c1")) == (409, "call_not_open")
    other = {"id": "c2", "function": {"name": "weather", "arguments": {"city": "Paris"}}}
    assert append(running, "t", "assistant", "", id="a", tool_calls=[CALL, other]).status_code == 201
    assert code(append(running, "t", "tool", "x", tool_call_id="c3")) == (409, "call_not_open")
    assert append(running, "t", "tool", '{"ok": true, "data": "晴"}', tool_call_id="c2").status_code == 201
    assert code(append(running, "t", "tool", "again", tool_call_id="c2")) == (409, "call_not_open")
    assert append(running, "t", "tool", '{"ok": true, "data": "晴"}', tool_call_id="c1", id="r1").status_code == 201
    assert append(running, "t", "tool", '{"ok": true, "data": "晴"}', tool_call_id="c1", id="r1").status_code == 201
    assert append(running, "t", "assistant", "Sunny.").status_code == 201
    assert code(append(running, "t", "tool", "late", tool_call_id="c1")) == (409, "call_not_open")
    steps = running.history("t")["steps"]["q"]
    assert [(each["action"], each["args"], each["ok"]) for each in steps] == [
        ("weather", {"city": "上海"}, True),
        ("weather", {"city": "Paris"}, True),
    ]
    running.answer("Thanks", thread_id="t")
    assert said(running, "t")[-1] == "上海天气怎么样？ | Thanks"


def test_a_call_that_was_left_open_is_closed_by_the_next_question(serve: Any, store_address: str) -> None:
    running = serve(heard)
    begin(running, id="t")
    append(running, "t", "user", "Weather?")
    append(running, "t", "assistant", "", tool_calls=[CALL])
    running.answer("Well?", thread_id="t")
    results = rows(store_address, "SELECT tool_call_id FROM messages WHERE session_id = 't' AND role = 'tool'")
    assert [row["tool_call_id"] for row in results] == ["c1"]


@pytest.mark.parametrize(
    ("message", "status", "kind"),
    [
        ({"role": "user", "content": " "}, 422, "invalid_input"),
        ({"role": "assistant", "content": ""}, 422, "invalid_input"),
        ({"role": "bot", "content": "x"}, 422, "invalid_input"),
        ({"role": "user", "content": "x", "tool_calls": [CALL]}, 422, "invalid_input"),
        ({"role": "tool", "content": "x"}, 422, "invalid_input"),
        ({"role": "user", "content": "x", "tool_call_id": "c1"}, 422, "invalid_input"),
        ({"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}, 422, "invalid_input"),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[1]"}}],
            },
            422,
            "invalid_input",
        ),
        ({"role": "user", "content": "火" * 101}, 413, "message_too_long"),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"x": "y" * 99}}}],
            },
            413,
            "message_too_long",
        ),
        ({"role": "user", "content": "x", "metadata": {"x": "y" * 66_000}}, 422, "invalid_input"),
        ({"role": "user", "content": "x", "run_id": "r"}, 422, "invalid_input"),
    ],
)
def test_what_is_no_message_is_refused(serve: Any, message: dict[str, Any], status: int, kind: str) -> None:
    running = serve(heard, max_question=100)
    begin(running, id="t")
    answer = running.client.post("/api/conversations/t/messages", json=message)
    assert code(answer) == (status, kind)
    assert said(running, "t") == []
    assert running.client.get("/api/conversations").json()["conversations"][0]["message_count"] == 0


def test_a_run_under_way_takes_no_message(serve: Any) -> None:
    running = serve(heard)
    running.model.shut.set()
    asked = running.ask("How many?")
    thread = asked["thread_id"]
    assert code(append(running, thread, "user", "x")) == (409, "run_in_progress")
    running.model.shut.clear()
    assert running.client.get(asked["events"]).status_code == 200
    assert append(running, thread, "user", "x").status_code == 201
    assert said(running, thread) == ["How many?", "How many?", "x"]


def test_calls_that_wait_for_a_person_take_no_message(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    running = serve([{"thought": "", "action": "send_mail", "args": {"to": "ada"}}])
    thread = running.answer("Write to Ada", agent="clerk")["thread_id"]
    assert code(append(running, thread, "user", "x")) == (409, "run_waiting")
    running.client.post(f"/api/conversations/{thread}/stop")
    assert append(running, thread, "user", "x").status_code == 201


def test_a_status_holds_until_the_last_run_stands_otherwise(serve: Any, store_address: str) -> None:
    running = serve(heard)
    begin(running, id="t")
    path = "/api/conversations/t"

    def put(status: str) -> str:
        changed = running.client.patch(path, json={"status": status})
        assert changed.status_code == 200
        [row] = rows(store_address, "SELECT status, ended_at FROM sessions WHERE id = 't'")
        assert (row["status"], row["ended_at"] is None) == (status, status in ("active", "paused"))
        return str(changed.json()["session_status"])

    for status in ("completed", "paused", "failed", "active"):
        assert put(status) == status
    running.answer("How many?", thread_id="t")
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    assert (listed["status"], listed["session_status"]) == ("finished", "completed")
    before = listed["last_active_at"]
    assert put("paused") == "paused"
    append(running, "t", "user", "A note is no run.")
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    assert (listed["status"], listed["session_status"]) == ("finished", "paused")
    assert listed["last_active_at"] > before
    running.answer("More?", thread_id="t")
    assert running.client.get("/api/conversations").json()["conversations"][0]["session_status"] == "completed"
    assert running.client.patch(path, json={"status": "done"}).status_code == 422
    assert running.client.patch("/api/conversations/none", json={"status": "failed"}).status_code == 404
    both = running.client.patch(path, json={"status": "failed", "label": "完", "expires_at": None}).json()
    assert (both["session_status"], both["label"], both["expires_at"]) == ("failed", "完", None)


def test_changes_are_made_all_or_none(serve: Any) -> None:
    running = serve(heard)
    begin(running, id="t", title="Before")
    wrong = {"status": "failed", "label": "After", "metadata": {"x": "y" * 70_000}}
    assert running.client.patch("/api/conversations/t", json=wrong).status_code == 422
    [listed] = running.client.get("/api/conversations").json()["conversations"]
    assert (listed["label"], listed["session_status"]) == ("Before", "active")


@pytest.mark.one_backend
def test_a_run_whose_process_died_takes_no_message(
    serve: Any, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphaned(store_address, monkeypatch, claimable=False)
    running = serve(heard)
    assert code(append(running, "t1", "user", "x")) == (409, "run_in_progress")
    running.client.post("/api/conversations/t1/stop")
    assert append(running, "t1", "user", "x").status_code == 201


async def test_a_program_does_the_same(open_analyst: OpenAnalyst, shop: str, tmp_path: Path) -> None:
    analyst = await open_analyst([{"finish": "Two."}], source=shop)
    threads = analyst.threads
    made = await threads.create("t", user_id="ann", title="Rockets", metadata={"ticket": 7})
    assert (made.title, dict(made.metadata)) == ("Rockets", {"ticket": 7})
    with pytest.raises(ThreadTaken):
        await threads.create("t", user_id="bob")
    await threads.append("t", "user", "Where do zebras live?", message_id="q", user_id="ann")
    call = ToolCall("c", "look", {"x": "1\x00"})
    await threads.append("t", "assistant", "", tool_calls=[call], user_id="ann")
    result = await threads.append("t", "tool", "在草原。", tool_call_id="c", user_id="ann")
    assert (result.name, result.tool_call_id) == ("look", "c")
    with pytest.raises(CallNotOpen):
        await threads.append("t", "tool", "x", tool_call_id="c", user_id="ann")
    with pytest.raises(MessageTaken):
        await threads.append("t", "user", "Other", message_id="q", user_id="ann")
    await analyst.settle()
    async with analyst.store.reading() as tx:
        [row] = await tx.fetch(Sql("SELECT count(*) AS segments FROM recall_segments WHERE thread_id = 't'"))
    assert row["segments"] > 0, "the index is made in the background, before anybody asks"
    for words in ("zebras", "草原"):
        found = await analyst.recaller.find(Question(words, Scope("ann", "t"), neighbours=0))
        assert any(words in hit.entry.text for hit in found.hits), words
    changed = await threads.update("t", title="动物", status="paused", tags=["a"], user_id="ann")
    assert (changed.title, list(changed.tags)) == ("动物", ["a"])
    run = await analyst.ask("And now?", thread_id="t", user_id="ann")
    await run.wait()
    async with analyst.store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id="ann")
        entries = await log.branch(tx, "t", thread.tip)
    assert [each.role for each in entries] == ["user", "assistant", "tool", "user", "assistant"]

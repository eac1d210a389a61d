"""The list of conversations, and what is kept of one."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from tests.contract.base import registered
from tests.server.apps import talked

from longthread.server.fields import decode_cursor, encode_cursor
from longthread.server.history import ROWS, SIZE, cut
from longthread.store import leases, log, runs
from longthread.store.open import describe_address, open_store
from longthread.store.queries import Sql
from longthread.store.runs import NewRun

pytestmark = pytest.mark.one_backend

NUMBERS = (
    "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 250) SELECT n, 'x' || n AS name FROM t"
)
LOOK = {"thought": "Look.", "action": "list_tables"}
COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": NUMBERS}}
ANSWER = {"finish": "There are **250** of 100% [q1]."}
SCRIPT = [LOOK, COUNT, ANSWER]
LONE = base64.urlsafe_b64encode(b'["\\ud800","x"]').decode()


def labels(running: Any, **query: Any) -> list[str]:
    found = running.client.get("/api/conversations", params=query).json()["conversations"]
    return [item["label"] for item in found]


def test_conversations_are_listed_latest_first_page_by_page(serve: Any) -> None:
    running = serve([{"finish": "Yes."}])
    for number in range(5):
        running.answer(f"Question {number}")
    whole = labels(running)
    assert whole == [f"Question {number}" for number in (4, 3, 2, 1, 0)]
    seen: list[str] = []
    cursor = None
    while True:
        page = running.client.get("/api/conversations", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        seen += [item["label"] for item in page.json()["conversations"]]
        cursor = page.json()["next_cursor"]
        if cursor is None:
            break
    assert seen == whole
    item = running.client.get("/api/conversations").json()["conversations"][0]
    assert item.keys() >= {"id", "label", "last_active_at", "source", "message_count"}
    assert item["source"] == "demo"


def spoil(address: str, *thread_ids: str) -> None:
    """Damage rows of threads so that nothing can be made of them."""

    async def do() -> None:
        async with open_store(address) as store, store.writing() as tx:
            for thread_id in thread_ids:
                assert await tx.run(Sql("UPDATE threads SET created_at = 'zzz' WHERE id = :id"), id=thread_id) == 1

    asyncio.run(do())


def test_damaged_ones_are_named_and_the_others_listed(
    serve: Any, store_address: str, caplog: pytest.LogCaptureFixture
) -> None:
    running = serve([{"finish": "Yes."}])
    ids = [running.answer(f"Question {number}")["thread_id"] for number in range(5)]
    spoil(store_address, ids[3], ids[2])
    first = running.client.get("/api/conversations", params={"limit": 2}).json()
    assert [item["label"] for item in first["conversations"]] == ["Question 4", "Question 1"]
    assert first["damaged"] == [ids[3], ids[2]]
    rest = running.client.get("/api/conversations", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [item["label"] for item in rest["conversations"]] == ["Question 0"]
    assert (rest["next_cursor"], rest["damaged"]) == (None, [])
    found = running.client.get("/api/conversations", params={"q": "Question"}).json()
    assert [item["label"] for item in found["conversations"]] == ["Question 4", "Question 1", "Question 0"]
    assert found["damaged"] == [ids[3], ids[2]]
    assert f"not listed, for it is damaged: thread {ids[3]}: " in caplog.text
    assert running.ready().status_code == 200
    for thread_id in ids[2:4]:
        assert running.client.delete(f"/api/conversations/{thread_id}").status_code == 204
    assert running.client.get("/api/conversations").json()["damaged"] == []


def test_conversations_are_found_by_what_was_said(serve: Any) -> None:
    running = serve(SCRIPT)
    running.answer("How many rockets are there?")
    running.answer("运载火箭有哪些？")
    assert labels(running, q="火箭") == ["运载火箭有哪些？"]
    assert labels(running, q="ROCKETS") == ["How many rockets are there?"]
    assert len(labels(running, q="100%")) == 2
    assert labels(running, q="100_") == [], "wildcards are not wild"
    assert labels(running, q="nothing like it") == []
    hit = running.client.get("/api/conversations", params={"q": "250"}).json()["conversations"][0]
    said = next(each for each in running.history(hit["id"])["messages"] if each["role"] == "assistant")
    assert "**250**" in said["content"]
    assert (hit["match"]["message"], hit["match"]["text"]) == (said["id"], "There are 250 of 100%.")
    running.client.patch(f"/api/conversations/{hit['id']}", json={"label": "**named**"})
    [named] = running.client.get("/api/conversations", params={"q": "*named*"}).json()["conversations"]
    assert named["match"] == {"text": "**named**", "message": None}, "a title is no Markdown"


def test_a_conversation_is_renamed_and_deleted(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    path = f"/api/conversations/{thread}"
    assert running.client.patch(path, json={"label": "  Counting "}).json()["label"] == "Counting"
    assert labels(running) == ["Counting"]
    assert running.client.patch(path, json={"label": " "}).status_code == 422
    assert running.client.patch("/api/conversations/x", json={"label": "y"}).status_code == 404
    assert running.client.delete(path).status_code == 204
    assert labels(running) == []
    assert running.client.delete(path).status_code == 404
    assert running.client.get("/api/chat/history", params={"thread_id": thread}).status_code == 404


def test_deleting_a_conversation_stops_its_run(serve: Any) -> None:
    running = serve(SCRIPT)
    running.model.shut.set()
    asked = running.ask("How many?")
    assert running.client.delete(f"/api/conversations/{asked['thread_id']}").status_code == 204
    assert running.client.get(asked["events"]).status_code == 404


def test_a_history_shows_how_the_answer_was_found(serve: Any) -> None:
    running = serve(SCRIPT, sql_rows=1000)
    asked = running.answer("How many?")
    history = running.history(asked["thread_id"])
    assert (history["thread_id"], history["label"], history["source"]) == (asked["thread_id"], "How many?", "demo")
    assert [(m["role"], m["content"], m["kind"], m["run_id"]) for m in history["messages"]] == [
        ("user", "How many?", "question", asked["run_id"]),
        ("assistant", ANSWER["finish"], "answer", asked["run_id"]),
    ]
    tables, query = history["steps"][asked["run_id"]]
    assert (tables["action"], tables["thought"], tables["ok"]) == ("list_tables", "Look.", True)
    assert (query["action"], query["thought"], query["args"]) == ("run_sql", "Count.", COUNT["args"])
    assert query["observation"]["data"]["query"] == "q1"
    assert query["elapsed_ms"] >= 0
    assert (query["cut"], len(query["observation"]["data"]["rows"])) == (True, ROWS)
    whole = running.client.get(f"/api/conversations/{asked['thread_id']}/steps/{query['step']}").json()
    assert len(whole["observation"]["data"]["rows"]) == 250
    run = history["run"]
    assert (run["id"], run["status"], run["model"]) == (asked["run_id"], "finished", "demo")
    assert run["outcome"]["queries"][0]["query"] == "q1"
    assert run["last_event_seq"] > 5
    assert history["before"] is None


def test_a_long_history_is_read_in_whole_runs(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("Question 0")["thread_id"]
    for number in range(1, 5):
        running.answer(f"Question {number}", thread_id=thread)
    pages = []
    before: dict[str, str] = {}
    while True:
        page = running.history(thread, limit=3, **before)
        pages.append(page)
        assert page["messages"][0]["role"] == "user"
        assert [len(steps) for steps in page["steps"].values()] == [2] * len(page["runs"])
        if page["before"] is None:
            break
        before = {"before": page["before"]}
    assert [len(page["messages"]) for page in pages] == [4, 4, 2]
    told = [m["content"] for page in reversed(pages) for m in page["messages"] if m["role"] == "user"]
    assert told == [f"Question {number}" for number in range(5)]


def test_a_state_has_the_documented_fields(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    state = running.client.get("/api/state", params={"thread_id": thread}).json()
    assert state["question"] == "How many?"
    assert (state["done"], state["answer"]) == (True, {"ok": True, "data": ANSWER["finish"]})
    assert len(state["sql_history"]) == 1


def test_what_is_served_is_told(serve: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    assert running.client.get("/health").json() == {"status": "ok"}
    assert running.ready().json() == {"status": "ready"}
    info = running.client.get("/api/info").json()
    assert (info["model"], info["demo"], info["source"], info["sources"]) == ("demo", True, "demo", "any")
    assert info["database"] == describe_address(store_address)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bad", ["x", "💥", "bnVsbA", encode_cursor(1, "x"), encode_cursor("x"), "WzEsMl0", LONE])
def test_a_cursor_that_was_never_given_out_is_refused(serve: Any, bad: str) -> None:
    running = serve(SCRIPT)
    answer = running.client.get("/api/conversations", params={"cursor": bad})
    assert (answer.status_code, answer.json()["code"]) == (404, "cursor_unknown")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bad", [encode_cursor(2**70, 0), encode_cursor(1, 2**63), encode_cursor(-1, 0)])
def test_numbers_that_no_store_holds_are_refused(serve: Any, bad: str) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    answer = running.client.get("/api/chat/history", params={"thread_id": thread, "before": bad})
    assert (answer.status_code, answer.json()["code"]) == (404, "cursor_unknown")
    for index in (2**70, -1):
        step = running.client.get(f"/api/conversations/{thread}/steps/{index}")
        assert (step.status_code, step.json()["code"]) == (422, "invalid_input")


def test_a_conversation_says_how_its_last_run_stands(serve: Any) -> None:
    running = serve(SCRIPT)
    paused = running.answer("How many stopped?", max_steps=1)["thread_id"]
    finished = running.answer("How many finished?")["thread_id"]
    running.model.shut.set()
    live = running.ask("How many running?")["thread_id"]
    expected = {paused: "paused", finished: "finished", live: "running"}
    for query in ({}, {"q": "how many"}):
        found = running.client.get("/api/conversations", params=query).json()["conversations"]
        assert {item["id"]: item["status"] for item in found} == expected
    renamed = running.client.patch(f"/api/conversations/{paused}", json={"label": "x"})
    assert renamed.json()["status"] == "paused"


def test_a_conversation_is_stopped_and_deleted_under_another_processs_run(serve: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    plan = NewRun(run_id="z", question="?", source=None, model="demo", protocol="auto", max_steps=3)

    async def begin() -> None:
        async with open_store(store_address) as store, store.writing() as tx:
            await registered(tx, "elsewhere/1/x")
            await runs.begin(tx, thread, plan, owner="elsewhere/1/x", alive=lambda owner: True)

    async def told_to_stop() -> list[str | None]:
        async with open_store(store_address) as store, store.reading() as tx:
            return [each.stop_by for each in await leases.held(tx, "elsewhere/1/x")]

    asyncio.run(begin())
    stopped = running.client.post(f"/api/conversations/{thread}/stop")
    assert (stopped.status_code, stopped.json()["run"]["status"]) == (200, "running")
    assert asyncio.run(told_to_stop()) == ["default"]
    assert running.client.delete(f"/api/conversations/{thread}").status_code == 204
    assert running.client.get("/api/conversations").json()["conversations"] == []


def test_a_label_by_another_name_is_refused(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]
    answer = running.client.patch(f"/api/conversations/{thread}", json={"label": "x", "title": "y"})
    assert answer.status_code == 422
    assert "body.title: There is no such field" in answer.json()["detail"]
    assert labels(running) == ["How many?"]


def test_a_cursor_holds_what_it_was_made_of() -> None:
    assert decode_cursor(encode_cursor("火箭", 7), str, int) == ["火箭", 7]


def test_rows_are_cut_and_columns_are_not() -> None:
    wide = {"ok": True, "data": {"columns": [f"c{n}" for n in range(200)], "rows": [["x" * 100] * 200] * 1000}}
    short, was_cut = cut(wide)
    assert was_cut
    assert short is not None
    assert len(short["data"]["columns"]) == 200
    assert {len(row) for row in short["data"]["rows"]} == {200}
    assert 0 < len(short["data"]["rows"]) * 200 * 100 < SIZE
    small = {"ok": True, "data": {"rows": [[1]]}}
    assert cut(small) == (small, False)
    assert cut(None) == (None, False)


def test_the_thread_of_a_langgraph_application_is_listed_and_shown_with_its_answers(
    serve: Any, store_address: str
) -> None:
    running = serve([{"finish": "Yes."}])
    talked(store_address, "app")
    assert labels(running) == ["上海天气怎么样？"]
    found = running.history("app")
    assert found["label"] == "上海天气怎么样？"
    assert [(each["role"], each["content"]) for each in found["messages"]] == [
        ("user", "上海天气怎么样？"),
        ("assistant", "I look at the sky."),
        ("assistant", "Sunny in **上海**."),
        ("user", "Thank you"),
        ("assistant", "You are welcome."),
    ]
    [question, *_] = found["messages"]
    assert [*found["steps"]] == [question["id"]]
    [step] = found["steps"][question["id"]]
    assert (step["action"], step["args"], step["status"]) == ("weather", {"city": "上海"}, "done")
    assert (step["ok"], step["observation"]) == (True, {"ok": True, "data": "Sunny in 上海."})
    last = running.history("app", limit=2)
    assert last["steps"] == {}
    assert [each["content"] for each in last["messages"]] == ["Thank you", "You are welcome."]
    assert running.history("app", limit=9, before=last["before"])["messages"] == found["messages"][:-2]


def test_what_a_runs_model_says_beside_its_calls_is_no_message(serve: Any) -> None:
    running = serve(SCRIPT)
    found = running.history(running.answer("How many?")["thread_id"])
    assert [each["content"] for each in found["messages"]] == ["How many?", ANSWER["finish"]]


def test_what_agents_ask_each_other_is_listed_below(serve: Any, store_address: str) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many?")["thread_id"]

    async def add() -> None:
        async with open_store(store_address) as store, store.writing() as tx:
            await log.create_thread(tx, "child", user_id="default", title="Asked", parent=thread)

    asyncio.run(add())
    assert labels(running) == ["How many?"]
    assert sorted(labels(running, children=True)) == ["Asked", "How many?"]
    [child] = running.client.get("/api/conversations", params={"parent": thread}).json()["conversations"]
    assert (child["id"], child["parent_id"]) == ("child", thread)
    assert running.client.get("/api/conversations", params={"parent": "none"}).status_code == 404
    assert running.client.delete(f"/api/conversations/{thread}").status_code == 204
    assert labels(running, children=True) == []


def test_what_is_noted_about_a_conversation_is_shown(serve: Any) -> None:
    running = serve([{"finish": "Yes."}])
    thread = running.answer("How many?")["thread_id"]
    path = f"/api/conversations/{thread}"
    noted = {
        "tags": ["航天", "weekly"],
        "metadata": {"team": "数据", "n": [1, None]},
        "expires_at": "2040-05-08T12:00:00+08:00",
    }
    item = running.client.patch(path, json=noted).json()
    wanted = {"tags": noted["tags"], "metadata": noted["metadata"], "expires_at": "2040-05-08T04:00:00+00:00"}
    assert wanted.items() <= item.items()
    assert wanted.items() <= running.client.get("/api/conversations").json()["conversations"][0].items()
    assert wanted.items() <= running.history(thread).items()
    assert item["label"] == "How many?"
    changed = running.client.patch(path, json={"metadata": {"n": None, "x": 1}, "tags": [], "expires_at": None}).json()
    assert (changed["metadata"], changed["tags"], changed["expires_at"]) == ({"team": "数据", "x": 1}, [], None)
    soon = running.client.patch(path, json={"ttl_seconds": 3600}).json()["expires_at"]
    assert soon > changed["last_active_at"]


def test_what_is_noted_about_a_message_is_shown(serve: Any) -> None:
    running = serve([{"finish": "Yes."}])
    thread = running.answer("How many?")["thread_id"]
    message = running.history(thread)["messages"][1]
    path = f"/api/conversations/{thread}/messages/{message['id']}"
    assert running.client.patch(path, json={"metadata": {"rating": 5}}).json()["metadata"] == {"rating": 5}
    shown = running.history(thread)["messages"]
    assert [each["metadata"] for each in shown] == [{}, {"rating": 5}]
    assert shown[1] == {**message, "metadata": {"rating": 5}}
    assert running.client.patch(path, json={"metadata": {"rating": None}}).json()["metadata"] == {}
    other = path.replace(message["id"], "none")
    assert running.client.patch(other, json={"metadata": {}}).status_code == 404


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tags": [" "]},
        {"tags": "weekly"},
        {"metadata": [1]},
        {"metadata": {"x": "y" * 70_000}},
        {"expires_at": "2040-05-08"},
        {"expires_at": "2040-05-08T00:00:00"},
        {"expires_at": None, "ttl_seconds": 5},
        {"ttl_seconds": 0},
        {"status": "completed"},
    ],
)
def test_what_cannot_be_noted_is_refused_and_changes_nothing(serve: Any, body: Any) -> None:
    running = serve([{"finish": "Yes."}])
    path = f"/api/conversations/{running.answer('How many?')['thread_id']}"
    running.client.patch(path, json={"tags": ["a"], "metadata": {"b": 1}})
    before = running.client.get("/api/conversations").json()
    assert running.client.patch(path, json={"label": "x", **body} if body else body).status_code == 422
    assert running.client.get("/api/conversations").json() == before

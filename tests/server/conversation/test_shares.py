"""Links by which others read a conversation."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from tests.server.apps import talked

from longthread.errors import StoreError
from longthread.langgraph import LongthreadSaver
from longthread.server.app import JsonFormatter
from longthread.testing import ScriptedChatModel

COUNT = {"thought": "I count.", "action": "run_sql", "args": {"sql": "SELECT count(*) AS n FROM rockets"}}
LIST = {"thought": "", "action": "list_tables", "args": {}}
KEEP = {"thought": "", "action": "remember", "args": {"content": "The user has a canary."}}
SCRIPT = [COUNT, KEEP, {"finish": "**41** [q1]."}, {"finish": "You are welcome."}, {"finish": "Indeed."}]


def share(running: Any, thread: str, **body: Any) -> dict[str, Any]:
    made = running.client.post(f"/api/conversations/{thread}/shares", json=body)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def seen(running: Any, link: dict[str, Any], **query: Any) -> Any:
    return running.client.get(f"/api/shared/{link['token']}", params=query)


def refused(answer: Any) -> bool:
    return (answer.status_code, answer.json()["code"]) == (404, "share_not_found")


@pytest.mark.one_backend
def test_a_link_shows_the_conversation_as_it_was_without_memory_and_addresses(serve: Any) -> None:
    running = serve(SCRIPT)
    thread = running.answer("How many rockets?")["thread_id"]
    running.client.patch(f"/api/conversations/{thread}", json={"metadata": {"note": "a canary"}})
    link = share(running, thread)
    assert link["path"] == f"/s/{link['token']}"
    answer = seen(running, link)
    shown = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert [(each["role"], each["content"]) for each in shown["messages"]] == [
        ("user", "How many rockets?"),
        ("assistant", "**41** [q1]."),
    ]
    [run] = shown["runs"]
    [step] = shown["steps"][run["id"]]
    assert (step["action"], step["observation"]["data"]["rows"]) == ("run_sql", [[41]])
    assert run["outcome"]["answer"] == "**41** [q1]."
    for hidden in ("canary", '"source"', "warnings", "queue", "manifest", "prompt"):
        assert hidden not in json.dumps(shown), hidden
    running.answer("Thank you", thread_id=thread)
    assert seen(running, link).json() == shown, "what came later is not shared"
    assert len(seen(running, share(running, thread)).json()["messages"]) == 4


@pytest.mark.one_backend
def test_a_link_does_not_tell_where_files_are(serve: Any, tmp_path: Path) -> None:
    """The list of tables does, with the files that could not be read. An error does, which is in the summary of a run
    that was stopped, too: beside calls that concern memory."""
    folder = tmp_path / "sales"
    folder.mkdir()
    file = folder / "sales.csv"
    file.write_text("amount\n1\n")
    (folder / "broken.parquet").write_text("no parquet")
    calls = [
        LIST,
        {"thought": "", "action": "describe_table", "args": {"table": "sales"}},
        *({**COUNT, "args": {"sql": f"SELECT {what} FROM sales"}} for what in ("amount", "count(*)")),
        KEEP,
    ]
    steps = len(calls)

    def script(messages: list[Any]) -> Any:
        if len(calls) == 2:
            file.unlink()
        return calls.pop(0) if calls else {"finish": ""}

    running = serve(script)
    thread = running.answer("How much?", source=str(folder), max_steps=steps)["thread_id"]
    own = running.history(thread)
    told = (own["steps"], own["messages"], own["runs"][0]["outcome"]["summary"])
    assert all(str(folder) in json.dumps(each) for each in told), "its owner sees it in all of these"
    assert "canary" in own["runs"][0]["outcome"]["summary"]
    shown = seen(running, share(running, thread)).json()
    assert not any(hidden in json.dumps(shown) for hidden in (str(tmp_path), "canary"))
    [listed, _, worked, failed] = [step for steps in shown["steps"].values() for step in steps]
    assert (listed["observation"]["data"]["tables"], listed["observation"]["data"]["dialect"]) == (["sales"], "duckdb")
    assert (worked["observation"]["data"]["rows"], failed["ok"], failed["observation"]) == ([[1]], False, None)
    summary = shown["runs"][0]["outcome"]["summary"]
    assert summary == shown["messages"][-1]["content"]
    assert "- remember" in summary


@pytest.mark.one_backend
def test_a_link_is_revoked_expires_and_goes_with_its_conversation(serve: Any) -> None:
    running = serve(SCRIPT[2:])
    thread = running.answer("How many?")["thread_id"]
    path = f"/api/conversations/{thread}/shares"
    first, second = share(running, thread), share(running, thread, ttl_seconds=3600)
    listed = running.client.get(path)
    assert [each["id"] for each in listed.json()["shares"]] == [first["id"], second["id"]]
    assert first["token"] not in listed.text
    assert running.client.delete(f"{path}/{first['id']}").status_code == 204
    assert refused(seen(running, first))
    assert refused(running.client.delete(f"{path}/{first['id']}"))
    assert seen(running, second).status_code == 200
    running.client.delete(f"/api/conversations/{thread}", params={"undo_seconds": 3600})
    assert refused(seen(running, second))
    running.client.post(f"/api/conversations/{thread}/restore")
    assert seen(running, second).status_code == 200
    running.client.delete(f"/api/conversations/{thread}")
    assert refused(seen(running, second))
    for token in ("x", "%00"[:1], "..%2F..", "%F0%9F", "a" * 5000):
        assert running.client.get(f"/api/shared/{token}").status_code == 404


@pytest.mark.one_backend
@pytest.mark.parametrize("error", [StoreError(reason="It is down."), RuntimeError("A flaw.")])
def test_no_log_has_the_token_of_a_link(
    serve: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def broken(*args: object) -> None:
        raise error

    running = serve(SCRIPT)
    link = share(running, running.answer("How many rockets?")["thread_id"])
    with caplog.at_level(logging.INFO), monkeypatch.context() as patched:
        patched.setattr("longthread.store.share_links.find", broken)
        assert running.client.get(link["path"]).status_code in {200, 503}  # a page that is not built
        assert seen(running, link).status_code >= 500
    own = [each for each in caplog.records if not each.name.startswith("http")]  # those are the client's
    told = [form.format(each) for each in own for form in (logging.Formatter(), JsonFormatter())]
    assert any("GET /api/shared/{token}" in each for each in told)
    assert not any(link["token"] in each for each in told)


@pytest.mark.one_backend
def test_pages_lead_back_and_to_no_other_branch(serve: Any) -> None:
    running = serve(lambda messages: {"finish": "Yes."})
    thread = running.answer("One?")["thread_id"]
    running.answer("Two?", thread_id=thread)
    link = share(running, thread)
    last = seen(running, link, limit=1).json()
    assert [each["content"] for each in last["messages"]] == ["Two?", "Yes."]
    earlier = seen(running, link, limit=1, before=last["before"]).json()
    assert [each["content"] for each in earlier["messages"]] == ["One?", "Yes."]
    first = earlier["messages"][0]["id"]
    edited = running.client.post(f"/api/conversations/{thread}/messages/{first}/edit", json={"question": "Other?"})
    assert running.client.get(edited.json()["events"]).status_code == 200
    running.answer("Beyond?", thread_id=thread)
    beyond = running.history(thread, limit=1)["before"]
    for cursor in (beyond, "x", "", "%00"):
        answer = seen(running, link, before=cursor)
        assert (answer.status_code, answer.json()["code"]) == (404, "cursor_unknown"), cursor
    assert [each["content"] for each in seen(running, link).json()["messages"]] == ["One?", "Yes.", "Two?", "Yes."]


def test_a_link_shows_what_was_shared_whatever_comes_later(serve: Any) -> None:
    """Also while it comes. The SQL, the answers and the questions of other branches are not for those who read."""
    scripts = iter([[LIST, COUNT, {"finish": "**41** [q1]."}], [COUNT, {"finish": "A canary."}]])
    script: list[Any] = []

    def play(messages: list[Any]) -> Any:
        if not script:
            script.extend(next(scripts, [{"finish": "Another canary."}]))
        return script.pop(0)

    running = serve(play)
    asked = running.answer("How many rockets?")
    thread, path = asked["thread_id"], f"/api/conversations/{asked['thread_id']}"
    question, answer = (each["id"] for each in running.history(thread)["messages"])
    link = share(running, thread)
    shown = seen(running, link).json()
    assert [run["id"] for run in shown["runs"]] == [asked["run_id"]]
    step = shown["steps"][asked["run_id"]][-1]["step"]
    edited = running.client.post(f"{path}/steps/{step}/edit", json={"sql": "SELECT 'canary' AS canary"})
    assert edited.status_code == 201, edited.text
    assert seen(running, link).json() == shown
    running.model.shut.set()
    again = running.client.post(f"{path}/messages/{question}/again").json()
    assert seen(running, link).json() == shown, "while it is answered"
    running.model.shut.clear()
    assert running.client.get(again["events"]).status_code == 200
    assert seen(running, link).json() == shown
    second = share(running, thread)
    shown_then = seen(running, second).json()
    assert [run["id"] for run in shown_then["runs"]] == [again["run_id"]]
    assert running.client.put(f"{path}/branch", json={"message": answer}).status_code == 200
    assert seen(running, second).json() == shown_then, "the owner has gone back to the first answer"
    running.client.get(
        running.client.post(f"{path}/messages/{question}/edit", json={"question": "Canary?"}).json()["events"]
    )
    running.answer("A later canary?", thread_id=thread)
    assert running.client.patch(path, json={"label": "Rockets"}).status_code == 200
    shown, shown_then = ({**each, "label": "Rockets"} for each in (shown, shown_then))
    assert (seen(running, link).json(), seen(running, second).json()) == (shown, shown_then)


def test_a_link_shows_a_run_that_did_not_end_well_as_it_was(serve: Any) -> None:
    """Where its question is the last message, too; and of two such runs the one that was shown."""

    def play(messages: list[Any]) -> Any:
        if not answers:
            raise RuntimeError("The provider is down.")
        return answers.pop(0)

    answers: list[Any] = []
    running = serve(play, retry_attempts=0)
    asked = running.answer("How many rockets?", max_steps=1)
    thread = asked["thread_id"]
    path, question = f"/api/conversations/{thread}", running.history(thread)["messages"][0]["id"]
    links = [share(running, thread)]
    again = running.client.post(f"{path}/messages/{question}/again", json={"max_steps": 1}).json()
    running.client.get(again["events"])
    links.append(share(running, thread))
    shown = [seen(running, link).json() for link in links]
    for each, run in zip(shown, (asked, again), strict=True):
        assert [(run["id"], run["status"]) for run in each["runs"]] == [(run["run_id"], "failed")]
        assert [(message["content"], message["run_id"]) for message in each["messages"]] == [
            ("How many rockets?", run["run_id"])
        ]
    answers += [COUNT, {"finish": "I stop here."}]
    paused = running.client.post(f"{path}/messages/{question}/again", json={"max_steps": 1}).json()
    running.client.get(paused["events"])
    links.append(share(running, thread))
    shown.append(seen(running, links[-1]).json())
    assert [run["status"] for run in shown[-1]["runs"]] == ["paused"]
    answers[:] = [COUNT, {"finish": "**41** [q1]."}]
    running.client.get(running.client.post(f"{path}/resume").json()["events"])
    assert [run["status"] for run in running.history(thread)["runs"]] == ["paused", "finished"]
    assert [seen(running, link).json() for link in links] == shown


@pytest.mark.one_backend
def test_a_link_shows_no_later_version_of_a_message_and_nothing_once_its_end_is_forgotten(
    serve: Any, store_address: str
) -> None:
    """An application changes a message in its place, and forgets another."""
    talked(store_address, "t")
    running = serve(["never asked"])
    link = share(running, "t")
    shown = seen(running, link).json()
    first, *_, last = shown["messages"]
    with LongthreadSaver.from_conn_string(store_address) as saver:
        agent = create_agent(ScriptedChatModel(["x"]), [], checkpointer=saver)
        changed = {"messages": [HumanMessage("A canary?", id=first["id"])]}
        agent.update_state({"configurable": {"thread_id": "t"}}, changed)
        assert running.history("t")["messages"][0]["content"] == "A canary?"
        assert seen(running, link).json() == {**shown, "label": "A canary?"}, "the title is the present one"
        saver.forget_message("t", last["id"])
    assert refused(seen(running, link))


@pytest.mark.one_backend
def test_what_is_under_way_or_wrong_is_not_shared(serve: Any) -> None:
    running = serve(lambda messages: {"finish": "Yes."})
    running.model.shut.set()
    asked = running.ask("How many?")
    path = f"/api/conversations/{asked['thread_id']}/shares"
    busy = running.client.post(path)
    assert (busy.status_code, busy.json()["code"]) == (409, "run_in_progress")
    running.model.shut.clear()
    assert running.client.get(asked["events"]).status_code == 200
    for body in (
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "9999-12-31T23:59:59-23:59"},
        {"expires_at": 7},
        {"ttl_seconds": 0},
        {"ttl_seconds": 10**400},
        {"ttl_seconds": 1, "expires_at": None},
        {"more": 1},
        [],
    ):
        answer = running.client.post(path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), body
    assert running.client.get(path).json() == {"shares": []}

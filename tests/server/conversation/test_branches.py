"""Branches of a conversation: questions edited and asked again, and the branch that is chosen."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define_clerk, orphaned, talked

from longthread.context.forks import Fork

pytestmark = pytest.mark.one_backend


def said(running: Any, thread: str) -> list[str]:
    return [message["content"] for message in running.history(thread)["messages"]]


def echo(messages: Any) -> Any:
    """Answers with how many messages the model saw, and the last one."""
    seen = [message for message in messages if message.type == "human"]
    return {"finish": f"{len(seen)}: {seen[-1].content}"}


def edit(running: Any, thread: str, message: str, question: str, **headers: str) -> Any:
    path = f"/api/conversations/{thread}/messages/{message}/edit"
    return running.client.post(path, json={"question": question}, headers=headers)


def again(running: Any, thread: str, message: str) -> Any:
    return running.client.post(f"/api/conversations/{thread}/messages/{message}/again")


def watched(running: Any, answer: Any) -> dict[str, str]:
    """Wait until a run has ended that an answer tells of."""
    assert answer.status_code == 202, answer.text
    asked: dict[str, str] = answer.json()
    assert running.client.get(asked["events"]).status_code == 200
    return asked


def choose(running: Any, thread: str, message: str) -> Any:
    return running.client.put(f"/api/conversations/{thread}/branch", json={"message": message})


def test_a_question_is_edited_and_what_was_there_stays(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    for question in ("b", "c"):
        running.answer(question, thread_id=thread)
    first = running.history(thread)["messages"]
    asked = watched(running, edit(running, thread, first[2]["id"], "B"))
    shown = running.history(thread)
    assert [message["content"] for message in shown["messages"]] == ["a", "1: a", "B", "2: B"]
    assert [run["id"] for run in shown["runs"]] == [first[0]["run_id"], asked["run_id"]]
    b, edited = first[2]["id"], shown["messages"][2]["id"]
    assert shown["messages"][2]["siblings"] == {"ids": [b, edited], "shown": 1}
    assert shown["messages"][3]["siblings"]["shown"] == 0
    other = running.client.get("/api/chat/history", params={"thread_id": thread, "at": first[3]["id"]}).json()
    assert [message["content"] for message in other["messages"]] == ["a", "1: a", "b", "2: b", "c", "3: c"]
    assert other["at"] == {"message": first[3]["id"], "chosen": False}
    assert other["messages"][2]["siblings"]["shown"] == 0
    assert other["run"]["id"] == first[5]["run_id"]
    assert running.history(thread) == shown, "to look at a branch does not choose it"
    here = running.client.get(
        "/api/chat/history", params={"thread_id": thread, "at": first[1]["id"], "limit": 1}
    ).json()
    assert here["at"] == {"message": first[1]["id"], "chosen": True}
    assert running.client.get("/api/chat/history", params={"thread_id": thread, "at": "x"}).status_code == 404
    assert choose(running, thread, b).json()["thread_id"] == thread
    assert said(running, thread) == ["a", "1: a", "b", "2: b", "c", "3: c"]
    assert running.history(thread)["messages"][2]["siblings"] == {"ids": [b, edited], "shown": 0}
    running.answer("d", thread_id=thread)
    assert said(running, thread)[-2:] == ["d", "4: d"]


def test_the_first_question_is_edited(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    running.answer("b", thread_id=thread)
    first = running.history(thread)["messages"]
    watched(running, edit(running, thread, first[0]["id"], "A"))
    assert said(running, thread) == ["A", "1: A"]
    shown = running.history(thread)["messages"][0]
    assert shown["siblings"] == {"ids": [first[0]["id"], shown["id"]], "shown": 1}


def test_a_question_is_answered_again_and_has_two_answers(serve: Any) -> None:
    running = serve([{"thought": "Look.", "action": "list_tables"}, {"finish": "One."}, {"finish": "Two."}])
    asked = running.answer("How many?")
    thread, first = asked["thread_id"], running.history(asked["thread_id"])
    question, answer = first["messages"]
    second = watched(running, again(running, thread, answer["id"]))
    shown = running.history(thread)
    assert [message["content"] for message in shown["messages"]] == ["How many?", "Two."]
    assert shown["messages"][0]["id"] == question["id"], "the question is the same"
    assert [message["run_id"] for message in shown["messages"]] == [second["run_id"]] * 2
    assert [run["id"] for run in shown["runs"]] == [second["run_id"]]
    assert shown["runs"][0]["question"] == "How many?"
    answers = shown["messages"][0]["answers"]
    assert (len(answers["ids"]), answers["shown"]) == (2, 1)
    assert shown["messages"][1]["siblings"] == answers
    choose(running, thread, answers["ids"][0])
    back = running.history(thread)
    assert [message["content"] for message in back["messages"]] == ["How many?", "One."]
    assert back["run"]["id"] == asked["run_id"]
    assert [step["action"] for step in back["steps"][asked["run_id"]]] == ["list_tables"]
    assert back["messages"][0]["answers"]["shown"] == 0


def test_each_fork_keeps_what_was_chosen_there(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    running.answer("b", thread_id=thread)
    a, _, b, _ = (message["id"] for message in running.history(thread)["messages"])
    watched(running, edit(running, thread, b, "B"))
    choose(running, thread, b)  # the older one, below
    watched(running, edit(running, thread, a, "A"))
    assert said(running, thread) == ["A", "1: A"]
    choose(running, thread, a)
    assert said(running, thread) == ["a", "1: a", "b", "2: b"]


def test_a_branch_is_not_left_while_a_run_works_on_it(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    message = running.history(thread)["messages"][0]["id"]
    running.model.shut.set()
    asked = running.ask("b", thread_id=thread)
    for refused in (
        choose(running, thread, message),
        edit(running, thread, message, "A"),
        again(running, thread, message),
    ):
        assert (refused.status_code, refused.json()["code"]) == (409, "run_in_progress")
    running.model.shut.clear()
    assert running.client.get(asked["events"]).status_code == 200
    assert said(running, thread) == ["a", "1: a", "b", "2: b"]


def test_an_edit_ends_a_run_that_waits_for_approval(serve: Any, store_address: str) -> None:
    define_clerk(store_address)
    mail = [{"thought": "", "action": "send_mail", "args": {"to": "ada"}}]
    running = serve([mail, {"finish": "Nobody was told."}, {"finish": "Yes."}])
    asked = running.answer("Write to Ada.", agent="clerk")
    thread, question = asked["thread_id"], running.history(asked["thread_id"])["messages"][0]["id"]
    assert choose(running, thread, question).json()["code"] == "run_waiting"
    watched(running, edit(running, thread, question, "Write to nobody."))
    assert said(running, thread) == ["Write to nobody.", "Nobody was told."]
    assert running.client.get(f"/api/conversations/{thread}/approvals").json()["pending"] == []
    choose(running, thread, question)
    run = running.history(thread)["run"]
    assert (run["id"], run["status"], run["outcome"]["reason"]) == (asked["run_id"], "paused", "superseded")
    running.answer("Is it there?", thread_id=thread)
    assert said(running, thread) == ["Write to Ada.", "Is it there?", "Yes."]


def test_of_two_edits_at_once_one_is_written(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    message = running.history(thread)["messages"][0]["id"]
    running.model.shut.set()
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda text: edit(running, thread, message, text), ["A", "B"]))
    running.model.shut.clear()
    assert sorted(answer.status_code for answer in made) == [202, 409]
    watched(running, next(answer for answer in made if answer.status_code == 202))
    assert len(running.history(thread)["messages"][0]["siblings"]["ids"]) == 2


def test_an_edit_that_is_sent_again_under_its_key_is_one(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    message = running.history(thread)["messages"][0]["id"]
    first, second = (watched(running, edit(running, thread, message, "A", **{"Idempotency-Key": "k"})) for _ in "12")
    assert first == second
    assert len(running.history(thread)["messages"][0]["siblings"]["ids"]) == 2
    assert edit(running, thread, message, "other", **{"Idempotency-Key": "k"}).json()["code"] == "key_reused"


def test_what_is_no_question_is_not_edited_and_nothing_changes(serve: Any) -> None:
    running = serve(echo)
    thread = running.answer("a")["thread_id"]
    answer = running.history(thread)["messages"][1]["id"]
    refused = edit(running, thread, answer, "A")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_a_question")
    for nothing in (edit(running, thread, "x", "A"), again(running, thread, "x"), choose(running, thread, "x")):
        assert (nothing.status_code, nothing.json()["code"]) == (404, "entry_not_found")
    for nothing in (edit(running, "x", answer, "A"), again(running, "x", answer), choose(running, "x", answer)):
        assert (nothing.status_code, nothing.json()["code"]) == (404, "thread_not_found")
    assert said(running, thread) == ["a", "1: a"]


def test_a_run_that_continues_is_answered_again(serve: Any) -> None:
    running = serve([{"thought": "Look.", "action": "list_tables"}, {"finish": "One."}, {"finish": "Two."}])
    asked = running.answer("How many?", max_steps=1)
    thread = asked["thread_id"]
    assert running.history(thread)["run"]["status"] == "paused"
    watched(running, running.client.post(f"/api/conversations/{thread}/resume"))
    first = running.history(thread)
    watched(running, again(running, thread, first["messages"][-1]["id"]))
    shown = running.history(thread)
    assert [message["content"] for message in shown["messages"][2:]] == ["continue", "Two."]
    assert (shown["run"]["question"], shown["run"]["continues"]) == ("How many?", asked["run_id"])


def test_a_paused_branch_is_continued_after_another_one_was_finished(serve: Any) -> None:
    running = serve([{"thought": "Look.", "action": "list_tables"}, {"finish": "A."}, {"finish": "One."}])
    asked = running.answer("How many?", max_steps=1)
    thread = asked["thread_id"]
    question = running.history(thread)["messages"][0]["id"]
    watched(running, edit(running, thread, question, "Another?"))
    assert said(running, thread) == ["Another?", "A."]
    choose(running, thread, question)
    assert running.history(thread)["run"]["status"] == "paused"
    watched(running, running.client.post(f"/api/conversations/{thread}/resume"))
    shown = running.history(thread)
    assert (said(running, thread)[-1], shown["run"]["continues"]) == ("One.", asked["run_id"])


def test_another_process_goes_on_with_a_second_answer(
    serve: Any, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve(echo)
    running.answer("How many?", thread_id="t1")
    question = running.history("t1")["messages"][0]["id"]
    run = orphaned(store_address, monkeypatch, place=Fork(question, again=True))
    assert running.client.get(f"/api/conversations/t1/runs/{run}/events").status_code == 200
    shown = running.history("t1")
    assert [message["run_id"] for message in shown["messages"]] == [run, run]
    assert shown["messages"][0]["answers"]["shown"] == 1


def test_a_branch_that_is_looked_at_has_its_own_last_run(
    serve: Any, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serve(echo)
    asked = [running.answer(question, thread_id="t1")["run_id"] for question in ("a", "b")]
    second = running.history("t1")["messages"][2]["id"]
    live = orphaned(store_address, monkeypatch, claimable=False, place=Fork(second))
    assert running.history("t1")["run"]["id"] == live
    looked = running.client.get("/api/chat/history", params={"thread_id": "t1", "at": second}).json()
    assert [run["id"] for run in looked["runs"]] == asked
    assert looked["run"]["id"] == asked[1]


def test_an_applications_thread_is_left_as_it_is(serve: Any, store_address: str) -> None:
    talked(store_address, "app")
    running = serve(echo)
    messages = running.history("app")["messages"]
    assert all(message["siblings"]["shown"] == 0 for message in messages)
    assert choose(running, "app", messages[0]["id"]).json()["code"] == "not_supported"


def test_a_branch_asks_the_source_that_its_question_asked(serve: Any, tmp_path: Path) -> None:
    running = serve(echo)
    other = tmp_path / "cups.csv"
    other.write_text("shop,cups\na,1\n")
    thread = running.answer("a")["thread_id"]
    running.answer("b", thread_id=thread, source=str(other))
    first = running.history(thread)
    assert [run["source"] for run in first["runs"]] == ["demo", str(other)]
    for fork in (
        lambda: again(running, thread, first["messages"][1]["id"]),
        lambda: edit(running, thread, first["messages"][0]["id"], "A"),
    ):
        watched(running, fork())
        shown = running.history(thread)
        assert [run["source"] for run in shown["runs"]] == [shown["source"]] == ["demo"]
    choose(running, thread, first["messages"][3]["id"])
    assert running.history(thread)["source"] == str(other)
    running.answer("c", thread_id=thread)
    assert running.history(thread)["run"]["source"] == str(other)

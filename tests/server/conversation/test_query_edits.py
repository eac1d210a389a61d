"""A query that a person has edited runs through the guard, as another branch of the question."""

from __future__ import annotations

from typing import Any

SQL = "SELECT name FROM sites ORDER BY name LIMIT 2"
COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": SQL}}


def asked(running: Any) -> tuple[str, str, int]:
    done = running.answer("Which sites?")
    [step] = running.history(done["thread_id"])["steps"][done["run_id"]]
    return done["thread_id"], done["run_id"], step["step"]


def edit(running: Any, thread: str, step: int, sql: str) -> Any:
    return running.client.post(f"/api/conversations/{thread}/steps/{step}/edit", json={"sql": sql})


def test_an_edited_query_is_a_branch_with_its_result_and_whose_edit_it_was(serve: Any) -> None:
    running = serve([COUNT, {"finish": "Two [q1]."}, {"finish": "Fine."}], user="ada")
    thread, run, step = asked(running)
    before = running.history(thread)["messages"]
    made = edit(running, thread, step, "SELECT count(*) AS n FROM sites")
    assert made.status_code == 201, made.text
    edited = made.json()
    assert edited["step"]["observation"]["data"]["columns"] == ["n"]
    shown = running.history(thread)
    assert [message["id"] for message in shown["messages"]] == [before[0]["id"]], "the question stays"
    assert shown["messages"][0]["answers"]["shown"] == 1
    assert (shown["run"]["id"], shown["run"]["edited_by"], shown["run"]["status"]) == (
        edited["run_id"],
        "ada",
        "finished",
    )
    assert shown["run"]["question"] == "Which sites?"
    [call] = shown["steps"][edited["run_id"]]
    assert (call["action"], call["args"]) == ("run_sql", {"sql": "SELECT count(*) AS n FROM sites"})
    assert call["observation"]["data"]["query"] == "q1", "labels count on the branch"
    result = running.client.get(f"/api/conversations/{thread}/steps/{call['step']}/result").json()
    assert (result["columns"], len(result["rows"])) == (["n"], 1)
    running.answer("And now?", thread_id=thread)
    assert [message["content"] for message in running.history(thread)["messages"]] == [
        "Which sites?",
        "And now?",
        "Fine.",
    ]
    first = shown["messages"][0]["answers"]["ids"][0]
    running.client.put(f"/api/conversations/{thread}/branch", json={"message": first})
    back = running.history(thread)
    assert [message["content"] for message in back["messages"]] == ["Which sites?", "Two [q1]."]
    assert (back["run"]["id"], back["run"]["edited_by"]) == (run, None)


def test_a_query_that_is_tried_is_run_and_not_written(serve: Any) -> None:
    running = serve([COUNT, {"finish": "Two [q1]."}, {"finish": "Fine."}])
    thread, _, step = asked(running)
    running.answer("And now?", thread_id=thread)
    before = running.history(thread)
    path = f"/api/conversations/{thread}/steps/{step}/try"
    made = running.client.post(path, json={"sql": "SELECT count(*) AS n, '上海' AS 城市 FROM sites"})
    assert made.status_code == 200, made.text
    tried = made.json()["step"]
    assert (tried["step"], tried["ok"], tried["status"]) == (None, True, "done")
    data = tried["observation"]["data"]
    assert (data["query"], data["columns"], len(data["rows"]), data["rows"][0][1]) == ("q1", ["n", "城市"], 1, "上海")
    for sql, code in (("DELETE FROM sites", "sql_refused"), ("SELECT nothing FROM sites", "unknown_column")):
        refused = running.client.post(path, json={"sql": sql})
        assert (refused.status_code, refused.json()["code"]) == (409, code)
    missing = running.client.post(f"/api/conversations/{thread}/steps/0/try", json={"sql": SQL})
    assert missing.json()["code"] == "entry_not_found"
    assert running.history(thread) == before
    usage = running.client.get(f"/api/conversations/{thread}/usage").json()
    assert usage["tool_calls"] == 1


def test_the_next_question_sees_the_edited_query(serve: Any) -> None:
    seen: list[list[str]] = []

    def model(messages: Any) -> Any:
        seen.append([str(message.content) for message in messages])
        return COUNT if len(seen) == 1 else {"finish": "Fine."}

    running = serve(model)
    thread, _, step = asked(running)
    assert edit(running, thread, step, "SELECT 40 + 2 AS n").status_code == 201
    running.answer("And now?", thread_id=thread)
    assert any('"rows":[[42]]' in text and "The user edited this query" in text for text in seen[-1])


def test_an_edit_that_is_refused_changes_nothing(serve: Any) -> None:
    running = serve([COUNT, {"finish": "Two [q1]."}])
    thread, _, step = asked(running)
    before = running.history(thread)
    for sql, code in (
        ("DELETE FROM sites", "sql_refused"),
        ("SELECT nothing FROM sites", "unknown_column"),
        ("SELECT * FROM nowhere", "unknown_table"),
    ):
        refused = edit(running, thread, step, sql)
        assert (refused.status_code, refused.json()["code"]) == (409, code)
    assert edit(running, thread, 0, SQL).json()["code"] == "entry_not_found"
    assert running.history(thread) == before
    running.model.shut.set()
    working = running.ask("And now?", thread_id=thread)
    assert edit(running, thread, step, SQL).json()["code"] == "run_in_progress"
    running.model.shut.clear()
    assert running.client.get(working["events"]).status_code == 200

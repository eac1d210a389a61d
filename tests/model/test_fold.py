"""State as a fold of entries: document 000's fields."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from longthread.model.entry import Entry, Role, ToolCall
from longthread.model.fold import Facts, facts_of, observation_of, state_of
from longthread.model.thread import title_of

FIELDS = [
    *("question", "messages", "steps", "known_tables", "known_schemas", "candidate_tables", "known_samples"),
    *("error_history", "sql_history", "last_error", "done", "answer", "max_steps"),
    *("compressed_summary", "compressed_message_count", "compressed_config_hash"),
]
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Thread:
    """Builds entries, one behind the other."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, role: Role, text: str, **more: Any) -> None:
        seq = len(self.entries) + 1
        entry = Entry(id=str(seq), role=role, text=text, seq=seq, parent_seq=seq - 1, created_at=AT, **more)
        self.entries.append(entry)

    def ask(self, text: str, *, fingerprint: str = "f1", source: str = "s") -> None:
        note = {"kind": "question", "source": source, "fingerprint": fingerprint, "max_steps": 12}
        self.add("user", text, metadata=note)

    def call(self, action: str, args: dict[str, Any], observation: Any, thought: str = "why") -> None:
        call = ToolCall(f"c{len(self.entries)}", action, args)
        self.add("assistant", thought, tool_calls=(call,))
        self.add("tool", json.dumps(observation), tool_call_id=call.id)

    def answer(self, text: str) -> None:
        self.add("assistant", text, metadata={"kind": "answer"})


def explored() -> Thread:
    thread = Thread()
    thread.ask("运载火箭有哪些？")
    thread.call("list_tables", {}, {"ok": True, "data": {"tables": ["rockets", "sites"], "dialect": "sqlite"}})
    schema = {"table_name": "rockets", "columns": [{"name": "id", "type": "INTEGER"}]}
    thread.call("describe_table", {"table": "rockets"}, {"ok": True, "data": schema})
    rows = {"table_name": "rockets", "columns": ["id"], "rows": [[1]]}
    thread.call("sample_rows", {"table": "rockets"}, {"ok": True, "data": rows})
    thread.call("run_sql", {"sql": "SELECT nope"}, {"ok": False, "error": {"type": "sql_failed", "message": "no"}})
    thread.call("run_sql", {"sql": "SELECT 1"}, {"ok": True, "data": {"query": "q4", "rows": [[1]]}})
    thread.answer("长征五号 [q4]")
    return thread


def test_the_state_has_exactly_the_documented_fields() -> None:
    assert list(state_of([])) == FIELDS
    assert list(state_of(explored().entries)) == FIELDS


def test_the_state_of_an_answered_question() -> None:
    state = state_of(explored().entries)
    assert state["question"] == "运载火箭有哪些？"
    assert state["messages"] == [
        {"role": "user", "content": "运载火箭有哪些？"},
        {"role": "assistant", "content": "长征五号 [q4]"},
    ]
    assert [step["step_index"] for step in state["steps"]] == [0, 1, 2, 3, 4, 5]
    step = state["steps"][0]
    assert (step["step_type"], step["thought"], step["action"]) == ("action", "why", "list_tables")
    assert step["observation"]["data"]["tables"] == ["rockets", "sites"]
    assert step["timestamp"] == AT.isoformat()
    assert state["known_tables"] == ["rockets", "sites"]
    assert state["known_schemas"]["rockets"]["columns"][0]["name"] == "id"
    assert state["known_samples"]["rockets"]["rows"] == [[1]]
    assert state["candidate_tables"] == ["rockets"]
    assert [item["sql"] for item in state["sql_history"]] == ["SELECT nope", "SELECT 1"]
    assert [item["error"]["type"] for item in state["error_history"]] == ["sql_failed"]
    assert state["last_error"] is None, "it recovered"
    assert (state["done"], state["answer"], state["max_steps"]) == (True, {"ok": True, "data": "长征五号 [q4]"}, 12)
    assert json.loads(json.dumps(state)) == state


def test_a_new_question_starts_anew_but_keeps_what_is_known() -> None:
    thread = explored()
    thread.ask("And sites?")
    state = state_of(thread.entries)
    assert (state["question"], state["done"], state["answer"], state["last_error"]) == ("And sites?", False, None, None)
    assert state["candidate_tables"] == []
    assert state["known_tables"] == ["rockets", "sites"]
    assert len(state["error_history"]) == 1


def test_continue_is_no_new_question() -> None:
    thread = Thread()
    thread.ask("How many?")
    thread.add("assistant", "Progress …", metadata={"kind": "summary"})
    thread.add("user", "继续", metadata={"kind": "question", "continues": True})
    state = state_of(thread.entries)
    assert state["question"] == "How many?"
    assert [message["content"] for message in state["messages"]] == ["How many?", "Progress …", "继续"]


def test_facts_go_with_the_schema_that_they_are_about() -> None:
    thread = explored()
    thread.ask("Again", fingerprint="f2")
    state = state_of(thread.entries)
    assert (state["known_tables"], state["known_schemas"], state["known_samples"]) == ([], {}, {})
    assert len(state["sql_history"]) == 2


def test_facts_folded_in_two_parts_are_the_same_as_in_one() -> None:
    entries = explored().entries
    whole = facts_of(Facts(), entries)
    for cut in range(len(entries)):
        if entries[cut].role == "tool":
            continue  # a call and its result are folded together
        first = facts_of(Facts(), entries[:cut])
        second = facts_of(Facts.from_json(json.loads(json.dumps(first.to_json()))), entries[cut:])
        assert second == whole
    assert whole.queries == 4


def test_a_tables_name_is_a_text_and_nothing_else_is_learned() -> None:
    facts = Facts(dialect="sqlite", tables=["sites"], queries=4)
    listed = json.loads('{"tables": ["rockets", 1e400, null, ["a"], {"name": "b"}, 7, "sites", "rockets"]}')
    facts.learn("list_tables", {"ok": True, "data": listed})
    wanted = Facts(dialect="sqlite", tables=["sites", "rockets"], queries=4)
    assert facts == wanted
    for odd in (None, float("inf"), 7, "ghost"):
        data = {"dialect": None, "tables": odd, "about": odd, "columns": odd}
        facts.learn("list_tables", {"ok": True, "data": data})
    facts.learn("list_tables", {"ok": True, "data": {"tables": {"ghost": 1}, "about": [1], "columns": ["ghost"]}})
    for name in (None, float("inf"), 7, ["ghost"], {"ghost": 1}):
        for action in ("describe_table", "sample_rows"):
            facts.learn(action, {"ok": True, "data": {"table_name": name}})
    for label in (None, "", "q", "qx", "9", "q-9", float("inf"), ["q9"], "q" + "9" * 5000):
        facts.learn("run_sql", {"ok": True, "data": {"query": label}})
    assert facts == wanted
    facts.learn("run_sql", {"ok": True, "data": {"query": "q9"}})
    assert facts.queries == 9


def test_a_result_without_its_call_is_passed_over() -> None:
    thread = Thread()
    thread.ask("x")
    thread.add("tool", '{"ok": true, "data": {"tables": ["ghost"]}}', tool_call_id="gone")
    assert state_of(thread.entries)["known_tables"] == []


def test_a_result_that_is_no_json_is_text() -> None:
    for text in ("plain", "{", "NaN", '{"ok": true, "data": [Infinity]}', "Observation: -Infinity", "[" * 100_000):
        assert observation_of(text) == {"ok": True, "data": text}
    assert observation_of("Observation: [1]") == {"ok": True, "data": [1]}


def test_a_title_is_the_first_fifty_characters_on_one_line() -> None:
    assert title_of("  How\n many? ") == "How many?"
    assert len(title_of("运" * 80)) == 50


def test_what_is_said_without_a_kind_is_a_message_and_beside_a_call_a_thought() -> None:
    thread = Thread()
    thread.add("user", "How is the weather?")
    thread.call("weather", {}, "sunny", thought="I look.")
    thread.add("assistant", "")
    thread.add("assistant", "Sunny.")
    thread.add("assistant", "{", metadata={"kind": "malformed"})
    state = state_of(thread.entries)
    assert [each["content"] for each in state["messages"]] == ["How is the weather?", "Sunny."]
    assert [(step["action"], step["thought"]) for step in state["steps"]] == [("weather", "I look.")]


def recovered(*results: str, beside: bool = False, end: str | None = None) -> bool:
    """Whether a run has no last error after calls with these results, made one by one or beside each other."""
    thread = Thread()
    thread.ask("How many?")
    for n, text in enumerate(results):
        if not beside or n == 0:
            ids = [str(m) for m in range(len(results))] if beside else [str(n)]
            calls = [ToolCall(each, "run_sql", {"sql": each}) for each in ids]
            thread.add("assistant", "", tool_calls=calls)
        thread.add("tool", text, tool_call_id=str(n))
    if end is not None:
        thread.add("assistant", "So far.", metadata={"kind": end} if end else {})
    return state_of(thread.entries)["last_error"] is None


def test_the_last_error_is_none_once_the_run_has_recovered() -> None:
    good, bad = '{"ok": true, "data": 1}', '{"ok": false, "error": {"type": "sql_failed", "message": "x"}}'
    assert not recovered(bad)
    assert recovered(bad, good)
    assert not recovered(good, bad)
    assert not recovered(bad, good, bad)
    assert not recovered(bad, good, beside=True)
    assert recovered(bad, good, beside=True, end="answer")
    assert recovered(bad, end="answer")
    assert recovered(bad, end="")
    assert not recovered(bad, end="summary")

"""`longthread view` and `longthread eval context`, in process."""

from __future__ import annotations

import asyncio
import io
import json
import re
from pathlib import Path

import pytest
from langchain.agents import create_agent
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner, Result

from longthread.cli.app import app
from longthread.cli.commands.view import _ranges, _table
from longthread.errors import InvalidInput, LongthreadError, StoreReadOnly
from longthread.langgraph import LongthreadSaver, MemoryMiddleware
from longthread.testing import ScriptedChatModel
from longthread.view.items import ViewEntry
from longthread_evals.view_watch import watch

pytestmark = pytest.mark.one_backend


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("LONGTHREAD_MODEL", "demo")
    monkeypatch.chdir(tmp_path)
    return CliRunner()


def said(run: CliRunner, *arguments: str) -> Result:
    result = run.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result


def test_a_view_is_shown_with_what_each_message_cost(run: CliRunner) -> None:
    said(run, "ask", "How many rockets are there?", "--source", "demo")
    said(run, "ask", "有多少发射场？", "--thread", "last")
    table = said(run, "view", "last").stdout.splitlines()
    assert "tokens of messages, by estimate" in table[1]
    assert "goes on from the call before" in table
    rows = [line for line in table if " whole " in line]
    assert any("有多少发射场？" in row for row in rows)
    assert {cell_len(row) for row in rows} == {cell_len(rows[0])}
    assert "the first call" in said(run, "view", "last", "--call", "1").stdout


def test_messages_that_were_deleted_since_share_a_row_that_says_so() -> None:
    gone = [ViewEntry(seq, "", "whole", "pruned", 3, 0, "") for seq in (3, 4, 5)]
    there = ViewEntry(6, "user", "whole", None, 3, 7, "And now?")
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(_table([*gone, there], 60))
    deleted, shown = console.export_text().splitlines()[1:]
    assert deleted.split() == ["3-5", "3", "whole", "whole", "deleted", "since,", "by", "retention"]
    assert shown.split() == ["6", "user", "3", "whole", "whole", "7", "And", "now?"]


def test_a_view_as_json_says_it_all(run: CliRunner) -> None:
    said(run, "ask", "How many rockets are there?", "--source", "demo")
    first = json.loads(said(run, "view", "last", "--call", "1", "--json").stdout)
    last = json.loads(said(run, "view", "last", "--diff", "1", "--json").stdout)
    assert (first["call"], first["why_planned"]) == (1, "the first call")
    assert last["call"] == last["calls"] > 1
    assert last["tokens"] == sum(segment[3] for segment in last["segments"]) <= last["usage"]["budget"]
    assert [entry["tier"] for entry in last["entries"]] == [3] * len(last["entries"])
    assert last["entries"][0]["text"] == "How many rockets are there?"
    assert last["diff"]["same_tokens"] == first["tokens"]
    assert last["diff"]["entered"] == [entry["seq"] for entry in last["entries"][1:]]
    assert first["system"] == said(run, "view", "last", "--call", "1", "--prompt").stdout.rstrip("\n")
    assert first["system"].startswith("You are Longthread's analyst.")
    assert first["tools"][:4] == ["list_tables", "describe_table", "sample_rows", "run_sql"]
    text = said(run, "view", "last", "--diff", "1").stdout
    assert f"only here: 2-{len(last['entries'])}" in text


def test_a_call_that_is_not_there_is_told(run: CliRunner) -> None:
    said(run, "ask", "How many rockets are there?", "--source", "demo")
    result = run.invoke(app, ["view", "last", "--call", "99"])
    assert isinstance(result.exception, InvalidInput)
    assert isinstance(run.invoke(app, ["view", "nothing"]).exception, LongthreadError)


def application(address: str, turns: int, *, has_memory: bool = True) -> None:
    """A LangGraph application's thread `ada`, with some turns."""
    with LongthreadSaver.from_conn_string(address) as saver:
        reply = ScriptedChatModel(lambda messages: f"Yes, {len(messages)}. " + "And more. " * 40)
        memory = MemoryMiddleware(saver, memory_context_window=4_000, memory_enable_summary=False)
        agent = create_agent(reply, [], checkpointer=saver, middleware=[memory] if has_memory else [])
        for n in range(turns):
            text = f"问题 {n}: must the answer stay below {n}00? " + "word " * 50
            agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "ada"}})


def test_a_langgraph_applications_thread_shows_its_last_view(
    run: CliRunner, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", store_address)
    application(store_address, 22)
    shown = said(run, "view", "ada").stdout
    assert "The last view" in shown
    assert "A LangGraph application's" in shown
    assert re.search(r"43 +user +3 whole +whole +\d+ +问题 21", shown)
    assert "left out" in shown
    found = json.loads(said(run, "view", "ada", "--json").stdout)
    entries = found["entries"]
    assert (found["thread"], found["call"], entries[-1]["seq"]) == ("ada", None, 43)
    assert entries[0]["how"] == "summary"
    assert entries[0]["text"].startswith("[Conversation Summary]")
    assert "[Conversation Summary]" in shown
    assert {entry["how"] for entry in entries} >= {"summary", "left out", "whole"}
    assert found["usage"]["estimated_tokens"] >= sum(entry["tokens"] for entry in entries) > 0
    for option in (["--call", "1"], ["--diff", "1"], ["--prompt"]):
        assert "Leave out --call" in str(run.invoke(app, ["view", "ada", *option]).exception)


def test_a_langgraph_applications_thread_without_views_says_why(run: CliRunner, tmp_path: Path) -> None:
    application(str(tmp_path / "conversations.db"), 1, has_memory=False)
    result = run.invoke(app, ["view", "ada"])
    assert isinstance(result.exception, InvalidInput)
    assert "LangGraph application" in str(result.exception)
    assert "threads show ada" in str(result.exception)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_long_conversation_fits_its_window(run: CliRunner, language: str) -> None:
    done = said(run, "eval", "context", "--turns", "25", "--window", "12000", "--lang", language, "--seed", "3")
    found = json.loads(done.stdout.splitlines()[-1])
    assert list(found) == [
        *("turns", "calls", "max_view_tokens", "budget", "over_budget", "orphans"),
        *("prefix_reuse", "planted", "recalled", "in_view"),
    ]
    assert (found["turns"], found["planted"], found["over_budget"], found["orphans"]) == (25, 3, 0, 0)
    assert found["max_view_tokens"] <= found["budget"]
    assert 0.5 < found["prefix_reuse"] <= 1
    assert "Changed thinking blocks: 0." in done.stdout


def test_a_window_in_which_no_turn_ends_is_no_result(run: CliRunner, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"Turn 1 of the conversation did not end in an answer\."):
        asyncio.run(watch(tmp_path, count=2, window=1000, language="zh", seed=0))
    assert run.invoke(app, ["eval", "context", "--turns", "2", "--window", "4999"]).exit_code == 2


def test_a_conversation_is_measured_on_a_store_without_others(run: CliRunner, tmp_path: Path) -> None:
    application(str(tmp_path / "conversations.db"), 1, has_memory=False)
    for given in (["--database-url", str(tmp_path / "conversations.db")], ["-d", str(tmp_path / "conversations.db")]):
        refused = run.invoke(app, ["eval", "context", "--turns", "2", *given])
        assert isinstance(refused.exception, InvalidInput)
        assert "has conversations already" in str(refused.exception)
    assert said(run, "threads", "list").stdout.count("ada") == 1
    said(run, "eval", "context", "--turns", "1", "--database-url", str(tmp_path / "new.db"))


def test_a_conversation_is_not_measured_on_a_store_that_is_only_read(
    run: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(run, "db", "upgrade")
    monkeypatch.setenv("LONGTHREAD_READ_ONLY", "1")
    measures = ("eval", "context", "--turns", "1")
    refused = run.invoke(app, [*measures, "--database-url", str(tmp_path / "conversations.db")])
    assert isinstance(refused.exception, StoreReadOnly)
    assert not said(run, "threads", "list").stdout
    assert json.loads(said(run, *measures).stdout.splitlines()[-1])["turns"] == 1  # on a store of its own


def test_another_language_than_these_is_refused(run: CliRunner) -> None:
    assert isinstance(run.invoke(app, ["eval", "context", "--lang", "fr"]).exception, InvalidInput)


def test_messages_that_had_no_room_share_a_row(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "7000")
    monkeypatch.setenv("LLM_MAX_TOKENS", "500")
    for country in ("China", "Japan", "India", "France"):
        said(run, "ask", "How many launches per year?", "--source", "demo", *_thread(country))
    entries = json.loads(said(run, "view", "last", "--json").stdout)["entries"]
    assert sum(entry["how"] == "left out" for entry in entries) > 1
    assert re.search(r"\d+-\d+ +left out +no room", said(run, "view", "last").stdout)


def test_the_demo_model_does_nothing_twice_in_a_window_that_is_too_small(
    run: CliRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_CONTEXT_WINDOW", "7000")
    monkeypatch.setenv("LLM_MAX_TOKENS", "500")
    ends = []
    for question in ("How many launches per year?", "How many launches from China?", "Which missions failed?"):
        thread = ["--thread", "last"] if ends else []
        told = [
            json.loads(line)
            for line in said(run, "ask", question, "--source", "demo", "--json", *thread).stdout.splitlines()
        ]
        calls = [json.dumps([event["action"], event["args"]]) for event in told if event["type"] == "step_started"]
        assert len(set(calls)) == len(calls)
        ends.append(told[-1])
    assert [end["type"] for end in ends] == ["finished"] * 3
    assert "MEMORY_CONTEXT_WINDOW" in ends[1]["answer"]


def test_messages_behind_the_window_are_told_in_a_row(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "8")
    monkeypatch.setattr("longthread.memory.pruner.Pruner.keep_up", lambda *_, **__: None)
    for country in ("China", "Japan", "India", "France"):
        said(run, "ask", f"How many launches from {country}?", "--source", "demo", *_thread(country))
    shown = said(run, "view", "last").stdout
    assert re.search(r"1-\d+ +left out +no longer in the window", shown)


def test_numbers_are_told_as_ranges() -> None:
    assert _ranges([9, 3, 4, 5]) == "3-5, 9"


def test_the_summary_is_shown_with_its_topics(run: CliRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MAX_MESSAGES_PER_THREAD", "8")
    for country in ("China", "Japan", "India", "France"):
        said(run, "ask", f"How many launches from {country}?", "--source", "demo", *_thread(country))
    shown = said(run, "view", "last").stdout
    assert "1 summary" in shown
    text = shown[shown.rindex("[Conversation Summary]") :]
    assert "How many launches from China? → " in text
    assert "[Recallable Topics]: " in text
    first, second, *_ = json.loads(said(run, "view", "last", "--json").stdout)["entries"]
    assert (first["tier"], first["how"]) == (1, "summary")
    assert (first["first"], first["count"], second["seq"]) == (1, first["seq"], first["seq"] + 1)
    assert re.search(rf"1-{first['seq']} +user +1 summary", shown)
    assert f"In the place of {first['count']} messages, 1-{first['seq']}:" in shown
    state = json.loads(said(run, "state", "last").stdout)
    assert state["compressed_summary"] in first["text"]


def _thread(country: str) -> list[str]:
    return [] if country == "China" else ["--thread", "last"]

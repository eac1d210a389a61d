"""The commands, in process, with the demo model."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import LongthreadError

Run = Callable[..., Any]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A shop with five customers."""
    path = tmp_path / "shop.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT);
        INSERT INTO customers (name, country) VALUES
            ('Ada', 'UK'), ('Bob', 'UK'), ('李雷', 'China'), ('Ana', 'Brazil'), ('Eve', 'UK');
        """
    )
    connection.close()
    return str(path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command; with `code` it must end with that exit code."""
    monkeypatch.setenv("LONGTHREAD_DATA_DIR", str(tmp_path / "data"))
    for name in ("LONGTHREAD_MODEL", "LONGTHREAD_SOURCE", "LONGTHREAD_DATABASE", "LLM_BASE_URL", "API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run_(*args: str, code: int = 0, text: str | None = None) -> Any:
        result = CliRunner().invoke(app, args, input=text)
        ended = result.exception.exit_code if isinstance(result.exception, LongthreadError) else result.exit_code
        assert ended == code, f"{result.output}\n{result.exception!r}"
        return result

    return run_


def events(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_ask_prints_the_answer_on_stdout_and_the_steps_on_stderr(run: Run, shop: str) -> None:
    result = run("ask", "How many customers are there?", "--source", shop)
    assert "5" in result.stdout
    assert "[q1]" in result.stdout
    assert "SELECT" in result.stdout
    assert "Demo model" in result.stdout
    assert "list_tables" in result.stderr
    assert "list_tables" not in result.stdout


def test_json_prints_one_event_a_line_and_ends_with_how_the_run_ended(run: Run, shop: str) -> None:
    told = events(run("ask", "How many customers are there?", "--source", shop, "--json"))
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1))
    assert told[0]["type"] == "started"
    assert told[-1]["type"] == "finished"
    assert {"number": "5", "query": "q1"} in told[-1]["citations"]
    assert len({event["thread_id"] for event in told}) == 1


@pytest.mark.parametrize("protocol", ["auto", "native", "json"])
def test_a_follow_up_explores_nothing_again(run: Run, shop: str, protocol: str) -> None:
    run("ask", "How many customers are there per country?", "--source", shop, "--protocol", protocol)
    told = events(run("ask", "only in the UK", "--thread", "last", "--protocol", protocol, "--json"))
    actions = {event["action"] for event in told if event["type"] == "step_started"}
    assert actions == {"run_sql"}
    assert "3" in told[-1]["answer"]


def test_steps_used_up_pause_and_continue_finishes(run: Run, shop: str) -> None:
    paused = events(run("ask", "有多少客户？", "--source", shop, "--max-steps", "2", "--json", code=10))[-1]
    assert paused["type"] == "paused"
    assert "有多少客户？" in paused["summary"]
    finished = events(run("ask", "--thread", paused["thread_id"], "继续", "--json"))[-1]
    assert finished["type"] == "finished"
    assert "5" in finished["answer"]
    assert "演示模型" in finished["answer"]
    run("resume", "last", code=2)


def test_resume_goes_on_with_a_paused_run(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop, "--max-steps", "1", code=10)
    assert "5" in run("resume", "last").stdout


def test_a_question_may_come_from_standard_input(run: Run, shop: str) -> None:
    result = run("ask", "-", "--source", shop, text="How many customers are there?\n")
    assert "5" in result.stdout


def test_threads_are_listed_shown_searched_renamed_exported_and_deleted(run: Run, shop: str, tmp_path: Path) -> None:
    run("ask", "How many customers are there?", "--source", shop)
    run("ask", "有哪些客户？", "--source", shop)
    listed = events(run("threads", "list", "--json"))
    assert [thread["title"] for thread in listed] == ["有哪些客户？", "How many customers are there?"]
    assert "How many customers" in run("threads", "list").stdout
    newest, oldest = listed[0]["id"], listed[1]["id"]
    assert "李雷" in run("threads", "show", newest).stdout
    assert events(run("threads", "show", newest, "--json"))[0]["role"] == "user"
    assert [t["id"] for t in events(run("threads", "search", "客户", "--json"))] == [newest]
    run("threads", "rename", oldest, "Customers, counted")
    assert "Customers, counted" in run("threads", "list").stdout
    run("threads", "export", newest, "--to", "out.md")
    exported = (tmp_path / "out.md").read_text("utf-8")
    assert "## 有哪些客户？" in exported
    assert "```sql" in exported
    lines = run("threads", "export", newest, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    run("threads", "delete", newest, code=1, text="n\n")
    run("threads", "delete", newest, "--yes")
    assert [thread["id"] for thread in events(run("threads", "list", "--json"))] == [oldest]
    run("threads", "show", newest, code=2)


def test_state_has_the_documented_fields(run: Run, shop: str) -> None:
    run("ask", "How many customers are there?", "--source", shop)
    state = json.loads(run("state", "last").stdout)
    assert state["question"] == "How many customers are there?"
    assert state["done"] is True
    assert state["known_tables"] == ["customers"]
    assert state["sql_history"][0]["result"]["data"]["rows"] == [[5]]


def test_a_thread_is_found_by_the_beginning_of_its_id(run: Run, shop: str) -> None:
    for name in ("shop-one", "shop-two"):
        run("ask", "How many customers are there?", "--source", shop, "--thread", name)
    assert json.loads(run("state", "shop-o").stdout)["done"]
    for given, reason in (("shop", "Several threads"), ("nope", "no thread nope")):
        assert reason in str(run("state", given, code=2).exception)


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (("ask", "How many?"), 2, "--source demo"),
        (("ask", "  ", "--source", "SHOP"), 2, "empty"),
        (("ask", "How many?", "--source", "nowhere.sqlite"), 3, "There is no source at"),
        (("ask", "How many?", "--thread", "nope"), 2, "no thread nope"),
        (("ask", "How many?", "--source", "SHOP", "--protocol", "xml"), 2, "auto, native, json"),
        (("ask", "How many?", "--source", "SHOP", "--model", "openai:gpt-5"), 6, "OPENAI_API_KEY"),
        (("ask", "How many?", "--source", "SHOP", "--database", "SHOP"), 5, "another program's database"),
    ],
)
def test_bad_input_names_the_fix(
    run: Run, shop: str, args: tuple[str, ...], code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = run(*(shop if arg == "SHOP" else arg for arg in args), code=code)
    assert says in str(result.exception)


def test_doctor_says_what_works_and_what_does_not(run: Run, shop: str) -> None:
    good = run("doctor", "--source", shop).stdout
    assert "1 tables" in good
    assert "✗" not in good
    bad = run("doctor", "--source", "nowhere.sqlite", code=1).stdout
    assert "There is no source at" in bad


def test_chat_holds_a_conversation(run: Run, shop: str) -> None:
    result = run("chat", "--source", shop, text="How many customers are there?\n\nonly in the UK\n/quit\n")
    assert "5" in result.stdout
    assert "3" in result.stdout
    assert len(json.loads(run("state", "last").stdout)["messages"]) == 4


def test_a_source_given_by_a_relative_path_is_found_from_elsewhere(
    run: Run, shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("ask", "How many customers are there?", "--source", Path(shop).name)
    monkeypatch.setenv("LONGTHREAD_SOURCE", Path(shop).name)
    run("ask", "How many customers are there?", "--thread", "by-setting", "--source", Path(shop).name)
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    run("ask", "only in the UK", "--thread", "last")


def test_a_foreign_sqlite_file_is_not_taken_for_the_store(run: Run, shop: str) -> None:
    before = Path(shop).read_bytes()
    run("threads", "list", "--database", shop, code=5)
    assert Path(shop).read_bytes() == before

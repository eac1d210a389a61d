"""Conversations and memories of a server: commands print what they print of its store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.remote.conftest import Command, ServeProcess
from tests.cli.test_approve import DEFINITIONS

from longthread.errors import EntryNotFound, InvalidInput, MemoryNotFound, ThreadNotFound

pytestmark = pytest.mark.one_backend

Both = Callable[..., tuple[Any, Any]]


@pytest.fixture
def both(command: Command, serve: ServeProcess, store_address: str) -> Both:
    """Runs a command on the server, and on its store."""
    command("login", serve())

    def run(*args: str, code: int = 0) -> tuple[Any, Any]:
        return command(*args, code=code), command(*args, "--database", store_address, code=code)

    return run


@pytest.fixture
def asked(both: Both, command: Command) -> None:
    """Two conversations are there."""
    command("ask", "How many launches were there per year?", "-t", "years")
    command("ask", "How many rockets are there?", "-t", "rockets")


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def expect_part(there: Any, here: Any, lacks: set[str]) -> None:
    """What the server tells is what the store has, but for what it does not tell."""
    assert len(lines(there)) == len(lines(here)) > 0
    for told, kept in zip(lines(there), lines(here), strict=True):
        assert told == {name: value for name, value in kept.items() if name not in lacks}


def test_conversations_are_listed_as_those_of_the_store(both: Both, asked: None, command: Command) -> None:
    command("threads", "tag", "years", "weekly", "数据")
    command("threads", "pin", "years")
    command("threads", "metadata", "years", "team=data", "score=0.5")
    command("threads", "expire", "rockets", "30d")
    there, here = both("threads", "list")
    assert there.stdout == here.stdout and "rockets" in there.stdout
    lacks = {"user_id", "tip", "first_seq", "tool_categories", "titled"}
    expect_part(*both("threads", "list", "--json"), lacks)
    expect_part(*both("threads", "list", "--pinned", "--json"), lacks)
    expect_part(*both("threads", "list", "--tag", "数据", "--limit", "1", "--json"), lacks)
    command("threads", "archive", "rockets")
    there, here = both("threads", "list", "--archived")
    assert there.stdout == here.stdout and "rockets" in there.stdout
    assert [each["id"] for each in lines(command("threads", "search", "launches", "--json"))] == ["years"]
    command("threads", "unarchive", "rockets")
    command("threads", "unpin", "years")
    assert "no such conversations on this server" in command("threads", "list", "--pinned").stderr


def test_notes_are_changed_as_those_of_the_store(both: Both, asked: None, command: Command) -> None:
    assert command("threads", "tag", "years", "a", "b").stdout.split() == ["a", "b"]
    assert command("threads", "tag", "years", "c", "-r", "a").stdout.split() == ["b", "c"]
    assert lines(command("threads", "metadata", "years", "x=1", "y=z")) == [{"x": 1, "y": "z"}]
    assert lines(command("threads", "metadata", "years", "-r", "x")) == [{"y": "z"}]
    question = lines(command("threads", "show", "years", "--json"))[0]["id"]
    assert lines(command("threads", "metadata", "years", "by=ada", "--message", question)) == [{"by": "ada"}]
    command("threads", "expire", "years", "2030-05-08")
    command("threads", "rename", "years", "年度发射")
    for words in (
        ("threads", "tag", "years"),
        ("threads", "metadata", "years"),
        ("threads", "metadata", "years", "--message", question),
        ("threads", "expire", "years"),
        ("threads", "expire", "years", "--json"),
        ("state", "years"),
    ):
        there, here = both(*words)
        assert there.stdout == here.stdout and there.stdout
    assert "年度发射" in command("threads", "list").stdout
    command("threads", "expire", "years", "never")
    assert command("threads", "expire", "years").stdout == "never\n"
    failed = command("threads", "metadata", "years", "--message", "none", code=2)
    assert isinstance(failed.exception, EntryNotFound)


def test_a_conversation_is_shown_from_its_first_message_to_its_last(both: Both, asked: None, command: Command) -> None:
    for number in range(3):
        command("ask", f"How many launches were there in {2010 + number}?", "-t", "years")
    there, here = both("threads", "show", "years", "--json")
    of = [(each["role"], each["text"]) for each in lines(here) if each["role"] != "tool"]
    assert [(each["role"], each["text"]) for each in lines(there) if each["role"] != "tool"] == of
    calls = [[call["name"] for call in each["tool_calls"]] for each in lines(here) if each["tool_calls"]]
    assert [[call["name"] for call in each["tool_calls"]] for each in lines(there) if each["tool_calls"]] == calls
    there, here = both("threads", "show", "years")
    assert there.stdout.splitlines()[0] == here.stdout.splitlines()[0]
    assert there.stdout.count("› run_sql") == here.stdout.count("› run_sql") > 3
    assert "[q1]" in there.stdout


def test_a_conversation_is_deleted(both: Both, asked: None, command: Command) -> None:
    command("memories", "add", "The user likes rockets.")
    declined = command("threads", "delete", "years", code=1)
    assert "Delete" in declined.stderr
    command("threads", "delete", "years", "--yes")
    failed = both("threads", "show", "years", code=2)
    assert all(isinstance(each.exception, ThreadNotFound) for each in failed)
    assert [each["id"] for each in lines(command("threads", "list", "--json"))] == ["rockets"]


def test_memories_are_those_of_the_store(both: Both, command: Command) -> None:
    added = lines(command("memories", "add", "用户喜欢公制单位。", "--importance", "0.9", "--json"))[0]
    assert added["new"] is True
    assert lines(command("memories", "add", "用户喜欢公制单位。", "--json"))[0]["new"] is False
    command("memories", "add", "Reports are due on Monday.", "--type", "procedural", "--expires", "2031-01-02")
    for words in (
        ("memories", "list"),
        ("memories", "list", "--json"),
        ("memories", "list", "--type", "procedural"),
        ("memories", "search", "Monday"),
        ("memories", "show", added["id"]),
    ):
        there, here = both(*words)
        assert there.stdout == here.stdout and there.stdout
    command("memories", "edit", added["id"][:30], "The user prefers metric units.", "--expires", "2032-01-01")
    command("memories", "edit", added["id"], "--expires", "never")
    changed = lines(command("memories", "show", added["id"]))[0]
    assert (changed["content"], changed["expires_at"]) == ("The user prefers metric units.", None)
    assert "Nothing was found." in command("memories", "search", "penguins").stderr
    command("memories", "forget", added["id"], "--yes")
    for words in (("memories", "show", added["id"]), ("memories", "forget", "nothing", "--yes")):
        failed = both(*words, code=2)
        assert all(isinstance(each.exception, MemoryNotFound) for each in failed)
    assert all(isinstance(each.exception, InvalidInput) for each in both("memories", "list", "--type", "x", code=2))


def test_what_was_said_is_found_as_in_the_store(both: Both, asked: None, command: Command) -> None:
    command("ask", "中国有多少枚运载火箭？", "-t", "火箭")
    for words in (
        ("recall", "launches"),
        ("recall", "launches", "--json"),
        ("recall", "launches per year", "--thread", "yea", "-k", "2", "-C", "1", "--json"),
        ("recall", "运载火箭", "--json"),
        ("recall", "rockets", "--agent", "analyst", "--since", "1d", "--json"),
        ("recall", "rockets", "--until", "1d", "--json"),
    ):
        there, here = both(*words)
        assert there.stdout == here.stdout
        assert bool(there.stdout) == ("--until" not in words)
    assert all(isinstance(each.exception, ThreadNotFound) for each in both("recall", "x", "-t", "none", code=2))
    assert isinstance(command("recall", "x", "--user", "bob", code=2).exception, InvalidInput)


def test_what_may_be_asked_is_listed(both: Both, command: Command, store_address: str) -> None:
    Path("clerk.yaml").write_text(DEFINITIONS, encoding="utf-8")
    command("apply", "-f", "clerk.yaml", "--database", store_address)
    assert [each["name"] for each in lines(command("sources", "list", "--json"))] == ["demo"]
    assert command("sources", "list").stdout.startswith("demo\tconfigured\tdemo\t")
    assert {"analyst", "clerk"} <= {line.partition("\t")[0] for line in command("agents", "list").stdout.splitlines()}
    there, here = both("skills", "list")
    assert there.stdout == here.stdout and "send_mail" in there.stdout
    there, here = both("tools", "show", "send_mail")
    assert there.stdout.splitlines()[1:] == here.stdout.splitlines()[1:] and "approve: true" in there.stdout
    expect_part(*both("agents", "show", "clerk", "--json"), {"created_at"})
    both("agents", "show", "nobody", code=2)
    for words in (("sources", "show", "demo"), ("upstreams", "list"), ("agents", "show", "clerk", "--history")):
        assert isinstance(command(*words, code=2).exception, InvalidInput)


def test_files_are_those_of_the_store(both: Both, asked: None, command: Command) -> None:
    for words in (("threads", "export", "years", "--format", "md", "--details"), ("threads", "result", "years", "q2")):
        there, here = both(*words)
        assert there.stdout == here.stdout and len(there.stdout) > 200
    command("threads", "export", "years", "--to", "years.jsonl")
    assert "1 thread imported" in command("import", "years.jsonl", "--database", "other.db").output
    command("threads", "result", "years", "q2", "--to", "years.csv")
    assert Path("years.csv").read_text("utf-8-sig").startswith("year,launches_count")
    command("threads", "result", "years", "q2", "--to", "years.csv", code=2)
    assert "q2" in str(command("threads", "result", "years", "q99", code=2).exception)
    for words in (("threads", "export", "--all"), ("threads", "result", "years", "q2", "--stored")):
        assert isinstance(command(*words, code=2).exception, InvalidInput)

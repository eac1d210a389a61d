"""`longthread recall`, on both backends."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from rich.console import Console
from tests.memory.talking import say

from longthread.cli.commands import recall as module
from longthread.model.ids import new_id
from longthread.model.memory import ANALYST
from longthread.store import log
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread_testing.embedding import HashEmbedder

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def talks(run: Run, store_address: str) -> None:
    """Two conversations of the user `default`, one of them with another agent than the analyst, and one of Ann's."""

    async def talk() -> None:
        async with open_store(store_address) as store:
            mine = ["Which server is staging?", "The staging server is 10.1.2.3.", "好的", "And production?"]
            await say(store, mine, thread_id="servers", user_id="default")
            await say(store, ["Deploy to staging on Fridays.", "Noted."], thread_id="habits", user_id="default")
            await say(store, ["My staging password is secret."], thread_id="anns", user_id="ann")
            async with store.writing() as tx:
                await log.rename_thread(tx, "servers", "Our servers", user_id="default")
                await log.set_agent(tx, "servers", new_id())
                await tx.run(Sql("UPDATE entries SET created_at = '2026-03-01T10:00:00Z' WHERE thread_id = 'habits'"))

    asyncio.run(talk())


@pytest.mark.usefixtures("talks")
def test_all_conversations_of_the_user_are_searched(run: Run) -> None:
    found = lines(run("recall", "staging 10.1.2.3", "--json"))
    assert (found[0]["thread"], found[0]["title"], found[0]["entry"]) == ("servers", "Our servers", "servers-1")
    assert (found[0]["seq"], found[0]["role"], found[0]["active"]) == (2, "assistant", True)
    assert found[0]["text"] == "The staging server is 10.1.2.3."
    assert datetime.fromisoformat(found[0]["time"]).tzinfo
    assert {each["thread"] for each in found} == {"servers", "habits"}
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    first = run("recall", "staging 10.1.2.3").stdout.splitlines()[0].split("\t")
    assert (first[:3], first[4]) == (["servers", "servers-1", "assistant"], "The staging server is 10.1.2.3.")


@pytest.mark.usefixtures("talks")
def test_a_question_may_be_narrowed(run: Run) -> None:
    def threads(*more: str) -> set[str]:
        return {each["thread"] for each in lines(run("recall", "staging", "--json", *more))}

    assert threads() == {"servers", "habits"}
    assert threads("--thread", "servers") == threads("-t", "serv") == {"servers"}
    assert threads("--agent", "analyst") == threads("-a", ANALYST) == {"habits"}
    assert threads("--user", "ann") == {"anns"}
    assert threads("--until", "2026-04-01") == threads("--until", "2026-03-01T10:00:01Z") == {"habits"}
    assert threads("--since", "1d") == {"servers"}
    assert threads("--since", "2026-03-01T10:00:00Z", "--until", "2026-03-02") == {"habits"}
    assert threads("--since", "2026-03-01", "--until", "2026-03-01") == {"habits"}
    assert threads("--until", "2026-02-28") == set()
    assert len(lines(run("recall", "staging", "-k", "1", "--json"))) == 1
    [hit] = lines(run("recall", "10.1.2.3", "-k", "1", "--around", "1", "--json"))
    assert [each["text"] for each in hit["around"]] == ["Which server is staging?", "好的"]


def test_a_topic_is_enough(run: Run, store_address: str) -> None:
    async def talk() -> None:
        async with open_store(store_address) as store:
            await say(store, ["The pool is small.", "The sea is large."], user_id="default")

    asyncio.run(talk())
    assert lines(run("recall", "--topic", "pool", "--json"))[0]["text"] == "The pool is small."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "nothing to look for"),
        (["  "], "nothing to look for"),
        (["x", "--thread", "nowhere"], "no thread nowhere"),
        (["x", "--agent", "nobody"], "no agent nobody"),
        (["x", "--thread", "last", "--agent", "analyst"], "not both"),
        (["x", "--since", "yesterday"], "--since is 'yesterday'"),
        (["x", "--until", "99999999w"], "--until"),
        (["x", "--since", "2026-03-02", "--until", "2026-03-01"], "Nothing is from 2026-03-02"),
        (["x", "-k", "0"], ""),
        (["x", "-k", "101"], ""),
        (["x", "--thread", "anns"], "no thread anns"),
    ],
)
@pytest.mark.usefixtures("talks")
def test_what_cannot_be_asked_says_why(run: Run, words: list[str], says: str) -> None:
    assert says in str(run("recall", *words, code=2).exception)


@pytest.mark.usefixtures("talks")
def test_nothing_of_anothers_is_found_and_nothing_found_is_no_failure(run: Run) -> None:
    assert run("recall", "password secret", "--json").stdout == ""
    result = run("recall", "password secret")
    assert (result.stdout, result.stderr) == ("", "Nothing was found.\n")


@pytest.mark.usefixtures("talks")
def test_an_embedder_that_does_not_work_is_done_without(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(HashEmbedder):
        async def query(self, text: str) -> Any:
            raise ConnectionError("gone")

    monkeypatch.setattr("longthread.llm.embedders.embedder_of", lambda settings: Broken())
    result = run("recall", "staging 10.1.2.3", "--json")
    assert lines(result)[0]["entry"] == "servers-1"
    assert "keywords alone" in result.stderr


@pytest.mark.usefixtures("talks")
def test_conversations_without_vectors_are_told_with_what_makes_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = HashEmbedder()
    monkeypatch.setattr("longthread.llm.embedders.embedder_of", lambda settings, name=None: embedder)
    result = run("recall", "staging 10.1.2.3", "--thread", "servers")
    assert "One conversation has messages without vectors" in result.stderr and "longthread db index" in result.stderr
    run("db", "index")
    assert "without vectors" not in run("recall", "staging 10.1.2.3", "--thread", "servers").stderr


@pytest.mark.usefixtures("talks")
def test_on_a_terminal_a_conversation_is_a_heading(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(force_terminal=True, width=100, color_system="standard")
    monkeypatch.setattr(module, "Console", lambda: terminal)
    with terminal.capture() as shown:
        run("recall", "staging server", "--around", "1")
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown.get()).splitlines()
    assert plain[0] == "Our servers  servers"
    assert any(line.endswith("assistant  The staging server is 10.1.2.3.") for line in plain)
    assert "\x1b[1;33mstaging" in shown.get()
    # Hits that stand together are told in the order in which they were said, and each message once.
    told = [line.split("  ")[-1] for line in plain[1:5]]
    assert told == ["Which server is staging?", "The staging server is 10.1.2.3.", "好的", "And production?"]

"""`longthread memories` and `longthread forget`, on both backends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.contract.memories import kept
from tests.memory.canary import CANARY, in_files, marks, places
from tests.memory.talking import say

from longthread.langgraph import LongthreadStore
from longthread.memory.forget import delete_thread
from longthread.memory.user_memories import Memories
from longthread.model.memory import ANALYST, MemorySource, Origin, Statement
from longthread.store.memories import Owner
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]


def lines(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.new_database
def test_memories_are_added_listed_found_and_forgotten(run: Run, store_address: str) -> None:
    assert "Remembered" in run("memories", "add", f"The bird is {CANARY}.", "--expires", "30d").stdout
    [again] = lines(run("memories", "add", f"the bird is {CANARY}", "--importance", "0.9", "--json"))
    assert (again["new"], again["importance"]) == (False, 0.9)
    [same] = lines(run("memories", "add", f"the bird is {CANARY}", "--json"))
    assert same["expires_at"] == again["expires_at"] is not None
    assert (same["importance"], same["type"]) == (0.9, "semantic")
    run("memories", "add", "Deploys are done with make ship.", "--type", "procedural")
    assert [each["type"] for each in lines(run("memories", "list", "--json"))] == ["semantic", "procedural"]
    assert [each["type"] for each in lines(run("memories", "list", "--json", "--type", "procedural"))] == ["procedural"]
    assert f"\t{0.9}\tthe bird is {CANARY}" in run("memories", "list").stdout
    [found] = lines(run("memories", "search", "which bird?", "--json"))
    assert found["id"] == again["id"]
    assert again["id"] in run("memories", "search", "bird").stdout
    wanted = marks()
    assert places(store_address, wanted)
    run("memories", "forget", again["id"], text="n\n", code=1)
    assert again["id"] in run("memories", "forget", again["id"], "--yes").stdout
    assert places(store_address, wanted) == set()
    assert in_files(store_address, wanted) == set()
    assert len(lines(run("memories", "list", "--json"))) == 1


def test_the_beginning_of_an_id_is_enough_where_no_other_begins_so(run: Run) -> None:
    made = [lines(run("memories", "add", f"The bird {n} is blue.", "--json"))[0]["id"] for n in range(3)]
    unique = next(made[1][:n] for n in range(1, 37) if sum(each.startswith(made[1][:n]) for each in made) == 1)
    common = next(n for n in range(36, -1, -1) if sum(each.startswith(made[1][:n]) for each in made) > 1)
    for given in (unique, unique.upper(), made[1]):
        assert lines(run("memories", "show", given))[0]["id"] == made[1]
    assert "Several memories begin" in str(run("memories", "show", unique[:common], code=2).exception)
    for given in ("", " ", "%", "_" * 36, f"{made[1]}0"):
        run("memories", "forget", given, "--yes", code=2)
    run("memories", "forget", unique, "--yes")
    assert {each["id"] for each in lines(run("memories", "list", "--json"))} == {made[0], made[2]}
    run("memories", "show", unique, code=2)


def test_a_list_tells_until_when_a_memory_holds(run: Run) -> None:
    run("memories", "add", "The bird is blue.", "--expires", "2099-05-08T12:00:00+00:00")
    run("memories", "add", "The cat is grey.", "--importance", "0.1")
    ends = [line.split("\t")[3:] for line in run("memories", "list").stdout.splitlines()]
    assert ends == [["The bird is blue.", "2099-05-08T12:00:00+00:00"], ["The cat is grey.", ""]]


def test_a_memory_tells_where_it_comes_from(run: Run, store_address: str) -> None:
    async def tell() -> str:
        async with open_store(store_address) as store:
            await say(store, ["My bird is blue."], user_id="default")
            source = MemorySource("t", (1,), Origin("demo", ("run_sql q1",)))
            return (await kept(store, "The bird is blue.", owner=Owner("default", ANALYST), source=source)).id

    [told] = lines(run("memories", "show", asyncio.run(tell())))
    read = {"source": "demo", "results": ["run_sql q1"]}
    assert (told["thread"], told["sources"]) == ("t", [{"thread": "t", "seqs": [1], "read": read}])
    assert told["read"] == read
    assert run("memories", "list").stdout.rstrip().endswith("\tafter reading run_sql q1 of demo")


@pytest.mark.parametrize(
    "words",
    [
        ["memories", "add", "  "],
        ["memories", "add", "x", "--type", "working"],
        ["memories", "add", "x", "--importance", "2"],
        ["memories", "add", "x", "--expires", "soon"],
        ["memories", "forget", "none", "--yes"],
        ["memories", "show", "none"],
        ["memories", "show", ""],
        ["memories", "forget", " ", "--yes"],
        ["forget"],
        ["forget", "--user", "u", "--thread", "t"],
        ["forget", "--deleted", "--thread", "t"],
        ["forget", "--user", "u", "--deleted"],
        ["forget", "--thread", "none"],
        ["forget", "--user", " ", "--yes"],
    ],
)
def test_what_is_wrong_is_said(run: Run, words: list[str]) -> None:
    assert run(*words, code=2).exception


@pytest.mark.parametrize("words", [["show", ""], ["show", "  "], ["forget", "", "--yes"]])
def test_an_empty_id_says_what_to_give(run: Run, words: list[str]) -> None:
    assert "The memory's id is empty. Give it" in str(run("memories", *words, code=2).exception)


def test_one_user_sees_nothing_of_anothers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    [mine] = lines(run("memories", "add", f"The bird is {CANARY}.", "--json"))
    monkeypatch.setenv("LONGTHREAD_USER", "v")
    for words in (["list"], ["search", "bird"], ["list", "--json"]):
        assert CANARY not in run("memories", *words).output
    for words in (["show", mine["id"]], ["forget", mine["id"], "--yes"]):
        assert CANARY not in run("memories", *words, code=2).output
    monkeypatch.setenv("LONGTHREAD_USER", "default")
    assert CANARY in run("memories", "list").stdout


@pytest.mark.new_database
def test_items_go_with_a_user_and_are_told(run: Run, store_address: str) -> None:
    with LongthreadStore.from_conn_string(store_address, user_id="zoe") as items:
        items.put(("likes",), "a", {"text": "noodles"})
        items.put(("likes",), "b", {"text": "rice"})
    assert "Would forget: user zoe: 0 conversations, 2 items." in run("forget", "--user", "zoe", "--dry-run").stdout
    unanswered = run("forget", "--user", "zoe", text="", code=1)
    assert "give --yes" in unanswered.stderr
    assert "Forgotten: user zoe: 0 conversations, 2 items." in run("forget", "--user", "zoe", "--yes").stdout
    none = "No conversations, memories or items are kept of user zoe.\n"
    assert run("forget", "--user", "zoe", "--dry-run").stdout == none
    assert run("forget", "--user", "zoe", "--yes").stdout == none
    [told] = lines(run("forget", "--user", "zoe", "--yes", "--json"))
    assert (told["threads"], told["rows"]) == (0, {})


@pytest.mark.new_database
def test_who_has_only_defined_something_is_forgotten_too(
    run: Run, store_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def makers() -> set[str | None]:
        async with open_store(store_address) as store, store.reading() as tx:
            return {row["made_by"] for row in await tx.fetch(Sql("SELECT made_by FROM catalog_versions"))}

    given = "kind: agent\nname: counter\nsystem_prompt: You count.\n"
    monkeypatch.setenv("LONGTHREAD_USER", "zoe")
    run("apply", "-f", "-", text=given)
    monkeypatch.setenv("LONGTHREAD_USER", "default")
    assert "zoe" in asyncio.run(makers())
    run("forget", "--user", "zoe", "--yes")
    assert "zoe" not in asyncio.run(makers())


@pytest.mark.new_database
def test_a_conversation_and_a_user_are_forgotten(run: Run, store_address: str) -> None:
    async def talk() -> None:
        async with open_store(store_address) as store:
            for thread_id in ("one", "two"):
                await say(store, [f"My bird is {CANARY}.", "Nice."], thread_id=thread_id, user_id="default")
            await say(store, ["hello"], thread_id="theirs", user_id="v")

    asyncio.run(talk())
    run("memories", "add", f"The bird is {CANARY}.")
    assert (
        "Would forget: conversation one: 1 conversation, 2 entries."
        in run("forget", "--thread", "one", "--dry-run").stdout
    )
    run("forget", "--thread", "one", text="n\n", code=1)
    run("forget", "--thread", "one", "--yes")
    [told] = lines(run("forget", "--user", "default", "--dry-run", "--json"))
    assert (told["forgotten"], told["threads"], told["rows"]["memories"]) == (False, 1, 1)
    assert places(store_address, marks())
    assert (
        "Forgotten: user default: 1 conversation, 2 entries, 1 memory."
        in run("forget", "--user", "default", "--yes").stdout
    )
    assert places(store_address, marks()) == set()
    assert in_files(store_address, marks()) == set()
    assert json.loads(run("db", "status", "--json").stdout)["threads"] == 1


def test_a_memory_outlives_its_conversation_unless_told(run: Run, store_address: str) -> None:
    async def tell() -> None:
        async with open_store(store_address) as store:
            for n in range(4):
                thread_id, source = f"t{n}", MemorySource(f"t{n}", (1,))
                await say(store, ["My bird is blue."], thread_id=thread_id, user_id="default")
                await kept(store, f"Bird {n} is blue.", owner=Owner("default", ANALYST), source=source)

    def left() -> list[str]:
        return sorted(each["content"] for each in lines(run("memories", "list", "--json")))

    asyncio.run(tell())
    asked = run("threads", "delete", "t0", code=1, text="n\n").output
    assert "What was remembered from it (1 memory) stays." in asked
    assert "(1 memory) stays: see `longthread memories list`" in run("threads", "delete", "t0", "--yes").output
    assert len(left()) == 4
    asked = run("threads", "delete", "t1", "--with-memories", code=1, text="n\n").output
    assert "entries, and what was remembered from it (1 memory)?" in asked
    run("threads", "delete", "t1", "--with-memories", "--yes")
    run("forget", "--thread", "t2", "--yes")
    run("threads", "expire", "t3", "2000-01-01")
    assert left() == ["Bird 0 is blue.", "Bird 3 is blue."]
    assert "1 memory" not in run("db", "prune").output
    assert "1 memory" in run("db", "prune", "--with-memories").output
    run("db", "prune", "--apply", "--yes")
    assert left() == ["Bird 0 is blue.", "Bird 3 is blue."]
    [told, _] = lines(run("memories", "list", "--json"))
    assert told["thread"] is None and told["thread_deleted_at"] is not None


@pytest.mark.parametrize("command", [["threads", "delete"], ["forget", "--thread"]], ids=" ".join)
@pytest.mark.new_database
def test_a_deleted_conversation_is_in_no_file(run: Run, store_address: str, command: list[str]) -> None:
    async def talk() -> None:
        async with open_store(store_address) as store:
            for n in range(3):
                await say(store, [f"My bird is {CANARY}.", "Nice."] * 20, thread_id=f"gone-{n}", user_id="default")
            async with store.maintaining() as tx:  # PostgreSQL samples keys, such as ids of threads
                await tx.run(Sql("ANALYZE"))

    asyncio.run(talk())
    assert in_files(store_address, marks())
    for n in range(3):
        run(*command, f"gone-{n}", "--yes")
    assert places(store_address, marks()) == set()
    assert in_files(store_address, marks()) == set()


@pytest.mark.new_database
def test_what_was_deleted_before_is_in_no_file_afterwards(run: Run, store_address: str) -> None:
    async def talk() -> set[str]:
        async with open_store(store_address) as store:
            await say(store, ["hello"], thread_id="kept")
            await say(store, [f"My bird is {CANARY}."] * 20)
            await delete_thread(store, "t", user_id="u")
            return in_files(store_address, marks())

    assert asyncio.run(talk())
    left = bool(in_files(store_address, marks()))  # in a SQLite file, it has gone with the file's log
    told = run("forget", "--deleted", "--dry-run").stdout
    assert told.startswith("Would write anew: ") and "entries" in told
    [about] = lines(run("forget", "--deleted", "--dry-run", "--json"))
    assert (about["forgotten"], about["problems"]) == (False, [])
    assert about["size_before"] > 0 and "threads" in about["tables"]
    run("forget", "--deleted", text="n\n", code=1)
    assert bool(in_files(store_address, marks())) == left == ("://" in store_address)
    [done] = lines(run("forget", "--deleted", "--yes", "--json"))
    assert (done["forgotten"], done["problems"], done["tables"]) == (True, [], about["tables"])
    assert in_files(store_address, marks()) == set()
    again = run("forget", "--deleted", text="y\n")
    assert "The store was written anew: it had " in again.stdout
    assert json.loads(run("db", "status", "--json").stdout)["threads"] == 1


def test_what_has_expired_is_not_shown_and_can_be_forgotten(run: Run, store_address: str) -> None:
    async def tell() -> str:
        async with open_store(store_address) as store:
            soon = datetime.now(UTC) + timedelta(seconds=0.05)
            told = await Memories(store).remember(Owner("default", ANALYST), Statement("passing", expires_at=soon))
            await asyncio.sleep(0.1)
            return told.memory.id

    memory = asyncio.run(tell())
    shown = run("memories", "show", memory, code=2)
    assert "passing" not in shown.stdout and "There is no memory" in str(shown.exception)
    assert run("memories", "forget", memory, "--yes").stderr == ""
    assert "nothing" in run("db", "prune").stdout


def test_a_search_that_finds_nothing_says_so(run: Run, store_address: str) -> None:
    run("memories", "add", "Deploys are done with make ship.")
    nothing = run("memories", "search", "zebra")
    assert (nothing.stdout, nothing.stderr) == ("", "Nothing was found.\n")
    assert "Give words" in str(run("memories", "search", " ", code=2).exception)


def test_pruning_deletes_what_has_expired(run: Run, store_address: str) -> None:
    async def tell() -> None:
        async with open_store(store_address) as store:
            soon = datetime.now(UTC) + timedelta(seconds=0.05)
            await Memories(store).remember(Owner("default", ANALYST), Statement("passing", expires_at=soon))
            await asyncio.sleep(0.1)

    asyncio.run(tell())
    assert "1 memory" in run("db", "prune").stdout
    assert "1 memory" in run("db", "prune", "--apply").stdout
    assert "nothing" in run("db", "prune").stdout

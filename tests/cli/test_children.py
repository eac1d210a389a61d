"""Conversations that agents have with each other, from the command line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.cli.conftest import Run

from longthread.model.entry import Draft
from longthread.model.run import AgentRun, Answers
from longthread.store import log, runs
from longthread.store.open import open_store
from longthread.store.runs import NewRun

pytestmark = pytest.mark.one_backend

HELPER = "6c6f6e67-7468-5265-8164-616e616c7973"


@pytest.fixture
def asked(store_address: str) -> str:
    """A store with a conversation in which an agent has asked another."""

    async def make() -> None:
        async with open_store(store_address) as store, store.writing() as tx:
            for thread, parent, run, answers in (
                ("parent", None, "r1", None),
                ("child", "parent", "r2", Answers("r1", "call-1")),
            ):
                await log.create_thread(tx, thread, user_id="default", title=f"The {thread}", parent=parent)
                await log.extend(tx, thread, [Draft("1", "user", f"Ask the {thread}")])
                about: dict[str, Any] = {"protocol": "auto", "max_steps": 3, "answers": answers}
                plan = NewRun(run, f"Ask the {thread}", None, "demo", agent=AgentRun(HELPER, 1), **about)
                lease = await runs.begin(tx, thread, plan, owner="me/1/x", alive=lambda owner: True)
                await runs.end(tx, lease, "finished", {})

    asyncio.run(make())
    return store_address


def test_they_are_marked_and_found_from_both_sides(run: Run, asked: str) -> None:
    listed = [json.loads(line) for line in run("threads", "list", "--json").stdout.splitlines()]
    assert [(each["id"], each["parent_id"]) for each in listed] == [("parent", None)]
    every = [json.loads(line) for line in run("threads", "list", "--children", "--json").stdout.splitlines()]
    assert {each["id"]: each["parent_id"] for each in every} == {"parent": None, "child": "parent"}
    assert "asked for here: The child  child" in run("threads", "show", "parent").stdout
    assert "asked for in parent" in run("threads", "show", "child").stdout
    [line, below] = run("threads", "runs", "parent").stdout.splitlines()
    assert line.endswith("Ask the parent")
    assert below.startswith("↳ ") and below.endswith("Ask the child\tchild")
    told = json.loads(run("threads", "runs", "parent", "--json").stdout)
    assert told["answers"] is None
    assert told["asked"] == [
        {"thread": "child", "run": "r2", "call": "call-1", "agent": "analyst", "status": "finished"}
    ]
    told = json.loads(run("threads", "runs", "child", "--json").stdout)
    assert (told["answers"], told["asked"]) == ({"thread": "parent", "run": "r1", "call": "call-1"}, [])
    assert "The parent" in run("threads", "show", "last").stdout


def test_they_are_exported_and_deleted_together(run: Run, asked: str) -> None:
    lines = run("threads", "export", "parent").stdout
    assert json.loads(lines.splitlines()[0])["threads"] == 2
    refused = run("threads", "delete", "parent", text="n\n", code=1)
    assert "with its 1 entries and 1 conversation below it?" in refused.stderr
    forgotten = run("forget", "--thread", "parent", "--dry-run").stdout
    assert "2 conversations, 2 entries" in forgotten
    run("threads", "delete", "parent", "--yes")
    assert run("threads", "list", "--children").stdout.strip() == ""
    assert run("threads", "import", "-", text=lines).stdout.startswith("2 threads imported")
    assert "asked for here" in run("threads", "show", "parent").stdout

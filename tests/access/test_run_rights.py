"""A right that is taken back: before a run, while a question waits, while a run has no process, and while it works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.test_agents import AGENT, CUSTOMERS, SKILL
from tests.runs.test_workers import Gated, ended, until
from tests.script import COUNT, call, finish

from longthread import Catalog
from longthread.access.grants import GrantKind, add_grant, forget_item, remove_grant
from longthread.access.keys import NewKey, create_key, revoke_key
from longthread.access.users import create_user, find_user, update_user
from longthread.errors import AccessEnded, DefinitionNotFound, LeaseLost, LongthreadError, NotGranted
from longthread.model.memory import ANALYST
from longthread.model.run import Run, RunAsker
from longthread.runs import rights as run_rights
from longthread.runs.analyst import Analyst
from longthread.runs.rights import default_items
from longthread.store import log, run_events, runs, wait_list
from longthread.store.driver import Driver
from longthread.store.wait_list import QueuedQuestion
from longthread.testing import ScriptedChatModel

ADA, MODEL = "ada-id", "other:model"
CUSTOMERS_OF = call("customers_of", country="UK", limit=1)
HELPER = {"kind": "agent", "name": "helper", "system_prompt": "You are helper."}
CLERK = AGENT | {"skills": ["data", "customers"], "sub_agents": ["helper"], "config": {"source": "shop"}}
TAKEN: Sequence[tuple[str, Any, type[LongthreadError] | None, str, str]] = [
    # What is taken back, the call, what beginning raises, and what a claimed and a working run end with.
    ("source", COUNT, NotGranted, "failed not_granted", "finished not_granted"),
    ("agent", COUNT, DefinitionNotFound, "failed not_granted", "failed not_granted"),
    ("skill", CUSTOMERS_OF, None, "finished unknown_tool", "finished not_granted"),
    ("tool", CUSTOMERS_OF, NotGranted, "failed not_granted", "finished not_granted"),
    ("model", COUNT, NotGranted, "failed not_granted", "failed not_granted"),
    ("user", COUNT, AccessEnded, "failed access_ended", "failed access_ended"),
    ("key", COUNT, AccessEnded, "failed access_ended", "failed access_ended"),
]
each_right = pytest.mark.parametrize(
    ("taken", "asked", "error", "claimed", "working"), TAKEN, ids=[each[0] for each in TAKEN]
)


class Team:
    """A member who may use an agent and all of its parts, with a key."""

    def __init__(self, store: Driver, items: dict[str, tuple[GrantKind, str]], asker: RunAsker) -> None:
        self.store = store
        self.items = items
        self.asker = asker

    async def take(self, what: str) -> None:
        async with self.store.writing() as tx:
            if what == "user":
                await update_user(tx, await find_user(tx, ADA), status="disabled")
            elif what == "key":
                await revoke_key(tx, str(self.asker.key))
            else:
                await forget_item(tx, *self.items[what])


async def make_team(store: Driver, shop: str) -> Team:
    source = {"kind": "source", "name": "shop", "address": shop}
    changes = await Catalog(store).apply([source, CUSTOMERS, SKILL, CLERK, HELPER])
    found: dict[str, tuple[GrantKind, str]] = {
        ("helper" if each.name == "helper" else each.kind): (each.kind, each.definition.id) for each in changes
    }
    found["model"] = ("model", MODEL)
    async with store.writing() as tx:
        ada = await create_user(tx, "ada", user_id=ADA)
        key, _ = await create_key(tx, ada, NewKey("k", ["chat"]))
        for kind, item in found.values():
            await add_grant(tx, kind, item, "user", ADA, "use", by="root")
    return Team(store, found, RunAsker(ADA, key.id))


def asking(team: Team) -> dict[str, Any]:
    return {"thread_id": "t", "agent": "clerk", "model": MODEL, "user_id": ADA, "asker": team.asker}


async def said_of(store: Driver, run: Run) -> str:
    """How a run ended, and its error, or else that of its call."""
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id=ADA)
        results = [each for each in await log.branch(tx, "t", thread.tip, limit=9) if each.role == "tool"]
        last = await run_events.last_event(tx, "t", run.id)
        [end] = await run_events.events_after(tx, "t", run.id, last - 1)
    if run.status == "failed":
        return f"failed {end.data['error']['type']}"
    kinds = ("not_granted", "unknown_tool", "definition_not_found")
    return f"{run.status} {next((kind for kind in kinds if kind in results[-1].text), 'ok')}"


@each_right
async def test_a_right_that_is_gone_when_a_run_begins(
    open_analyst: OpenAnalyst, store: Driver, shop: str, taken: str, asked: Any, error: Any, claimed: str, working: str
) -> None:
    team = await make_team(store, shop)
    model = ScriptedChatModel([asked, finish("Done.")])
    analyst = await open_analyst(model)
    await team.take(taken)
    if error is not None:
        with pytest.raises(error):
            await analyst.ask("How many?", **asking(team))
        assert model.calls == []
        async with store.reading() as tx:
            assert await runs.last_run(tx, "t") is None
        return
    handle = await analyst.ask("How many?", **asking(team))
    await handle.wait()
    assert await said_of(store, await ended(store)) == claimed


@each_right
async def test_a_right_that_is_taken_back_while_a_run_works(
    open_analyst: OpenAnalyst,
    store: Driver,
    shop: str,
    monkeypatch: pytest.MonkeyPatch,
    taken: str,
    asked: Any,
    error: Any,
    claimed: str,
    working: str,
) -> None:
    monkeypatch.setattr(run_rights, "READ_AGAIN_SECONDS", 0.0)
    team, model = await make_team(store, shop), Gated([asked, finish("Done.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", **asking(team))
    await model.asked.wait()
    await team.take(taken)
    (model.metadata or {})["gate"].set()
    await handle.wait()
    run = await ended(store)
    assert run.asker == team.asker
    assert await said_of(store, run) == working


@pytest.mark.parametrize("taken", ["user", "key", "agent", "model"])
async def test_a_reply_that_is_on_its_way_is_broken_off(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    monkeypatch.setattr(run_rights, "READ_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(run_rights, "_LOOK_SECONDS", 0.02)
    team, model = await make_team(store, shop), Gated([COUNT, finish("Done.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", **asking(team))
    await model.asked.wait()
    await team.take(taken)
    await asyncio.wait_for(handle.wait(), 20)  # the model has not replied
    ends = "access_ended" if taken in ("user", "key") else "not_granted"
    assert await said_of(store, await ended(store)) == f"failed {ends}"


@each_right
async def test_a_right_that_is_gone_when_another_process_claims_the_run(
    open_analyst: OpenAnalyst, store: Driver, shop: str, taken: str, asked: Any, error: Any, claimed: str, working: str
) -> None:
    team, model = await make_team(store, shop), Gated([asked])
    first = await open_analyst(model)
    handle = await first.ask("How many?", **asking(team))
    await model.asked.wait()
    draining = asyncio.ensure_future(first.drain(60, asyncio.Event()))
    await asyncio.sleep(0)
    (model.metadata or {})["gate"].set()
    await draining
    with suppress(LeaseLost):
        await handle.wait()
    await team.take(taken)
    second = await open_analyst(ScriptedChatModel([finish("Done.")]))
    second.claims.start()
    run = await ended(store)
    assert (run.id, run.asker) == (handle.run.id, team.asker)
    assert await said_of(store, run) == claimed
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "t", user_id=ADA)
        assert next(each.text for each in await log.branch(tx, "t", thread.tip, limit=9)) == "How many?"


@each_right
async def test_a_right_that_is_taken_back_while_a_question_waits(
    open_analyst: OpenAnalyst, store: Driver, shop: str, taken: str, asked: Any, error: Any, claimed: str, working: str
) -> None:
    team, gated = await make_team(store, shop), Gated([finish("One.")])
    first = await open_analyst(gated)
    handle = await first.ask("One?", **asking(team))
    queued = await first.runs.submit("Two?", when_busy="enqueue", **asking(team))
    assert isinstance(queued, QueuedQuestion)
    assert queued.plan.asker == team.asker
    await team.take(taken)
    await handle.stop()
    second = await open_analyst(ScriptedChatModel([asked, finish("Done.")]))
    second.claims.start()

    async def is_begun() -> bool:
        async with store.reading() as tx:
            return await wait_list.run_of(tx, "t", queued.id) is not None

    await until(is_begun)
    run = await ended(store)
    assert (run.question, run.asker) == ("Two?", team.asker)
    assert await said_of(store, run) == claimed


async def test_with_all_rights_the_run_works(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    team = await make_team(store, shop)
    analyst = await open_analyst(
        [COUNT, CUSTOMERS_OF, call("ask_helper", task="Hi."), finish("Hi."), finish("3 [q1].")]
    )
    handle = await analyst.ask("How many?", **asking(team))
    assert (await handle.wait()).type == "finished"
    async with store.reading() as tx:
        steps = [each for each in await runs.steps_of(tx, await ended(store)) if each.kind == "tool"]
        [child] = await runs.answers(tx, "t", handle.run.id)
    assert [each.observation and each.observation["ok"] for each in steps] == [True, True, True]
    assert child.asker == team.asker, "an agent that is asked has the rights of who asked"


async def test_an_agent_that_was_taken_back_is_not_asked(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    team, model = await make_team(store, shop), Gated([call("ask_helper", task="Hi."), finish("No.")])
    analyst = await open_analyst(model)
    handle = await analyst.ask("How many?", **asking(team))
    await model.asked.wait()
    await team.take("helper")
    (model.metadata or {})["gate"].set()
    await handle.wait()
    assert await said_of(store, await ended(store)) == "finished definition_not_found"


async def test_an_agent_that_is_not_granted_is_as_unknown_as_one_that_there_is_not(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    team = await make_team(store, shop)
    analyst = await open_analyst([])
    await team.take("agent")
    said = []
    for name in ("clerk", "clork"):
        with pytest.raises(DefinitionNotFound) as caught:
            await analyst.ask("?", **asking(team) | {"agent": name})
        said.append(str(caught.value).replace(name, "NAME"))
    assert said[0] == said[1]
    assert "clerk" not in said[1]


async def test_a_source_that_is_not_granted_is_as_unknown_as_one_that_there_is_not(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    team = await make_team(store, shop)
    analyst = await open_analyst([])
    await team.take("source")
    said = []
    for name in ("shop", "shap", shop, f"{shop}x"):
        with pytest.raises(NotGranted) as caught:
            await analyst.ask("?", **asking(team) | {"agent": ANALYST, "source": name})
        said.append(str(caught.value).replace(name, "NAME"))
    assert len(set(said)) == 1


async def test_what_everyone_may_use_needs_no_grant(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    team = await make_team(store, shop)
    analyst = await open_analyst([COUNT, finish("3 [q1].")], source=shop)
    handle = await analyst.ask("How many?", user_id=ADA, asker=team.asker)
    assert (await handle.wait()).type == "finished"
    async with store.writing() as tx:
        defaults = default_items(analyst.settings)
        await remove_grant(tx, "agent", ANALYST, "everyone", "", defaults=defaults, by="root")
    with pytest.raises(NotGranted, match="the agent analyst"):
        await analyst.ask("How many?", user_id=ADA, asker=team.asker)


async def test_who_resumes_a_run_is_whose_rights_it_has(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    team, model = await make_team(store, shop), Gated([COUNT])
    first = await open_analyst(model)
    handle = await first.ask("How many?", **asking(team))
    await model.asked.wait()
    draining = asyncio.ensure_future(first.drain(60, asyncio.Event()))
    await asyncio.sleep(0)
    (model.metadata or {})["gate"].set()
    await draining
    await team.take("model")
    second = await open_analyst(ScriptedChatModel([finish("3 [q1].")]))
    with pytest.raises(NotGranted):
        await second.runs.resume("t", user_id=ADA, asker=team.asker)
    again = await second.runs.resume("t", user_id=ADA)  # on the command line
    await again.wait()
    run = await ended(store)
    assert (run.id, run.status, run.asker) == (handle.run.id, "finished", None)


def count_queries(analyst: Analyst, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The names of the queries of tables of access, from now on."""
    seen: list[str] = []
    for backend in ("sqlite", "postgres"):
        module = __import__(f"longthread.store.backends.{backend}", fromlist=["x"])
        for cls in vars(module).values():
            for method in ("fetch", "run", "later", "fetch_all"):
                if isinstance(cls, type) and method in vars(cls):
                    original = vars(cls)[method]

                    def counted(self: Any, *args: Any, _original: Any = original, **values: Any) -> Any:
                        names = [each[0] if isinstance(each, tuple) else each for each in args]
                        seen.extend(str(name) for name in names)
                        return _original(self, *args, **values)

                    monkeypatch.setattr(cls, method, counted)
    return lambda: seen


async def test_without_a_login_no_right_is_read(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_team(store, shop)
    analyst = await open_analyst([COUNT, CUSTOMERS_OF, finish("3 [q1].")])
    seen = count_queries(analyst, monkeypatch)
    handle = await analyst.ask("How many?", agent="clerk", user_id="default")
    assert (await handle.wait()).type == "finished"
    assert (await ended(store, handle.thread_id)).asker is None
    assert "insert_run" in seen(), "queries are counted"
    of_access = {"select_user", "select_grants_of_user", "select_groups_of_user", "select_key"}
    assert not of_access & set(seen())

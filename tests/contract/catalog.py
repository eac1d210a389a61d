"""The catalog: definitions are read back, each change is a version, and deletion takes the versions along."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from tests.contract.base import USER, Contract, OpenStore
from tests.contract.memories import contents
from tests.contract.memories import kept as remembered

from longthread.errors import DefinitionInUse, DefinitionNotFound
from longthread.memory.forget import forget_user
from longthread.model.catalog import RouteDefinition, UpstreamDefinition
from longthread.store import catalog as catalog_store
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.tools.catalog.definitions import Catalog

PARAMETERS = {"type": "object", "properties": {"q": {"type": "string", "default": "空"}}}
KEY = "${KEY}"
CODE = {"runtime": "python", "code": "def execute(q=''):\n    return q\n"}


def definitions(prompt: str = "Help.") -> list[dict[str, Any]]:
    schema = {"name": "t", "description": "d", "parameters": PARAMETERS}
    return [
        {"kind": "tool", "name": "t", "type": "code", "schema": schema, "implementation": CODE},
        {"kind": "skill", "name": "s", "trigger_keywords": ["火"], "tools": ["t"]},
        {"kind": "agent", "name": "a", "system_prompt": prompt, "skills": ["s"], "config": {"temperature": 0.5}},
        {"kind": "source", "name": "main", "address": "demo"},
        {"kind": "upstream", "name": "up", "base_url": "https://x.com", "dialects": ["anthropic"], "api_key": KEY},
        {"kind": "route", "name": "way", "models": "claude-*", "upstream": "up"},
    ]


def actions(changes: Sequence[Any]) -> set[str]:
    return {change.action for change in changes}


class CatalogContract(Contract):
    """`longthread.store.catalog`, through `Catalog`."""

    async def test_what_is_defined_comes_back_and_the_same_changes_nothing(self, open_store: OpenStore) -> None:
        async with open_store() as store:
            catalog = Catalog(store, user="ada")
            assert actions(await catalog.apply(definitions(), dry_run=True)) == {"created"}
            assert [each for each in await catalog.definitions() if not each.is_builtin] == []
            assert actions(await catalog.apply(definitions())) == {"created"}
        async with open_store() as store:
            catalog = Catalog(store, user="bob")
            assert actions(await catalog.apply(definitions())) == {"unchanged"}
            agent, skill, tool = await catalog.agent("a"), await catalog.skill("s"), await catalog.tool("t")
            assert (agent.system_prompt, agent.config, list(agent.skills)) == (
                "Help.",
                {"temperature": 0.5},
                [skill.id],
            )
            assert (list(skill.trigger_keywords), [each.tool_id for each in skill.tools]) == (["火"], [tool.id])
            assert (tool.schema["parameters"], tool.implementation["code"]) == (PARAMETERS, CODE["code"])
            assert await catalog.address("main") == "demo"
            async with store.reading() as tx:
                assert [each.name for each in await catalog_store.sources(tx)] == ["main"]
                [up], [way] = await catalog_store.upstreams(tx), await catalog_store.routes(tx)
                assert up == UpstreamDefinition("up", "https://x.com", ("anthropic",), KEY, holds_state=False, id=up.id)
                assert way == RouteDefinition("way", "claude-*", "up", id=way.id)
                assert up.id and way.id

    async def test_each_change_is_a_version_and_stays_one(self, store: Driver) -> None:
        for number, user in enumerate(("ada", "bob", None)):
            await Catalog(store, user=user).apply(definitions(f"prompt {number}"))
        catalog = Catalog(store, user="eve")
        agent = await catalog.agent("a")
        versions = await catalog.history("agent", "a")
        assert [(each.version, each.by, (each.body or {})["system_prompt"]) for each in versions] == [
            (1, "ada", "prompt 0"),
            (2, "bob", "prompt 1"),
            (3, None, "prompt 2"),
        ]
        await catalog.delete("agent", "a")
        with pytest.raises(DefinitionNotFound):
            await catalog.agent("a")
        gone = (await catalog.history("agent", "a"))[-1]
        assert (gone.version, gone.body, gone.by) == (4, None, "eve")
        async with store.reading() as tx:
            first = await catalog_store.version(tx, "agent", agent.id, 1)
            assert await catalog_store.name_then(tx, "agent", agent.id, 1) == "a"
        assert first == versions[0]
        await forget_user(store, "ada")
        assert [each.by for each in await catalog.history("agent", "a")] == [None, "bob", None, "eve"]

    async def test_what_is_deleted_by_force_is_taken_out_of_what_has_it(self, store: Driver) -> None:
        catalog = Catalog(store)
        await catalog.apply(definitions())
        for kind, name in (("tool", "t"), ("skill", "s")):
            with pytest.raises(DefinitionInUse):
                await catalog.delete(kind, name)  # type: ignore[arg-type]
            await catalog.delete(kind, name, force=True)  # type: ignore[arg-type]
        await catalog.delete("source", "main")
        with pytest.raises(DefinitionInUse):
            await catalog.delete("upstream", "up", force=True)
        await catalog.delete("route", "way")
        await catalog.delete("upstream", "up")
        assert list((await catalog.agent("a")).skills) == []
        assert [each.kind for each in await catalog.definitions() if not each.is_builtin] == ["agent"]

    async def test_with_an_agent_go_its_conversations_and_memories(self, store: Driver) -> None:
        catalog = Catalog(store)
        await catalog.apply(definitions())
        agent = await catalog.agent("a")
        owner = Owner(USER, agent.id)
        await remembered(store, "the agent's", owner=owner)
        await remembered(store, "the analyst's")
        async with store.writing() as tx:
            for thread_id in ("t", "kept"):
                await log.create_thread(tx, thread_id, user_id=USER)
            await log.set_agent(tx, "t", agent.id)
            assert await catalog_store.belongings(tx, agent.id) == catalog_store.Belongings(1, 1)
        with pytest.raises(DefinitionInUse):
            await catalog.delete("agent", "a")
        await catalog.delete("agent", "a", force=True)
        async with store.reading() as tx:
            assert [thread.id for thread in await listing.list_threads(tx, user_id=USER)] == ["kept"]
        assert (await contents(store, owner), await contents(store)) == ([], ["the analyst's"])

    async def test_of_two_that_define_at_once_each_counts(self, open_store: OpenStore) -> None:
        async with open_store() as first, open_store() as second:
            await asyncio.gather(
                *(Catalog(store).apply(definitions(f"prompt {n}")) for n, store in enumerate([first, second] * 3))
            )
            versions = await Catalog(first).history("agent", "a")
        assert [each.version for each in versions] == [1, 2, 3, 4, 5, 6]
        assert len({(each.body or {})["system_prompt"] for each in versions}) == 6

"""The catalog: what applies, what does not, and what a change leaves behind."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.store.conftest import Plain
from tests.store.talk import talk

from longthread import Catalog
from longthread.errors import (
    CatalogInvalid,
    DefinitionAmbiguous,
    DefinitionBuiltIn,
    DefinitionInUse,
    DefinitionNotFound,
    VersionNotFound,
)
from longthread.model.catalog import BUILTIN, DATA, KINDS, MEMORY, Kind, tool_id
from longthread.model.memory import ANALYST
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.tools.catalog.plan import Change, lines

pytestmark = pytest.mark.one_backend

EXAMPLES = Path(__file__).with_name("document002.yaml")
Data = dict[str, Any]


@pytest.fixture
def catalog(store: Driver) -> Catalog:
    return Catalog(store, user="ada")


def agent(name: str = "a", **fields: Any) -> Data:
    return {"kind": "agent", "name": name, "system_prompt": "Help.", **fields}


def skill(name: str = "s", **fields: Any) -> Data:
    return {"kind": "skill", "name": name, **fields}


def tool(name: str = "t", **fields: Any) -> Data:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer", "default": 3}}}
    schema = {"name": name, "description": "d", "parameters": parameters}
    implementation = {"runtime": "python", "code": "def execute(q='', n=3):\n    return q * n\n"}
    return {"kind": "tool", "name": name, "type": "code", "schema": schema, "implementation": implementation, **fields}


def query(name: str = "q", source: str = "main") -> Data:
    implementation = {"database": source, "sql_template": "SELECT 1"}
    return tool(name, type="query", implementation=implementation) | {"schema": {"name": name, "parameters": {}}}


def source(name: str = "main", **fields: Any) -> Data:
    return {"kind": "source", "name": name, "address": "demo", **fields}


def upstream(name: str = "up", **fields: Any) -> Data:
    return {"kind": "upstream", "name": name, "base_url": "https://example.com", "dialects": ["anthropic"], **fields}


def route(name: str = "way", **fields: Any) -> Data:
    return {"kind": "route", "name": name, "models": "claude-*", "upstream": "other", **fields}


def said(changes: list[Change]) -> list[tuple[str, str, int]]:
    return [(each.name, each.action, each.definition.version) for each in changes]


async def whole(catalog: Catalog) -> Any:
    found = await catalog.definitions()
    return [(each, await catalog.history(each.kind, each.id)) for each in found if not each.is_builtin]


async def test_document_002s_examples_apply_and_twice_is_once(catalog: Catalog, plain: Plain) -> None:
    changes = await catalog.apply_files([EXAMPLES])
    assert {each.action for each in changes} == {"created"}
    before = await whole(catalog)
    assert {each.action for each in await catalog.apply_files([EXAMPLES])} == {"unchanged"}
    assert await whole(catalog) == before
    researcher = await catalog.agent("researcher")
    research = await catalog.skill("research")
    assert researcher.skills == (research.id, MEMORY) or list(researcher.skills) == [research.id, MEMORY]
    assert [each.required for each in research.tools] == [True, False, False]
    assert research.tools[0].tool_id == (await catalog.tool("search_web")).id
    assert research.tools[0].default_params == {"limit": 5}
    assert (await catalog.tool("search_web")).description == "Search the web for information"
    assert plain("SELECT count(*) FROM agents") == [(2 + 2,)], "with the built-in ones"


async def test_the_order_of_definitions_is_free(catalog: Catalog) -> None:
    items = [agent(skills=["s"], sub_agents=["b"]), agent("b"), skill(tools=["q"]), query(), source()]
    await catalog.apply(items)
    assert {each.action for each in await catalog.apply(list(reversed(items)))} == {"unchanged"}


async def test_an_edit_makes_a_version_and_nothing_makes_none(catalog: Catalog) -> None:
    await catalog.apply([tool(), skill(tools=["t"]), agent(skills=["s"], config={"temperature": 0.5})])
    edited = [tool(), skill(tools=["t"]), agent(skills=["s"], config={"temperature": 1})]
    assert said(await catalog.apply(edited)) == [("t", "unchanged", 1), ("s", "unchanged", 1), ("a", "changed", 2)]
    assert said(await catalog.apply([agent(skills=["s"], config={"temperature": 1.0})])) == [("a", "unchanged", 2)]
    first, second = await catalog.history("agent", "a")
    assert (first.body, second.body) != (None, None)
    assert first.body is not None
    assert (first.body["config"], first.by, first.version) == ({"temperature": 0.5}, "ada", 1)
    assert (await catalog.version("agent", "a", 2)) == second
    with pytest.raises(VersionNotFound, match="no version 3. There are 1 to 2."):
        await catalog.version("agent", "a", 3)


async def test_a_field_that_is_left_out_gets_its_default(catalog: Catalog) -> None:
    await catalog.apply([agent(description="d", config={"model": "demo"}, is_active=False)])
    [change] = await catalog.apply([agent()])
    assert {each.path for each in change.fields} == {"description", "config.model", "is_active"}
    assert (await catalog.agent("a")).is_active


async def test_a_dry_run_tells_the_same_and_writes_nothing(catalog: Catalog, plain: Plain) -> None:
    told = await catalog.apply([agent(skills=["s"]), skill()], dry_run=True)
    assert said(told) == [("a", "created", 1), ("s", "created", 1)]
    assert await whole(catalog) == []
    assert plain("SELECT count(*) FROM agents") == [(2,)], "the built-in ones"


async def test_all_or_nothing(catalog: Catalog) -> None:
    with pytest.raises(CatalogInvalid):
        await catalog.apply([agent(), agent("b", skills=["missing"])])
    assert await whole(catalog) == []


async def test_a_diff_shows_what_changes(catalog: Catalog) -> None:
    prompt = "one\ntwo\nthree\n"
    await catalog.apply([skill("s"), skill("u"), agent(system_prompt=prompt, skills=["s"], config={"max_tokens": 1})])
    edited = agent(system_prompt=prompt.replace("two", "2"), skills=["u"], config={"temperature": 0})
    [change] = await catalog.apply([edited])
    assert list(lines(change)) == [
        "~ agent a  v1 → v2",
        "    system_prompt:",
        "      @@ -1,3 +1,3 @@",
        "       one",
        "      -two",
        "      +2",
        "       three",
        "    config.max_tokens: 1 → nothing",
        "    config.temperature: nothing → 0",
        "    skills: - s, + u",
    ]
    assert change.to_json()["changes"][1] == {"path": "config.max_tokens", "old": 1}


async def test_a_renamed_definition_keeps_its_id(catalog: Catalog) -> None:
    await catalog.apply([skill(), agent(skills=["s"])])
    id_ = (await catalog.find("skill", "s")).id
    [change] = await catalog.apply([skill("new", id=id_)])
    assert (change.action, [each.path for each in change.fields]) == ("changed", ["name"])
    assert said(await catalog.apply([agent(skills=["new"])])) == [("a", "unchanged", 1)]
    with pytest.raises(DefinitionNotFound, match=r"no skill s\b"):
        await catalog.skill("s")


async def test_what_is_written_can_be_applied_again(catalog: Catalog) -> None:
    await catalog.apply_files([EXAMPLES])
    names = await catalog.names()
    every = [
        names.write_definition(each.kind, each.name, each.body) for each in names.by_key.values() if each.kind != "tool"
    ]
    every += [
        names.write_definition(each.kind, each.name, each.body)
        for each in names.by_key.values()
        if each.kind == "tool" and not each.is_builtin
    ]
    assert {each.action for each in await catalog.apply(every)} == {"unchanged"}, "the built-in ones too"


BOUNDS: list[tuple[Data, str]] = [
    (agent(config={"temperature": 2.1}), r"agent a, config\.temperature: it must be a number from 0, at most 2"),
    (agent(config={"temperature": True}), r"config\.temperature: .* and is true"),
    (agent(config={"max_tokens": 0}), r"config\.max_tokens: it must be a whole number from 1"),
    (agent(config={"max_tokens": 1.5}), r"config\.max_tokens"),
    (agent(config={"timeout_seconds": 0}), r"config\.timeout_seconds: it must be a number above 0"),
    (agent(config={"retry_attempts": 21}), r"config\.retry_attempts"),
    (agent(config={"max_steps": "many"}), r"config\.max_steps"),
    (agent(config={"temprature": 1}), r"config\.temprature: there is no such field\. Did you mean temperature"),
    (agent(config=["x"]), r"config: it must be an object, and is a list"),
    (agent(system_prompt=" "), r"system_prompt: it is blank"),
    ({"kind": "agent", "name": "a"}, r"system_prompt: it is missing"),
    (agent(skill=["s"]), r"skill: there is no such field\. Did you mean skills"),
    (agent(""), r"name: it is missing"),
    (agent(5), r"name: it must be a text, and is 5\. Put it into quotes"),  # type: ignore[arg-type] # as YAML may
    (agent("x" * 101), r"name: it has 101 characters"),
    (agent(" a"), r"name: it must have no blank at its ends"),
    (agent("a\nb"), r"name: it must have no blank"),
    (agent(DATA), r"name: it looks like an id"),
    (agent(id="1"), r"id: it must be a UUID"),
    (agent(skills="s"), r"skills: it must be a list, and is s"),
    (agent(skills=[1]), r"skills\[0\]: it must be a text"),
    (agent(skills=["data", "data"]), r"skills\[1\]: data stands there twice"),
    (agent(is_active="yes"), r"is_active: it must be true or false"),
    (skill(is_builtin=True), r"is_builtin: only Longthread's own"),
    (skill(tools=[{"required": True}]), r"tools\[0\]\.tool_id: it is missing"),
    (skill(tools=[{"tool": "x", "tool_id": "y"}]), r"there is a tool_id too"),
    (skill(tools=[{"tool": "x", "require": True}]), r"tools\[0\]\.require: .*Did you mean required"),
    (skill(tools=[7]), r"tools\[0\]: it must be the name of a tool"),
    (tool(type="shell"), r"type: it must be one of api, code, mcp, query, and is shell"),
    (tool(type="api"), r"implementation: .*endpoint"),
    (
        tool(implementation={"type": "api", "code": "x"}),
        r"implementation\.type: it is api, and the tool's type is code",
    ),
    (tool(implementation=None), r"implementation: it is missing"),
    (tool(schema=None), r"schema: it is missing"),
    (tool("näme"), r"schema\.name: a model can call a tool only by"),
    (tool(schema={"parameters": {"type": "array"}}), r"schema\.parameters: .*object"),
    (
        tool(schema={"parameters": {"type": "object", "properties": {"a": {"type": "txt"}}}}),
        r"schema\.parameters: .*txt",
    ),
    (
        tool(schema={"parameters": {"properties": {"a": {"type": "integer", "default": "ten"}}}}),
        r"schema\.parameters: .*default of `a`",
    ),
    (tool(schema={"parameters": {"$ref": "https://example.com/x"}}), r"schema\.parameters: .*refers to https"),
    (tool(schema={"name": "t", "params": {}}), r"schema\.params: there is no such field"),
    (
        query(source="main") | {"implementation": {"sql_template": "SELECT 1"}},
        r"implementation\.database: it is missing",
    ),
    (source(address=""), r"address: it is missing"),
    (source(address="postgresql://u:hunter2@h/d"), r"address: It holds a password.*LONGTHREAD_SECRET_NAME"),
    (source(address="postgresql://h/d?password=hunter2"), r"address: It holds a password"),
    (source(address="postgresql://u:hunter2@@h/d"), r"address: It holds a password"),
]


@pytest.mark.parametrize(("item", "problem"), BOUNDS, ids=range(len(BOUNDS)))
async def test_what_is_not_right_is_refused_with_its_field(sqlite_catalog: Catalog, item: Data, problem: str) -> None:
    with pytest.raises(CatalogInvalid, match=problem) as caught:
        await sqlite_catalog.apply([item])
    assert "hunter2" not in str(caught.value)


REFERENCES: list[tuple[list[Data], str]] = [
    ([agent(skills=["serch"]), skill("search")], r"a, skills\[0\]: there is no skill serch\. Did you mean search"),
    ([agent(sub_agents=["b"])], r"sub_agents\[0\]: there is no agent b"),
    ([skill(tools=["x"])], r"skill s, tools\[0\]: there is no tool x"),
    ([query()], r"tool q, implementation\.database: there is no source main"),
    ([agent(config={"source": "main"})], r"config\.source: there is no source main"),
    ([agent(sub_agents=["a"])], r"sub_agents: a → a is a circle"),
    ([agent(sub_agents=["b"]), agent("b", sub_agents=["c"]), agent("c", sub_agents=["a"])], r"a → b → c → a is a"),
    ([agent(), agent()], r"item 1, agent a: it is defined twice, also in item 1"),
    ([agent("analyst")], r"the agent analyst is built in and stays as it is"),
    ([agent(id=ANALYST)], r"the agent a is built in"),
    ([skill("memory")], r"the skill memory is built in"),
    ([tool("run_sql")], r"the tool run_sql is built in"),
    ([tool("mine", schema={"name": "run_sql", "parameters": {}})], r"schema\.name: run_sql is a name of Longth"),
    ([tool("finish")], r"schema\.name: finish is a name of Longthread's own"),
    ([skill(tools=["t", "t"]), tool()], r"tools\[1\]: t stands there twice"),
    ([skill(tools=[{"tool": "t", "default_params": {"m": 1}}]), tool()], r"tools\[0\]\.default_params: .*`m`"),
    ([skill(tools=[{"tool": "t", "default_params": {"n": "x"}}]), tool()], r"default_params: .*`n` must be of type"),
    (
        [tool("t"), tool("u", schema={"name": "t", "parameters": {}}), skill(tools=["t"]), skill("v", tools=["u"]),
         agent(skills=["s", "v"])],
        r"agent a, skills: they bring two tools that are called t, t and u",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("items", "problem"), REFERENCES, ids=range(len(REFERENCES)))
async def test_references_are_checked(sqlite_catalog: Catalog, items: list[Data], problem: str) -> None:
    with pytest.raises(CatalogInvalid, match=problem):
        await sqlite_catalog.apply(items)
    assert await whole(sqlite_catalog) == []


@pytest.fixture
async def sqlite_catalog(tmp_path: Path, sqlite_template: str) -> Any:
    """For what no backend has a part in."""
    async with open_store(shutil.copyfile(sqlite_template, str(tmp_path / "c.db"))) as store:
        yield Catalog(store)


async def test_all_problems_are_told_at_once(sqlite_catalog: Catalog) -> None:
    with pytest.raises(CatalogInvalid) as caught:
        await sqlite_catalog.apply([agent(config={"temperature": 9, "max_tokens": 0}), tool(type="x")])
    assert len(caught.value.details["problems"]) == 3
    assert str(caught.value).count("\n") == 3


async def test_a_change_may_not_break_what_refers_to_it(catalog: Catalog) -> None:
    await catalog.apply([tool(), skill(tools=[{"tool": "t", "default_params": {"n": 5}}]), source(), query()])
    with pytest.raises(CatalogInvalid, match="skill s, which is there, .*default_params"):
        await catalog.apply([tool(schema={"parameters": {"type": "object", "properties": {"q": {}}}})])
    id_ = (await catalog.find("source", "main")).id
    with pytest.raises(CatalogInvalid, match="there is no source main. Did you mean main2"):
        await catalog.apply([source("main2", id=id_)])


async def test_what_is_used_is_not_deleted(catalog: Catalog) -> None:
    await catalog.apply([tool(), skill(tools=["t"]), agent("b"), agent(skills=["s"], sub_agents=["b"])])
    for kind, name, user in (("tool", "t", "skill s"), ("skill", "s", "agent a"), ("agent", "b", "agent a")):
        with pytest.raises(DefinitionInUse, match=f"used by the {user}"):
            await catalog.delete(kind, name)  # type: ignore[arg-type]
    for kind, name in (("tool", "t"), ("skill", "s"), ("agent", "b")):
        done = await catalog.delete(kind, name, force=True)  # type: ignore[arg-type]
        assert len(done.changed) == 1
    left = await catalog.agent("a")
    assert (list(left.skills), list(left.sub_agents), left.version) == ([], [], 3)
    assert [each.name for each in await catalog.definitions() if not each.is_builtin] == ["a"]


async def test_a_source_stays_as_long_as_a_tool_needs_it(catalog: Catalog) -> None:
    await catalog.apply([source(), query(), agent(config={"source": "main", "model": "demo"})])
    with pytest.raises(DefinitionInUse, match="A query tool needs its source"):
        await catalog.delete("source", "main", force=True)
    await catalog.delete("tool", "q")
    with pytest.raises(DefinitionInUse, match="agent a"):
        await catalog.delete("source", "main")
    await catalog.delete("source", "main", force=True)
    assert (await catalog.agent("a")).config == {"model": "demo"}


async def test_an_agents_conversations_are_not_deleted_by_the_way(
    catalog: Catalog, store: Driver, plain: Plain
) -> None:
    await catalog.apply([agent()])
    id_ = (await catalog.find("agent", "a")).id
    await talk(store, "mine")
    await talk(store, "free")
    plain("UPDATE threads SET agent_id = ? WHERE id = 'mine'", [id_])
    plain("INSERT INTO memories (agent_id, content) VALUES (?, 'c')", [id_])
    with pytest.raises(
        DefinitionInUse, match="used by 1 conversation and 1 memory. To keep them, set is_active: false"
    ):
        await catalog.delete("agent", "a")
    looked = await catalog.delete("agent", "a", force=True, dry_run=True)
    assert (looked.belongings.threads, looked.belongings.memories) == (1, 1)
    assert plain("SELECT count(*) FROM sessions") == [(2,)]
    await catalog.delete("agent", "a", force=True)
    assert plain("SELECT id FROM sessions") == [("free",)]
    assert plain("SELECT count(*) FROM memories") == [(0,)]


async def test_what_was_deleted_can_be_looked_up_and_comes_back_with_its_versions(catalog: Catalog) -> None:
    await catalog.apply([agent(description="first")])
    id_ = (await catalog.find("agent", "a")).id
    await catalog.delete("agent", "a")
    with pytest.raises(DefinitionNotFound):
        await catalog.find("agent", "a")
    first, gone = await catalog.history("agent", "a")
    assert (first.body is not None, gone.body, gone.version, gone.by) == (True, None, 2, "ada")
    assert (await catalog.version("agent", "a", 1)).id == id_
    assert said(await catalog.apply([agent(description="again")])) == [("a", "created", 3)]
    assert (await catalog.find("agent", "a")).id == id_
    assert [each.version for each in await catalog.history("agent", "a")] == [1, 2, 3]


@pytest.mark.parametrize(("kind", "id_"), BUILTIN)
async def test_built_in_ones_are_shown_and_stay(catalog: Catalog, kind: Kind, id_: str) -> None:
    found = await catalog.find(kind, id_)
    assert found.is_builtin
    assert await catalog.find(kind, found.name) == found
    assert [each.version for each in await catalog.history(kind, found.name)] == [1]
    with pytest.raises(DefinitionBuiltIn, match=found.name):
        await catalog.delete(kind, found.name, force=True)


async def test_built_in_tools_are_for_everybodys_skills(catalog: Catalog) -> None:
    await catalog.apply([skill(tools=["run_sql", "recall_memory"]), agent(skills=["s"])])
    found = await catalog.skill("s")
    assert [each.tool_id for each in found.tools] == [tool_id("run_sql"), tool_id("recall_memory")]


async def test_what_another_program_changed_is_in_the_history_too(catalog: Catalog, plain: Plain) -> None:
    await catalog.apply([agent(description="ours")])
    plain("UPDATE agents SET description = 'theirs' WHERE name = 'a'")
    assert (await catalog.agent("a")).version == 2
    assert said(await catalog.apply([agent(description="ours again")])) == [("a", "changed", 3)]
    history = await catalog.history("agent", "a")
    assert [(each.body or {})["description"] for each in history] == ["ours", "theirs", "ours again"]
    assert [each.by for each in history] == ["ada", None, "ada"]


async def test_two_agents_of_one_name_are_told_apart_by_their_ids(catalog: Catalog, plain: Plain) -> None:
    for _ in range(2):
        plain("INSERT INTO agents (name, system_prompt) VALUES ('twin', 's')")
    with pytest.raises(DefinitionAmbiguous, match="Several agents are called twin"):
        await catalog.find("agent", "twin")
    with pytest.raises(CatalogInvalid, match="several have it"):
        await catalog.apply([agent("twin")])
    with pytest.raises(CatalogInvalid, match=r"several agents are called twin"):
        await catalog.apply([agent(sub_agents=["twin"])])
    [(id_,), _] = plain("SELECT id FROM agents WHERE name = 'twin'")
    with pytest.raises(CatalogInvalid, match="there is another agent of this name"):
        await catalog.apply([agent("twin", id=str(id_))])
    await catalog.apply([agent("other", id=str(id_))])
    assert len([each for each in await catalog.definitions("agent") if each.name == "twin"]) == 1


async def test_a_password_that_another_program_wrote_is_not_shown(catalog: Catalog, plain: Plain) -> None:
    plain("INSERT INTO sources (name, address) VALUES ('theirs', 'postgresql://u:hunter2@h/d')")
    names = await catalog.names()
    found = names.one("source", "theirs")
    assert "hunter2" not in json.dumps(names.write_definition("source", "theirs", found.body))
    assert "hunter2" not in repr(await catalog.source("theirs"))
    assert await catalog.address("theirs") == "postgresql://u:hunter2@h/d"
    [change] = await catalog.apply([source("theirs", address="postgresql://u:${PW}@h/d")])
    assert "hunter2" not in json.dumps(change.to_json())
    assert "hunter2" not in str(plain("SELECT body FROM catalog_versions"))


async def test_secrets_of_a_source_come_from_the_environment(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    await catalog.apply([source(address="postgresql://u:${PW}@h/d"), source("plain", address="data.csv")])
    monkeypatch.setenv("LONGTHREAD_SECRET_PW", "p@ss/word")
    assert await catalog.address("main") == "postgresql://u:p%40ss%2Fword@h/d"
    assert await catalog.address("plain") == str(Path.cwd() / "data.csv")
    await catalog.apply([source(is_active=False)])
    with pytest.raises(DefinitionNotFound, match="switched off"):
        await catalog.address("main")


async def test_of_two_who_apply_at_once_one_is_second(store: Driver) -> None:
    both = [Catalog(store, user=user) for user in ("ada", "bob")]
    done = await asyncio.gather(*(each.apply([agent(description=f"{n}")]) for n, each in enumerate(both)))
    assert sorted(change.action for [change] in done) == ["changed", "created"]
    history = await both[0].history("agent", "a")
    assert [each.version for each in history] == [1, 2]
    assert {each.by for each in history} == {"ada", "bob"}


async def test_every_kind_is_deleted_and_defined_again(catalog: Catalog) -> None:
    made: Mapping[Kind, Callable[[], Data]] = {
        "agent": agent,
        "skill": skill,
        "tool": tool,
        "source": source,
        "upstream": upstream,
        "route": route,
    }
    assert set(made) == set(KINDS)
    await catalog.apply([upstream("other")])
    for kind, make in made.items():
        item = make()
        await catalog.apply([item])
        await catalog.delete(kind, item["name"])
        assert said(await catalog.apply([item])) == [(item["name"], "created", 3)]

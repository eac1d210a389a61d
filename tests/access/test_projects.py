"""Projects in the store: who is a member, what a run in one may use and sees, and conversations that are moved."""

from __future__ import annotations

from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.runs.test_workers import Gated
from tests.script import COUNT, call, finish

from longthread import Catalog
from longthread.access import projects
from longthread.access.grants import add_grant, load_rights_of, remove_grant
from longthread.access.projects import ProjectSource
from longthread.access.users import create_user, delete_user, find_user
from longthread.errors import (
    AccessEnded,
    InvalidInput,
    LastManager,
    ManagerNeeded,
    NotGranted,
    ProjectNotFound,
    RunInProgress,
    ThreadNotFound,
)
from longthread.model.run import RunAsker
from longthread.runs import rights as run_rights
from longthread.store import log, memories, share_links
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.testing import ScriptedModel

MODEL = "other:model"


async def make_people(store: Driver) -> projects.Project:
    """Add Ada, who manages a project, Bob, who is a member, and Eve, who is none."""
    async with store.writing() as tx:
        for name in ("ada", "bob", "eve"):
            await create_user(tx, name, user_id=name)
            await add_grant(tx, "model", MODEL, "user", name, "use", by="root")
        project = await projects.create_project(tx, "Sales", by="ada", instructions="Answer in pirate's words.")
        await projects.set_member(tx, project, "bob", "use")
    return project


async def test_members_and_managers(store: Driver) -> None:
    project = await make_people(store)
    async with store.writing() as tx:
        assert [(each.user_id, each.may) for each in await projects.list_members(tx, project)] == [
            ("ada", "manage"),
            ("bob", "use"),
        ]
        assert [may for _, may in await projects.list_projects(tx, "bob")] == ["use"]
        assert await projects.list_projects(tx, "eve") == []
        with pytest.raises(ManagerNeeded):
            await projects.find_membership(tx, project.id, "bob", manages=True)
        for who, which in (("eve", project.id), ("ada", "none")):
            with pytest.raises(ProjectNotFound):
                await projects.find_membership(tx, which, who)
        with pytest.raises(LastManager):
            await projects.remove_member(tx, project, "ada")
        with pytest.raises(LastManager):
            await projects.set_member(tx, project, "ada", "use")
        await projects.remove_member(tx, project, "bob")
        await projects.set_member(tx, project, "eve", "manage")
        await projects.remove_member(tx, project, "ada")
        assert [each.name for each in await projects.list_members(tx, project)] == ["eve"]


async def test_a_deleted_user_leaves_a_manager_to_the_others(store: Driver) -> None:
    project = await make_people(store)
    async with store.writing() as tx:
        await projects.set_member(tx, project, "eve", "use")
        await delete_user(tx, await find_user(tx, "ada"))
        assert [(each.user_id, each.may) for each in await projects.list_members(tx, project)] == [
            ("bob", "manage"),
            ("eve", "use"),
        ]


@pytest.mark.parametrize("changes", [{"name": " "}, {"name": "n" * 201}, {"instructions": "i" * 8001}])
async def test_what_a_project_cannot_be(store: Driver, changes: dict[str, Any]) -> None:
    project = await make_people(store)
    async with store.writing() as tx:
        with pytest.raises(InvalidInput):
            await projects.update_project(tx, project, **changes)


async def test_a_source_of_a_project_is_its_members_while_who_added_it_may_use_it(store: Driver) -> None:
    project = await make_people(store)

    async def may_use(user: str, *, inside: bool = True) -> bool:
        async with store.reading() as tx:
            rights = await load_rights_of(tx, RunAsker(user), ())
            if inside:
                rights = await projects.join_rights(tx, rights, project.user_id, ())
        return rights.may_use("source", "shop-id")

    async with store.writing() as tx:
        await add_grant(tx, "source", "shop-id", "user", "ada", "use", by="root")
    assert (await may_use("ada"), await may_use("bob")) == (True, False)
    async with store.writing() as tx:
        await projects.update_project(tx, project, sources=[ProjectSource("shop-id", "ada")])
    assert (await may_use("bob"), await may_use("bob", inside=False)) == (True, False)
    with pytest.raises(AccessEnded):
        await may_use("eve")
    async with store.writing() as tx:
        await remove_grant(tx, "source", "shop-id", "user", "ada", defaults=(), by="root")
    assert await may_use("bob") is False


async def test_a_run_in_a_project(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    project = await make_people(store)
    [change] = await Catalog(store).apply([{"kind": "source", "name": "shop", "address": shop}])
    item = change.definition.id
    async with store.writing() as tx:
        await add_grant(tx, "source", item, "user", "ada", "use", by="root")
    model = ScriptedModel([COUNT, finish("3 [q1].")])
    analyst = await open_analyst(model)
    asking: dict[str, Any] = {"user_id": project.user_id, "model": MODEL, "asker": RunAsker("bob"), "thread_id": "t"}
    with pytest.raises(NotGranted):
        await analyst.ask("How many customers?", source="shop", **asking)
    async with store.writing() as tx:
        await projects.update_project(tx, project, sources=[ProjectSource(item, "ada")])
    handle = await analyst.ask("How many customers?", source="shop", **asking)
    assert (await handle.wait()).type == "finished"
    assert "Answer in pirate's words." in str(model.calls[0].messages[0].text)
    with pytest.raises(AccessEnded):
        await analyst.ask("How many customers?", **asking | {"asker": RunAsker("eve")})
    async with store.reading() as tx:
        assert await projects.first_asker(tx, "t") == "bob"
        with pytest.raises(ThreadNotFound):
            await log.find_thread(tx, "t", user_id="bob")
        assert await projects.find_place(tx, "t", {project.id}) == project.user_id
        assert await projects.find_place(tx, "t", {"another"}) is None


async def test_memories_cross_no_border_of_a_project(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    project = await make_people(store)
    model = ScriptedModel(
        [
            *(call("remember", content="The secret colour is teal."), finish("Noted.")),
            *(call("remember", content="The team's word is heron."), finish("Noted.")),
            finish("Seen."),
            finish("Seen."),
        ]
    )
    analyst = await open_analyst(model, source=shop)
    private: dict[str, Any] = {"user_id": "bob", "model": MODEL, "asker": RunAsker("bob")}
    shared = private | {"user_id": project.user_id}
    for question, how in (
        ("Remember: the secret colour is teal.", private),
        ("Remember: the team's word is heron.", shared),
        ("What do you remember of the secret colour?", shared),
        ("What do you remember of the team's word?", private),
    ):
        assert (await (await analyst.ask(question, **how)).wait()).type == "finished"
    async with store.reading() as tx:
        assert [each.content for each in await memories.list_(tx, Owner("bob"), limit=9)] == [
            "The secret colour is teal."
        ]
        of_project = await memories.list_(tx, Owner(project.user_id), limit=9)
    assert [each.content for each in of_project] == ["The team's word is heron."]
    seen = [str([message.text for message in each.messages]) for each in model.calls]
    assert "teal." not in seen[-2], "a member's own memory reached the project"
    assert "heron." not in seen[-1], "a project's memory left it"


async def test_a_conversation_moves_with_what_is_its_own(open_analyst: OpenAnalyst, store: Driver, shop: str) -> None:
    project = await make_people(store)
    model = ScriptedModel(
        [call("remember", content="I like teal."), finish("Noted."), finish("You like teal."), finish("No idea.")]
    )
    analyst = await open_analyst(model, source=shop)
    own: dict[str, Any] = {"user_id": "bob", "model": MODEL, "asker": RunAsker("bob")}
    await (await analyst.ask("Remember that I like teal.", thread_id="first", **own)).wait()
    await (await analyst.ask("What do I like?", thread_id="second", **own)).wait()
    async with store.writing() as tx:
        [kept] = await memories.list_(tx, Owner("bob"), limit=9)
        for each in ("first", "second"):
            await share_links.create(tx, each, user_id="bob", tip=1, run_id=None, expires_at=None)
    for each in ("first", "second"):
        await analyst.threads.move(each, user_id="bob", to=project.user_id)
    async with store.writing() as tx:
        for each in ("first", "second"):
            with pytest.raises(ThreadNotFound):
                await log.find_thread(tx, each, user_id="bob")
            assert await share_links.of_thread(tx, each) == []
            assert list(await memories.used_in(tx, each, user_id=project.user_id)) == []
        assert [each.id for each in await memories.list_(tx, Owner("bob"), limit=9)] == [kept.id]
        assert await memories.list_(tx, Owner(project.user_id), limit=9) == []
        assert await projects.count_conversations(tx, project) == 2
        await log.delete_thread(tx, "first", user_id=project.user_id, with_memories=True)
        assert [each.content for each in await memories.list_(tx, Owner("bob"), limit=9)] == ["I like teal."]
    await analyst.threads.move("second", user_id=project.user_id, to="bob")
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "second", user_id="bob")).entry_count > 0
    with pytest.raises(ThreadNotFound):
        await analyst.threads.move("second", user_id=project.user_id, to="bob")


async def test_what_works_on_a_conversation_keeps_it_where_it_is(
    open_analyst: OpenAnalyst, store: Driver, shop: str
) -> None:
    project = await make_people(store)
    model = Gated([finish("Done.")])
    analyst = await open_analyst(model, source=shop)
    handle = await analyst.ask("How many?", thread_id="t", user_id="bob", model=MODEL, asker=RunAsker("bob"))
    await model.asked.wait()
    with pytest.raises(RunInProgress):
        await analyst.threads.move("t", user_id="bob", to=project.user_id)
    (model.metadata or {})["gate"].set()
    await handle.wait()
    await analyst.threads.move("t", user_id="bob", to=project.user_id)


async def test_whoever_leaves_a_project_cannot_go_on_with_its_run(
    open_analyst: OpenAnalyst, store: Driver, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_rights, "READ_AGAIN_SECONDS", 0.0)
    project = await make_people(store)
    model = Gated([COUNT, finish("Done.")])
    analyst = await open_analyst(model, source=shop)
    handle = await analyst.ask("How many?", user_id=project.user_id, model=MODEL, asker=RunAsker("bob"))
    await model.asked.wait()
    async with store.writing() as tx:
        await projects.remove_member(tx, project, "bob")
    (model.metadata or {})["gate"].set()
    assert (await handle.wait()).data["error"]["type"] == "access_ended"

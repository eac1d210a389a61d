"""Projects: conversations that members share, with instructions, sources and memories of their own.

A project's conversations and memories have a user of their own, `project:` and its id, so that all that keeps users
apart keeps projects apart. A member's request about one of them acts as that user.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from longthread.access.grants import GrantedRights, GrantItem, load_rights_of
from longthread.access.principal import PROJECT
from longthread.access.users import find_user, find_user_by_name
from longthread.errors import AccessEnded, InvalidInput, LastManager, ManagerNeeded, ProjectNotFound, UserNotFound
from longthread.model.ids import new_id
from longthread.model.run import RunAsker
from longthread.store import log
from longthread.store.driver import Row, Transaction, one
from longthread.store.log import now
from longthread.store.rows import dump

ProjectRight = Literal["use", "manage"]
LONGEST_NAME = 200
LONGEST_INSTRUCTIONS = 8_000
MOST_SOURCES = 100


@dataclass(frozen=True, slots=True)
class ProjectSource:
    """A source that a project gives its members: as what it is granted, and by whom. It is theirs while that user may
    use it."""

    item: str
    by: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project. `instructions` go into the prompts of its runs."""

    id: str
    name: str
    instructions: str
    sources: tuple[ProjectSource, ...]
    created_by: str
    created_at: datetime
    updated_at: datetime

    @property
    def user_id(self) -> str:
        """The user of its conversations and memories."""
        return f"{PROJECT}{self.id}"


@dataclass(frozen=True, slots=True)
class ProjectMember:
    """A member. `name` and `display` are for people."""

    user_id: str
    name: str
    display: str
    may: ProjectRight
    added_at: datetime


def project_of(user_id: str) -> str | None:
    """Return the project whose conversations and memories are this user's; None: it is a person."""
    return user_id.removeprefix(PROJECT) if user_id.startswith(PROJECT) else None


async def create_project(tx: Transaction, name: str, *, by: str, instructions: str = "") -> Project:
    """Make a project, which its maker manages. Raises InvalidInput."""
    project_id = new_id()
    about = {"name": _check_name(name), "instructions": _check_instructions(instructions)}
    await tx.run("insert_project", id=project_id, sources="[]", created_by=by, now=now(), **about)
    await tx.run("save_project_member", project_id=project_id, user_id=by, may="manage", now=now())
    return await find_project(tx, project_id)


async def find_project(tx: Transaction, project_id: str) -> Project:
    """Raises ProjectNotFound."""
    row = await one(tx, "select_project", project_id=project_id)
    if row is None:
        raise ProjectNotFound(project=project_id)
    return _project(row)


async def find_membership(tx: Transaction, project_id: str, user_id: str, *, manages: bool = False) -> Project:
    """Return a project that a user is a member of. Raises ProjectNotFound: there is none, or the user is no member.
    Raises ManagerNeeded: the member does not manage it."""
    row = await one(tx, "select_membership", project_id=project_id, user_id=user_id)
    if row is None:
        raise ProjectNotFound(project=project_id)
    if manages and row["may"] != "manage":
        raise ManagerNeeded(project=row["name"])
    return _project(row)


async def list_projects(tx: Transaction, user_id: str) -> list[tuple[Project, ProjectRight]]:
    """Return the projects that a user is a member of, by name."""
    return [(_project(row), row["may"]) for row in await tx.fetch("select_memberships", user_id=user_id)]


async def list_all_projects(tx: Transaction) -> list[tuple[Project, int]]:
    """Return all projects by name, each with the number of its members."""
    return [(_project(row), int(row["members"])) for row in await tx.fetch("select_all_projects")]


async def update_project(
    tx: Transaction,
    project: Project,
    *,
    name: str | None = None,
    instructions: str | None = None,
    sources: Sequence[ProjectSource] | None = None,
) -> Project:
    """Change a project; None: it stays. Raises InvalidInput."""
    changed = replace(
        project,
        name=project.name if name is None else _check_name(name),
        instructions=project.instructions if instructions is None else _check_instructions(instructions),
        sources=project.sources if sources is None else tuple(sources),
    )
    if len(changed.sources) > MOST_SOURCES:
        raise InvalidInput(reason=f"A project has at most {MOST_SOURCES} sources.")
    await tx.run(
        "update_project",
        project_id=project.id,
        name=changed.name,
        instructions=changed.instructions,
        sources=dump([{"item": each.item, "by": each.by} for each in changed.sources]),
        now=now(),
    )
    return await find_project(tx, project.id)


async def delete_project(tx: Transaction, project: Project) -> None:
    """Delete a project with its memberships. Its conversations and memories are deleted by who calls."""
    await tx.run("delete_project", project_id=project.id)


async def close_project(tx: Transaction, project: Project) -> None:
    """Take all members out, so that nothing is added to what is then deleted."""
    await tx.run("delete_project_members", project_id=project.id)


async def count_conversations(tx: Transaction, project: Project) -> int:
    """Count a project's conversations, with those whose deletion can still be undone."""
    [row] = await tx.fetch("count_conversations", user_id=project.user_id)
    return int(row["conversations"])


async def list_members(tx: Transaction, project: Project) -> list[ProjectMember]:
    """Return the members, who came first first."""
    return [
        ProjectMember(row["user_id"], row["name"], row["display"], row["may"], datetime.fromisoformat(row["added_at"]))
        for row in await tx.fetch("select_project_members", project_id=project.id)
    ]


async def find_person(tx: Transaction, id_or_name: str) -> str:
    """Return the id of the user with this id or name. Raises UserNotFound."""
    try:
        return (await find_user(tx, id_or_name)).id
    except UserNotFound:
        return (await find_user_by_name(tx, id_or_name)).id


async def set_member(tx: Transaction, project: Project, user_id: str, may: ProjectRight) -> None:
    """Make a user a member, or change what a member may do. Raises LastManager: no manager would be left."""
    await tx.run("lock_project", project_id=project.id)
    if may != "manage":
        await _expect_other_manager(tx, project, user_id)
    await tx.run("save_project_member", project_id=project.id, user_id=user_id, may=may, now=now())


async def remove_member(tx: Transaction, project: Project, user_id: str) -> None:
    """Take a member out of a project; nothing, if the user is none. Raises LastManager."""
    await tx.run("lock_project", project_id=project.id)
    await _expect_other_manager(tx, project, user_id)
    await tx.run("delete_project_member", project_id=project.id, user_id=user_id)


async def find_place(tx: Transaction, thread_id: str, projects: Collection[str]) -> str | None:
    """Return the user of a thread, if the thread is in one of these projects; also while its deletion can be undone."""
    row = await one(tx, "select_place_of_thread", thread_id=thread_id)
    place = None if row is None else str(row["user_id"])
    return place if place is not None and project_of(place) in projects else None


async def move_conversation(tx: Transaction, thread_id: str, *, user_id: str, to: str) -> None:
    """Give a thread, and those below it, to another user. The caller has locked it, and knows that nothing works on it.

    What was remembered from it stays whose it is, what its runs were given of it is shown no more, and its share links
    end. Raises ThreadNotFound.
    """
    await log.find_row(tx, thread_id, user_id=user_id)
    below = await log.threads_below(tx, thread_id, user_id=user_id)
    for each in [thread_id, *below]:
        await log.lock(tx, each)
        await tx.run("revoke_shares_of_thread", thread_id=each)
        await tx.run("forget_memory_uses", thread_id=each)
        await tx.run("own_thread", id=each, user_id=to)


async def first_asker(tx: Transaction, thread_id: str) -> str | None:
    """Return who asked a thread's first question; None: there is none, or there was no login."""
    row = await one(tx, "select_first_asker", thread_id=thread_id)
    return None if row is None else row["asker"]


async def names_of(tx: Transaction, user_ids: Iterable[str]) -> Mapping[str, str]:
    """Return the names of users, for people. One who is deleted has none."""
    ids = sorted(set(user_ids))
    rows = await tx.fetch("select_names_of_users", ids=json.dumps(ids)) if ids else []
    return {row["id"]: row["display"] or row["name"] for row in rows}


async def join_rights(
    tx: Transaction, rights: GrantedRights, user_id: str, defaults: Collection[GrantItem]
) -> GrantedRights:
    """Return the rights that a person has in the conversations of `user_id`: in a project also to its sources. Raises
    AccessEnded: the person is no member of the project."""
    project_id = project_of(user_id)
    if project_id is None:
        return rights
    try:
        project = await find_membership(tx, project_id, rights.principal.user)
    except ProjectNotFound:
        raise AccessEnded from None
    return replace(rights, project_sources=await _shared_sources(tx, project, defaults))


async def _shared_sources(tx: Transaction, project: Project, defaults: Collection[GrantItem]) -> frozenset[str]:
    """Return the sources that members may use: the ones that who added them may use today."""
    found: set[str] = set()
    for adder in sorted({each.by for each in project.sources}):
        try:
            rights = await load_rights_of(tx, RunAsker(adder), defaults)
        except AccessEnded:
            continue
        found |= {each.item for each in project.sources if each.by == adder and rights.may_use("source", each.item)}
    return frozenset(found)


async def _expect_other_manager(tx: Transaction, project: Project, user_id: str) -> None:
    managers = {each.user_id for each in await list_members(tx, project) if each.may == "manage"}
    if managers == {user_id}:
        raise LastManager(project=project.name)


def _check_name(name: str) -> str:
    if not name.strip() or len(name) > LONGEST_NAME:
        raise InvalidInput(reason=f"A project's name has 1 to {LONGEST_NAME} characters.")
    return name.strip()


def _check_instructions(instructions: str) -> str:
    if len(instructions) > LONGEST_INSTRUCTIONS:
        raise InvalidInput(reason=f"A project's instructions have at most {LONGEST_INSTRUCTIONS:,} characters.")
    return instructions.strip()


def _project(row: Row) -> Project:
    return Project(
        id=row["id"],
        name=row["name"],
        instructions=row["instructions"],
        sources=tuple(ProjectSource(each["item"], each["by"]) for each in json.loads(row["sources"])),
        created_by=row["created_by"],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]),
    )

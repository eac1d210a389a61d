"""`longthread projects …`: conversations that people share, for people who can read the store."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from longthread.access import projects, users
from longthread.access.projects import Project, ProjectMember
from longthread.access.users import normalize_name
from longthread.cli import options
from longthread.cli.commands.users import print_table, work_on_access
from longthread.cli.language import say
from longthread.cli.terminal import echo, print_line
from longthread.cli.whole_store import run
from longthread.errors import InvalidInput, ProjectNotEmpty, ProjectNotFound
from longthread.memory.forget import forget_user
from longthread.settings import Settings
from longthread.store.driver import Transaction
from longthread.store.open import open_store

_ProjectName = Annotated[str, typer.Argument(metavar="PROJECT", help="The project's name or id.")]

projects_app = typer.Typer(help="Make projects: conversations that their members share.", no_args_is_help=True)


@projects_app.command()
def add(
    name: Annotated[str, typer.Argument(help="The project's name.")],
    manager: Annotated[
        str | None, typer.Option("--manager", help="The user who manages it; without a login, you.")
    ] = None,
    member: Annotated[list[str] | None, typer.Option("--member", help="A user who works in it; several times.")] = None,
    instructions: Annotated[str, typer.Option("--instructions", help="What its runs are asked to do.")] = "",
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Make a project with the user who manages it, and its members."""

    async def make(tx: Transaction, settings: Settings) -> tuple[Project, list[ProjectMember]]:
        by = await _find_user(tx, settings, manager)
        project = await projects.create_project(tx, name, by=by, instructions=instructions)
        for each in member or ():
            await projects.set_member(tx, project, await _find_user(tx, settings, each), "use")
        return project, await projects.list_members(tx, project)

    project, members = work_on_access(database, make, writes=True)
    if as_json:
        print_line(_to_json(project, members))
    else:
        echo("The project {} is there.", project.name)


@projects_app.command("list")
def list_projects(as_json: options.AsJson = False, database: options.Database = None) -> None:
    """The projects, with their members."""

    async def read(tx: Transaction, _: Settings) -> list[tuple[Project, list[ProjectMember], int]]:
        every = [project for project, _ in await projects.list_all_projects(tx)]
        return [
            (each, await projects.list_members(tx, each), await projects.count_conversations(tx, each))
            for each in every
        ]

    found = work_on_access(database, read)
    if as_json:
        for project, members, conversations in found:
            print_line(_to_json(project, members) | {"conversations": conversations})
        return
    rows = [(each.name, each.id, str(count), _describe_members(members)) for each, members, count in found]
    columns = ("project", "id", "conversations", "members")
    print_table(columns, rows, "There are no projects. Try: longthread projects add …")


@projects_app.command("members")
def change_members(
    name: _ProjectName,
    add: Annotated[list[str] | None, typer.Option("--add", help="A user who works in it; several times.")] = None,
    manager: Annotated[
        list[str] | None, typer.Option("--manager", help="A user who manages it; several times.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option("--remove", help="A member who leaves; several times.")] = None,
    as_json: options.AsJson = False,
    database: options.Database = None,
) -> None:
    """Who works in a project; add members, or take some out."""

    async def change(tx: Transaction, settings: Settings) -> tuple[Project, list[ProjectMember]]:
        project = await _find_project(tx, name)
        for each in manager or ():
            await projects.set_member(tx, project, await _find_user(tx, settings, each), "manage")
        for each in add or ():
            await projects.set_member(tx, project, await _find_user(tx, settings, each), "use")
        for each in remove or ():
            await projects.remove_member(tx, project, await _find_user(tx, settings, each))
        return project, await projects.list_members(tx, project)

    project, members = work_on_access(database, change, writes=bool(add or manager or remove))
    if as_json:
        print_line(_to_json(project, members))
        return
    print_table(("member", "right"), [(each.name, each.may) for each in members], "Nobody is in this project.")


@projects_app.command()
def remove(
    name: _ProjectName,
    conversations: Annotated[
        bool, typer.Option("--conversations", help="Delete its conversations, too. It cannot be undone.")
    ] = False,
    database: options.Database = None,
) -> None:
    """Delete a project with its memories, and with --conversations its conversations."""

    async def find(tx: Transaction, _: Settings) -> Project:
        project = await _find_project(tx, name)
        if (count := await projects.count_conversations(tx, project)) and not conversations:
            raise ProjectNotEmpty(project=project.name, count=count)
        await projects.close_project(tx, project)
        return project

    project = work_on_access(database, find, writes=True)

    async def delete() -> None:
        async with open_store(Settings.load(database=database).database, creates=False) as store:
            await forget_user(store, project.user_id)
            async with store.writing() as tx:
                await projects.delete_project(tx, project)

    run(delete())
    echo("The project {} is deleted.", project.name)


async def _find_user(tx: Transaction, settings: Settings, name: str | None) -> str:
    """Return the id of a user; without a login every name is one. Raises UserNotFound, InvalidInput."""
    if await users.count_users(tx):
        if name is None:
            raise InvalidInput(reason="Say with --manager who manages the project.")
        return await projects.find_person(tx, name)
    return normalize_name(name) if name is not None else settings.user


async def _find_project(tx: Transaction, name: str) -> Project:
    """Return the project with this id or name. Raises ProjectNotFound; InvalidInput: several have the name."""
    found = [each for each, _ in await projects.list_all_projects(tx) if name in (each.id, each.name)]
    if not found:
        raise ProjectNotFound(project=name)
    if len(found) > 1:
        raise InvalidInput(reason=f"{len(found)} projects have the name {name}. Give the id of one.")
    return found[0]


def _describe_members(members: list[ProjectMember]) -> str:
    return ", ".join(f"{each.name} ({say(each.may)})" for each in members)


def _to_json(project: Project, members: list[ProjectMember]) -> dict[str, Any]:
    about = {"id": project.id, "name": project.name, "instructions": project.instructions}
    people = [{"id": each.user_id, "name": each.name, "may": each.may} for each in members]
    return {**about, "sources": [each.item for each in project.sources], "members": people}

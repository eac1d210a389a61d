"""Projects: conversations that their members share, with instructions and sources of their own."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from longthread.access import projects
from longthread.access.projects import (
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    MOST_SOURCES,
    Project,
    ProjectMember,
    ProjectRight,
    ProjectSource,
)
from longthread.errors import (
    InvalidInput,
    LastManager,
    ManagerNeeded,
    NotGranted,
    ProjectNotEmpty,
    ProjectNotFound,
    RunInProgress,
    ThreadNotFound,
    UserNotFound,
)
from longthread.memory.forget import forget_user
from longthread.server.answers import Timestamp
from longthread.server.conversation_answers import ConversationView
from longthread.server.fields import Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.routes.conversations import view_of
from longthread.server.state import Caller, Granted, PrincipalDep, Served, ServedDep, acting_user
from longthread.store import catalog
from longthread.store.driver import Transaction

router = APIRouter(prefix="/api", tags=["projects"])

ProjectName = Annotated[Name, Field(max_length=LONGEST_NAME)]
Instructions = Annotated[PlainText, Field(max_length=LONGEST_INSTRUCTIONS)]


class MemberView(TypedDict):
    """A member of a project. `may`: `use` it, or also `manage` its members, instructions and sources."""

    id: str
    name: str
    display: str
    may: ProjectRight
    added_at: Timestamp


class ProjectSummary(TypedDict):
    """A project as a list has it. `may` is what the caller may do."""

    id: str
    name: str
    may: ProjectRight
    conversations: int
    updated_at: Timestamp


class ProjectList(TypedDict):
    projects: list[ProjectSummary]


class ProjectView(ProjectSummary):
    """A project. `instructions` go into the prompts of its runs; `sources` are the names of what it gives its
    members."""

    instructions: str
    sources: list[str]
    members: list[MemberView]
    created_at: Timestamp


class NewProjectBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: ProjectName
    instructions: Instructions = ""


class ProjectBody(BaseModel):
    """What changes of a project. `sources` are replaced: the caller may use the new ones."""

    model_config = ConfigDict(extra="forbid")

    name: ProjectName | None = None
    instructions: Instructions | None = None
    sources: Annotated[list[Annotated[Name, Field(max_length=4096)]], Field(max_length=MOST_SOURCES)] | None = None


class MemberBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    may: ProjectRight = "use"


class MoveBody(BaseModel):
    """Where a conversation goes: into a project, or with null out of the one where it is."""

    model_config = ConfigDict(extra="forbid")

    project: Annotated[PlainText, Field(max_length=100)] | None


@router.get("/projects", responses=problems(reads=True))
async def list_projects(served: ServedDep, principal: PrincipalDep) -> ProjectList:
    """The projects that the caller is a member of, by name."""
    async with served.analyst.store.reading() as tx:
        found = await projects.list_projects(tx, principal.user)
        return {"projects": [await _summarize(tx, project, may) for project, may in found]}


@router.post("/projects", status_code=201, responses=problems(InvalidInput, body=True))
async def create_project(served: ServedDep, principal: PrincipalDep, body: NewProjectBody) -> ProjectView:
    """Make a project, which the caller manages."""
    async with served.analyst.store.writing() as tx:
        project = await projects.create_project(tx, body.name, by=principal.user, instructions=body.instructions)
        made = await _describe(tx, project, principal.user)
    served.authentication.forget(principal.user)
    return made


@router.get("/projects/{project_id}", responses=problems(ProjectNotFound, reads=True))
async def read_project(served: ServedDep, principal: PrincipalDep, project_id: PathSegment) -> ProjectView:
    """A project with its members."""
    async with served.analyst.store.reading() as tx:
        return await _describe(tx, await projects.find_membership(tx, project_id, principal.user), principal.user)


@router.patch(
    "/projects/{project_id}", responses=problems(InvalidInput, ManagerNeeded, NotGranted, ProjectNotFound, body=True)
)
async def change_project(
    served: ServedDep, principal: PrincipalDep, granted: Granted, project_id: PathSegment, body: ProjectBody
) -> ProjectView:
    """Change a project's name, instructions or sources. Members may use a source in its conversations while the manager
    who has added it may."""
    async with served.analyst.store.reading() as tx:
        project = await projects.find_membership(tx, project_id, principal.user, manages=True)
        names = await _names_of_sources(tx, project)
    kept = {names.get(each.item, each.item): each for each in project.sources}
    sources: list[ProjectSource] | None = None
    if body.sources is not None:
        sources = []
        for name in dict.fromkeys(body.sources):
            if name in kept:
                sources.append(kept[name])
                continue
            item = await served.analyst.sources.item_of(name, granted)
            sources.append(ProjectSource(item, principal.user))
    async with served.analyst.store.writing() as tx:
        project = await projects.find_membership(tx, project_id, principal.user, manages=True)
        changed = await projects.update_project(
            tx, project, name=body.name, instructions=body.instructions, sources=sources
        )
        return await _describe(tx, changed, principal.user)


@router.delete(
    "/projects/{project_id}", status_code=204, responses=problems(ManagerNeeded, ProjectNotEmpty, ProjectNotFound)
)
async def delete_project(
    served: ServedDep,
    principal: PrincipalDep,
    project_id: PathSegment,
    conversations: Literal["keep", "delete"] = "keep",
) -> Response:
    """Delete a project with its memories. One that has conversations is deleted only with them (`delete`)."""
    async with served.analyst.store.writing() as tx:
        project = await projects.find_membership(tx, project_id, principal.user, manages=True)
        count = await projects.count_conversations(tx, project)
        if count and conversations == "keep":
            raise ProjectNotEmpty(project=project.name, count=count)
        members = await projects.list_members(tx, project)
        await projects.close_project(tx, project)
    for each in members:
        served.authentication.forget(each.user_id)
    await forget_user(served.analyst.store, project.user_id)
    async with served.analyst.store.writing() as tx:
        await projects.delete_project(tx, project)
    return Response(status_code=204)


@router.put(
    "/projects/{project_id}/members/{user_id}",
    status_code=204,
    responses=problems(LastManager, ManagerNeeded, ProjectNotFound, UserNotFound, body=True),
)
async def set_member(
    served: ServedDep,
    principal: PrincipalDep,
    project_id: PathSegment,
    user_id: PathSegment,
    body: MemberBody | None = None,
) -> Response:
    """Make a user a member, or change what a member may do. The user is named by id, or by the name at the login."""
    async with served.analyst.store.writing() as tx:
        project = await projects.find_membership(tx, project_id, principal.user, manages=True)
        person = user_id if served.authentication.is_local else await projects.find_person(tx, user_id)
        await projects.set_member(tx, project, person, body.may if body is not None else "use")
    served.authentication.forget(person)
    return Response(status_code=204)


@router.delete(
    "/projects/{project_id}/members/{user_id}",
    status_code=204,
    responses=problems(LastManager, ManagerNeeded, ProjectNotFound),
)
async def remove_member(
    served: ServedDep, principal: PrincipalDep, project_id: PathSegment, user_id: PathSegment
) -> Response:
    """Take a member out of a project; everybody may leave. What the member asked there stays."""
    async with served.analyst.store.writing() as tx:
        project = await projects.find_membership(tx, project_id, principal.user, manages=user_id != principal.user)
        await projects.remove_member(tx, project, user_id)
    served.authentication.forget(user_id)
    return Response(status_code=204)


@router.post(
    "/conversations/{thread_id}/project",
    responses=problems(InvalidInput, ManagerNeeded, ProjectNotFound, RunInProgress, ThreadNotFound, body=True),
)
async def move_conversation(
    served: ServedDep, user: Caller, principal: PrincipalDep, thread_id: PathSegment, body: MoveBody
) -> ConversationView:
    """Move a conversation into a project, or with null out of it, to the caller: that may who asked its first question,
    and who manages the project. Nothing may work on it. What was remembered from it stays whose it is, and its share
    links end."""
    to = principal.user if body.project is None else await acting_user(served, principal, None, body.project)
    if user != principal.user and to != user:
        await _expect_may_take_out(served, principal.user, user, thread_id)
    if to != user:
        thread = await served.analyst.threads.move(thread_id, user_id=user, to=to)
    else:
        thread = await served.analyst.threads.find(thread_id, user_id=user)
    return await view_of(served, thread, to)


async def _expect_may_take_out(served: Served, person: str, user: str, thread_id: str) -> None:
    """Raise ManagerNeeded: the caller neither began the conversation, nor manages its project."""
    async with served.analyst.store.reading() as tx:
        began = await projects.first_asker(tx, thread_id) == person
        await projects.find_membership(tx, str(projects.project_of(user)), person, manages=not began)


async def _summarize(tx: Transaction, project: Project, may: ProjectRight) -> ProjectSummary:
    return {
        "id": project.id,
        "name": project.name,
        "may": may,
        "conversations": await projects.count_conversations(tx, project),
        "updated_at": project.updated_at.isoformat(),
    }


async def _describe(tx: Transaction, project: Project, user_id: str) -> ProjectView:
    members = await projects.list_members(tx, project)
    may: ProjectRight = next((each.may for each in members if each.user_id == user_id), "use")
    names = await _names_of_sources(tx, project)
    return {
        **await _summarize(tx, project, may),
        "instructions": project.instructions,
        "sources": [names.get(each.item, each.item) for each in project.sources],
        "members": [_describe_member(each) for each in members],
        "created_at": project.created_at.isoformat(),
    }


async def _names_of_sources(tx: Transaction, project: Project) -> dict[str, str]:
    """Return the names of a project's sources by what they are granted as. What is configured has no other name."""
    return {each.id: each.name for each in await catalog.sources(tx)} if project.sources else {}


def _describe_member(member: ProjectMember) -> MemberView:
    return {
        "id": member.user_id,
        "name": member.name,
        "display": member.display,
        "may": member.may,
        "added_at": member.added_at.isoformat(),
    }

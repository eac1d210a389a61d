"""The catalog's definitions: agents, skills, tools, with versions and a tried tool; and terms of sources."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from longthread.access.grants import GrantedRights
from longthread.errors import (
    CatalogInvalid,
    DefinitionAmbiguous,
    DefinitionBuiltIn,
    DefinitionInUse,
    DefinitionNotFound,
    ExtraMissing,
    InvalidInput,
    LongthreadError,
    SecretUnusable,
    SettingsNotAllowed,
    SourceError,
    ToolInvalid,
    ToolOnCommandLine,
    VersionNotFound,
)
from longthread.model.catalog import Definition, Kind, Version
from longthread.runs.rights import granted_names
from longthread.runs.run_setup import builtin_parameters
from longthread.server.answers import AgentInfo, AgentList, JsonObject
from longthread.server.catalog_answers import (
    CatalogChange,
    CatalogItem,
    CatalogList,
    CatalogVersions,
    LocalText,
    SourceTerms,
    ToolFieldView,
    ToolTrial,
    ToolTypeView,
)
from longthread.server.fields import Flag, Name, PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.state import DEMO, KNOWN_ONLY, Caller, CallerRights, Granted, Rights, Served, ServedDep
from longthread.tools.arguments import Arguments
from longthread.tools.catalog.definitions import Catalog, expect_definable, power_of
from longthread.tools.catalog.fields import LONGEST_NAME, MOST_OBJECTS
from longthread.tools.catalog.names import Names
from longthread.tools.catalog.role import AgentRole, active_roles
from longthread.tools.catalog.taught_sql import find_wrong_sql, has_sql
from longthread.tools.catalog.teach import LONGEST_MEANING, LONGEST_SQL
from longthread.tools.tool import Tool, make_failure
from longthread.tools.tool_type import Bilingual, FormField, find_type, list_types
from longthread.tools.trial import Trier, open_trial

router = APIRouter(prefix="/api/catalog", tags=["catalog"], dependencies=[KNOWN_ONLY])

_KINDS: dict[str, Kind] = {"agents": "agent", "skills": "skill", "tools": "tool"}
AnyKind = Annotated[Literal["agents", "skills", "tools"], Path()]
SwitchedKind = Annotated[Literal["agents", "tools"], Path()]
_NAMED = (DefinitionAmbiguous, DefinitionNotFound, SettingsNotAllowed)


class DefinitionBody(BaseModel):
    """A definition as a person writes it, without kind and name."""

    model_config = ConfigDict(extra="forbid")

    definition: JsonObject


class SwitchBody(BaseModel):
    """Whether runs may use it."""

    model_config = ConfigDict(extra="forbid")

    is_active: Flag


class TrialBody(BaseModel):
    """Arguments of a call. `source` is what a built-in tool asks; `approve` approves a call that needs that. With a
    `definition` it is called as that says, which is not stored."""

    model_config = ConfigDict(extra="forbid")

    args: JsonObject = Field(default_factory=dict)
    source: Annotated[PlainText, Field(min_length=1, max_length=4096)] | None = None
    approve: Flag = False
    definition: JsonObject | None = None


@router.get("/{kind}", responses=problems(SettingsNotAllowed, reads=True))
async def definitions(served: ServedDep, granted: Granted, kind: AnyKind) -> CatalogList:
    """All definitions of a kind by name, with the built-in ones. `types` says how a form shows each type of tools.
    Where users log in, the list has what the caller may use."""
    names = await _names(served, granted)
    found = sorted((each for each in names.by_key.values() if each.kind == _KINDS[kind]), key=lambda each: each.name)
    return {
        "items": [_item(names, each) for each in found],
        "changeable": _may_make(served, granted),
        "types": _describe_types() if kind == "tools" else [],
    }


@router.get("/{kind}/{name}", responses=problems(*_NAMED, VersionNotFound, reads=True))
async def definition(
    served: ServedDep,
    granted: Granted,
    kind: AnyKind,
    name: PathSegment,
    version: Annotated[int | None, Query(ge=1, lt=2**31)] = None,
) -> CatalogItem:
    """One definition, by its name or id, as it is or as it was in a version."""
    names = await _names(served, granted)
    if version is None:
        return _item(names, names.one(_KINDS[kind], name))
    if not granted.is_unbounded:
        name = names.one(_KINDS[kind], name).id
    return _version(names, await Catalog(served.analyst.store).version(_KINDS[kind], name, version))


@router.get("/{kind}/{name}/versions", responses=problems(*_NAMED, reads=True))
async def versions(served: ServedDep, granted: Granted, kind: AnyKind, name: PathSegment) -> CatalogVersions:
    """All versions of a definition, also of a deleted one."""
    if not granted.is_unbounded:  # a deleted one is an administrator's to see
        name = (await _names(served, granted)).one(_KINDS[kind], name).id
    found = await Catalog(served.analyst.store).history(_KINDS[kind], name)
    return {
        "versions": [
            {
                "version": each.version,
                "name": each.name,
                "at": each.at.isoformat(),
                "by": each.by,
                "deleted": each.body is None,
            }
            for each in found
        ]
    }


@router.put(
    "/{kind}/{name}",
    responses=problems(CatalogInvalid, DefinitionAmbiguous, SettingsNotAllowed, ToolOnCommandLine, body=True),
)
async def define(
    served: ServedDep, user: Caller, granted: Granted, kind: AnyKind, name: PathSegment, body: DefinitionBody
) -> CatalogChange:
    """Define an agent, a skill or a tool, as a new version of the one of this name if there is one. Runs that begin now
    use it; those under way keep theirs. A tool that runs code or a program, sends a secret, or asks private addresses
    is defined on the command line; here it may change in all but its implementation."""
    return await _apply_definition(served, user, granted, _add_name(body.definition, kind, name))


@router.patch("/{kind}/{name}", responses=problems(CatalogInvalid, *_NAMED, DefinitionBuiltIn, body=True))
async def switch(
    served: ServedDep, user: Caller, granted: Granted, kind: SwitchedKind, name: PathSegment, body: SwitchBody
) -> CatalogChange:
    """Switch an agent or a tool on or off, which is a version too."""
    names = await _names(served, granted)
    found = names.one(_KINDS[kind], name)
    if found.is_builtin:
        raise DefinitionBuiltIn(kind=found.kind, name=found.name)
    written = names.write_definition(found.kind, found.name, found.body) | {"id": found.id, "is_active": body.is_active}
    return await _apply_definition(served, user, granted, written)


@router.delete("/{kind}/{name}", status_code=204, responses=problems(*_NAMED, DefinitionBuiltIn, DefinitionInUse))
async def delete(
    served: ServedDep, user: Caller, granted: Granted, kind: AnyKind, name: PathSegment, force: bool = False
) -> Response:
    """Delete a definition; its versions stay. `force` also takes it out of those that use it, and deletes the
    conversations and memories of an agent. 409 while it is used, unless forced."""
    if not granted.is_unbounded:
        name = (await _names(served, granted)).one(_KINDS[kind], name).id
    await Catalog(served.analyst.store, user=user, rights=granted).delete(_KINDS[kind], name, force=force)
    served.analyst.hub.list_changed(user)
    return Response(status_code=204)


@router.post(
    "/tools/{name}/run",
    responses=problems(*_NAMED, CatalogInvalid, SecretUnusable, SourceError, ToolInvalid, ToolOnCommandLine, body=True),
)
async def run(
    served: ServedDep,
    user: Caller,
    rights: Rights,
    granted: Granted,
    name: PathSegment,
    body: TrialBody | None = None,
) -> ToolTrial:
    """Call a tool as an agent would, without a model: no conversation has it. The answer is what the agent is told. A
    `definition` is called before it is stored, by whom may store it."""
    body = body or TrialBody()
    source, draft = rights.source(body.source), None
    if body.definition is not None:
        draft = await _draft_tool(served, user, granted, _add_name(body.definition, "tools", name))
    trier = Trier(user, granted, served.analyst.sources.expect_granted)
    async with open_trial(
        served.analyst.store, served.analyst.settings, name, source=source, draft=draft, trier=trier
    ) as tool:
        try:
            args = Arguments(tool.parameters, tool=tool.name).validate(body.args)
        except LongthreadError as error:
            return {"tool": tool.name, "observation": make_failure(error)}
        return {"tool": tool.name, "observation": await _call_tool(tool, args, approved=body.approve)}


async def _draft_tool(served: Served, user: str, granted: GrantedRights, item: JsonObject) -> Definition:
    """Return a tool that is not stored. Raises RoleMissing, NotGranted: the caller could not store it. Raises
    ToolOnCommandLine: an administrator alone tries one that has a power before it is stored."""
    granted.principal.expect_role("builder")
    draft = (
        await Catalog(served.analyst.store, user=user, rights=granted).define_over_http(item, dry_run=True)
    ).definition
    if granted.principal.via != "local":
        expect_definable(draft, None)
    return draft


async def _call_tool(tool: Tool, args: JsonObject, *, approved: bool) -> JsonObject:
    if tool.needs_approval and not approved:
        raise InvalidInput(reason=f"The tool {tool.name} needs approval. Send `approve`: true to call it.")
    return await tool.run(args, "trial")


def _add_name(definition: JsonObject, kind: str, name: str) -> JsonObject:
    """A definition with the kind and the name of the address."""
    given = {"kind": _KINDS[kind], "name": name}
    other = [field for field, value in given.items() if definition.get(field, value) != value]
    if other:
        raise InvalidInput(reason=f"The definition has another {other[0]} than the address. Leave it out.")
    return {**definition, **given}


async def _names(served: Served, granted: GrantedRights) -> Names:
    """The definitions that the caller may use: others are as unknown as those there are not."""
    return await granted_names(served.analyst.store, granted)


def _may_make(served: Served, granted: GrantedRights) -> bool:
    return not served.analyst.settings.read_only and granted.principal.has_role("builder")


async def _apply_definition(served: Served, user: str, granted: GrantedRights, item: JsonObject) -> CatalogChange:
    catalog = Catalog(served.analyst.store, user=user, rights=granted)
    change = await catalog.define_over_http(item)
    there = (await catalog.names()).by_key.values()
    id_ = change.definition.id
    names = Names(each for each in there if each.id == id_ or granted.may_use(each.kind, each.id, each.name))
    return {"action": change.action, "item": _item(names, names.one(change.kind, change.definition.id))}


def _describe_types() -> list[ToolTypeView]:
    named = ((name, find_type(name)) for name in list_types())
    return [
        {
            "name": name,
            "title": _localize(each.title),
            "about": each.about and _localize(each.about),
            "fields": [_describe_field(field) for field in each.fields],
            "more": each.more and _localize(each.more),
            "serves_tools": each.serves_tools,
        }
        for name, each in named
        if each is not None
    ]


def _describe_field(field: FormField) -> ToolFieldView:
    return {
        "name": field.name,
        "input": field.input,
        "title": _localize(field.title),
        "hint": field.hint and _localize(field.hint),
        "options": list(field.options),
        "none": field.none and _localize(field.none),
    }


def _localize(words: Bilingual) -> LocalText:
    return {"en": words.en, "zh": words.zh}


def _item(names: Names, found: Definition) -> CatalogItem:
    return {
        "id": found.id,
        "name": found.name,
        "version": found.version,
        "is_active": found.is_active,
        "is_builtin": found.is_builtin,
        "by": found.by,
        "updated_at": found.updated_at.isoformat() if found.updated_at is not None else None,
        "used_by": [{"kind": each.kind, "name": each.name} for each in names.users(found)],
        "power": power_of(found.body) if found.kind == "tool" and not found.is_builtin else None,
        "definition": _write_definition(names, found),
    }


def _write_definition(names: Names, found: Definition) -> JsonObject:
    """A definition as a person writes it; of a built-in tool also with its arguments, which the code has."""
    definition = names.write_definition(found.kind, found.name, found.body)
    if found.is_builtin and found.kind == "tool":
        definition["schema"] = {**definition["schema"], "parameters": builtin_parameters()[found.name]}
    return definition


def _version(names: Names, found: Version) -> CatalogItem:
    body = found.body
    return {
        "id": found.id,
        "name": found.name,
        "version": found.version,
        "is_active": body is not None and bool(body.get("is_active", True)),
        "is_builtin": False,
        "by": found.by,
        "updated_at": found.at.isoformat(),
        "used_by": [],
        "power": power_of(body) if body is not None and found.kind == "tool" else None,
        "definition": None if body is None else names.write_definition(found.kind, found.name, body),
    }


agents_router = APIRouter(prefix="/api", tags=["agents"])


@agents_router.get("/agents", responses=problems(reads=True))
async def agents(served: ServedDep, granted: Granted) -> AgentList:
    """The active agents of the catalog that the caller may use, the analyst first. `source` is the name of an agent's
    own source, `model` its own model."""
    roles = await active_roles(served.analyst.store)
    usable = [role for role in roles if granted.may_use("agent", role.agent.id, role.agent.name)]
    return {"agents": [_agent_info(role, granted) for role in usable]}


def _agent_info(role: AgentRole, granted: GrantedRights) -> AgentInfo:
    """An agent. With `asks_source` it, or an agent below it, asks a source; `source` is the name of its own, if the
    caller may use that."""
    own = role.source
    shown = own is not None and granted.may_use("source", own.id, own.name)
    return {
        "id": role.agent.id,
        "name": role.agent.name,
        "description": role.agent.description or "",
        "asks_source": role.asks_data or bool(role.sub_agents),
        "source": own.name if own is not None and shown else None,
        "model": role.agent.config.get("model"),
    }


terms_router = APIRouter(prefix="/api/sources", tags=["sources"], dependencies=[KNOWN_ONLY])

_Question = Annotated[Name, Field(max_length=LONGEST_MEANING)]
_Sql = Annotated[Name, Field(max_length=LONGEST_SQL)]
_TermName = Annotated[Name, Field(max_length=LONGEST_NAME)]


class TermBody(BaseModel):
    """A word of the business: what it means, in words, in SQL or in both. SQL may be a part of a statement."""

    model_config = ConfigDict(extra="forbid")

    name: _TermName
    meaning: Annotated[Name, Field(max_length=LONGEST_MEANING)] | None = None
    sql: _Sql | None = None
    synonyms: Annotated[list[_TermName], Field(max_length=LONGEST_NAME)] = Field(default_factory=list)


class ExampleBody(BaseModel):
    """A question, and the query that answers it."""

    model_config = ConfigDict(extra="forbid")

    question: _Question
    sql: _Sql


class TermsBody(BaseModel):
    """Terms and examples to add, in the place of those of the same name and question, and the names and questions of
    those to remove."""

    model_config = ConfigDict(extra="forbid")

    description: Annotated[PlainText, Field(max_length=LONGEST_MEANING)] | None = None
    terms: Annotated[list[TermBody], Field(max_length=MOST_OBJECTS)] = Field(default_factory=list)
    examples: Annotated[list[ExampleBody], Field(max_length=MOST_OBJECTS)] = Field(default_factory=list)
    remove_terms: Annotated[list[_TermName], Field(max_length=MOST_OBJECTS)] = Field(default_factory=list)
    remove_examples: Annotated[list[_Question], Field(max_length=MOST_OBJECTS)] = Field(default_factory=list)


@terms_router.get("/{name}/terms", responses=problems(*_NAMED, reads=True))
async def show_terms(served: ServedDep, rights: Rights, granted: Granted, name: PathSegment) -> SourceTerms:
    """What a source was taught; nothing, with version 0, where it was not taught yet."""
    spec = await _spec_of(served, rights, granted, name)
    try:
        found = await Catalog(served.analyst.store).taught_source(spec)
    except DefinitionNotFound:  # the demo or the configured source, of which the catalog knows nothing
        found = Definition("source", "", name, {}, version=0)
    return _describe_terms(served, name, found)


@terms_router.patch("/{name}/terms", responses=problems(CatalogInvalid, *_NAMED, body=True))
async def change_terms(
    served: ServedDep, user: Caller, rights: Rights, granted: Granted, name: PathSegment, body: TermsBody
) -> SourceTerms:
    """Teach a source terms and examples, or take some away, as one new version of it. All is changed or nothing. The
    next question has them."""
    given: dict[str, Any] = body.model_dump(include={"terms", "examples"}, exclude_none=True)
    if body.description is not None:
        given["description"] = body.description or None
    gone = {"terms": body.remove_terms, "examples": body.remove_examples}
    spec = await _spec_of(served, rights, granted, name)
    catalog = Catalog(served.analyst.store, user=user, rights=granted)
    await catalog.expect_teachable(spec)
    if has_sql(given) and (wrong := await _find_wrong_sql(served, user, rights, granted, name, given)):
        raise CatalogInvalid(problems=wrong)
    change = await catalog.teach(spec, given, gone)
    return _describe_terms(served, name, change.definition)


async def _spec_of(served: Served, rights: CallerRights, granted: GrantedRights, name: str) -> str:
    """What the catalog finds a source by. No address of a caller's choice becomes a source here, unopened."""
    if name in {DEMO, rights.own_source}:
        spec = rights.source(name) or name
        await served.analyst.sources.expect_granted(spec, granted)
        return spec
    return (await _names(served, granted)).one("source", name).id


async def _find_wrong_sql(
    served: Served, user: str, rights: CallerRights, granted: GrantedRights, name: str, given: Mapping[str, Any]
) -> list[str]:
    """Compare SQL with what the user sees of a source. One that cannot be opened now is taught all the same."""
    with suppress(DefinitionNotFound, ExtraMissing, SecretUnusable, SourceError):
        is_own = name in {DEMO, rights.own_source}
        where = (rights.source(name) or name) if is_own else await Catalog(served.analyst.store).address(name)
        async with await served.analyst.sources.open(where, None, user_id=user, rights=granted) as source:
            return await find_wrong_sql(source, given)
    return []


def _describe_terms(served: Served, name: str, found: Definition) -> SourceTerms:
    body = found.body
    metrics = (body.get("semantics") or {}).get("metrics") or []
    return {
        "source": name,
        "version": found.version,
        "description": body.get("description"),
        "terms": [
            {
                "name": each["name"],
                "meaning": each.get("meaning"),
                "sql": each.get("sql"),
                "synonyms": list(each.get("synonyms") or ()),
            }
            for each in body.get("terms") or ()
        ],
        "examples": [{"question": each["question"], "sql": each["sql"]} for each in body.get("examples") or ()],
        "metrics": [each["name"] for each in metrics],
        "changeable": not served.analyst.settings.read_only,
    }

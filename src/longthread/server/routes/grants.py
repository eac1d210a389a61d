"""Grants: which users, groups or everyone may use or change what. Administrators manage them."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from longthread.access import grants
from longthread.access.grants import Grant, GrantKind, May, ToKind
from longthread.errors import (
    DefinitionAmbiguous,
    DefinitionNotFound,
    GrantNotFound,
    GroupNotFound,
    InvalidInput,
    RoleMissing,
    UserNotFound,
)
from longthread.runs.rights import find_item, name_item
from longthread.server.fields import Name, PlainText
from longthread.server.openapi import problems
from longthread.server.state import Caller, Served, ServedDep
from longthread.tools.catalog.definitions import Catalog
from longthread.tools.catalog.names import Names

router = APIRouter(prefix="/api/admin", tags=["administration"])

ItemName = Annotated[Name, Field(max_length=4096)]
ToId = Annotated[PlainText, Field(max_length=200)]


class GrantView(TypedDict):
    """What a user, a group or everyone may do. `item` is the id of a definition, or the name of a model or of what is
    configured; `granted_by` is a user's id, or `default` for what everyone may use by default."""

    kind: GrantKind
    item: str
    item_name: str
    to_kind: ToKind
    to_id: str
    to_name: str | None
    may: May
    granted_by: str
    granted_at: str | None


class GrantList(TypedDict):
    grants: list[GrantView]


class GrantBody(BaseModel):
    """A grant. `item` is the name or the id of a definition, the name of a model (`openai:*`: all of a provider), or
    that of the demo or of the configured source. `to_id` is a user's or a group's, and empty for everyone."""

    model_config = ConfigDict(extra="forbid")

    kind: GrantKind
    item: ItemName
    to_kind: ToKind
    to_id: ToId = ""
    may: Literal["use", "edit"] = "use"


@router.get("/grants", responses=problems(RoleMissing, reads=True))
async def list_grants(
    served: ServedDep,
    kind: Annotated[GrantKind | None, Query()] = None,
    item: Annotated[PlainText | None, Query(max_length=4096)] = None,
) -> GrantList:
    """All grants, or those of a kind or an item, with what everyone may use by default."""
    names = await Catalog(served.analyst.store).names()
    async with served.analyst.store.reading() as tx:
        found = await grants.list_grants(tx, served.analyst.runs.rights.defaults, kind=kind, item=item)
    return {"grants": [_describe_grant(names, each) for each in found]}


@router.put(
    "/grants",
    responses=problems(
        DefinitionAmbiguous, DefinitionNotFound, GroupNotFound, InvalidInput, RoleMissing, UserNotFound, body=True
    ),
)
async def grant(served: ServedDep, user: Caller, body: GrantBody) -> GrantView:
    """Grant a right, in the place of what was granted to the same people before. Runs under way get it, too."""
    names = await Catalog(served.analyst.store).names()
    item = find_item(names, body.kind, body.item, served.analyst.runs.rights.defaults)
    async with served.analyst.store.writing() as tx:
        await grants.add_grant(tx, body.kind, item, body.to_kind, body.to_id, body.may, by=user)
        stored = await grants.list_grants(tx, (), kind=body.kind, item=item)
    made = next(each for each in stored if (each.to_kind, each.to_id) == (body.to_kind, body.to_id))
    return _describe_grant(names, made)


@router.delete(
    "/grants", status_code=204, responses=problems(DefinitionAmbiguous, GrantNotFound, RoleMissing, reads=True)
)
async def take_back(
    served: ServedDep,
    user: Caller,
    kind: Annotated[GrantKind, Query()],
    item: Annotated[PlainText, Query(min_length=1, max_length=4096)],
    to_kind: Annotated[ToKind, Query()],
    to_id: Annotated[PlainText, Query(max_length=200)] = "",
) -> Response:
    """Take a right back; `item` is named as in `PUT`. Runs under way lose it within seconds. From everyone also what is
    granted by default."""
    await _take_back(served, user, kind, item, to_kind, to_id)
    return Response(status_code=204)


async def _take_back(served: Served, user: str, kind: GrantKind, item: str, to_kind: ToKind, to_id: str) -> None:
    defaults = served.analyst.runs.rights.defaults
    names = await Catalog(served.analyst.store).names()
    with suppress(DefinitionNotFound):  # it may be deleted
        item = find_item(names, kind, item, defaults)
    async with served.analyst.store.writing() as tx:
        if not await grants.remove_grant(tx, kind, item, to_kind, to_id, defaults=defaults, by=user):
            raise GrantNotFound


def _describe_grant(names: Names, found: Grant) -> GrantView:
    return {
        "kind": found.kind,
        "item": found.item,
        "item_name": name_item(names, found),
        "to_kind": found.to_kind,
        "to_id": found.to_id,
        "to_name": found.to_name,
        "may": found.may,
        "granted_by": found.granted_by,
        "granted_at": found.granted_at.isoformat() if found.granted_at is not None else None,
    }

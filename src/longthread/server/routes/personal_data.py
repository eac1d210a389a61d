"""A person's own data: all of it as a file, and all of it erased."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from longthread.access import audit, passwords, users
from longthread.access.personal_export import export_person
from longthread.errors import AccountMissing, LastAdmin, LoginFailed, LoginThrottled, RoleMissing, UserNotFound
from longthread.runs.services.erasure import erase_person
from longthread.server.authentication import make_cookie
from longthread.server.fields import PathSegment, PlainText
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.state import Caller, PrincipalDep, Served, ServedDep

router = APIRouter(prefix="/api", tags=["account"])

_CHUNK = 2**16
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file",
        "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
    }
}


class ErasureBody(BaseModel):
    """The password of who has one."""

    model_config = ConfigDict(extra="forbid")

    password: Annotated[PlainText, Field(max_length=passwords.LONGEST + 1)] | None = None


@router.get("/me/export", response_class=StreamingResponse, responses=problems(AccountMissing, reads=True) | _FILE)
async def export_me(served: ServedDep, user: Caller) -> Response:
    """All that is kept of you as one zip file, as it is at one moment: conversations as `longthread import` reads them,
    memories, items, boards, and what is known of uploads, keys, logins, grants, usage and what you did. Secrets and
    their hashes are left out."""
    store = served.analyst.store
    await audit.note_alone(store, "person.export", user)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        async with store.reading() as tx:
            await export_person(tx, user, made)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="longthread.zip"'}
    return StreamingResponse(_chunks(made), media_type="application/zip", headers=headers)


@router.delete(
    "/me",
    status_code=204,
    responses=problems(AccountMissing, LastAdmin, LoginFailed, LoginThrottled, UserNotFound, body=True),
)
async def erase_me(served: ServedDep, principal: PrincipalDep, body: ErasureBody | None = None) -> Response:
    """Erase your account with all that is kept of you. It cannot be undone. Projects and definitions stay, without your
    name. 409 for the last administrator."""
    await _expect_password(served, principal.user, body.password if body is not None else None)
    await _erase(served, principal.user)
    return Response(status_code=204, headers={"Set-Cookie": make_cookie(served.authentication, None, 0)})


@router.delete(
    "/admin/users/{user_id}",
    status_code=204,
    tags=["administration"],
    responses=problems(LastAdmin, RoleMissing, UserNotFound),
)
async def erase_user(served: ServedDep, user_id: PathSegment) -> Response:
    """Erase a user with all that is kept of the user, as the user could. It cannot be undone."""
    async with served.analyst.store.reading() as tx:
        await users.find_user(tx, user_id)
    await _erase(served, user_id)
    return Response(status_code=204)


async def _expect_password(served: Served, user_id: str, password: str | None) -> None:
    """Raise LoginFailed: the password of a user who has one is wrong. Raise LoginThrottled, UserNotFound."""
    store = served.analyst.store
    async with store.writing() as tx:
        user = await users.find_user(tx, user_id)
        if user.password is None:
            return
        # The try counts before it is made: several at once cannot outrun the count.
        await passwords.expect_tries_left(tx, user.name, "")
        await passwords.note_failure(tx, user.name, "")
    is_right, _ = await passwords.check_password(user.password, password or "")
    if not is_right:
        await audit.note_alone(store, "user.forget", user_id, outcome="failed")
        raise LoginFailed
    async with store.writing() as tx:
        await passwords.forget_failures(tx, user.name, "")


async def _erase(served: Served, user_id: str) -> None:
    await erase_person(served.analyst.store, served.uploads, user_id)
    served.authentication.forget(user_id)
    served.analyst.hub.list_changed(user_id)


async def _chunks(made: BinaryIO) -> AsyncIterator[bytes]:
    with made:
        while chunk := await asyncio.to_thread(made.read, _CHUNK):
            yield chunk

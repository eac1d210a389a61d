"""The audit log: what people did about access, for administrators."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse
from typing_extensions import TypedDict

from longthread.access import audit
from longthread.access.audit import MOST_ROWS, PAGE_ROWS, AuditAction, AuditFilter
from longthread.errors import CursorUnknown, RoleMissing
from longthread.server.answers import JsonObject, Timestamp
from longthread.server.fields import PlainText, Time, decode_cursor, encode_cursor
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.state import ServedDep

router = APIRouter(prefix="/api/admin/audit", tags=["administration"])

_LINES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/jsonl": {"schema": {"type": "string"}}}}
}
_Actor = Annotated[PlainText, Query(max_length=200)]


class AuditRowView(TypedDict):
    """What somebody did. `actor` is a user's id, a pseudonym once the user is forgotten, or empty for a
    caller who had not logged in. `on_behalf` is the user whose data it was. `object` is the id of what was acted on."""

    id: str
    at: Timestamp
    actor: str
    actor_name: str | None
    on_behalf: str | None
    via: str
    address: str
    action: AuditAction
    object: str
    outcome: str
    request_id: str
    detail: JsonObject


class AuditPage(TypedDict):
    """Rows, the newest first. `before` is the cursor of the next page."""

    rows: list[AuditRowView]
    before: str | None


@router.get("", responses=problems(CursorUnknown, RoleMissing, reads=True))
async def list_audit(
    served: ServedDep,
    actor: _Actor = "",
    action: AuditAction | None = None,
    since: Annotated[Time | None, Query()] = None,
    until: Annotated[Time | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = PAGE_ROWS,
    before: str | None = None,
) -> AuditPage:
    """What people did about access, the newest first: of a user (by id), of an action, since and until a time."""
    [last] = decode_cursor(before, str) if before is not None else [None]
    async with served.analyst.store.reading() as tx:
        wanted = _filter(actor, action, since, until)
        rows = await audit.list_rows(tx, wanted, before=last, limit=limit + 1)
    shown = rows[:limit]
    return {
        "rows": [cast(AuditRowView, each.to_json()) for each in shown],
        "before": encode_cursor(shown[-1].id) if len(rows) > limit else None,
    }


@router.get("/export", response_class=StreamingResponse, responses=problems(RoleMissing, reads=True) | _LINES)
async def export_audit(
    served: ServedDep,
    actor: _Actor = "",
    action: AuditAction | None = None,
    since: Annotated[Time | None, Query()] = None,
    until: Annotated[Time | None, Query()] = None,
) -> Response:
    """All rows as JSON lines, the newest first. That they were exported is a row, too."""
    store = served.analyst.store
    await audit.note_alone(store, "audit.export")
    wanted = _filter(actor, action, since, until)

    async def lines() -> AsyncIterator[bytes]:
        before: str | None = None
        # A page is a transaction of its own: a slow client holds none open.
        while True:
            async with store.reading() as tx:
                page = await audit.list_rows(tx, wanted, before=before, limit=MOST_ROWS)
            for row in page:
                yield json.dumps(row.to_json(), ensure_ascii=False).encode() + b"\n"
            if len(page) < MOST_ROWS:
                return
            before = page[-1].id

    headers = {**NO_STORE, "Content-Disposition": 'attachment; filename="audit.jsonl"'}
    return StreamingResponse(lines(), media_type="application/jsonl", headers=headers)


def _filter(actor: str, action: AuditAction | None, since: datetime | None, until: datetime | None) -> AuditFilter:
    return AuditFilter(actor, action or "", since, until)

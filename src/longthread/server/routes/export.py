"""A conversation as a file."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from longthread.errors import ThreadNotFound
from longthread.server.fields import PathSegment, content_disposition
from longthread.server.history import history
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.state import Caller, ServedDep
from longthread.store import log
from longthread.store.driver import Transaction
from longthread.store.transfer.archive import export_lines
from longthread.store.transfer.markdown import branch_markdown

router = APIRouter(prefix="/api", tags=["conversations"])

_CHUNK = 2**16


class ConversationFormat(StrEnum):
    """The format of an exported conversation: the chosen branch to read, the same as data, or all that is kept."""

    MARKDOWN = "md"
    JSON = "json"
    JSONL = "jsonl"


_TYPES = {
    ConversationFormat.MARKDOWN: "text/markdown",
    ConversationFormat.JSON: "application/json",
    ConversationFormat.JSONL: "application/jsonl",
}
_TEXT = {"schema": {"type": "string"}}
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file",
        "content": dict.fromkeys(_TYPES.values(), _TEXT)
        | {"application/json": {"schema": {"$ref": "#/components/schemas/History"}}},
    }
}


@router.get(
    "/conversations/{thread_id}/export",
    responses=problems(ThreadNotFound, reads=True) | _FILES,
    response_class=StreamingResponse,
)
async def export(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    format_: Annotated[ConversationFormat, Query(alias="format")] = ConversationFormat.MARKDOWN,
    details: bool = False,
) -> Response:
    """A conversation as a file: `md` and `json` have the chosen branch; `jsonl` has all that is kept of it and of those
    below it, for `longthread import`. `md` has questions and answers; with `details` also calls, thoughts and ids."""
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        # One snapshot: the file holds what there was at one moment.
        async with served.analyst.store.reading() as tx:
            title = await _write(tx, thread_id, format_, made, user, details=details)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    headers = {**NO_STORE, "Content-Disposition": content_disposition(title, format_, unnamed="conversation")}
    return StreamingResponse(_chunks(made), media_type=_TYPES[format_], headers=headers)


async def _write(
    tx: Transaction, thread_id: str, format_: ConversationFormat, to: BinaryIO, user: str, *, details: bool
) -> str | None:
    """Write the file. Returns the conversation's title."""
    thread = await log.find_thread(tx, thread_id, user_id=user)
    if format_ is ConversationFormat.MARKDOWN:
        entries = await log.branch(tx, thread_id, thread.tip, limit=max(1, thread.entry_count)) if thread.tip else []
        to.write((await branch_markdown(tx, thread, entries, details=details)).encode())
    elif format_ is ConversationFormat.JSON:
        whole = await history(tx, thread_id, user_id=user, limit=max(1, thread.entry_count))
        to.write(json.dumps(whole, ensure_ascii=False, indent=1).encode())
    else:
        ids = [thread_id, *await log.threads_below(tx, thread_id, user_id=user)]
        async for line in export_lines(tx, ids, _silent, {}):
            to.write(line)
    return thread.title


def _silent(done: int, total: int, what: str) -> None:
    """Ignore the progress of an export."""


async def _chunks(made: BinaryIO) -> AsyncIterator[bytes]:
    with made:
        while chunk := await asyncio.to_thread(made.read, _CHUNK):
            yield chunk

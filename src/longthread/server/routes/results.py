"""The results of queries: page by page, sorted, and whole as files."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from longthread.errors import (
    EntryNotFound,
    InvalidInput,
    ResultTooLong,
    RunNotFound,
    SourceError,
    SourceMissing,
    ThreadNotFound,
)
from longthread.runs.services.results import FileRequest, PageRequest
from longthread.server.answers import ResultRows
from longthread.server.fields import PathSegment, PlainText, content_disposition
from longthread.server.openapi import problems
from longthread.server.requests import NO_STORE
from longthread.server.routes.chat import StepIndex
from longthread.server.state import Caller, ServedDep
from longthread.tools.analysis.column_format import formats_of_json
from longthread.tools.analysis.export import TableFormat

router = APIRouter(prefix="/api", tags=["results"])

_MOST_ROWS = 1_000
"""Rows of a page."""
_CHUNK = 2**16
_MOST_FORMATS = 20_000
"""Characters of the formats of columns."""
TYPES = {
    TableFormat.CSV: "text/csv",
    TableFormat.PARQUET: "application/vnd.apache.parquet",
    TableFormat.XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_MAY_BE_WRONG = (EntryNotFound, RunNotFound, SourceError, SourceMissing, ThreadNotFound)
FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file. `Longthread-Rerun` says whether the query was run again",
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in TYPES.values()},
        "headers": {"Longthread-Rerun": {"schema": {"type": "string", "enum": ["true", "false"]}}},
    }
}


@router.get("/conversations/{thread_id}/steps/{index}/result", responses=problems(*_MAY_BE_WRONG, reads=True))
async def result(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    index: StepIndex,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
    sort: PlainText | None = None,
    descending: bool = False,
) -> ResultRows:
    """Rows of a step's result, sorted by the column `sort` if given, NULL last. What the step does not keep is asked of
    the database again."""
    wanted = PageRequest(offset, limit, sort, descending)
    page = await served.analyst.results.page(thread_id, index, wanted, user_id=user)
    label = ((page.step.observation or {}).get("data") or {}).get("query")
    return {
        "thread_id": thread_id,
        "step": index,
        "query": str(label) if label else None,
        "sql": page.sql,
        "columns": page.result.columns,
        "rows": page.result.rows,
        "offset": offset,
        "total": page.total,
        "cut_cells": page.result.cut_cells,
        "whole": page.whole,
        "rerun": page.rerun,
    }


@router.get(
    "/conversations/{thread_id}/steps/{index}/result/file",
    responses=problems(*_MAY_BE_WRONG, InvalidInput, ResultTooLong, reads=True) | FILES,
    response_class=StreamingResponse,
)
async def file(
    served: ServedDep,
    user: Caller,
    thread_id: PathSegment,
    index: StepIndex,
    format_: Annotated[TableFormat, Query(alias="format")] = TableFormat.CSV,
    formats: Annotated[str, Query(max_length=_MOST_FORMATS)] = "{}",
    shown: bool = False,
) -> Response:
    """All rows of a step's result, as a file. `formats` is a JSON object with the formats of columns. A sheet has them,
    and a CSV file whose cells are `shown` as on the page. Else the source tells them, or they are guessed."""
    wanted = FileRequest(format_, formats_of_json(formats), shown)
    with ExitStack() as stack:
        made = stack.enter_context(tempfile.TemporaryFile())
        kept = await served.analyst.results.write(thread_id, index, made, wanted, user_id=user)
        made.seek(0)
        stack.pop_all()  # the answer closes it
    label = str(kept.data.get("query") or "")
    headers = {
        **NO_STORE,
        "Content-Disposition": content_disposition(kept.run.question, format_, unnamed=f"result-{index}", label=label),
        "Longthread-Rerun": str(kept.runs_again).lower(),
    }
    return StreamingResponse(chunks(made), media_type=TYPES[format_], headers=headers)


async def chunks(made: BinaryIO) -> AsyncIterator[bytes]:
    with made:
        while chunk := await asyncio.to_thread(made.read, _CHUNK):
            yield chunk

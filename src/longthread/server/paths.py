"""Ids in paths, which may hold any character, also a slash."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Path
from pydantic import AfterValidator
from starlette.types import ASGIApp, Receive, Scope, Send

_WITHOUT_NUL = r"^[^\x00]*$"


def _decoded(segment: str) -> str:
    text = unquote(segment)
    if "\0" in text:
        raise ValueError("an id holds no NUL")
    return text


PathSegment = Annotated[str, Path(pattern=_WITHOUT_NUL), AfterValidator(_decoded)]
"""One decoded segment of a path."""


class EncodedPaths:
    """ASGI middleware by which routes match the API's paths undecoded: an encoded slash ends no segment."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(("/api/", "/ag-ui/")):
            raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
            # Not in a copy: what routes note here is counted outside.
            scope["path"] = raw.partition(b"?")[0].decode("ascii", "replace")
        await self._app(scope, receive, send)


def segment(text: str) -> str:
    """A text as one encoded segment of a path."""
    return quote(text, safe="")

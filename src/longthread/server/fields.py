"""Fields of requests, ids in paths, names of downloaded files, and the cursors of listings.

The JSON Schema of a field allows what the server accepts, and nothing else. An id may hold any character, also a
slash. A cursor is an opaque text that says where a listing continues.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import unicodedata
from typing import Annotated, Any
from urllib.parse import quote, unquote

from fastapi import Path
from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints
from starlette.types import ASGIApp, Receive, Scope, Send

from longthread.errors import CursorUnknown
from longthread.model.thread import Archived, Thread
from longthread.store import listing
from longthread.store.driver import Transaction

_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_INK = r"[^\s\x00-\x1f\x85]"
"""A character that one sees."""


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 5.0 is 5. Texts and truth values are none."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str | bool):
        raise ValueError("this is no whole number")
    return value


def _time(value: Any) -> Any:
    """Raises ValueError for the numbers and other forms that pydantic reads as times."""
    if isinstance(value, str) and _TIME.fullmatch(value) is None:
        raise ValueError("give a date and a time with its zone, such as 2030-01-31T12:00:00Z")
    if value is not None and not isinstance(value, str):
        raise ValueError("this is no text")
    return value


WHOLE = BeforeValidator(_whole)
"""Reads an `int` as JSON Schema does."""
Time = Annotated[AwareDatetime, BeforeValidator(_time)]
Words = Annotated[str, StringConstraints(pattern=_INK)]
"""A text that is not blank."""
Name = Annotated[str, StringConstraints(pattern=rf"^[^\x00]*{_INK}[^\x00]*$")]
"""A text that is not blank and holds no NUL."""
PlainText = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
"""A text without NUL."""

Flag = Annotated[bool, Field(strict=True)]
"""True or false: 0 and "yes" are none."""


_WITHOUT_NUL = r"^[^\x00]*$"


def _decode_segment(segment: str) -> str:
    text = unquote(segment)
    if "\0" in text:
        raise ValueError("an id holds no NUL")
    return text


PathSegment = Annotated[str, Path(pattern=_WITHOUT_NUL), AfterValidator(_decode_segment)]
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


_NO_NAME = re.compile(r'[/\\:*?"<>|]')
"""What a file's name may not have on some system."""
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of characters that do not show, or turn the ones next to them: `gpj.exe` must not look like `exe.jpg`."""
_JOINERS = {"\u200c", "\u200d"}
"""Of these, the characters that belong to words and to emoji."""
_LONGEST = 60
"""Characters of the name; in UTF-8 it must have room in 255 bytes, with its extension."""
_LONGEST_LABEL = 20


def content_disposition(name: str | None, extension: str, *, unnamed: str, label: str = "") -> str:
    """Return the value of `Content-Disposition` for a file with a name, as far as every system takes it, with `label`
    after the name. Older clients read only the first name, which is `unnamed` unless the other is plain ASCII."""
    label = _file_name(label)[:_LONGEST_LABEL].rstrip(". ")
    most = _LONGEST - len(label) - 1 if label else _LONGEST
    stem = _file_name(name or "")[:most].rstrip(". ")
    stem = " ".join(part for part in (stem or unnamed, label) if part)
    plain = stem if stem.isascii() and "%" not in stem else unnamed
    return f"attachment; filename=\"{plain}.{extension}\"; filename*=UTF-8''{quote(f'{stem}.{extension}', safe='')}"


def _file_name(name: str) -> str:
    seen = (each if each in _JOINERS or unicodedata.category(each) not in _UNSEEN else " " for each in name)
    return " ".join(_NO_NAME.sub(" ", "".join(seen)).split()).strip(". ")


_LARGEST = 2**63 - 1
"""The largest integer of a store."""


def encode_cursor(*values: str | int) -> str:
    """A cursor that holds `values`."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *kinds: type[Any]) -> list[Any]:
    """The values of a cursor, which are of `kinds`. Raises CursorUnknown where no such listing gave it."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        values = None
    if not isinstance(values, list) or [type(value) for value in values] != list(kinds) or not all(map(_sane, values)):
        raise CursorUnknown
    return values


async def thread_page(
    tx: Transaction,
    user: str,
    limit: int,
    cursor: str | None,
    damaged: dict[str, str],
    *,
    below: bool = False,
    archived: Archived = "exclude",
    pinned: bool = False,
    tag: str = "",
) -> tuple[list[Thread], str | None]:
    """Return a user's conversations, the latest active first, and the cursor of the next page. Raises CursorUnknown.

    `damaged` gets the ids of conversations that cannot be read and are skipped, each with the reason.
    """
    at, thread_id = decode_cursor(cursor, str, str) if cursor else listing.LATEST
    among: dict[str, Any] = {"below": below, "archived": archived, "pinned": pinned, "tag": tag}
    threads = await listing.list_threads(
        tx, user_id=user, limit=limit + 1, before=(at, thread_id), **among, unreadable=damaged
    )
    if len(threads) <= limit:
        return threads, None
    last = threads[limit - 1]
    return threads[:limit], encode_cursor(last.updated_at.isoformat(timespec="microseconds"), last.id)


def _sane(value: Any) -> bool:
    """Whether a store accepts a value: cursors come from outside."""
    if isinstance(value, int):
        return 0 <= value <= _LARGEST
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in value)

"""Reads the definitions of upstreams and routes: which providers the gateway asks, and for which models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from longthread.model.catalog import Body
from longthread.tools.catalog.fields import FieldReader, near, short

DIALECTS = ("anthropic", "responses", "completions")
_LONGEST = 2_000
_SECRET = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]{0,99}\}")
_HIDDEN = "***"
_WRITTEN_OUT = (
    "it must be the name of a secret, as ${NAME} alone: whoever reads the catalog would read a key written out. "
    "Set LONGTHREAD_SECRET_NAME in the environment or in .env where the gateway runs. "
    "Without api_key, the client's own credentials go up."
)


def read_upstream(fields: FieldReader) -> Body:
    base_url = (fields.text("base_url", required=True, longest=_LONGEST) or "").strip()
    if base_url and (problem := _url_problem(base_url)):
        fields.problem("base_url", problem)
    api_key = fields.text("api_key", longest=_LONGEST)
    if api_key is not None and not _SECRET.fullmatch(api_key):
        fields.problem("api_key", _WRITTEN_OUT)
    dialects = fields.texts("dialects")
    if not dialects and not fields.has("dialects"):
        fields.problem("dialects", f"it is missing. Give a list of those that it speaks: {', '.join(DIALECTS)}.")
    elif not dialects and fields.items("dialects") == []:
        fields.problem("dialects", f"it is empty. Give those that it speaks: {', '.join(DIALECTS)}.")
    for place, dialect in enumerate(dialects):
        if dialect not in DIALECTS:
            fields.problem(f"dialects[{place}]", f"there is no dialect {short(dialect)}.{near(dialect, DIALECTS)}")
    return {
        "description": fields.text("description"),
        "base_url": base_url,
        "dialects": dialects,
        "api_key": api_key,
        "holds_state": fields.flag("holds_state", default=False),
        "is_active": fields.flag("is_active", default=True),
    }


def read_route(fields: FieldReader) -> Body:
    return {
        "description": fields.text("description"),
        "models": _name(fields, "models", required=True),
        "upstream": fields.text("upstream", required=True) or "",
        "model": _name(fields, "model", required=False),
        "is_active": fields.flag("is_active", default=True),
    }


def without_key(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an upstream's body without a key that another program has written out."""
    key = body.get("api_key")
    return {**body, "api_key": key if key is None or _SECRET.fullmatch(str(key)) else _HIDDEN}


def _name(fields: FieldReader, name: str, *, required: bool) -> str | None:
    """A model's name, or a pattern of them."""
    found = fields.text(name, required=required, longest=500)
    if found is not None and (found != found.strip() or not found.isprintable()):
        fields.problem(name, "it must have no blank at its ends, and no line break or other control character.")
    return found if found is not None or not required else ""


def _url_problem(text: str) -> str:
    """What is wrong with an address of a provider; empty: nothing."""
    form = "Give an address such as https://api.example.com, or https://api.example.com/v1."
    if "${" in text:
        return f"a secret's name stands in api_key alone. {form}"
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError as error:
        return f"it is no URL: {error}. {form}"
    if url.username is not None or url.password is not None:
        return f"it holds a user name or a password. Take it out; a key is given as api_key. {form}"
    if url.scheme not in ("http", "https") or not url.hostname or port == 0 or not _is_plain(text):
        return f"it must be a URL that begins with http:// or https://, and is {short(text)}. {form}"
    if url.query or url.fragment or text.endswith(("?", "#")):
        return f"paths are put behind it, so it must end before ? and #. {form}"
    return ""


def _is_plain(text: str) -> bool:
    return text.isprintable() and " " not in text

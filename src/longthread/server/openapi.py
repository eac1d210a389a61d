"""The OpenAPI description: each error that a route may answer with is a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ag_ui import core as agui
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from longthread.errors import InvalidInput, LongthreadError, StoreError
from longthread.server.problems import MEDIA_TYPE, ProblemBody, status_of

RouteResponses = dict[int | str, dict[str, Any]]

_KINDS = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "int | str": {"type": ["integer", "string"]},
}
"""The JSON types of the fields of errors that `params` holds, by their annotations."""
_PLAIN = {
    400: ("bad_request", "The body cannot be read: it is not JSON."),
    403: ("cross_origin", "A page of another site sent the request."),
    413: ("request_too_large", "The body is too large."),
    415: ("unsupported_media_type", "The body is not declared as `application/json`."),
    421: ("unknown_host", "The `Host` is not a name of this server."),
    500: ("internal_error", "An error of the server's own, which its log explains."),
}
"""The problems that are no `LongthreadError`, by status: their codes, and what they mean."""
EVENTS: RouteResponses = {
    200: {
        "description": "Changes, each with its `event` and its `id`",
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/UserEvent"}}},
    }
}
"""The response of the route that sends all that a user watches."""
STREAM: RouteResponses = {
    200: {
        "description": "The events of a run, each with its `id`",
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/ServerSentEvent"}}},
    }
}
"""The response of a route that sends a run's events."""
_READING = (413, 421, 500)
_WRITING = (403, *_READING)
_BODY = (400, 415)
_REF = "#/components/schemas/{model}"


def problems(*kinds: type[LongthreadError], body: bool = False, reads: bool = False) -> RouteResponses:
    """The `responses` of a route that raises errors of these kinds, besides those that every route may raise.

    Args:
        kinds: of each, the kinds below it are included too, except for `InvalidInput`, which has many.
        body: whether the route reads a body.
        reads: whether it only reads.
    """
    found: dict[int, list[str]] = {}
    for status in (*(_READING if reads else _WRITING), *(_BODY if body else ())):
        found.setdefault(status, []).append(_camel(_PLAIN[status][0]))
    raised: list[type[LongthreadError]] = [InvalidInput, *_below(StoreError)]
    for each in (*raised, *(each for kind in kinds for each in _raised(kind))):
        names, name = found.setdefault(status_of(each), []), _name(each)
        names += [] if name in names else [name]
    return {status: _response(names) for status, names in sorted(found.items())}


def install(app: FastAPI) -> None:
    """Let `app` describe itself with the schemas that `problems` refers to."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes)
            components = made.setdefault("components", {}).setdefault("schemas", {})
            problem = TypeAdapter(ProblemBody).json_schema(ref_template=_REF)
            components |= {**problem.pop("$defs"), "Problem": problem, **_referred(made), **_events()}
            _require_tags(made, components)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _require_tags(node: Any, schemas: dict[str, Any]) -> None:
    """Require, below `node`, what tells kinds of objects apart: the models have a default for it."""
    if isinstance(node, dict):
        if isinstance(told := node.get("discriminator"), dict):
            for ref in told.get("mapping", {}).values():
                schema = schemas[ref.rsplit("/", 1)[-1]]
                schema["required"] = sorted({*schema.get("required", ()), told["propertyName"]})
        node = list(node.values())
    for each in node if isinstance(node, list) else ():
        _require_tags(each, schemas)


def _events() -> dict[str, Any]:
    """The schemas of a server-sent event, and of the AG-UI event that it holds."""
    event = TypeAdapter(agui.Event).json_schema(ref_template=_REF, mode="serialization")
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": _REF.format(model="Event")},
    }
    text = {"type": "string"}
    sent = {"type": "object", "properties": {"id": text, "data": data}, "required": ["data"]}
    data = {"type": "string", "contentMediaType": "application/json"}
    change = {"type": "object", "properties": {"id": text, "event": text, "data": data}, "required": ["event", "data"]}
    return {**event.pop("$defs"), "Event": event, "ServerSentEvent": sent, "UserEvent": change}


def _response(names: list[str]) -> dict[str, Any]:
    refs = [{"$ref": _REF.format(model=name)} for name in names]
    schema = refs[0] if len(refs) == 1 else {"oneOf": refs}
    return {"description": ", ".join(sorted(names)), "content": {MEDIA_TYPE: {"schema": schema}}}


def _below(kind: type[LongthreadError]) -> Iterator[type[LongthreadError]]:
    """The kind, and all kinds below it."""
    yield kind
    for each in kind.__subclasses__():
        yield from _below(each)


def _raised(kind: type[LongthreadError]) -> Iterator[type[LongthreadError]]:
    return iter([kind]) if kind is InvalidInput else _below(kind)


def _name(kind: type[LongthreadError]) -> str:
    """The schema's name: of the code, and of the status, for kinds with the same code may differ in it."""
    return f"{_camel(kind.code)}{status_of(kind)}"


def _camel(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))


def _referred(made: dict[str, Any]) -> dict[str, Any]:
    """The schemas of the problems that the routes refer to, by name."""
    schemas = {_camel(code): _schema(status, code, meaning) for status, (code, meaning) in _PLAIN.items()}
    kinds: dict[str, list[type[LongthreadError]]] = {}
    for kind in _below(LongthreadError):
        kinds.setdefault(_name(kind), []).append(kind)
    schemas |= {name: _schema_of(several) for name, several in kinds.items()}
    text = str(made)
    return {name: schema for name, schema in schemas.items() if f"'{_REF.format(model=name)}'" in text}


def _schema_of(kinds: list[type[LongthreadError]]) -> dict[str, Any]:
    """The schema of the problem of kinds that share a code and a status."""
    first = kinds[0]
    made = _schema(status_of(first), first.code, first.message)
    if len(kinds) == 1 and first is not InvalidInput:
        fields = {name: _KINDS[kind] for name, kind in first.field_types().items() if kind in _KINDS}
        made["properties"]["params"] = {"type": "object", "properties": fields, "required": sorted(fields)}
    return made


def _schema(status: int, code: str, meaning: str) -> dict[str, Any]:
    return {
        "description": meaning,
        "allOf": [{"$ref": _REF.format(model="Problem")}],
        # Any error that a route does not know is a 500, whatever its code.
        "properties": {"status": {"const": status}} | ({"code": {"const": code}} if status != 500 else {}),
        "type": "object",
    }

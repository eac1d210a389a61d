"""The OpenAPI description: each error that a route may answer with is a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from longthread.errors import (
    InvalidInput,
    LoginNeeded,
    LongthreadError,
    NotLocal,
    RoleMissing,
    ScopeMissing,
    SeveralKeys,
    StoreError,
    TooManyRequests,
)
from longthread.model.run import Outcome, Protocol, RunStatus
from longthread.server.answers import JsonObject, PendingCall
from longthread.server.conversation_answers import ConversationView
from longthread.server.events import DECIDED, INTERRUPTED, REMOVED, WARNING, WITHDRAWN, AgUiEvent, SentEvent
from longthread.server.problems import MEDIA_TYPE, ProblemBody, status_of


class ErrorView(TypedDict):
    """An error of a call, a run or a refresh: `type` is its code, `params` are the values in its message.
    `thread_id` is the conversation of the agent that a call asked."""

    type: str
    message: str
    params: NotRequired[JsonObject]
    thread_id: NotRequired[str]


class EditView(TypedDict):
    """What a person changed of a call: its arguments before it was made, or its query after it (`by` whom)."""

    args: NotRequired[JsonObject]
    by: NotRequired[str]
    note: str


class ObservationView(TypedDict):
    """What came out of a call. The fields of `data` are the tool's."""

    ok: bool
    data: NotRequired[Any]
    error: NotRequired[ErrorView]
    edited: NotRequired[EditView]


class CitationView(TypedDict):
    """A number of an answer, and the query whose rows have it; null: none has."""

    number: str
    query: str | None


class CitedQueryView(TypedDict):
    """A query of a run, or one of an earlier run that the answer cites. `shown` says how many of its rows the model
    saw."""

    query: str
    sql: str
    columns: list[str]
    shown: NotRequired[str]


class RunUsage(TypedDict):
    """The tokens of a run, as its provider counted them."""

    input_tokens: int
    output_tokens: int


class RunOutcome(TypedDict, total=False):
    """What a run came to. A finished one has its `answer`, a paused one `summary`, `reason` and `hint`, a failed one
    its `error`, and one that waits the `calls` to decide about."""

    answer: str
    citations: list[CitationView]
    message_id: str | None
    queries: list[CitedQueryView]
    usage: RunUsage
    summary: str | None
    reason: str
    hint: str
    unfinished: str
    error: ErrorView
    calls: list[PendingCall]
    edited_by: str


class RunResult(RunOutcome):
    """The `result` of `RUN_FINISHED`."""

    status: RunStatus


class StartNote(TypedDict):
    question: str
    source: str | None
    model: str
    protocol: Protocol
    max_steps: int
    continues: str | None


class CallNote(TypedDict):
    step: int
    call_id: str


class ResultNote(TypedDict):
    step: int
    ok: bool | None
    elapsed_ms: int | None


class TextEndNote(TypedDict):
    """The text stays as an unfinished message: its run was stopped, or failed."""

    interrupted: Literal[True]


class FailureNote(RunOutcome):
    status: Literal["failed"]


class StartMetadata(TypedDict):
    longthread: NotRequired[StartNote]


class CallMetadata(TypedDict):
    longthread: NotRequired[CallNote]


class ResultMetadata(TypedDict):
    longthread: NotRequired[ResultNote]


class TextEndMetadata(TypedDict):
    longthread: NotRequired[TextEndNote]


class FailureMetadata(TypedDict):
    longthread: NotRequired[FailureNote]


class WarningValue(TypedDict):
    """Something was cut, retried or not understood."""

    message: str


class WithdrawnValue(TypedDict):
    """This text is no answer, but a thought or an aborted attempt."""

    message_id: str


class DecisionView(TypedDict):
    """A person's decision about a call; `args` are those of an edit."""

    id: str
    tool: str
    decision: Outcome
    by: NotRequired[str | None]
    args: NotRequired[JsonObject]
    message: NotRequired[str]


class DecidedValue(TypedDict):
    calls: list[DecisionView]


class InterruptedValue(TypedDict):
    """The process that executed the run is gone. Run and stream can be resumed."""


class RemovedValue(TypedDict):
    """The question was removed from the queue. This event is the stream's last."""

    queued_id: str


class ListedConversations(TypedDict):
    """The first page of the list, sent first, and again to a client that was away for long."""

    conversations: list[ConversationView]


class LeftConversation(TypedDict):
    """A conversation that left the list."""

    id: str


class WaitingRun(TypedDict):
    """The calls of a run that a person has to decide about."""

    thread_id: str
    run_id: str
    calls: list[PendingCall]


class WaitingApprovals(TypedDict):
    waiting: list[WaitingRun]


class WatchedRun(TypedDict):
    """A run that the client watches and that is not there (any more)."""

    thread_id: str
    run_id: str


OPEN_FIELDS: Mapping[tuple[str, str], Any] = {
    ("RunView", "outcome"): RunOutcome,
    ("SharedRun", "outcome"): RunOutcome,
    ("StepView", "observation"): ObservationView,
    ("ToolTrial", "observation"): ObservationView,
    ("CardView", "error"): ErrorView,
    ("RunStartedEvent", "metadata"): StartMetadata,
    ("StepStartedEvent", "metadata"): CallMetadata,
    ("ToolCallResultEvent", "metadata"): ResultMetadata,
    ("TextMessageEndEvent", "metadata"): TextEndMetadata,
    ("RunErrorEvent", "metadata"): FailureMetadata,
    ("RunFinishedEvent", "result"): RunResult,
}
"""What the open fields of schemas hold, by schema and field."""
CUSTOM_EVENTS: Mapping[str, tuple[str, Any]] = {
    "WarningEvent": (WARNING, WarningValue),
    "TextWithdrawnEvent": (WITHDRAWN, WithdrawnValue),
    "DecidedEvent": (DECIDED, DecidedValue),
    "InterruptedEvent": (INTERRUPTED, InterruptedValue),
    "QuestionRemovedEvent": (REMOVED, RemovedValue),
}
"""Longthread's own events among AG-UI's: by their schemas, their names and what their values are."""
USER_EVENTS: Mapping[str, Any] = {
    "conversations": ListedConversations,
    "conversation": ConversationView,
    "archived": LeftConversation,
    "deleted": LeftConversation,
    "approvals": WaitingApprovals,
    "gone": WatchedRun,
}
"""What a user's stream tells of the list and of runs that are gone, by the event's name."""


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
AGUI_STREAM: RouteResponses = {
    200: {
        "description": "The events of a run",
        "content": {"text/event-stream": {"schema": {"$ref": "#/components/schemas/AgUiServerSentEvent"}}},
    }
}
"""The response of AG-UI's endpoint."""
_READING = (413, 421, 500)
_WRITING = (403, *_READING)
_BODY = (400, 415)
_REFUSED = (LoginNeeded, NotLocal, RoleMissing, ScopeMissing, SeveralKeys, TooManyRequests)
"""What `GuardedRoute` may refuse each route with."""
_REF = "#/components/schemas/{model}"


def problems(*kinds: type[LongthreadError], body: bool = False, reads: bool = False) -> RouteResponses:
    """Return the `responses` of a route that raises errors of these kinds, besides the errors that every route may
    raise.

    Args:
        kinds: of each, the kinds below it are included too, except for `InvalidInput`, which has many.
        body: whether the route reads a body.
        reads: whether it only reads.
    """
    found: dict[int, list[str]] = {}
    for status in (*(_READING if reads else _WRITING), *(_BODY if body else ())):
        found.setdefault(status, []).append(_camel(_PLAIN[status][0]))
    raised: list[type[LongthreadError]] = [InvalidInput, *_REFUSED, *_below(StoreError)]
    for each in (*raised, *(each for kind in kinds for each in _list_raised(kind))):
        names, name = found.setdefault(status_of(each), []), _name(each)
        names += [] if name in names else [name]
    return {status: _response(names) for status, names in sorted(found.items())}


def install(app: FastAPI) -> None:
    """Let `app` describe itself with the schemas that `problems` refers to."""

    def build_schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, routes=app.routes)
            components = made.setdefault("components", {}).setdefault("schemas", {})
            components |= {**_schemas_of("Problem", ProblemBody), **_schemas_of_problems(made), **_events()}
            _fill_open_fields(components)
            _require_tags(made, components)
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = build_schema  # type: ignore[method-assign]


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
    """The schemas of a server-sent event, and of the AG-UI event that it holds: `Event` in a run's stream, `AgUiEvent`
    at AG-UI's endpoint, which also sends the whole conversation."""
    schemas = _schemas_of("Event", SentEvent) | _schemas_of("AgUiEvent", AgUiEvent)
    schemas["ToolCallResultEvent"]["properties"]["content"] = {"type": "string"}  # never parts
    del schemas["RunStartedEvent"]["properties"]["input"]  # never sent
    schemas |= {"ServerSentEvent": _sent("Event"), "AgUiServerSentEvent": _sent("AgUiEvent")}
    return schemas | _own_events(schemas.pop("CustomEvent")) | _user_events()


def _user_events() -> dict[str, Any]:
    """The schemas of a server-sent event of a user's stream, and of what it holds."""
    run = _schemas_of("WatchedRun", WatchedRun)["WatchedRun"]
    event = {"$ref": _REF.format(model="Event")}
    of_run = {**run, "description": "An event of a run that the client watches.", "title": "RunFrame"}
    of_run |= {"properties": {**run["properties"], "event": event}, "required": [*run["required"], "event"]}
    schemas: dict[str, Any] = {"RunFrame": of_run}
    for shape in USER_EVENTS.values():
        schemas |= _schemas_of(shape.__name__, shape)
    shapes = {name: shape.__name__ for name, shape in USER_EVENTS.items()} | {"run": "RunFrame"}
    return schemas | {"UserEvent": {"oneOf": [_sent(shape, name) for name, shape in shapes.items()]}}


def _sent(model: str, event: str | None = None) -> dict[str, Any]:
    """The schema of a server-sent event with JSON of this schema, and its name if it has one."""
    data = {
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": {"$ref": _REF.format(model=model)},
    }
    name = {"event": {"const": event, "type": "string"}} if event else {}
    return {
        "type": "object",
        "properties": {"id": {"type": "string"}, **name, "data": data},
        "required": [*name, "data"],
    }


def _own_events(custom: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of Longthread's own events, from that of AG-UI's custom events, which is one of them then."""
    schemas: dict[str, Any] = {}
    for name, (event, value) in CUSTOM_EVENTS.items():
        schemas |= _schemas_of(value.__name__, value)
        told = {"name": {"const": event, "type": "string"}, "value": {"$ref": _REF.format(model=value.__name__)}}
        properties = {**custom["properties"], **told}
        made = {"description": value.__doc__ or "", "title": name, "required": ["type", "name", "value"]}
        schemas[name] = {**custom, **made, "properties": properties}
    return schemas | {"CustomEvent": {"oneOf": [{"$ref": _REF.format(model=name)} for name in CUSTOM_EVENTS]}}


def _fill_open_fields(schemas: dict[str, Any]) -> None:
    """Say of the fields of `OPEN_FIELDS` what they hold."""
    for (model, field), shape in OPEN_FIELDS.items():
        schemas |= _schemas_of(shape.__name__, shape)
        properties, ref = schemas[model]["properties"], {"$ref": _REF.format(model=shape.__name__)}
        nullable = {"type": "null"} in properties[field].get("anyOf", ())
        properties[field] = {"anyOf": [ref, {"type": "null"}]} if nullable else ref


def _schemas_of(name: str, shape: Any) -> dict[str, Any]:
    """Return the schema of a type under this name, and the schemas that it refers to."""
    made = TypeAdapter(shape).json_schema(ref_template=_REF, mode="serialization")
    return {**made.pop("$defs", {}), name: made}


def _response(names: list[str]) -> dict[str, Any]:
    refs = [{"$ref": _REF.format(model=name)} for name in names]
    schema = refs[0] if len(refs) == 1 else {"oneOf": refs}
    return {"description": ", ".join(sorted(names)), "content": {MEDIA_TYPE: {"schema": schema}}}


def _below(kind: type[LongthreadError]) -> Iterator[type[LongthreadError]]:
    """The kind, and all kinds below it."""
    yield kind
    for each in kind.__subclasses__():
        yield from _below(each)


def _list_raised(kind: type[LongthreadError]) -> Iterator[type[LongthreadError]]:
    return iter([kind]) if kind is InvalidInput else _below(kind)


def _name(kind: type[LongthreadError]) -> str:
    """The schema's name: of the code, and of the status, for kinds with the same code may differ in it."""
    return f"{_camel(kind.code)}{status_of(kind)}"


def _camel(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_"))


def _schemas_of_problems(made: dict[str, Any]) -> dict[str, Any]:
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

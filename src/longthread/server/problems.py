"""Errors as RFC 9457 problems, and messages for the command line reworded for other readers.

Clients of MCP have tools, those of HTTP have routes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NotRequired

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from typing_extensions import TypedDict

from longthread import errors
from longthread.errors import CatalogInvalid, InvalidInput, LongthreadError
from longthread.server.requests import route_of
from longthread.tools.catalog.fields import FieldKind, FieldProblem

_TOOLS = {
    r"resume": "resume",
    r"ask": "ask",
    r"chat": "ask",
    r"recall": "recall",
    r"view": "view",
    r"threads list": "list_threads",
    r"threads show": "read_thread",
    r"memories list": "search_memories",
    r"memories add": "remember",
}
"""The tool of a command."""
_ROUTES = {
    r"resume": "POST /api/conversations/{}/resume",
    r"approve": "POST /api/conversations/{}/approvals",
    r"reject": "POST /api/conversations/{}/approvals",
    r"ask": "POST /api/chat",
    r"chat": "POST /api/chat",
    r"threads list": "GET /api/conversations",
    r"threads show": "GET /api/conversations/{}",
    r"memories list": "GET /api/memories",
    r"tools list": "GET /api/tools",
    r"sources teach": "GET /api/sources/{}/terms",
    r"users list": "GET /api/admin/users",
    r"groups list": "GET /api/admin/groups",
    r"keys list": "GET /api/me/keys",
    r"projects list": "GET /api/projects",
    r"grants list": "GET /api/admin/grants",
}
"""The route of a command; its first argument goes into the path."""
_TOOL = re.compile(rf"(^|[.!?] )?`longthread ({'|'.join(_TOOLS)})\b[^`]*`")
_ROUTE = re.compile(rf"`longthread ({'|'.join(_ROUTES)})\b(?: ([^`\s-][^`\s]*))?[^`]*`")
_OPTION = re.compile(r"(?<![\w-])--(source|thread|agent)(?![\w-])")
_FIELD = re.compile(r"`?(?<![\w-])--(source|thread|agent|model|protocol|force)(?![\w-])(?: ([\w:.…-]+)`)?")


def for_clients(message: str) -> str:
    """A message with tools and arguments in the place of commands and options.

    What only a person can do (`longthread approve`, a setting) stays.
    """
    return _OPTION.sub(r"`\1`", _TOOL.sub(_tool, message))


def for_http(message: str) -> str:
    """A message with routes and fields in the place of commands and options.

    What only who runs the server can do (`longthread db upgrade`, a setting) stays.
    """
    return _FIELD.sub(_field, _ROUTE.sub(_route, message))


def error_for_http(outcome: Mapping[str, Any]) -> dict[str, Any]:
    """A run's outcome, with the message of its error for HTTP."""
    error = outcome.get("error")
    if not isinstance(error, Mapping) or not isinstance(error.get("message"), str):
        return dict(outcome)
    return {**outcome, "error": {**error, "message": for_http(error["message"])}}


def _tool(found: re.Match[str]) -> str:
    begins = found[1] is not None
    return f"{found[1] or ''}{'The' if begins else 'the'} tool `{_TOOLS[found[2]]}`"


def _route(found: re.Match[str]) -> str:
    return f"`{_ROUTES[found[1]].format(found[2] or '{thread_id}')}`"


def _field(found: re.Match[str]) -> str:
    return f"`{found[1]}` {found[2]}" if found[2] else f"`{found[1]}`"


MEDIA_TYPE = "application/problem+json"

_STATUS: dict[type[LongthreadError], int] = {
    errors.ThreadNotFound: 404,
    errors.EntryNotFound: 404,
    errors.DefinitionNotFound: 404,
    errors.RunNotFound: 404,
    errors.RunInProgress: 409,
    errors.KeyReused: 409,
    errors.QueueFull: 429,
    errors.QuestionNotFound: 404,
    errors.ThreadConflict: 409,
    errors.ThreadTaken: 409,
    errors.MessageTaken: 409,
    errors.CallNotOpen: 409,
    errors.LeaseLost: 409,
    errors.NothingToResume: 409,
    errors.NotAQuestion: 409,
    errors.NotPending: 409,
    errors.NothingAsked: 409,
    errors.NotSupported: 409,
    errors.CursorUnknown: 404,
    errors.PositionUnknown: 404,
    errors.QuestionTooLong: 413,
    errors.MessageTooLong: 413,
    errors.InvalidInput: 422,
    errors.SourceNotAllowed: 403,
    errors.SourceError: 409,
    errors.SourceMissing: 409,
    errors.ModelNotAllowed: 403,
    errors.ModelNotUsable: 409,
    errors.AgentOff: 409,
    errors.AgentOfThread: 409,
    errors.ToolInvalid: 409,
    errors.ModelUnavailable: 503,
    errors.ModelFailed: 502,
    errors.MemoryNotFound: 404,
    errors.TooManyMemories: 409,
    errors.ExtraMissing: 409,
    errors.PluginFailed: 409,
    errors.SecretUnusable: 409,
    errors.SourceTaken: 409,
    errors.UploadExists: 409,
    errors.UploadFailed: 503,
    errors.UploadNotFound: 404,
    errors.UploadTooLarge: 413,
    errors.DefinitionBuiltIn: 409,
    errors.DefinitionInUse: 409,
    errors.ToolOnCommandLine: 403,
    errors.ShareNotFound: 404,
    errors.NothingToShare: 409,
    errors.BoardNotFound: 404,
    errors.CardNotFound: 404,
    errors.BoardFull: 409,
    errors.NotSavable: 409,
    errors.NothingOnBoard: 409,
    errors.VersionNotFound: 404,
    errors.KeyRefused: 409,
    errors.KeyNotFound: 404,
    errors.ProviderUnreachable: 502,
    errors.SecretKeyUnusable: 409,
    errors.SettingsNotAllowed: 403,
    errors.NotLocal: 403,
    errors.AccountMissing: 403,
    errors.LoginNeeded: 401,
    errors.LoginFailed: 401,
    errors.IssuerNotFound: 404,
    errors.ProxyRefused: 403,
    errors.SignupRefused: 403,
    errors.AccountPending: 403,
    errors.AccountDisabled: 403,
    errors.LoginThrottled: 429,
    errors.LinkUnusable: 404,
    errors.UserNotFound: 404,
    errors.GroupNotFound: 404,
    errors.GrantNotFound: 404,
    errors.AccessEnded: 403,
    errors.ApiKeyNotFound: 404,
    errors.NameInUse: 409,
    errors.LastAdmin: 409,
    errors.ProjectNotFound: 404,
    errors.ProjectNotEmpty: 409,
    errors.ManagerNeeded: 403,
    errors.LastManager: 409,
    errors.RoleMissing: 403,
    errors.ScopeMissing: 403,
    errors.NotGranted: 403,
    errors.TooManyRequests: 429,
    errors.BudgetSpent: 429,
    errors.PriceMissing: 403,
    errors.NotStorable: 422,
    errors.StoreConflict: 409,
    errors.StoreError: 503,
}
"""By class; other classes have the status of their nearest parent here."""

_log = logging.getLogger(__name__)


_KINDS: dict[str, FieldKind] = {
    "missing": "missing",
    "string_too_short": "missing",
    "string_too_long": "too_long",
    "string_type": "not_text",
    "extra_forbidden": "unknown_field",
    "bool_type": "not_flag",
    "bool_parsing": "not_flag",
    "list_type": "not_list",
    "dict_type": "not_object",
    "model_attributes_type": "not_object",
    "int_type": "not_number",
    "int_parsing": "not_number",
    "int_from_float": "not_number",
    "float_type": "not_number",
    "float_parsing": "not_number",
    "greater_than_equal": "not_number",
    "less_than_equal": "not_number",
}
"""By the type of a problem of Pydantic's."""


class Wrong(TypedDict):
    """A part of a request that is wrong, such as `body.question`, and why, for people and for programs."""

    at: str
    message: str
    kind: FieldKind


class ProblemBody(TypedDict):
    """An RFC 9457 problem. `code` is stable; `detail` says how to mend it; `params` are the values in that sentence.
    `errors` are the wrong parts of a request."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    params: NotRequired[dict[str, str | int | float]]
    thread: NotRequired[str]
    run: NotRequired[str]
    errors: NotRequired[list[Wrong]]


class Problem(JSONResponse):
    """An error's answer. Programs read `code` and `params`, the values in the sentence; people read `detail`."""

    media_type = MEDIA_TYPE

    def __init__(self, status: int, code: str, detail: str, *, path: str, **members: Any) -> None:
        body: ProblemBody = {
            "type": f"urn:longthread:problem:{code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "instance": path,
            "code": code,
        }
        super().__init__({**body, **members}, status_code=status)


def status_of(kind: type[LongthreadError]) -> int:
    """The HTTP status for a kind of error."""
    return next((_STATUS[each] for each in kind.__mro__ if each in _STATUS), 500)


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""
    app.add_exception_handler(LongthreadError, _describe_known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _describe_unknown)


async def _describe_known(request: Request, error: Exception) -> Problem:
    assert isinstance(error, LongthreadError)
    status = status_of(type(error))
    if status >= 500:  # told with the route's path: the request's own may hold a share link's token
        _log.error("%s %s: %s", request.method, route_of(request.scope), error)
    params = error.described()["params"]
    members: dict[str, Any] = {name: params[name] for name in ("thread", "run") if name in params}
    if isinstance(error, CatalogInvalid):
        placed = [each for each in error.problems if isinstance(each, FieldProblem)]
        members["errors"] = [
            Wrong(at=f"body.definition.{each.field}", message=each.reason, kind=each.kind) for each in placed
        ]
    problem = Problem(status, error.code, for_http(str(error)), path=request.url.path, params=params, **members)
    if status == 401:
        problem.headers["WWW-Authenticate"] = "Bearer"
    elif status == 429 and "seconds" in params:
        problem.headers["Retry-After"] = str(params["seconds"])
    return problem


async def _invalid(request: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    path, found = request.url.path, error.errors()
    sent = request.headers.get("content-type")
    if any(each["type"] == "json_invalid" for each in found):
        return Problem(400, "bad_request", f"The body is not JSON: {found[0]['ctx']['error']}.", path=path)
    if sent is not None and not _is_json(sent) and any(each["loc"] == ("body",) for each in found):
        detail = "This route reads JSON. Send the body with the header `Content-Type: application/json`."
        return Problem(415, "unsupported_media_type", detail, path=path)
    # Without the values: a long question, or a password in a source, is not sent back.
    unknown = "There is no such field; /api/openapi.json has those there are"
    wrong: list[Wrong] = [
        {
            "at": ".".join(map(str, each["loc"])),
            "message": unknown if each["type"] == "extra_forbidden" else str(each["msg"]),
            "kind": _KINDS.get(each["type"], "other"),
        }
        for each in found
    ]
    detail = " ".join(f"{each['at']}: {each['message']}." for each in wrong)
    return Problem(422, InvalidInput.code, detail, path=path, errors=wrong)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def _http(request: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    problem = Problem(error.status_code, code, str(error.detail), path=request.url.path)
    problem.headers.update(error.headers or {})
    if error.status_code == 405:
        problem.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return problem


def _methods(request: Request) -> set[str]:
    """The methods of all routes of the request's path: the router knows only those of the first."""
    found = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return {method for route in found for method in getattr(route, "methods", None) or ()}


async def _describe_unknown(request: Request, error: Exception) -> Problem:
    _log.error("%s %s failed", request.method, route_of(request.scope), exc_info=error)
    detail = "Longthread has met an error of its own. Its log says more; nothing that was answered before is lost."
    return Problem(500, "internal_error", detail, path=request.url.path)

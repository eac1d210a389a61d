"""Errors as RFC 9457 problems."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from longthread import errors
from longthread.errors import InvalidInput, LongthreadError

MEDIA_TYPE = "application/problem+json"

_STATUS: dict[type[LongthreadError], int] = {
    errors.ThreadNotFound: 404,
    errors.EntryNotFound: 404,
    errors.DefinitionNotFound: 404,
    errors.RunNotFound: 404,
    errors.RunInProgress: 409,
    errors.ThreadConflict: 409,
    errors.ThreadTaken: 409,
    errors.LeaseLost: 409,
    errors.NothingToResume: 409,
    errors.NotPending: 409,
    errors.QuestionTooLong: 413,
    errors.InvalidInput: 422,
    errors.SourceNotAllowed: 403,
    errors.SourceError: 422,
    errors.ModelNotUsable: 422,
    errors.ModelUnavailable: 503,
    errors.ModelFailed: 502,
    errors.NotStorable: 422,
    errors.StoreConflict: 409,
    errors.StoreError: 503,
}
"""By class; other classes have the status of their nearest parent here."""

_log = logging.getLogger(__name__)


class Problem(JSONResponse):
    """An error's answer. Programs read `code` and `params`, the values in the sentence; people read `detail`."""

    media_type = MEDIA_TYPE

    def __init__(self, status: int, code: str, detail: str, *, path: str, **members: Any) -> None:
        body = {
            "type": f"urn:longthread:problem:{code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "instance": path,
            "code": code,
        }
        super().__init__(body | members, status_code=status)


def status_of(error: LongthreadError) -> int:
    """The HTTP status for an error."""
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem."""
    app.add_exception_handler(LongthreadError, _known)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unknown)


async def _known(request: Request, error: Exception) -> Problem:
    assert isinstance(error, LongthreadError)
    status = status_of(error)
    if status >= 500:
        _log.error("%s %s: %s", request.method, request.url.path, error)
    params = error.described()["params"]
    members = {name: params[name] for name in ("thread", "run") if name in params}
    return Problem(status, error.code, str(error), path=request.url.path, params=params, **members)


async def _invalid(request: Request, error: Exception) -> Problem:
    assert isinstance(error, RequestValidationError)
    # Without the values: a long question, or a password in a source, is not sent back.
    unknown = "There is no such field; /api/openapi.json has those there are"
    wrong = [
        {
            "at": ".".join(map(str, each["loc"])),
            "message": unknown if each["type"] == "extra_forbidden" else str(each["msg"]),
        }
        for each in error.errors()
    ]
    detail = " ".join(f"{each['at']}: {each['message']}." for each in wrong)
    return Problem(422, InvalidInput.code, detail, path=request.url.path, errors=wrong)


async def _http(request: Request, error: Exception) -> Problem:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    problem = Problem(error.status_code, code, str(error.detail), path=request.url.path)
    problem.headers.update(error.headers or {})
    return problem


async def _unknown(request: Request, error: Exception) -> Problem:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    detail = "Longthread has met an error of its own. Its log says more; nothing that was answered before is lost."
    return Problem(500, "internal_error", detail, path=request.url.path)

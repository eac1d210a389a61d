"""The routes below `/v1/responses`: what a client asks about responses, without a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from longthread_testing.emulator.faults import Refused, RuleBroken
from longthread_testing.emulator.recorded import RecordedRequest
from longthread_testing.emulator.responses_api import PATH, ResponsesApi
from longthread_testing.emulator.wire import ModelRequest, read_request

Answer = Callable[[RecordedRequest, Mapping[str, str]], dict[str, Any] | list[bytes]]
"""Answers a request, with the parameters of its path and query, by a body or by the events of a stream."""


def response_routes(api: ResponsesApi, next_number: Callable[[], str]) -> list[tuple[str, str, Answer]]:
    """Return the method, the path and the answer of each."""

    def read(recorded: RecordedRequest) -> ModelRequest:
        return read_request(api, recorded.body, recorded.headers)

    def retrieve(_: RecordedRequest, asked: Mapping[str, str]) -> dict[str, Any] | list[bytes]:
        if asked.get("stream") == "true":
            return api.events_after(asked["id"], int(asked.get("starting_after") or -1))
        return api.retrieve(asked["id"])

    def delete(_: RecordedRequest, asked: Mapping[str, str]) -> dict[str, Any]:
        api.store.delete(asked["id"])
        return {"id": asked["id"], "object": "response", "deleted": True}

    def tokens(recorded: RecordedRequest, _: Mapping[str, str]) -> dict[str, Any]:
        return {"object": "response.input_tokens", "input_tokens": read(recorded).tokens}

    def websocket(_: RecordedRequest, __: Mapping[str, str]) -> dict[str, Any]:
        raise RuleBroken(Refused(426, "Responses over a websocket are not supported. Use POST."))

    return [
        ("GET", PATH, websocket),
        ("POST", f"{PATH}/compact", lambda recorded, _: api.compact(read(recorded), next_number())),
        ("POST", f"{PATH}/input_tokens", tokens),
        ("GET", PATH + "/{id}", retrieve),
        ("DELETE", PATH + "/{id}", delete),
        ("GET", PATH + "/{id}/input_items", lambda _, asked: api.input_items(asked["id"], asked)),
        ("POST", PATH + "/{id}/cancel", lambda _, asked: api.cancel(asked["id"])),
    ]

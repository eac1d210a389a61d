"""Responses of OpenAI's by their id, from the log: retrieve, stream again, delete, input items, cancel.

In a stream, each text comes as one piece, so that there are fewer events than there were, with numbers of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming, Outgoing
from longthread.gateway.parts import root_of
from longthread.gateway.raw_json import write_json
from longthread.gateway.state import blocks_of, items_until, named_call
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall

_Event = tuple[str, dict[str, Any]]
_TEXT_FIELDS = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text"}
_CALLS = {
    "function_call": ("function_call_arguments", "arguments"),
    "custom_tool_call": ("custom_tool_call_input", "input"),
}
_BEGUN: Mapping[str, Mapping[str, Any]] = {
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "custom_tool_call": {"input": "", "status": "in_progress"},
    "reasoning": {"summary": []},
}


def events_after(response: Mapping[str, Any], number: int) -> bytes:
    """Return the events of a response after number `number` as a stream; the last one comes in any case."""
    every = [
        {"type": kind, "sequence_number": place, **fields} for place, (kind, fields) in enumerate(_events(response))
    ]
    shown = [event for event in every if event["sequence_number"] > number]
    if not shown:
        shown = [every[-1] | {"sequence_number": number + 1}]
    return b"".join(f"event: {event['type']}\ndata: {write_json(event)}\n\n".encode() for event in shown)


def _events(response: Mapping[str, Any]) -> Iterator[_Event]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for place, item in enumerate(response["output"]):
        kind = item.get("type")
        at = {"item_id": item.get("id"), "output_index": place}
        yield "response.output_item.added", {"output_index": place, "item": {**item, **_BEGUN.get(kind, {})}}
        if kind in _CALLS:
            yield from _call(item, at)
        elif kind in ("message", "reasoning"):
            yield from _summaries(item, at)
            yield from _contents(item, at)
        yield "response.output_item.done", {"output_index": place, "item": item}
    yield f"response.{response.get('status') or 'completed'}", {"response": dict(response)}


def _call(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    name, field = _CALLS[item["type"]]
    text = item.get(field) or ""
    yield f"response.{name}.delta", {**at, "delta": text}
    yield f"response.{name}.done", {**at, field: text, **({"name": item["name"]} if field == "arguments" else {})}


def _summaries(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    for place, part in enumerate(item.get("summary") or ()):
        here, text = {**at, "summary_index": place}, part.get("text", "")
        yield "response.reasoning_summary_part.added", {**here, "part": {**part, "text": ""}}
        yield "response.reasoning_summary_text.delta", {**here, "delta": text}
        yield "response.reasoning_summary_text.done", {**here, "text": text}
        yield "response.reasoning_summary_part.done", {**here, "part": part}


def _contents(item: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[_Event]:
    for place, part in enumerate(item.get("content") or ()):
        here, kind = {**at, "content_index": place}, part.get("type")
        field = _TEXT_FIELDS.get(kind)
        empty = {**part, field: ""} if field else part
        yield "response.content_part.added", {**here, "part": empty}
        if field:
            text = part.get(field) or ""
            logprobs = {"logprobs": part.get("logprobs") or []} if kind == "output_text" else {}
            yield f"response.{kind}.delta", {**here, "delta": text, **logprobs}
            yield f"response.{kind}.done", {**here, field: text, **logprobs}
        yield "response.content_part.done", {**here, "part": part}


PATH = "/v1/responses"
_JSON = (b"content-type", b"application/json")
_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_ROUTES = (("GET", ""), ("DELETE", ""), ("GET", "input_items"), ("POST", "cancel"))
_PAGE, _MOST = 20, 100
"""Input items of a page: without `limit`, and at most."""
_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}


class InvalidQuery(Exception):
    """A request about a response that the vendor refuses with 400."""


def is_about_response(incoming: Incoming) -> bool:
    return (incoming.method, response_path(incoming)[1]) in _ROUTES


def response_path(incoming: Incoming) -> tuple[str, str]:
    """Return the id in a path below `/v1/responses`, and what is asked of it."""
    id_, _, below = incoming.path.removeprefix(PATH).strip("/").partition("/")
    return id_, below


class StoredResponses:
    """The kept responses of a user's owners. Safe to share between tasks."""

    def __init__(self, store: Driver, user: str, dialect: Dialect) -> None:
        self._store = store
        self._user = user
        self._dialect = dialect

    async def answer(self, incoming: Incoming, owner: str | None = None) -> Outgoing | None:
        """Answer an owner's request that `is_about_response`; None if the response is not kept, or another's.

        Raises InvalidQuery: the vendor refuses it, too. Raises StoreError.
        """
        id_, below = response_path(incoming)
        root = root_of(self._user, self._dialect.name, owner)
        asked = {name: values[-1] for name, values in parse_qs(incoming.query.decode("latin-1")).items()}
        if incoming.method == "DELETE":
            return await self._delete(root, id_)
        async with self._store.reading() as tx:
            call = await named_call(tx, self._user, root, id_)
            if call is None:
                return None
            if below == "input_items":
                return await self._input_items(tx, call, asked)
            response = await self._response(tx, call)
        if below == "cancel":
            return _cancel_response(response)
        if asked.get("stream") == "true":
            return Outgoing(200, [_STREAM], events_after(response, _number(asked.get("starting_after"), -1)))
        return _json(response)

    async def _response(self, tx: Transaction, call: GatewayCall) -> dict[str, Any]:
        """Return a response as the provider gave it; what it repeated of the request is as the client wrote it."""
        seqs = range(call.reply_seq or 0, (call.reply_end or 0) + 1)
        entries = await log.entries_at(tx, call.thread_id, seqs)
        raws = self._dialect.write_messages([(entry.role, blocks_of(entry)) for _, entry in sorted(entries.items())])
        frame = await calls.find_frame(tx, call.thread_id, call.frame)
        return {
            **call.head,
            "instructions": json.loads(frame.get("instructions", "null")),
            "tools": [_tool(tool) for tool in json.loads(frame.get("tools", "null")) or ()],
            "output": [json.loads(raw, strict=False) for raw in raws],
        }

    async def _delete(self, root: bytes, id_: str) -> Outgoing | None:
        """Forget a response's id, and those of its items. The conversation stays in the log."""
        async with self._store.writing() as tx:
            call = await named_call(tx, self._user, root, id_)
            if call is None:
                return None
            await log.position(tx, call.thread_id)
            await calls.forget_names(tx, call.thread_id, call.n)
        return _json({"id": id_, "object": "response", "deleted": True})

    async def _input_items(self, tx: Transaction, call: GatewayCall, asked: dict[str, str]) -> Outgoing | None:
        raws = await items_until(tx, self._dialect, call, call.asked_seq)
        if raws is None:
            return None
        name = str(call.response_id).removeprefix("resp_")
        items = [_describe_input_item(json.loads(raw, strict=False), name, place) for place, raw in enumerate(raws)]
        if asked.get("order", "desc") != "asc":
            items.reverse()
        limit = _number(asked.get("limit"), _PAGE)
        if not 1 <= limit <= _MOST:
            raise InvalidQuery(f"Invalid 'limit': expected an integer from 1 to {_MOST}.")
        return _json(_page(items, asked.get("after"), limit))


def _page(items: Sequence[dict[str, Any]], after: str | None, limit: int) -> dict[str, Any]:
    """Return a page of a list. Raises InvalidQuery: `after` is not in it."""
    places = {item["id"]: place for place, item in enumerate(items)}
    if after is not None and after not in places:
        raise InvalidQuery(f"Invalid 'after': no item with id '{after}' is in this list.")
    begin = places[after] + 1 if after is not None else 0
    page = items[begin : begin + limit]
    first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    more = begin + limit < len(items)
    return {"object": "list", "data": list(page), "first_id": first, "last_id": last, "has_more": more}


def _describe_input_item(item: dict[str, Any], name: str, place: int) -> dict[str, Any]:
    """Return an input item as the provider lists it: with an id, and the content of messages as parts."""
    kind = item.get("type", "message")
    own = {"id": item.get("id") or f"{_PREFIXES.get(kind, 'item')}_{name}_{place:04x}", **item, "type": kind}
    if kind == "message" and isinstance(item.get("content"), str):
        text = {"text": item["content"]}
        is_reply = item.get("role") == "assistant"
        own["content"] = [
            {"type": "output_text", "annotations": [], **text} if is_reply else {"type": "input_text", **text}
        ]
    return {"status": "completed", **own} if kind in ("message", "function_call", "function_call_output") else own


def _cancel_response(response: dict[str, Any]) -> Outgoing:
    """Only what ran in the background can be cancelled, and this has ended."""
    if not response.get("background"):
        raise InvalidQuery("Cannot cancel a synchronous response.")
    return _json(response)


def _tool(tool: Any) -> Any:
    """Return a tool as responses repeat it."""
    if isinstance(tool, dict) and tool.get("type") == "function":
        return {"description": None, "parameters": None, "strict": True, **tool}
    return tool


def _number(text: str | None, default: int) -> int:
    if text is None:
        return default
    try:
        return int(text)
    except ValueError as error:
        raise InvalidQuery(f"Expected an integer, and not {text!r}.") from error


def _json(body: dict[str, Any]) -> Outgoing:
    return Outgoing(200, [_JSON], write_json(body).encode("utf-8", "surrogatepass"))

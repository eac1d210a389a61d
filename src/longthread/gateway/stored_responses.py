"""Responses of OpenAI's by their id, from the log: retrieve, delete, input items, cancel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs

from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming, Outgoing
from longthread.gateway.parts import root_of
from longthread.gateway.raw_json import spelled
from longthread.gateway.response_events import events_after
from longthread.gateway.responses_state import items_until
from longthread.gateway.state import blocks_of, named_call
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall

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
            return _cancelled(response)
        if asked.get("stream") == "true":
            return Outgoing(200, [_STREAM], events_after(response, _number(asked.get("starting_after"), -1)))
        return _json(response)

    async def _response(self, tx: Transaction, call: GatewayCall) -> dict[str, Any]:
        """Return a response as the provider gave it; what it repeated of the request is as the client wrote it."""
        seqs = range(call.reply_seq or 0, (call.reply_end or 0) + 1)
        entries = await log.entries_at(tx, call.thread_id, seqs)
        raws = self._dialect.spelled([(entry.role, blocks_of(entry)) for _, entry in sorted(entries.items())])
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
        items = [_listed(json.loads(raw, strict=False), name, place) for place, raw in enumerate(raws)]
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


def _listed(item: dict[str, Any], name: str, place: int) -> dict[str, Any]:
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


def _cancelled(response: dict[str, Any]) -> Outgoing:
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
    return Outgoing(200, [_JSON], spelled(body).encode("utf-8", "surrogatepass"))

"""The provider's state, from the log: what a request names by an id is put in whole; responses by their id.

OpenAI's Responses name earlier responses, conversations, and items.

In a stream, each text comes as one piece, so that there are fewer events than there were, with numbers of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from longthread.errors import ThreadNotFound
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.responses import is_reference
from longthread.gateway.http import Headers, Incoming, Outgoing
from longthread.gateway.parts import name_node, root_of
from longthread.gateway.raw_json import element_texts, elements, write_json
from longthread.gateway.request import Asked
from longthread.gateway.restore import drop_hidden
from longthread.gateway.tree import own_name
from longthread.model.content import is_wire, unpack
from longthread.model.entry import Entry
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall, KnownNode
from longthread.store.log import entries_at

_LONGEST = 1_000_000
"""Entries of a branch: all of them."""


_THREADS_BETA = b"message-threads"
"""What the name of Anthropic's beta for message threads begins with."""


class StateUnknown(Exception):
    """A request names a response or a thread that is not kept. `status` and `code` are those of the vendor's error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True)
class Expanded:
    """A request with what it named by ids put in.

    Attributes:
        call: the call whose reply it goes on from, if it named one.
        thread: the thread that it named, if it named no reply.
    """

    asked: Asked
    call: GatewayCall | None = None
    thread: str | None = None


async def expanded_thread(tx: Transaction, asked: Asked) -> Expanded:
    """Put in what Anthropic's message threads leave out: a request that continues one has neither its messages nor
    system and tools. Raises StateUnknown."""
    if "thread" not in asked.fields:
        return Expanded(asked)
    thread = asked.value("thread")
    if not isinstance(thread, dict) or thread.get("type") != "continue":
        return Expanded(rebuilt(asked, {}, leave_out=("thread",)))
    previous = str(thread.get("previous_message_id") or "")
    call = await named_call(tx, asked.user, asked.root, previous)
    said = await messages_until(tx, asked.dialect, call.thread_id, call.reply_end or 0) if call else None
    if call is None or said is None:
        raise StateUnknown(404, "thread_not_found", f"No thread was found for `previous_message_id` {previous}.")
    frame = await calls.find_frame(tx, call.thread_id, call.frame)
    own = {name: frame[name] for name in ("system", "tools") if name in frame and name not in asked.fields}
    messages = [*said, *asked.items]
    return Expanded(rebuilt(asked, own | {"messages": f"[{','.join(messages)}]"}, leave_out=("thread",)), call)


def rebuilt(asked: Asked, fields: dict[str, str], leave_out: Sequence[str] = ()) -> Asked:
    """Return a request with other JSON texts for some fields, and without some."""
    raws = {name: asked.raw(name) for name in asked.fields if name not in leave_out} | fields
    return asked.with_body(("{" + ",".join(f"{write_json(name)}:{raw}" for name, raw in raws.items()) + "}").encode())


def without_state(headers: Headers) -> Headers:
    """Return a client's headers without the betas for state that is put into the request."""
    found: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"anthropic-beta":
            value = b",".join(each for each in value.split(b",") if not each.strip().startswith(_THREADS_BETA))
        if value or name != b"anthropic-beta":
            found.append((name, value))
    return found


async def named_call(tx: Transaction, user: str, root: bytes, response_id: str) -> GatewayCall | None:
    """Return the call whose reply has this id of the provider's; None if it is not kept, expired or another's."""
    node = await named_node(tx, user, name_node(root, "response", response_id))
    call = await calls.find_call(tx, node.thread_id, node.call) if node else None
    return call if call is not None and call.response_id == response_id else None


async def named_node(tx: Transaction, user: str, node: int) -> KnownNode | None:
    found = await calls.known_replies(tx, user, [node])
    return max(found, key=lambda each: (each.updated_at, each.seq), default=None)


async def messages_until(tx: Transaction, dialect: Dialect, thread_id: str, seq: int) -> list[str] | None:
    """Return the messages of a conversation up to an entry, as JSON texts; None if older ones are deleted."""
    entries = await log.branch(tx, thread_id, seq, limit=_LONGEST) if seq else []
    if entries and not await log.is_first(tx, thread_id, entries[0].seq):
        return None
    return dialect.write_messages([(entry.role, blocks_of(entry)) for entry in entries if is_wire(entry.payload)])


def blocks_of(entry: Entry) -> Sequence[str]:
    """Return the JSON texts of the blocks of a gateway's entry."""
    return [text for _, text in element_texts(unpack(entry.payload or b"", entry.text)[1])]


# The vendor's errors. Clients recognize them.
_BOTH = (
    "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you are only using one of them."
)
_NO_ITEM = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)


async def expanded_response(tx: Transaction, asked: Asked) -> Expanded:
    """Insert the items that a request continues by `previous_response_id` or `conversation`, and the items that its
    `item_reference`s name. `instructions` are not carried over. Raises StateUnknown."""
    previous, thread = _text(asked.value("previous_response_id")), conversation_id(asked.value("conversation"))
    if previous and thread:
        raise StateUnknown(400, "mutually_exclusive_parameters", _BOTH)
    call = None
    if previous:
        call = await named_call(tx, asked.user, asked.root, previous)
        if call is None:
            raise _no_previous(previous)
    elif thread:
        call = await _last_call(tx, asked, thread)
    if call is None and all(part.kind != "reference" for part in asked.parts):
        return Expanded(asked, thread=thread)
    given = input_items(asked)
    referred = [item["id"] for item, _ in given if is_reference(item)]
    there = await _find_items(tx, asked, referred) if referred else {}
    before = await items_until(tx, asked.dialect, call, call.reply_end or 0) if call else []
    if before is None:
        raise _no_previous(previous or str(thread))
    items = [*before, *(there[item["id"]] if is_reference(item) else raw for item, raw in given)]
    fields = {"input": f"[{','.join(items)}]"}
    gone = ("previous_response_id", "conversation") if call else ()
    return Expanded(rebuilt(asked, fields, leave_out=gone), call, thread)


def _no_previous(id_: str) -> StateUnknown:
    return StateUnknown(400, "previous_response_not_found", f"Previous response with id '{id_}' not found.")


def _text(value: Any) -> str | None:
    """Return an id; None if it is none, about which the provider says what is wrong."""
    return value if isinstance(value, str) and value else None


def conversation_id(value: Any) -> str | None:
    return _text(value.get("id") if isinstance(value, dict) else value)


def input_items(asked: Asked) -> list[tuple[Any, str]]:
    """Return the items of a request's input, each parsed and as its JSON text; a text is one message."""
    pieces = asked.conversation.cut
    texts = [pieces.item(number) for number in range(len(pieces.spans))]
    if isinstance(asked.value("input"), str):
        texts = [f'{{"type":"message","role":"user","content":{text}}}' for text in texts]
    return [(json.loads(text, strict=False), text) for text in texts]


async def frame_items(tx: Transaction, call: GatewayCall) -> list[str]:
    """Return the instructions at the beginning of a call's input, as JSON texts."""
    frame = await calls.find_frame(tx, call.thread_id, call.frame)
    return [text for _, text in element_texts(frame["input"])] if "input" in frame else []


async def items_until(tx: Transaction, dialect: Dialect, call: GatewayCall, seq: int) -> list[str] | None:
    """Return the items of a call's conversation up to an entry, as JSON texts; None if older ones are deleted."""
    said = await messages_until(tx, dialect, call.thread_id, seq)
    return None if said is None else [*await frame_items(tx, call), *said]


async def _last_call(tx: Transaction, asked: Asked, thread_id: str) -> GatewayCall | None:
    """Return the call at the end of a conversation of the user's, or None if it is not known or not answered."""
    thread_id = await own_name(tx, thread_id, asked.owner, asked.user)
    try:
        thread = await log.find_thread(tx, thread_id, user_id=asked.user)
    except ThreadNotFound:
        return None
    if thread.expires_at is not None and thread.expires_at <= datetime.now(UTC):
        return None
    if asked.owner is not None and await calls.owner_of(tx, thread_id) != asked.owner:
        return None
    last = (await calls.position(tx, thread_id)).n
    own = (await calls.calls_until(tx, thread_id, last)).values()
    answered = [call for call in own if call.reply_end is not None and call.dialect == asked.dialect.name]
    return max(answered, key=lambda call: call.n, default=None)


async def _find_items(tx: Transaction, asked: Asked, ids: Sequence[str]) -> Mapping[str, str]:
    """Return items of replies by their ids. Raises StateUnknown: one is not kept."""
    names = {name_node(asked.root, "item", id_): id_ for id_ in ids}
    found = await calls.known_replies(tx, asked.user, list(names))
    newest = {node.node: node for node in sorted(found, key=lambda node: (node.updated_at, node.seq))}
    items: dict[str, str] = {}
    for thread_id, n in {(node.thread_id, node.call) for node in newest.values()}:
        call = await calls.find_call(tx, thread_id, n)
        if call is not None and call.reply_seq is not None and call.reply_end is not None:
            entries = await entries_at(tx, thread_id, range(call.reply_seq, call.reply_end + 1))
            raws = asked.dialect.write_messages(
                [(entry.role, blocks_of(entry)) for _, entry in sorted(entries.items())]
            )
            items |= _by_id(raws)
    for id_ in ids:
        if id_ not in items:
            raise StateUnknown(404, "", _NO_ITEM.format(id=id_))
    return items


def _by_id(raws: Iterable[str]) -> dict[str, str]:
    parsed = elements(f"[{','.join(raws)}]").value
    return {str(item.value["id"]): raw for item, raw in zip(parsed, raws, strict=True) if item.value.get("id")}


def names_state(asked: Asked) -> bool:
    """Whether a request leaves out what it names by ids of the provider's."""
    if asked.dialect.name == "anthropic":
        thread = asked.value("thread")
        return isinstance(thread, dict) and thread.get("type") == "continue"
    named = (asked.value(name) for name in ("previous_response_id", "conversation"))
    return asked.dialect.name == "responses" and (any(named) or any(part.kind == "reference" for part in asked.parts))


async def expand_request(tx: Transaction, asked: Asked, upstream: str, family: str) -> Expanded:
    """Return a request with what it names by ids put in, and the ids taken out; itself, if it names nothing.

    What only another upstream, or another family of models, can read is left out. Raises StateUnknown.
    """
    if asked.dialect.name == "anthropic":
        found = await expanded_thread(tx, asked)
    elif asked.dialect.name == "responses":
        found = await expanded_response(tx, asked)
    else:
        return Expanded(asked)
    call = found.call
    if call is None or (call.upstream, call.family) == (upstream, family):
        return found
    return Expanded(drop_hidden(found.asked, found.asked.indexed_parts.hidden_before(call.ends)), call)


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
    """The kept responses of users' owners. Safe to share between tasks."""

    def __init__(self, store: Driver, dialect: Dialect) -> None:
        self._store = store
        self._dialect = dialect

    async def answer(self, incoming: Incoming, user: str, owner: str | None = None) -> Outgoing | None:
        """Answer a request of a user's owner that `is_about_response`; None if the response is not kept, or another's.

        Raises InvalidQuery: the vendor refuses it, too. Raises StoreError.
        """
        id_, below = response_path(incoming)
        root = root_of(user, self._dialect.name, owner)
        asked = {name: values[-1] for name, values in parse_qs(incoming.query.decode("latin-1")).items()}
        if incoming.method == "DELETE":
            return await self._delete(user, root, id_)
        async with self._store.reading() as tx:
            call = await named_call(tx, user, root, id_)
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

    async def _delete(self, user: str, root: bytes, id_: str) -> Outgoing | None:
        """Forget a response's id, and those of its items. The conversation stays in the log."""
        async with self._store.writing() as tx:
            call = await named_call(tx, user, root, id_)
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

"""Writes what a request said and what was answered into the log as entries: one transaction a request."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import accumulate, groupby, islice
from typing import Any

from longthread.errors import ThreadNotFound
from longthread.gateway.clients import Client
from longthread.gateway.dialects.dialect import Reply
from longthread.gateway.parts import Part, anchor_hidden, digests, name_node, node_of, visible_parts
from longthread.gateway.request import Asked
from longthread.gateway.restore import ALONE, alone_nodes
from longthread.gateway.spending import CallPayer
from longthread.gateway.tree import (
    UNANSWERED,
    Place,
    find_last,
    hidden_part,
    is_anothers,
    is_aside,
    is_reminder,
    own_name,
)
from longthread.messages.fields import as_json, storable
from longthread.model.content import pack
from longthread.model.entry import Draft, Role, ToolCall
from longthread.model.ids import local_id
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall, GatewayPosition, HiddenPart


@dataclass(frozen=True, slots=True)
class EntryParts:
    """The parts of one message that make one entry. `end` counts the visible parts of the branch up to its end."""

    parts: Sequence[Part]
    end: int

    @property
    def role(self) -> Role:
        return self.parts[0].role


def group_parts(parts: Sequence[Part], start: int = 0) -> list[EntryParts]:
    """Cut parts into entries: a message's consecutive parts of one role; each tool's result alone.

    Hidden parts without a visible one join the next entry of their role, or else the one before.
    """
    found: list[list[Part]] = []
    for _, group in groupby(enumerate(parts), key=_entry_key):
        own = [part for _, part in group]
        if found and own[0].role == found[-1][0].role and (_is_hidden(found[-1]) or _is_hidden(own)):
            found[-1] += own
        else:
            found.append(own)
    counts = accumulate((sum(part.visible is not None for part in own) for own in found), initial=start)
    return [EntryParts(own, end) for own, end in zip(found, islice(counts, 1, None), strict=True)]


def _entry_key(numbered: tuple[int, Part]) -> tuple[int, str, int]:
    number, part = numbered
    return part.item, part.role, number if part.kind == "result" else -1


def _is_hidden(parts: Sequence[Part]) -> bool:
    return all(part.visible is None for part in parts)


def drafts(
    groups: Sequence[EntryParts], dialect: str, blocks: Callable[[int], Sequence[str]], **last: Any
) -> list[Draft]:
    """Return entries' drafts. `blocks` gives the texts of a message's blocks; `last` are fields of the last draft."""
    texts: dict[int, Sequence[str]] = {}
    made: list[Draft] = []
    for group in groups:
        for part in group.parts:
            if part.item not in texts:
                texts[part.item] = blocks(part.item)
        fields = last if group is groups[-1] else {}
        made.append(_draft(group.parts, dialect, [texts[part.item][part.place] for part in group.parts], fields))
    return made


def _draft(parts: Sequence[Part], dialect: str, raws: Sequence[str], fields: Mapping[str, Any]) -> Draft:
    result = next((part.value for part in parts if part.kind == "result"), None)
    text = storable(result[1] if result else "".join(part.value for part in parts if part.kind == "text"))
    return Draft(
        id=local_id(),
        role=parts[0].role,
        text=text,
        tool_calls=[_tool_call(part.value) for part in parts if part.kind == "call"],
        tool_call_id=storable(str(result[0] or "")) if result else None,
        payload=pack(dialect, raws, text),
        **fields,
    )


def _tool_call(value: tuple[Any, Any, Any]) -> ToolCall:
    id_, name, args = value
    return ToolCall(
        storable(str(id_ or "")), storable(str(name or "")), as_json(args) if isinstance(args, dict) else {}
    )


BAD_REQUEST = 400
"""The least status of an answer that costs nothing."""
BROKEN_OFF = "broken_off"
"""In the metadata of a reply's last entry: why the reply is not whole."""
_TITLE = 60
"""Length of a thread's title, in characters."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request as it went up.

    Attributes:
        asked: the request after restoring or repair.
        base: the call that carried, with its reply, the hidden parts before part `base_ends`; 0: none did.
        restored, dropped: how many hidden parts the gateway put in or took out.
    """

    asked: Asked
    upstream: str
    family: str
    model: str
    client: Client
    started_at: str
    base: int = 0
    base_ends: int = 0
    restored: int = 0
    dropped: int = 0
    named: bool = True
    """Whether the provider's ids may be looked up later."""
    repair: str = ""
    """How the gateway made up for hidden parts that the provider missed and the log does not have."""
    payer: CallPayer | None = None
    """Who pays for the call; None on a server without login."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What came: a reply, or None, the HTTP status, and how long it took in milliseconds. `broken` says in a word why
    the reply is not whole."""

    reply: Reply | None
    status: int
    elapsed_ms: int
    broken: str = ""


@dataclass(frozen=True, slots=True)
class _Start:
    """Where the new entries go: after entry `seq`, at whose end `covered` visible parts are known."""

    seq: int
    covered: int
    previous: int


class _Taken(Exception):
    """Meanwhile another owner has begun a thread of this name."""


async def keep(store: Driver, place: Place, sent: SentRequest, answered: Answered, *, ttl: int | None = None) -> int:
    """Write a request and its reply; return the number of the call. `ttl` is how many seconds the thread stays after
    it. Raises StoreError: nothing is written."""
    try:
        return await _keep(store, place, sent, answered, ttl)
    except _Taken:
        async with store.reading() as tx:
            name = await own_name(tx, place.thread_id, sent.asked.owner, sent.asked.user)
        return await _keep(store, Place(name, place.parent, "new", None), sent, answered, ttl)


async def _keep(store: Driver, place: Place, sent: SentRequest, answered: Answered, ttl: int | None) -> int:
    async with store.writing() as tx:
        asked, thread_id = sent.asked, place.thread_id
        if place.branch != "main":
            for name in filter(None, (place.parent, thread_id)):
                await _delete_expired(tx, name, asked.user)
            parent = await own_name(tx, place.parent, asked.owner, asked.user) if place.parent else None
            await log.create_thread(tx, thread_id, user_id=asked.user, title=_title(asked), parent=parent)
        tip, size = await log.position(tx, thread_id)
        frame = frame_id(sent)
        there = await calls.position(tx, thread_id, frame=frame, node=place.last)
        if is_anothers(there.owner, asked.owner):
            raise _Taken
        if there.n and asked.tools and not there.tools and (title := _title(asked)):
            # What came before was no part of the conversation, such as a request for its title.
            await log.rename_thread(tx, thread_id, title, user_id=asked.user)
        start = await _start(tx, place, asked, there)
        groups = group_parts(asked.parts[asked.indexed_parts.behind(start.covered) :], start.covered)
        replied = group_parts(answered.reply.parts, len(asked.nodes)) if answered.reply else []
        made = drafts(groups, asked.dialect.name, asked.blocks) + _replies(replied, asked, answered)
        aside = sent.client.is_aside or (not place.is_chosen and is_aside(asked.tools, there.tools))
        aside = aside or there.has_run  # a run goes on from the tip
        seqs = await _write(tx, thread_id, made, start.seq, (tip, size), aside=aside)
        call = _call(thread_id, there.n + 1, frame, sent, answered, start, seqs[: len(groups)], seqs[len(groups) :])
        if not there.has_frame:
            await calls.add_frame(tx, call, asked.frame)
        await calls.add_call(tx, call)
        written = list(zip(seqs, [*groups, *replied], strict=True))
        found = [*_nodes(sent, answered.reply, call, written, len(groups)), *_other_nodes(sent, answered.reply, call)]
        await calls.add_nodes(tx, thread_id, found)
        signature = _last_signature(answered.reply)
        client = {"client_type": sent.client.type, "client": sent.client.label}
        await calls.note_client(tx, thread_id, last_signature=signature, owner=asked.owner, **client)
        if ttl is not None:
            await calls.expire_after(tx, thread_id, ttl)
        if sent.payer is not None and answered.status < BAD_REQUEST:
            await sent.payer.note_reply(tx, asked, answered.reply)
    _remember(place, call, asked, answered.reply)
    return call.n


def _remember(place: Place, call: GatewayCall, asked: Asked, reply: Reply | None) -> None:
    """Keep in memory what the next request is restored from."""
    if call.broken:
        return
    base = place.decides if call.base else None
    before = asked.recent.hidden_until(base) if base else ()
    if reply is None or before is None:
        return
    own = [
        hidden_part(each, reply.raws[each.part.item][each.part.place])
        for each in anchor_hidden(reply.parts, call.asked)
    ]
    asked.recent.put_hidden(call, [*before, *call.hidden, *own], base)


async def _delete_expired(tx: Transaction, thread_id: str, user_id: str) -> None:
    """Delete a thread whose time is over: another one begins under its name."""
    with suppress(ThreadNotFound):
        thread = await log.find_thread(tx, thread_id, user_id=user_id)
        if thread.expires_at is not None and thread.expires_at <= datetime.now(UTC):
            await log.delete_thread(tx, thread_id, user_id=user_id)


async def _start(tx: Transaction, place: Place, asked: Asked, there: GatewayPosition) -> _Start:
    """Return the deepest entry of the thread that the request goes on from: the one that was found before the thread
    was locked, unless a call came or entries went since."""
    last = place.last
    if there.n != place.calls or (last is not None and not there.has_node):
        last = await find_last(tx, asked, place.thread_id, place.joined)
    return _Start(last.seq, asked.nodes.index(last.node) + 1, last.call) if last else _Start(0, 0, 0)


def _replies(groups: Sequence[EntryParts], asked: Asked, answered: Answered) -> list[Draft]:
    reply = answered.reply
    if reply is None:
        return []
    fields: dict[str, Any] = {"tokens": _tokens(reply), "latency_ms": answered.elapsed_ms}
    if answered.broken:
        fields["metadata"] = {BROKEN_OFF: answered.broken}
    return drafts(groups, asked.dialect.name, lambda item: reply.raws[item], **fields)


async def _write(
    tx: Transaction, thread_id: str, made: Sequence[Draft], start: int, position: tuple[int, int], *, aside: bool
) -> list[int]:
    """Write entries after `start`; return their seqs."""
    tip, size = position
    if aside:
        entries = await log.add(tx, thread_id, made, parent=start)
    elif start == tip:
        entries = await log.append(tx, thread_id, made, tip=tip, size=size)
    else:
        entries = await log.extend(tx, thread_id, made, parent=start)
    return [entry.seq for entry in entries]


def _call(
    thread_id: str,
    n: int,
    frame: str,
    sent: SentRequest,
    answered: Answered,
    start: _Start,
    seqs: Sequence[int],
    replied: Sequence[int],
) -> GatewayCall:
    asked, reply = sent.asked, answered.reply
    parts = len(asked.nodes)
    own = anchor_hidden(reply.parts, parts) if reply else []
    return GatewayCall(
        thread_id=thread_id,
        n=n,
        response_id=reply.id if reply and sent.named and not answered.broken else None,
        dialect=asked.dialect.name,
        upstream=sent.upstream,
        family=sent.family,
        model=sent.model,
        frame=frame,
        tools=asked.tools,
        status=answered.status,
        asked_seq=seqs[-1] if seqs else start.seq,
        reply_seq=replied[0] if replied else None,
        reply_end=replied[-1] if replied else None,
        asked=parts,
        ends=parts + (len(visible_parts(reply.parts)) if reply else 0),
        previous=start.previous,
        base=sent.base,
        hidden=_hidden_beyond(asked, sent.base_ends),
        hidden_hash=asked.indexed_parts.hash_with(own),
        restored=sent.restored,
        dropped=sent.dropped,
        usage=reply.usage if reply else {},
        head=reply.head if reply and asked.value("store") is not False else {},
        started_at=sent.started_at,
        elapsed_ms=answered.elapsed_ms,
        broken=answered.broken,
    )


def frame_id(sent: SentRequest) -> str:
    """Return a hash of what calls have in common: the model they asked, and their fields other than the messages."""
    whom = (sent.asked.dialect.name, sent.upstream, sent.family, sent.model, sent.asked.says.id)
    digest = blake2b("\n".join(whom).encode("utf-8", "surrogatepass"), digest_size=6)
    return urlsafe_b64encode(digest.digest()).decode()


def _hidden_beyond(asked: Asked, ends: int) -> list[HiddenPart]:
    """Return the hidden parts of a request from visible part `ends` on."""
    found = asked.hidden_parts[len(asked.indexed_parts.hidden_before(ends)) :]
    return [hidden_part(each, asked.blocks(each.part.item)[each.part.place]) for each in found]


def _nodes(
    sent: SentRequest,
    reply: Reply | None,
    call: GatewayCall,
    written: Sequence[tuple[int, EntryParts]],
    asked_count: int,
) -> Iterable[tuple[int, int, int, int]]:
    """Yield the nodes of the new entries."""
    asked = sent.asked
    own = digests(asked.end, visible_parts(reply.parts)) if reply else []
    every = [*asked.nodes, *map(node_of, own)]
    for number, (seq, group) in enumerate(written):
        # A reply that is hidden whole is no prefix: no later request shows that it was there.
        if group.end and (number < asked_count or visible_parts(group.parts)):
            yield seq, 0, every[group.end - 1], call.previous if number < asked_count else call.n


def _other_nodes(sent: SentRequest, reply: Reply | None, call: GatewayCall) -> Iterable[tuple[int, int, int, int]]:
    """Yield the nodes of what else is found: the provider's ids, the reply by itself, a request without a whole one."""
    asked = sent.asked
    if not call.is_answered and asked.nodes:
        yield call.asked_seq, UNANSWERED, asked.nodes[-1], call.n
    if reply is None or call.reply_end is None:
        return
    names = [("response", reply.id), *(("item", id_) for id_ in reply.ids)] if call.response_id else []
    for place, (kind, id_) in enumerate(names, start=1):
        if id_:
            yield call.reply_end, place, name_node(asked.root, kind, id_), call.n
    for number, node in enumerate(alone_nodes(asked.dialect, call, asked.root, reply.parts)):
        yield call.reply_end, ALONE - number, node, call.n


def _tokens(reply: Reply) -> int | None:
    found = reply.usage.get("output_tokens", reply.usage.get("completion_tokens"))
    return found if type(found) is int else None


def _last_signature(reply: Reply | None) -> str | None:
    if reply is None:
        return None
    return next((part.value for part in reversed(reply.parts) if part.visible is None and part.value), None)


def _title(asked: Asked) -> str | None:
    """Return the first text of the user's that is no reminder of the client's to the model."""
    texts = (part.value for part in asked.parts if part.kind == "text" and part.role == "user")
    said = next((text for text in texts if not is_reminder(text)), "")
    return storable(" ".join(said.split())[:_TITLE]) or None

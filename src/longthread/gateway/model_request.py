"""One request through the gateway: found in the log, restored, sent up, repaired, answered and kept."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace

import aiohttp

from longthread.errors import LongthreadError
from longthread.gateway.clients import Owners, client_of, find_named_thread, threads_named
from longthread.gateway.dialects.dialect import Dialect, HiddenMissing, Reply
from longthread.gateway.dialects.stream import FinalEvent, whole_events
from longthread.gateway.http import Decoder, Incoming, Outgoing, ReplyTooLarge, for_client
from longthread.gateway.keep import BAD_REQUEST, Answered, SentRequest, keep
from longthread.gateway.parts import Anchored, count_changes, seals_of
from longthread.gateway.request import Asked
from longthread.gateway.restore import (
    ReplyMaker,
    binding_of,
    drop_hidden,
    hash_binding,
    hidden_from,
    restore_hidden,
    restored_by_call,
    with_stand_ins,
)
from longthread.gateway.shared_account import is_account_shared
from longthread.gateway.spending import CallPayer
from longthread.gateway.state import Expanded, StateUnknown, expand_request, names_state, rebuilt, without_state
from longthread.gateway.tracing import describe_kept, describe_reply, send_within
from longthread.gateway.tree import Place, find_place, hidden_until, mark_names
from longthread.gateway.upstream import Connections, Upstream, UpstreamResponse, family_of
from longthread.loop_bridge import to_the_end
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver, Transaction
from longthread.store.gateway import GatewayCall
from longthread.telemetry import OFF, TraceSpan, note_failure

_STREAM = "text/event-stream"
_REFUSALS = frozenset({400, 404, 413, 422})
"""Statuses of refusals that hidden parts may have caused."""
_CLIENT_LEFT = 499
"""The status of a call whose client left before the provider answered."""
_UNKNOWN = frozenset({400, 404})
"""Refusals of a provider that does not know an id any more."""

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What dialects raise for a reply of another form."""
_NOT_FOUND = re.compile(rb"not[_ ]found")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """What happened since the start."""

    requests: int = 0
    restored: int = 0
    repaired: int = 0
    not_kept: int = 0


@dataclass(frozen=True, slots=True)
class Resources:
    """What all requests share."""

    store: Driver
    connections: Connections
    counts: Counts
    owners: Owners
    strict: bool
    ttl: int | None
    reply_limit: int
    """Bytes of a reply, decompressed."""
    refused: set[tuple[str, int, str]] = field(default_factory=set)
    """Replies, by thread and call, whose hidden parts a provider refused after another prompt or other tools, by these.
    After a restart the provider is asked once more."""
    takes: set[tuple[str, str]] = field(default_factory=set)
    """Models, by the address of their upstream, that took hidden parts which were put in."""
    takes_none: set[tuple[str, str]] = field(default_factory=set)
    """Models that know no such fields: nothing is put in for them. After a restart they are asked once more."""


class StoreFailed(Exception):
    """The store failed, and requests that cannot be kept are refused."""


class GatewayRequest:
    """A model's request and its answer. Use it once.

    Args:
        keeps: whether the log gets it; what a client dropped is restored either way.
        payer: who pays for it, if users log in.
        span: what the call is told in. It ends with the reply.
    """

    def __init__(
        self,
        shared: Resources,
        incoming: Incoming,
        asked: Asked,
        upstream: Upstream,
        *,
        keeps: bool,
        restores: bool,
        payer: CallPayer | None = None,
        span: TraceSpan = OFF,
    ) -> None:
        self._shared = shared
        self._incoming = send_within(span, incoming)
        self._span = span
        self._dialect: Dialect = asked.dialect
        self._upstream = upstream
        self._is_shared = is_account_shared(incoming, upstream)
        self._keeps = keeps
        self._restores = restores
        self._original = self._whole = asked
        self._place: Place | None = None
        self._problem = ""
        self._is_kept = False
        self._began = time.perf_counter()
        self._sent = SentRequest(
            asked,
            upstream.name,
            family_of(asked.model),
            asked.model,
            client_of(incoming),
            log.now(),
            named=asked.dialect.is_named(asked.fields),
            payer=payer,
        )

    async def run(self) -> Outgoing:
        """Ask the provider and return its answer.

        Raises:
            StoreFailed: the store failed, and nothing is asked without it.
            StateUnknown: the request names a response that is not kept, and the provider holds none.
            aiohttp.ClientError: the provider cannot be reached.
        """
        with ExitStack() as ending:
            ending.callback(self._span.end)
            with note_failure(self._span):
                answer = await self._run()
            if answer.status >= 400:
                self._span.fail(str(answer.status))
            self._span.note({"http.response.status_code": answer.status})
            if answer.stream is not None:
                ending.pop_all()  # it ends with the stream
        return answer

    async def _run(self) -> Outgoing:
        try:
            if self._keeps or self._restores or (self._is_shared and names_state(self._original)):
                await self._find()
        except LongthreadError as error:
            self._not_kept(error)
            is_half = names_state(self._original) and (self._is_shared or not self._upstream.holds_state)
            if self._shared.strict or is_half:
                raise StoreFailed(str(error)) from error
        try:
            return await self._answer_request()
        except asyncio.CancelledError:
            if not self._is_kept:
                with suppress(StoreFailed):
                    await to_the_end(self._keep(None, _CLIENT_LEFT, broken="client"))
            raise

    async def _answer_request(self) -> Outgoing:
        response, refused = await self._first()
        if refused is None and response.status in _REFUSALS and self._sent.asked.nodes:
            response, refused = await self._again(response)
        elif response.is_success and self._sent.restored:
            self._note_taken(None)
        if refused is None and response.is_success and self._is_stream(response):
            ping = b"" if response.header("content-encoding") else self._dialect.ping
            headers = [*for_client(response.headers), *self._notes()]
            return Outgoing(response.status, headers, stream=self._stream_reply(response), ping=ping)
        body = await self._body(response) if refused is None else refused
        if response.is_success and (self._keeps or self._sent.payer is not None):
            await to_the_end(self._keep(self._read(body, response), response.status))
        headers = [*for_client(response.headers), *self._notes(is_known=response.is_success)]
        return Outgoing(response.status, headers, body)

    async def _find(self) -> None:
        """Find the place in the log, and restore what the client dropped. A conversation without an owner becomes the
        client's."""
        adopt, names = self._shared.owners.adopt, threads_named(self._original, self._incoming)
        if names_state(self._original):
            await adopt(self._original, names)
        await self._look()
        if self._place is not None and not self._place.joined and await adopt(self._whole, names):
            await self._look()

    async def _look(self) -> None:
        async with self._shared.store.reading() as tx:
            found = await self._expand_request(tx)
            if found is None:
                return
            self._whole = found.asked
            sent = self._sent = replace(self._sent, asked=found.asked)
            aside = sent.client.is_aside
            whom, client = (sent.upstream, sent.family), sent.client.label
            named = find_named_thread(self._incoming, found)
            if named is not None and self._incoming.principal is not None:
                named = await mark_names(tx, named, found.asked.owner or "", found.asked.user)
            place = await find_place(tx, found.asked, named, *whom, aside=aside, client=client)
            self._place = place
            await self._put_back(tx, place)
        self._shared.counts.restored += bool(self._sent.restored)

    async def _put_back(self, tx: Transaction, place: Place, *, always: bool = False) -> None:
        """Restore what the client dropped: all that a call of this conversation carried. Where hidden parts are bound
        to their call, also restore what the log has of the turns after that. `always`: also if the request seems not to
        take hidden parts."""
        decides, begin = place.decides, 0
        if decides is not None and (whole := await self._restore_hidden(tx, decides, always=always)) is not None:
            own, begin = decides.thread_id == place.thread_id, decides.ends
            base, ends = (decides.n, decides.ends) if own else (0, 0)
            self._sent = replace(whole, base=base, base_ends=ends)
        sent = self._sent
        if binding_of(sent.model) == "prefix" or not (always or self._takes_hidden):
            return
        asker = ReplyMaker(sent.upstream, sent.family, sent.model)
        asked = await restored_by_call(tx, sent.asked, begin, asker, place.thread_id)
        if asked is not None:
            put, gone = count_changes(sent.asked.hidden_parts, asked.hidden_parts)
            self._sent = replace(sent, asked=asked, restored=sent.restored + put, dropped=sent.dropped + gone)

    @property
    def _takes_hidden(self) -> bool:
        """Whether hidden parts may be put into the request."""
        by_default = binding_of(self._sent.model) == "call"
        return self._dialect.asks_hidden(self._whole.fields, by_default=by_default) and not self._takes_none

    async def _expand_request(self, tx: Transaction) -> Expanded | None:
        """Put in what the request names by ids; None if the provider alone may know it. Of an account that users share,
        each names what the log has of the user's own."""
        try:
            found = await expand_request(tx, self._original, self._sent.upstream, self._sent.family)
            if self._is_shared and "conversation" in found.asked.fields:
                found = replace(found, asked=rebuilt(found.asked, {}, leave_out=("conversation",)))
            return found
        except StateUnknown:
            if self._is_shared or (self._keeps and not self._upstream.holds_state):
                raise
        if not self._keeps:
            return None
        # The log would have a gap.
        self._problem = "The provider alone knows what this goes on from."
        self._shared.counts.not_kept += 1
        if self._shared.strict:
            raise StoreFailed(self._problem)
        return None

    async def _restore_hidden(self, tx: Transaction, decides: GatewayCall, *, always: bool) -> SentRequest | None:
        """Return the request with the hidden parts that a call carried and those of its reply; None if it stays as it
        is, with others or without."""
        sent = self._sent
        if sent.asked.indexed_parts.hash_before(decides.ends) == decides.hidden_hash:
            return sent
        if self._is_refused(decides) or not (always or self._takes_hidden):
            return None
        ours = await hidden_until(tx, sent.asked, decides)
        if ours is None:
            return None
        try:
            asked = restore_hidden(sent.asked, ours, decides.ends)
        except (ValueError, LookupError):  # the provider asked directly would answer
            _log.exception("What call %d of thread %s carried cannot be put in", decides.n, decides.thread_id)
            return None
        theirs, now = (each.indexed_parts.hidden_before(decides.ends) for each in (sent.asked, asked))
        if not decides.dropped and (seals := seals_of(theirs)) and seals - seals_of(now):
            # Another provider's reply, or one from before: the client dropped nothing. Unless the provider refused it
            # before, and the reply was made without it.
            return None
        if asked.indexed_parts.hash_before(decides.ends) != decides.hidden_hash:  # all of them or none
            _log.warning("What call %d of thread %s carried cannot be restored", decides.n, decides.thread_id)
            return None
        put, gone = count_changes(theirs, now)
        return replace(sent, asked=asked, restored=put, dropped=gone)

    def _is_refused(self, decides: GatewayCall) -> bool:
        known = self._shared.refused
        return bool(known) and (decides.thread_id, decides.n, hash_binding(self._whole.frame)) in known

    @property
    def _takes_none(self) -> bool:
        return (self._upstream.base_url, self._sent.model) in self._shared.takes_none

    def _note_taken(self, error: bytes | None) -> None:
        """Note whether the model takes what was put in: it answered, or only without that, and the `error` names one of
        the fields that vendors add to the dialect. One that took such a field before knows it."""
        model = (self._upstream.base_url, self._sent.model)
        if error is None:
            self._shared.takes.add(model)
        elif model not in self._shared.takes and any(name.encode() in error for name in self._dialect.vendor_fields):
            self._shared.takes_none.add(model)

    @property
    def _is_changed(self) -> bool:
        """Whether the hidden parts are others than the client's."""
        return self._sent.asked is not self._whole

    async def _first(self) -> tuple[UpstreamResponse, bytes | None]:
        """Send the request: with its ids if the provider holds what they name, and whole otherwise. Return the answer,
        and its body if that was read."""
        if self._whole is self._original:
            return await self._send(self._sent.asked), None
        is_anyones = self._is_shared and "conversation" in self._original.fields
        if self._upstream.holds_state and not is_anyones:
            response = await self._send(self._original)
            if response.status not in _UNKNOWN:
                return response, None
            body = await self._body(response)
            if not _NOT_FOUND.search(self._decode_body(body, response)):
                return response, body
        self._incoming = replace(self._incoming, headers=without_state(self._incoming.headers))
        return await self._send(self._sent.asked), None

    async def _send(self, asked: Asked) -> UpstreamResponse:
        send, is_patient = self._shared.connections.send, not asked.streams
        return await send(self._upstream, self._dialect.name, self._incoming, asked.body, is_patient=is_patient)

    async def _again(self, first: UpstreamResponse) -> tuple[UpstreamResponse, bytes | None]:
        """Ask once more without the hidden parts that the provider refused, or else without what was put in.

        Return the answer, and its body if that was read: the first one's, if nothing else helps.
        """
        body = await self._body(first)
        sent, gone = self._sent, list[Anchored]()
        error = self._decode_body(body, first)
        refusal = self._dialect.refusal(error)
        tries: list[SentRequest] = []
        missing = self._dialect.missing(error)
        if missing is not None:
            tries += await self._complete_requests(missing)
        elif refusal is not None and sent.asked.hidden_parts and not self._dialect.pins_errors(sent.asked.fields):
            gone = hidden_from(sent.asked, refusal)
            tries.append(replace(sent, asked=drop_hidden(sent.asked, gone), dropped=sent.dropped + len(gone)))
        if self._is_changed and first.status != 404:
            tries.append(replace(sent, asked=self._whole, restored=0, dropped=0))
        for again in tries:
            response = await self._send(again.asked)
            if response.is_success or again.asked is self._whole:
                break  # what the client's own request gets is the client's
            response.close()
        else:
            self._sent = sent
            return first, body
        self._shared.counts.repaired += response.is_success
        if response.is_success and sent.restored and missing is None:
            self._note_taken(error)
        self._sent = replace(again, base=0, base_ends=0)
        if gone and sent.base and self._place is not None:
            await self._mark_refused(self._place.thread_id, sent.base, gone[0].at)
        return response, None

    async def _complete_requests(self, missing: HiddenMissing) -> list[SentRequest]:
        """Return the requests to try: first with the missing hidden parts that the log has, then with stand-ins that
        the provider takes for parts that the log lacks."""
        before, tries = self._sent, list[SentRequest]()
        if self._place is not None and not self._takes_hidden:
            with suppress(LongthreadError):  # the provider's error says more
                async with self._shared.store.reading() as tx:
                    await self._put_back(tx, self._place, always=True)
            tries += [self._sent] if self._sent is not before else []
        with suppress(ValueError):
            asked = with_stand_ins(self._sent.asked, missing)
            tries += [replace(self._sent, asked=asked, repair=missing.note)] if asked is not None else []
        return tries

    async def _mark_refused(self, thread_id: str, base: int, at: int) -> None:
        """Note which replies' hidden parts the provider does not take, so that they are never restored. After another
        system prompt or other tools it may still take them."""
        try:
            async with self._shared.store.writing() as tx:
                await log.position(tx, thread_id)
                line = await calls.calls_until(tx, thread_id, base)
                frame = await calls.find_frame(tx, thread_id, line[base].frame)
                if hash_binding(frame) != hash_binding(self._whole.frame):
                    self._shared.refused.add((thread_id, base, hash_binding(self._whole.frame)))
                    return
                await calls.refuse(tx, thread_id, [n for n in _line(line, base) if line[n].ends > at])
            self._original.recent.forget_hidden()
        except LongthreadError as error:
            self._not_kept(error)

    async def _stream_reply(self, response: UpstreamResponse) -> AsyncGenerator[bytes]:
        """Yield a stream as it comes. Its final event waits until the reply is in the log."""
        encoding = response.header("content-encoding")
        decode, hold = (
            Decoder(encoding, self._shared.reply_limit),
            FinalEvent(self._dialect.final, is_encoded=bool(encoding)),
        )
        copy: list[bytes] = []
        try:
            try:
                while not hold.is_held and (piece := await response.piece()):
                    copy.append(decode(piece))
                    if shown := hold(piece, copy[-1]):
                        yield shown
            except aiohttp.ClientError as error:
                self._span.fail(_reason(error))
                await self._keep_stream(copy, response.status, _reason(error))
                raise
            except (asyncio.CancelledError, GeneratorExit):
                response.close()
                self._span.fail("client")
                with suppress(StoreFailed):
                    await to_the_end(self._keep_stream(copy, response.status, "client"))
                raise
            await to_the_end(self._keep_stream(copy, response.status, "provider"))
            if self._problem and not encoding:
                yield f": not kept: {self._problem}\n\n".encode()
            if rest := hold.end():
                yield rest
            with suppress(aiohttp.ClientError):  # all is said, however the connection ends, and whenever
                while piece := await response.piece():
                    yield piece
        finally:
            response.close()
            self._span.end()

    def _is_stream(self, response: UpstreamResponse) -> bool:
        """Whether an answer is a stream. Some servers do not say so, or say that it is a text."""
        kind = (response.header("content-type") or "text/plain").lower()
        return _STREAM in kind or (self._original.streams and kind.startswith("text/plain"))

    async def _keep_stream(self, pieces: Sequence[bytes], status: int, broken: str) -> None:
        """Keep what a stream said. If it is not whole, it broke off for the reason `broken`."""
        if not self._keeps and self._sent.payer is None:
            return
        body = b"".join(pieces)
        try:
            reply = self._dialect.read_stream(body)
        except _UNREADABLE as error:
            try:
                reply = self._dialect.read_stream(whole_events(body))
            except _UNREADABLE:
                self._note_unreadable(error)
                await self._keep(None, status)
                return
        if reply.whole:
            await self._keep(reply, status)
        else:
            await self._keep(reply if reply.parts or reply.usage else None, status, broken=broken)

    def _read(self, body: bytes, response: UpstreamResponse) -> Reply | None:
        """Read a reply that was not streamed; None if it is not whole or cannot be read."""
        try:
            reply = self._dialect.reply(self._decode_body(body, response))
        except _UNREADABLE as error:
            self._problem = "The reply cannot be read."  # a stream passes byte for byte
            self._note_unreadable(error)
            return None
        return reply if reply.whole else None

    def _note_unreadable(self, error: Exception) -> None:
        self._shared.counts.not_kept += 1
        # Its `repr` may hold the whole reply.
        said = f"{type(error).__name__}: {error}"
        _log.warning("A reply of %s cannot be read, and is not kept: %s", self._upstream.name, said)

    async def _body(self, response: UpstreamResponse) -> bytes:
        return await response.read(self._shared.reply_limit)

    def _decode_body(self, body: bytes, response: UpstreamResponse) -> bytes:
        return Decoder(response.header("content-encoding"), self._shared.reply_limit)(body)

    async def _keep(self, reply: Reply | None, status: int, *, broken: str = "") -> None:
        if self._place is None or not self._keeps:
            await self._pay(reply, status)
            return
        self._is_kept = True
        if reply is not None:
            told = reply.head.get("input_transformations")
            dropped = sum("dropped" in str(each) for each in told) if isinstance(told, list) else 0
            self._sent = replace(self._sent, dropped=self._sent.dropped + dropped)
            if self._span.is_on:
                self._span.note(describe_reply(reply))
        took = int(1000 * (time.perf_counter() - self._began))
        try:
            answered = Answered(reply, status, took, broken)
            number = await keep(self._shared.store, self._place, self._sent, answered, ttl=self._shared.ttl)
            self._span.note(describe_kept(self._place.thread_id, number))
        except LongthreadError as error:
            self._not_kept(error)
            await self._pay(reply, status)
            if self._shared.strict:
                raise StoreFailed(str(error)) from error

    async def _pay(self, reply: Reply | None, status: int) -> None:
        """Write what a call cost that is not kept."""
        if self._sent.payer is None or status >= BAD_REQUEST:
            return
        try:
            async with self._shared.store.writing() as tx:
                await self._sent.payer.note_reply(tx, self._sent.asked, reply)
        except LongthreadError as error:
            _log.error("What a request cost cannot be written: %s", error)

    def _not_kept(self, error: LongthreadError) -> None:
        self._problem = " ".join(str(error).split())
        self._shared.counts.not_kept += 1
        _log.error("A request is not kept: %s", error)

    def _notes(self, *, is_known: bool = True) -> list[tuple[bytes, bytes]]:
        """Return our own headers. `is_known`: the request is in the log."""
        notes = {"x-longthread-restored": self._sent.restored, "x-longthread-dropped": self._sent.dropped}
        found = [(name.encode(), str(count).encode()) for name, count in notes.items() if self._place is not None]
        if self._place is not None and self._keeps and (is_known or self._place.branch != "new"):
            thread = self._place.thread_id.encode("utf-8", "replace")
            found += [(b"x-conversation-id", thread), (b"x-longthread-branch", self._place.branch.encode())]
        if self._sent.repair:
            found.append((b"x-longthread-repaired", self._sent.repair.encode()))
        if self._problem:
            found.append((b"x-longthread-not-kept", self._problem.encode("ascii", "replace")[:500]))
        return found


def _reason(error: aiohttp.ClientError) -> str:
    """Return why a stream broke off, in a word."""
    if isinstance(error, ReplyTooLarge):
        return "limit"
    return "timeout" if isinstance(error, TimeoutError) else "provider"


def _line(line: Mapping[int, GatewayCall], n: int) -> Iterator[int]:
    while n in line:
        yield n
        n = line[n].base

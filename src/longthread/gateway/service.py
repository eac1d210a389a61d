"""The gateway: passes requests on to providers, and keeps the conversations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

import aiohttp

from longthread.errors import BudgetSpent, NotGranted, PriceMissing, StoreError
from longthread.gateway.clients import Owners
from longthread.gateway.dialects.anthropic import Anthropic
from longthread.gateway.dialects.completions import Completions
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.dialects.responses import Responses
from longthread.gateway.granted import CallerGrants, expect_model, permit_routes
from longthread.gateway.http import REPLY_LIMIT, Decoder, Incoming, Outgoing, ReplyTooLarge, for_client
from longthread.gateway.model_request import Counts, GatewayRequest, Resources, StoreFailed
from longthread.gateway.raw_json import write_json
from longthread.gateway.request import Asked, Recent
from longthread.gateway.shared_account import is_account_shared, is_stateless, is_unreadable, names_stored
from longthread.gateway.spending import CallPayer, find_payer
from longthread.gateway.state import InvalidQuery, StateUnknown, StoredResponses, is_about_response, response_path
from longthread.gateway.tracing import begin_call
from longthread.gateway.upstream import CatalogRoutes, Connections, NoUpstream, Routes, Upstream, UpstreamResponse
from longthread.settings import Settings
from longthread.store import listing
from longthread.store.driver import Driver
from longthread.store.maintenance.space import WriteCheck
from longthread.telemetry import OFF

Keep = Literal["all", "asked", "nothing"]
ANTHROPIC = Anthropic()
COMPLETIONS = Completions()
RESPONSES = Responses()
BODY_LIMIT = 32 * 1024 * 1024
"""Bytes of a request, as Anthropic has it."""
_MODELS = "/v1/models/"
_JSON = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """`user` has the conversations of a gateway without login. `keep` says which are kept: `asked` leaves out the ones
    with `store: false`. `strict` refuses a request that cannot be kept. A conversation expires `ttl` seconds after its
    last call; None: never. A reply has at most `reply_limit` bytes, decompressed. `settings` have the prices and the
    currency of budgets, where users log in."""

    user: str
    keep: Keep = "all"
    strict: bool = False
    ttl: int | None = None
    reply_limit: int = REPLY_LIMIT
    settings: Settings | None = None


class Gateway:
    """Safe to share between tasks. Close it when done. `routes` apply after the catalog's."""

    def __init__(self, store: Driver, routes: Routes, options: GatewayOptions) -> None:
        self.counts = Counts()
        self.options = options
        self._routes = CatalogRoutes(store, routes)
        self._grants = CallerGrants(store, routes.upstreams)
        self._recent = Recent()
        self._writes = WriteCheck(store)
        self._connections = Connections()
        self._stored = StoredResponses(store, RESPONSES)
        self._owners = Owners(store)
        own = options.strict, options.ttl, options.reply_limit
        self._shared = Resources(store, self._connections, self.counts, self._owners, *own)

    async def close(self) -> None:
        await self._connections.close()

    async def ready(self) -> Outgoing:
        """Tell that the store answers, and takes writes. Raises StoreError."""
        async with self._shared.store.reading() as tx:
            await listing.last_thread(tx, user_id=self.options.user)
        await self._writes.expect()
        return Outgoing(200, [_JSON], b'{"status":"ready"}')

    async def reply(self, dialect: Dialect, incoming: Incoming, *, counts: bool = False) -> Outgoing:
        """Answer a request for a model's reply; with `counts` only for its number of tokens, which keeps nothing."""
        self.counts.requests += 1
        owner = await self._owners.find(incoming.credential)
        try:
            asked = Asked.read(dialect, self._user_of(incoming), incoming.body, self._recent, owner)
        except ValueError:
            answer = await self.relay(dialect, incoming)  # the provider says what is wrong with it
            answer.headers.append((b"x-longthread-not-kept", b"The request cannot be read."))
            return answer
        if incoming.header("x-longthread-keep") not in (None, "nothing"):
            return make_refusal(dialect, 400, "", "X-Longthread-Keep takes `nothing` alone.")
        try:
            upstream, model = await self._find_upstream([dialect.name], asked.model, incoming)
        except NoUpstream as error:
            return make_refusal(dialect, error.status, "", str(error))
        if is_account_shared(incoming, upstream) and names_stored(incoming.body):
            return make_refusal(dialect, 404, "", _NOT_SHARED)
        if model != asked.model:
            asked = asked.with_field("model", write_json(model))
        keeps = not counts and self._keeps(asked, incoming)
        restores = self.options.keep != "nothing"
        costs = not counts or incoming.path.rstrip("/").endswith("/compact")
        payer = find_payer(incoming, self.options.settings, upstream.name, model) if costs else None
        if payer is not None and (refusal := await self._check_budget(dialect, incoming, payer, is_read=True)):
            return refusal
        how = {"keeps": keeps, "restores": restores}
        span = OFF if counts else begin_call(asked, upstream)
        exchange = GatewayRequest(self._shared, incoming, asked, upstream, **how, payer=payer, span=span)
        try:
            return await exchange.run()
        except StoreFailed as error:
            return make_refusal(dialect, 503, "", f"The conversation cannot be kept: {error}")
        except StateUnknown as error:
            return make_refusal(dialect, error.status, error.code, str(error))
        except ReplyTooLarge as error:
            return make_refusal(dialect, 502, "", str(error))
        except aiohttp.ClientError as error:
            return _unreachable(dialect, upstream, error)

    async def stored_response(self, incoming: Incoming) -> Outgoing:
        """Answer a request about an earlier response of OpenAI's: from the log, or by the provider that holds it."""
        if not is_about_response(incoming):
            return await self.relay(RESPONSES, incoming)
        try:
            answer = await self._own_response(incoming)
        except InvalidQuery as error:
            return make_refusal(RESPONSES, 400, "", str(error))
        except StoreError as error:
            return make_refusal(RESPONSES, 503, "", f"The response cannot be read: {error}")
        holder = await self._state_holder(incoming)
        if holder is None:
            missing = f"Response with id '{response_path(incoming)[0]}' not found."
            return answer or make_refusal(RESPONSES, 404, "", missing)
        if answer is None:
            return await self.relay(RESPONSES, incoming)
        if incoming.method == "DELETE":
            with suppress(aiohttp.ClientError):  # it is gone here, and the provider forgets it in time
                response = await self._connections.send(holder, RESPONSES.name, incoming, b"")
                response.close()
        return answer

    async def relay(self, dialect: Dialect, incoming: Incoming) -> Outgoing:
        """Pass any other request on, and its answer back, unread."""
        own = [dialect.name]
        if dialect is COMPLETIONS and not incoming.path.startswith("/v1/chat/"):
            own.append(RESPONSES.name)  # of OpenAI's two, either has its models
        try:
            upstream, model = await self._find_upstream(own, _model_in(incoming), incoming)
            asked = _rename_model(incoming, model)
            payer = None
            if incoming.method == "POST":
                payer = find_payer(incoming, self.options.settings, upstream.name, model)
            if payer is not None and (refusal := await self._check_budget(dialect, incoming, payer, is_read=False)):
                return refusal
            if is_account_shared(incoming, upstream) and not is_stateless(incoming):
                return _refuse_stored(dialect, incoming)
            is_upload = asked.upload is not None
            response = await self._connections.send(upstream, dialect.name, asked, asked.body, is_patient=is_upload)
            if payer is not None and response.is_success:
                return await self._relay_paid(response, payer, asked)
        except NoUpstream as error:
            return make_refusal(dialect, error.status, "", str(error))
        except aiohttp.ClientError as error:
            return _unreachable(dialect, upstream, error)
        return Outgoing(response.status, for_client(response.headers), stream=response.pieces())

    async def _relay_paid(self, response: UpstreamResponse, payer: CallPayer, asked: Incoming) -> Outgoing:
        """Pass an answer back whose usage the payer is charged. Raises aiohttp.ClientError."""
        headers, said = for_client(response.headers), b""
        if "json" not in (response.header("content-type") or ""):
            await payer.note_body(self._shared.store, asked, said)
            return Outgoing(response.status, headers, stream=response.pieces())
        body = await response.read(self.options.reply_limit)
        said = Decoder(response.header("content-encoding"), self.options.reply_limit)(body)
        await payer.note_body(self._shared.store, asked, said)
        return Outgoing(response.status, headers, body)

    async def _check_budget(
        self, dialect: Dialect, incoming: Incoming, payer: CallPayer, *, is_read: bool
    ) -> Outgoing | None:
        """Return the refusal of a call that a budget does not allow; None: it may be made. Raises StoreError."""
        try:
            if await payer.expect_budget(self._shared.store, incoming, is_read=is_read):
                return None
            said = "There is a budget, and no reply says what this request costs. Ask an administrator."
            return make_refusal(dialect, 403, "not_countable", said)
        except BudgetSpent as error:
            answer = make_refusal(dialect, 429, error.code, str(error))
            answer.headers.append((b"retry-after", str(error.seconds).encode()))
            return answer
        except (NotGranted, PriceMissing) as error:
            return make_refusal(dialect, 403, error.code, str(error))

    async def _own_response(self, incoming: Incoming) -> Outgoing | None:
        """Answer the owner of a response, or the first client that asks, if it has no owner yet."""
        owner, user = await self._owners.find(incoming.credential), self._user_of(incoming)
        answer = await self._stored.answer(incoming, user, owner)
        if answer is not None:
            return answer
        if await self._owners.adopt_response(RESPONSES.name, response_path(incoming)[0], owner, user):
            return await self._stored.answer(incoming, user, owner)
        return None

    def _user_of(self, incoming: Incoming) -> str:
        """Return whose conversations a request is about."""
        return incoming.principal.user if incoming.principal is not None else self.options.user

    async def _find_upstream(self, dialects: Sequence[str], model: str, incoming: Incoming) -> tuple[Upstream, str]:
        """Return the upstream for a caller's request, and the model's name there. Raises NoUpstream: there is none, or
        it was not granted to the caller. Raises StoreError."""
        principal = incoming.principal
        if principal is None:
            return await self._routes.find(dialects, model)
        rights = await self._grants.of(principal)
        permitted = permit_routes(await self._routes.present(), rights, dialects, model)
        upstream, name = permitted.find(dialects, model)
        expect_model(rights, model, name, f"{upstream.name}:{name}")
        return upstream, name

    async def _state_holder(self, incoming: Incoming) -> Upstream | None:
        """Return the upstream that holds stored responses, if the caller can ask it."""
        try:
            upstream, _ = await self._find_upstream([RESPONSES.name], "", incoming)
        except NoUpstream:
            return None
        return upstream if upstream.holds_state else None

    def _keeps(self, asked: Asked, incoming: Incoming) -> bool:
        if self.options.keep == "nothing" or incoming.header("x-longthread-keep") == "nothing":
            return False
        return self.options.keep == "all" or asked.value("store") is not False


_NOT_SHARED = (
    "All users of this gateway share one account at this provider, so nothing that is stored there can be named, read "
    "or changed."
)


def _refuse_stored(dialect: Dialect, incoming: Incoming) -> Outgoing:
    """Return the refusal of a request about what a provider stores for all users."""
    if is_unreadable(incoming):
        return make_refusal(dialect, 400, "", "The request cannot be read.")
    return make_refusal(dialect, 404, "", _NOT_SHARED)


def no_websockets() -> Outgoing:
    """Return the refusal of an upgrade, after which clients post."""
    return make_refusal(RESPONSES, 426, "", "Responses over a websocket are not supported. Use POST.")


def too_large(dialect: Dialect, limit: int = BODY_LIMIT) -> Outgoing:
    return make_refusal(dialect, 413, "", f"A request has at most {limit // 1024 // 1024} MB.")


def make_refusal(dialect: Dialect, status: int, code: str, message: str, *, is_passing: bool | None = None) -> Outgoing:
    """Return an error of the gateway's own. Clients repeat what may help, and nothing else: if the error `is_passing`,
    by default the ones from 500 on."""
    repeats = b"true" if (status >= 500 if is_passing is None else is_passing) else b"false"
    return Outgoing(status, [_JSON, (b"x-should-retry", repeats)], dialect.error(status, code, message))


def _unreachable(dialect: Dialect, upstream: Upstream, error: aiohttp.ClientError) -> Outgoing:
    status = 504 if isinstance(error, TimeoutError) else 502
    said = str(error) or type(error).__name__
    return make_refusal(dialect, status, "", f"The upstream {upstream.name} cannot be reached: {said}")


def _model_in(incoming: Incoming) -> str:
    """Return the model that a request names, in its path or in its body, or an empty text."""
    if incoming.path.startswith(_MODELS):
        return incoming.path.removeprefix(_MODELS)
    try:
        return str(json.loads(incoming.body).get("model") or "")
    except (ValueError, AttributeError, RecursionError):
        return ""


def _rename_model(incoming: Incoming, model: str) -> Incoming:
    """Return a request about one model with the upstream's name for it."""
    if not incoming.path.startswith(_MODELS):
        return incoming
    return replace(incoming, path=_MODELS + quote(model, safe="/:@"))

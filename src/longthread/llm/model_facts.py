"""What is known of a model: whether it answers, its context window, and the protocol that it speaks best.

A window comes from settings, servers and profiles, or as an endpoint reports it. A probe asks at most four tiny
questions to choose between a model's own tool calls, SQL, and JSON.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from longthread.errors import ModelNotUsable, StoreError
from longthread.llm.chat import CallOptions, ChatModel, ToolSpec, reply_of
from longthread.llm.failures import ProviderError, overflow_of
from longthread.llm.json_protocol import cut_off
from longthread.llm.models import RunModels, context_window, failure_reason, refuses_tools, supports_tools
from longthread.llm.providers import bare_name, is_near
from longthread.llm.sql_protocol import WRITING, find_statement
from longthread.messages.message import Message
from longthread.model.run import ProbedProtocol, Protocol
from longthread.settings import Settings
from longthread.store import endpoints
from longthread.store.driver import Driver
from longthread.store.endpoints import AssumedWindow

if TYPE_CHECKING:
    from longthread.llm.server_facts import ServerWindow

WindowOrigin = Literal["server", "known", "measured", "setting", "assumed"]
"""Its server gave the window, it is known by the model's name, a refused call gave it, it is set, or unknown."""
_READ_AGAIN = 3600.0
"""How often a process reads the learned windows again, in seconds."""
_ASK_AGAIN = 300.0
"""How often a process asks a server again, in seconds: it may be restarted with another window."""

_logger = logging.getLogger(__name__)


class ContextWindows:
    """The windows of the models of one process. What an endpoint reports is stored for all processes."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._learned: dict[AssumedWindow, tuple[int | None, float]] = {}
        self._probed: dict[tuple[str, str], tuple[Protocol | None, float]] = {}
        self._unclear: set[tuple[str, str]] = set()
        self._told: dict[tuple[str, str], tuple[ServerWindow | None, float]] = {}

    async def of(self, *models: ChatModel) -> int:
        """Return the tokens that fit into one call of any of these models. Raises StoreError: learned windows cannot
        be read."""
        return min([await self._of(model) for model in models])

    async def _of(self, model: ChatModel) -> int:
        assumed = await self._assume_window(model)
        known, read_at = self._learned.get(assumed, (None, -inf))
        if time.monotonic() - read_at > _READ_AGAIN:
            async with self._store.reading() as tx:
                known = await endpoints.find_window(tx, assumed)
            self._learned[assumed] = known, time.monotonic()
        return self._cap_tokens(known or assumed.tokens)

    async def protocol_of(self, model: ChatModel) -> Protocol | None:
        """Return the protocol that a probe found for a model; None: it was not probed. Raises StoreError."""
        key = model.address, model.name
        found, read_at = self._probed.get(key, (None, -inf))
        if time.monotonic() - read_at > _ASK_AGAIN:
            async with self._store.reading() as tx:
                found = await endpoints.find_protocol(tx, model.name, model.address)
            self._probed[key] = found, time.monotonic()
        return found

    def known_protocol_of(self, model: ChatModel) -> Protocol | None:
        """Return the protocol of a model that this process has read, found out or prefers."""
        return self._probed.get((model.address, model.name), (None, -inf))[0]

    async def probe_own(self, model: ChatModel) -> Protocol | None:
        """Ask a model of a server of one's own how it speaks best, and store it. None: its server is another, or it
        cannot be asked, or is known. Raises StoreError."""
        key = model.address, model.name
        told = self._told.get(key, (None, -inf))[0]
        if told is None or not told.server or not is_near(model.address) or key in self._unclear:
            return None
        if await self.protocol_of(model) is not None:
            return None

        try:
            protocol = await probe_protocol(model)
            if protocol is not None:
                async with self._store.writing() as tx:
                    await endpoints.save_protocol(tx, model.name, model.address, protocol)
        except (ProviderError, StoreError) as error:
            _logger.warning(
                "How %s speaks could not be found out: %s. It is asked with tool calls; --protocol chooses.",
                model.name,
                error,
            )
            protocol = None
        if protocol is None:
            self._unclear.add(key)
        else:
            self._probed[key] = protocol, time.monotonic()
        return protocol

    def prefer(self, model: ChatModel, protocol: Protocol) -> None:
        """Speak so with a model for an hour, in this process: its replies were not what another protocol wants."""
        self._probed[model.address, model.name] = protocol, time.monotonic() + _READ_AGAIN

    async def learn(self, model: ChatModel, tokens: int) -> None:
        """Store the window that a model's endpoint reports. If that fails, this process still knows it."""
        await self._learn(await self._assume_window(model), tokens)

    async def find_out(self, model: ChatModel) -> tuple[int, WindowOrigin]:
        """Return the window of a model that has just answered, and how it is known. One that neither its server nor its
        name tells is measured. Raises StoreError."""
        self._told.pop((model.address, model.name), None)
        tokens, assumed = await self._of(model), await self._assume_window(model)
        if self._told.get((model.address, model.name), (None, -inf))[0] is not None:
            return tokens, "server"
        is_learned = self._learned.get(assumed, (None, -inf))[0] is not None
        if not is_learned and (self._settings.memory_context_window or model.window is not None):
            return tokens, "setting" if self._settings.memory_context_window else "known"

        # Also if it was learned: the server may have been started again with another window.
        measured = await measure_window(model)
        if measured is None:
            return tokens, "measured" if is_learned else "assumed"
        await self._learn(assumed, measured)
        return measured, "measured"

    async def settle(self, model: ChatModel, tokens: int) -> int:
        """Return the window of a model that has just answered, in place of `tokens`, if its server could not tell it
        before: the model is in memory now. It is stored for the next time that it is not."""
        before = self._told.get((model.address, model.name), (None, -inf))[0]
        if before is None or before.is_loaded:
            return tokens
        assumed = await self._assume_window(model)
        del self._told[model.address, model.name]
        now = await self._ask(model)
        if now is None or not now.is_loaded:
            return tokens
        if now.tokens != before.tokens:
            await self._learn(assumed, now.tokens)
        return await self._of(model)

    def server_of(self, name: str) -> str:
        """Return the kind of the server that gave the window of a model of this name; empty if none did."""
        names = {name, bare_name(name)}
        return next((told.server for (_, each), (told, _) in self._told.items() if told and each in names), "")

    async def _learn(self, assumed: AssumedWindow, tokens: int) -> None:
        self._learned[assumed] = tokens, time.monotonic()
        try:
            async with self._store.writing() as tx:
                await endpoints.save_window(tx, assumed, tokens)
        except StoreError as error:
            _logger.warning("The context window of %s could not be stored: %s", assumed.model, error)

    async def _assume_window(self, model: ChatModel) -> AssumedWindow:
        """Return what is assumed of a model's window before its endpoint has refused a call."""
        tokens, told = context_window(model, self._settings), await self._ask(model)
        return AssumedWindow(model.name, model.address, tokens if told is None else self._cap_tokens(told.tokens))

    def _cap_tokens(self, tokens: int) -> int:
        """Return so many tokens, at most MEMORY_CONTEXT_WINDOW."""
        return min(tokens, self._settings.memory_context_window or tokens)

    async def _ask(self, model: ChatModel) -> ServerWindow | None:
        """Ask a model's server for the window, where that may be other than what its name says."""
        if not urlsplit(model.address).hostname or (model.window is not None and not is_near(model.address)):
            return None
        key = model.address, model.name
        told, asked_at = self._told.get(key, (None, -inf))
        if time.monotonic() - asked_at > _ASK_AGAIN:
            from longthread.llm.server_facts import ask_server  # it loads httpx

            facts = await ask_server(model)
            told = facts.window if facts is not None else None
            self._told[key] = told, time.monotonic()
        return told


_QUESTION = Message("user", "Reply with the word: ready")
_TOKENS = 64
"""Of the reply: also a model that thinks has begun by then."""
_TOO_MANY = 100_000_000
"""More tokens than a window has."""


async def check_model(models: RunModels, windows: ContextWindows) -> tuple[int, WindowOrigin]:
    """Ask a model a tiny question; return its window in tokens, and how that is known. Raises StoreError, and
    ModelNotUsable with what its provider says."""
    try:
        await reply_of(models.model, [_QUESTION], options=CallOptions(max_tokens=_TOKENS))
    except ProviderError as error:
        raise ModelNotUsable(model=models.name, reason=failure_reason(error, models.settings)) from error
    return await windows.find_out(models.model)


async def measure_window(model: ChatModel) -> int | None:
    """Return the window in tokens that a server names when it refuses a call, for a reply that no window holds; None:
    it names none. A server that answers instead is stopped at its first word."""
    try:
        async with aclosing(model.stream([_QUESTION], options=CallOptions(max_tokens=_TOO_MANY))) as chunks:
            async for _ in chunks:
                break
    except ProviderError as error:
        overflow = overflow_of(error)
        return overflow.limit if overflow is not None else None
    return None


_SCHEMA = "CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, amount REAL);"
_QUESTIONS = ("How many orders are there?", "What is the total amount of each city?")
_TOOLS = f"You answer questions about a SQLite database with its tools.\n\nSchema:\n{_SCHEMA}"
_SQL = f"{WRITING.format(dialect='SQLite')}\n\nSchema:\n{_SCHEMA}"
_SQL_ARGUMENT = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}


@dataclass(frozen=True, slots=True)
class _RunSql:
    name: str = "run_sql"
    description: str = "Runs one read-only SELECT and returns its rows."
    parameters: Mapping[str, Any] = field(default_factory=lambda: _SQL_ARGUMENT)


_OPTIONS = CallOptions(max_tokens=200)


async def probe_protocol(model: ChatModel) -> ProbedProtocol | None:
    """Return the protocol in which a model answers two questions: the first of native, sql and json that works. None: a
    reply reached the limit of the probe, as of a model that thinks for long. Raises ProviderError: the model cannot be
    asked."""
    if supports_tools(model) and (calls := await _calls_tools(model)) is not False:
        return "native" if calls else None
    replies = [await _ask(model, _SQL, question) for question in _QUESTIONS]
    if all(find_statement(str(reply.text)) for reply in replies):
        return "sql"
    return None if any(map(cut_off, replies)) else "json"


async def _calls_tools(model: ChatModel) -> bool | None:
    """Return whether a model calls a tool for each question; None: a reply was cut off before it was clear."""
    for question in _QUESTIONS:
        try:
            reply = await _ask(model, _TOOLS, question, [_RunSql()])
        except ProviderError as error:
            if refuses_tools(error):
                return False
            raise
        written = [str(call["args"].get("sql")) for call in reply.tool_calls if call["name"] == "run_sql"]
        if not any(map(find_statement, written)):
            return None if cut_off(reply) else False
    return True


async def _ask(model: ChatModel, system: str, question: str, tools: Sequence[ToolSpec] = ()) -> Message:
    return await reply_of(model, [Message("system", system), Message("user", question)], tools, _OPTIONS)

"""The long-term memory of a LangGraph thread: its options, its summary, and the background passes that write it.

The options are arguments, and nothing of the environment or a file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from longthread.errors import EntryNotFound, LongthreadError, StoreClosed, ThreadNotFound
from longthread.langgraph.backend import Backend
from longthread.langgraph.saver.inflight import NEXT_SECONDS
from longthread.llm.embedders import embedder_of
from longthread.llm.failures import asked_in_room
from longthread.memory.pruner import Pruner
from longthread.memory.recall import Recaller
from longthread.memory.summary.pruning import PruningPolicy
from longthread.memory.summary.summaries import replaced_since
from longthread.model.run import Segment
from longthread.model.thread import Scope, Thread
from longthread.settings import Settings
from longthread.store import log, summaries
from longthread.store.driver import Transaction
from longthread.store.summaries import ThreadSummary

_LOOP_SECONDS = 0.5
"""How often it is looked whether the loop on which the model was asked is still there."""
_STORED_SECONDS = 1.0
"""How long it is waited for the put of a message that a run has just made."""

_ROUNDS = 4
"""Passes that are waited for: those under way may have begun when the state was much shorter. Each step of a long turn
begins one."""

_logger = logging.getLogger(__name__)


class ModelWriter:
    """Writes texts with a chat model of the application's.

    The model's connections belong to the loop that used them first, so it is called there. When that loop has ended
    or is ending, as with one `asyncio.run` for each turn, it is called on a thread without one.
    """

    def __init__(
        self,
        model: BaseChatModel,
        loop: asyncio.AbstractEventLoop | None,
        *,
        on_reply: Callable[[BaseMessage], None] | None = None,
    ) -> None:
        self.name = model._llm_type
        self.topics_only = False
        self._model = model
        self._loop = loop
        self._on_reply = on_reply

    async def write(self, instructions: str, text: str) -> str:
        """Return the model's reply to instructions and text, cut to what its window holds."""
        return await asked_in_room(
            lambda shown: self._ask_model([SystemMessage(instructions), HumanMessage(shown)]), text
        )

    async def _ask_model(self, messages: list[BaseMessage]) -> str:
        reply: BaseMessage | None = None
        if self._loop is None or self._loop is asyncio.get_running_loop():
            reply = await self._model.ainvoke(messages)
        elif self._loop.is_running():
            reply = await self._asked_on(self._loop, messages)
        if reply is None:
            reply = await asyncio.to_thread(self._model.invoke, messages)
        if self._on_reply is not None:
            self._on_reply(reply)
        return str(reply.text)

    async def _asked_on(self, loop: asyncio.AbstractEventLoop, messages: list[BaseMessage]) -> BaseMessage | None:
        """Return the model's reply; None when the loop ends first."""
        coroutine = self._model.ainvoke(messages)
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:  # it was closed in between
            coroutine.close()
            return None
        waiting = asyncio.wrap_future(future)
        try:
            # A loop that stops does not report work that it never began.
            while not (await asyncio.wait({waiting}, timeout=_LOOP_SECONDS))[0]:
                if not loop.is_running():
                    break
        finally:
            if not waiting.done():
                waiting.cancel()
        if not waiting.done() or waiting.cancelled():
            if loop.is_closed():
                coroutine.close()
            return None
        if waiting.exception() is not None and _is_ending(loop):
            return None
        return waiting.result()


def _is_ending(loop: asyncio.AbstractEventLoop) -> bool:
    """Tell whether a loop that may still run has shut down its threads, so that a model may fail on it."""
    try:
        loop.run_in_executor(None, bool)  # it does nothing
    except RuntimeError:
        return True
    return False


@dataclass(frozen=True, slots=True)
class StateSummary:
    """The summary that is valid for a state, and how many of its oldest messages it covers.
    `stale`: a summary exists, of another branch. `missing`: the log has no such thread. `size`: its number of entries.
    `replaced`: a message that the state's own summary tells of has other words since."""

    kept: ThreadSummary | None = None
    covered: int = 0
    stale: bool = False
    missing: bool = False
    size: int = 0
    replaced: bool = False


class LongTermMemory:
    """The long-term memory of one user's threads. Its methods run on the store's event loop."""

    def __init__(self, backing: Backend, settings: Settings) -> None:
        self.backing = backing
        self.recaller = Recaller(backing.store, embedder_of(settings))
        self.pruner = Pruner(backing.store, PruningPolicy.of(settings), self.recaller)
        backing.home.at_close(self.pruner.close)
        backing.home.at_close(self.recaller.close)

    async def find(self, thread_id: str, ids: Sequence[str], own: Mapping[str, Any] | None = None) -> StateSummary:
        """Return the summary for a state with these message ids, oldest first; a fork may not know what it covers.
        `own` is the summary that the state itself has."""
        async with self.backing.store.reading() as tx:
            try:
                thread = await log.find_thread(tx, thread_id, user_id=self.backing.user_id)
            except ThreadNotFound:
                return StateSummary(missing=True)
            found = await _valid(tx, thread, ids)
            mark, size = (own.get("mark", 0), own.get("size", 0)) if own else (0, 0)
            replaced = bool(mark) and await replaced_since(tx, thread_id, size, mark=mark)
            return replace(found, size=thread.entry_count, replaced=replaced)

    async def keep_up(
        self,
        thread_id: str,
        *,
        count: int,
        hidden: int,
        first_shown: str | None,
        last: str | None,
        found: StateSummary,
        model: BaseChatModel,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """Index and prune a thread in the background, where due.

        Args:
            count: the messages of its state.
            hidden: how many of the oldest the last view had no room for.
            first_shown: the id of the first that it showed.
            last: the id of the newest, which the run is about to store.
            model: writes the summary, called on `loop` where that is given.
        """
        scope = Scope(self.backing.user_id, thread_id)
        try:
            await self._wait_until_stored(thread_id, last)
            # Without a summary, nothing describes the messages before the state's first one.
            seen = hidden or found.kept is None
            view = await self._view(thread_id, first_shown, found.kept) if seen else []
            self.pruner.keep_up(
                scope, count=count, view=view, kept=found.kept, stale=found.stale, summarizer=ModelWriter(model, loop)
            )
            await self.pruner.settle(thread_id)
            await self.recaller.prepare(scope)
        except StoreClosed:
            return  # the program has ended; the next one makes up for it
        except LongthreadError as error:
            _logger.warning("The memory of thread %s is behind, and will be made up for: %s", thread_id, error)

    async def catch_up(
        self,
        thread_id: str,
        *,
        ids: Sequence[str],
        last: str | None,
        most: int,
        seconds: float,
        found: StateSummary,
        model: BaseChatModel,
        loop: asyncio.AbstractEventLoop | None,
    ) -> StateSummary:
        """Wait at most `seconds` until the summary covers all but `most` of these messages, oldest first; return it.

        A running pass is awaited; without one, one starts. After the timeout it continues in the background. `last` is
        a message that is being stored: LangGraph runs ahead of its checkpoints.
        """
        try:
            async with asyncio.timeout(seconds):
                await self._wait_until_stored(thread_id, last)
                for _ in range(_ROUNDS):
                    await self._kept_up(thread_id, ids, found=found, model=model, loop=loop)
                    found = replace(await self.find(thread_id, ids), replaced=found.replaced)
                    if len(ids) - found.covered <= most:
                        return found
        except TimeoutError:
            pass
        _logger.warning(
            "Thread %s has %d messages that are not summarised yet, and waiting for that, at most %g s, did not help: "
            "the turn goes on with a long state.",
            thread_id,
            len(ids) - found.covered,
            seconds,
        )
        return found

    async def _kept_up(
        self,
        thread_id: str,
        ids: Sequence[str],
        *,
        found: StateSummary,
        model: BaseChatModel,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """Prune a thread in the background and wait for it. Cancelling the wait does not stop the pass."""
        done = asyncio.Event()
        count = len(ids) - found.covered

        async def work() -> None:
            try:
                await self.keep_up(
                    thread_id, count=count, hidden=0, first_shown=None, last=None, found=found, model=model, loop=loop
                )
            finally:
                done.set()

        if self.backing.home.start(work):
            await done.wait()

    async def _wait_until_stored(self, thread_id: str, last: str | None) -> None:
        """Wait until a message that a run has made is in the log. Its put goes on, or begins next. If that put and the
        ones directly after it do not bring the message, the next pass handles it."""
        puts, place = self.backing.puts, (thread_id, "")
        now, first = asyncio.get_running_loop().time, puts.last(place)
        until = now() + _STORED_SECONDS
        with puts.watch(place) as ended:
            while last and not await self._is_there(thread_id, last):
                put, left = puts.last(place), until - now()
                has_begun = put is not first
                if left <= 0 or (has_begun and put is not None and not put.is_near):
                    return
                is_over = has_begun and put is not None and put.ended.done()
                if not await self.backing.home.pause(NEXT_SECONDS if is_over else left, ended):
                    return
                ended.clear()

    async def _is_there(self, thread_id: str, message_id: str) -> bool:
        async with self.backing.store.reading() as tx:
            return await _entry(tx, thread_id, message_id) is not None

    async def _view(self, thread_id: str, first_shown: str | None, kept: ThreadSummary | None) -> list[Segment]:
        async with self.backing.store.reading() as tx:
            first = await _entry(tx, thread_id, first_shown) if first_shown else None
        mark = kept.last_seq if kept else 0
        if first is None or first <= mark + 1:
            return []
        return [Segment(mark + 1, first - 1, "left out", why="budget"), Segment(first, first, "whole")]


async def _entry(tx: Transaction, thread_id: str, message_id: str) -> int | None:
    try:
        return (await log.find_entry(tx, thread_id, message_id)).seq
    except EntryNotFound:
        return None


async def _valid(tx: Transaction, thread: Thread, ids: Sequence[str]) -> StateSummary:
    kept = await summaries.find(tx, thread.id)
    if kept is None or not ids:
        return StateSummary()
    mark = (await log.entries_at(tx, thread.id, {kept.last_seq})).get(kept.last_seq)
    if mark is not None and (name := log.sent_id(mark)) in ids:
        return StateSummary(kept, ids.index(name) + 1)
    return await _before_mark(tx, thread.id, ids, kept, thread.first_seq)


async def _before_mark(
    tx: Transaction, thread_id: str, ids: Sequence[str], kept: ThreadSummary, first_seq: int
) -> StateSummary:
    """Return the summary for a state that does not hold the last message that it covers.

    The question that a long turn works on stays in the state, although its summary covers it.
    """
    seqs = [await _entry(tx, thread_id, each) for each in ids[:2]]
    if seqs[0] is None and len(seqs) == 1:
        return StateSummary()
    at = next((place for place, seq in enumerate(seqs) if seq is not None and seq > kept.last_seq), None)
    if at is None:
        return StateSummary(stale=True) if None not in seqs else StateSummary()
    tip, first = seqs[at], seqs[0]
    assert tip is not None
    if not await summaries.is_behind(tx, thread_id, mark=kept.last_seq, tip=tip, first_seq=first_seq):
        return StateSummary(stale=True)
    return StateSummary(kept, at if first is not None else 0)


NO_TEXT = (
    "The saver stores messages through a serializer of the application's own, and no text of them in plain: nothing is "
    "summarised or found by words. Open it with index_text=True if their texts may stand in the store."
)


class RecallOptions(TypedDict, total=False):
    """The options of recall. Their names are those of the settings, without `memory_`."""

    recall_top_k: int
    embedding_model: str
    embedding_base_url: str
    embedding_api_key: str


class MemoryOptions(RecallOptions, total=False):
    """The options of an agent's memory. Their names are those of the settings, without `memory_`."""

    context_window: int
    full_recent_count: int
    condensed_tool_max: int
    compress_max_length: int
    max_messages_per_thread: int
    enable_summary: bool
    summary_threshold: int
    max_summary_tokens: int
    max_tokens: int


_FIELDS = {
    **{name: f"memory_{name}" for name in MemoryOptions.__optional_keys__},
    "compress_max_length": "message_compress_max_length",
    "max_tokens": "max_tokens",
}
"""The setting of each option."""


def settings_of(whose: str, settings: Settings | None, options: Mapping[str, Any]) -> Settings:
    """Return `settings`, or the defaults, with what the options say. A setting's own name is an option too.

    Raises:
        InvalidInput: an option has a bad value.
        TypeError: there is no such option.
    """
    given = {_FIELDS.get(name, name): value for name, value in options.items() if value is not None}
    unknown = [name for name in options if _FIELDS.get(name, name) not in Settings.model_fields]
    if unknown:
        raise TypeError(
            f"{whose} has no argument {', '.join(map(repr, unknown))}. It has: {', '.join(sorted(_FIELDS))}."
        )
    checked = Settings.of(**given)
    if settings is None:
        return checked
    return settings.model_copy(update={name: getattr(checked, name) for name in given})

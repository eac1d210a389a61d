"""Takes facts from conversations into memories, in the background. See docs/how-to/langgraph.md#facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from longthread.errors import InvalidInput, LongthreadError, MemoryNotFound, SaverClosed, StoreClosed, ThreadNotFound
from longthread.langgraph.backend import Backend, BackendUser, backend_in, expect_backed
from longthread.langgraph.memory.extracted import INSTRUCTIONS, Extracted, ExtractedMemory, read, write_prompt
from longthread.langgraph.memory.long_term import NO_TEXT, ModelWriter
from longthread.loop_bridge import Portal
from longthread.memory.user_memories import Memories, replace_memory
from longthread.model.entry import Entry
from longthread.model.memory import ANALYST, Memory, MemorySource, Statement
from longthread.store import attributes, log, memories
from longthread.store.driver import Transaction
from longthread.store.memories import Owner

MARK = "memories_until"
"""The key in a thread's metadata of the last entry that was read, in the order in which they were written."""
ENTRIES = 60
"""So many messages are read with one call."""
_MOST_ENTRIES = 2000
"""So far back entries are looked at."""
_logger = logging.getLogger(__name__)
_Key = tuple[str, str]
_KNOWN = 20
"""Known memories that a call is shown: the most important, and as many that fit the messages."""
_QUESTION = 2000
"""Characters of the messages by which known memories are found."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Messages to read, in their places and present versions, and the last entry of the log that is read with them."""

    entries: Sequence[Entry]
    mark: int


async def unread(tx: Transaction, thread_id: str, *, user_id: str) -> Unread | None:
    """Return the active branch's next messages of the user or the model that were written or changed after the mark.

    None: nothing was written since. Its `mark` is always above the thread's. Raises `ThreadNotFound`.
    """
    thread = await log.find_thread(tx, thread_id, user_id=user_id)
    mark, last = int(thread.metadata.get(MARK, 0)), thread.entry_count
    if last <= mark or not thread.tip:
        return None
    written = await log.entries_between(tx, thread_id, max(mark, last - _MOST_ENTRIES) + 1, last)
    present = [each for each in _present(written, thread.tip) if each.role in ("user", "assistant")]
    said = [each for each in present if each.text.strip()]
    chosen = said[:ENTRIES]
    placed = [replace(each, seq=each.replaces or each.seq, replaces=0) for each in chosen]
    placed.sort(key=lambda each: each.seq)
    return Unread(placed, last if len(chosen) == len(said) else chosen[-1].seq)


def _present(written: Sequence[Entry], tip: int) -> list[Entry]:
    """Return the newest versions that the branch ending in `tip` has of its messages, in the order of writing."""
    there = {each.seq: each for each in written}
    newest: dict[int, Entry] = {}
    at = tip
    while entry := there.get(at):
        newest.setdefault(entry.replaces or entry.seq, entry)
        at = entry.parent_seq
    return sorted(newest.values(), key=lambda each: each.seq)


@dataclass(slots=True)
class _Submitted:
    """A thread that waits or is read. `is_due`: it is to be read, again if it is being read."""

    backing: Backend
    thread_id: str
    loop: Any = None
    is_due: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def set(self, loop: Any, *, is_due: bool) -> None:
        self.loop, self.is_due = loop, is_due
        self.changed.set()


class Submissions:
    """Reads each thread once it was quiet for some seconds, with one task for each. Used on the store's loop alone."""

    def __init__(
        self, seconds: float, read: Callable[[Backend, str, Any], Awaitable[Any]], *, at_end: Callable[[], Any]
    ) -> None:
        """`read` reads a thread, given the loop to ask the model on. `at_end` is called when the store is closed."""
        self._seconds = seconds
        self._read = read
        self._at_end = at_end
        self._threads: dict[_Key, _Submitted] = {}
        self._locks: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    def lock(self, user_id: str, thread_id: str) -> asyncio.Lock:
        """Return the lock of who reads a thread: what one call reads, another one need not."""
        return self._locks.setdefault((user_id, thread_id), asyncio.Lock())

    async def submit(self, backing: Backend, thread_id: str, loop: Any) -> None:
        """Read a thread once it is quiet from now on, and after it was read if it is being read."""
        there = self._threads.setdefault((backing.user_id, thread_id), _Submitted(backing, thread_id))
        there.set(loop, is_due=True)
        if there.task is None:
            self._begin(there)

    async def cancel(self, backing: Backend, thread_id: str) -> None:
        """Do not read a thread that waits. What is being read is read to its end."""
        there = self._threads.get((backing.user_id, thread_id))
        if there is not None:
            there.set(there.loop, is_due=False)

    async def settle(self) -> None:
        await asyncio.sleep(0)  # what has just been submitted begins
        while tasks := {each.task for each in self._threads.values() if each.task is not None}:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)

    async def close(self) -> None:
        self._at_end()
        tasks = [each.task for each in self._threads.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, there: _Submitted) -> None:
        there.task = asyncio.get_running_loop().create_task(self._quiet(there))
        there.task.add_done_callback(lambda task: self._done(there, task))

    async def _quiet(self, there: _Submitted) -> None:
        while there.is_due:
            there.changed.clear()
            if not await there.backing.home.pause(self._seconds, until=there.changed):
                there.is_due = False  # the store is being closed
            elif not there.changed.is_set():
                there.is_due = False
                await self._read(there.backing, there.thread_id, there.loop)

    def _done(self, there: _Submitted, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreClosed | ThreadNotFound):
            _logger.warning(
                "No memories could be taken from thread %s; it is tried again after its next turn: %s",
                there.thread_id,
                error,
                exc_info=None if isinstance(error, LongthreadError) else error,
            )
        if there.is_due and not task.cancelled():
            self._begin(there)
        else:
            del self._threads[there.backing.user_id, there.thread_id]


@dataclass(slots=True)
class ExtractionUsage:
    """What extraction has cost so far, as the model's provider counted."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, reply: BaseMessage) -> None:
        usage = reply.usage_metadata if isinstance(reply, AIMessage) else None
        self.calls += 1
        self.input_tokens += usage["input_tokens"] if usage else 0
        self.output_tokens += usage["output_tokens"] if usage else 0


class MemoryExtractor:
    """Takes what will matter later from a user's conversations into the user's memories, with a model.

    ```
    extractor = MemoryExtractor(init_chat_model("…"), after_seconds=30)
    agent = create_agent(model, checkpointer=saver, middleware=[MemoryMiddleware(saver, extractor=extractor)])
    ```

    With `MemoryMiddleware` or `memory_node`, a thread is read when it has been quiet for some seconds after a turn, in
    the background; a turn that begins meanwhile puts that off. What was read is noted in the thread, so nothing is read
    twice. Without them, call `extract` or `submit`.
    """

    def __init__(
        self,
        model: BaseChatModel,
        saver: BackendUser | None = None,
        *,
        after_seconds: float = 30.0,
        agent_id: str = ANALYST,
        instructions: str = INSTRUCTIONS,
    ) -> None:
        """Configure it; InvalidInput for an argument of another type.

        Args:
            model: reads the messages.
            saver: the default saver of `extract`, `submit` and `search`: its threads and memories are meant. In the
                background, the thread of a run is read through the saver of the run.
            after_seconds: how long a thread is quiet before it is read.
            agent_id: the agent whose memories these become.
            instructions: the prompt for the model. It must write the same JSON.
        """
        given: Any = model  # not every program is type-checked
        if not isinstance(given, BaseChatModel):
            raise InvalidInput(
                reason=f"The model of MemoryExtractor is of type {type(given).__name__}: give a chat model."
            )
        seconds: Any = after_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise InvalidInput(reason=f"after_seconds is {after_seconds!r}; give a number of seconds from 0 on.")
        if saver is not None:
            expect_backed(saver, "MemoryExtractor")
        self.usage = ExtractionUsage()
        self._model = model
        self._backing = backend_in(saver)
        self._seconds = after_seconds
        self._agent_id = agent_id
        self._instructions = instructions
        self._submissions: dict[Portal, Submissions] = {}

    def extract(self, thread_id: str, *, saver: BackendUser | None = None) -> list[Memory]:
        """Read what is new in a thread now; return the memories that were stored. `saver`: see `search`.

        Raises:
            InvalidInput: no saver is known, or it stores no texts in plain.
            ThreadNotFound: there is no such thread.
            ReplyUnreadable: the model did not write the JSON that it was asked for. Nothing was stored, and you may
                retry.
        """
        backing = _with_text(self._choose_backend(saver))
        return backing.home.call("extract", self._extract, backing, thread_id, None)

    async def aextract(self, thread_id: str, *, saver: BackendUser | None = None) -> list[Memory]:
        backing = _with_text(self._choose_backend(saver))
        return await backing.home.run(self._extract, backing, thread_id, asyncio.get_running_loop())

    def submit(
        self, thread_id: str, *, saver: BackendUser | None = None, backing: Backend | None = None, loop: Any = None
    ) -> None:
        """Read a thread in the background once it is quiet. It replaces what was submitted of the thread before.

        Args:
            thread_id: the thread.
            saver: see `search`.
            backing: the open store of a run, where one submits it.
            loop: the event loop on which the model is asked; None: a thread without one.

        Raises:
            InvalidInput: no saver is known, or it stores no texts in plain.
            SaverClosed: the saver was closed.
        """
        found = _with_text(backing or self._choose_backend(saver))
        if backing is None:
            found.home.require_open()
        if not found.home.start(self._submissions_of(found).submit, found, thread_id, loop):
            self._submissions.pop(found.home, None)

    def cancel(self, thread_id: str, *, saver: BackendUser | None = None, backing: Backend | None = None) -> None:
        """Do not read a thread that waits: it goes on. What is new in it is read after its next turn."""
        found = backing or self._choose_backend(saver)
        there = self._submissions.get(found.home)
        if there is not None:
            found.home.start(there.cancel, found, thread_id)

    def search(self, text: str, *, limit: int = 5, saver: BackendUser | None = None) -> list[Memory]:
        """Return the memories of the saver's user that fit a text, best first.

        `saver`: whose memories these are; None: those of the saver that the extractor was made with. An extractor that
        serves several users was made with none. InvalidInput if there is neither.
        """
        backing = self._choose_backend(saver)
        return backing.home.call("search", self._search, backing, text, limit)

    async def asearch(self, text: str, *, limit: int = 5, saver: BackendUser | None = None) -> list[Memory]:
        backing = self._choose_backend(saver)
        return await backing.home.run(self._search, backing, text, limit)

    def settle(self) -> None:
        """Wait for what was submitted, in all open stores, and its pauses."""
        for home, there in list(self._submissions.items()):
            with suppress(SaverClosed):  # nothing of it goes on any more
                home.call("settle", there.settle)

    async def asettle(self) -> None:
        for home, there in list(self._submissions.items()):
            with suppress(SaverClosed):
                await home.run(there.settle)

    def _choose_backend(self, saver: BackendUser | None) -> Backend:
        """Return whose threads and memories are meant. Never those of a run: it may be another user's."""
        if saver is not None:
            expect_backed(saver, "MemoryExtractor")
        found = backend_in(saver) or self._backing
        if found is None:
            raise InvalidInput(
                reason="This MemoryExtractor was made without a saver, so it does not know whose memories are meant. "
                "Give the user's saver: extractor.search(text, saver=saver), or MemoryExtractor(model, saver)."
            )
        return found

    def _submissions_of(self, backing: Backend) -> Submissions:
        home = backing.home
        made = Submissions(self._seconds, self._extract, at_end=partial(self._submissions.pop, home, None))
        found = self._submissions.setdefault(home, made)
        if found is made:
            home.at_close(made.close)
        return found

    async def _search(self, backing: Backend, text: str, limit: int) -> list[Memory]:
        found = await Memories(backing.store).search(self._owner(backing), text, k=limit)
        return [hit.memory for hit in found.hits]

    def _owner(self, backing: Backend) -> Owner:
        return Owner(backing.user_id, self._agent_id)

    async def _extract(self, backing: Backend, thread_id: str, loop: Any) -> list[Memory]:
        stored: list[Memory] = []
        async with self._submissions_of(backing).lock(backing.user_id, thread_id):
            while found := await self._unread(backing, thread_id):
                stored += await self._store(backing, thread_id, found, await self._read(backing, found.entries, loop))
        return stored

    async def _unread(self, backing: Backend, thread_id: str) -> Unread | None:
        async with backing.store.reading() as tx:
            return await unread(tx, thread_id, user_id=backing.user_id)

    async def _read(self, backing: Backend, said: Sequence[Entry], loop: Any) -> Extracted:
        if not any(each.role == "user" for each in said):
            return Extracted()
        known = await self._find_known(backing, said)
        writer = ModelWriter(self._model, loop, on_reply=self.usage.add)
        return read(await writer.write(self._instructions, write_prompt(said, known)), said, known)

    async def _find_known(self, backing: Backend, entries: Sequence[Entry]) -> list[Memory]:
        known, owner = Memories(backing.store), self._owner(backing)
        text = " ".join(each.text for each in entries if each.role == "user")[-_QUESTION:]
        top = await known.list_(owner, limit=_KNOWN)
        fitting = [hit.memory for hit in (await known.search(owner, text, k=_KNOWN)).hits]
        return list({each.id: each for each in (*fitting, *top)}.values())

    async def _store(self, backing: Backend, thread_id: str, done: Unread, found: Extracted) -> list[Memory]:
        """Store what was found, and note how far the thread was read; nothing if a message has changed meanwhile."""
        owner, stored = self._owner(backing), []
        async with backing.store.writing() as tx:
            await log.position(tx, thread_id)
            there = await unread(tx, thread_id, user_id=backing.user_id)
            if there is None:
                return []  # another process has read it
            texts = {each.seq: each.text for each in there.entries}
            if any(texts.get(each.seq) != each.text for each in done.entries):
                return []  # it is read again, as it is now
            for each in found.memories:
                stored.append(await _remember(tx, owner, thread_id, each))
            for memory_id in found.forget:
                await _forget(tx, owner, memory_id)
            await attributes.set_metadata(tx, thread_id, {MARK: done.mark}, user_id=backing.user_id)
        return stored


def _with_text(backing: Backend) -> Backend:
    if not backing.has_text:
        raise InvalidInput(reason=f"No memories can be taken from these threads. {NO_TEXT}")
    return backing


async def _remember(tx: Transaction, owner: Owner, thread_id: str, found: ExtractedMemory) -> Memory:
    source = MemorySource(thread_id, tuple(found.seqs))
    statement = Statement(found.content, found.type, found.importance, source=source)
    return await replace_memory(tx, owner, found.replaces, statement)


async def _forget(tx: Transaction, owner: Owner, memory_id: str) -> None:
    """Delete a memory that came from conversations. Memories that a person entered stay."""
    try:
        memory = await memories.find(tx, memory_id, user_id=owner.user_id, agent_id=owner.agent_id)
    except MemoryNotFound:
        return
    if not memory.is_entered:
        await memories.delete(tx, memory_id, user_id=owner.user_id)

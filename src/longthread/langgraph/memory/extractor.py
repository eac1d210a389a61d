"""Takes facts from conversations into memories, in the background. See docs/how-to/langgraph.md#facts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from longthread.errors import InvalidInput, LongthreadError, MemoryNotFound, StoreClosed, ThreadNotFound
from longthread.langgraph.backend import Backend, BackendUser, backend_in, expect_backed
from longthread.langgraph.memory.extracted import INSTRUCTIONS, Extracted, ExtractedMemory, asked, read
from longthread.langgraph.memory.model_writer import ModelWriter
from longthread.memory.memories import Memories, replace_memory
from longthread.model.entry import Entry
from longthread.model.memory import ANALYST, Memory, MemorySource, Statement
from longthread.store import attributes, log, memories
from longthread.store.driver import Transaction
from longthread.store.memories import Owner

MARK = "memories_until"
"""The key in a thread's metadata of the last entry that was read."""
ENTRIES = 60
"""So many entries are read with one call."""
_MOST = 2000
"""So far back entries are looked at."""
_KNOWN = 20
"""Known memories that a call is shown: the most important, and as many that fit the messages."""
_QUESTION = 2000
"""Characters of the messages by which known memories are found."""

_logger = logging.getLogger(__name__)


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


@dataclass(frozen=True, slots=True)
class _Unread:
    """Entries to read, in their present versions, and the number of the last entry that is read with them."""

    entries: Sequence[Entry]
    mark: int


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
            saver: whose threads these are; None: that of the middleware.
            after_seconds: how long a thread is quiet before it is read.
            agent_id: the agent whose memories these become.
            instructions: what the model is told. It must write the same JSON.
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
        self._tasks: dict[tuple[str, str], asyncio.Task[Any]] = {}
        self._homes: list[Any] = []

    def extract(self, thread_id: str) -> list[Memory]:
        """Read what is new in a thread now; return the memories that were stored.

        Raises:
            ThreadNotFound: there is no such thread.
            ReplyUnreadable: the model did not write what it was told. Nothing was stored, and it may be tried again.
        """
        backing = self._of(None)
        return backing.home.call("extract", self._extract, backing, thread_id, None)

    async def aextract(self, thread_id: str) -> list[Memory]:
        backing = self._of(None)
        return await backing.home.run(self._extract, backing, thread_id, asyncio.get_running_loop())

    def submit(self, thread_id: str, *, backing: Backend | None = None, loop: Any = None) -> None:
        """Read a thread in the background once it is quiet. It replaces what was submitted of the thread before."""
        found = self._of(backing)
        found.home.start(self._later, found, thread_id, loop)

    def cancel(self, thread_id: str, *, backing: Backend | None = None) -> None:
        """Do not read a thread now: it goes on. What is new in it is read after its next turn."""
        found = self._of(backing)
        found.home.start(self._stop, found, thread_id)

    def search(self, text: str, *, limit: int = 5) -> list[Memory]:
        """Return the user's memories that fit a text, best first."""
        backing = self._of(None)
        return backing.home.call("search", self._search, backing, text, limit)

    async def asearch(self, text: str, *, limit: int = 5) -> list[Memory]:
        backing = self._of(None)
        return await backing.home.run(self._search, backing, text, limit)

    def settle(self) -> None:
        """Wait for what was submitted, and its pauses."""
        backing = self._of(None)
        backing.home.call("settle", self._settled)

    async def asettle(self) -> None:
        await self._of(None).home.run(self._settled)

    def _of(self, backing: Backend | None) -> Backend:
        found = backing or self._backing
        if found is None:
            raise InvalidInput(
                reason="This MemoryExtractor knows no store: give it a saver, MemoryExtractor(model, saver)."
            )
        self._backing = self._backing or found
        return found

    async def _search(self, backing: Backend, text: str, limit: int) -> list[Memory]:
        found = await Memories(backing.store).search(self._owner(backing), text, k=limit)
        return [hit.memory for hit in found.hits]

    async def _later(self, backing: Backend, thread_id: str, loop: Any) -> None:
        await self._stop(backing, thread_id)
        if backing.home not in self._homes:
            self._homes.append(backing.home)
            backing.home.at_close(self._close)
        key = backing.user_id, thread_id
        task = asyncio.get_running_loop().create_task(self._quiet(backing, thread_id, loop))
        self._tasks[key] = task
        task.add_done_callback(lambda done: self._done(key, done))

    async def _quiet(self, backing: Backend, thread_id: str, loop: Any) -> None:
        if await backing.home.pause(self._seconds):
            await self._extract(backing, thread_id, loop)

    def _done(self, key: tuple[str, str], task: asyncio.Task[Any]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StoreClosed | ThreadNotFound):
            _logger.warning(
                "No memories could be taken from thread %s; it is tried again after its next turn: %s",
                key[1],
                error,
                exc_info=None if isinstance(error, LongthreadError) else error,
            )

    async def _stop(self, backing: Backend, thread_id: str) -> None:
        task = self._tasks.pop((backing.user_id, thread_id), None)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _settled(self) -> None:
        await asyncio.sleep(0)
        while self._tasks:
            await asyncio.wait(set(self._tasks.values()))
            await asyncio.sleep(0)

    async def _close(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _owner(self, backing: Backend) -> Owner:
        return Owner(backing.user_id, self._agent_id)

    async def _extract(self, backing: Backend, thread_id: str, loop: Any) -> list[Memory]:
        stored: list[Memory] = []
        while unread := await self._unread(backing, thread_id):
            known = await self._known(backing, unread.entries)
            writer = ModelWriter(self._model, loop, on_reply=self.usage.add)
            said = [each for each in unread.entries if each.role in ("user", "assistant") and each.text.strip()]
            found = Extracted()
            if any(each.role == "user" for each in said):
                found = read(await writer.write(self._instructions, asked(said, known)), said, known)
            stored += await self._store(backing, thread_id, unread, found)
        return stored

    async def _unread(self, backing: Backend, thread_id: str) -> _Unread | None:
        async with backing.store.reading() as tx:
            return await _after_mark(tx, backing, thread_id)

    async def _known(self, backing: Backend, entries: Sequence[Entry]) -> list[Memory]:
        known, owner = Memories(backing.store), self._owner(backing)
        text = " ".join(each.text for each in entries if each.role == "user")[-_QUESTION:]
        top = await known.list_(owner, limit=_KNOWN)
        fitting = [hit.memory for hit in (await known.search(owner, text, k=_KNOWN)).hits]
        return list({each.id: each for each in (*fitting, *top)}.values())

    async def _store(self, backing: Backend, thread_id: str, unread: _Unread, found: Extracted) -> list[Memory]:
        """Store what was found, and note how far the thread was read; nothing if a message has changed meanwhile."""
        owner, stored = self._owner(backing), []
        async with backing.store.writing() as tx:
            await log.position(tx, thread_id)
            there = await _after_mark(tx, backing, thread_id)
            if there is None:
                return []  # another process has read it
            texts = {each.seq: each.text for each in there.entries}
            if any(texts.get(each.seq) != each.text for each in unread.entries):
                return []  # it is read again, as it is now
            for each in found.memories:
                stored.append(await _remember(tx, owner, thread_id, each))
            for memory_id in found.forget:
                await _forget(tx, owner, memory_id)
            await attributes.set_metadata(tx, thread_id, {MARK: unread.mark}, user_id=backing.user_id)
        return stored


async def _after_mark(tx: Transaction, backing: Backend, thread_id: str) -> _Unread | None:
    """Return the first entries of the active branch that were not read yet, or have changed since; None: all were."""
    thread = await log.find_thread(tx, thread_id, user_id=backing.user_id)
    mark, last = int(thread.metadata.get(MARK, 0)), thread.entry_count
    if last <= mark or not thread.tip:
        return None
    changed = await log.changed_between(tx, thread_id, mark, last) if mark else set[int]()
    first = min([mark + 1, *changed])
    branch = await log.branch(tx, thread_id, thread.tip, limit=min(_MOST, last - first + 1))
    entries = [each for each in branch if each.seq > mark or each.seq in changed]
    chosen = entries[:ENTRIES]
    return _Unread(chosen, last if len(chosen) == len(entries) else max(mark, chosen[-1].seq))


async def _remember(tx: Transaction, owner: Owner, thread_id: str, found: ExtractedMemory) -> Memory:
    source = MemorySource(thread_id, tuple(found.seqs))
    statement = Statement(found.content, found.type, found.importance, source=source)
    return await replace_memory(tx, owner, found.replaces, statement)


async def _forget(tx: Transaction, owner: Owner, memory_id: str) -> None:
    """Delete a memory that conversations have told. What a person entered stays."""
    try:
        memory = await memories.find(tx, memory_id, user_id=owner.user_id, agent_id=owner.agent_id)
    except MemoryNotFound:
        return
    if memory.thread_id is not None:
        await memories.delete(tx, memory_id, user_id=owner.user_id)

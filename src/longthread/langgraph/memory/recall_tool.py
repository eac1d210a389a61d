"""`recall_memory` as a LangChain tool, for any agent whose threads are in our log."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, Unpack

from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool

from longthread.builtin import memory_tools as recalling
from longthread.builtin.memory_tools import PageRoom
from longthread.errors import EntryNotFound, InvalidInput, ThreadNotFound
from longthread.langgraph.backend import Backend, BackendUser, backend_in, backend_of_run, expect_backed
from longthread.langgraph.internals import CHECKPOINTER
from longthread.langgraph.memory.long_term import NO_TEXT, RecallOptions, settings_of
from longthread.llm.embedders import embedder_of
from longthread.memory.keywords import EntryPlace
from longthread.memory.recall import Recaller
from longthread.model.thread import Scope
from longthread.settings import Settings
from longthread.store import log
from longthread.tools.tool import Observation, make_failure, make_success

SCOPES = ("thread", "user")
"""What may be offered. Threads of LangGraph's have no agent."""
_NO_STORE = make_failure(
    InvalidInput(
        reason="There is no log to look in: neither the agent's checkpointer nor its store is Longthread's. Give the "
        "agent one: create_agent(…, checkpointer=saver), with a LongthreadSaver."
    )
)


def recall_tool(
    saver: BackendUser | None = None,
    *,
    scopes: Sequence[str] = ("thread",),
    settings: Settings | None = None,
    **options: Unpack[RecallOptions],
) -> BaseTool:
    """`recall_memory`: finds what was said earlier, also what is no longer shown or no longer in the state.

    ```
    agent = create_agent(model, [recall_tool()], checkpointer=saver, middleware=[MemoryMiddleware()])
    ```

    It looks in the thread that the agent runs on, and nowhere else.

    Args:
        saver: a saver, or a store of items in the same database. None: the checkpointer of the agent, when it runs, or
            its store of items, whatever wraps them. An agent's checkpointer over the same store says whose threads
            these are.
        scopes: with ("thread", "user"), the model may also look in all threads of the saver's `user_id`. Safe only
            where each of your users has a saver, or a store, with a `user_id` of their own: all that was opened
            without one share the user "default", and would find each other's words.
        settings: None: the defaults. They say which embedder, and how many are found.
        options: such as `recall_top_k=3`; they win over `settings`.

    Raises:
        InvalidInput: that is no saver, an option has no such value, or there is no such scope.
    """
    if saver is not None:
        expect_backed(saver, "recall_tool")
    lookups = _Lookups(backend_in(saver), settings_of("recall_tool", settings, options), _scopes(scopes))

    def recall(runtime: ToolRuntime, **arguments: Any) -> str:
        lookup = lookups.of(runtime)
        if lookup is None:
            return _write_observation(_NO_STORE)
        return _write_observation(lookup.home.call("recall", lookup.find, *_read_runtime(runtime), arguments))

    async def arecall(runtime: ToolRuntime, **arguments: Any) -> str:
        lookup = lookups.of(runtime)
        if lookup is None:
            return _write_observation(_NO_STORE)
        return _write_observation(await lookup.home.run(lookup.find, *_read_runtime(runtime), arguments))

    offered = recalling.describe_tool(lookups.scopes)
    return StructuredTool.from_function(
        recall, arecall, name=offered.name, description=offered.description, args_schema=dict(offered.parameters)
    )


def _scopes(given: Any) -> list[str]:
    asked = () if isinstance(given, str) or not isinstance(given, Collection) else given
    if "thread" not in asked or not set(asked) <= set(SCOPES):
        raise InvalidInput(reason=f'The scopes {given!r} are neither ("thread",) nor ("thread", "user").')
    return [scope for scope in SCOPES if scope in asked]


class _Lookups:
    """The lookups of a tool, by the backend that an agent runs on."""

    def __init__(self, backing: Backend | None, settings: Settings, scopes: Sequence[str]) -> None:
        self._backing = backing
        self._settings = settings
        self.scopes = scopes
        self._made: _Lookup | None = None

    def of(self, runtime: ToolRuntime) -> _Lookup | None:
        """Return the lookup for a call; None if the agent uses no store of Longthread's."""
        backing = backend_of_run(self._backing, runtime.config.get("configurable", {}).get(CHECKPOINTER))
        backing = backing or backend_in(runtime.store)
        if backing is None:
            return None
        made = self._made  # of an agent whose saver was reopened there is another one
        if made is None or made.backing != backing:
            recaller = Recaller(backing.store, embedder_of(self._settings))
            backing.home.at_close(recaller.close)
            made = self._made = _Lookup(backing, recaller, self._settings.memory_recall_top_k, self.scopes)
        return made


class _Lookup:
    def __init__(self, backing: Backend, recaller: Recaller, top_k: int, scopes: Sequence[str]) -> None:
        self.backing = backing
        self.home = backing.home
        self._recaller = recaller
        self._top_k = top_k
        self._scopes = scopes

    async def find(
        self, thread_id: str | None, question_id: str | None, room: PageRoom, arguments: dict[str, Any]
    ) -> Observation:
        if thread_id is None:
            return make_failure(InvalidInput(reason="There is no thread: the agent was called without a thread_id."))
        scope = Scope(self.backing.user_id, thread_id)
        before = await self._question(thread_id, question_id)
        tool = recalling.recall_tool(
            self._recaller,
            scope,
            thread_id=thread_id,
            agent_id=None,
            top_k=self._top_k,
            before=before,
            scopes=self._scopes,
            room=lambda: room,
        )
        found = await tool.call(arguments)
        data = found.get("data")
        if self.backing.has_text or not isinstance(data, dict):
            return found
        return make_success({**data, "warnings": [*data.get("warnings", ()), NO_TEXT]})

    async def _question(self, thread_id: str, question_id: str | None) -> EntryPlace | None:
        """Return the place of the question that the agent answers; after all entries if it is not stored yet."""
        if question_id is None:
            return None
        async with self.backing.store.reading() as tx:
            try:
                thread = await log.find_thread(tx, thread_id, user_id=self.backing.user_id)
            except ThreadNotFound:  # what is stored from now on is the question, and what follows it
                return EntryPlace(thread_id, 1)
            try:
                return EntryPlace(thread_id, (await log.find_entry(tx, thread_id, question_id)).seq)
            except EntryNotFound:
                return EntryPlace(thread_id, thread.entry_count + 1)


def _read_runtime(runtime: ToolRuntime) -> tuple[str | None, str | None, PageRoom]:
    """Return the thread, the id of the message to answer, and the room for a page."""
    thread_id = runtime.config.get("configurable", {}).get("thread_id")
    state: Any = runtime.state  # of whatever kind the application's is
    messages = state.get("messages", ()) if isinstance(state, dict) else getattr(state, "messages", ())
    budget = state.get("memory_room", 0) if isinstance(state, dict) else getattr(state, "memory_room", 0)
    asked = next((each for each in reversed(messages) if isinstance(each, HumanMessage)), None)
    return (str(thread_id) if thread_id is not None else None), asked.id if asked else None, PageRoom(budget)


def _write_observation(observation: Observation) -> str:
    return json.dumps(observation, ensure_ascii=False, separators=(",", ":"))

"""What is compared: Longthread's saver, LangGraph's own, its delta channel, and an append-only table."""

from __future__ import annotations

import json
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from conversation import DeltaState, Script, State, build
from databases import Database
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from longthread.langgraph.saver.async_saver import AsyncLongthreadSaver
from longthread.store.open import open_store

Call = tuple[str, tuple[Any, ...]]
"""One call of a saver: `put` or `put_writes`, and what it is given."""


def now() -> float:
    """Milliseconds."""
    return time.perf_counter() * 1000


class Contender(ABC):
    """One way of keeping a thread, in a database of its own."""

    has_graph = True

    def __init__(self, name: str, database: Database) -> None:
        self.name = name
        self.database = database

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the tables."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def seed(self, thread: str, messages: Sequence[BaseMessage]) -> None:
        """A thread that holds `messages`, as if it had grown to that."""

    @abstractmethod
    async def turn(self, thread: str, number: int) -> float:
        """Milliseconds of a turn through the graph, the loading of the state included."""

    @abstractmethod
    async def bare_turn(self, thread: str, number: int) -> float:
        """Milliseconds of a turn's calls of `put` and `put_writes` alone, one behind the other."""

    @abstractmethod
    async def load(self, thread: str) -> float:
        """Milliseconds to load the newest state by a saver that knows the thread."""

    @abstractmethod
    async def cold(self, thread: str) -> tuple[float, float]:
        """Milliseconds to open a new connection and saver, and to load the newest state by them."""


class Recorder(BaseCheckpointSaver[Any]):
    """Reads from a saver, and only writes down what it would be given to store.

    So the calls of a real graph are had as they are, with the very objects, and can be timed one by one.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver
        self.calls: list[Call] = []

    def taken(self) -> list[Call]:
        """What was written down since the last time; it is let go of, as a graph does."""
        taken, self.calls = self.calls, []
        return taken

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.saver.get_next_version(current, channel)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.saver.get_tuple(config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.saver.aget_tuple(config)

    def get_delta_channel_history(self, *, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, Any]:
        return self.saver.get_delta_channel_history(config=config, channels=channels)

    def put(self, config: RunnableConfig, checkpoint: Any, *rest: Any) -> RunnableConfig:
        self.calls.append(("put", (config, checkpoint, *rest)))
        at = {key: config["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
        return {"configurable": {**at, "checkpoint_id": checkpoint["id"]}}

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.calls.append(("put_writes", (config, writes, task_id, task_path)))

    async def aput(self, config: RunnableConfig, checkpoint: Any, *rest: Any) -> RunnableConfig:
        return self.put(config, checkpoint, *rest)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)


def _at(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


class Longthread(Contender):
    """`LongthreadSaver`, asynchronous as it is."""

    saver: type[AsyncLongthreadSaver] = AsyncLongthreadSaver

    async def open(self) -> None:
        self._opened = AsyncExitStack()
        self._store = await self._opened.enter_async_context(open_store(self.database.address))
        self._use(self.saver(self._store))

    def _use(self, saver: Any) -> None:
        self._saver, self._recorder, self._script = saver, Recorder(saver), Script()
        graph = build(State, self._script)
        self._graph, self._bare = graph.compile(checkpointer=saver), graph.compile(checkpointer=self._recorder)

    async def close(self) -> None:
        await self._opened.aclose()

    async def seed(self, thread: str, messages: Sequence[BaseMessage]) -> None:
        await self._graph.aupdate_state(_at(thread), {"messages": list(messages)}, as_node="model")

    async def turn(self, thread: str, number: int) -> float:
        self._script.write(number)
        started = now()
        await self._graph.ainvoke({"messages": self._script.question}, _at(thread), durability="sync")
        return now() - started

    async def bare_turn(self, thread: str, number: int) -> float:
        calls = await self._calls(thread, number)
        started = now()
        for name, args in calls:
            await (self._saver.aput(*args) if name == "put" else self._saver.aput_writes(*args))
        return now() - started

    async def load(self, thread: str) -> float:
        started = now()
        _found = await self._saver.aget_tuple(_at(thread))  # kept: to let go of it is no part of loading it
        return now() - started

    async def cold(self, thread: str) -> tuple[float, float]:
        begun = now()
        async with open_store(self.database.address) as store:
            started = now()
            _found = await AsyncLongthreadSaver(store).aget_tuple(_at(thread))
            return started - begun, now() - started

    async def transactions(self, thread: str, number: int) -> int:
        """How many write transactions a turn's calls are."""
        calls, counting = await self._calls(thread, number), _Counting(self._store)
        saver = AsyncLongthreadSaver(counting)  # type: ignore[arg-type]  # it passes on what it is asked for
        for name, args in calls:
            await (saver.aput(*args) if name == "put" else saver.aput_writes(*args))
        return counting.count

    async def _calls(self, thread: str, number: int) -> list[Call]:
        self._script.write(number)
        await self._bare.ainvoke({"messages": self._script.question}, _at(thread), durability="sync")
        return self._recorder.taken()


class AsyncStock(Longthread):
    """LangGraph's own asynchronous saver of the database. Its loading is not measured."""

    async def open(self) -> None:
        self._opened = AsyncExitStack()
        kind = AsyncSqliteSaver if self.database.backend == "sqlite" else AsyncPostgresSaver
        opened: Any = await self._opened.enter_async_context(kind.from_conn_string(self.database.address))
        await opened.setup()
        self._use(opened)


class _Counting:
    """A store that counts its write transactions."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def writing(self, *args: Any, **named: Any) -> AsyncIterator[Any]:
        self.count += 1
        opened: AbstractAsyncContextManager[Any] = self._store.writing(*args, **named)
        async with opened as tx:
            yield tx


@dataclass
class _Opened:
    saver: Any
    closing: ExitStack


class Stock(Contender):
    """LangGraph's own saver of the database: the synchronous one, which is the faster of the two."""

    state: type = State

    async def open(self) -> None:
        self._opened = self._connect()
        saver = self._opened.saver
        saver.setup()
        self._saver, self._recorder, self._script = saver, Recorder(saver), Script()
        graph = build(self.state, self._script)
        self._graph, self._bare = graph.compile(checkpointer=saver), graph.compile(checkpointer=self._recorder)

    def _connect(self) -> _Opened:
        closing = ExitStack()
        kind = SqliteSaver if self.database.backend == "sqlite" else PostgresSaver
        return _Opened(closing.enter_context(kind.from_conn_string(self.database.address)), closing)

    async def close(self) -> None:
        self._opened.closing.close()

    async def seed(self, thread: str, messages: Sequence[BaseMessage]) -> None:
        self._graph.update_state(_at(thread), {"messages": list(messages)}, as_node="model")

    async def turn(self, thread: str, number: int) -> float:
        self._script.write(number)
        started = now()
        self._graph.invoke({"messages": self._script.question}, _at(thread), durability="sync")
        return now() - started

    async def bare_turn(self, thread: str, number: int) -> float:
        self._script.write(number)
        self._bare.invoke({"messages": self._script.question}, _at(thread), durability="sync")
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
            (self._saver.put if name == "put" else self._saver.put_writes, args)
            for name, args in self._recorder.taken()
        ]
        started = now()
        for call, args in calls:
            call(*args)
        return now() - started

    async def load(self, thread: str) -> float:
        started = now()
        _found = self._saver.get_tuple(_at(thread))
        return now() - started

    async def cold(self, thread: str) -> tuple[float, float]:
        begun = now()
        opened = self._connect()
        with opened.closing:
            opened.saver.setup()
            started = now()
            _found = self._load(opened.saver, thread)
            return started - begun, now() - started

    def _load(self, saver: Any, thread: str) -> Any:
        return saver.get_tuple(_at(thread))


class Delta(Stock):
    """The stock saver under a graph whose messages are a delta channel."""

    state = DeltaState

    async def load(self, thread: str) -> float:
        started = now()
        _found = self._load(self._saver, thread)
        return now() - started

    def _load(self, saver: Any, thread: str) -> Any:
        # The checkpoint alone holds no messages: the graph asks for their history, and so does this.
        return build(DeltaState, Script()).compile(checkpointer=saver).get_state(_at(thread))


class Floor(Contender):
    """An append-only table: one row a transaction, as many transactions as ours, and as durable.

    The rows of a turn are its four messages as JSON, and empty ones for the transactions that are left.
    """

    has_graph = False
    transactions = 9

    async def open(self) -> None:
        self._connection = self._connect()
        self._connection.execute(
            "CREATE TABLE floor (thread_id TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT, body TEXT,"
            " PRIMARY KEY (thread_id, seq))"
        )
        self._next: dict[str, int] = {}

    def _connect(self) -> Any:
        if self.database.backend == "postgres":
            return psycopg.connect(self.database.address, autocommit=True)
        connection = sqlite3.connect(self.database.address, isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    @property
    def _insert(self) -> str:
        place = "?" if self.database.backend == "sqlite" else "%s"
        return f"INSERT INTO floor (thread_id, seq, id, body) VALUES ({', '.join([place] * 4)})"

    async def close(self) -> None:
        self._connection.close()

    async def seed(self, thread: str, messages: Sequence[BaseMessage]) -> None:
        rows = [(thread, n, m.id, json.dumps(m.model_dump())) for n, m in enumerate(messages)]
        self._connection.execute("BEGIN")
        self._connection.cursor().executemany(self._insert, rows)
        self._connection.execute("COMMIT")
        self._next[thread] = len(rows)

    async def turn(self, thread: str, number: int) -> float:
        raise NotImplementedError

    async def bare_turn(self, thread: str, number: int) -> float:
        script = Script()
        script.write(number)
        messages: list[BaseMessage | None] = [*script.question, *script.messages]
        messages += [None] * (self.transactions - len(messages))
        insert, start = self._insert, self._next[thread]
        started = now()
        for seq, message in enumerate(messages, start):
            body = json.dumps(message.model_dump()) if message else ""
            self._connection.execute(insert, (thread, seq, message.id if message else None, body))
        taken = now() - started
        self._next[thread] += len(messages)
        return taken

    async def load(self, thread: str) -> float:
        started = now()
        self._read(self._connection, thread)
        return now() - started

    async def cold(self, thread: str) -> tuple[float, float]:
        begun = now()
        connection = self._connect()
        started = now()
        self._read(connection, thread)
        taken = now() - started
        connection.close()
        return started - begun, taken

    def _read(self, connection: Any, thread: str) -> None:
        place = "?" if self.database.backend == "sqlite" else "%s"
        rows = connection.execute(f"SELECT body FROM floor WHERE thread_id = {place} ORDER BY seq", (thread,))
        for (body,) in rows.fetchall():
            if body:
                json.loads(body)

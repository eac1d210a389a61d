"""The open store and the event loop that a saver and its companions share, and how a store is opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType, ModuleType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

from anyio.from_thread import start_blocking_portal
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from longthread.errors import InvalidInput
from longthread.langgraph.saver.inflight import Puts
from longthread.loop_bridge import Portal
from longthread.store.driver import Driver
from longthread.store.open import open_store, store_over


@dataclass(frozen=True, slots=True)
class Backend:
    """An open store, the portal to its event loop, the user whose data is visible, and the saver's puts.
    `has_text`: its messages have texts to be found and summarised by."""

    store: Driver
    home: Portal
    user_id: str
    has_text: bool = True
    puts: Puts = field(default_factory=Puts, compare=False)


class BackendUser(Protocol):
    """A saver, or a store of items."""

    @property
    def backing(self) -> Backend: ...


_MOST, _DEEPEST, _LARGE = 1000, 6, 32
"""How many objects are looked at for a backend, how deep inside of each other, and from what size a container is one of
data, and not of what wraps a saver."""


def backend_in(given: Any) -> Backend | None:
    """Return the backend of a saver or a store of items, also where others wrap it: servers, encryption, tracing.

    A wrapper passes `backing` on, or has what it wraps in an attribute, a container or a function's closure.
    """
    level, seen = [given], {id(given)}
    for _ in range(_DEEPEST):
        for each in level:
            # Of others, an attribute may be anything: it is not asked for.
            if each is given or isinstance(each, BaseCheckpointSaver | BaseStore):
                found = getattr(each, "backing", None)
                if isinstance(found, Backend):
                    return found
        inside = {id(part): part for each in level for part in _parts(each) if id(part) not in seen}
        seen |= inside.keys()
        level = list(inside.values())
        if not level or len(seen) > _MOST:
            break
    return None


def backend_of_run(given: Backend | None, checkpointer: Any) -> Backend | None:
    """Return a run's backend: of its checkpointer if none was given, or if that is over the same store, perhaps for
    another user (`saver.for_user`); else the one that was given."""
    found = backend_in(checkpointer)
    return found if given is None or (found is not None and found.store is given.store) else given


_PLAIN = (str, bytes, int, float, complex, type, ModuleType, type(None))


def _parts(thing: Any) -> Iterator[Any]:
    """Yield what an object holds, without computing anything."""
    parts: list[Any] = list(getattr(thing, "__dict__", {}).values())
    for kind in type(thing).__mro__ if parts or not isinstance(thing, _PLAIN) else ():
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(AttributeError):
                parts.append(object.__getattribute__(thing, name))
    if isinstance(thing, dict | list | tuple | set | frozenset):
        parts += () if len(thing) > _LARGE else thing.values() if isinstance(thing, dict) else thing
    elif isinstance(thing, MethodType):
        parts += thing.__self__, thing.__func__
    elif isinstance(thing, partial):
        parts += thing.func, *thing.args, *thing.keywords.values()
    elif isinstance(thing, FunctionType):
        for cell in thing.__closure__ or ():
            with suppress(ValueError):  # nothing is in it yet
                parts.append(cell.cell_contents)
    yield from (part for part in parts if not isinstance(part, _PLAIN))


def expect_backed(given: Any, whose: str) -> None:
    """Raise InvalidInput unless `given` is a saver or a store of items; `whose` names the argument's owner."""
    if backend_in(given) is None:
        kind = (
            "one that is not open yet"
            if isinstance(given, BackendOpener)
            else f"something of type {type(given).__name__}"
        )
        raise InvalidInput(
            reason=f"{whose} needs an open LongthreadSaver or LongthreadStore, and was given {kind}. Open one: "
            'with LongthreadSaver.from_conn_string("conversations.db") as saver.'
        )


def expect_store(given: Any, whose: str) -> None:
    """Raise InvalidInput unless `given` is an open store: LangGraph's own savers take paths and connections here."""
    if not callable(getattr(given, "reading", None)):
        raise InvalidInput(
            reason=f"{whose} needs an open store, and was given something of type {type(given).__name__}. From a path "
            f'or a URL: with {whose}.from_conn_string("conversations.db") as opened.'
        )


B = TypeVar("B", bound=BackendUser)


class BackendOpener(Generic[B]):
    """Opens a saver or store: `with` on a thread of its own, `async with` on the running event loop."""

    def __init__(
        self, opening: Callable[[], AbstractAsyncContextManager[Driver]], make: Callable[[Driver], B], *, name: str
    ) -> None:
        self._opening = opening
        self._make = make
        self._name = name
        self._plain = ExitStack()
        self._async = AsyncExitStack()

    def __enter__(self) -> B:
        with ExitStack() as stack:
            # psycopg cannot run on the loop that Windows uses by default.
            options = {"loop_factory": asyncio.SelectorEventLoop}
            thread = stack.enter_context(start_blocking_portal("asyncio", options, name=self._name))
            made = stack.enter_context(thread.wrap_async_context_manager(self._open_backend()))
            self._plain = stack.pop_all()
        return made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plain.__exit__(kind, error, trace)

    async def __aenter__(self) -> B:
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(self._open_backend())
            self._async = stack.pop_all()
        return made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _open_backend(self) -> AsyncIterator[B]:
        async with self._opening() as store:
            made = self._make(store)
            try:
                yield made
            finally:
                await made.backing.home.close()


def opener(address: str, make: Callable[[Driver], B], *, name: str, pool_size: int | None = None) -> BackendOpener[B]:
    """Open what `make` makes over the store at an address."""
    return BackendOpener(partial(open_store, address, pool_size=pool_size), make, name=name)


@asynccontextmanager
async def over_pool(pool: Any, make: Callable[[Driver], B]) -> AsyncIterator[B]:
    """Open what `make` makes over the store in the database of an application's pool, on the pool's event loop."""
    async with BackendOpener(partial(store_over, pool), make, name="") as made:
        yield made


def done() -> Awaitable[None]:
    return _Done()


class _Done:
    def __await__(self) -> Generator[Any, None, None]:
        yield from ()

"""The open store and the event loop that a saver and its companions share, and how a store is opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from anyio.from_thread import start_blocking_portal

from longthread.errors import InvalidInput
from longthread.loop_bridge import Portal
from longthread.store.driver import Driver
from longthread.store.open import open_store


@dataclass(frozen=True, slots=True)
class Backend:
    """An open store, the portal to its event loop, and the user whose data is visible."""

    store: Driver
    home: Portal
    user_id: str


class BackendUser(Protocol):
    """A saver, or a store of items."""

    @property
    def backing(self) -> Backend: ...


def expect_backed(given: Any, whose: str) -> None:
    """Raise InvalidInput unless `given` is a saver or a store of items; `whose` names the argument's owner."""
    if not isinstance(getattr(given, "backing", None), Backend):
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

    def __init__(self, address: str, make: Callable[[Driver], B], *, name: str) -> None:
        self._address = address
        self._make = make
        self._name = name
        self._plain = ExitStack()
        self._async = AsyncExitStack()

    def __enter__(self) -> B:
        with ExitStack() as stack:
            # psycopg cannot run on the loop that Windows uses by default.
            options = {"loop_factory": asyncio.SelectorEventLoop}
            thread = stack.enter_context(start_blocking_portal("asyncio", options, name=self._name))
            made = stack.enter_context(thread.wrap_async_context_manager(self._opened()))
            self._plain = stack.pop_all()
        return made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._plain.__exit__(kind, error, trace)

    async def __aenter__(self) -> B:
        async with AsyncExitStack() as stack:
            made = await stack.enter_async_context(self._opened())
            self._async = stack.pop_all()
        return made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[B]:
        async with open_store(self._address) as store:
            made = self._make(store)
            try:
                yield made
            finally:
                await made.backing.home.close()


def done() -> Awaitable[None]:
    return _Done()


class _Done:
    def __await__(self) -> Generator[Any, None, None]:
        yield from ()

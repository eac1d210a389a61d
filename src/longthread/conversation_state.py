"""Conversation states as document 003 has them: synchronous, thread-safe, over the log.

from longthread.conversation_state import CacheConfig, SignatureDatabase

with SignatureDatabase(CacheConfig(db_path="conversations.db", ttl_seconds=3600)) as db:
    db.store_conversation_state("conv_1", "cursor", '[{"role": "user", "content": "Hello"}]')

A state is a thread: its id is the SCID, its entries are the history, and its active branch is the authoritative
one. A method that fails returns what the document says (False, None or 0), and the log of this module says why.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from longthread.errors import InvalidInput, LongthreadError, SaverClosed
from longthread.loop_bridge import Portal
from longthread.settings import Settings
from longthread.store import states
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import expire
from longthread.store.open import open_store
from longthread.store.states import CLIENT_TYPES

__all__ = ["CacheConfig", "SignatureDatabase"]

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)
DEEPEST = 200
"""Levels of nested lists and objects in a history."""


@dataclass(frozen=True)
class CacheConfig:
    """Where the states are, and how long they stay.

    Args:
        db_path: a SQLite file, a `postgresql://` URL or `embedded`; None: the store of the settings.
        ttl_seconds: after how many seconds a state expires, unless `store_conversation_state` says it; None: never.
        wal_mode: only True, because a store on SQLite is always in WAL mode, and PostgreSQL always writes a WAL.

    Raises:
        InvalidInput: `wal_mode` is False, or `ttl_seconds` is no number.
    """

    db_path: str | Path | None = None
    ttl_seconds: float | None = None
    wal_mode: bool = True

    def __post_init__(self) -> None:
        if not self.wal_mode:
            raise InvalidInput(
                reason="wal_mode=False is not possible: a store on SQLite is always in WAL mode, so that others read "
                "while one writes. Leave wal_mode out."
            )
        checked_ttl(self.ttl_seconds)


class SignatureDatabase:
    """The states of one user (the settings' `user`). All threads of a process can share an object.

    It stays open until `close()` or the end of a `with` block, and keeps no process from ending. A forked process needs
    an object of its own.

    Raises:
        InvalidInput: `db_path` is no address of a store.
        StoreUnavailable: the store cannot be opened; the message says why.
    """

    def __init__(self, config: CacheConfig | None = None) -> None:
        config, settings = config or CacheConfig(), Settings.load()
        self._ttl_seconds = config.ttl_seconds
        self._user, self._read_only = settings.user, settings.read_only
        address = settings.database if config.db_path is None else str(config.db_path)
        self._thread = StoreThread(address, read_only=settings.read_only)

    def store_conversation_state(
        self,
        scid: str,
        client_type: str,
        history: str,
        signature: str | None = None,
        ttl_seconds: float | None = None,
    ) -> bool:
        """Store a state, or update all of it but `created_at` and `access_count`.

        Args:
            scid: the conversation's id.
            client_type: `cursor`, `augment`, `claude_code` or `unknown`.
            history: the messages as a JSON list.
            signature: the last valid signature.
            ttl_seconds: after how many seconds the state expires; None: as the configuration says.
        """
        return self._try_work(False, self._store, scid, client_type, history, signature, ttl_seconds)

    def get_conversation_state(self, scid: str) -> dict[str, Any] | None:
        """Return a state and count the access, unless the store is only read; None if there is none or it has expired.

        Its keys: `scid`, `client_type`, `authoritative_history` (a list), `last_signature`, `created_at`, `updated_at`,
        `expires_at` (ISO 8601 in UTC, or None) and `access_count`, with this access.
        """
        return self._try_work(None, self._get, scid)

    def update_conversation_state(self, scid: str, history: str, signature: str | None = None) -> bool:
        """Update a state's history, and its signature if one is given; False if there is no such state."""
        return self._try_work(False, self._update, scid, history, signature)

    def delete_conversation_state(self, scid: str) -> bool:
        """Delete a state with all branches of its history; False if there is none."""
        return self._try_work(False, self._delete, scid)

    def cleanup_expired_states(self) -> int:
        """Delete all expired states, whoever's they are, and return how many there were."""
        return self._try_work(0, self._cleanup)

    def close(self) -> None:
        """Wait for what is under way, and close the store. Idempotent."""
        self._thread.close()

    def __enter__(self) -> SignatureDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _try_work(self, failed: T, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
        name = getattr(work, "__name__", "").lstrip("_")
        try:
            return self._thread.portal.call(name, work, *args, **kwargs)
        except SaverClosed as error:
            _log.warning("%s: this SignatureDatabase cannot be used: %s", name, error.reason)
        except LongthreadError as error:
            _log.warning("%s: %s", name, error)
        return failed

    async def _store(
        self, scid: str, client_type: str, history: str, signature: str | None, ttl_seconds: float | None
    ) -> bool:
        messages = messages_of(history)
        client_type, signature = checked_client(client_type), checked_signature(signature)
        ttl_seconds = self._ttl_seconds if checked_ttl(ttl_seconds) is None else ttl_seconds
        expires_at = states.expiry(ttl_seconds)
        async with self._thread.store.writing() as tx:
            await states.store_state(
                tx,
                checked_scid(scid),
                messages,
                user_id=self._user,
                client_type=client_type,
                signature=signature,
                expires_at=expires_at,
            )
        return True

    async def _get(self, scid: str) -> dict[str, Any] | None:
        store, counts = self._thread.store, not self._read_only
        async with store.writing() if counts else store.reading() as tx:
            return await states.read_state(tx, checked_scid(scid), user_id=self._user, counts=counts)

    async def _update(self, scid: str, history: str, signature: str | None) -> bool:
        messages, signature = messages_of(history), checked_signature(signature)
        async with self._thread.store.writing() as tx:
            return await states.update_state(tx, checked_scid(scid), messages, user_id=self._user, signature=signature)

    async def _delete(self, scid: str) -> bool:
        async with self._thread.store.writing() as tx:
            return await states.delete_state(tx, checked_scid(scid), user_id=self._user)

    async def _cleanup(self) -> int:
        return (await expire(self._thread.store)).threads


def checked_signature(signature: Any) -> str | None:
    if signature is not None and not isinstance(signature, str):
        raise InvalidInput(reason=f"signature is of type {type(signature).__name__}; give a text, or None.")
    return signature


def messages_of(history: Any) -> list[Any]:
    """Return the messages of a history. Raises `InvalidInput`: it is not the text of a JSON list."""
    if not isinstance(history, str):
        raise InvalidInput(reason=f"history is of type {type(history).__name__}; give JSON text: json.dumps(messages).")
    try:
        messages = json.loads(history)
        json.dumps(messages, allow_nan=False)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(reason=f"history is no JSON: {reason}.") from error
    if not isinstance(messages, list):
        raise InvalidInput(reason=f"history is JSON, but no list: {history[:40]}.")
    if _depth(messages) > DEEPEST:
        raise InvalidInput(reason=f"history is nested deeper than {DEEPEST} levels.")
    return messages


def _depth(value: Any) -> int:
    levels, found = 0, [value]
    while found:
        levels += 1
        found = [item for each in found if isinstance(each, list | dict) for item in _items(each)]
    return levels


def _items(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def checked_scid(scid: Any) -> str:
    if not isinstance(scid, str) or not scid:
        raise InvalidInput(reason=f"scid is {scid!r}; give the conversation's id, a text that is not empty.")
    return scid


def checked_ttl(ttl_seconds: Any) -> float | None:
    if ttl_seconds is None or (isinstance(ttl_seconds, int | float) and not isinstance(ttl_seconds, bool)):
        return ttl_seconds
    raise InvalidInput(reason=f"ttl_seconds is {ttl_seconds!r}; give a number of seconds, or None.")


def checked_client(client_type: Any) -> str:
    if client_type not in CLIENT_TYPES:
        raise InvalidInput(reason=f"client_type is {client_type!r}; allowed is {', '.join(CLIENT_TYPES)}.")
    return str(client_type)


class StoreThread:
    """Opens a store, and keeps it open until `close()`, or until nothing refers to this object, or the process ends.

    `store` is used on its own event loop alone, through `portal`. Raises what `open_store` does.
    """

    def __init__(self, address: str, *, read_only: bool) -> None:
        opened: Future[_Opened] = Future()
        self._thread = threading.Thread(
            target=_serve, args=(address, read_only, opened), name="longthread-states", daemon=True
        )
        self._thread.start()
        self._opened = opened.result()
        self.store, self.portal = self._opened.store, self._opened.portal
        self._end = weakref.finalize(self, self._opened.end)
        self._end.atexit = False  # the thread must not begin to close the store while Python ends

    def close(self) -> None:
        """Wait for what is under way, and close the store. Idempotent."""
        self._end()
        if os.getpid() == self._opened.process:
            self._thread.join()


@dataclass(frozen=True, slots=True)
class _Opened:
    """A store that is open on the event loop of a thread."""

    store: Driver
    portal: Portal
    loop: asyncio.AbstractEventLoop
    stop: asyncio.Event
    process: int

    def end(self) -> None:
        """Have the thread close the store and end; from any thread, any number of times."""
        if os.getpid() == self.process:  # a forked process shares the loop's socket, and not its thread
            with suppress(RuntimeError):  # the loop is closed
                self.loop.call_soon_threadsafe(self.stop.set)


def _serve(address: str, read_only: bool, opened: Future[_Opened]) -> None:
    """Keep a store open until it is told to stop. Runs in a thread."""
    try:
        # psycopg cannot run on the loop that Windows uses by default.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(_keep_open(address, read_only, opened))
    except LongthreadError as error:
        if opened.exception() is None:
            _log.warning("the store was not closed: %s", error)


async def _keep_open(address: str, read_only: bool, opened: Future[_Opened]) -> None:
    try:
        async with open_store(address, read_only=read_only) as store:
            stop, portal = asyncio.Event(), Portal()
            opened.set_result(_Opened(store, portal, asyncio.get_running_loop(), stop, os.getpid()))
            await stop.wait()
            await portal.close()
    finally:
        if not opened.done():  # whoever waits for the store learns why there is none
            opened.set_exception(sys.exception())

"""`SignatureDatabase`: the five methods of document 003 over the store.

A state is a thread: its id is the SCID, its entries are the history, and its active branch is the authoritative
one. A method that fails returns what the document says (False, None or 0), and this module's log says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from longthread.conversation_state.arguments import (
    checked_client,
    checked_scid,
    checked_signature,
    checked_ttl,
    messages_of,
)
from longthread.conversation_state.store_thread import StoreThread
from longthread.errors import InvalidInput, LongthreadError, SaverClosed
from longthread.settings import Settings
from longthread.store.maintenance.expiry import expire
from longthread.store.states import states

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)


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
        return self._tried(False, self._store, scid, client_type, history, signature, ttl_seconds)

    def get_conversation_state(self, scid: str) -> dict[str, Any] | None:
        """Return a state and count the access, unless the store is only read; None if there is none or it has expired.

        Its keys: `scid`, `client_type`, `authoritative_history` (a list), `last_signature`, `created_at`, `updated_at`,
        `expires_at` (ISO 8601 in UTC, or None) and `access_count`, with this access.
        """
        return self._tried(None, self._get, scid)

    def update_conversation_state(self, scid: str, history: str, signature: str | None = None) -> bool:
        """Update a state's history, and its signature if one is given; False if there is no such state."""
        return self._tried(False, self._update, scid, history, signature)

    def delete_conversation_state(self, scid: str) -> bool:
        """Delete a state with all branches of its history; False if there is none."""
        return self._tried(False, self._delete, scid)

    def cleanup_expired_states(self) -> int:
        """Delete all expired states, whoever's they are, and return how many there were."""
        return self._tried(0, self._cleanup)

    def close(self) -> None:
        """Wait for what is under way, and close the store. Idempotent."""
        self._thread.close()

    def __enter__(self) -> SignatureDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _tried(self, failed: T, work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **kwargs: P.kwargs) -> T:
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

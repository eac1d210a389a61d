"""Providers' endpoints: the keys that users entered for them, sealed, and what they showed of their models."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from longthread.errors import SecretKeyUnusable
from longthread.model.run import ProbedProtocol
from longthread.settings import Settings
from longthread.store import log
from longthread.store.driver import Transaction, one
from longthread.store.log import now

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_FILE = "secret.key"
_NONCE = 12
"""Bytes. AES-GCM wants each only once under a key: random ones do for four billion secrets."""
_OTHERS = 0o077
"""What the mode of a key's file does not have."""
_BEING_WRITTEN = 1.0
"""Seconds to wait for the content of an empty file."""

_logger = logging.getLogger(__name__)


class Sealer:
    """Seals texts under LONGTHREAD_SECRET_KEY, or under a key in the data folder, which is made when it is first
    needed. A text can be opened only for the purpose it was sealed for."""

    def __init__(self, settings: Settings) -> None:
        self._given = settings.secret_key
        self._path = settings.data_dir / KEY_FILE
        self._key: bytes | None = None

    def seal(self, text: str, purpose: str) -> bytes:
        """Return a text sealed. Raises SecretKeyUnusable: the key cannot be made or read."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, text.encode(), purpose.encode())

    def unseal(self, sealed: bytes, purpose: str) -> str | None:
        """Return the text; None if it was sealed under another key, for another purpose, or changed. Raises
        SecretKeyUnusable."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], purpose.encode()).decode()
        except (InvalidTag, ValueError):
            return None

    def _cipher(self) -> AESGCM:
        # Here and not above: it loads a library that only stored keys need.
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if self._key is None:
            secret = self._given.get_secret_value() if self._given is not None else self._of_file()
            self._key = hashlib.sha256(secret.encode()).digest()
        return AESGCM(self._key)

    def _of_file(self) -> str:
        try:
            self._make_file()
            secret = self._read()
        except (OSError, UnicodeDecodeError) as error:
            raise SecretKeyUnusable(where=self._path, problem=f"cannot be made or read: {error}.") from error
        if len(secret) < 32:
            raise SecretKeyUnusable(where=self._path, problem="is too short to be one.")
        return secret

    def _read(self) -> str:
        mode = stat.S_IMODE(self._path.stat().st_mode)
        if mode & _OTHERS and os.name == "posix":
            _logger.warning("Others may use the key %s: its mode is %o. Give it the mode 600.", self._path, mode)
        until = time.monotonic() + _BEING_WRITTEN
        while not (secret := self._path.read_text("utf-8").strip()) and time.monotonic() < until:
            time.sleep(0.01)  # see `_exclusively`
        return secret

    def _make_file(self) -> None:
        """Make the file, whole or not at all, unless it is there."""
        if self._path.exists():
            return
        self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
        draft, secret = self._path.with_name(f"{KEY_FILE}.{secrets.token_hex(4)}"), secrets.token_urlsafe(32)
        _exclusively(draft, secret)
        try:
            os.link(draft, self._path)
        except FileExistsError:
            pass  # another process was faster
        except OSError:  # exFAT and some network drives have no hard links
            with suppress(FileExistsError):
                _exclusively(self._path, secret)
        finally:
            draft.unlink()


def _exclusively(path: Path, text: str) -> None:
    """Write a new file that only its owner may read. It is empty for a moment. Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink()
            raise


@dataclass(frozen=True, slots=True)
class SealedKey:
    """A user's key of a provider."""

    provider: str
    sealed: bytes
    set_at: datetime


async def save_key(tx: Transaction, provider: str, sealed: bytes, *, user_id: str) -> None:
    """Store a key in the place of the one before."""
    await tx.run("save_provider_key", user_id=user_id, provider=provider, sealed=sealed, now=now())


async def list_keys(tx: Transaction, user_id: str) -> list[SealedKey]:
    """Return a user's keys, by provider."""
    rows = await tx.fetch("select_provider_keys", user_id=user_id)
    return [SealedKey(row["provider"], bytes(row["sealed"]), datetime.fromisoformat(row["set_at"])) for row in rows]


async def remove_key(tx: Transaction, provider: str, *, user_id: str) -> bool:
    """Delete a key; return whether there was one."""
    return bool(await tx.run("delete_provider_key", user_id=user_id, provider=provider))


KEPT = timedelta(days=7)
"""How long an endpoint's report is valid: it may be a guess from an error, or the server may have grown."""


@dataclass(frozen=True, slots=True)
class AssumedWindow:
    """A model's assumed window in `tokens`. `endpoint` is its provider or server address, without secrets."""

    model: str
    endpoint: str
    tokens: int


async def find_window(tx: Transaction, assumed: AssumedWindow, *, now: datetime | None = None) -> int | None:
    """Return the window in tokens that an endpoint reported; None: none, or too long ago to trust."""
    since = ((now or datetime.now(UTC)) - KEPT).isoformat(timespec="microseconds")
    row = await one(
        tx, "select_window", model=assumed.model, endpoint=assumed.endpoint, assumed=assumed.tokens, since=since
    )
    return int(row["tokens"]) if row else None


async def save_window(tx: Transaction, assumed: AssumedWindow, tokens: int) -> None:
    """Store the window that an endpoint reported, instead of an earlier one."""
    await tx.run(
        "save_window",
        model=assumed.model,
        endpoint=assumed.endpoint,
        assumed=assumed.tokens,
        tokens=tokens,
        learned_at=log.now(),
    )


async def find_protocol(tx: Transaction, model: str, endpoint: str) -> ProbedProtocol | None:
    """Return the protocol that a probe found for a model; None: it was not probed."""
    row = await one(tx, "select_model_protocol", model=model, endpoint=endpoint)
    return row["protocol"] if row else None


async def list_protocols(tx: Transaction) -> dict[str, ProbedProtocol]:
    """Return the protocols that probes found, by the name of the model: of several endpoints the newest one's."""
    return {row["model"]: row["protocol"] for row in await tx.fetch("select_model_protocols")}


async def save_protocol(tx: Transaction, model: str, endpoint: str, protocol: ProbedProtocol) -> None:
    """Store the protocol that a probe found, instead of an earlier one."""
    await tx.run("put_model_protocol", model=model, endpoint=endpoint, protocol=protocol, probed_at=log.now())

"""The keys of providers that users have entered, sealed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from longthread.store.driver import Transaction
from longthread.store.log import now


@dataclass(frozen=True, slots=True)
class SealedKey:
    """A user's key of a provider."""

    provider: str
    sealed: bytes
    set_at: datetime


async def save(tx: Transaction, provider: str, sealed: bytes, *, user_id: str) -> None:
    """Store a key in the place of the one before."""
    await tx.run("save_provider_key", user_id=user_id, provider=provider, sealed=sealed, now=now())


async def of_user(tx: Transaction, user_id: str) -> list[SealedKey]:
    """Return a user's keys, by provider."""
    rows = await tx.fetch("select_provider_keys", user_id=user_id)
    return [SealedKey(row["provider"], bytes(row["sealed"]), datetime.fromisoformat(row["set_at"])) for row in rows]


async def remove(tx: Transaction, provider: str, *, user_id: str) -> bool:
    """Delete a key; return whether there was one."""
    return bool(await tx.run("delete_provider_key", user_id=user_id, provider=provider))

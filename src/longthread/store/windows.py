"""The context windows of models, where an endpoint has said that they are smaller than was assumed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from longthread.store import log
from longthread.store.driver import Transaction, one

KEPT = timedelta(days=7)
"""How long what an endpoint said counts: it may have been guessed of an error, or its server have more room since."""


@dataclass(frozen=True, slots=True)
class AssumedWindow:
    """A window of `tokens` that a model is assumed to have. `endpoint` is where it is asked, without any secret: its
    provider, or the address of a server."""

    model: str
    endpoint: str
    tokens: int


async def learned(tx: Transaction, assumed: AssumedWindow, *, now: datetime | None = None) -> int | None:
    """What an endpoint has said instead, in tokens; None: nothing yet, or so long ago that it is tried again."""
    since = ((now or datetime.now(UTC)) - KEPT).isoformat(timespec="microseconds")
    row = await one(
        tx, "select_window", model=assumed.model, endpoint=assumed.endpoint, assumed=assumed.tokens, since=since
    )
    return int(row["tokens"]) if row else None


async def learn(tx: Transaction, assumed: AssumedWindow, tokens: int) -> None:
    """Keep what an endpoint has said, in the place of what it said before."""
    await tx.run(
        "save_window",
        model=assumed.model,
        endpoint=assumed.endpoint,
        assumed=assumed.tokens,
        tokens=tokens,
        learned_at=log.now(),
    )

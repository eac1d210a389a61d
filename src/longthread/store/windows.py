"""The context windows of models, where an endpoint has said that they are smaller than was assumed."""

from __future__ import annotations

from dataclasses import dataclass

from longthread.store import log
from longthread.store.driver import Transaction, one


@dataclass(frozen=True, slots=True)
class Assumed:
    """A window of `tokens` that a model is assumed to have. `endpoint` is where it is asked, without any secret: its
    provider, or the address of a server."""

    model: str
    endpoint: str
    tokens: int


async def learned(tx: Transaction, assumed: Assumed) -> int | None:
    """What an endpoint has said instead, in tokens; None: nothing yet."""
    row = await one(tx, "select_window", model=assumed.model, endpoint=assumed.endpoint, assumed=assumed.tokens)
    return int(row["tokens"]) if row else None


async def learn(tx: Transaction, assumed: Assumed, tokens: int) -> None:
    """Keep what an endpoint has said, in the place of what it said before."""
    await tx.run(
        "save_window",
        model=assumed.model,
        endpoint=assumed.endpoint,
        assumed=assumed.tokens,
        tokens=tokens,
        learned_at=log.now(),
    )

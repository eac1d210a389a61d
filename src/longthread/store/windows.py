"""What endpoints showed of their models: a smaller context window than assumed, and the protocol that a model speaks
best."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from longthread.model.run import ProbedProtocol
from longthread.store import log
from longthread.store.driver import Transaction, one

KEPT = timedelta(days=7)
"""How long an endpoint's report is valid: it may be a guess from an error, or the server may have grown."""


@dataclass(frozen=True, slots=True)
class AssumedWindow:
    """A model's assumed window in `tokens`. `endpoint` is its provider or server address, without secrets."""

    model: str
    endpoint: str
    tokens: int


async def learned(tx: Transaction, assumed: AssumedWindow, *, now: datetime | None = None) -> int | None:
    """Return the window in tokens that an endpoint reported; None: none, or too long ago to trust."""
    since = ((now or datetime.now(UTC)) - KEPT).isoformat(timespec="microseconds")
    row = await one(
        tx, "select_window", model=assumed.model, endpoint=assumed.endpoint, assumed=assumed.tokens, since=since
    )
    return int(row["tokens"]) if row else None


async def learn(tx: Transaction, assumed: AssumedWindow, tokens: int) -> None:
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


async def protocols(tx: Transaction) -> dict[str, ProbedProtocol]:
    """Return the protocols that probes found, by the name of the model: of several endpoints the newest one's."""
    return {row["model"]: row["protocol"] for row in await tx.fetch("select_model_protocols")}


async def put_protocol(tx: Transaction, model: str, endpoint: str, protocol: ProbedProtocol) -> None:
    """Store the protocol that a probe found, instead of an earlier one."""
    await tx.run("put_model_protocol", model=model, endpoint=endpoint, protocol=protocol, probed_at=log.now())

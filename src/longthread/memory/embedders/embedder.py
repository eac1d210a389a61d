"""Vectors of texts: who makes them, and how they are kept for entries."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


MOST_NUMBERS = 16_000
"""Numbers of a vector that every store can keep."""


class Embedder(Protocol):
    """Makes vectors of texts. It may fail in any way: recall then does without."""

    @property
    def name(self) -> str:
        """Which model it is, as `provider:model`: vectors of different names are never compared."""
        ...

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """One vector for each text that is to be found."""
        ...

    async def query(self, text: str) -> Vectors:
        """The vector of a text that is asked."""
        ...


class EmbedderFailed(Exception):  # told apart from errors of the product
    """An embedder gave no vectors that can be used. `cause` is why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(reason_of(cause))
        self.cause = cause


async def made_by(make: Callable[[], Awaitable[Any]], seconds: float, shape: tuple[int, ...] = ()) -> Vectors:
    """What an embedder makes, with length 1: every call of one goes through here.

    Args:
        seconds: how long it may take.
        shape: what the vectors have before their numbers: `(n,)` where there are to be n.

    Raises:
        EmbedderFailed: it raised something, took too long, or gave something else.
    """
    given = await answer(make, seconds)
    try:
        vectors = unit(given)
    except ValueError as error:
        raise EmbedderFailed(error) from error
    if vectors.shape[:-1] != shape:
        raise EmbedderFailed(ValueError(f"the embedder gave vectors of shape {vectors.shape} for {shape or 'a text'}"))
    return vectors


async def answer(make: Callable[[], Awaitable[Any]], seconds: float) -> Vectors:
    """What an embedder makes, as it is.

    Raises:
        EmbedderFailed: it raised something, took too long, or gave something else than numbers.
    """
    try:
        async with asyncio.timeout(seconds):
            given = np.asarray(await make(), dtype=np.float32)
            if not np.isfinite(given).all():
                raise ValueError("it gave numbers that are none")
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise EmbedderFailed(RuntimeError("what it waited for was cancelled")) from error
    except Exception as error:  # each embedder raises what it likes, and recall goes on with keywords
        raise EmbedderFailed(error) from error
    return given


def is_cancelled() -> bool:
    """Whether it is the running task that was cancelled, and not what it has waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    lines = str(error).strip().splitlines()
    if not lines and isinstance(error, TimeoutError):
        return "it took too long"
    return lines[0] if lines else type(error).__name__


def called(embedder: Embedder) -> str:
    """An embedder as people know it: its model, and where it is asked if it says so in `address`."""
    address = getattr(embedder, "address", None)
    return f"{embedder.name} at {address}" if address else embedder.name


def unit(vectors: Vectors) -> Vectors:
    """The vectors, in the last axis, with length 1; those without length as zeros.

    Raises:
        ValueError: they are none: there are no numbers, or some are none.
    """
    given = np.asarray(vectors, dtype=np.float32)
    if given.ndim == 0 or given.shape[-1] == 0 or not np.isfinite(given).all():
        raise ValueError("it gave no vectors, or some with numbers that are none")
    if given.shape[-1] > MOST_NUMBERS:
        raise ValueError(f"it gave vectors of {given.shape[-1]:,} numbers, and {MOST_NUMBERS:,} can be kept")
    lengths = np.linalg.norm(given, axis=-1, keepdims=True)
    out: Vectors = np.divide(given, lengths, out=np.zeros_like(given), where=lengths > 0)
    return out

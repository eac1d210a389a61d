"""The interface of embedders, and checks of what they return."""

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
    """Embeds texts. It may fail in any way: recall then works without it."""

    @property
    def name(self) -> str:
        """The model as `provider:model`: vectors of different names are never compared."""
        ...

    async def documents(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text to be searched."""
        ...

    async def query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        ...


class EmbedderFailed(Exception):  # told apart from errors of the product
    """An embedder returned no usable vectors; `cause` says why."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(reason_of(cause))
        self.cause = cause


async def made_by(make: Callable[[], Awaitable[Any]], seconds: float, shape: tuple[int, ...] = ()) -> Vectors:
    """Call an embedder and normalise its vectors to length 1; every call of one goes through here.

    Args:
        seconds: the timeout.
        shape: the vectors' leading axes: `(n,)` for n vectors.

    Raises:
        EmbedderFailed: it raised, timed out, or returned something else.
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
    """Return an embedder's result unchanged; EmbedderFailed if it raised, timed out, or returned no numbers."""
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
    """Whether the running task itself was cancelled, and not what it awaited."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def reason_of(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if not lines and isinstance(error, TimeoutError):
        return "it took too long"
    return lines[0] if lines else type(error).__name__


def called(embedder: Embedder) -> str:
    """Name an embedder for people: its model, and its `address` if it has one."""
    address = getattr(embedder, "address", None)
    return f"{embedder.name} at {address}" if address else embedder.name


def unit(vectors: Vectors) -> Vectors:
    """Normalise vectors in the last axis to length 1, or 0; ValueError for no numbers, too many, or non-finite ones."""
    given = np.asarray(vectors, dtype=np.float32)
    if given.ndim == 0 or given.shape[-1] == 0 or not np.isfinite(given).all():
        raise ValueError("it gave no vectors, or some with numbers that are none")
    if given.shape[-1] > MOST_NUMBERS:
        raise ValueError(f"it gave vectors of {given.shape[-1]:,} numbers, and {MOST_NUMBERS:,} can be kept")
    lengths = np.linalg.norm(given, axis=-1, keepdims=True)
    out: Vectors = np.divide(given, lengths, out=np.zeros_like(given), where=lengths > 0)
    return out

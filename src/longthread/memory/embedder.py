"""Embedders: their interface, checks of what they return, and calls that survive one that fails."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longthread.errors.base import convert_errors

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


class EmbedderFailed(Exception):  # distinct from errors of the product
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
        with convert_errors(EmbedderFailed, keep=()):
            async with asyncio.timeout(seconds):
                given = np.asarray(await make(), dtype=np.float32)
                if not np.isfinite(given).all():
                    raise ValueError("it gave numbers that are none")
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise EmbedderFailed(RuntimeError("what it waited for was cancelled")) from error
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


def name_embedder(embedder: Embedder) -> str:
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


QUERY_SECONDS = 10.0
"""How long an embedder may take for a question."""
REST_SECONDS = 60.0
"""How long one that failed is not asked again; with each further failure twice as long."""
MOST_REST_SECONDS = 960.0
"""But no longer than this."""
MOST_TEXT = 4000
"""Characters of a text that are embedded: models read no more, or refuse more."""
ANY = "."
"""What every embedder takes that works."""
_NOT_ABOUT_THE_TEXT = frozenset({401, 403, 404, 408, 429, 502, 503, 504})
"""Answers of a server that tell of a key, a model, a limit or the server."""

_logger = logging.getLogger(__name__)


class EmbedderPause:
    """How long not to call a failed embedder: one that is down must not slow every question and pass."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """Seconds until it may be called; 0 if it may now."""
        return max(0.0, self._until - time.monotonic())

    def note_failure(self) -> None:
        seconds = min(REST_SECONDS * 2.0 ** min(self._failures, 16), MOST_REST_SECONDS)
        self._failures += 1
        self._until = time.monotonic() + seconds

    def note_success(self) -> None:
        self._failures, self._until = 0, 0.0


class Asker:
    """An optional embedder. Safe to share between tasks.
    `making` is the pause after failures with documents: an embedder may fail at these alone."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self.making = EmbedderPause()
        self._asking = EmbedderPause()
        self._in_haste = EmbedderPause()

    @property
    def model(self) -> str | None:
        return self.embedder.name if self.embedder else None

    async def vector(self, text: str, seconds: float | None = None) -> tuple[Vectors | None, list[str]]:
        """Embed a question within `seconds` (default QUERY_SECONDS); without a vector, return the reasons.
        A shorter timeout, when exceeded, pauses the embedder only for callers with short timeouts."""
        if self.embedder is None:
            return None, []
        embedder, limit = self.embedder, QUERY_SECONDS if seconds is None else seconds
        in_haste = limit < QUERY_SECONDS
        if not self._asking.seconds_left and not (in_haste and self._in_haste.seconds_left):
            try:
                found = await made_by(partial(embedder.query, text[:MOST_TEXT]), limit)
            except EmbedderFailed as error:
                _logger.warning("The embedder %s failed: %s", name_embedder(embedder), error)
                if await is_about_the_text(partial(made_by, partial(embedder.query, ANY), limit), error):
                    return None, [f"The embedder {name_embedder(embedder)} refused this: found by keywords alone."]
                slow = in_haste and isinstance(error.cause, TimeoutError)
                (self._in_haste if slow else self._asking).note_failure()
            else:
                for rest in (self._asking, self._in_haste) if in_haste else (self._asking,):
                    rest.note_success()
                return found, []
        return None, [f"The embedder {name_embedder(embedder)} does not work: found by keywords alone."]

    @property
    def seconds_left(self) -> float:
        """Seconds until it may make vectors of documents."""
        return max(self.making.seconds_left, self._asking.seconds_left)

    def may_make(self) -> bool:
        return self.embedder is not None and not self.seconds_left

    def did_not_make(self, what: str, error: EmbedderFailed) -> str:
        """Note a failure to embed `what`; return the warning."""
        assert self.embedder is not None
        self.making.note_failure()
        told = f"The embedder {name_embedder(self.embedder)} does not work: {error}"
        _logger.warning("%s got no vectors; none are made for %.0f s. %s", what, self.making.seconds_left, told)
        return told

    def rests(self) -> list[str]:
        """Return why an existing embedder is not called."""
        if self.embedder is None:
            return []
        return [f"The embedder {name_embedder(self.embedder)} did not work, and is not asked again for a while."]


async def is_about_the_text(ask_for_any: Callable[[], Awaitable[object]], error: EmbedderFailed) -> bool:
    """Whether a failed embedder works with another text: only then the text is the cause."""
    if isinstance(error.cause, OSError) or getattr(error.cause, "status_code", None) in _NOT_ABOUT_THE_TEXT:
        return False
    try:
        await ask_for_any()
    except EmbedderFailed:  # the first error is the one that is reported
        return False
    return True


MOST_REFUSED = 16
"""So many refused one after the other, before any was taken: the embedder does not work, whatever it says."""

Make = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Makes vectors, one a text; raises EmbedderFailed."""


@dataclass(slots=True)
class BatchVectors:
    """Vectors by place, or why there are none. After a `failure`, the texts from `end` on have neither."""

    end: int
    vectors: dict[int, Vectors] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    failure: EmbedderFailed | None = None


async def make_vectors(make: Make, texts: Sequence[str]) -> BatchVectors:
    """Embed texts at once; if that fails, one by one, to learn whether a text or the embedder is the cause."""
    made = BatchVectors(len(texts))
    found = await _try_make(make, texts)
    if isinstance(found, EmbedderFailed):  # whether it is about a text is seen by asking again
        await _one_by_one(make, texts, made)
    else:
        made.vectors = dict(enumerate(found))
    return made


async def _try_make(make: Make, texts: Sequence[str]) -> Vectors | EmbedderFailed:
    try:
        return await make(texts)
    except EmbedderFailed as error:
        return error


async def _one_by_one(make: Make, texts: Sequence[str], made: BatchVectors) -> None:
    for place, text in enumerate(texts):
        found = await _try_make(make, [text])
        if not isinstance(found, EmbedderFailed):
            [made.vectors[place]] = found
            continue
        if len(made.refused) + 1 >= MOST_REFUSED and not made.vectors:
            # All of them are embedded again later: none is skipped.
            made.end, made.refused, made.failure = 0, {}, found
            return
        if not await is_about_the_text(lambda: make([ANY]), found):
            made.end, made.failure = place, found
            return
        made.refused[place] = str(found)

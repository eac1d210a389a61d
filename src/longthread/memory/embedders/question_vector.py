"""Embeds questions, and continues without an embedder that fails."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

from longthread.memory.embedders.embedder import Embedder, EmbedderFailed, Vectors, called, made_by

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

    def failed(self) -> None:
        seconds = min(REST_SECONDS * 2.0 ** min(self._failures, 16), MOST_REST_SECONDS)
        self._failures += 1
        self._until = time.monotonic() + seconds

    def worked(self) -> None:
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
                _logger.warning("The embedder %s failed: %s", called(embedder), error)
                if await is_about_the_text(partial(made_by, partial(embedder.query, ANY), limit), error):
                    return None, [f"The embedder {called(embedder)} refused this: found by keywords alone."]
                slow = in_haste and isinstance(error.cause, TimeoutError)
                (self._in_haste if slow else self._asking).failed()
            else:
                for rest in (self._asking, self._in_haste) if in_haste else (self._asking,):
                    rest.worked()
                return found, []
        return None, [f"The embedder {called(embedder)} does not work: found by keywords alone."]

    @property
    def seconds_left(self) -> float:
        """Seconds until it may make vectors of documents."""
        return max(self.making.seconds_left, self._asking.seconds_left)

    def may_make(self) -> bool:
        return self.embedder is not None and not self.seconds_left

    def did_not_make(self, what: str, error: EmbedderFailed) -> str:
        """Note a failure to embed `what`; return the warning."""
        assert self.embedder is not None
        self.making.failed()
        told = f"The embedder {called(self.embedder)} does not work: {error}"
        _logger.warning("%s got no vectors; none are made for %.0f s. %s", what, self.making.seconds_left, told)
        return told

    def rests(self) -> list[str]:
        """Return why an existing embedder is not called."""
        if self.embedder is None:
            return []
        return [f"The embedder {called(self.embedder)} did not work, and is not asked again for a while."]


async def is_about_the_text(ask_for_any: Callable[[], Awaitable[object]], error: EmbedderFailed) -> bool:
    """Whether a failed embedder works with another text: only then the text is the cause."""
    if isinstance(error.cause, OSError) or getattr(error.cause, "status_code", None) in _NOT_ABOUT_THE_TEXT:
        return False
    try:
        await ask_for_any()
    except EmbedderFailed:  # the first error is the one that is told
        return False
    return True

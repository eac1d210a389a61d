"""Asks an embedder for the vector of a question, and does without one that fails."""

from __future__ import annotations

import asyncio
import logging
import time

from longthread.memory.embedding import Embedder, Vectors, unit

QUERY_SECONDS = 10.0
"""How long an embedder may take for a question."""
REST_SECONDS = 60.0
"""How long one that failed is not asked again."""

_logger = logging.getLogger(__name__)


class Asker:
    """An embedder, if there is one. Safe to share between tasks."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._resting_until = 0.0

    @property
    def model(self) -> str | None:
        """The embedder's model, as `provider:model`."""
        return self.embedder.name if self.embedder else None

    async def vector(self, text: str, seconds: float | None = None) -> tuple[Vectors | None, list[str]]:
        """The vector of a text, of length 1, if it takes no longer than `seconds` (QUERY_SECONDS); without one, why."""
        if self.embedder is None:
            return None, []
        if time.monotonic() >= self._resting_until:
            try:
                async with asyncio.timeout(QUERY_SECONDS if seconds is None else seconds):
                    return unit(await self.embedder.query(text)), []
            except Exception as error:  # noqa: BLE001 - whatever keeps an embedder from working, words are enough
                _logger.warning("Embedder %s failed: %s", self.embedder.name, reason_of(error))
                # Not asked again at once: a server that is down must not slow every question.
                self._resting_until = time.monotonic() + REST_SECONDS
        return None, [f"The embedder {self.embedder.name} does not work: found by keywords alone."]


def reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

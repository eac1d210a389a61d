"""The context windows of models: from settings and profiles, or as their endpoints report them."""

from __future__ import annotations

import logging
import time
from math import inf

from longthread.errors import StoreError
from longthread.llm.chat import ChatModel
from longthread.llm.models import context_window
from longthread.settings import Settings
from longthread.store import windows
from longthread.store.driver import Driver
from longthread.store.windows import AssumedWindow

_READ_AGAIN = 3600.0
"""How often a process reads the learned windows again, in seconds."""

_logger = logging.getLogger(__name__)


class ContextWindows:
    """The windows of the models of one process. What an endpoint reports is stored for all processes."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._learned: dict[AssumedWindow, tuple[int | None, float]] = {}

    async def of(self, *models: ChatModel) -> int:
        """Return the tokens that fit into one call of any of these models. Raises StoreError: learned windows cannot
        be read."""
        return min([await self._of(model) for model in models])

    async def _of(self, model: ChatModel) -> int:
        assumed = self._assumed(model)
        known, read_at = self._learned.get(assumed, (None, -inf))
        if time.monotonic() - read_at > _READ_AGAIN:
            async with self._store.reading() as tx:
                known = await windows.learned(tx, assumed)
            self._learned[assumed] = known, time.monotonic()
        return min(assumed.tokens, known or assumed.tokens)

    async def learn(self, model: ChatModel, tokens: int) -> None:
        """Store the window that a model's endpoint reports. If that fails, this process still knows it."""
        assumed = self._assumed(model)
        self._learned[assumed] = tokens, time.monotonic()
        try:
            async with self._store.writing() as tx:
                await windows.learn(tx, assumed, tokens)
        except StoreError as error:
            _logger.warning("The context window of %s could not be stored: %s", assumed.model, error)

    def _assumed(self, model: ChatModel) -> AssumedWindow:
        return AssumedWindow(model.name, model.address, context_window(model, self._settings))

"""The context windows of models: as settings and profiles say, or as their endpoints have said since."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel

from longthread.errors import StoreError
from longthread.llm.models import context_window, name_of
from longthread.settings import Settings
from longthread.store import windows
from longthread.store.driver import Driver
from longthread.store.windows import AssumedWindow

_ADDRESSES = (
    *("openai_api_base", "azure_endpoint", "anthropic_api_url", "groq_api_base"),
    *("api_base", "base_url", "endpoint", "endpoint_url"),
)
"""What the classes of chat models call the address that they ask."""

_READ_AGAIN = timedelta(hours=1)
"""After which a process that goes on and on looks whether what was learned still counts."""

_logger = logging.getLogger(__name__)


class ContextWindows:
    """The windows of the models of one process. What an endpoint says is kept in the store for all."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._learned: dict[AssumedWindow, tuple[int | None, datetime]] = {}

    async def of(self, *models: BaseChatModel) -> int:
        """How many tokens fit into one call of any of these.

        Raises:
            StoreError: what was learned cannot be read.
        """
        return min([await self._of(model) for model in models])

    async def _of(self, model: BaseChatModel) -> int:
        assumed = self._assumed(model)
        known, read_at = self._learned.get(assumed, (None, datetime.min.replace(tzinfo=UTC)))
        if datetime.now(UTC) - read_at > _READ_AGAIN:
            async with self._store.reading() as tx:
                known = await windows.learned(tx, assumed)
            self._learned[assumed] = known, datetime.now(UTC)
        return min(assumed.tokens, known or assumed.tokens)

    async def learn(self, model: BaseChatModel, tokens: int) -> None:
        """Keep what a model's endpoint has said of its window. Where that cannot be stored, this process knows it."""
        assumed = self._assumed(model)
        self._learned[assumed] = tokens, datetime.now(UTC)
        try:
            async with self._store.writing() as tx:
                await windows.learn(tx, assumed, tokens)
        except StoreError as error:
            _logger.warning("The context window of %s could not be stored: %s", assumed.model, error)

    def _assumed(self, model: BaseChatModel) -> AssumedWindow:
        return AssumedWindow(name_of(model), endpoint_of(model), context_window(model, self._settings))


def endpoint_of(model: BaseChatModel) -> str:
    """Where a model is asked: a server's address without what may be secret in it, or the class of its provider."""
    for name in _ADDRESSES:
        address = getattr(model, name, None)
        if isinstance(address, str) and (parts := urlsplit(address)).hostname:
            port = f":{parts.port}" if parts.port else ""
            return f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"
    return model._llm_type

"""Models are created once, for all runs that want the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Any

from longthread.llm.chat import ChatModel
from longthread.llm.models import RunModels, model_name
from longthread.llm.provider_keys import Connection, apply_connection
from longthread.settings import Settings

MODELS = 16
"""Cached models; the oldest is evicted first. A run may still use it; the server closes its idle connections."""
ModelFactory = Callable[[str, Settings], Any]
"""Makes the model of a name: a `ChatModel`, or one of LangChain's."""
NO_CONNECTIONS: Mapping[str, Connection] = MappingProxyType({})
_SETTINGS = {"temperature": "temperature", "max_tokens": "max_tokens", "timeout_seconds": "timeout"}
"""Keys of an agent's config, and the settings that they override."""


class ModelCache:
    def __init__(self, settings: Settings, factory: ModelFactory) -> None:
        self._settings = settings
        self._factory = factory
        self._made: dict[tuple[str, Settings], ChatModel] = {}

    def models(
        self, name: str | None, config: Mapping[str, Any], connections: Mapping[str, Connection] = NO_CONNECTIONS
    ) -> RunModels:
        """Return a run's models: as named, else the agent's config's, else the settings'. `connections` are what its
        user has connected, by provider. Raises ModelUnavailable."""
        chosen = model_name(name or config.get("model"), self._settings)
        fallback = config.get("fallback_model") or self._settings.fallback_model
        fallback = fallback if fallback != chosen else None
        return RunModels(
            name=chosen,
            model=self._model(chosen, config, connections),
            settings=self._settings.model_copy(update=_own(config)),
            own={ours: theirs for theirs, ours in _SETTINGS.items() if theirs in config},
            fallback=self._model(fallback, config, connections) if fallback else None,
            fallback_name=fallback or "",
            retries=config.get("retry_attempts", self._settings.retry_attempts),
        )

    async def close(self) -> None:
        async with AsyncExitStack() as stack:  # one that fails to close leaves none of the others open
            for model in self._made.values():
                stack.push_async_callback(model.close)

    def _model(self, name: str, config: Mapping[str, Any], connections: Mapping[str, Connection]) -> ChatModel:
        own = _own(config)
        made_as, settings = apply_connection(name, self._settings, connections)
        key = json.dumps([name, own]), settings
        if key not in self._made:
            while len(self._made) >= MODELS:
                del self._made[next(iter(self._made))]
            self._made[key] = _as_ours(self._factory(made_as, settings.model_copy(update=own) if own else settings))
        return self._made[key]


def _own(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that an agent's config overrides."""
    return {ours: config[theirs] for theirs, ours in _SETTINGS.items() if theirs in config}


def _as_ours(made: Any) -> ChatModel:
    if hasattr(made, "astream"):
        from longthread.llm.langchain import LangChainModel

        return LangChainModel(made)
    model: ChatModel = made
    return model

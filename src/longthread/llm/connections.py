"""The providers and servers that users have connected, with their keys, and the models made with them.

A model is created once, for all runs that want the same.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from pydantic import SecretStr

from longthread.errors import ModelUnavailable, SecretKeyUnusable
from longthread.llm.chat import ChatModel
from longthread.llm.models import DEMO, RunModels, model_name
from longthread.llm.providers import LOCAL_SERVERS, OWN, ROWS, address_of, key_for, split_name
from longthread.settings import Settings
from longthread.store import endpoints
from longthread.store.driver import Driver
from longthread.store.endpoints import Sealer

CONNECTION = rf"^(?:{'|'.join(row for row in ROWS if row not in LOCAL_SERVERS)}|{OWN}:[a-z0-9][a-z0-9._-]{{0,39}})$"
"""What a person connects: a provider by its id, or a server of their own by its name: `own:NAME`."""
_READ_AGAIN_SECONDS = 10.0
"""How long a process may use a key that another one has replaced."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Connection:
    """Where a provider or server is asked, and the key that was given for it; None: it wants none."""

    url: str
    key: SecretStr | None


@dataclass(frozen=True, slots=True)
class StoredConnection:
    """A connection as it is stored; None if it cannot be opened: LONGTHREAD_SECRET_KEY or the provider's address is
    another one now."""

    provider: str
    set_at: datetime
    connection: Connection | None


class ProviderKeys:
    """The providers and servers that one store's users have connected. They are read once for a while."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._sealer = Sealer(settings)
        self._settings = settings
        self._known: dict[str, tuple[float, Mapping[str, Connection]]] = {}

    async def of(self, user_id: str) -> Mapping[str, Connection]:
        """Return the user's connections that can be used, by provider. Raises StoreError."""
        read_at, known = self._known.get(user_id, (0.0, {}))
        if not read_at or time.monotonic() - read_at > _READ_AGAIN_SECONDS:
            stored = await self.list_connections(user_id)
            known = {each.provider: each.connection for each in stored if each.connection is not None}
            self._known[user_id] = time.monotonic(), known
        return known

    async def list_connections(self, user_id: str) -> list[StoredConnection]:
        """Return all connections of a user. Raises StoreError."""
        async with self._store.reading() as tx:
            found = await endpoints.list_keys(tx, user_id)
        return [
            StoredConnection(each.provider, each.set_at, self._unseal_connection(each.sealed, each.provider, user_id))
            for each in found
        ]

    async def save(self, provider: str, connection: Connection, *, user_id: str) -> None:
        """Store a connection in the place of the one before. Raises SecretKeyUnusable, StoreError."""
        if connection.key is not None and connection.url == address_of(provider, self._settings):
            text, purpose = connection.key.get_secret_value(), self._purpose(provider, user_id)
        else:
            key = None if connection.key is None else connection.key.get_secret_value()
            text, purpose = json.dumps({"url": connection.url, "key": key}), _purpose_elsewhere(provider, user_id)
        async with self._store.writing() as tx:
            await endpoints.save_key(tx, provider, self._sealer.seal(text, purpose), user_id=user_id)
        self._known.pop(user_id, None)

    async def remove(self, provider: str, *, user_id: str) -> bool:
        """Delete a connection; return whether there was one. Raises StoreError."""
        async with self._store.writing() as tx:
            found = await endpoints.remove_key(tx, provider, user_id=user_id)
        self._known.pop(user_id, None)
        return found

    def _unseal_connection(self, sealed: bytes, provider: str, user_id: str) -> Connection | None:
        try:
            if (key := self._sealer.unseal(sealed, self._purpose(provider, user_id))) is not None:
                return Connection(address_of(provider, self._settings), SecretStr(key))
            text = self._sealer.unseal(sealed, _purpose_elsewhere(provider, user_id))
        except SecretKeyUnusable as error:
            _logger.warning("%s", error)
            return None
        if text is None:
            return None
        given = json.loads(text)
        return Connection(given["url"], None if given["key"] is None else SecretStr(given["key"]))

    def _purpose(self, provider: str, user_id: str) -> str:
        """What a key is sealed for: a key that was entered for one address cannot be opened for another."""
        address = address_of(provider, self._settings)
        row = ROWS.get(provider)
        at = "" if row is not None and address in row.addresses[:1] else f" at {address}"
        return f"key of {provider} for {user_id}{at}"


def _purpose_elsewhere(provider: str, user_id: str) -> str:
    """What a key is sealed for together with its address, so that it goes to no other."""
    return f"connection of {provider} for {user_id}"


def apply_connection(name: str, settings: Settings, connections: Mapping[str, Connection]) -> tuple[str, Settings]:
    """Return the name and the settings by which a model is made with what its user has connected: the key goes to its
    provider, whatever else is configured. A key of OpenAI is not used where `base_url` names another."""
    try:
        provider, model = ("", name) if name == DEMO else split_name(name, settings)
    except ModelUnavailable:  # which is reported when the model is made
        return name, settings
    if provider == OWN:
        server, _, model = model.partition("/")
        provider = f"{OWN}:{server}"
    found = connections.get(provider)
    if found is None or not model or (provider == "openai" and settings.base_url):
        return name, settings
    if found.url == address_of(provider, settings):
        setting = ROWS[provider].key_setting if provider in ROWS else "api_key"
        used = {setting: found.key, "base_url": None, "model": name}
        return name, settings.model_copy(update=used)
    used = {"api_key": found.key, "base_url": found.url, "model": name}
    return f"openai:{model}", settings.model_copy(update=used)


def environment_key(provider: str, settings: Settings) -> SecretStr | None:
    """Return the key of the settings that was given for the provider's address."""
    return key_for(address_of(provider, settings), settings)


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

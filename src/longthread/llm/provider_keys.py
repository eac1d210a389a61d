"""The keys that users have entered, for the models of their runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from pydantic import SecretStr

from longthread.errors import ModelUnavailable, SecretKeyUnusable
from longthread.llm.credentials import key_for
from longthread.llm.models import DEMO
from longthread.llm.providers import ADDRESSES, address_of, provider_of
from longthread.settings import Settings
from longthread.store.access import provider_keys
from longthread.store.access.sealing import Sealer
from longthread.store.driver import Driver

KeyProvider = Literal["anthropic", "deepseek", "google_genai", "groq", "mistralai", "openai", "xai"]
"""A provider whose key can be entered."""
PROVIDERS: tuple[KeyProvider, ...] = get_args(KeyProvider)
_FIELDS = {"anthropic": "anthropic_api_key", "google_genai": "google_api_key", "openai": "openai_api_key"}
"""The settings of keys, by provider; those of others are `api_key`."""
_READ_AGAIN_SECONDS = 10.0
"""How long a process may use a key that another one has replaced."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is stored; `key` is None if it cannot be opened: LONGTHREAD_SECRET_KEY or the provider's
    address is another one now."""

    provider: str
    set_at: datetime
    key: SecretStr | None


class ProviderKeys:
    """The keys of one store's users. They are read once for a while."""

    def __init__(self, store: Driver, settings: Settings) -> None:
        self._store = store
        self._sealer = Sealer(settings)
        self._settings = settings
        self._known: dict[str, tuple[float, Mapping[str, SecretStr]]] = {}

    async def of(self, user_id: str) -> Mapping[str, SecretStr]:
        """Return the user's keys that can be used, by provider. Raises StoreError."""
        read_at, known = self._known.get(user_id, (0.0, {}))
        if not read_at or time.monotonic() - read_at > _READ_AGAIN_SECONDS:
            known = {each.provider: each.key for each in await self.stored(user_id) if each.key is not None}
            self._known[user_id] = time.monotonic(), known
        return known

    async def stored(self, user_id: str) -> list[StoredKey]:
        """Return all keys of a user. Raises StoreError."""
        async with self._store.reading() as tx:
            found = await provider_keys.of_user(tx, user_id)
        return [
            StoredKey(each.provider, each.set_at, self._opened(each.sealed, each.provider, user_id)) for each in found
        ]

    async def save(self, provider: KeyProvider, key: str, *, user_id: str) -> None:
        """Store a key. Raises SecretKeyUnusable, StoreError."""
        sealed = self._sealer.seal(key, self._purpose(provider, user_id))
        async with self._store.writing() as tx:
            await provider_keys.save(tx, provider, sealed, user_id=user_id)
        self._known.pop(user_id, None)

    async def remove(self, provider: KeyProvider, *, user_id: str) -> bool:
        """Delete a key; return whether there was one. Raises StoreError."""
        async with self._store.writing() as tx:
            found = await provider_keys.remove(tx, provider, user_id=user_id)
        self._known.pop(user_id, None)
        return found

    def _opened(self, sealed: bytes, provider: str, user_id: str) -> SecretStr | None:
        try:
            key = self._sealer.unseal(sealed, self._purpose(provider, user_id))
        except SecretKeyUnusable as error:
            _logger.warning("%s", error)
            key = None
        return None if key is None else SecretStr(key)

    def _purpose(self, provider: str, user_id: str) -> str:
        """What a key is sealed for: a key that was entered for one address cannot be opened for another."""
        address = address_of(provider, self._settings)
        at = "" if address == ADDRESSES.get(provider) else f" at {address}"
        return f"key of {provider} for {user_id}{at}"


def with_key(name: str, settings: Settings, keys: Mapping[str, SecretStr]) -> Settings:
    """Return the settings by which a model of this name is made with the user's own key, if there is one. It goes to
    its provider, whatever else is configured. OpenAI's is not used where `base_url` names another."""
    try:
        provider = "" if name == DEMO else provider_of(name, settings)
    except ModelUnavailable:  # which is told when the model is made
        return settings
    key = keys.get(provider)
    if key is None or (provider == "openai" and settings.base_url):
        return settings
    return settings.model_copy(update={_FIELDS.get(provider, "api_key"): key, "base_url": None, "model": name})


def environment_key(provider: KeyProvider, settings: Settings) -> SecretStr | None:
    """Return the key of the settings that was given for the provider's address."""
    return key_for(address_of(provider, settings), settings)

"""Keys, each with the address that it was given for. Whoever sends a key asks here by the address it calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from pydantic import SecretStr

from longthread.errors import ModelUnavailable
from longthread.llm.providers import LOCAL_SERVERS, address_of, provider_of
from longthread.settings import Settings

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Credential:
    """A key, and the address that it was given for: a base URL, or the name of a provider without one."""

    key: SecretStr
    address: str

    def belongs_to(self, address: str) -> bool:
        """Whether the key may be sent to this address: it has the same scheme, host and port."""
        return _origin_of(self.address) == _origin_of(address)


def key_for(address: str, settings: Settings) -> SecretStr | None:
    """Return the key of the settings that was given for an address; None: there is none."""
    return next((each.key for each in _credentials(settings) if each.belongs_to(address)), None)


def keys_for_others(address: str, settings: Settings) -> set[str]:
    """Return the keys of the settings that may not be sent to an address."""
    own = key_for(address, settings)
    keys = {settings.api_key, settings.openai_api_key, settings.anthropic_api_key, settings.google_api_key}
    keys |= {settings.memory_embedding_api_key}
    return {key.get_secret_value() for key in keys if key is not None and key != own}


def embedding_key(settings: Settings) -> tuple[str, SecretStr | None]:
    """Return the address of the embedder, and its key: its own, else the one that was given for that address."""
    address = settings.memory_embedding_base_url or settings.base_url or address_of("openai", settings)
    return address, settings.memory_embedding_api_key or key_for(address, settings)


def provider_embedding_key(provider: str, settings: Settings) -> SecretStr | None:
    """Return the key for a provider's embedder. The embedder's own is the provider's, unless it was given for
    MEMORY_EMBEDDING_BASE_URL."""
    own = None if settings.memory_embedding_base_url else settings.memory_embedding_api_key
    return own or key_for(address_of(provider, settings), settings)


def _credentials(settings: Settings) -> Iterator[Credential]:
    """Yield the keys of the settings, with a base URL its own first, else those of vendors first."""
    common = _common(settings)
    if common is not None and settings.base_url:
        yield common
    # Beside a server of one's own, nobody knows whose OPENAI_API_KEY is, unless OPENAI_BASE_URL says it.
    is_clear = not settings.base_url or settings.openai_base_url
    if settings.openai_api_key is not None:
        openai = Credential(settings.openai_api_key, address_of("openai", settings))
        if is_clear or (settings.base_url and openai.belongs_to(settings.base_url)):
            yield openai
    if settings.anthropic_api_key is not None:
        yield Credential(settings.anthropic_api_key, address_of("anthropic", settings))
    if settings.google_api_key is not None:
        yield Credential(settings.google_api_key, address_of("google_genai", settings))
    if common is not None and not settings.base_url:
        yield common


def _common(settings: Settings) -> Credential | None:
    """Return LLM_API_KEY. It is for LLM_BASE_URL, else for the provider of the configured model, and where neither is
    configured, for the embedder's address, else for OpenAI."""
    if settings.api_key is None:
        return None
    if settings.base_url:
        return Credential(settings.api_key, settings.base_url)
    if settings.model in (None, "demo"):
        address = settings.memory_embedding_base_url or address_of("openai", settings)
        return Credential(settings.api_key, address)
    try:
        provider = provider_of(settings.model, settings)
    except ModelUnavailable:  # which is told when the model is made
        return None
    # A server on this machine wants no key: this one is somebody else's.
    return None if provider in LOCAL_SERVERS else Credential(settings.api_key, address_of(provider, settings))


def _origin_of(address: str) -> tuple[str, str, int | None]:
    parts = urlsplit(address)
    try:
        port = parts.port
    except ValueError:
        port = -1
    return parts.scheme, parts.hostname or address, port or _PORTS.get(parts.scheme)

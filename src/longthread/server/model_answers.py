"""The answers about models and keys."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from longthread.llm.provider_keys import KeyProvider
from longthread.model.run import Protocol
from longthread.server.answers import Timestamp

ModelOrigin = Literal["configured", "demo", "local", "provider"]


class ModelInfo(TypedDict):
    """A model by its name in requests, and where it comes from: it is `configured`, the `demo`, of a server that was
    found on this machine (`local`), or what a provider lists for a key. `provider` is that provider, or the kind of
    that server. `protocol` is how the model speaks best, as a probe found; null: it was not probed."""

    name: str
    origin: ModelOrigin
    provider: str | None
    protocol: Protocol | None


class ModelProvider(TypedDict):
    """A provider. `key` says where its key is from, and never what it is; `set_at` is when a stored one was entered.
    `problem`: it refuses the key, does not answer, or the key was stored under another LONGTHREAD_SECRET_KEY."""

    provider: KeyProvider
    key: Literal["stored", "environment"] | None
    set_at: Timestamp | None
    problem: Literal["refused", "unreachable", "unreadable"] | None


class ModelServer(TypedDict):
    """A server on this machine, such as `ollama`."""

    kind: str
    url: str


class ModelList(TypedDict):
    """The models that can be asked. `default` is asked where none is named. `keys_allowed`: callers may enter keys."""

    default: str
    models: list[ModelInfo]
    providers: list[ModelProvider]
    servers: list[ModelServer]
    keys_allowed: bool


class KeyChecked(TypedDict):
    """The models that a provider lists for a key; null: it was not asked."""

    provider: KeyProvider
    models: list[str] | None

"""The answers about models and keys."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from longthread.llm.model_facts import WindowOrigin
from longthread.model.run import ProbedProtocol
from longthread.server.answers import Timestamp

ModelOrigin = Literal["configured", "demo", "local", "provider"]


class ModelInfo(TypedDict):
    """A model by its name in requests, and where it comes from: it is `configured`, the `demo`, of a server that was
    found on this machine (`local`), or what a provider lists for a key. `provider` is that provider, or the kind of
    that server. `protocol` is how the model speaks best, as a probe found; null: it was not probed."""

    name: str
    origin: ModelOrigin
    provider: str | None
    protocol: ProbedProtocol | None


class ModelProvider(TypedDict):
    """A provider that can be connected, or a user's own server: `own:NAME`. `name` and `chinese_name` are what it calls
    itself, `addresses` the base URLs among which one is chosen; none: its user gives one. `kind`: of a `local` server
    `addresses` says where it listens by default, and `own` connects it. `url` is where it is asked once it is
    `connected`. `key` says where its key is from, and never what it is; `set_at` is when it was stored. `problem`: it
    refuses the key, does not answer, or was stored under another LONGTHREAD_SECRET_KEY."""

    provider: str
    kind: Literal["vendor", "local", "own"]
    name: str
    chinese_name: str
    addresses: list[str]
    connected: bool
    url: str | None
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
    """The models that a provider lists for a key, and where it was asked; null: it was not asked, or has no list."""

    provider: str
    url: str
    models: list[str] | None


class ModelChecked(TypedDict):
    """A model that has answered. `window` is in tokens. Its `origin`: the `server` told it, it is `known` by the
    model's name, `measured` by a call that was refused, a `setting`, or `assumed`."""

    model: str
    window: int
    origin: WindowOrigin

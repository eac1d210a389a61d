"""For tests of agents: a model that follows a script, a provider that speaks it over a socket, a store that fails."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longthread.errors import ExtraMissing
from longthread.extras import PACKAGES, is_of_app
from longthread.testing.failpoints import Failpoints, KillAt
from longthread.testing.scripted import ModelCall, ScriptedModel, ScriptExhausted

if TYPE_CHECKING:
    from longthread.testing.langchain import ScriptedChatModel
    from longthread_testing.emulator import (
        Dropped,
        ProviderEmulator,
        ProviderRules,
        RecordedRequest,
        Refused,
        Slow,
        StreamError,
        broken_call,
    )

__all__ = [
    "Dropped",
    "Failpoints",
    "KillAt",
    "ModelCall",
    "ProviderEmulator",
    "ProviderRules",
    "RecordedRequest",
    "Refused",
    "ScriptExhausted",
    "ScriptedChatModel",
    "ScriptedModel",
    "Slow",
    "StreamError",
    "broken_call",
]


_EMULATOR = (
    "Dropped",
    "ProviderEmulator",
    "ProviderRules",
    "RecordedRequest",
    "Refused",
    "Slow",
    "StreamError",
    "broken_call",
)
_LAZY = {
    "ScriptedChatModel": "longthread.testing.langchain",
    **dict.fromkeys(_EMULATOR, "longthread_testing.emulator"),
}
"""Names that need LangChain, and the package longthread-testing."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_LAZY[name])
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0].replace("_", "-")
        if package not in PACKAGES and not is_of_app(error):
            raise
        extra = package if package in PACKAGES else "app"
        raise ExtraMissing(what=f"longthread.testing.{name}", package=package, extra=extra) from error
    return getattr(module, name)

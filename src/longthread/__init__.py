"""Longthread: an LLM agent's conversation as one append-only log.

These names are the public API, beside those of `longthread.conversation_state`,
`longthread.langgraph` and `longthread.testing`. Each is loaded when it
is first used, so that importing the package takes no time and needs none of the optional packages.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longthread import errors
    from longthread.errors import LongthreadError
    from longthread.langgraph import LongthreadSaver, LongthreadStore, MemoryMiddleware, recall_tool
    from longthread.memory.recall import Question, Recaller
    from longthread.memory.user_memories import Memories
    from longthread.model.memory import Statement
    from longthread.model.thread import Scope
    from longthread.runs.analyst import Analyst
    from longthread.server.app import create_app
    from longthread.settings import Settings
    from longthread.store.memories import Owner
    from longthread.store.open import open_store
    from longthread.tools.catalog.definitions import Catalog

__version__ = "0.1.0"

__all__ = [
    "Analyst",
    "Catalog",
    "LongthreadError",
    "LongthreadSaver",
    "LongthreadStore",
    "Memories",
    "MemoryMiddleware",
    "Owner",
    "Question",
    "Recaller",
    "Scope",
    "Settings",
    "Statement",
    "create_app",
    "errors",
    "open_store",
    "recall_tool",
]

_MODULES = {
    "Analyst": "longthread.runs.analyst",
    "Catalog": "longthread.tools.catalog.definitions",
    "LongthreadError": "longthread.errors",
    "LongthreadSaver": "longthread.langgraph",
    "LongthreadStore": "longthread.langgraph",
    "Memories": "longthread.memory.user_memories",
    "MemoryMiddleware": "longthread.langgraph",
    "Owner": "longthread.store.memories",
    "Question": "longthread.memory.recall",
    "Recaller": "longthread.memory.recall",
    "Scope": "longthread.model.thread",
    "Settings": "longthread.settings",
    "Statement": "longthread.model.memory",
    "create_app": "longthread.server.app",
    "open_store": "longthread.store.open",
    "recall_tool": "longthread.langgraph",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("longthread.errors")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES[name])
    except ModuleNotFoundError as error:
        from longthread.errors import ExtraMissing
        from longthread.extras import is_of_app

        if not is_of_app(error):
            raise
        raise ExtraMissing(what=f"longthread.{name}", package=str(error.name), extra="app") from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

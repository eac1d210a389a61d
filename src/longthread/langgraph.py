"""Longthread for LangGraph applications: a checkpointer, a store of items, and memory for agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longthread.agent.itemstore import LongthreadStore
from longthread.agent.saver import LongthreadSaver

if TYPE_CHECKING:
    from longthread.agent.middleware import MemoryMiddleware
    from longthread.agent.recalltool import recall_tool
    from longthread.agent.takeover import import_langgraph

__all__ = ["LongthreadSaver", "LongthreadStore", "MemoryMiddleware", "import_langgraph", "recall_tool"]

_MODULES = {
    "MemoryMiddleware": "longthread.agent.middleware",
    "import_langgraph": "longthread.agent.takeover",
    "recall_tool": "longthread.agent.recalltool",
}
"""What needs LangChain's agents or reads another saver, which a graph need not load."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

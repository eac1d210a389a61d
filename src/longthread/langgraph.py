"""Longthread for LangGraph applications: a checkpointer, a store of items, and memory for agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longthread.agent.itemstore import LongthreadStore
from longthread.agent.saver import LongthreadSaver

if TYPE_CHECKING:
    from longthread.agent.middleware import MemoryMiddleware
    from longthread.agent.recalltool import recall_tool

__all__ = ["LongthreadSaver", "LongthreadStore", "MemoryMiddleware", "recall_tool"]

_OF_AGENTS = {
    "MemoryMiddleware": "longthread.agent.middleware",
    "recall_tool": "longthread.agent.recalltool",
}
"""What needs LangChain's agents, which a graph without one need not load."""


def __getattr__(name: str) -> Any:
    if name not in _OF_AGENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_OF_AGENTS[name]), name)

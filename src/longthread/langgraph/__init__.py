"""Longthread for LangGraph applications: a checkpointer, a store of items, and memory for agents."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from longthread.errors import ExtraMissing

try:
    import langgraph.checkpoint.base  # noqa: F401  # so that its absence is reported once, with what to do
except ImportError as error:
    raise ExtraMissing(what="longthread.langgraph", package="langgraph", extra="langgraph") from error

from longthread.langgraph.item_store import LongthreadStore
from longthread.langgraph.saver.saver import LongthreadSaver

if TYPE_CHECKING:
    from longthread.langgraph.memory.extractor import MemoryExtractor
    from longthread.langgraph.memory.middleware import MemoryMiddleware
    from longthread.langgraph.memory.node import MemoryMessagesState, memory_node
    from longthread.langgraph.memory.recall_tool import recall_tool
    from longthread.langgraph.transfer.export import export_langgraph
    from longthread.langgraph.transfer.import_checkpoints import import_langgraph

__all__ = [
    "LongthreadSaver",
    "LongthreadStore",
    "MemoryExtractor",
    "MemoryMessagesState",
    "MemoryMiddleware",
    "export_langgraph",
    "import_langgraph",
    "memory_node",
    "recall_tool",
]

_MODULES = {
    "MemoryExtractor": "longthread.langgraph.memory.extractor",
    "MemoryMessagesState": "longthread.langgraph.memory.node",
    "MemoryMiddleware": "longthread.langgraph.memory.middleware",
    "export_langgraph": "longthread.langgraph.transfer.export",
    "import_langgraph": "longthread.langgraph.transfer.import_checkpoints",
    "memory_node": "longthread.langgraph.memory.node",
    "recall_tool": "longthread.langgraph.memory.recall_tool",
}
"""What needs LangChain's agents or reads another saver, which a graph need not load."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)

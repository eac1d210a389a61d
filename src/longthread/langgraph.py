"""Longthread for LangGraph applications: `from longthread.langgraph import LongthreadSaver, LongthreadStore`."""

from __future__ import annotations

from longthread.agent.itemstore import LongthreadStore
from longthread.agent.saver import LongthreadSaver

__all__ = ["LongthreadSaver", "LongthreadStore"]

"""Longthread for LangGraph applications: `from longthread.langgraph import LongthreadSaver`."""

from __future__ import annotations

from longthread.agent.saver import LongthreadSaver

__all__ = ["LongthreadSaver"]

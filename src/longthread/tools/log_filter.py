"""Silences the loggers of HTTP and MCP libraries during our own requests: their records hold headers and messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_silent: ContextVar[bool] = ContextVar("silent", default=False)
_LOGGERS = (
    "httpx", "httpcore.connection", "httpcore.http11", "httpx2", "httpcore2.connection", "httpcore2.http11", "client",
    "mcp.client.streamable_http", "mcp.client.session", "mcp.client.client", "mcp.shared.jsonrpc_dispatcher",
)  # fmt: skip


@contextmanager
def silenced() -> Iterator[None]:
    """Within it, and in tasks that start there, these loggers drop their records."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


class _Filter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _silent.get()


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_Filter())

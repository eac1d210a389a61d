"""Keeps to itself what the MCP library and its HTTP client would log of our sessions: headers and messages."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ours: ContextVar[bool] = ContextVar("ours", default=False)
_LOGGERS = (
    "httpx2", "httpcore2.connection", "httpcore2.http11", "client", "mcp.client.streamable_http", "mcp.client.session",
    "mcp.client.client", "mcp.shared.jsonrpc_dispatcher",
)  # fmt: skip


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, and in tasks that begin there, these loggers say nothing."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


class _Quiet(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not _ours.get()


for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_Quiet())

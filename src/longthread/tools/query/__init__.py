"""Query tools: an SQL template whose places are compiled to bound parameters, against a named source."""

from longthread.tools.query.tool import build, check

__all__ = ["build", "check"]

"""Query tools: SQL templates with bound parameters, for a named source."""

from longthread.tools.query.tool import build, check

__all__ = ["build", "check"]

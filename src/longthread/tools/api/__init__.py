"""API tools: one HTTP request made of a template, to hosts that the tool names and addresses that were checked."""

from longthread.tools.api.tool import build, check

__all__ = ["build", "check"]

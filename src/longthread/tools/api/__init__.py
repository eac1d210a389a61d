"""API tools: one HTTP request from a template, to listed hosts and checked addresses."""

from longthread.tools.api.tool import build, check

__all__ = ["build", "check"]

"""Code tools: Python functions in a sandbox."""

from longthread.tools.code.interpreters import Interpreters

__all__ = ["Interpreters"]

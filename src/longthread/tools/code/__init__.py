"""Code tools: Python functions in a sandbox."""

from longthread.tools.code.interpreters import Interpreters, build, check

__all__ = ["Interpreters", "build", "check"]

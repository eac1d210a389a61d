"""Code tools: Python functions in a sandbox."""

from longthread.tools.code.interpreters import Interpreters
from longthread.tools.code.tool import build, check

__all__ = ["Interpreters", "build", "check"]

"""Code tools: a Python function that somebody wrote, run where it can reach nothing."""

from longthread.tools.code.interpreters import Interpreters
from longthread.tools.code.tool import build, check

__all__ = ["Interpreters", "build", "check"]

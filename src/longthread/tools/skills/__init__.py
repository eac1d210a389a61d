"""Skills: disclosure to models, and folders."""

from longthread.tools.skills.disclosure import Disclosure, disclose, triggered
from longthread.tools.skills.load_skill import load_skill_tool

__all__ = ["Disclosure", "disclose", "load_skill_tool", "triggered"]

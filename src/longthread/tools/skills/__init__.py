"""Skills: disclosure to models, and folders."""

from longthread.tools.skills.disclosure import Disclosure, disclose, load_skill_tool, select_triggered

__all__ = ["Disclosure", "disclose", "load_skill_tool", "select_triggered"]

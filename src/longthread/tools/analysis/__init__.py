"""Sources: databases and data files that an analyst may ask and never change, and the tools that ask them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longthread.tools.analysis.limits import Limits
    from longthread.tools.analysis.open import open_source
    from longthread.tools.analysis.source import Source
    from longthread.tools.analysis.toolbox import analysis_tools

__all__ = ["Limits", "Source", "analysis_tools", "open_source"]
_HOMES = {"Limits": "limits", "Source": "source", "analysis_tools": "toolbox", "open_source": "open"}


def __getattr__(name: str) -> Any:
    """What is asked for, loaded when it is: the process that runs SQL needs the engines and not the parser."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

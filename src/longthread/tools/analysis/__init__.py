"""Sources: databases and data files that an analyst may ask and never change, and the tools that ask them."""

from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.opening import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

__all__ = ["Limits", "Source", "analysis_tools", "open_source"]

"""MCP tools: those that a server of the Model Context Protocol offers, over its standard streams or HTTP."""

from longthread.tools.mcp.servers import Servers
from longthread.tools.mcp.tool import build, check

__all__ = ["Servers", "build", "check"]

"""MCP tools: those that a server of the Model Context Protocol offers, over its standard streams or HTTP."""

from longthread.tools.mcp.servers import Servers

__all__ = ["Servers"]

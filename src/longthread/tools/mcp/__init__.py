"""MCP tools: the tools of a server of the Model Context Protocol, over its standard streams or HTTP."""

from longthread.tools.mcp.servers import Servers

__all__ = ["Servers"]

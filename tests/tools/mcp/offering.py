"""A server of the protocol's own library: `python offering.py [PORT]`, over standard streams or HTTP."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from typing import Any

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

server = MCPServer("offering")


@server.tool(description="Adds two numbers")
def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool()
def about(name: str) -> dict[str, Any]:
    return {"name": name, "pid": os.getpid()}


@server.tool()
def environment() -> dict[str, str]:
    return dict(os.environ)


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool()
def fail(why: str) -> str:
    raise ToolError(why)


@server.tool()
def long(size: int) -> str:
    return "x" * size


@server.tool()
async def wait(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@server.tool()
def die() -> str:
    print("these are my last words", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")

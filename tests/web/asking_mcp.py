"""Adds a server to an MCP client as a block of settings says, and makes one call: `asking_mcp.py SETTINGS CALL`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def ask(settings: dict[str, Any], call: dict[str, Any]) -> str:
    [program] = settings["mcpServers"].values()
    program["env"] = {**os.environ, **program.get("env", {})}
    async with Client(stdio_client(StdioServerParameters(**program))) as client:
        result = await client.call_tool(call["name"], call["arguments"])
    return json.dumps({"failed": result.is_error, "said": result.structured_content})


print(asyncio.run(ask(*map(json.loads, sys.argv[1:]))))

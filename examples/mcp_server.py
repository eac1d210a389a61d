"""Ask your database from an MCP client, as Claude Desktop or Cursor do.

    python examples/mcp_server.py

The client is a program here. For yours, put the command into its settings (docs/how-to/mcp.md):
`longthread mcp --source shop.db --model openai:gpt-5`. The demo model answers here.
"""

import asyncio
import tempfile
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(folder: Path) -> None:
    arguments = ["mcp", "--source", "demo", "--model", "demo", "--database", str(folder / "conversations.db")]
    server = StdioServerParameters(command="longthread", args=arguments)
    async with stdio_client(server) as streams, ClientSession(*streams) as client:
        await client.initialize()
        tools = await client.list_tools()
        print("tools:", ", ".join(tool.name for tool in tools.tools))
        asked = await client.call_tool("ask", {"question": "How many rockets are there?"})
        print(asked.structured_content["answer"].splitlines()[0])
        print(asked.structured_content["queries"][0]["sql"])
        listed = await client.call_tool("list_threads", {})
        print("conversations:", len(listed.structured_content["threads"]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

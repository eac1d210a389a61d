"""Give an agent the tools of an MCP server.

    python examples/mcp_tools.py

The server is this file too: `mcp_tools.py serve` speaks the protocol over standard streams, as `npx …` would. A
scripted model stands for a real one. For a real model, leave out `models` and give `Settings.load` its name.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Settings
from longthread.testing import ScriptedModel


def serve() -> None:
    """Be an MCP server with one tool."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("weather")

    @server.tool()
    def forecast(city: str) -> str:
        """The weather of tomorrow."""
        return f"{city}: sunny, 21 °C"

    server.run()


AGENT = [
    {
        "kind": "tool",
        "name": "weather",
        "type": "mcp",
        "implementation": {"command": sys.executable, "args": [str(Path(__file__).resolve()), "serve"]},
    },
    {"kind": "skill", "name": "forecasts", "tools": [{"tool": "weather", "required": True}]},
    {"kind": "agent", "name": "reporter", "system_prompt": "You report the weather.", "skills": ["forecasts"]},
]
MODEL = ScriptedModel(
    [
        {"action": "weather_forecast", "args": {"city": "Oslo"}},
        lambda messages: {"finish": "Tomorrow in Oslo: sunny." if "sunny" in messages[-1].text else "I do not know."},
    ]
)


async def main(folder: Path) -> None:
    settings = Settings.load(model="test:scripted", database=str(folder / "conversations.db"))
    async with Analyst.open(settings, models=lambda name, settings: MODEL) as analyst:
        await Catalog(analyst.store).apply(AGENT)
        asked = await analyst.ask("What is the weather?", user_id="ada", agent="reporter")
        async for event in asked.events():
            if event.type == "step_finished":
                print(event.data["action"], event.data["observation"]["data"])
        print(event.data["answer"])


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        with tempfile.TemporaryDirectory() as temporary:
            asyncio.run(main(Path(temporary)))

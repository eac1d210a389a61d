"""Give an agent two tools of your own: a query with parameters, and a Python function in a sandbox.

    python examples/custom_tool.py

A scripted model stands for a real one. For a real model, leave out `models` and give `Settings.load` its name. Tools of
the types `api` and `mcp` are defined in the same way (docs/how-to/tools.md).
"""

import asyncio
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Settings
from longthread.testing import ScriptedModel


def schema(name, description, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "parameters": parameters}


SQL = "SELECT name, country FROM rockets WHERE name LIKE '%{{text}}%' ORDER BY name LIMIT 3"
MEAN = "def execute(numbers):\n    return {'mean': sum(numbers) / len(numbers)}"
NUMBERS = {"type": "array", "items": {"type": "number"}}
DEFINITIONS = [
    {"kind": "source", "name": "space", "address": "demo"},
    {
        "kind": "tool",
        "name": "find_rockets",
        "type": "query",
        "schema": schema("find_rockets", "Finds rockets by a part of their name.", text={"type": "string"}),
        "implementation": {"database": "space", "sql_template": SQL},
    },
    {
        "kind": "tool",
        "name": "mean",
        "type": "code",
        "schema": schema("mean", "The mean of some numbers.", numbers=NUMBERS),
        "implementation": {"runtime": "python", "code": MEAN},
    },
    {"kind": "skill", "name": "rocketry", "tools": ["find_rockets", "mean"]},
    {"kind": "agent", "name": "engineer", "system_prompt": "You know rockets.", "skills": ["rocketry"]},
]
MODEL = ScriptedModel(
    [
        {"action": "find_rockets", "args": {"text": "Falcon"}},
        {"action": "mean", "args": {"numbers": [1, 2, 6]}},
        lambda messages: {"finish": f"The mean is {messages[-1].text}."},
    ]
)


async def main(folder: Path) -> None:
    settings = Settings.load(model="test:scripted", database=str(folder / "conversations.db"))
    async with Analyst.open(settings, models=lambda name, settings: MODEL) as analyst:
        await Catalog(analyst.store).apply(DEFINITIONS)
        asked = await analyst.ask("Which Falcons are there?", user_id="ada", agent="engineer")
        async for event in asked.events():
            if event.type == "step_finished":
                print(event.data["action"], event.data["observation"]["data"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

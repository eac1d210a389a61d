"""Let an agent give tasks to another one, and read what the two said.

    python examples/sub_agent.py

The editor asks the counter, whose model is the demo and whose source is the demo database. A scripted provider stands
for the editor's model. For a real one, leave out the provider and name a model: `Settings.load(model="openai:gpt-5")`.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Settings
from longthread.testing import ProviderEmulator

AGENTS = [
    {"kind": "source", "name": "space", "address": "demo"},
    {
        "kind": "agent",
        "name": "counter",
        "description": "Counts rockets and launches.",
        "system_prompt": "You count.",
        "config": {"model": "demo", "source": "space"},
        "skills": ["data"],
    },
    {
        "kind": "agent",
        "name": "editor",
        "system_prompt": "You write. Ask the counter for numbers.",
        "sub_agents": ["counter"],
    },
]


def edit(messages):
    """Ask the counter; then write down its first sentence."""
    if messages[-1].role != "tool":
        return {"action": "ask_counter", "args": {"task": "How many rockets are there?"}}
    answer = json.loads(messages[-1].text)["data"]["answer"]
    return {"finish": f"The counter says: {answer.splitlines()[0]}"}


async def main(folder: Path) -> None:
    with ProviderEmulator(edit) as provider:
        settings = Settings.load(
            model="editor-model", base_url=provider.base_url, database=str(folder / "conversations.db")
        )
        async with Analyst.open(settings) as analyst:
            await Catalog(analyst.store).apply(AGENTS)
            asked = await analyst.ask("Write about our rockets.", user_id="ada", agent="editor")
            async for event in asked.events():
                if event.type == "step_finished":
                    below = event.data["observation"]["data"]["thread_id"]
            print(event.data["answer"])
            state = await analyst.threads.state(below, user_id="ada")
            print(f"The counter was asked: {state['question']}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

"""Remember something in one conversation, and use it in another.

    python examples/memories.py

A scripted model stands for a real one. For a real model, leave out `models` and give `Settings.load` its name.
"""

import asyncio
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Owner, Settings
from longthread.testing import ScriptedModel

FACT = "The user wants weights in kilograms."


def answer(messages):
    """Remember what the user says; answer from the memories that Longthread put into the prompt."""
    said = "\n".join(message.text for message in messages)
    if "How do you" in said:
        return {"finish": "In kilograms." if FACT in said else "I do not know."}
    if messages[-1].role == "tool":
        return {"finish": "I will remember that."}
    return {"action": "remember", "args": {"content": FACT}}


async def main(folder: Path) -> None:
    settings = Settings.load(model="test:scripted", database=str(folder / "conversations.db"))
    async with Analyst.open(settings, models=lambda name, settings: ScriptedModel(answer)) as analyst:
        for text in ("From now on, show weights in kg.", "How do you show weights?"):
            end = await (await analyst.ask(text, user_id="ada", agent="assistant")).wait()
            print(f"> {text}\n{end.data['answer']}")
        assistant = await Catalog(analyst.store).agent("assistant")
        for memory in await analyst.memories.list_(Owner("ada", assistant.id)):
            print(f"{memory.type} memory: {memory.content}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

"""Ask a CSV file in plain words, and ask on in the same conversation.

    python examples/ask_csv.py [FILE.csv QUESTION…]

The demo model answers: rules, no key, no network. For a real one, give `Settings.load` its name, such as
`model="openai:gpt-5"`, and set its key (OPENAI_API_KEY).
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from longthread import Analyst, Settings

SALES = """city,month,revenue
Berlin,2025-01,1200
Berlin,2025-02,900
Lyon,2025-01,700
Lyon,2025-02,1600
Oslo,2025-01,400
"""
QUESTIONS = ["What is the total revenue by city?", "only Berlin"]


async def main(folder: Path, given: list[str]) -> None:
    file, questions = folder / "sales.csv", QUESTIONS
    if given:
        file, questions = Path(given[0]), given[1:]
    else:
        file.write_text(SALES)
    settings = Settings.load(model="demo", source=str(file), database=str(folder / "conversations.db"))
    async with Analyst.open(settings) as analyst:
        thread = None
        for question in questions:
            asked = await analyst.ask(question, user_id="ada", thread_id=thread)
            thread = asked.thread_id
            end = await asked.wait()
            print(f"> {question}\n{end.data['answer']}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary), sys.argv[1:]))

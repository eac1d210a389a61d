"""Teach a database what your colleagues mean by a word, and ask with that word.

    python examples/business_term.py

A scripted model stands for a real one: it uses the SQL of the term that Longthread put into its prompt. For a real
model, leave out `models` and give `Settings.load` its name.
"""

import asyncio
import json
import re
import sqlite3
import tempfile
from pathlib import Path

from longthread import Analyst, Catalog, Settings
from longthread.testing import ScriptedModel

TERM = {"name": "GMV", "meaning": "the value of all paid orders", "sql": "sum(amount) FILTER (WHERE status = 'paid')"}


def answer(messages):
    """Write a query with the SQL of the term; then say what it found."""
    results = [json.loads(message.text) for message in messages if message.role == "tool"]
    if results:
        return {"finish": f"The GMV is {results[0]['data']['rows'][0][0]} [q1]."}
    said = "\n".join(message.text for message in messages)
    [formula] = re.findall(r"sum\(amount\) FILTER \(.*?\)", said)
    return {"action": "run_sql", "args": {"sql": f"SELECT {formula} AS gmv FROM orders"}}


async def main(folder: Path) -> None:
    shop = folder / "shop.sqlite"
    with sqlite3.connect(shop) as connection:
        connection.execute("CREATE TABLE orders (amount INTEGER, status TEXT)")
        connection.executemany("INSERT INTO orders VALUES (?, ?)", [(100, "paid"), (50, "paid"), (700, "returned")])
    connection.close()
    settings = Settings.load(model="test:scripted", database=str(folder / "conversations.db"))
    async with Analyst.open(settings, models=lambda name, settings: ScriptedModel(answer)) as analyst:
        source = {"kind": "source", "name": "shop", "address": str(shop), "terms": [TERM]}
        await Catalog(analyst.store).apply([source])
        end = await (await analyst.ask("What is our GMV?", user_id="ada", source="shop")).wait()
        print(end.data["answer"])
        print(end.data["queries"][0]["sql"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

"""Ask one database as two people, each of whom may read other rows.

    python examples/ask_policy.py

A policy is a document that the server's operator writes. Longthread rewrites each statement by it, whatever the model
wrote. The demo model answers here; for a real one change `model`, as in ask_csv.py.
"""

import asyncio
import sqlite3
import tempfile
from pathlib import Path

from longthread import Analyst, Settings

POLICY = """
users:
  ada: {region: EU}
  bob: {region: US}
sources:
  - source: SHOP
    tables:
      customers: {rows: "region = :region", hide: [email]}
"""
ROWS = [("Grace", "EU", "g@example.org"), ("Linus", "EU", "l@example.org"), ("Ken", "US", "k@example.org")]


async def main(folder: Path) -> None:
    shop, policies = folder / "shop.sqlite", folder / "policies.yaml"
    with sqlite3.connect(shop) as connection:
        connection.execute("CREATE TABLE customers (name TEXT, region TEXT, email TEXT)")
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?)", ROWS)
    connection.close()
    policies.write_text(POLICY.replace("SHOP", str(shop)))
    settings = Settings.load(
        model="demo", source=str(shop), source_policies=str(policies), database=str(folder / "conversations.db")
    )
    async with Analyst.open(settings) as analyst:
        for user in ("ada", "bob"):
            end = await (await analyst.ask("How many customers are there?", user_id=user)).wait()
            print(f"{user}: {end.data['answer'].splitlines()[0]}")
        end = await (await analyst.ask("List the emails of the customers", user_id="ada")).wait()
        print(f"ada: {end.data['answer'].splitlines()[0]}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))

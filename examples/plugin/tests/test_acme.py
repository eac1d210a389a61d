"""What the plugin offers works, as a user of Longthread meets it."""

import asyncio
import sqlite3

import pytest

from longthread import Analyst, Catalog, Settings, errors
from longthread.testing import ScriptedModel

PARAMETERS = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
TOOL = {
    "kind": "tool",
    "name": "to_dollars",
    "type": "conversion",
    "schema": {"name": "to_dollars", "description": "Converts euros.", "parameters": PARAMETERS},
    "implementation": {"factor": 1.25, "unit": "USD"},
}
AGENT = [
    TOOL,
    {"kind": "skill", "name": "money", "tools": [{"tool": "to_dollars", "required": True}]},
    {"kind": "agent", "name": "clerk", "system_prompt": "You convert.", "skills": ["money"]},
]


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """A store of the test's own, and a database of Acme's with two customers."""
    with sqlite3.connect(tmp_path / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.execute("INSERT INTO customers VALUES ('Ada'), ('Grace')")
    connection.close()
    monkeypatch.setenv("ACME_DATA", str(tmp_path))
    return Settings.load(model="acme:echo", source="acme://db/shop", database=str(tmp_path / "conversations.db"))


async def ask(settings, question, **how):
    async with Analyst.open(settings, **how) as analyst:
        return (await (await analyst.ask(question, user_id="ada")).wait()).data["answer"]


def test_the_model_asks_the_engine(settings):
    answer = asyncio.run(ask(settings, "SELECT upper(name) AS name FROM customers ORDER BY 1"))
    assert '"rows":[["ADA"],["GRACE"]]' in answer


@pytest.mark.parametrize("sql", ["DELETE FROM customers", "SELECT load_extension('x')", "ATTACH 'x' AS y"])
def test_the_guard_stands_before_the_engine(settings, sql):
    assert '"ok":false' in asyncio.run(ask(settings, sql))


def test_an_unknown_model_says_which_there_are(settings):
    other = settings.model_copy(update={"model": "acme:other"})
    with pytest.raises(errors.ModelUnavailable, match=r"^The model acme:other cannot be used: Acme has echo\. Or"):
        asyncio.run(ask(other, "Hello"))


def test_an_agent_converts_with_the_tool(settings):
    model = ScriptedModel(
        [{"action": "to_dollars", "args": {"amount": 8}}, lambda messages: {"finish": messages[-1].text}]
    )

    async def convert():
        async with Analyst.open(settings, models=lambda name, settings: model) as analyst:
            await Catalog(analyst.store).apply(AGENT)
            end = await (await analyst.ask("How much is 8 €?", user_id="ada", agent="clerk")).wait()
            return end.data["answer"]

    assert '"amount":10.0,"unit":"USD"' in asyncio.run(convert())


@pytest.mark.parametrize(("implementation", "problem"), [({"unit": "USD"}, "`factor`"), ({"factor": 2}, "`unit`")])
def test_a_definition_that_cannot_work_is_refused(settings, implementation, problem):
    async def apply():
        async with Catalog.open(settings) as catalog:
            await catalog.apply([TOOL | {"implementation": implementation}])

    with pytest.raises(errors.LongthreadError, match=problem):
        asyncio.run(apply())

"""What an answer says of tables whose numbers are doubtful: a row of sums, numbers and dates kept as text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

Talk = Callable[[str], Awaitable[Any]]

FILES = {
    "sales": "product,amount\nTea,10\nCoffee,20\nTotal,30\n",
    "french": "produit,montant\nThé,10\nCafé,20\nTotal général,30\n",
    "销售": "商品,金额\n茶,10\n咖啡,20\n合计,30\n",
    "mixed": 'product,amount,day,zip\nTea,"1,234",01/02/2024,01067\nMilk,"2,345",03/04/2024,04109\n',
    "plain": "product,amount\nTea,10\nCoffee,20\n",
}
SCHEMAS = {
    "texts": """
        CREATE TABLE sales (id INTEGER PRIMARY KEY, product TEXT, amount TEXT);
        INSERT INTO sales VALUES (1, 'Tea', '10'), (2, 'Milk', '20'), (3, 'Ale', '1,200');"""
}
SUM, TEXT = "may be a sum of the others", "is kept as text"


@pytest.fixture
async def ask_file(tmp_path: Path, converse: Any) -> AsyncIterator[Talk]:
    """Start a conversation about one of the files."""
    opened: list[Source] = []

    async def start(name: str) -> Any:
        path = tmp_path / f"{name}.csv"
        path.write_text(FILES[name], encoding="utf-8")
        opened.append(await open_source(str(path)))
        return converse({tool.name: tool for tool in analysis_tools(opened[-1])})

    yield start
    for source in opened:
        await source.close()


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        ("sales", "total amount", "The last row of `sales` may be a sum"),
        ("sales", "What is the average amount?", "The last row of `sales` may be a sum"),
        ("sales", "How many sales are there?", "The last row of `sales` may be a sum"),
        ("sales", "amount per product", "The last row of `sales` may be a sum"),
        ("french", "total montant", "The last row of `french` may be a sum"),
        ("销售", "金额总和是多少？", "`销售` 的最后一行可能是其他各行的合计"),
        ("mixed", "list product and amount", "`mixed.amount` is kept as text"),
        ("mixed", "What is the average amount?", "`mixed.amount` is kept as text"),
        ("mixed", "list product and day", "`mixed.day` is kept as text"),
    ],
)
async def test_a_doubtful_number_is_told(ask_file: Talk, name: str, question: str, said: str) -> None:
    answer = await (await ask_file(name)).ask(question)
    assert said in answer
    assert (SUM in answer) + (TEXT in answer) <= 1


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("plain", "total amount"),
        ("sales", "total amount of Tea"),
        ("mixed", "list product and zip"),
        ("mixed", "How many products are there?"),
    ],
)
async def test_what_the_answer_does_not_use_is_not_told(ask_file: Talk, name: str, question: str) -> None:
    answer = await (await ask_file(name)).ask(question)
    assert "cannot answer" not in answer
    assert SUM not in answer and TEXT not in answer


async def test_it_is_told_in_a_later_turn_too(ask_file: Talk) -> None:
    conversation = await ask_file("sales")
    await conversation.ask("total amount")
    answer = await conversation.ask("average amount")
    assert conversation.names() == ["run_sql"] and SUM in answer


async def test_numbers_in_a_text_column_of_a_database_are_told(ask: Talk) -> None:
    assert "`sales.amount` is kept as text" in await (await ask("texts")).ask("list product and amount")

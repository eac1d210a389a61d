"""What an answer says of tables whose numbers are doubtful: a row of sums, numbers and dates kept as text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools
from longthread_demo.query.plan import Condition, QueryPlan, field_of
from longthread_demo.query.sums import unwanted_label
from longthread_demo.schema import DemoColumn, DemoTable

Talk = Callable[[str], Awaitable[Any]]

FILES = {
    "sales": "product,amount\nTea,10\nCoffee,20\nTotal,30\n",
    "french": "produit,montant\nThé,10\nCafé,20\nTotal général,30\n",
    "销售": "商品,金额\n茶,10\n咖啡,20\n合计,30\n",
    "mixed": 'product,amount,day,zip\nTea,"1,234",01/02/2024,01067\nMilk,"2,345",03/04/2024,04109\n',
    "blanks": "region,rep,amount\nNorth,Ann,10\nNorth,Ben,20\nSouth,Cem,30\n Total :,,60\n",
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


@pytest.mark.parametrize(
    ("name", "question", "rows"),
    [
        ("sales", "total amount", [[30]]),
        ("sales", "What is the average amount?", [[15]]),
        ("sales", "How many sales are there?", [[2]]),
        ("sales", "amount per product", [["Coffee", 20], ["Tea", 10]]),
        ("sales", "sales with an amount over 15", [["Coffee", 20]]),
        ("sales", "Which product has the highest amount?", [["Coffee", 20]]),
        ("blanks", "What percentage of blanks are in North?", [[200 / 3]]),
        ("blanks", "total amount by region", [["North", 30], ["South", 30]]),
        ("french", "total montant", [[30]]),
        ("销售", "金额总和是多少？", [[30]]),
        ("销售", "哪个商品的金额最高？", [["咖啡", 20]]),
    ],
)
async def test_a_row_of_sums_is_in_no_number(ask_file: Talk, name: str, question: str, rows: list[Any]) -> None:
    conversation = await ask_file(name)
    answer = await conversation.ask(question)
    assert conversation.rows == rows, answer
    assert SUM in answer or "其他各行的合计" in answer


@pytest.mark.parametrize("label", ["Total", "Total\nof the year", "合计"])
def test_a_row_of_sums_that_is_asked_for_by_its_name_stays(label: str) -> None:
    note = f'Its last row begins with "{label}": it may be a sum of the others.'
    table = DemoTable(
        "sales", columns=(DemoColumn("product", "VARCHAR"), DemoColumn("amount", "BIGINT")), notes=(note,)
    )
    named = Condition(field_of("sales", "product"), "=", (label,))
    assert unwanted_label(QueryPlan("sales"), table) == label
    assert unwanted_label(QueryPlan("sales", conditions=(named,)), table) == ""


async def test_a_row_of_sums_in_a_joined_file_is_no_group(tmp_path: Path, converse: Any) -> None:
    (tmp_path / "shops.csv").write_text("shop_id,city,area\nA1,York,10\nA2,Hull,20\nTotal,,30\n", encoding="utf-8")
    (tmp_path / "orders.csv").write_text("order_id,shop_id,amount\n1,A1,5\n2,A1,6\nTotal,,11\n", encoding="utf-8")
    source = await open_source(str(tmp_path))
    try:
        conversation = converse({tool.name: tool for tool in analysis_tools(source)})
        answer = await conversation.ask("total amount by city")
        assert conversation.rows == [["York", 11]], answer
        assert "Not in this result" not in answer
        answer = await conversation.ask("Which shop has the fewest orders?")
        [[*_, orders]] = conversation.rows
        assert orders == 0 and "Total" not in str(conversation.rows), answer
        answer = await conversation.ask("How many shops and orders are there?")
        assert conversation.rows == [[2, 2]], answer
    finally:
        await source.close()

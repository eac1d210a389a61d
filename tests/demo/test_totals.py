"""A total loses and repeats no rows in silence: a join only where one is needed, and what it drops is counted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.source import Source
from longthread.tools.analysis.toolbox import analysis_tools

Talk = Callable[..., Awaitable[Any]]

SCHEMAS = {
    "shop": """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        INSERT INTO customers VALUES (1, 'Ann', 'York'), (2, 'Ben', 'York'), (3, 'Ann', 'Hull');
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), amount INTEGER,
          ordered_on DATE);
        INSERT INTO orders VALUES (1, 1, 10, '2024-01-01'), (2, 1, 10, '2024-01-02'), (3, 2, 5, NULL),
          (4, NULL, 7, '2024-02-01'), (5, 9, 8, '2024-03-01'), (6, 3, 10, '2024-03-02');
        CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders(id), product TEXT,
          price INTEGER, quantity INTEGER);
        INSERT INTO items VALUES (1, 1, 'tea', 2, 3), (2, 1, 'tea', 2, 1), (3, 1, 'ham', 5, 1), (4, 2, 'tea', 2, NULL),
          (5, 3, 'ham', 5, 2), (6, 6, 'ham', 5, 2);""",
    "items": """
        CREATE TABLE items (id INTEGER PRIMARY KEY, product TEXT, price INTEGER, quantity INTEGER);
        INSERT INTO items VALUES (1, 'tea', 2, 3), (2, 'tea', 2, 1), (3, 'tea', 2, NULL);""",
    "whole": """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO teams VALUES (1, 'Red'), (2, 'Blue');
        CREATE TABLE games (id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id), goals INTEGER);
        INSERT INTO games VALUES (1, 1, 3), (2, 1, 4), (3, 2, 5);""",
    "sums": """
        CREATE TABLE regions (region TEXT, revenue INTEGER, day DATE);
        INSERT INTO regions VALUES ('North', 10, '2024-01-01'), ('South', 20, '2024-01-02'), ('East', 30, '2024-02-01');
        CREATE TABLE lines (order_no TEXT, revenue INTEGER, region TEXT);
        INSERT INTO lines VALUES ('A', 10, 'North'), ('A', 10, 'North'), ('B', 10, 'South');""",
}


@pytest.mark.parametrize(
    ("question", "rows", "said"),
    [
        ("total amount by city", [["York", 25], ["Hull", 10]],
         "2 of 6 rows of `orders`, which have no `customers` (total of `amount`: 15) [q1]"),
        ("各城市的总金额", [["York", 25], ["Hull", 10]],
         "`orders` 的 6 行中有 2 行没有对应的 `customers`（合计 `amount`: 15） [q1]"),
        ("number of orders by city", [["York", 3], ["Hull", 1]], "2 of 6 rows of `orders`"),
        ("total amount by month", [["2024-01", 20], ["2024-02", 7], ["2024-03", 18]],
         "1 of 6 rows of `orders`, which have no `ordered_on` (total of `amount`: 5)"),
        ("total amount per product", [["ham", 25], ["tea", 20]], "1 of 6 rows of `orders` are in several groups"),
        ("customers whose total amount is more than 15", [["Ann", 20]], "2 of 6 rows of `orders`"),
        ("How many customers have a total amount over 15?", [[1]], "2 of 6 rows of `orders`"),
    ],
)  # fmt: skip
async def test_what_a_join_leaves_out_or_repeats_is_counted(
    ask: Talk, question: str, rows: list[Any], said: str
) -> None:
    conversation = await ask("shop")
    answer = await conversation.ask(question)
    assert sorted(map(str, conversation.rows)) == sorted(map(str, rows)), answer
    assert said in answer


async def test_a_price_without_a_quantity_is_counted(ask: Talk) -> None:
    answer = await (await ask("items")).ask("total revenue")
    assert "**8**" in answer and "1 of 3 rows of `items`, which have no `quantity`" in answer


async def test_two_of_one_name_stay_two_in_a_list(ask: Talk) -> None:
    conversation = await ask("shop")
    await conversation.ask("list customers with an amount over 9")
    assert [row[0] for row in conversation.rows] == ["Ann", "Ann"]


@pytest.mark.parametrize("question", ["total goals by team", "How many games per team?", "list games sorted by team"])
async def test_nothing_is_said_where_nothing_is_left_out(ask: Talk, question: str) -> None:
    answer = await (await ask("whole")).ask(question)
    assert not any(said in answer for said in ("Not in this result", "several groups", "could not count")), answer


async def test_what_cannot_be_counted_is_said_to_be_unknown(ask: Talk) -> None:
    conversation = await ask("shop")
    run_sql = conversation.tools["run_sql"]

    class Failing:
        async def call(self, args: Any) -> Any:
            if "rows_left_out" in args["sql"]:
                return {"ok": False, "error": {"type": "timeout", "message": "It took too long."}}
            return await run_sql.call(args)

    conversation.tools = {**conversation.tools, "run_sql": Failing()}
    assert "I could not count the rows" in await conversation.ask("total amount by city")


async def test_a_number_on_several_rows_is_no_key(ask: Talk) -> None:
    conversation = await ask("sums")
    await conversation.ask("How many lines are there?")
    assert conversation.rows == [[3]]
    await conversation.ask("total revenue of lines by region")
    assert sorted(conversation.rows) == [["North", 20], ["South", 10]]


@pytest.fixture
async def ask_book(tmp_path: Path, converse: Any) -> AsyncIterator[Talk]:
    """Start a conversation about a workbook of sales, and targets of some of their regions."""
    opened: list[Source] = []

    async def start(targets: list[str], heads: tuple[str, str] = ("Region", "Revenue")) -> Any:
        book = Workbook()
        sales = book.active
        assert sales is not None
        sales.title = "Sales"
        sales.append([heads[0], "Rep", heads[1]])
        for at, name in enumerate(["North", "South", "East", "West"]):
            for rep in range(3):
                sales.append([name, f"Rep {rep}", 100 * (at + 1)])
        other = book.create_sheet("Targets")
        other.append([heads[0], "Target"])
        for name in targets:
            other.append([name, 1000])
        book.save(tmp_path / "book.xlsx")
        opened.append(await open_source(str(tmp_path / "book.xlsx")))
        return converse({tool.name: tool for tool in analysis_tools(opened[-1])})

    yield start
    for source in opened:
        await source.close()


_ALL = [["East", 900], ["North", 300], ["South", 600], ["West", 1200]]


@pytest.mark.parametrize("targets", [["North", "South", "East"], ["North", "North", "East"], ["North", "Central"]])
@pytest.mark.parametrize(
    ("heads", "question", "rows"),
    [
        (("Region", "Revenue"), "total revenue by region", _ALL),
        (("Region", "Revenue"), "total revenue in West", [[1200]]),
        (("Region", "Revenue"), "Which region has the highest revenue?", [["West", 1200]]),
        (("地区", "收入"), "各地区的总收入", _ALL),
        (("Region", "Revenue"), "各地区的收入", _ALL),
    ],
)
async def test_a_column_of_the_table_itself_needs_no_join(
    ask_book: Talk, targets: list[str], heads: tuple[str, str], question: str, rows: list[Any]
) -> None:
    conversation = await ask_book(targets, heads)
    answer = await conversation.ask(question)
    assert sorted(conversation.rows) == rows, answer
    assert "JOIN" not in conversation.actions[-1].args["sql"]


@pytest.mark.parametrize("question", ["How many regions are there?", "list regions", "target by region"])
async def test_a_name_that_two_tables_have_alike_is_asked_back(ask_book: Talk, question: str) -> None:
    answer = await (await ask_book(["North", "South", "East"])).ask(question)
    assert "cannot answer" in answer
    assert question == "target by region" or ("`Sales.Region`" in answer and "`Targets.Region`" in answer)


async def test_a_follow_up_stays_with_its_table(ask_book: Talk) -> None:
    conversation = await ask_book(["North", "South", "East"])
    await conversation.ask("total revenue")
    answer = await conversation.ask("and by region?")
    assert sorted(conversation.rows) == _ALL, answer


@pytest.mark.parametrize(
    ("question", "is_said"),
    [("total amount", True), ("total amount of products with amount over 15", True),
     ("total amount of products with amount under 15", False)],
)  # fmt: skip
async def test_a_row_of_sums_is_told_only_where_the_query_reads_it(
    tmp_path: Path, converse: Any, question: str, is_said: bool
) -> None:
    (tmp_path / "products.csv").write_text("product,amount\nTea,10\nCoffee,20\nTotal,30\n", encoding="utf-8")
    source = await open_source(str(tmp_path / "products.csv"))
    try:
        conversation = converse({tool.name: tool for tool in analysis_tools(source)})
        answer = await conversation.ask(question)
        assert "cannot answer" not in answer, answer
        assert ("may be a sum of the others" in answer) is is_said, answer
    finally:
        await source.close()


@pytest.fixture
async def ask_file(tmp_path: Path, converse: Any) -> AsyncIterator[Talk]:
    """Start a conversation about a file."""
    opened: list[Source] = []

    async def start(name: str, content: str) -> Any:
        (tmp_path / name).write_text(content, "utf-8")
        opened.append(await open_source(str(tmp_path / name)))
        return converse({tool.name: tool for tool in analysis_tools(opened[-1])})

    yield start
    for source in opened:
        await source.close()


@pytest.mark.parametrize(
    "question", ["How many tags per name?", "How many different tags are there?", "每个 name 有多少 tags？"]
)
async def test_lists_are_neither_counted_nor_grouped(ask_file: Talk, question: str) -> None:
    rows = '[{"name": "Ann", "tags": ["x", "y"]}, {"name": "Bob", "tags": []}, {"name": "Eve", "tags": ["z"]}]'
    answer = await (await ask_file("orders.json", rows)).ask(question)
    assert "cannot answer" in answer or "无法回答" in answer, answer


async def test_an_answer_says_which_rows_a_quote_has_swallowed(ask_file: Talk) -> None:
    conversation = await ask_file("shop.csv", 'item,price\na,10\nb,20\n"c,30\nd,40\ne,50\nf",60\ng,70\n')
    answer = await conversation.ask("total price")
    assert "a quote is opened and closed only in line" in answer


_TOLD = {
    "en": (
        'book.xlsx: The sheet "Old" is left out: it is hidden.',
        'Sales: 1 line above the header is left out: "Report of 2024".',
    ),
    "zh": ("book.xlsx：工作表“Old”已略去：它是隐藏的。", 'Sales：表头上方的 1 行已略去："Report of 2024"。'),
}


@pytest.mark.parametrize(
    ("question", "language", "is_of_sales"),
    [
        ("How many staff are there?", "en", False),
        ("Staff 有多少行？", "zh", False),
        ("total revenue by city", "en", True),
        ("按 city 统计 revenue", "zh", True),
        ("What tables are there?", "en", True),
        ("有哪些表？", "zh", True),
        ("What columns does Staff have?", "en", False),
        ("Who is the tallest?", "en", False),
    ],
)
async def test_what_is_left_out_of_the_tables_that_are_read_is_told(
    tmp_path: Path, converse: Any, question: str, language: str, is_of_sales: bool
) -> None:
    book = Workbook()
    sales, staff, hidden = book.active, book.create_sheet("Staff"), book.create_sheet("Old")
    sales.title, hidden.sheet_state = "Sales", "hidden"
    for row in (["Report of 2024"], [], ["city", "revenue"], ["Bonn", 10], ["Trier", 20]):
        sales.append(row)
    for row in (["name", "age"], ["Ann", 41], ["Ben", 52]):
        staff.append(row)
    hidden.append(["x"])
    book.save(tmp_path / "book.xlsx")
    source = await open_source(str(tmp_path / "book.xlsx"))
    try:
        answer = await converse({tool.name: tool for tool in analysis_tools(source)}).ask(question)
    finally:
        await source.close()
    of_file, of_sales = _TOLD[language]
    assert of_file in answer
    assert (of_sales in answer) is is_of_sales
    assert "left out" not in answer if language == "zh" else "略去" not in answer

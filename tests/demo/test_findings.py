"""What an answer begins with: what was found, in the words of the question's language, each number from the rows."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.context.citations import CitedQuery, citations
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.toolbox import analysis_tools

SCHEMAS = {
    "port": """
        CREATE TABLE countries (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT, country_id INTEGER REFERENCES countries (id),
            status TEXT, price_eur REAL, launched TEXT, founded INTEGER);
        INSERT INTO countries VALUES (1, 'Chile'), (2, 'Norway'), (3, 'Peru');
        INSERT INTO ships VALUES
            (1, 'Ada', 1, 'active', 1200000.5, '2019-03-01', 1886), (2, 'Bo', 1, 'active', 52838.549999999996,
             '2019-05-01', 1902), (3, 'Cy*', 1, 'sold', 7, '2020-01-15', 1910),
            (4, 'Di', 2, 'active', 90, '2021-02-01', 1920), (5, 'Eve', 3, 'sold', 100.25, '2021-06-01', 1931);
    """,
    # A year without ships, ships without a year, a country or a status, equal countries, and prices that are missing.
    "gaps": """
        CREATE TABLE countries (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT, country_id INTEGER REFERENCES countries (id),
            status TEXT, price_eur REAL, launched TEXT, founded INTEGER);
        INSERT INTO countries VALUES (1, 'Chile'), (2, 'Norway'), (3, 'Peru'), (4, 'Fiji');
        INSERT INTO ships VALUES
            (1, 'Ada', 1, 'active', 7, '2019-03-01', 1910), (2, 'Bo', 1, 'active', NULL, '2019-05-01', 1912),
            (3, 'Cy', 2, 'sold', NULL, '2020-01-15', 1912), (4, 'Di', 2, 'sold', NULL, '2022-02-01', 1912),
            (5, 'Eve', 3, 'lost', 7, '2022-06-01', 1911), (6, 'Flo', NULL, NULL, 7, '2022-07-01', NULL),
            (7, 'Gil', 3, NULL, 7, '2022-07-02', NULL), (8, 'Hal', 4, NULL, 7, '2024-07-02', NULL),
            (9, 'Ida', 4, NULL, 7, '2024-07-02', NULL);
    """,
    "many": """
        CREATE TABLE ships (id INTEGER PRIMARY KEY, name TEXT, status TEXT, launched TEXT);
        INSERT INTO ships WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 270)
            SELECT n, 'S' || n, CASE n % 2 WHEN 0 THEN 'sold' ELSE 'active' END, date('2000-01-01', n || ' months')
            FROM numbers;
    """,
}
Ask = Callable[[str], Awaitable[Any]]


@pytest.mark.parametrize(
    ("question", "said", "below"),
    [
        ("Number of ships by month and status", "Found **270** rows [q2].", "first ```50``` are printed here."),
        ("每月每个 status 的 ships 数量", "找到 **270** 行 [q2]。", "只列出前 ```50 行```。"),
    ],
)
async def test_the_rows_that_were_found_are_told_and_not_those_that_the_model_saw(
    ask: Ask, question: str, said: str, below: str
) -> None:
    answer = await (await ask("many")).ask(question)
    assert answer.startswith(said), answer
    assert "100" not in answer
    assert below in answer


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How many ships are there?", "There are **5** ships [q1]."),
        ("How many sold ships are there?", "There are **2** ships where `status` = sold [q1]."),
        ("How many ships were launched in 2020?", "There is **1** row of ships where `launched` in 2020 [q1]."),
        ("ships per year of launched", "2019–2021: **1** to **2** ships a year [q2]."),
        ("How many ships per country?", "**3** countries: **1** to **3** ships, most: **Chile** [q2]."),
        ("average price eur of ships", "The average price eur of ships is **€250,607.26** [q1]."),
        ("total price eur of ships by status", "**2** statuses: total price eur **€107.25** to **€1,252,929.05**, "),
        ("Which country has the most ships?", "**Chile**: **3** ships [q2]."),
        ("the 2 ships with the highest price eur", "**Ada** (price eur **€1,200,000.50**), **Bo** (**€52,838.55**) "),
        ("What is the oldest ship by founded?", "**Ada**: founded **1886** [q1]."),
        ("List the ships whose name starts with C", "Found **1** row where `name` ~ C%: **Cy\\*** [q1]."),
        ("List ships launched before 2018", "No rows match [q1]."),
        ("What percentage of ships are sold?", "**40%** of ships: `status` = sold [q1]."),
        ("有多少艘船？", "共有 **5** 个 ships [q1]。"),
        ("每个国家有多少艘船？", "**3** 个 countries：ships 数 **1** 到 **3**，**Chile** 最多 [q2]。"),
        ("按年统计船的数量", "2019–2021 年：每年 ships 数 **1** 到 **2** [q2]。"),
    ],
)
async def test_an_answer_begins_with_what_was_found(ask: Ask, question: str, said: str) -> None:
    answer = await (await ask("port")).ask(question)
    assert answer.startswith(said)


GAPS = [
    (
        "ships per year of launched",
        "**4** years from 2019 to 2024 with ships: **1** to **4** each, most in **2022** [q2].",
    ),
    (
        "按年统计船的数量",
        "2019 至 2024 年之间有 ships 的年份共 **4** 个：每年 ships 数 **1** 到 **4**，**2022** 年最多 [q2]。",
    ),
    ("ships per month of launched", "**7** months from 2019-03 to 2024-07 with ships: **1** to **2** each [q2]."),
    ("ships per quarter of launched", "**7** quarters from 2019-Q1 to 2024-Q3 with ships: **1** to **2** each [q2]."),
    ("ships per day of launched", "**8** days from 2019-03-01 to 2024-07-02 with ships: **1** to **2** each, most in"),
    ("ships per year launched in 2019 or 2020", "2019–2020: **1** to **2** ships a year, most in **2019** [q2]."),
    (
        "ships per year launched in 2019 or 2022",
        "**2** years from 2019 to 2022 with ships: **2** to **4** each, most in ",
    ),
    ("ships per year launched from 2019 to 2020", "2019–2020: **1** to **2** ships a year, most in **2019** [q2]."),
    (
        "ships per month launched in 2019",
        "**2** months from 2019-03 to 2019-05 with ships: **1** each, where `launched` in ",
    ),
    (
        "ships per founded since 1911",
        "1911–1912: **1** to **3** ships a year, most in **1912**, where `founded` since 1911",
    ),
    (
        "ships per founded",
        "1910–1912: **1** to **3** ships a year, most in **1912**; without founded: **4** ships [q1].",
    ),
    ("ships per founded, descending", "1910–1912: **1** to **3** ships a year, most in **1912**; without founded: "),
    (
        "total price eur per year of launched",
        "**4** years from 2019 to 2024: total price eur **€7** to **€21**, highest",
    ),
    ("ships per status", "**3** statuses: **1** to **2** ships; without status: **4** ships [q1]."),
    ("每个 status 有多少 ships？", "**3** 个状态：ships 数 **1** 到 **2**；没有状态的：**4** 个 ships [q1]。"),
    ("ships per status and founded", "Showing 5 of 5 rows [q1]."),
    ("total price eur per status", "**3** statuses; without status: total price eur **€28** [q1]."),
    ("Which country has the most ships?", "**Chile**: **2** ships (and **3** others have as many [q1]) [q2]."),
    ("哪个国家的船最多？", "**Chile**：**2** 个 ships（另有 **3** 个并列 [q1]） [q2]。"),
    (
        "Which country has the highest total price eur?",
        "**Fiji**: total price eur **€14** (and **1** other has the same ",
    ),
    (
        "the 3 countries with the most ships",
        "**Chile** (**2** ships), **Fiji** (**2**), **Norway** (**2**) (and **1** other",
    ),
    ("Which status has the most ships?", "**active**: **2** ships (and **1** other has as many [q1]) [q2]."),
    ("Which year has the most ships launched?", "**2022**: **4** ships [q2]."),
    ("Which country has the lowest total price eur?", "**Chile**: total price eur **€7** [q2]."),
]
WITH_CONDITION = {
    "ships per year launched in 2019 or 2022": ", where `launched` in 2019 or `launched` in 2022 [q2].",
    "ships per year launched from 2018 to 2020": ", where `launched` from 2018 to ",
    "2019年和2022年每年有多少ships": "（`launched` 在 2019 年 或 `launched` 在 2022 年） [q2]。",
}


@pytest.mark.parametrize(("question", "said"), GAPS)
async def test_it_says_nothing_of_periods_groups_and_cells_that_are_not_there(
    ask: Ask, question: str, said: str
) -> None:
    answer = await (await ask("gaps")).ask(question)
    assert answer.startswith(said)


@pytest.mark.parametrize(("question", "condition"), WITH_CONDITION.items())
async def test_a_condition_on_dates_is_told_where_the_periods_are_others(
    ask: Ask, question: str, condition: str
) -> None:
    answer = await (await ask("gaps")).ask(question)
    assert condition in answer.split("\n\n")[0]


@pytest.mark.parametrize("question", [question for question, _ in GAPS if "and founded" not in question])
async def test_its_numbers_are_of_a_query_where_something_is_missing_too(ask: Ask, question: str) -> None:
    conversation = await ask("gaps")
    assert _is_traced(conversation, await conversation.ask(question))


@pytest.mark.parametrize("order", ["sort by count", "sort by founded descending"])
async def test_a_series_ends_at_its_first_and_last_period_however_it_is_sorted(ask: Ask, order: str) -> None:
    conversation = await ask("gaps")
    await conversation.ask("ships per founded")
    answer = await conversation.ask(order)
    assert answer.startswith("1910–1912: **1** to **3** ships a year, most in **1912**; "), answer


def _is_traced(conversation: Any, answer: str) -> bool:
    queries = [CitedQuery.read(one.text) for one in conversation.messages if one.role == "tool"]
    traced = citations(answer.split("\n\n")[0], [query for query in queries if query is not None])
    return bool(traced) and all(each["query"] for each in traced)


@pytest.mark.parametrize(
    "question",
    [
        "ships per year of launched",
        "How many ships per country?",
        "total price eur of ships by status",
        "List the ships",
    ],
)
async def test_each_number_of_it_is_in_the_rows(ask: Ask, question: str) -> None:
    conversation = await ask("port")
    answer = await conversation.ask(question)
    assert _is_traced(conversation, answer), answer


async def test_of_rows_that_are_cut_it_says_how_many_there_are_and_no_range(ask: Ask) -> None:
    conversation = await ask("port")
    real = conversation.tools["run_sql"].call

    async def cut(args: Any) -> Any:
        found = await real(args)
        data = found["data"]
        return found | {"data": data | {"rows": data["rows"][:2], "total": 3, "shown": "2 of 3", "truncated": True}}

    object.__setattr__(conversation.tools["run_sql"], "call", cut)
    answer = await conversation.ask("How many ships per country?")
    assert answer.startswith("**3** countries [q2].")


async def test_how_the_question_was_read_comes_after_the_rows(ask: Ask) -> None:
    answer = await (await ask("port")).ask("How many ships per country?")
    assert (
        answer.index("| Chile |") < answer.index("Read as: number of `ships` by `countries`.") < answer.index("```sql")
    )
    assert re.search(r"\| Peru +\| 1 \|", answer)


async def test_a_files_currency_is_in_the_sentence_and_the_rows(tmp_path: Path, converse: Callable[..., Any]) -> None:
    path = tmp_path / "sales.csv"
    path.write_text('city,turnover\nBonn,"€1,200.50"\nBonn,€99.00\nKiel,€10.00\n', encoding="utf-8")
    source = await open_source(str(path))
    conversation = converse({tool.name: tool for tool in analysis_tools(source)})
    answer = await conversation.ask("total turnover by city")
    assert answer.startswith("**2** cities: total turnover **€10.00** to **€1,299.50**, highest: **Bonn** [q")
    assert "| Bonn | €1,299.50 |" in answer
    await source.close()

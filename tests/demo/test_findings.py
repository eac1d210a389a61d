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
}
Ask = Callable[[str], Awaitable[Any]]


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
    queries = [CitedQuery.read(one.text) for one in conversation.messages if one.role == "tool"]
    traced = citations(answer.split("\n\n")[0], [query for query in queries if query is not None])
    assert traced and all(each["query"] for each in traced), answer


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

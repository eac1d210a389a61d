"""Questions that the demo model can answer about a database, made from its tables."""

from __future__ import annotations

import re

from longthread.demo.glossary import glossary
from longthread.demo.query.display import amounts
from longthread.demo.schema import DemoSchema, DemoTable
from longthread.tools.analysis.schema_linking import atoms, is_cjk, split_name

_UNIT = re.compile(r" (k?m|sq m) ?[23]?$", re.I)


def examples_for(schema: DemoSchema, language: str) -> list[str]:
    """Three questions about the largest tables."""
    ranked = sorted(schema.tables.values(), key=lambda table: -(table.rows or 0))
    if not ranked:
        return []
    named = [table for table in ranked if not _joins_only(table)] or ranked
    first, second = named[0], named[min(1, len(named) - 1)]
    group = next((table for table in named if _category(table)), None)
    chinese = language == "zh"
    found = [f"{_name(first, chinese=True)}有多少？" if chinese else f"How many {_plural(first)} are there?"]
    if group is not None:
        column = _words(_category(group) or "", chinese=chinese)
        found.append(
            f"按{column}统计{_name(group, chinese=True)}的数量"
            if chinese
            else f"How many {_plural(group)} per {column}?"
        )
    numbers = next(((table, amounts(table, schema)[0].name) for table in named if amounts(table, schema)), None)
    if numbers is not None:
        table, amount = numbers
        found.append(
            f"{_name(table, chinese=True)}的平均{_words(amount, chinese=True)}是多少？"
            if chinese
            else f"What is the average {_words(amount)} of {_plural(table)}?"
        )
    found.append(f"列出{_name(second, chinese=True)}" if chinese else f"List the {_plural(second)}")
    found += [f"{table.name} 有哪些列？" if chinese else f"What columns does {table.name} have?" for table in named[:2]]
    return found[:3]


def _joins_only(table: DemoTable) -> bool:
    return bool(table.columns) and all(column.keyish for column in table.columns)


def _category(table: DemoTable) -> str | None:
    for column in table.columns:
        if column.kind == "text" and column.distinct is not None and 1 < column.distinct <= 50 and not column.keyish:
            return column.name
    return None


def _words(name: str, *, chinese: bool = False) -> str:
    plain = name if is_cjk(name) else _UNIT.sub("", split_name(name))
    if not chinese or is_cjk(plain):
        return plain
    return glossary().chinese(plain) or plain


def _name(table: DemoTable, *, chinese: bool = False) -> str:
    words = table.words
    plain = (
        "".join(words)
        if is_cjk(table.name)
        else " ".join(split_name(table.name.rsplit(".", 1)[-1]).split()[-len(words) :])
    )
    if atoms(plain) in ((money := atoms("revenue")), *glossary().same(money)):
        return plain  # a table of sales is no 销售额
    return _words(plain, chinese=chinese)


def _plural(table: DemoTable) -> str:
    name = _name(table)
    if is_cjk(name) or name.endswith("s"):
        return name
    if atoms(name) not in glossary().synonyms and atoms(name.split()[-1]) not in glossary().synonyms:
        return table.name  # no word we know: its plural would be a guess
    return name[:-1] + "ies" if name.endswith("y") and name[-2:-1] not in "aeiou" else name + "s"

"""What tables and columns are called in a sentence: `order_items` are order items, or 订单明细 in Chinese."""

from __future__ import annotations

import re

from longthread.tools.analysis.schema_linking import atoms, is_cjk, split_name
from longthread_demo.glossary import glossary
from longthread_demo.schema import DemoTable

_UNIT = re.compile(r" (k?m|sq m) ?[23]?$", re.I)
_WITHOUT_PLURAL = frozenset(["staff", "people", "data", "stock", "inventory", "equipment", "news"])


def name_in_words(name: str, *, chinese: bool = False) -> str:
    """A column in words, without the unit in its name; in Chinese where the glossary has one word for it."""
    plain = name if is_cjk(name) else _UNIT.sub("", split_name(name))
    if not chinese or is_cjk(plain):
        return plain
    return glossary().chinese(plain) or plain


def table_in_words(table: DemoTable, *, chinese: bool = False) -> str:
    """A table in words, without a prefix such as `tbl_`."""
    words = table.words
    plain = (
        "".join(words)
        if is_cjk(table.name)
        else " ".join(split_name(table.name.rsplit(".", 1)[-1]).split()[-len(words) :])
    )
    if atoms(plain) in ((money := atoms("revenue")), *glossary().same(money)):
        return plain  # a table of sales is no 销售额
    return name_in_words(plain, chinese=chinese)


def table_plural(table: DemoTable) -> str:
    """What the rows of a table are called in English; its name, where that is no word we know."""
    name = table_in_words(table)
    return plural_of(name) or table.name


def plural_of(name: str) -> str:
    """The plural of a word of the glossary; empty of another: it would be a guess."""
    last = name.rpartition(" ")[2]
    hissing = name.endswith(("ss", "us", "sis"))  # class, status, diagnosis
    if is_cjk(name) or (name.endswith("s") and not hissing) or last in _WITHOUT_PLURAL:
        return name
    if atoms(name) not in glossary().synonyms and atoms(last) not in glossary().synonyms:
        return ""
    if hissing:
        return name.removesuffix("is") + "es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    return name + ("es" if name.endswith(("ch", "sh", "x", "z")) else "s")

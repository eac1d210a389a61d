"""A column's format, guessed from its name and values where nothing else tells it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.tools.analysis.formats.column_format import NUMERIC, ColumnFormat
from longthread.tools.analysis.formats.written import MOMENT, number_in, with_places

TEXT = ColumnFormat("text")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_LARGEST = 2**53
_EXACT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
_YEAR_TEXT = re.compile(r"(?:19|20)\d\d")
_MIDNIGHT = re.compile(r"\d{4,}-\d{2}-\d{2}[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::?00)?)?")
_ID = re.compile(
    r"(?:^|[_ .-])(?:ids?|uuid|key|code|zip|phone|no|number|postcode|barcode|sku|invoice|account)$|[a-z](?-i:Id|ID)$"
    r"|编号$|编码$|代码$|电话$|号$|号码$",
    re.I,
)
_YEAR = re.compile(r"(?:^|[_ .-])(?:year|yr)s?(?:[_ .-]|$)|(?:^|[_ .-])(?:founded|established|born)$|年份?$", re.I)
_PERCENT = re.compile(r"percent(?!ile)|pct(?!l)|[%％]|百分(?!位)", re.I)
_SHARE = re.compile(
    r"share(?![_ ]?price)|proportion|(?<!exchange)(?<!fx)(?<!hourly)(?:^|[_ ])rate$"
    r"|占比|比例|(?<![汇频斜心])(?<!(?<!成)功)(?<!分辨)率$",
    re.I,
)
_SCALED = re.compile(r"billion|million|thousand|(?:^|_)[bm]n(?:_|$)|[千万亿]", re.I)
"""The name says that its numbers are thousands or more."""
_CURRENCIES: Mapping[str, str] = {
    "$": r"(?:^|[_ .(（-])(?:usd|us\$|dollars?)(?:[_ .)）-]|$)|\(\$\)|美元",
    "€": r"(?:^|[_ .(（-])(?:eur|euros?)(?:[_ .)）-]|$)|€|欧元",
    "£": r"(?:^|[_ .(（-])gbp(?:[_ .)）-]|$)|£|英镑",
    "¥": r"(?:^|[_ .(（-])(?:cny|rmb|yuan)(?:[_ .)）-]|$)|[(（]元[)）]|_元$|人民币|[¥￥]",
    "₹": r"(?:^|[_ .(（-])inr(?:[_ .)）-]|$)|₹",
}
_MONEY = re.compile(
    r"price|revenue|amount|(?:^|[_ ])(?:cost|fee|salary|income|profit|budget|paid|spend|spent|balance)s?(?:[_ ]|$)"
    r"|金额|价格|单价|售价|收入|费用|成本|销售额|利润|工资|预算|余额",
    re.I,
)


def guess_format(name: str, cells: Sequence[Any]) -> ColumnFormat:
    """Guess the format of a column from its name and its cells as JSON. Its places are those that the cells need."""
    values = [cell for cell in cells if cell is not None]
    if values and all(isinstance(cell, str) and MOMENT.fullmatch(cell) for cell in values):
        return ColumnFormat("date") if all(_MIDNIGHT.fullmatch(cell) for cell in values) else TEXT
    numbers = [cell for cell in values if not (isinstance(cell, str) and cell in _NO_NUMBERS)]
    if not numbers or not _are_numbers(name, numbers):
        return TEXT
    if _is_plain(name, numbers):
        return ColumnFormat("plain", places=0)
    return with_places(_of_numbers(name, numbers), numbers)


def format_of(name: str, cells: Sequence[Any], given: ColumnFormat | None) -> ColumnFormat:
    """The format of a column: the one that is given, with the places that its cells need, or a guess. A given one of
    numbers holds where the column has some."""
    if given is None or (given.kind in NUMERIC and all(number_in(cell) is None for cell in cells)):
        return guess_format(name, cells)
    return with_places(given, cells)


def _are_numbers(name: str, cells: Sequence[Any]) -> bool:
    """Whether cells are JSON numbers, or texts of exact numbers: with a point, or too large for JSON. Else those may be
    codes."""
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in cells):
        return True
    if not all(isinstance(cell, str) for cell in cells):
        return False
    if all(_YEAR_TEXT.fullmatch(cell) for cell in cells):
        return not _ID.search(name)
    if not all(_EXACT.fullmatch(cell) for cell in cells):
        return False
    return any("." in cell or abs(int(cell)) >= _LARGEST for cell in cells)


def _is_plain(name: str, cells: Sequence[Any]) -> bool:
    """Whether whole numbers are years or ids."""
    if any(isinstance(cell, str) for cell in cells):
        return all(_YEAR_TEXT.fullmatch(str(cell)) for cell in cells) or bool(_ID.search(name))
    if not all(cell == int(cell) for cell in cells):
        return False
    if _YEAR.search(name) and all(1000 <= cell <= 2999 for cell in cells):
        return True
    return bool(_ID.search(name)) and name.lower() != "number"


def _of_numbers(name: str, cells: Sequence[Any]) -> ColumnFormat:
    sizes = [abs(number) for cell in cells if (number := number_in(cell)) is not None]
    are_parts = all(size <= 1 for size in sizes)
    if _PERCENT.search(name) and all(size <= 10_000 for size in sizes):
        is_share = are_parts and any(size % 1 for size in sizes)  # whether 0.5 is a half or 0.5% is not told
        return ColumnFormat("number" if is_share else "percent")
    if _SHARE.search(name) and are_parts and any(size % 1 for size in sizes):
        return ColumnFormat("share")
    if not _SCALED.search(name):
        unit = next((unit for unit, said in _CURRENCIES.items() if re.search(said, name, re.I)), "")
        if unit:
            return ColumnFormat("currency", unit)
        if _MONEY.search(name):
            return ColumnFormat("currency")
    return ColumnFormat("number")

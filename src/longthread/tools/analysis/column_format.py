"""A column's format, values as people write them by it, and results whose cells are written so.

As JSON: `{"kind": "currency", "unit": "€", "places": 2}`. Where nothing else tells it, it is guessed from the column's
name and values. Values are grouped, rounded to the column's places, with its unit, and without the tail of a double
(52838.549999999996).

The page has the same rules in `web/src/formats`, and shortens numbers too; both are tested by the cases of
`tests/formats.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Literal, cast, get_args

from longthread.errors import InvalidInput

FormatKind = Literal["number", "plain", "currency", "percent", "share", "unit", "date", "text"]
"""`plain`: digits without separators, such as years and ids. `percent`: 12.5 is 12.5%. `share`: 0.125 is 12.5%. `date`:
the day of a moment. `text`: as the database has it."""
KINDS: tuple[FormatKind, ...] = get_args(FormatKind)
NUMERIC: frozenset[FormatKind] = frozenset({"number", "plain", "currency", "percent", "share", "unit"})
MOST_PLACES = 10
_LONGEST_UNIT = 20
_MOST_FORMATS = 2_000
PREFIXED = frozenset({"US$", "HK$", "NT$", "A$", "C$", "R$", "$", "€", "£", "¥", "￥", "₹", "₩"})
"""Units of money that stand before a number."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?")
MOMENT = re.compile(r"(?P<day>\d{4,}-\d{2}-\d{2})[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?")
_TAIL_DIGITS = 16
"""Significant digits from which a double may have a tail."""
_TIDY_DIGITS = 12
"""Significant digits that a number without its tail has at most."""
_MEASURED_PLACES = 4
"""Places up to which a double's digits are taken for measured ones; a longer one was computed."""
_COMPUTED_PLACES = 2
_SIGNIFICANT = 3
_MOST_PLACES = 8
_LARGEST = 21
"""Digits up to which a number is written without an exponent."""
_WIDE = Context(prec=400)


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How a column is written. `places` are the digits after the point; None: as its values need them."""

    kind: FormatKind = "number"
    unit: str = ""
    places: int | None = None

    @property
    def affixes(self) -> tuple[str, str]:
        """What stands before and after a number."""
        if self.kind in ("percent", "share"):
            return "", "%"
        if self.kind not in ("currency", "unit") or not self.unit:
            return "", ""
        if self.kind == "currency" and self.unit in PREFIXED:
            return self.unit, ""
        return "", self.unit if self.unit[0] > "\u2e7f" or self.unit[0] in "°‰" else f" {self.unit}"

    def to_json(self) -> dict[str, Any]:
        """The format as JSON, without what is by default."""
        unit = {"unit": self.unit} if self.unit else {}
        return {"kind": self.kind, **unit, **({} if self.places is None else {"places": self.places})}


def format_of_json(value: Any) -> ColumnFormat:
    """Read a format. Raises InvalidInput: it is none."""
    fields = value if isinstance(value, Mapping) else {}
    kind, unit, places = fields.get("kind"), fields.get("unit", ""), fields.get("places")
    is_count = places is None or (isinstance(places, int) and not isinstance(places, bool))
    if kind not in KINDS or not isinstance(unit, str) or len(unit) > _LONGEST_UNIT or not unit.isprintable():
        wanted = f"Its kind is one of {', '.join(KINDS)}, its unit a text of at most {_LONGEST_UNIT} characters."
        raise InvalidInput(reason=f"This is no format of a column: {str(value)[:100]}. {wanted}")
    if not is_count or not 0 <= (places or 0) <= MOST_PLACES:
        raise InvalidInput(reason=f"The places of a format are a whole number from 0 to {MOST_PLACES}.")
    return ColumnFormat(cast(FormatKind, kind), unit.strip(), cast("int | None", places))


def formats_of_json(text: str) -> dict[str, ColumnFormat]:
    """Read formats by their columns' names: a JSON object. Raises InvalidInput: it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or len(found) > _MOST_FORMATS:
        raise InvalidInput(reason='Formats are a JSON object by column: {"price": {"kind": "currency", "unit": "€"}}.')
    return {name: format_of_json(value) for name, value in found.items()}


def without_tail(number: float) -> float:
    """A double as people wrote it before it was computed with: 52838.55 for 52838.549999999996; 1/3 stays, and so does
    a whole number."""
    text = repr(number)
    if number.is_integer() or len(text) < _TAIL_DIGITS or len(_significant(text)) < _TAIL_DIGITS:
        return number
    tidy = f"{number:.15g}"
    return float(tidy) if len(_significant(tidy)) <= _TIDY_DIGITS else number


def _significant(text: str) -> str:
    digits = text.partition("e")[0].replace(".", "").lstrip("-0")
    return digits.rstrip("0")


def number_in(value: Any) -> Decimal | None:
    """The number in a cell of JSON: a number, or an exact one as text. None: there is none, or one of very many
    digits."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        tidy = without_tail(value)
        number = Decimal(int(tidy)) if tidy.is_integer() else Decimal(repr(tidy))  # 13.0 has no places
        return number if number.is_finite() and abs(number.adjusted()) < _LARGEST else None
    if isinstance(value, int | Decimal):
        number = Decimal(value)
        return number if number.is_finite() and abs(number.adjusted()) < 2 * _LARGEST else None
    if isinstance(value, str) and len(value) < 2 * _LARGEST and _NUMBER.fullmatch(value):
        return Decimal(value)
    return None


def with_places(format_: ColumnFormat, values: Sequence[Any]) -> ColumnFormat:
    """The format of a column with the places that its values need, if it names none: two of money, and few of what was
    computed. An exact number keeps all of them."""
    if format_.places is not None or format_.kind not in NUMERIC:
        return format_
    power = 2 if format_.kind == "share" else 0
    numbers = [number.scaleb(power, _WIDE) for value in values if (number := number_in(value)) is not None]
    longest = max((_places(number) for number in numbers), default=0)
    largest = max((abs(number) for number in numbers), default=Decimal(0))
    is_exact = any(isinstance(value, str) for value in values)
    return replace(format_, places=_places_for(format_, longest, largest, is_exact=is_exact))


def _places_for(format_: ColumnFormat, longest: int, largest: Decimal, *, is_exact: bool) -> int:
    if format_.kind == "currency" and longest:
        return longest if largest < 10 and 2 < longest <= _MEASURED_PLACES else 2
    if format_.kind in ("percent", "share"):
        return longest if longest <= 2 else 1
    if longest <= _MEASURED_PLACES or is_exact or format_.kind == "plain":
        return longest
    if largest >= 1:
        return _COMPUTED_PLACES
    return min(_MOST_PLACES, _SIGNIFICANT - 1 - largest.adjusted())


def _places(number: Decimal) -> int:
    """The places that a number needs; zeros that an exact one ends with count."""
    return max(0, -int(number.as_tuple().exponent))


def write_value(value: Any, format_: ColumnFormat) -> str:
    """A cell of JSON as people write it. What is no number or date of the format stays; NULL is empty."""
    if value is None:
        return ""
    if format_.kind in ("date", "text") and isinstance(value, str) and (moment := MOMENT.fullmatch(value)):
        return moment["day"] if format_.kind == "date" else value.replace("T", " ")
    number = number_in(value) if format_.kind in NUMERIC else None
    if number is None:
        return str(value).lower() if isinstance(value, bool) else str(value)
    number = number.scaleb(2, _WIDE) if format_.kind == "share" else number
    rounded = _round(number, format_.places)
    digits = f"{rounded:f}" if format_.kind == "plain" else f"{rounded:,f}"
    return _add_affixes(digits, format_)


def _round(number: Decimal, places: int | None) -> Decimal:
    """A number with so many places, a half away from zero. What would be zero and is none keeps two digits."""
    if places is None:
        return number if number else Decimal(0)
    rounded = number.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _WIDE)
    if not rounded and number:
        return number.quantize(Decimal(1).scaleb(number.adjusted() - 1), ROUND_HALF_UP, _WIDE)
    return rounded if rounded else abs(rounded)


def _add_affixes(digits: str, format_: ColumnFormat) -> str:
    before, behind = format_.affixes
    sign, size = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    return f"{sign}{before}{size}{behind}"


TEXT = ColumnFormat("text")
_NO_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
_LARGEST_EXACT = 2**53
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
    """Guess the format of a column from its name and its cells as JSON. Its places are as many as the cells need."""
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
    return any("." in cell or abs(int(cell)) >= _LARGEST_EXACT for cell in cells)


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
        is_share = are_parts and any(size % 1 for size in sizes)  # whether 0.5 is a half or 0.5% is not known
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


@dataclass(frozen=True)
class FormattedRows:
    """A result: its cells as JSON, how they are written, and how many rows there are."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    formats: tuple[ColumnFormat, ...]
    total: int | None
    """How many rows the query has; None: they were not counted."""

    @classmethod
    def read(cls, data: Mapping[str, Any], known: Mapping[str, ColumnFormat] | None = None) -> FormattedRows:
        """Read the data of a query's observation. Its own formats hold before the `known` ones of columns by name."""
        columns = tuple(str(name) for name in data.get("columns") or ())
        rows: Sequence[Sequence[Any]] = data.get("rows") or ()
        given = dict(known or {}) | {name: format_of_json(each) for name, each in (data.get("formats") or {}).items()}
        formats = tuple(format_of(name, [row[at] for row in rows], given.get(name)) for at, name in enumerate(columns))
        total = data.get("total")
        return cls(columns, rows, formats, len(rows) if total is None and not data.get("truncated") else total)

    @property
    def is_whole(self) -> bool:
        return self.total == len(self.rows)

    def format_cell(self, row: int, column: int) -> str:
        """Return a cell as people write it, for Markdown; a dash where there is no value."""
        cell = self.rows[row][column]
        if isinstance(cell, dict | list):
            cell = json.dumps(cell, ensure_ascii=False)
        return "—" if cell is None else escape_cell(write_value(cell, self.formats[column]))

    def strong(self, row: int, columns: Sequence[int]) -> str:
        """Return cells of a row as one name or number."""
        text = " ".join(self.format_cell(row, at) for at in columns).strip().replace("*", "\\*")
        return f"**{text}**" if text else "“”"

    def table(self, rows: int) -> str:
        """Return the first rows as a table of Markdown."""
        lines = ["| " + " | ".join(map(escape_cell, self.columns)) + " |", "|" + " --- |" * len(self.columns)]
        places = range(len(self.columns))
        lines += ["| " + " | ".join(self.format_cell(row, at) for at in places) + " |" for row in range(rows)]
        return "\n".join(lines)


def escape_cell(text: str) -> str:
    """Return a text as a cell of a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ").replace("\r", " ")


def write_cut_note(rows: int, *, is_chinese: bool) -> str:
    """Return what stands below a table that shows the first rows alone. The page leaves it out with the table. Its
    number is set as code: it comes from no row."""
    return f"这里只列出前 ```{rows} 行```。" if is_chinese else f"Only the first ```{rows}``` are printed here."

"""A column's format, as JSON: `{"kind": "currency", "unit": "€", "places": 2}`.

The page has the same rule in `web/src/formats`; both are tested by the cases of `tests/formats.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ColumnFormat:
    """How a column is written. `places` are the digits behind the point; None: as its values need them."""

    kind: FormatKind = "number"
    unit: str = ""
    places: int | None = None

    @property
    def affixes(self) -> tuple[str, str]:
        """What stands before and behind a number."""
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

"""Which query each number of an answer came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from longthread.model.fold import observation_of

_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![A-Za-z0-9_]|[.,]\d)")
_LABEL = re.compile(r"\[q\d+(?:\s*,\s*q\d+)*\]")
_CODE = re.compile(r"```.*?```", re.DOTALL)


def query_results(observations: Sequence[str]) -> list[dict[str, Any]]:
    """The `run_sql` data among tool results, in order: those that carry a query label."""
    data = [observation_of(text).get("data") for text in observations]
    return [dict(item) for item in data if isinstance(item, Mapping) and item.get("query") and "sql" in item]


def citations(answer: str, queries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each number of an answer with the newest query whose rows hold it; `query` is None where none does.

    A count of rows counts as held. Numbers in code blocks and labels are not the answer's.
    """
    held = [(query["query"], set(_numbers_in(query))) for query in queries]
    cited: list[dict[str, Any]] = []
    for text in dict.fromkeys(_numbers(_LABEL.sub(" ", _CODE.sub(" ", answer)))):
        value = _decimal(text)
        sources = [label for label, numbers in held if value is not None and _holds(numbers, value)]
        cited.append({"number": text, "query": sources[-1] if sources else None})
    return cited


def _numbers(text: str) -> Iterator[str]:
    return (match.group() for match in _NUMBER.finditer(text))


def _numbers_in(query: Mapping[str, Any]) -> Iterator[Decimal]:
    for key in ("row_count", "total"):
        if isinstance(query.get(key), int):
            yield Decimal(query[key])
    for row in query.get("rows", []):
        for cell in row:
            for text in _numbers(str(cell)):
                value = _decimal(text)
                if value is not None:
                    yield value


def _holds(numbers: set[Decimal], value: Decimal) -> bool:
    if value in numbers:
        return True
    # An answer may round: 5.652 is 5.65 said with two places.
    places = -int(value.as_tuple().exponent)
    return places > 0 and any(abs(number - value) * 2 <= Decimal(10) ** -places for number in numbers)


def _decimal(text: str) -> Decimal | None:
    try:
        value = Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None
    return value if value.is_finite() else None

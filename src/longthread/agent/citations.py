"""Which query each number of an answer came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from longthread.model.fold import observation_of

_DATE = r"\d{4}-\d{2}-\d{2}"
_NUMBER = re.compile(rf"(?<![A-Za-z0-9_.])(?:{_DATE}|-?\d+(?:,\d{{3}})*(?:\.\d+)?)(?![A-Za-z0-9_]|[.,]\d)")
_LABEL = re.compile(r"\[q\d+(?:\s*,\s*q\d+)*\]")
_MARKER = re.compile(r"^\s*\d+[.)、]\s", re.MULTILINE)
_CODE = re.compile(r"```.*?```", re.DOTALL)


def query_results(observations: Sequence[str]) -> list[dict[str, Any]]:
    """The `run_sql` data among tool results, in order: those that carry a query label."""
    data = [observation_of(text).get("data") for text in observations]
    return [dict(item) for item in data if isinstance(item, Mapping) and item.get("query") and "sql" in item]


def citations(answer: str, queries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each number and date of an answer with the newest query whose rows hold it; `query` is None where none does.

    A count of rows counts as held; failing rows, a query whose SQL says the number (a year, a limit) is its source.
    Numbers in code blocks and labels are not the answer's.
    """
    held = [(query["query"], set(_values(str(query["sql"])))) for query in queries]
    held += [(query["query"], set(_values_in(query))) for query in queries]
    cited: list[dict[str, Any]] = []
    for text in dict.fromkeys(_NUMBER.findall(_words(answer))):
        sources = [label for label, values in held if _holds(values, _value(text))]
        cited.append({"number": text, "query": sources[-1] if sources else None})
    return cited


def _words(answer: str) -> str:
    """The answer without code, labels and the numbers of a list's items."""
    for pattern in (_CODE, _LABEL, _MARKER):
        answer = pattern.sub(" ", answer)
    return answer


def _values_in(query: Mapping[str, Any]) -> Iterator[Decimal | str]:
    yield from (Decimal(query[key]) for key in ("row_count", "total") if isinstance(query.get(key), int))
    for row in query.get("rows", []):
        for cell in row:
            yield from _values(str(cell))


def _values(text: str) -> Iterator[Decimal | str]:
    """The numbers and dates in a text; a date stands for its year too."""
    for found in _NUMBER.findall(text):
        value = _value(found)
        yield value
        if isinstance(value, str):
            yield Decimal(value[:4])


def _value(text: str) -> Decimal | str:
    return text if re.fullmatch(_DATE, text) else Decimal(text.replace(",", ""))


def _holds(values: set[Decimal | str], wanted: Decimal | str) -> bool:
    if wanted in values:
        return True
    if isinstance(wanted, str):
        return False
    # An answer may round: 5.652 is 5.65 said with two places.
    places = -int(wanted.as_tuple().exponent)
    numbers = (value for value in values if isinstance(value, Decimal))
    return places > 0 and any(abs(number - wanted) * 2 <= Decimal(10) ** -places for number in numbers)

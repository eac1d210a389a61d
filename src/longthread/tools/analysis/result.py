"""The rows of a statement, their values as JSON, and a query's rows for an observation: limited, with notes on what is
missing. An engine gives text where Python's types would lose digits."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from itertools import accumulate
from typing import Any

from longthread.tools.analysis.limits import Interrupted, Limits, Watch

LARGEST = 2**53 - 1
"""The largest whole number that every JSON reader holds exactly."""
_DIGITS = 6
"""Digits after the decimal point that are never lost."""
_MOST_DIGITS = 200_000
"""Digits up to which a number is written out: PostgreSQL has up to 147,455, a document may have `1e999999999`."""
_LEAST = Decimal("1e-300")
"""Above it a double has fifteen digits."""
_WHOLE_BYTES = 64
"""Bytes up to which a binary value is shown."""
_MOMENT = re.compile(r"(\d{4,}-\d\d-\d\d) (?=\d\d:\d\d)")
_HOURS = re.compile(r"(:\d\d(?:\.\d+)?[+-]\d\d)(?=$| BC$| \(BC\)$)")

Binary = Callable[[bytes], str]
"""Writes a binary value as its database does."""


def hexadecimal(value: bytes) -> str:
    r"""As PostgreSQL writes it: `\x00ff`."""
    return f"\\x{value.hex()}"


def json_cell(value: Any, limit: int, binary: Binary = hexadecimal) -> tuple[Any, bool]:
    """`value` as JSON, with text cut to `limit` characters, and whether something was cut."""
    cell, was_cut = render_cell(value, limit, binary)
    return as_numbers([cell])[0], was_cut


def render_cell(value: Any, limit: int, binary: Binary = hexadecimal) -> tuple[Any, bool]:
    """Like `json_cell`, but exact numbers stay: `as_numbers` decides by the whole column."""
    if isinstance(value, bytes | bytearray | memoryview) and len(value) > _WHOLE_BYTES:
        return f"<{len(value)} bytes>", False
    safe = plain(value, binary, limit)
    if isinstance(safe, str) and len(safe) > limit:
        return cut(safe, limit), True
    if isinstance(safe, Decimal) and safe.is_finite() and abs(safe.adjusted()) > limit:
        return cut(number_text(safe), limit), True
    if isinstance(safe, float) and not is_finite(safe):
        return name_of(safe), False
    if isinstance(safe, list | dict):
        text = json.dumps(safe, ensure_ascii=False)
        if len(text) > limit:
            return cut(text, limit), True
    return safe, False


def as_numbers(column: Sequence[Any], *, rounded: bool = False) -> list[Any]:
    """Return a column with its exact numbers as JSON numbers, or with all numbers as text if a double would change one.
    Of `rounded` numbers only the first digits after the point count."""
    exact = [cell for cell in column if _is_number(cell) and not isinstance(cell, float)]
    if not exact:
        return list(column)
    form = _number if all(fits(cell, rounded=rounded) for cell in exact) else number_text
    return [form(cell) if _is_number(cell) else cell for cell in column]


def plain(value: Any, binary: Binary = hexadecimal, limit: int | None = None) -> Any:
    """`value` as None, a bool, a number, a text, or a list or dict of JSON values."""
    if value is None or isinstance(value, bool | float | Decimal):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        # A lone surrogate, which some drivers let through, becomes a question mark. A longer text is cut first.
        longer = limit is not None and len(value) > limit
        return value if longer or value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, bytes | bytearray | memoryview):
        return binary(bytes(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _inner(item, binary) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_inner(item, binary) for item in value]
    return str(value)


def cut(text: str, limit: int) -> str:
    """Cuts a text to `limit` characters, with a note of its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def iso(text: str) -> str:
    """A date or time in ISO 8601: with a T, and with the minutes of its time zone."""
    return _HOURS.sub(r"\1:00", _MOMENT.sub(r"\1T", text))


def is_finite(number: float | Decimal) -> bool:
    """Whether a number is neither NaN nor infinite."""
    return number.is_finite() if isinstance(number, Decimal) else math.isfinite(number)


def name_of(number: float | Decimal) -> str:
    """The name of a number that JSON does not have."""
    return "NaN" if "nan" in str(number).casefold() else "Infinity" if number > 0 else "-Infinity"


def number_text(number: float | Decimal) -> str:
    """A number with all its digits; an exact one without an exponent."""
    if isinstance(number, int):
        return str(number)
    if not is_finite(number):
        return name_of(number)
    if isinstance(number, Decimal):
        return format(number, "f") if abs(number.adjusted()) < _MOST_DIGITS else str(number)
    return repr(number)


def fits(number: float | Decimal, *, rounded: bool = False) -> bool:
    """Whether a double holds the number; of a `rounded` one, its first digits."""
    if isinstance(number, int):
        return abs(number) <= LARGEST
    if isinstance(number, float) or not number.is_finite():
        return True
    if number.copy_abs() > LARGEST:
        return False
    if Decimal(repr(float(number))) == number:
        return True
    return rounded and int(number.as_tuple().exponent) < -_DIGITS and number.copy_abs() > _LEAST


def _inner(value: Any, binary: Binary) -> Any:
    found = plain(value, binary)
    if _is_number(found):
        return _number(found) if fits(found, rounded=True) else number_text(found)
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _number(number: float | Decimal) -> Any:
    """A JSON number, or the name of one that JSON does not have."""
    if not is_finite(number):
        return name_of(number)
    if isinstance(number, Decimal):
        return int(number) if number == number.to_integral_value() else float(number)
    return number


_CUT = " each says how long it is."
_BESIDE = 1_000
"""Bytes of an observation that are reserved in addition to its rows."""


class Rows:
    """Column names and a lazy iterator over rows. `binary` writes a binary value as the database does; `quotients` are
    the places of computed columns, whose numbers are rounded to a double."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterator[Sequence[Any]],
        binary: Binary = hexadecimal,
        quotients: Collection[int] = (),
    ) -> None:
        self.columns = list(columns)
        self.binary = binary
        self.quotients = quotients
        self._rows = rows

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self._rows

    def first(self) -> Sequence[Any] | None:
        """The first row, or None; closes the statement."""
        row = next(self._rows, None)
        self.close()
        return row

    def close(self) -> None:
        """Closes the statement."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()


@dataclass
class Result:
    """The first rows of a query, and their number."""

    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    counted: int = 0
    """Rows that were read."""
    complete: bool = True
    """Whether all rows were read."""
    cut_cells: int = 0
    stopped: bool = False
    """Whether the time was up before all rows to show were read."""
    all_columns: int = 0
    """The number of columns, if not all are shown."""

    @property
    def total(self) -> int | None:
        """The number of rows, if they were all counted."""
        return self.counted if self.complete else None

    @property
    def rows_shown(self) -> str:
        """ "N of M" """
        of = str(self.counted) if self.complete else f"more than {self.counted}"
        return f"{len(self.rows)} of {of}"

    @property
    def is_wide(self) -> bool:
        return self.all_columns > len(self.columns)

    def truncate_to(self, room: int) -> Result:
        """The rows that fit into `room` bytes of JSON with the column names; fewer columns if not even one row fits."""
        shown = len(self.columns)
        while shown > 1 and _size(self.columns[:shown]) + _size((self.rows or [[]])[0][:shown]) > room:
            shown = shown * 3 // 4
        rows = [row[:shown] for row in self.rows]
        left = room - _size(self.columns[:shown])
        count = sum(1 for total in accumulate(_size(row) for row in rows) if total <= left)
        counted = replace(self, rows=rows[: max(count, 1)], columns=self.columns[:shown])
        return replace(counted, all_columns=max(self.all_columns, len(self.columns)))

    def build_observation(self, limits: Limits, keep: int, beside: int = 0) -> dict[str, Any]:
        """Return the data of an observation, for at most `keep` rows. Reserve the bytes of the last argument for other
        data."""
        return self.truncate_to(max(limits.bytes // 4, limits.bytes - _BESIDE - beside))._build_observation_data(
            limits, keep
        )

    def _build_observation_data(self, limits: Limits, keep: int) -> dict[str, Any]:
        notes = []
        if self.is_wide:
            notes.append(
                f"Only the first {len(self.columns)} of {self.all_columns} columns fit. Select those you need."
            )
        if self.stopped:
            notes.append("The query was stopped when its time was up. These are its first rows.")
        if self.cut_cells:
            were = "long value was cut;" if self.cut_cells == 1 else "long values were cut;"
            notes.append(f"{self.cut_cells} {were}{_CUT}")
        if not self.stopped and len(self.rows) < min(self.counted, keep):
            fits = "row fits" if len(self.rows) == 1 else "rows fit"
            notes.append(f"Only {len(self.rows)} {fits} into {limits.bytes} bytes. Select fewer columns.")
        return {
            "columns": self.columns,
            "rows": self.rows,
            "row_count": len(self.rows),
            "total": self.total,
            "shown": self.rows_shown,
            "truncated": self.is_wide or self.rows_shown != f"{len(self.rows)} of {len(self.rows)}",
            "notes": notes,
        }


def is_whole(data: Mapping[str, Any]) -> bool:
    """Whether an observation has all rows of its query, with all of their cells uncut."""
    return not data.get("truncated") and not any(str(note).endswith(_CUT) for note in data.get("notes") or ())


def fetch(interrupt: Callable[[], None], rows: Rows, limits: Limits, *, keep: int, cell: int) -> Result:
    """Reads the first `keep` rows within the bytes, and counts the others. Raises Interrupted before the first row."""
    result = Result(rows.columns)
    room = limits.bytes
    try:
        for row in rows:
            result.counted += 1
            shaped, cut = shaped_row(row, cell, room if not result.rows else None, rows.binary)
            room -= _size(shaped)
            if room < 0 and result.rows:
                break
            result.rows.append(shaped)
            result.cut_cells += cut
            if len(result.rows) >= keep:
                break
        else:
            return result
        count_rest(interrupt, rows, result, limits)
    except Interrupted:
        if not result.rows:
            raise
        result.complete, result.stopped = False, True
    finally:
        rows.close()
        result.rows = evenly(result.rows, rows.quotients)
    return result


def evenly(rows: list[list[Any]], quotients: Collection[int]) -> list[list[Any]]:
    """Gives the numbers of a column one form."""
    if not rows or not rows[0]:
        return rows
    columns = [as_numbers(column, rounded=at in quotients) for at, column in enumerate(zip(*rows, strict=True))]
    return [list(row) for row in zip(*columns, strict=True)]


def count_rest(interrupt: Callable[[], None], rows: Rows, result: Result, limits: Limits) -> None:
    """Counts the rows that follow those of the result, as far as the limits allow."""
    with Watch(interrupt, limits.count_seconds) as watch:
        try:
            for _ in rows:
                result.counted += 1
                if result.counted > limits.counted_rows:
                    result.counted, result.complete = limits.counted_rows, False
                    return
        except Interrupted:
            if not watch.expired:
                raise
            result.complete = False


def shaped_row(row: Sequence[Any], cell: int, room: int | None, binary: Binary) -> tuple[list[Any], int]:
    """A row of JSON values and exact numbers. The first row is cut to fit into `room`, as one row is always shown."""
    cells = [render_cell(value, cell, binary) for value in row]
    if room is not None and cells:
        fits = max(16, room // (8 * len(cells)))
        if _size([value for value, _ in cells]) > room and fits < cell:
            cells = [render_cell(value, fits, binary) for value in row]
    return [value for value, _ in cells], sum(cut for _, cut in cells)


def _size(row: Sequence[Any]) -> int:
    """Bytes of a row as JSON, with its separator."""
    return len(json.dumps(row, ensure_ascii=False, default=str).encode()) + 2

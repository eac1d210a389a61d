"""The rows of a statement, as an engine gives them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from longthread.tools.analysis.cell import Binary, hexadecimal


class Rows:
    """The result of one statement: column names and an iterator over rows, read as they are asked for. `binary` writes
    a binary value as the database does; `quotients` are the places of columns whose digits may go on for ever, and are
    shown as a double has them."""

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
        """The first row, or None; the rest is dropped."""
        row = next(self._rows, None)
        self.close()
        return row

    def close(self) -> None:
        """Ends the statement."""
        close = getattr(self._rows, "close", None)
        if close is not None:
            close()

"""The rows of a statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from longthread.tools.analysis.cell import Binary, hexadecimal


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

"""Excel workbooks: the rows of each sheet as texts."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from longthread.errors import SourceUnreadable
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.files.old_workbook import OLE, DamagedWorkbook, expect_bounded_old
from longthread.tools.analysis.files.workbook_bounds import expect_bounded

_ZIP = b"PK\x03\x04"
_UNKNOWN = re.compile(rb'<c (?![^<>]*t="str")[^<>]*>\s*+<f[^<>]*>[^<]*</f>\s*+(?:<v\s*+/>|<v>\s*+</v>)?\s*+</c>')
"""A formula without a value. Linear: no part of it crosses the beginning of another cell."""
_SEARCHED = 64_000_000
"""Bytes that are searched for formulas without a value."""
_EXACT = 10**15
"""Below it a number of Excel is exact."""


@dataclass
class Sheet:
    """A sheet's rows. `merged` are the rows with cells that span several columns."""

    name: str
    rows: list[list[str]]
    merged: set[int] = field(default_factory=set)
    notes: list[Note] = field(default_factory=list)


def sheets_of(path: Path, source: str) -> tuple[list[Sheet], list[Note]]:
    """The visible sheets with cells, and notes on the others. Of which format it is, its first bytes tell. Raises
    SourceUnreadable."""
    try:
        with path.open("rb") as file:
            is_old = file.read(len(OLE)) == OLE
            (expect_bounded_old if is_old else expect_bounded)(path, source)
            file.seek(0)
            with _PanicIsDamage(), CalamineWorkbook.from_filelike(file) as book:
                return _read(book, 0 if is_old else _uncalculated(path))
    except PasswordError as error:
        reason = f"{path.name} has a password. Save it without one."
        raise SourceUnreadable(source=source, reason=reason) from error
    except (CalamineError, DamagedWorkbook, zipfile.BadZipFile, OSError) as error:
        reason = f"{path.name} is no workbook, or is damaged. Open it in Excel and save it as .xlsx again."
        raise SourceUnreadable(source=source, reason=reason) from error


class _PanicIsDamage:
    """Turns a panic of the library into DamagedWorkbook. Its class cannot be imported, and is no Exception."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None and kind.__name__ == "PanicException":
            raise DamagedWorkbook(str(error)) from error


def is_text(path: Path, source: str) -> bool:
    """Whether a file that is called a workbook is a table of text, as many programs write it. Raises SourceUnreadable:
    it is a web page."""
    with path.open("rb") as file:
        head = file.read(1_000)
    if head.startswith((OLE, _ZIP)):
        return False
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        reason = f"{path.name} is a web page that is called a workbook. Open it in Excel and save it as .xlsx."
        raise SourceUnreadable(source=source, reason=reason)
    return True


def _read(book: CalamineWorkbook, uncalculated: int) -> tuple[list[Sheet], list[Note]]:
    sheets: list[Sheet] = []
    left_out: list[Note] = []
    for about in book.sheets_metadata:
        if about.typ != SheetTypeEnum.WorkSheet:
            left_out.append(_left_out(about.name, "it has no cells", "sheet_no_cells"))
        elif about.visible != SheetVisibleEnum.Visible:
            left_out.append(_left_out(about.name, "it is hidden", "sheet_hidden"))
        else:
            sheet = _sheet(about.name, book.get_sheet_by_name(about.name))
            if sheet.rows:
                sheets.append(sheet)
            else:
                left_out.append(_left_out(about.name, "it is empty", "sheet_empty"))
    if uncalculated:
        cells = "1 formula has" if uncalculated == 1 else f"{uncalculated:,} formulas have"
        told = f"{cells} no stored value: such cells are empty here. Open the file in Excel and save it."
        left_out.append(Note(told, "no_stored_values", n=uncalculated))
    return sheets, left_out


def _left_out(sheet: str, why: str, code: str) -> Note:
    return Note(f'The sheet "{sheet}" is left out: {why}.', code, sheet=sheet)


def _sheet(name: str, sheet: CalamineSheet) -> Sheet:
    # From the first row of the sheet on, as merged ranges count them.
    rows = [[_text(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]
    filled = _fill_down(rows, sheet)
    used = [at for row in rows for at, cell in enumerate(row) if cell]
    first, last = (min(used), max(used)) if used else (0, -1)
    rows = [row[first : last + 1] for row in rows] if used else []
    merged = {top for (top, left), (_, right) in sheet.merged_cell_ranges or () if right > left > first}
    told = Note("Cells that are merged over several rows have their value in each of them.", "merged_cells")
    return Sheet(name, rows, merged, [told] if filled else [])


def _fill_down(rows: list[list[str]], sheet: CalamineSheet) -> bool:
    """Fills each cell once, though a damaged file may have any number of ranges over it."""
    filled = False
    reached: dict[int, int] = {}
    """The last row of a column that a range has had."""
    for (top, left), (bottom, _) in sorted(sheet.merged_cell_ranges or ()):
        if bottom > top and top < len(rows) and left < len(rows[top]) and rows[top][left]:
            for at in range(max(top, reached.get(left, 0)) + 1, min(bottom + 1, len(rows))):
                rows[at][left] = rows[top][left]
                filled = True
            reached[left] = max(bottom, reached.get(left, 0))
    return filled


def _text(value: Any) -> str:
    """A cell as in a text file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(value.total_seconds(), 60)
        return f"{int(minutes // 60):02}:{int(minutes % 60):02}:{seconds:02.0f}"
    return str(value)


def _uncalculated(path: Path) -> int:
    """The number of formulas without a stored value, as programs other than Excel write them."""
    count, left = 0, _SEARCHED
    with zipfile.ZipFile(path) as archive:
        for part in archive.infolist():
            if part.filename.startswith("xl/worksheets/") and part.filename.endswith(".xml") and part.file_size <= left:
                left -= part.file_size
                count += sum(1 for _ in _UNKNOWN.finditer(archive.read(part)))
    return count

"""Finds the form of delimited rows (delimiter, quote, escape) and the table in them: title lines, header, footnotes."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.files.readings import CellKind, kind_of
from longthread.tools.analysis.quoting import UniqueNames

if TYPE_CHECKING:
    from _csv import Reader

TextRow = Sequence[str]
_LOOKED_AT = 200
"""Rows that decide the layout."""
_NOT_TITLE = 0.6
"""The least share of columns that a header names."""
_FOOTNOTE = re.compile(
    r"(?:\*|†|‡|\(?\d+\)|(?:sources?|notes?|footnotes?|last updated)\b"
    r"|(?:数据)?来源|資料來源|备注|備註|说明|說明|注|註|出典|출처)",
    re.I,
)
_SHOWN = 60


@dataclass(frozen=True)
class TableLayout:
    """The names of a table's columns, and the row where its values begin."""

    names: tuple[str, ...]
    start: int
    notes: tuple[Note, ...] = ()


def layout_of(rows: Sequence[TextRow], merged: Collection[int] = ()) -> TableLayout:
    """The layout of a file's first rows. `merged` are the rows with cells that span several columns."""
    filled = [index for index, row in enumerate(rows[:_LOOKED_AT]) if _count(row)]
    if not filled:
        return TableLayout((), len(rows))
    width = _width([rows[index] for index in filled])
    first = _first_of_table(rows, filled, width)
    following = next((index for index in filled if index > first), None)
    if following is not None and _heads(rows, filled, first, following, width, first in merged):
        first = following
    notes = [_titles_note([rows[index] for index in filled if index < first])] if first > filled[0] else []
    below = [rows[index] for index in filled if index > first]
    width = max(width, len(_trim_row(rows[first])))
    if not is_header(rows[first], below):
        notes.append(Note("The file has no header: its columns are numbered.", "no_header"))
        return TableLayout(_unique([""] * width), first, tuple(notes))
    header = list(rows[first])
    group = max((index for index in filled if index < first), default=None)
    if group is not None and _is_group(rows[group], header, group in merged):
        above = _filled_right(rows[group], width)
        header = [name if over == name.strip() else f"{over} {name}" for over, name in zip(above, header, strict=False)]
        titles = [rows[index] for index in filled if index < group]
        notes = [Note("Its header has two rows, which are joined to the columns' names.", "two_header_rows")]
        notes += [_titles_note(titles)] if titles else []
    if len(header) == width - 1 and below and all(len(_trim_row(row)) == width for row in below):
        header = ["", *header]
        told = "Its header has a name less than the rows have values: the first column is taken to have none."
        notes.append(Note(told, "header_short"))
    if any(kind_of(cell) in ("number", "year", "date") for cell in rows[first]):
        told = "Its first row is taken for the header, though there are numbers or dates in it."
        notes.append(Note(told, "header_numbers"))
    padded = [cell.strip() for cell in (*header, *[""] * (width - len(header)))][:width]
    names = _unique(padded)
    twice = sorted({name for name, count in Counter(name.casefold() for name in padded if name).items() if count > 1})
    if twice:
        notes.append(
            Note(f"Columns of one name are numbered: {_quote_texts(twice)}.", "equal_names", names=_quote_texts(twice))
        )
    return TableLayout(names, first + 1, tuple(notes))


def footer(rows: Sequence[TextRow], width: int) -> int:
    """The number of footnote rows at the end: lone texts without delimiters, under a blank row, or with the beginning
    of a footnote. Blank rows among them count too."""
    if width < 2:
        return 0
    at = len(rows)
    while at and (not _count(rows[at - 1]) or _is_alone(rows[at - 1])):
        at -= 1
    tail = rows[at:]
    before = [row for row in rows[:at] if _count(row)]
    if not before or sum(len(row) == width for row in before) < len(before) * 0.8 or len(tail) > 30:
        return 0
    for index, row in enumerate(tail):
        if not _count(row):
            continue
        blank_above = index > 0 and not _count(tail[index - 1])
        is_sentence = bool(_FOOTNOTE.match(row[0].strip())) or " " in row[0].strip() or "：" in row[0] or ":" in row[0]
        starts = (len(row) == 1 and is_sentence) or blank_above or (width > 2 and bool(_FOOTNOTE.match(row[0].strip())))
        if starts and kind_of(row[0]) == "text":
            return len(tail) - index
    return 0


def is_header(row: TextRow, below: Sequence[TextRow]) -> bool:
    """Whether a row names the columns of the rows below it."""
    kinds = [kind_of(cell) for cell in row]
    columns = [_kind([one[at] for one in below if at < len(one)]) for at in range(len(row))]
    if not below:
        return all(kind in ("text", "empty") for kind in kinds)
    typed = ("number", "year", "date", "truth")
    if any(kind == "text" and column in typed for kind, column in zip(kinds, columns, strict=True)):
        return True
    again = any(
        kind == "text" and cell.strip() in {one[at].strip() for one in below if at < len(one)}
        for at, (cell, kind) in enumerate(zip(row, kinds, strict=True))
    )
    valued = [at for at, kind in enumerate(kinds) if kind not in ("text", "empty")]
    if again or any(kind in ("missing", "truth") for kind in kinds):
        return False
    cells = [row[at].strip() for at in valued]
    return not valued or _are_labels(cells, [kinds[at] for at in valued], valued, columns, below, kinds[0] == "empty")


def _are_labels(
    cells: Sequence[str],
    kinds: Sequence[CellKind],
    at: Sequence[int],
    columns: Sequence[CellKind],
    below: Sequence[TextRow],
    corner: bool,
) -> bool:
    """Whether numbers or dates name columns: years or dates over other values, or steps that no row below has."""
    if len(set(cells)) < len(cells):
        return False
    if all(kind in ("year", "date") and columns[index] != kind for kind, index in zip(kinds, at, strict=True)):
        return True
    step = _step(cells)
    steps = [_step([row[index].strip() for index in at if index < len(row)]) for row in below]
    if corner and step == 1 and int(cells[0]) in (0, 1):
        return True
    if step is None or steps.count(step) * 2 > len(steps):
        return False
    return all(kind == "year" for kind in kinds) or (step == 1 and len(cells) > 2 and int(cells[0]) in (0, 1))


def _step(cells: Sequence[str]) -> int | None:
    """The constant difference between whole numbers, if any."""
    if len(cells) < 2 or not all(cell.isascii() and cell.isdigit() and len(cell) < 10 for cell in cells):
        return None
    numbers = [int(cell) for cell in cells]
    steps = {after - before for before, after in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 and 0 not in steps else None


def _kind(cells: Sequence[str]) -> CellKind:
    """The kind of nearly all values of a column, else `text`."""
    counts = Counter(kind for cell in cells if (kind := kind_of(cell)) not in ("empty", "missing"))
    total = sum(counts.values())
    if not total:
        return "empty"
    kind, count = counts.most_common(1)[0]
    if count >= 0.9 * total:
        return kind
    return "number" if counts["number"] + counts["year"] >= 0.9 * total else "text"


def _width(rows: Sequence[TextRow]) -> int:
    """The most frequent width above one; of two the first."""
    counts = Counter(len(row) for row in rows if len(row) > 1) or Counter([1])
    return counts.most_common(1)[0][0]


def _first_of_table(rows: Sequence[TextRow], filled: Sequence[int], width: int) -> int:
    """The index of the header, or of the first row without one."""
    if width < 2:
        return filled[0]
    for place, index in enumerate(filled[:-1]):
        row = rows[index]
        after = rows[filled[place + 1]]
        apart = _count(row) < width and rows[index + 1] is not after
        apart = apart and any(
            _count(rows[at]) == width and _names_all(rows[at], width) for at in filled[place + 1 :][:12]
        )
        short = len(row) < width and (_is_alone(row) or rows[index + 1] is not after or _names_all(after, width))
        sparse = _count(row) < max(2, _NOT_TITLE * width)
        sparse = sparse and any(_names_all(rows[at], width) for at in filled[place + 1 : place + 12])
        if not (short or sparse or apart):
            return index
    return filled[0] if len(filled) == 1 or _count(rows[filled[-1]]) < width else filled[-1]


def _names_all(row: TextRow, width: int) -> bool:
    """Whether a row could name nearly all columns, by texts or years."""
    kinds = [kind_of(cell) for cell in row]
    named = sum(kind in ("text", "year", "date") for kind in kinds)
    return len(row) >= width and named == _count(row) and named >= max(2, _NOT_TITLE * width) and "text" in kinds


def _heads(rows: Sequence[TextRow], filled: Sequence[int], at: int, following: int, width: int, merged: bool) -> bool:
    """Whether the first row names groups of the columns that the following row names."""
    header = rows[following]
    if not _is_group(rows[at], header, merged) or not _names_all(header, width) or all(c.strip() for c in rows[at]):
        return False
    below = [rows[index] for index in filled if index > following]
    return bool(below) and is_header(header, below)


def _is_group(row: TextRow, header: TextRow, merged: bool) -> bool:
    """Whether a row above the header names groups of its columns."""
    places = [at for at, cell in enumerate(row) if cell.strip()]
    names = [cell.strip().casefold() for cell in header if cell.strip()]
    if not places or len(row) < len(header) or places == [0]:
        return False
    return merged or len(set(names)) < len(names)


def _filled_right(row: TextRow, width: int) -> list[str]:
    found: list[str] = []
    for cell in (*row, *[""] * (width - len(row))):
        found.append(cell.strip() or (found[-1] if found else ""))
    return found


def _unique(cells: Sequence[str]) -> tuple[str, ...]:
    names = UniqueNames(first=1)
    return tuple(names.take(" ".join(cell.split()) or f"column{at}") for at, cell in enumerate(cells))


def _titles_note(rows: Sequence[TextRow]) -> Note:
    texts = [" ".join(cell.strip() for cell in row if cell.strip()) for row in rows]
    lines = "line above the header is" if len(texts) == 1 else "lines above the header are"
    told = f"{len(texts)} {lines} left out: {_quote_texts(texts)}."
    return Note(told, "titles", n=len(texts), texts=_quote_texts(texts))


def _quote_texts(texts: Sequence[str], most: int = 3) -> str:
    shown = [f'"{text if len(text) <= _SHOWN else text[:_SHOWN] + "…"}"' for text in texts[:most]]
    return ", ".join(shown) + (", …" if len(texts) > most else "")


def _count(row: TextRow) -> int:
    return sum(1 for cell in row if cell.strip())


def _is_alone(row: TextRow) -> bool:
    """Whether only the first cell is filled."""
    return _count(row) == 1 and bool(row[0].strip())


def _trim_row(row: TextRow) -> TextRow:
    end = len(row)
    while end and not row[end - 1].strip():
        end -= 1
    return row[:end]


_DELIMITERS = (",", ";", "\t", "|")
_DECLARED = re.compile(r'"?sep=(.)"?\r?\n', re.I)
_COMMAS = re.compile(r"\D{0,3}(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+,\d+|\d+(?:\.\d+)?)\D{0,3}")
"""A number with commas, which are then no delimiters."""
_TRIED = 200
"""Rows on which a delimiter is tried."""
_NOTED = 3
_LINE_END = re.compile(r"\r\n|\r|\n")
_FIX = "Close it, or double it where it belongs to the text"


@dataclass(frozen=True)
class RowForm:
    """How rows are written. With an empty `quote` there are no quotes."""

    delimiter: str
    quote: str = '"'
    escape: str = ""
    skipped: int = 0
    """Lines before the first row."""

    def reader(self, lines: Iterable[str]) -> Reader:
        """Reads the rows of lines that have their ends; a blank line is an empty row."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote or None,
            quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            escapechar=self.escape or None,
            doublequote=not self.escape,
        )


def form_of(sample: str, *, whole: bool, delimiter: str | None = None) -> RowForm:
    """The form of a file from its beginning (`whole`: all of it): the delimiter of a first line `sep=`, the known
    `delimiter`, or the one by which most rows have the same number of values."""
    declared = _DECLARED.match(sample)
    skipped = 1 if declared else 0
    text = sample[declared.end() :] if declared else sample
    delimiters = (declared[1],) if declared else (delimiter,) if delimiter else _DELIMITERS
    quote, escape = _quoting(text)
    tried = [RowForm(mark, quote, escape, skipped) for mark in delimiters]
    best = max(tried, key=lambda form: _evenness(_some(form, text, whole)))
    if best.quote and _is_open(best, text, whole):
        tried = [RowForm(mark, "", "", skipped) for mark in delimiters]
        best = max(tried, key=lambda form: _evenness(_some(form, text, whole)))
    return RowForm("\x1f", best.quote, "", skipped) if _is_one_column(_some(best, text, whole)) else best


def _is_one_column(rows: list[list[str]]) -> bool:
    """Whether the delimiter belongs to the values of a single column: the header has none, and the values are numbers
    with commas, or sentences."""
    first = next((at for at, row in enumerate(rows) if row), None)
    below = [] if first is None else rows[first + 1 :]
    if first is None or len(rows[first]) != 1 or not below or not below[0]:
        return False
    values = [row for row in below if row]
    numbers = all(_COMMAS.fullmatch(",".join(row)) for row in values)
    return numbers or all(cell[:1].isspace() for row in values for cell in row[1:])


def read_sample(form: RowForm, sample: str, *, whole: bool) -> tuple[list[list[str]], list[int]]:
    """The rows of a file's beginning, and the number of each row's last line."""
    text = sample.split("\n", form.skipped)[-1] if form.skipped else sample
    rows: list[list[str]] = []
    ends: list[int] = []
    reader = form.reader(io.StringIO(text, newline=""))
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num + form.skipped)
    if not whole and len(rows) > 2:
        del rows[-1], ends[-1]
    return rows, ends


def _some(form: RowForm, text: str, whole: bool) -> list[list[str]]:
    rows = []
    for row in form.reader(io.StringIO(text, newline="")):
        rows.append(row)
        if len(rows) > _TRIED:
            return rows[:-1]
    return rows if whole or len(rows) < 3 else rows[:-1]


def _evenness(rows: list[list[str]]) -> tuple[float, int]:
    """The share of rows with the usual number of values (above one), and that number."""
    widths = Counter(len(row) for row in rows if any(cell.strip() for cell in row))
    wide = {width: count for width, count in widths.items() if width > 1}
    if not wide:
        return 0.0, 0
    width = max(wide, key=lambda one: (wide[one], one))
    return wide[width] / sum(widths.values()), width


def _quoting(text: str) -> tuple[str, str]:
    """The quote, and the escape: empty for doubled quotes, or a backslash."""
    if '"' not in text and re.search(r"(?m)^'[^'\n]*'[,;\t|]'", text):
        return "'", ""
    backslashes = len(re.findall(r'(?<=[^\\,;\t|\n])\\"(?![,;\t|\r\n])', text))
    return '"', "\\" if backslashes and not re.search(r'[^,;\t|\n"]""[^,;\t|\n]', text) else ""


def _is_open(form: RowForm, text: str, whole: bool) -> bool:
    """Whether a quote is never closed, so that the rest of the text is one value."""
    reader = form.reader(io.StringIO(text, newline=""))
    last, before = 0, 0
    try:
        for _ in reader:
            last, before = reader.line_num, last
    except csv.Error:
        return True
    if whole:
        return last - before > 1 and not text.rstrip().endswith(form.quote)
    return last - before > max(20, last / 2)


def open_quotes(path: Path, form: RowForm, width: int) -> list[Note]:
    """Notes on the first such quotes of a UTF-8 file, with the lines where they are opened. `width` is the number of
    columns: a line within a cell that has as many values is taken for a row."""
    if width < 2:
        return []
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        try:
            if form.quote:
                return list(itertools.islice(_find_swallowed_rows(file, form, width), _NOTED))
            return _never_closed(file, replace(form, quote='"'))
        except csv.Error:
            return []  # A cell over the limit: the load refuses the file, and says so.


def _find_swallowed_rows(lines: Iterator[str], form: RowForm, width: int) -> Iterator[Note]:
    reader = form.reader(lines)
    before = 0
    for row in reader:
        first, before = before + 1, reader.line_num
        for at, cell in enumerate(row if before > first else ()):
            lines_in_cell = _LINE_END.split(cell)
            if _holds_rows(lines_in_cell, form.delimiter, (at, len(row) - 1 - at), width):
                closed = f"a quote is opened and closed only in line {before:,}"
                told = f"Line {first:,}: {closed}, so {len(lines_in_cell):,} lines are in one cell. {_FIX}."
                yield Note(told, "quote_swallows", line=first, end=before, n=len(lines_in_cell))


def _holds_rows(lines: list[str], delimiter: str, around: tuple[int, int], width: int) -> bool:
    """Return whether a cell's lines look like rows. Its first and last lines are rows with the cells `around` it.
    Prose, which has a space or nothing after each comma, is none."""
    counts = [line.count(delimiter) for line in lines]
    inner = [count for line, count in zip(lines[1:-1], counts[1:-1], strict=True) if line.strip()]
    if len(lines) < 2 or any(count >= width - 1 for count in inner):
        return len(lines) > 1
    tight = re.search(re.escape(delimiter) + r"\S", f"{lines[0]}\n{lines[-1]}") is not None
    whole = counts[0] + around[0] >= width - 1 and counts[-1] + around[1] >= width - 1
    return whole and tight and not inner


def _never_closed(lines: Iterator[str], form: RowForm) -> list[Note]:
    reader = form.reader(lines)
    before = 0
    first = 1
    for _ in reader:
        first, before = before + 1, reader.line_num
    if before - first < 1:
        return []
    told = f"Line {first:,}: a quote is opened and never closed, so quotes are read as letters. {_FIX}."
    return [Note(told, "quote_open", line=first)]

"""The number formats of a workbook's cells, read beside their values, which come without them.

An `.xlsx` file is a zip of XML: `xl/styles.xml` has the formats, and each sheet the number of a style by cell. Only so
much of it is read, and none with a DTD. A workbook whose styles cannot be read has no formats.
"""

from __future__ import annotations

import posixpath
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from longthread.tools.analysis.files.format_code import BUILT_IN, format_of_code
from longthread.tools.analysis.formats.column_format import ColumnFormat

_BLOCK = 65_536
_STYLES_BYTES = 16_000_000
_SHEET_BYTES = 32_000_000
"""Bytes of XML that are read at most, of the styles and of a sheet."""
_CELLS = 300_000
"""Cells of a workbook that are looked at."""
_PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")
_Element = tuple[str, Mapping[str, str]]


@dataclass(frozen=True)
class CellFormats:
    """The formats of a sheet's numbers and dates by column, from 0 on: their rows, and None for those that tell
    nothing. Rows from `looked` on were not looked at."""

    columns: Mapping[int, Sequence[tuple[int, ColumnFormat | None]]] = field(default_factory=dict)
    looked: int = sys.maxsize

    def units(self, column: int, rows: range) -> list[str]:
        """Return the currencies and units of a column's cells: `%` for percent, an empty one for those without."""
        return sorted({_unit_of(each) for each in self._count(column, rows)})

    def agreed(self, column: int, rows: range) -> ColumnFormat | None:
        """Return the format that all cells of a column have: 5,000 beside percent is not 500,000%. Where they differ
        by their places, the usual ones count."""
        counts = self._count(column, rows)
        alike = {None if each is None else (each.kind, each.unit) for each in counts}
        if len(alike) != 1 or rows.stop > self.looked:
            return None
        return max(counts, key=counts.__getitem__)

    def _count(self, column: int, rows: range) -> Counter[ColumnFormat | None]:
        return Counter(format_ for row, format_ in self.columns.get(column, ()) if row in rows)


def _unit_of(format_: ColumnFormat | None) -> str:
    if format_ is None:
        return ""
    return "%" if format_.kind in ("share", "percent") else format_.unit


def read_cell_formats(path: Path, sheets: Collection[str]) -> dict[str, CellFormats]:
    """Return the formats of these sheets by their names; nothing where they cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            styles = _read_styles(archive)
            left, found = _CELLS, {}
            for name, part in _parts_of_sheets(archive) if any(styles) else ():
                if name in sheets and left > 0:
                    looked, found[name] = _read_sheet(archive, part, styles, left)
                    left -= looked
            return found
    except (expat.ExpatError, zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, OSError, RuntimeError):
        return {}


def _elements(archive: zipfile.ZipFile, part: str, most: int) -> Iterator[_Element]:
    """The names and attributes of the elements in the first bytes of a part, without namespaces. Raises
    `expat.ExpatError`; ValueError: it has a DTD."""
    found: list[_Element] = []
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler = _refuse_dtd
    parser.StartElementHandler = lambda name, attributes: found.append((_local(name), attributes))
    with archive.open(part) as file:
        while most > 0 and (block := file.read(min(_BLOCK, most))):
            most -= len(block)
            parser.Parse(block)
            yield from found
            found.clear()


def _refuse_dtd(*_: object) -> None:
    raise ValueError("it has a DTD, which may define entities of any size")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _read_styles(archive: zipfile.ZipFile) -> list[ColumnFormat | None]:
    """The formats of the styles that cells have, by number."""
    own: dict[int, ColumnFormat | None] = {}
    styles: list[ColumnFormat | None] = []
    within = ""
    for name, about in _elements(archive, "xl/styles.xml", _STYLES_BYTES):
        if name in ("numFmts", "cellXfs", "cellStyles", "cellStyleXfs", "dxfs"):
            within = name
        elif name == "numFmt" and within == "numFmts":
            own[int(about["numFmtId"])] = format_of_code(about["formatCode"])
        elif name == "xf" and within == "cellXfs":
            number = int(about.get("numFmtId", "0"))
            styles.append(own[number] if number in own else BUILT_IN.get(number))
    return styles


def _parts_of_sheets(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """The names of a workbook's sheets, and where they stand in the archive."""
    links = _elements(archive, "xl/_rels/workbook.xml.rels", _STYLES_BYTES)
    targets = {about["Id"]: about["Target"] for name, about in links if name == "Relationship"}
    for name, about in _elements(archive, "xl/workbook.xml", _STYLES_BYTES):
        link = next((value for key, value in about.items() if " " in key and _local(key) == "id"), "")
        if name == "sheet" and link in targets:
            yield about["name"], posixpath.normpath(posixpath.join("/xl", targets[link])).lstrip("/")


def _read_sheet(
    archive: zipfile.ZipFile, part: str, styles: Sequence[ColumnFormat | None], most: int
) -> tuple[int, CellFormats]:
    """How many cells were looked at, and the formats of those that are numbers."""
    columns: dict[int, list[tuple[int, ColumnFormat | None]]] = {}
    row, column, looked = -1, -1, 0
    style: ColumnFormat | None = None
    is_number = False
    for name, about in _elements(archive, part, _SHEET_BYTES):
        if name == "row":
            row, column = int(about.get("r", row + 2)) - 1, -1
        elif name == "c":
            looked += 1
            if looked > most:
                return looked, CellFormats(columns, row)
            place = _PLACE.fullmatch(about.get("r", ""))
            column = _index(place[1]) if place else column + 1
            style, is_number = styles[int(about.get("s", "0"))], about.get("t", "n") == "n"
        elif name == "v" and is_number:
            columns.setdefault(column, []).append((row, style))
    return looked, CellFormats(columns)


def _index(letters: str) -> int:
    """The place of a column, from 0 on."""
    index = 0
    for letter in letters:
        index = index * 26 + ord(letter) - 64
    return index - 1

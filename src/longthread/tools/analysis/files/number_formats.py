"""The number formats of a workbook's cells, read beside their values, which come without them, and what a format tells
of a column: `[$€-407]#,##0.00`, `0.0%`, `#,##0 "kg"`.

An `.xlsx` file is a zip of XML: `xl/styles.xml` has the formats, and each sheet the number of a style by cell. Only so
much of it is read, and none with a DTD. A workbook whose styles cannot be read has no formats.

Formats are read after ECMA-376 part 1, 18.8.30 and 18.8.31. A bare `#,##0.00` tells no unit, so that nothing is lost
where the column's name tells one. A format that writes thousands or more in short (`0.0,"k"`) has no unit either: the
cells are not in it. Words beside a currency may scale it (`$0"M"` writes 5 as $5M), so that such a format tells
nothing. Nor does one that depends on the value (`[<1]0%;0`).
"""

from __future__ import annotations

import lzma
import posixpath
import re
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from xml.parsers import expat

from longthread.tools.analysis.column_format import MOST_PLACES, ColumnFormat, guess_format
from longthread.tools.analysis.files.readings import CODES, CURRENCIES, PERCENT

_LONGEST = 1_000
"""Characters of a code that is read; Excel takes 255."""
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"?|[\\!](?P<escaped>.)|[_*].|\[(?P<bracket>[^\]]*)\]?|(?P<general>General|G/通用格式)'
    r"|(?P<half>AM/PM|A/P|上午/下午)|(?P<power>E[+-])|(?P<digit>[0#?])|(?P<end>;)|(?P<mark>[.,%/@])"
    r"|(?P<letter>[A-Za-z])|(?P<literal>.)",
    re.I | re.S,
)
_ELAPSED = re.compile(r"h+|m+|s+", re.I)
_DATE_LETTERS = frozenset("ymdhsaegb")
_SCALED = re.compile(r"[0#?],+(?:\.|$)")
_GROUP_MARKS = frozenset(",.' \u00a0\u202f")
_AROUND = " \t\u00a0\u202f()+-:"
_LONGEST_UNIT = 20
_NO_WORDS = frozenset("°‰‱′″")
_ORDINALS = frozenset({"年", "年度", "号", "届", "期"})
"""Words after a number that counts nothing: 2024年."""
_DAY = ColumnFormat("date")
BUILT_IN: Mapping[int, ColumnFormat] = {
    1: ColumnFormat("plain", places=0),
    9: ColumnFormat("share", places=0),
    10: ColumnFormat("share", places=2),
    **dict.fromkeys((5, 6, 42), ColumnFormat("currency", places=0)),
    **dict.fromkeys((7, 8, 44), ColumnFormat("currency", places=2)),
    **dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 55), 57, 58), _DAY),
}
"""Formats by number, where a workbook has no code for it. The currency is then that of each reader's settings."""


@dataclass
class _Section:
    """The first section of a code: what stands before, in and after the digits, and what else it says."""

    digits: str = ""
    before: str = ""
    inside: str = ""
    behind: str = ""
    letters: str = ""
    currency: str = ""
    marks: str = ""
    """`%`, `@`, `/` (a fraction), `E` (an exponent), `t` (a time), `?` (a condition)."""

    def add(self, kind: str, text: str) -> None:
        if kind == "bracket":
            self._add_bracket(text)
        elif kind == "general" or kind == "digit" or (kind == "mark" and text == "."):
            if self.digits:
                self.inside, self.behind = self.inside + self.behind, ""
            self.digits += text
        elif kind == "mark" and text == ",":
            self.digits += text
        elif kind in ("mark", "power", "half"):
            self.marks += {"power": "E", "half": "t"}.get(kind, text)
        else:
            self.letters += text.lower() if kind == "letter" else ""
            self._add_literal(text)

    def _add_literal(self, text: str) -> None:
        if self.digits:
            self.behind += text
        else:
            self.before += text

    def _add_bracket(self, text: str) -> None:
        if text.startswith("$"):
            name = text[1:].partition("-")[0].strip()  # a locale stands behind it: $€-407, $£-en-GB
            if self.currency or name in PERCENT:
                self._add_literal(name)
            else:
                self.currency = name
        elif _ELAPSED.fullmatch(text):
            self.marks += "t"
        elif text[:1] in ("<", ">", "="):
            self.marks += "?"

    @property
    def is_date(self) -> bool:
        return bool(self.letters) and _DATE_LETTERS.issuperset(self.letters)

    @property
    def places(self) -> int | None:
        """The digits after the point; None: as many as a value needs."""
        _, _, fraction = self.digits.partition(".")
        if not set(fraction) <= {"0"} or not set(self.digits) <= set("0#?.,"):
            return None
        return min(len(fraction), MOST_PLACES)


def format_of_code(code: str) -> ColumnFormat | None:
    """Return what a format says of its numbers or dates; None: no more than that they are such."""
    section = _Section()
    for token in _TOKEN.finditer(code[:_LONGEST]):
        kind = token.lastgroup
        if kind == "end":
            break
        if kind is not None:
            section.add(kind, token[kind])
    if "?" in section.marks:
        return None
    if section.is_date or "t" in section.marks:
        is_day = "t" not in section.marks and not set(section.letters) & set("hs")
        return _DAY if is_day else None
    if not section.digits or set(section.marks) & set("E/@"):
        return None
    return _of_number(section)


def _of_number(section: _Section) -> ColumnFormat | None:
    is_short = bool(_SCALED.search(section.digits))
    places = None if is_short else section.places
    if "%" in section.marks:
        return ColumnFormat("share", places=places)
    if any(sign in section.before + section.behind for sign in PERCENT):
        return ColumnFormat("percent", places=places)
    before, behind = section.before.strip(_AROUND), section.behind.strip(_AROUND)
    money = section.currency or next((each for each in (before, behind) if _is_money(each)), "")
    if money and not is_short and (_may_scale(before) or _may_scale(behind)):
        return None
    if money and len(money) <= _LONGEST_UNIT and money.isprintable():
        return ColumnFormat("currency", money, places)
    if is_short:
        return None
    is_grouped = bool(section.inside) or not set(",.").isdisjoint(section.digits)
    is_bare = not behind and set(section.digits) <= set("0#?")
    if not set(section.inside) <= _GROUP_MARKS or (not is_grouped and (is_bare or behind in _ORDINALS)):
        return ColumnFormat("plain", places=0)
    return ColumnFormat("unit", behind, places) if _is_unit(behind) else None


def _is_money(text: str) -> bool:
    return text in CURRENCIES or text in CODES


def _may_scale(text: str) -> bool:
    """Whether a text beside an amount of money may say how many each stands for: M, 万, Tsd., but not `/ kg`."""
    return not (_is_money(text) or text.startswith("/")) and any(letter.isalnum() for letter in text)


def _is_unit(text: str) -> bool:
    has_word = any(letter.isalpha() or letter in _NO_WORDS for letter in text)
    return has_word and len(text) <= _LONGEST_UNIT and text.isprintable()


def by_name(name: str, format_: ColumnFormat) -> ColumnFormat:
    """Return a format of a workbook with the currency that its column's name tells, where it tells none itself."""
    if format_.kind not in ("plain", "currency") or format_.unit:
        return format_
    guessed = guess_format(name, [1_000])
    return ColumnFormat("currency", guessed.unit, format_.places) if guessed.kind == "currency" else format_


_BLOCK = 65_536
_BYTES = 64_000_000
_ELEMENTS = 2_000_000
"""Bytes of XML, and elements in it, that are read of a workbook at most."""
_SILENT = 1_000_000
"""Bytes without the begin of an element: expat looks at a long one again with each block."""
_DEEPEST = 1_000
"""Elements in each other where a block ends."""
_SHEETS = 500
_CELLS = 300_000
"""Cells of a workbook that are looked at."""
_CODES = 1_000
"""Formats of a workbook's own that are understood; Excel writes some 200."""
BAD_PART = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, OSError)
"""What is raised for a part that is damaged, has a password or is compressed in a way that is not known."""
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

    def find_common_format(self, column: int, rows: range) -> ColumnFormat | None:
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
    """Return the formats of these sheets by their names, of those that can be read. Each part is read once."""
    found: dict[str, CellFormats] = {}
    with suppress(expat.ExpatError, LookupError, ValueError, *BAD_PART), zipfile.ZipFile(path) as archive:
        parts = _Parts(archive)
        styles = _read_styles(parts)
        read: dict[str, CellFormats] = {}
        left = _CELLS
        for name, part in islice(_parts_of_sheets(parts), _SHEETS) if any(styles) else ():
            if name not in sheets or name in found or left <= 0:
                continue
            if part not in read:
                looked, read[part] = _read_sheet(parts.elements(part), styles, left)
                left -= looked
            found[name] = read[part]
    return found


class _Parts:
    """The XML of a workbook, within bounds for all of it."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._bytes, self._elements = _BYTES, _ELEMENTS

    def elements(self, part: str) -> Iterator[_Element]:
        """The names and attributes of a part's elements, without prefixes of names. Raises `expat.ExpatError`, what
        BAD_PART has, and ValueError: it has a DTD, or is beyond the bounds."""
        begun: list[_Element] = []
        ended: list[str] = []
        depth = silent = 0
        parser = expat.ParserCreate()
        parser.StartDoctypeDeclHandler = _refuse_dtd
        parser.StartElementHandler = lambda name, attributes: begun.append((_local(name), attributes))
        parser.EndElementHandler = ended.append
        with self._archive.open(part) as file:
            while block := file.read(_BLOCK):
                parser.Parse(block)
                silent = 0 if begun else silent + len(block)
                depth += len(begun) - len(ended)
                self._bytes -= len(block)
                self._elements -= len(begun)
                if self._bytes < 0 or self._elements < 0 or silent > _SILENT or depth > _DEEPEST:
                    raise ValueError("it is larger, or nested deeper, than is read")
                yield from begun
                begun.clear()
                ended.clear()


def _refuse_dtd(*_: object) -> None:
    raise ValueError("it has a DTD, which may define entities of any size")


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _read_styles(parts: _Parts) -> list[ColumnFormat | None]:
    """The formats of the styles that cells have, by number."""
    own: dict[int, ColumnFormat | None] = {}
    styles: list[ColumnFormat | None] = []
    within = ""
    for name, about in parts.elements("xl/styles.xml"):
        if name in ("numFmts", "cellXfs", "cellStyles", "cellStyleXfs", "dxfs"):
            within = name
        elif name == "numFmt" and within == "numFmts":
            own[int(about["numFmtId"])] = format_of_code(about["formatCode"]) if len(own) < _CODES else None
        elif name == "xf" and within == "cellXfs":
            number = int(about.get("numFmtId", "0"))
            styles.append(own[number] if number in own else BUILT_IN.get(number))
    return styles


def _parts_of_sheets(parts: _Parts) -> Iterator[tuple[str, str]]:
    """The names of a workbook's sheets, and where they stand in the archive."""
    links = parts.elements("xl/_rels/workbook.xml.rels")
    targets = {about["Id"]: about["Target"] for name, about in links if name == "Relationship"}
    for name, about in parts.elements("xl/workbook.xml"):
        link = next((value for key, value in about.items() if ":" in key and _local(key) == "id"), "")
        if name == "sheet" and link in targets:
            yield about["name"], posixpath.normpath(posixpath.join("/xl", targets[link])).lstrip("/")


def _read_sheet(
    elements: Iterator[_Element], styles: Sequence[ColumnFormat | None], most: int
) -> tuple[int, CellFormats]:
    """How many cells were looked at, and the formats of those that are numbers."""
    columns: dict[int, list[tuple[int, ColumnFormat | None]]] = {}
    row, column, looked = -1, -1, 0
    style: ColumnFormat | None = None
    is_number = False
    for name, about in elements:
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

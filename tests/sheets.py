"""Reads the XLSX files that were made."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree
import zipfile

SPREADSHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def sheet(data: bytes) -> list[list[tuple[str | None, str | None]]]:
    """Types and texts of the cells."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        assert book.testzip() is None
        for name in book.namelist():
            ElementTree.fromstring(book.read(name))
        root = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    assert not list(root.iter(f"{SPREADSHEET}f"))  # no formula
    return [
        [(cell.get("t"), "".join(cell.itertext()) or None) for cell in row] for row in root.iter(f"{SPREADSHEET}row")
    ]

"""Which files of a folder are tables, and their names."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

_READERS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
    ".xlsx": "xlsx", ".xlsm": "xlsx", ".xls": "xlsx",
}  # fmt: skip
_PACKABLE = frozenset({"csv", "json"})
COMPRESSED = (".gz", ".zst")
_DATABASES = frozenset({".sqlite", ".sqlite3", ".db", ".db3", ".s3db", ".gpkg", ".duckdb", ".ddb"})
_UNREAD_SHEETS = frozenset({".xlsb", ".ods"})
_NAMED = 20
"""Skipped files that are listed by name."""
KINDS = "CSV, TSV, Parquet, JSON, JSON Lines and Excel (.xlsx, .xls)"


def reader_of(path: Path) -> str | None:
    """The reader for a file's name: `csv`, `parquet`, `json`, `xlsx` or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
        kind = _READERS.get(suffixes[-1]) if suffixes else None
        return kind if kind in _PACKABLE else None
    return _READERS.get(suffixes[-1]) if suffixes else None


def data_files(folder: Path) -> list[Path]:
    """The data files in `folder`, by name, without hidden ones and .txt."""
    return [path for path in _visible(folder) if _why_not(path) is None]


def left_out(folder: Path) -> list[str]:
    """Sentences on the other files in `folder`: why each is no table, and counts of the rest."""
    why = [(path, reason) for path in _visible(folder) if (reason := _why_not(path)) is not None]
    notes = [f"{path.name} is left out: {reason}" for path, reason in why[:_NAMED]]
    rest = Counter(path.suffix.lower() or "without a suffix" for path, _ in why[_NAMED:])
    if rest:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in rest.most_common(5))
        notes.append(f"{len(why) - _NAMED} more are left out: {kinds}.")
    return notes


def unread_sheet(path: Path) -> str | None:
    """The advice for a workbook of an unsupported format; None for any other file."""
    if path.suffix.lower() not in _UNREAD_SHEETS:
        return None
    return f"{path.suffix.lower()} workbooks are not read. Save it as .xlsx."


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "~$")))


def _why_not(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if path.is_dir():
        return "it is a folder. Give it as a source of its own."
    if not path.is_file():
        return "it is no file, or leads to none."
    if suffix in _DATABASES:
        return "it is a database. Give it as a source of its own."
    if suffix == ".txt":
        return "a folder's .txt files are taken for plain text. Name it .csv if it is a table."
    if (reason := unread_sheet(path)) is not None:
        return reason
    return None if reader_of(path) else f"its kind is not known. Longthread reads {KINDS} files."


def base_name(text: str) -> str:
    """A name of letters, digits and underscores."""
    return re.sub(r"\W+", "_", text).strip("_") or "data"


def stem_of(path: Path) -> str:
    """A table name from a file's name without its suffixes."""
    ends = path.suffixes[-2:] if path.suffix.lower() in COMPRESSED else path.suffixes[-1:]
    return base_name(path.name.removesuffix("".join(ends)))

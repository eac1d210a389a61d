"""Data files as a database: CSV, TSV, Parquet and JSON, one file or a folder of them."""

from __future__ import annotations

import codecs
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import duckdb

from longthread.errors import SourceEmpty, SourceError, SourceNotFound, SourceUnreadable
from longthread.tools.analysis.engines.duckdb import DuckdbEngine, lock, settings, translated
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.naming import literal, quoted

_READERS = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".txt": "csv",
    ".parquet": "parquet", ".pq": "parquet",
    ".json": "json", ".jsonl": "json", ".ndjson": "json",
}  # fmt: skip
_COMPRESSED = (".gz", ".zst")
_PROBED = 65_536
_CHECKED = 4_000_000
"""Bytes of a text file, too big to be loaded, whose encoding is checked."""
_COMPRESSED_LINE = 8_000_000
"""Bytes of the longest line of a compressed file: for each reader DuckDB takes sixteen times as much at once."""
_DELIMITERS = (",", ";", "\t", "|")


def reader_of(path: Path) -> str | None:
    """`csv`, `parquet` or `json`, by the file's name; None for any other file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
        return _READERS.get(suffixes[-1]) if suffixes and suffixes[-1] != ".parquet" else None
    return _READERS.get(suffixes[-1]) if suffixes else None


def data_files(folder: Path) -> list[Path]:
    """The data files directly in `folder`, by name; hidden ones and plain .txt are left out."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and not path.name.startswith(".") and path.suffix.lower() != ".txt" and reader_of(path)
    )


class FilesEngine(DuckdbEngine):
    """An in-memory DuckDB over files. Small files are read into it, big ones and Parquet are read in place; after
    that, the database can reach nothing but those."""

    views_are_tables = True

    def __init__(self, path: Path, source: str, limits: Limits) -> None:
        super().__init__(path, source, limits)
        self.notes = []
        self._state = self._look()
        self._scratch: Path | None = None

    def _files(self) -> list[Path]:
        if not self._path.exists():
            raise SourceNotFound(source=self._source)
        return data_files(self._path) if self._path.is_dir() else [self._path]

    def _look(self) -> list[tuple[str, int, int]]:
        return [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in self._files()]

    def stale(self) -> bool:
        """Whether a file was changed, added or removed; they are then read again."""
        state = self._look()
        if state == self._state:
            return False
        with self._lock:
            self._state = state
            old, self._root = self._root, None
            if old is not None:
                old.close()
        return True

    def _open(self) -> duckdb.DuckDBPyConnection:
        with ExitStack() as undoing:
            root = duckdb.connect(":memory:", config=settings(self._limits, self._spill))
            undoing.callback(root.close)
            lock(root, self._load(root))
            undoing.pop_all()
        return root

    def _load(self, root: duckdb.DuckDBPyConnection) -> list[Path]:
        """Makes a table of each file. A folder's unreadable files are left out and noted; a single one raises."""
        files = self._files()
        notes: list[str] = []
        in_place: list[Path] = []
        for path, name in zip(files, table_names(files), strict=True):
            try:
                with translated(self._source):
                    in_place += self._table(root, path, name)
            except SourceError as error:
                if len(files) == 1:
                    raise self._about(path, error) from error
                reason = str(error.details.get("reason", "it has no rows."))
                notes.append(f"{path.name} is left out: {reason}")
        if files and len(notes) == len(files):
            raise SourceUnreadable(source=self._source, reason=" ".join(notes))
        self.notes = notes
        return in_place

    def _about(self, path: Path, error: SourceError) -> SourceError:
        if isinstance(error, SourceUnreadable | SourceEmpty):
            return error
        return SourceUnreadable(source=self._source, reason=f"{path.name}: {error.details.get('reason', error)}")

    def _table(self, root: duckdb.DuckDBPyConnection, path: Path, name: str) -> list[Path]:
        """Makes the table of one file, and returns the files that must stay readable for it."""
        if not os.access(path, os.R_OK):
            raise SourceUnreadable(source=self._source, reason=f"{path.name}: permission denied.")
        if path.stat().st_size == 0:
            raise SourceEmpty(source=self._source)
        kind = reader_of(path)
        small = path.stat().st_size <= self._limits.loaded_file_mb * 1_000_000
        text = path
        if kind != "parquet" and path.suffix.lower() not in _COMPRESSED:
            text = self._as_utf8(path, whole=small)
        resolved = text.resolve()
        reader = {"parquet": _read_parquet, "json": _read_json, "csv": _read_csv}[kind or "csv"](
            root, resolved, path, small, self._limits
        )
        in_place = kind == "parquet" or not small
        root.execute(f"CREATE {'VIEW' if in_place else 'TABLE'} {quoted(name)} AS FROM {reader}")
        return [resolved] if in_place else []

    def _as_utf8(self, path: Path, *, whole: bool) -> Path:
        """The file itself if it is UTF-8, else a copy that is. Raises SourceUnreadable for a file that is no text."""
        with path.open("rb") as file:
            head = file.read(_PROBED)
            encoding = encoding_of(head)
            if encoding is None:
                reason = f"{path.name} is a binary file, not text."
                raise SourceUnreadable(source=self._source, reason=reason)
            file.seek(0)
            if encoding == "utf-8" and _decodes(iter(lambda: file.read(1_048_576), b""), None if whole else _CHECKED):
                return path
        return self._converted(path, "gb18030" if encoding == "utf-8" else encoding)

    def _converted(self, path: Path, encoding: str) -> Path:
        self._scratch = self._scratch or Path(tempfile.mkdtemp(prefix="longthread-files-"))
        copy = self._scratch / f"{len(list(self._scratch.iterdir()))}{path.suffix}"
        try:
            with (
                path.open(encoding=encoding, newline="") as given,
                copy.open("w", encoding="utf-8", newline="") as made,
            ):
                shutil.copyfileobj(given, made)
        except UnicodeError as error:
            raise SourceUnreadable(
                source=self._source, reason=f"{path.name} is not UTF-8, UTF-16 or GB18030 text. Save it as UTF-8."
            ) from error
        return copy

    def close(self) -> None:
        """Removes the converted copies, too."""
        super().close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def table_names(files: Iterable[Path]) -> list[str]:
    """A table's name for each file: its stem in letters, digits and underscores of any language, each once."""
    names: list[str] = []
    taken: set[str] = set()
    for path in files:
        stem = path.name.removesuffix(
            "".join(path.suffixes[-2:] if path.suffix.lower() in _COMPRESSED else path.suffixes[-1:])
        )
        base = re.sub(r"\W+", "_", stem).strip("_") or "data"
        name, number = base, 1
        while name.casefold() in taken:
            number += 1
            name = f"{base}_{number}"
        taken.add(name.casefold())
        names.append(name)
    return names


def encoding_of(head: bytes) -> str | None:
    """The encoding that the beginning of a text file points to, `utf-8` unless it says otherwise; None for no text."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if head.startswith(mark):
            return name
    control = sum(byte < 9 or 13 < byte < 32 for byte in head)
    return None if b"\0" in head or control * 20 > len(head) else "utf-8"


def _decodes(blocks: Iterable[bytes], most: int | None) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    done = 0
    try:
        for block in blocks:
            decoder.decode(block)
            done += len(block)
            if most is not None and done >= most:
                return True
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _read_parquet(root: duckdb.DuckDBPyConnection, path: Path, named: Path, small: bool, limits: Limits) -> str:
    del root, named, small, limits
    return f"read_parquet({literal(str(path))})"


def _read_json(root: duckdb.DuckDBPyConnection, path: Path, named: Path, small: bool, limits: Limits) -> str:
    del root, named, limits
    return f"read_json({literal(str(path))}, sample_size = {-1 if small else 100_000})"


def _read_csv(root: duckdb.DuckDBPyConnection, path: Path, named: Path, small: bool, limits: Limits) -> str:
    """The call that reads the file. Types come from all rows of a small file; the dialect and the types of a big one
    are found once and written down, so that no query has to find them again."""
    # DuckDB's own limit of 2 MB a line refuses a cell of ten million characters. A compressed file takes the memory for
    # many lines at once.
    compressed = named.suffix.lower() in _COMPRESSED
    longest = f"max_line_size = {min(limits.value_bytes, _COMPRESSED_LINE) if compressed else limits.value_bytes}"
    options = f"sample_size = {-1 if small else 200_000}, {longest}"
    if {".tsv", ".tab"} & set(named.suffixes):
        options += ", delim = '\t'"
    try:
        mark = _unseen_loss(root, path, options)
    except duckdb.InvalidInputException:  # quotes that never close: they are letters, then
        options += ", quote = '', null_padding = true"
        mark = None
    if mark is not None:
        options = f"sample_size = -1, {longest}, delim = {literal(mark)}, null_padding = true"
    call = f"read_csv({literal(str(path))}, {options})"
    return call if small else _written_down(root, path, options) or call


def _written_down(root: duckdb.DuckDBPyConnection, path: Path, options: str) -> str | None:
    """The call with all that DuckDB found out about the file, if it can be said: its own words quote no names."""
    row = root.execute(f"SELECT Prompt FROM sniff_csv({literal(str(path))}, {options})").fetchone()
    beginning = f"FROM read_csv('{path}'"
    if row is None or not str(row[0]).startswith(beginning):
        return None
    call = f"read_csv({literal(str(path))}{str(row[0])[len(beginning) :].rstrip().removesuffix(';')}"
    try:
        root.execute(f"DESCRIBE FROM {call}")
    except duckdb.Error:
        return None
    return call


def _unseen_loss(root: duckdb.DuckDBPyConnection, path: Path, options: str) -> str | None:
    """The delimiter, if DuckDB, left alone, would lose something: where rows differ in length it takes whole lines for
    values, or skips the first lines to make the others fit. Lines without a delimiter are a title, and may be skipped.
    """
    arguments = f"{literal(str(path))}, {options}"
    row = root.execute(f"SELECT Delimiter, SkipRows FROM sniff_csv({arguments})").fetchone()
    names = [str(column[0]) for column in root.execute(f"DESCRIBE FROM read_csv({arguments})").fetchall()]
    skipped, delimiter = (int(row[1]), str(row[0])) if row is not None else (0, ",")
    if len(names) == 1:
        return next((mark for mark in _DELIMITERS if mark in names[0]), None)
    if skipped and path.suffix.lower() in _COMPRESSED:
        return delimiter
    if skipped:
        with path.open(encoding="utf-8", errors="replace") as file:
            lost = list(itertools.islice(file, skipped))
        return delimiter if any(delimiter in line for line in lost) else None
    return None

"""Data files as a database: CSV, TSV, Parquet, JSON and Excel, one file or a folder of them."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING

import duckdb

from longthread.errors import SourceEmpty, SourceError, SourceIsStore, SourceNotFound, SourceUnreadable
from longthread.tools.analysis.engines.duckdb import DuckdbEngine, lock, settings, translate_errors
from longthread.tools.analysis.files.listing import (
    base_name,
    data_files,
    left_out,
    likely,
    name_encoding,
    reader_of,
    recode_file,
    stem_of,
)
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.files.text_files import (
    DelimitedTable,
    json_table,
    load_findings,
    of_sheet,
    read_delimited,
    save_findings,
    state_of,
)
from longthread.tools.analysis.files.workbook import is_text, sheets_of
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.quoting import UniqueNames, literal, quote_identifier

if TYPE_CHECKING:
    from longthread.tools.own_files import OwnFiles

_COMPRESSED_LINE = 8_000_000
"""Bytes of the longest line of a file that DuckDB unpacks. It takes sixteen times as much memory."""
_COPIED = 1_048_576
_NOTES = 20
"""Notes on the columns of one table, at most."""


class FilesEngine(DuckdbEngine):
    """An in-memory DuckDB over files. It loads small files, and reads large ones and Parquet in place."""

    views_are_tables = True

    def __init__(self, path: Path, source: str, limits: Limits) -> None:
        super().__init__(path, source, limits)
        self.notes = []
        self.table_notes = {}
        self.formats = {}
        self._state = self._look()
        self._scratch: Path | None = None
        self._own: OwnFiles | None = None

    def refuse(self, own: OwnFiles) -> None:
        self._own = own

    def _files(self) -> list[Path]:
        if not self._path.exists():
            raise SourceNotFound(source=self._source)
        return data_files(self._path) if self._path.is_dir() else [self._path]

    def _left_out(self) -> list[str]:
        return left_out(self._path) if self._path.is_dir() else []

    def _look(self) -> tuple[list[tuple[str, int, int, int, int]], list[str]]:
        about = [(path, path.stat()) for path in self._files()]
        files = [(str(path), stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns, stat.st_size) for path, stat in about]
        return files, self._left_out()

    def stale(self) -> bool:
        """Whether a file was changed, added or removed. All are then read again. Raises SourceIsStore: one of them
        leads to Longthread's own by now."""
        state = self._look()
        if state == self._state:
            return False
        if self._own is not None and any(self._own.holds(path) for path in self._files()):
            raise SourceIsStore(source=self._source)
        with self._lock:
            self._state = state
            old, self._root = self._root, None
            if old is not None:
                old.close()
        return True

    def identity(self) -> object:
        """The files, each with its number, times and size."""
        return self._state

    def _open(self) -> duckdb.DuckDBPyConnection:
        with ExitStack() as undoing:
            root = duckdb.connect(":memory:", config=settings(self._limits, self._spill))
            undoing.callback(root.close)
            lock(root, self._load(root))
            undoing.pop_all()
        return root

    def _load(self, root: duckdb.DuckDBPyConnection) -> list[Path]:
        """Creates the tables. Unreadable files of a folder are left out and noted; a single one raises."""
        files = self._files()
        self.notes, self.table_notes, self.formats = [], {}, {}
        failed: list[str] = []
        in_place: list[Path] = []
        names = UniqueNames()
        for path in files:
            try:
                with translate_errors(self._source):
                    in_place += self._tables(root, path, names)
            except SourceError as error:
                if len(files) == 1 and isinstance(error, SourceUnreadable | SourceEmpty):
                    raise
                if len(files) == 1:
                    reason = f"{path.name}: {error.reason or error}"
                    raise SourceUnreadable(source=self._source, reason=reason) from error
                reason = error.reason or "it is empty."
                failed.append(f"{path.name} is left out: {reason}")
        if files and len(failed) == len(files):
            raise SourceUnreadable(source=self._source, reason=" ".join(failed))
        self.notes = [*failed, *self.notes, *self._left_out()]
        return in_place

    def _tables(self, root: duckdb.DuckDBPyConnection, path: Path, names: UniqueNames) -> list[Path]:
        """Creates the tables of one file; returns the files that must stay readable."""
        if not os.access(path, os.R_OK):
            raise SourceUnreadable(source=self._source, reason=f"{path.name}: permission denied.")
        if path.stat().st_size == 0:
            raise SourceEmpty(source=self._source)
        kind = reader_of(path) or "csv"
        if path.suffix.lower() == ".xls" and is_text(path, self._source):
            kind = "csv"
        if kind == "xlsx":
            return self._workbook(root, path, names)
        if kind == "parquet":
            there = path.resolve()
            written: DelimitedTable | None = DelimitedTable(f"read_parquet({literal(str(there))})", [], there)
            notes: list[Note] = []
        else:
            written, notes = self._of_text(root, path, kind)
        if written is None:
            raise SourceEmpty(source=self._source)
        label = self._name_table(names, stem_of(path), path.name)
        self._make_table(root, label, written, notes)
        self._children(root, label, written, names, path)
        return [written.reads] if written.reads is not None else []

    def _of_text(
        self, root: duckdb.DuckDBPyConnection, path: Path, kind: str
    ) -> tuple[DelimitedTable | None, list[Note]]:
        """The table of a text file, and its notes. The findings about a big file are stored for the next time."""
        is_big = path.stat().st_size > self._limits.loaded_file_mb * 1_000_000
        if is_big and (known := load_findings(path, self._limits)) is not None:
            return known
        state = state_of(path, self._limits)  # another file may take its place while it is read
        text, notes = self._as_utf8(self._unpack_file(root, path))
        load = text.stat().st_size <= self._limits.loaded_file_mb * 1_000_000
        written = self._text_table(root, path, text.resolve(), kind, load=load)
        if written is not None and written.reads == path.resolve():
            save_findings(path, state, written, notes)
        return written, notes

    def _text_table(
        self, root: duckdb.DuckDBPyConnection, path: Path, text: Path, kind: str, *, load: bool
    ) -> DelimitedTable | None:
        if kind == "json":
            return json_table(root, text, self._limits, load=load)
        suffixes = {suffix.lower() for suffix in path.suffixes}
        delimiter = "\t" if suffixes & {".tsv", ".tab"} else None
        return read_delimited(root, text, self._copy(".csv"), self._limits, load=load, delimiter=delimiter)

    def _workbook(self, root: duckdb.DuckDBPyConnection, path: Path, names: UniqueNames) -> list[Path]:
        """Creates a table of each sheet, named as the sheet, and in a folder as the file too. A folder with the whole
        name of a file is that file, and others that came later: its tables keep their names."""
        is_of_several = self._path.is_dir() and self._path.name != path.name
        sheets, own_notes = sheets_of(path, self._source)
        made = 0
        for sheet in sheets:
            written = of_sheet(root, sheet, self._copy(".csv"), self._limits)
            if written is None:
                continue
            wanted = base_name(sheet.name)
            if is_of_several:
                wanted = stem_of(path) if len(sheets) == 1 else f"{stem_of(path)}_{wanted}"
            self._make_table(
                root, self._name_table(names, wanted, f'{path.name}, sheet "{sheet.name}"'), written, sheet.notes
            )
            made += 1
        if not made:
            raise SourceUnreadable(source=self._source, reason=f"{path.name} has no sheet with a table.")
        self.notes = [*self.notes, *(one.of_file(path.name) for one in own_notes)]
        return []

    def _children(
        self, root: duckdb.DuckDBPyConnection, label: str, written: DelimitedTable, names: UniqueNames, path: Path
    ) -> None:
        """Creates the tables of lists in a table's rows, named as the table and the list."""
        for name, child in written.children:
            own = self._name_table(names, f"{label}_{name}", f'{path.name}, list "{name}"')
            self._make_table(root, own, child, [])
            self._children(root, own, child, names, path)

    def _name_table(self, names: UniqueNames, wanted: str, what: str) -> str:
        name = names.take(wanted)
        if name != wanted:
            told = f"{what} is the table {name}, since another one is called {wanted}."
            self.notes = [*self.notes, Note(told, "table_renamed", what=what, name=name, wanted=wanted)]
        return name

    def _make_table(
        self, root: duckdb.DuckDBPyConnection, label: str, written: DelimitedTable, notes: list[Note]
    ) -> None:
        kind = "TABLE" if written.reads is None else "VIEW"
        root.execute(f"CREATE {kind} {quote_identifier(label)} AS FROM {written.relation}")
        columns = [note.of_column(column) for column, note in written.notes if column is not None]
        own_notes = [*notes, *(note for column, note in written.notes if column is None), *columns[:_NOTES]]
        if len(columns) > _NOTES:
            more = len(columns) - _NOTES
            own_notes.append(Note(f"There are {more} more notes on columns.", "more_notes", n=more))
        if own_notes:
            self.table_notes = {**self.table_notes, label: own_notes}
        self.notes = [*self.notes, *(f"{label}: {note}" for note in written.losses)]
        if written.formats:
            own_formats = {name: each.to_json() for name, each in written.formats.items()}
            self.formats = {**self.formats, label: own_formats}

    def _unpack_file(self, root: duckdb.DuckDBPyConnection, path: Path) -> Path:
        """The file itself, or its unpacked copy."""
        suffix = path.suffix.lower()
        if suffix not in (".gz", ".zst"):
            return path
        copy = self._copy(path.suffixes[-2] if len(path.suffixes) > 1 else ".csv")
        if suffix == ".zst":
            _unpack_zst(root, path, copy)
            return copy
        try:
            with gzip.open(path) as given, copy.open("wb") as made:
                self._pour(given, made, path)
        except (OSError, EOFError, zlib.error) as error:
            reason = f"{path.name} cannot be unpacked: it is no gzip file, or is damaged."
            raise SourceUnreadable(source=self._source, reason=reason) from error
        return copy

    def _pour(self, given: IO[bytes] | gzip.GzipFile, made: IO[bytes], path: Path) -> None:
        left = self._limits.spill_mb * 1_000_000
        while block := given.read(_COPIED):
            left -= len(block)
            if left < 0:
                reason = f"{path.name} has more than {self._limits.spill_mb} MB when it is unpacked. Unpack it."
                raise SourceUnreadable(source=self._source, reason=reason)
            made.write(block)

    def _as_utf8(self, path: Path) -> tuple[Path, list[Note]]:
        """The file itself or a copy in UTF-8, and a note on its encoding."""
        setting = self._limits.encoding
        found = likely(path)
        if not found:
            raise SourceUnreadable(source=self._source, reason=f"{path.name} is a binary file, not text.")
        marked = found[0] in ("utf-8-sig", "utf-16", "utf-32")
        if found[0] == "utf-8" and setting in ("", "utf-8"):
            return path, []
        if setting and not marked:
            found = [setting]
        for encoding in found:
            copy = self._convert_to_utf8(path, encoding)
            if copy is not None:
                return copy, self._encoding_note(encoding)
        tried = name_encoding(found[0]) if setting else "text of any encoding that is known"
        reason = f"{path.name} is not {tried}. Save it as UTF-8, or say its encoding: {path.name}?encoding=NAME."
        raise SourceUnreadable(source=self._source, reason=reason)

    def _encoding_note(self, encoding: str) -> list[Note]:
        if encoding in ("utf-8-sig", "utf-16", "utf-32"):
            return []
        if encoding == "utf-8-damaged":
            return [Note("Some of its bytes are not UTF-8; each is read as �.", "encoding_damaged")]
        name = name_encoding(encoding)
        if self._limits.encoding:
            return [Note(f"Read as {name}, as it was said.", "encoding_said", encoding=name)]
        remedy = "add ?encoding=NAME to the source, or choose the encoding of an upload"
        told = f"Read as {name}, which is a guess. If texts look wrong, {remedy}."
        return [Note(told, "encoding_guess", encoding=name)]

    def _convert_to_utf8(self, path: Path, encoding: str) -> Path | None:
        """A copy in UTF-8; None if the file is not in that encoding."""
        copy = self._copy(path.suffix)
        damaged = encoding == "utf-8-damaged"
        codec, errors = ("utf-8", "replace") if damaged else (encoding, "strict")
        return copy if recode_file(path, copy, codec, errors=errors) else None

    def _copy(self, suffix: str) -> Path:
        self._scratch = self._scratch or Path(tempfile.mkdtemp(prefix="longthread-files-"))
        handle, name = tempfile.mkstemp(suffix=suffix, dir=self._scratch)
        os.close(handle)
        return Path(name)

    def close(self) -> None:
        super().close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)


def _unpack_zst(root: duckdb.DuckDBPyConnection, path: Path, copy: Path) -> None:
    """Unpacks a Zstandard file of UTF-8 lines, as DuckDB can."""
    lines = root.execute(
        f"SELECT line FROM read_csv({literal(str(path.resolve()))}, auto_detect = false, header = false, "
        f"columns = {{'line': 'VARCHAR'}}, delim = '\x1f', quote = '', escape = '', parallel = false, "
        f"max_line_size = {_COMPRESSED_LINE})"
    )
    with copy.open("w", encoding="utf-8", newline="") as made:
        while rows := lines.fetchmany(1_000):
            made.writelines(f"{row[0] or ''}\n" for row in rows)

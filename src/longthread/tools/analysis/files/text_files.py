"""Text files as DuckDB tables: delimited ones (CSV, TSV …), JSON and JSON Lines.

What reading a big file in place has found out is cached until the file changes.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import tempfile
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast
from unicodedata import normalize

import duckdb
import platformdirs
from duckdb.sqltypes import DuckDBPyType

from longthread.errors import InvalidInput, SourceUnreadable
from longthread.tools.analysis.column_format import ColumnFormat, format_of_json
from longthread.tools.analysis.files.columns import infer_types
from longthread.tools.analysis.files.layout import RowForm, footer, form_of, layout_of, open_quotes, read_sample
from longthread.tools.analysis.files.notes import Note, pack, unpack
from longthread.tools.analysis.files.number_formats import by_name
from longthread.tools.analysis.files.workbook import Sheet
from longthread.tools.analysis.limits import Limits
from longthread.tools.analysis.quoting import UniqueNames, literal, quote_identifier

_SAMPLE = 1_000_000
"""Characters that decide a file's form and layout."""
_TAIL = 65_536
"""Bytes at the end of a file that are searched for footnotes."""
_BEGIN = 200_000
"""Rows of a big file that choose the readings of its columns."""
_RAW = "longthread raw"
_BEGUN = "longthread begin"
_HUGE = 512_000_000
"""Bytes above which a file is not read whole when it is opened."""
_MOST_COLUMNS = 16_384
"""As many as a sheet of Excel has."""
_NAMED_LINES = 3
_SUM = re.compile(
    r"(?:(?:grand[ -]|sub-?|sous-|overall )?totals?|totais|totale|totaal|total[es]? g[eé]n[eé]r(?:al|ale|aux)"
    r"|total (?:geral|global)|(?:gesamt|end|zwischen)?summe|gesamt|insgesamt|sums?|suma|итого|всего"
    r"|合计|总计|小计|合計|總計|小計|계|합계|총계)\W*",
    re.I,
)
_OPEN = 1_000
"""Lines of one value above which its quote is taken for a letter."""
_RULES = 4
"""Raise it when files are read in another way: older findings are then ignored."""


@dataclass(frozen=True)
class DelimitedTable:
    """The SQL of a file's table, notes by column (None: the whole table), and the file that must stay readable."""

    relation: str
    notes: list[tuple[str | None, Note]]
    reads: Path | None = None
    children: tuple[tuple[str, DelimitedTable], ...] = ()
    """Tables of the lists in its rows, by the list's name."""
    losses: tuple[Note, ...] = ()
    """Those of the notes that tell of rows that are none."""
    formats: Mapping[str, ColumnFormat] = field(default_factory=dict)
    """How the file writes the numbers of columns, by name."""


@dataclass(frozen=True)
class _Plan:
    form: RowForm
    names: tuple[str, ...]
    skip: int
    trailing: int
    """Records at the end that are footnotes."""
    padded: bool = False


def read_delimited(
    root: duckdb.DuckDBPyConnection, path: Path, scratch: Path, limits: Limits, *, load: bool, delimiter: str | None
) -> DelimitedTable | None:
    """Reads a UTF-8 file; None if it is blank. A file that DuckDB refuses, such as one with ragged rows, is rewritten
    to `scratch` first. `load` loads all rows now; `delimiter` is the one that the file's name implies.
    """
    csv.field_size_limit(max(limits.value_bytes, 131_072))
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        sample = file.read(_SAMPLE)
        whole = not file.read(1)
    form = form_of(sample, whole=whole, delimiter=delimiter)
    rows, ends = read_sample(form, sample, whole=whole)
    layout = layout_of(rows)
    if not layout.names:
        return None
    if (count := len(layout.names)) > _MOST_COLUMNS:
        reason = f"it has {count:,} columns, and at most {_MOST_COLUMNS:,} are read. Save those that you need."
        raise SourceUnreadable(source=path.name, reason=reason)
    skip = ends[layout.start - 1] if layout.start and ends else form.skipped
    trailing = footer(rows[layout.start :], len(layout.names)) if whole else _footer_of(path, form, len(layout.names))
    notes: list[tuple[str | None, Note]] = [(None, note) for note in layout.notes]
    if trailing and whole:
        notes.append((None, _footer_note(rows[len(rows) - trailing :])))
    elif trailing:
        notes.append((None, Note("Notes under the table are left out.", "footnotes_left_out")))
    plan = _Plan(form, layout.names, skip, trailing)
    losses = tuple(open_quotes(path, form, len(layout.names))) if load else ()
    notes += [(None, note) for note in losses]
    multiline = bool(ends) and any(end != at + 1 + form.skipped for at, end in enumerate(ends[: layout.start]))
    relation = None if trailing or multiline else _readable(root, path, plan, limits, load=load)
    used = path
    if relation is None:
        plan, ragged = _rewrite(path, scratch, plan)
        notes += [(None, ragged)] if ragged else []
        used = scratch
        relation = _readable(root, scratch, plan, limits, load=load, strict=False)
    assert relation is not None
    begin = relation
    if not load:
        root.execute(f"CREATE OR REPLACE TEMP TABLE {quote_identifier(_BEGUN)} AS FROM {relation} LIMIT {_BEGIN}")
        begin = f"temp.{quote_identifier(_BEGUN)}"
    if not load and used.stat().st_size > _HUGE:
        notes.append((None, Note(f"Its types are those of its first {_BEGIN:,} rows.", "types_of_first", n=_BEGIN)))
        return _as_typed(root, relation, begin, plan, notes, used, judged=begin)
    return replace(_as_typed(root, relation, begin, plan, notes, None if load else used), losses=losses)


def of_sheet(root: duckdb.DuckDBPyConnection, sheet: Sheet, scratch: Path, limits: Limits) -> DelimitedTable | None:
    """A table of a workbook's sheet; None if there is none."""
    csv.field_size_limit(max(limits.value_bytes, 131_072))
    rows = sheet.rows
    layout = layout_of(rows, sheet.merged)
    if not layout.names:
        return None
    notes: list[tuple[str | None, Note]] = [(None, note) for note in layout.notes]
    trailing = footer(rows[layout.start :], len(layout.names))
    if trailing:
        notes.append((None, _footer_note(rows[len(rows) - trailing :])))
    wide = max(len(layout.names), *(len(row) for row in rows))
    names = (*layout.names, *(f"column{at}" for at in range(len(layout.names), wide)))
    body = range(layout.start, len(rows) - trailing)
    formats, units_notes = _formats_of(sheet, names, body)
    notes += units_notes
    with scratch.open("w", encoding="utf-8", newline="") as made:
        writer = csv.writer(made, lineterminator="\n")
        for row in rows[body.start : body.stop]:
            if wide == 1 or any(row):
                writer.writerow([*row, *[""] * (wide - len(row))])
    plan = _Plan(RowForm(","), names, 0, 0)
    relation = _readable(root, scratch, plan, limits, load=True, strict=False)
    assert relation is not None
    return _as_typed(root, relation, relation, plan, notes, None, formats=formats)


def _formats_of(
    sheet: Sheet, names: Sequence[str], rows: range
) -> tuple[dict[str, ColumnFormat], list[tuple[str | None, Note]]]:
    """The formats of a sheet's raw columns in these rows, and notes on those whose cells are in several units,
    or only some of them in one."""
    found: dict[str, ColumnFormat] = {}
    notes: list[tuple[str | None, Note]] = []
    for at, name in enumerate(names):
        units = sheet.formats.units(sheet.first + at, rows)
        named = [unit for unit in units if unit]
        if len(named) > 1:
            told = f"its cells are in {', '.join(named)}, which do not add up"
            notes.append((name, Note(told, "several_units", units=", ".join(named))))
        elif named and len(units) > 1:
            told = f"only some of its cells are in {named[0]}, so their formats are not used"
            notes.append((name, Note(told, "some_in_unit", unit=named[0])))
        elif (agreed := sheet.formats.find_common_format(sheet.first + at, rows)) is not None:
            found[f"c{at}"] = by_name(name, agreed)
    return found, notes


def _as_typed(
    root: duckdb.DuckDBPyConnection,
    relation: str,
    begin: str,
    plan: _Plan,
    notes: list[tuple[str | None, Note]],
    reads: Path | None,
    judged: str = "",
    formats: Mapping[str, ColumnFormat] = MappingProxyType({}),
) -> DelimitedTable:
    """Return the table of raw rows. `formats` are the formats of its raw columns' cells."""
    raw = [f"c{at}" for at in range(len(plan.names))]
    columns = infer_types(root, judged or relation, raw, begin, formats)
    shown_columns = [
        (name, column)
        for name, column, at in zip(plan.names, columns, raw, strict=True)
        if not (name.startswith("column") and _is_empty(root, relation, at))
    ] or list(zip(plan.names, columns, strict=True))
    for name, column in shown_columns:
        notes += [(name, note) for note in column.notes]
    selected = ", ".join(f"{column.expression} AS {quote_identifier(name)}" for name, column in shown_columns)
    filled = "" if len(raw) < 2 else f" WHERE coalesce({', '.join(raw)}) IS NOT NULL"
    if reads is None and (last := _sum_row(root, relation)):
        told = f'Its last row begins with "{last}": it may be a sum of the others.'
        notes.append((None, Note(told, "sum_row", label=last)))
    written = {name: column.format for name, column in shown_columns if column.format is not None}
    return DelimitedTable(f"(SELECT {selected} FROM {relation}{filled})", notes, reads, formats=written)


def _sum_row(root: duckdb.DuckDBPyConnection, relation: str) -> str | None:
    """The label of the last row as it stands there, if it looks like a sum of the others."""
    row = root.execute(f"SELECT c0 FROM {relation} WHERE c0 IS NOT NULL ORDER BY rowid DESC LIMIT 1").fetchone()
    label = "" if row is None else str(row[0])
    return label if _SUM.fullmatch(normalize("NFC", label).strip()) else None


def _is_empty(root: duckdb.DuckDBPyConnection, relation: str, column: str) -> bool:
    """Whether a column is empty: a delimiter at the end of each row makes one."""
    row = root.execute(f"SELECT count({column}), count(*) FROM {relation}").fetchone()
    return row is not None and row[0] == 0 and row[1] > 0


def _readable(
    root: duckdb.DuckDBPyConnection, path: Path, plan: _Plan, limits: Limits, *, load: bool, strict: bool = True
) -> str | None:
    """The relation of a file's raw rows; None if DuckDB refuses a row."""
    columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(len(plan.names)))
    options = [
        "auto_detect = false, header = false",
        f"skip = {plan.skip}, delim = {literal(plan.form.delimiter)}, columns = {{{columns}}}",
        f"quote = {literal(plan.form.quote)}, escape = {literal(plan.form.escape or plan.form.quote)}",
        f"max_line_size = {limits.value_bytes}",
    ]
    if plan.padded:
        options.append("null_padding = true, parallel = false")
    call = f"read_csv({literal(str(path))}, {', '.join(options)})"
    try:
        if load:
            root.execute(f"CREATE OR REPLACE TEMP TABLE {quote_identifier(_RAW)} AS FROM {call}")
            return f"temp.{quote_identifier(_RAW)}"
        if path.stat().st_size <= _HUGE:
            root.execute(f"SELECT count(*) FROM {call}").fetchone()
    except duckdb.InvalidInputException as error:
        if not strict or "Maximum line size" in str(error):
            raise
        return None
    return call


def _rewrite(path: Path, copy: Path, plan: _Plan) -> tuple[_Plan, Note | None]:
    """Rewrites the rows to equal width. Returns the plan for the copy, and a note on ragged rows."""
    form = plan.form
    lines, width, count = _write(path, copy, plan)
    if lines is None:
        form = RowForm(form.delimiter, "", "", form.skipped)
        lines, width, count = _write(path, copy, _Plan(form, plan.names, plan.skip, plan.trailing))
    names = (*plan.names, *(f"column{at}" for at in range(len(plan.names), width)))
    padding_note: Note | None = None
    if count:
        at = ", ".join(str(line) for line in lines or ()) + (", …" if count > _NAMED_LINES else "")
        rows = "row has" if count == 1 else "rows have"
        told = f"{count:,} {rows} fewer or more values than the header has names (line {at})."
        padding_note = Note(told, "ragged", n=count, lines=at)
    return _Plan(RowForm(","), names, 0, 0, padded=True), padding_note


def _write(path: Path, copy: Path, plan: _Plan) -> tuple[list[int] | None, int, int]:
    """Copies the rows. Returns the lines of the first ragged rows (None: a quote is never closed), the widest row's
    width, and the number of ragged rows."""
    wanted = len(plan.names)
    widest, count = wanted, 0
    lines: list[int] = []
    waiting: deque[list[str]] = deque()
    with (
        path.open(encoding="utf-8-sig", errors="replace", newline="") as given,
        copy.open("w", encoding="utf-8", newline="") as made,
    ):
        for _ in range(plan.skip):
            given.readline()
        writer = csv.writer(made, lineterminator="\n")
        reader = plan.form.reader(given)
        before = 0
        for row in _without_end(reader, waiting, plan.trailing):
            if reader.line_num - before > _OPEN and plan.form.quote and any(cell.count("\n") > _OPEN for cell in row):
                return None, widest, count
            before = reader.line_num
            while len(row) > wanted and not row[-1].strip():
                row.pop()
            if len(row) != wanted:
                count += 1
                widest = max(widest, len(row))
                if len(lines) < _NAMED_LINES:
                    lines.append(reader.line_num + plan.skip)
            writer.writerow(row if len(row) > 1 or wanted == 1 else [*row, *[""] * (wanted - len(row))])
    return lines, widest, count


def _without_end(rows: Iterator[list[str]], waiting: deque[list[str]], trailing: int) -> Iterator[list[str]]:
    """The rows that are not blank, without the last `trailing` ones."""
    for row in rows:
        waiting.append(row)
        if len(waiting) > trailing:
            first = waiting.popleft()
            if first and (len(first) == 1 or any(cell.strip() for cell in first)):
                yield first


def _footer_of(path: Path, form: RowForm, width: int) -> int:
    """The number of footnote rows at the end of a long file."""
    with path.open("rb") as file:
        file.seek(-min(_TAIL, path.stat().st_size), 2)
        text = file.read().decode("utf-8", "replace")
    lines = text.splitlines(keepends=True)[1:]
    return footer(list(form.reader(lines)), width)


def _footer_note(rows: Sequence[Sequence[str]]) -> Note:
    texts = [" ".join(cell.strip() for cell in row if cell.strip()) for row in rows]
    shown = next((text for text in texts if text), "")
    quoted_text = f'"{shown[:80]}{"…" if len(shown) > 80 else ""}"'
    return Note(f"Notes under the table are left out: {quoted_text}.", "footnotes", text=quoted_text)


def load_findings(path: Path, limits: Limits) -> tuple[DelimitedTable, list[Note]] | None:
    """The stored table and notes of a file that has not changed."""
    with suppress(OSError, ValueError, KeyError, TypeError, InvalidInput):
        found = json.loads(_place(path).read_text("utf-8"))
        if found["state"] == state_of(path, limits):
            notes = [(column, unpack(note)) for column, note in found["columns"]]
            formats = {name: format_of_json(each) for name, each in found["formats"].items()}
            table = DelimitedTable(str(found["relation"]), notes, path.resolve(), formats=formats)
            return table, [unpack(note) for note in found["notes"]]
    return None


def save_findings(path: Path, state: list[Any], written: DelimitedTable, notes: list[Note]) -> None:
    """Store the findings about a file that was in this state before it was read, if the cache folder is writable."""
    formats = {name: each.to_json() for name, each in written.formats.items()}
    columns = [(column, pack(note)) for column, note in written.notes]
    found = {"relation": written.relation, "columns": columns, "formats": formats, "state": state}
    found["notes"] = [pack(note) for note in notes]
    place = _place(path)
    with suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(found, file, ensure_ascii=False)
        Path(name).replace(place)


def _place(path: Path) -> Path:
    folder = Path(platformdirs.user_cache_dir("longthread", appauthor=False)) / "files"
    return folder / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()}.json"


def state_of(path: Path, limits: Limits) -> list[Any]:
    """Return what changes with a file, and with how it is read."""
    stat = path.stat()
    return [_RULES, stat.st_size, stat.st_mtime_ns, stat.st_ino, limits.encoding, limits.value_bytes]


_DEEPEST = 5
"""Objects within objects that become columns and tables."""
_MOST_FIELDS = 500
_MOST_TABLES = 20


@dataclass(frozen=True)
class _Value:
    """A value of each row: its column's name, its expression and its type."""

    name: str
    sql: str
    type: DuckDBPyType

    @property
    def holds_objects(self) -> bool:
        """Whether it is a list of objects."""
        return self.type.id == "list" and _within(self.type)[0][1].id == "struct"


def _within(kind: DuckDBPyType) -> list[tuple[str, DuckDBPyType]]:
    """The fields of an object's type, or the type of a list's values."""
    return [(name, cast(DuckDBPyType, child)) for name, child in kind.children]


def json_table(root: duckdb.DuckDBPyConnection, path: Path, limits: Limits, *, load: bool) -> DelimitedTable:
    """Reads a UTF-8 file. A single object with one list of objects (an API's answer) is a table of that list. Lists of
    objects in the rows are `children`, if all rows are loaded."""
    sample = -1 if load else 100_000
    call = f"read_json({literal(str(path))}, sample_size = {sample}, maximum_object_size = {limits.value_bytes})"
    columns = root.execute(f"DESCRIBE FROM {call}").fetchall()
    lists = [str(row[0]) for row in columns if str(row[1]).startswith("STRUCT(") and str(row[1]).endswith(")[]")]
    if not load:
        return replace(_table(root, call, "", 0), reads=path, children=())
    if len(lists) == 1:
        row = root.execute(f"SELECT count(*) FROM (FROM {call} LIMIT 2)").fetchone()
        if row is not None and row[0] == 1:
            others = [str(column[0]) for column in columns if str(column[0]) != lists[0]]
            beside = f"; beside it the file holds {', '.join(others[:10])}" if others else ""
            told = f'The rows are those of the list "{lists[0]}"{beside}.'
            rows_note = Note(told, "rows_of_list", list=lists[0], others=", ".join(others[:10]))
            made = _table(root, f"(SELECT unnest({quote_identifier(lists[0])}, max_depth := 2) FROM {call})", "", 0)
            return replace(made, notes=[(None, rows_note), *made.notes])
    return _table(root, call, "", 0)


def _table(root: duckdb.DuckDBPyConnection, relation: str, parent: str, depth: int) -> DelimitedTable:
    """The table of a relation's rows. `parent` is the column that already names the row above."""
    found = root.sql(f"FROM {relation}")
    top = [_Value(name, quote_identifier(name), kind) for name, kind in zip(found.columns, found.types, strict=True)]
    values = [value for one in top for value in _fields(one, depth)]
    if len(values) > _MOST_FIELDS:
        too_many = Note("Its objects have too many fields to be columns.", "too_many_fields")
        return DelimitedTable(relation, [(None, too_many)])
    names = UniqueNames()
    values = [replace(value, name=names.take(value.name)) for value in values]
    lists = [value for value in values if value.holds_objects and depth < _DEEPEST][:_MOST_TABLES]
    plain = [value for value in values if value not in lists]
    if not lists:
        return DelimitedTable(_select_values(plain, relation), [])
    key = _key(root, relation, [value for value in plain if value.name != parent])
    if key is None:
        key = _Value(names.take("row_number"), "row_number() OVER ()", found.types[0])
        plain = [key, *plain]
    notes: list[tuple[str | None, Note]] = []
    children: list[tuple[str, DelimitedTable]] = []
    above = f"parent_{key.name}"
    for value in lists:
        rows = f"(SELECT {key.sql} AS {quote_identifier(above)}, unnest({value.sql}) AS item FROM {relation})"
        item = f"(SELECT {quote_identifier(above)}, unnest(item) FROM {rows})"
        children.append((value.name, _table(root, item, above, depth + 1)))
        told = f'Its lists "{value.name}" are a table of their own, whose {above} is {key.name} here.'
        notes.append((None, Note(told, "list_table", list=value.name, above=above, key=key.name)))
    return DelimitedTable(_select_values(plain, relation), notes, children=tuple(children))


def _select_values(values: list[_Value], relation: str) -> str:
    return f"(SELECT {', '.join(f'{value.sql} AS {quote_identifier(value.name)}' for value in values)} FROM {relation})"


def _fields(value: _Value, depth: int) -> Iterator[_Value]:
    """A value itself, or the fields of an object, each named with it: `user_name`."""
    if value.type.id != "struct" or depth >= _DEEPEST:
        yield value
        return
    for name, kind in _within(value.type):
        field = _Value(f"{value.name}_{name}", f"struct_extract({value.sql}, {literal(name)})", kind)
        yield from _fields(field, depth + 1)


def _key(root: duckdb.DuckDBPyConnection, relation: str, values: list[_Value]) -> _Value | None:
    """The first value called an id that each row has, and no other row."""
    for value in values:
        if not value.name.lower().endswith("id") or value.type.id in ("list", "struct", "map"):
            continue
        row = root.execute(f"SELECT count(*) = count(DISTINCT {value.sql}) FROM {relation}").fetchone()
        if row is not None and row[0]:
            return value
    return None

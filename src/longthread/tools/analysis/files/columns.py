"""Column types from the texts of all rows: a type if exactly one reading fits them all, else text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import MappingProxyType

import duckdb

from longthread.tools.analysis.column_format import ColumnFormat
from longthread.tools.analysis.files.notes import Note
from longthread.tools.analysis.files.readings import (
    CODES,
    CURRENCIES,
    DAY_FIRST,
    MISSING,
    NAMED,
    PERCENT,
    SIMPLE_DATE,
    SIMPLE_NUMBER,
    ColumnReading,
    family_of,
    readings_of,
    text_of,
    unit_of,
    units_of,
)
from longthread.tools.analysis.quoting import literal, quote_identifier

_SAMPLED = 1_000
"""Values of a column that choose the readings to be tried on all rows."""
_MOSTLY = 0.5
"""Share of values that a reading must fit for a note on the others."""
_COMMA_DECIMALS = frozenset({"1.234,56", "1 234,56"})
_COMMA_DECIMAL_UNITS = frozenset({"€", "R$", "zł", "kr", "EUR", "SEK", "NOK", "DKK"})
"""Currencies whose amounts are often written 1.234,56."""
_COMMA_GROUPS = frozenset({*CURRENCIES, *CODES}) - _COMMA_DECIMAL_UNITS - {"CHF"}
"""Currencies whose amounts are written 1,234.56."""
_DIGITS_OF_A_BIGINT = 18
_DIGITS_OF_A_DOUBLE = 17
_EXACT_DIGITS = 15
"""Digits that a double keeps of any number. After the point the first six count."""
_DECIMALS_THAT_COUNT = 6
_DIGITS_OF_A_DECIMAL = 38
_DIGITS_OF_A_CODE = 11
"""Digits of a whole number that a spreadsheet shows as 1.38E+10."""


@dataclass
class Typed:
    """A column's SQL expression over the raw column, notes for people, and how the file writes its numbers."""

    expression: str
    notes: list[Note] = field(default_factory=list)
    format: ColumnFormat | None = None


@dataclass
class _Counted:
    """Counts over one column's texts."""

    values: int
    missing: int
    mark: str | None
    fits: Mapping[str, int]
    clocks: int
    zones: int
    nanoseconds: int
    digits: int
    dots: int
    commas: int
    scale: int
    whole: int
    exponents: int
    zeros: int


@dataclass
class _Column:
    raw: str
    sample: list[str]
    family: str
    readings: list[ColumnReading]
    counted: _Counted | None = None
    simple: str = ""
    """The type, where a plain cast gives it."""

    def misses(self, reading: ColumnReading) -> int:
        assert self.counted is not None
        return self.counted.values - self.counted.fits.get(reading.name, 0)


def infer_types(
    root: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Sequence[str],
    begin: str,
    formats: Mapping[str, ColumnFormat] = MappingProxyType({}),
) -> list[Typed]:
    """Return the types of a relation's raw columns. `begin` is a relation of its first rows, which choose the readings;
    all rows are then read once or twice. `formats` are the formats of columns in a workbook."""
    found = [_looked_at(root, begin, column) for column in columns]
    _find_simple(root, relation, [one for one in found if one.family in ("number", "date")])
    _count(root, relation, [one for one in found if one.readings and not one.simple])
    chosen = [_choice(root, relation, one) for one in found]
    if any(reading is not None and reading.name in _COMMA_DECIMALS for reading, _ in chosen):
        chosen = [_by_the_file(root, relation, one, *choice) for one, choice in zip(found, chosen, strict=True)]
    return [
        _with_format(_type_column(one, reading, notes), reading, formats.get(one.raw))
        for one, (reading, notes) in zip(found, chosen, strict=True)
    ]


def _with_format(column: Typed, reading: ColumnReading | None, format_: ColumnFormat | None) -> Typed:
    """A column with the format of its cells, if its texts tell none: one of numbers is of no date."""
    family = "" if reading is None else reading.family
    fits = format_ is not None and family == ("date" if format_.kind == "date" else "number")
    if format_ is None or not fits or column.format is not None:
        return column
    notes = list(column.notes)
    if format_.kind == "share":
        notes.append(Note("shares, which the workbook shows in percent: 0.5 is 50%", "shares"))
    elif format_.unit:
        notes.append(_note_on_unit(format_.unit))
    return Typed(column.expression, notes, format_)


def _looked_at(root: duckdb.DuckDBPyConnection, begin: str, raw: str) -> _Column:
    text = text_of(quote_identifier(raw))
    rows = root.execute(
        f"SELECT DISTINCT v FROM (SELECT v FROM (SELECT {text} AS v FROM {begin}) WHERE v IS NOT NULL LIMIT {_SAMPLED})"
    ).fetchall()
    sample = sorted(str(row[0]) for row in rows)
    family = family_of(sample) if sample else "text"
    readings = readings_of(family, sample, text)
    if family == "date":
        readings = _fitting(root, sample, readings, text)
    return _Column(raw, sample, family, readings)


def _fitting(
    root: duckdb.DuckDBPyConnection, sample: list[str], readings: Sequence[ColumnReading], text: str
) -> list[ColumnReading]:
    """The readings that fit some of the sample."""
    counts = ", ".join(f"count({reading.value.replace(text, 'v')})" for reading in readings)
    row = root.execute(f"SELECT {counts} FROM (SELECT unnest(?::VARCHAR[]) AS v)", [sample]).fetchone()
    assert row is not None
    return [reading for reading, count in zip(readings, row, strict=True) if count]


def _find_simple(root: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[_Column]) -> None:
    """Finds columns of plain numbers and dates, which most are, by one quick query."""
    if not columns:
        return
    parts = []
    for one in columns:
        raw = quote_identifier(one.raw)
        number = one.family == "number"
        fits = f"regexp_full_match({raw}, {literal(SIMPLE_NUMBER if number else SIMPLE_DATE)})"
        also = "" if number else f" AND TRY_CAST({raw} AS TIMESTAMP) IS NOT NULL"
        parts += [f"count({raw})", f"count(*) FILTER (WHERE {fits}{also})", f"max(length({raw}))"]
        parts.append(f"count(*) FILTER (WHERE contains({raw}, '.'))")
    row = root.execute(f"SELECT {', '.join(parts)} FROM {relation}").fetchone()
    assert row is not None
    for at, one in enumerate(columns):
        values, fitting, longest, dots = row[4 * at : 4 * at + 4]
        if not values or fitting < values or (one.family == "number" and longest >= _DIGITS_OF_A_DOUBLE):
            continue
        if one.family == "number":
            one.simple = "DOUBLE" if dots else "BIGINT"
        else:
            one.simple = "TIMESTAMP" if longest > len("2021-03-05") else "DATE"
        one.counted = _Counted(values, 0, None, {}, 0, 0, 0, 0, dots, 0, 0, 0, 0, 0)


def _count(root: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[_Column]) -> None:
    """Counts over the texts of columns, in one query."""
    if not columns:
        return
    marks = ", ".join(literal(mark) for mark in sorted(MISSING))
    parts: list[str] = []
    for at, one in enumerate(columns):
        v, raw = f"v{at}", quote_identifier(one.raw)
        marked = f"lower(trim({raw})) IN ({marks})"
        zone = literal(r":\d{2}(\.\d+)?\s*(Z|UTC|[+-]\d{2}(:?\d{2})?)$")
        fraction = literal(r"[.,](\d*)\D*$")
        parts += [
            f"count({v})",
            f"count(*) FILTER (WHERE {marked})",
            f"any_value({raw}) FILTER (WHERE {marked})",
            *(
                [f"count(*) FILTER (WHERE contains({v}, ':'))", f"count(*) FILTER (WHERE regexp_matches({v}, {zone}))"]
                if one.family == "date"
                else ["0", "0"]
            ),
            f"count(*) FILTER (WHERE regexp_matches({v}, '\\.\\d{{7,}}'))" if one.family == "date" else "0",
            *(
                [
                    f"max(length(regexp_replace({v}, '[^0-9]', '', 'g')))",
                    f"count(*) FILTER (WHERE contains({v}, '.'))",
                    f"count(*) FILTER (WHERE contains({v}, ','))",
                    f"max(length(regexp_extract({v}, {fraction}, 1)))",
                    f"max(length(regexp_replace({v}, '[^0-9]', '', 'g')) - length(regexp_extract({v}, {fraction}, 1)))",
                    f"count(*) FILTER (WHERE regexp_matches({v}, '[\\d.][eE][-+]?\\d'))",
                    f"count(*) FILTER (WHERE regexp_matches({v}, '^0\\d'))",
                ]
                if one.family == "number"
                else ["0"] * 7
            ),
            *[f"count({reading.value.replace(text_of(raw), v)})" for reading in one.readings],
        ]
    inner = ", ".join(
        f"{quote_identifier(one.raw)}, {text_of(quote_identifier(one.raw))} AS v{at}" for at, one in enumerate(columns)
    )
    row = root.execute(f"SELECT {', '.join(parts)} FROM (SELECT {inner} FROM {relation})").fetchone()
    assert row is not None
    cells = iter(row)
    for one in columns:
        one.counted = _parse_counts(cells, [reading.name for reading in one.readings])


def _parse_counts(cells: Iterator[object], names: Sequence[str]) -> _Counted:
    def number() -> int:
        return int(str(next(cells) or 0))

    values, missing = number(), number()
    mark = next(cells)
    shape = [number() for _ in range(10)]
    fits = {name: number() for name in names}
    return _Counted(values, missing, None if mark is None else str(mark).strip(), fits, *shape)


def _choice(root: duckdb.DuckDBPyConnection, relation: str, one: _Column) -> tuple[ColumnReading | None, list[Note]]:
    """The one reading that fits a column, or None with a note."""
    if one.counted is None or not one.counted.values:
        return None, []
    if one.simple:
        return ColumnReading("plain", quote_identifier(one.raw), one.family), []
    fitting = [reading for reading in one.readings if not one.misses(reading)]
    code = next((reading for reading in fitting if reading.family == "code"), None)
    fitting = [reading for reading in fitting if reading.family != "code"]
    units = sorted(units_of(one.sample) - {""}) if one.family == "number" else []
    if not fitting and len(units) > 1:
        told = f"kept as text: its amounts are in {', '.join(units)}, which do not add up"
        return None, [Note(told, "several_currencies", units=", ".join(units))]
    if not fitting:
        return None, [] if code is None and not _worth_telling(one) else [_why_text(one, code)]
    if one.family == "date" and len(fitting) > 1:
        return _of_dates(root, relation, one, fitting)
    if one.counted.exponents and (shortened := _note_shortened(root, relation, one)):
        return None, [shortened]
    if one.family == "number" and (mark := _doubtful(one, {reading.name for reading in fitting})):
        decimals = "comma" if mark == "," else "point"
        written = f"with thousands or with a decimal {decimals}"
        example = _example(one, mark)
        told = f'kept as text: "{example}" may be written {written}'
        return None, [Note(told, "thousands_or_decimals", value=example, mark=decimals)]
    return fitting[0], []


def _note_shortened(root: duckdb.DuckDBPyConnection, relation: str, one: _Column) -> Note | None:
    """Return a note on long whole numbers next to a few such as 8.26E+17, which a spreadsheet has shortened. As numbers
    all of them would lose digits. Return None where there are none, or other fractions."""
    text = text_of(quote_identifier(one.raw))
    row = root.execute(
        f"SELECT any_value(v) FILTER (WHERE regexp_full_match(v, '[+-]?\\d{{{_DIGITS_OF_A_CODE},}}')), "
        f"any_value(v) FILTER (WHERE regexp_full_match(v, '\\d([.,]\\d+)?[eE][+]?\\d{{2}}')), "
        f"count(*) FILTER (WHERE contains(v, '.') AND NOT regexp_matches(v, '[eE]')) "
        f"FROM (SELECT {text} AS v FROM {relation})"
    ).fetchone()
    if row is None or row[0] is None or row[1] is None or row[2]:
        return None
    told = f'kept as text: "{row[0]}" may be a code, and "{row[1]}" one that a spreadsheet has shortened for good'
    return Note(told, "shortened", value=str(row[0]), other=str(row[1]))


def _doubtful(one: _Column, names: Set[str]) -> str:
    """An ambiguous mark, which may separate thousands or decimals; else empty."""
    unit = unit_of(one.sample)
    if "plain" not in names:
        return "," if {"1,234.56", "1.234,56"} <= names and unit not in _COMMA_GROUPS else ""
    assert one.counted is not None
    return "." if unit in _COMMA_DECIMAL_UNITS and "1.234,56" in names and one.counted.dots else ""


def _of_dates(
    root: duckdb.DuckDBPyConnection, relation: str, one: _Column, fitting: Sequence[ColumnReading]
) -> tuple[ColumnReading | None, list[Note]]:
    """The first of several date orders, if all give the same dates or dots imply that days come first."""
    first, *others = fitting
    text = text_of(quote_identifier(one.raw))
    differs = " OR ".join(f"{first.value} IS DISTINCT FROM {other.value}" for other in others)
    dotted = literal(r"^\d{1,2}[.]\d{1,2}[.]")
    dots = f"regexp_matches({text}, {dotted})"
    row = root.execute(
        f"SELECT any_value({text}) FILTER (WHERE {differs}), bool_and({dots}) FROM {relation} WHERE {text} IS NOT NULL"
    ).fetchone()
    assert row is not None
    if row[0] is None or (row[1] and first.name.startswith(DAY_FIRST)):
        return first, []
    orders = " and ".join(reading.name for reading in fitting)
    told = f'kept as text: {orders} both fit and give other days, as for "{row[0]}"'
    return None, [Note(told, "date_orders", value=str(row[0]))]


def _by_the_file(
    root: duckdb.DuckDBPyConnection, relation: str, one: _Column, reading: ColumnReading | None, notes: list[Note]
) -> tuple[ColumnReading | None, list[Note]]:
    """In a file with decimal commas 1.234 may have thousands: such a column stays text."""
    if reading is None or reading.name != "plain" or one.counted is None or not one.counted.dots:
        return reading, notes
    others = readings_of("number", one.sample, text_of(quote_identifier(one.raw)))
    dotted = next((other for other in others if other.name == "1.234,56"), None)
    if dotted is None:
        return reading, notes
    row = root.execute(f"SELECT count({dotted.value}) FROM {relation}").fetchone()
    if row is None or row[0] < one.counted.values:
        return reading, notes
    example = _example(one, ".")
    because = "since other columns of the file have decimal commas"
    told = f'kept as text: "{example}" may be written with thousands, {because}'
    return None, [Note(told, "thousands_in_file", value=example)]


def _type_column(one: _Column, reading: ColumnReading | None, notes: list[Note]) -> Typed:
    raw = quote_identifier(one.raw)
    if reading is None or one.counted is None:
        return Typed(f"nullif({raw}, '')", notes)
    if one.simple:
        return Typed(f"CAST({raw} AS {one.simple})", notes)
    counted, all_notes, format_ = one.counted, list(notes), None
    if reading.family == "number":
        kind = _number_type(counted, reading)
        unit = unit_of(one.sample)
        if unit:
            format_ = ColumnFormat("percent") if unit in PERCENT else ColumnFormat("currency", unit)
        is_rounded = kind == "DOUBLE" and not counted.exponents and _is_rounded(counted)
        all_notes += _notes_on_numbers(one, reading, unit, is_rounded=is_rounded)
    elif reading.family == "date":
        if counted.zones and counted.zones < counted.values:
            told = "kept as text: some of its times have a time zone, and others none"
            return Typed(f"nullif({raw}, '')", [Note(told, "mixed_zones")])
        kind = _date_type(counted)
        if reading.name not in ("year-month-day", NAMED):
            all_notes.append(Note(f"dates are read as {reading.name}", "dates_as", form=reading.name))
    else:
        kind = "TIME" if reading.family == "time" else "BOOLEAN"
    if counted.missing:
        told = f'{counted.missing:,} values such as "{counted.mark}" are read as missing'
        if counted.missing == 1:
            told = f'1 value such as "{counted.mark}" is read as missing'
        all_notes.append(Note(told, "missing", n=counted.missing, mark=str(counted.mark)))
    value = f"CAST({reading.value} AS TIMESTAMP)" if kind == "DATE" else reading.value
    return Typed(f"CAST({value} AS {kind})", all_notes, format_)


def _notes_on_numbers(one: _Column, reading: ColumnReading, unit: str, *, is_rounded: bool) -> Iterator[Note]:
    if is_rounded:
        told = f"its numbers are rounded to {_EXACT_DIGITS} digits, for some have more than {_DIGITS_OF_A_DECIMAL}"
        yield Note(told, "rounded", digits=_EXACT_DIGITS, most=_DIGITS_OF_A_DECIMAL)
    if any(value.lstrip().startswith("(") for value in one.sample):
        yield Note("numbers in parentheses are read as negative", "parentheses")
    if reading.name != "plain":
        yield Note(f"numbers are read as {reading.name}", "numbers_as", form=reading.name)
    if unit in PERCENT:
        told = f'in percent: "{one.sample[-1]}" is that number, without the sign'
        yield Note(told, "percent", value=one.sample[-1])
    elif unit:
        yield _note_on_unit(unit)


def _note_on_unit(unit: str) -> Note:
    return Note(f"in {unit}, which is not part of the numbers", "unit", unit=unit)


def _number_type(counted: _Counted, reading: ColumnReading) -> str:
    if counted.exponents:
        return "DOUBLE"
    if counted.commas if reading.name in _COMMA_DECIMALS else counted.dots:
        exact = _is_rounded(counted) and counted.whole + counted.scale <= _DIGITS_OF_A_DECIMAL
        return f"DECIMAL({_DIGITS_OF_A_DECIMAL}, {counted.scale})" if exact else "DOUBLE"
    return "BIGINT" if counted.digits <= _DIGITS_OF_A_BIGINT else "HUGEINT"


def _is_rounded(counted: _Counted) -> bool:
    """Whether a double would lose digits that count."""
    counting = counted.whole + min(counted.scale, _DECIMALS_THAT_COUNT)
    return counted.digits > _DIGITS_OF_A_DOUBLE or counting > _EXACT_DIGITS


def _date_type(counted: _Counted) -> str:
    if counted.zones:
        return "TIMESTAMPTZ"
    if counted.nanoseconds:
        return "TIMESTAMP_NS"
    return "TIMESTAMP" if counted.clocks else "DATE"


def _worth_telling(one: _Column) -> bool:
    assert one.counted is not None
    best = max((one.counted.fits.get(reading.name, 0) for reading in one.readings), default=0)
    return best >= _MOSTLY * one.counted.values or bool(one.counted.zeros)


def _why_text(one: _Column, code: ColumnReading | None) -> Note:
    assert one.counted is not None
    if code is not None:
        told = f'kept as text: "{one.sample[0]}" may be a code rather than a number'
        return Note(told, "code", value=one.sample[0])
    if one.counted.zeros:
        example = next((value for value in one.sample if value[:1] == "0" and value[1:2].isdigit()), "0…")
        return Note(f'kept as text: values such as "{example}" begin with zeros', "zeros", value=example)
    best = max(one.counted.fits.get(reading.name, 0) for reading in one.readings)
    what = {"number": "numbers", "date": "dates of one form", "time": "times", "truth": "true or false"}[one.family]
    told = f"kept as text: {best:,} of {one.counted.values:,} values are {what}, and others are not"
    return Note(told, "not_all", n=best, all=one.counted.values, kind=one.family)


def _example(one: _Column, mark: str) -> str:
    return next((value for value in one.sample if mark in value), one.sample[0])

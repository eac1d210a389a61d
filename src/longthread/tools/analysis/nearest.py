"""Notes on texts that a query filters by and the column does not have, with the nearest values."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp

from longthread.errors import LongthreadError
from longthread.tools.analysis.engine import SourceConnection
from longthread.tools.analysis.quoting import literal, quote_identifier
from longthread.tools.analysis.schema import Schema, Table
from longthread.tools.analysis.source import Source

SECONDS = 1.0
"""Time limit of all look-ups for one query."""
_LOOKS = 12  # values that are looked for
_VALUES = 1_000  # distinct values that are compared
_SHOWN = 5
_FEW = 12  # all values are listed up to here
_CHARACTERS = 60
_TEXTS = re.compile(r"char|text|clob|string|enum|citext|^$", re.I)
_NUMBERS = re.compile(r"[\d\s:./TZ+-]*")


class Filter(NamedTuple):
    """A value that a query compares a column with; `how` is `=`, LIKE or ILIKE."""

    table: Table
    column: str
    how: str
    value: str


async def notes_of(source: Source, schema: Schema, sql: str) -> list[str]:
    """A note for each text that the statement filters by and its column lacks, with the nearest values. The user's
    policy holds for these look-ups too. Empty when the time is up."""
    if "'" not in sql and '"' not in sql:
        return []
    try:
        found = _filters(sql, source, schema)
        return await source.work(lambda connection: _notes(connection, source, schema, found), SECONDS) if found else []
    except LongthreadError:
        return []  # the query itself succeeded


def _filters(sql: str, source: Source, schema: Schema) -> list[Filter]:
    judged = source.judge(sql, schema)
    if judged.explains:
        return []
    found = (one for select in judged.tree.find_all(exp.Select) for one in _of_select(select, schema))
    return list(dict.fromkeys(one for one in found if not _NUMBERS.fullmatch(one.value)))[:_LOOKS]


def _of_select(select: exp.Select, schema: Schema) -> Iterator[Filter]:
    tables = dict(_tables(select, schema))
    columns: list[exp.Expr]
    values: list[exp.Expr]
    for node in select.walk(prune=lambda one: isinstance(one, exp.Query) and one is not select):
        if isinstance(node, exp.EQ | exp.NEQ):
            sides = [node.this, node.expression]
            columns = [side for side in sides if isinstance(side, exp.Column)]
            values, how = [side for side in sides if isinstance(side, exp.Literal)], "="
        elif isinstance(node, exp.In):
            columns, values, how = [node.this], node.expressions, "="
        elif isinstance(node, exp.Like | exp.ILike):
            columns, values = [node.this], [node.expression]
            how = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        else:
            continue
        column = columns[0] if columns and isinstance(columns[0], exp.Column) else None
        owner = _owner(column, tables) if column is not None else None
        if owner is not None:
            texts = (value.name for value in values if isinstance(value, exp.Literal) and value.is_string)
            yield from (Filter(*owner, how, text) for text in texts)


def _tables(select: exp.Select, schema: Schema) -> Iterator[tuple[str, Table]]:
    """The tables of a SELECT by their names or aliases, without CTEs."""
    given = {one.alias.casefold() for one in select.root().find_all(exp.CTE)}
    clause = select.args.get("from_")
    items = [clause.this] if clause is not None else []
    for item in [*items, *(join.this for join in select.args.get("joins") or [])]:
        if isinstance(item, exp.Table) and item.name.casefold() not in given:
            label = f"{item.db}.{item.name}" if item.db else item.name
            names = [name for name in schema.tables if name.casefold() in (label.casefold(), item.name.casefold())]
            if len(names) == 1:
                yield item.alias_or_name.casefold(), schema.tables[names[0]]


def _owner(column: exp.Column, tables: dict[str, Table]) -> tuple[Table, str] | None:
    among = [tables[column.table.casefold()]] if column.table.casefold() in tables else []
    among = among if column.table else list(tables.values())
    owners = [
        (table, each)
        for table in among
        for each in table.columns
        if each.name.casefold() == column.name.casefold() and _TEXTS.search(each.type)
    ]
    return (owners[0][0], owners[0][1].name) if len(owners) == 1 else None


def _notes(connection: SourceConnection, source: Source, schema: Schema, filters: Sequence[Filter]) -> list[str]:
    notes: list[str] = []
    for one in filters:
        name = quote_identifier(one.column, source.dialect)
        test = f"{name} {one.how} {literal(one.value, source.dialect)}"
        if _first(connection, source, schema, f"SELECT 1 AS n FROM {one.table.sql} WHERE {test} LIMIT 1"):
            continue
        distinct = f"SELECT DISTINCT {name} AS v FROM {one.table.sql} WHERE {name} IS NOT NULL LIMIT {_VALUES + 1}"
        rows = _first(connection, source, schema, distinct)
        values = [str(row[0]) for row in rows]
        notes.append(_note(one, values if len(values) <= _VALUES else []))
        if len(notes) == _SHOWN:
            break
    return notes


def _first(connection: SourceConnection, source: Source, schema: Schema, sql: str) -> list[Sequence[object]]:
    return list(connection.query(source.prepare(sql, schema)[1]))


def _note(one: Filter, values: Sequence[str]) -> str:
    how = "is" if one.how == "=" else f"is {one.how}"
    missing = f"No {one.table.label}.{one.column} {how} '{_cut(one.value)}'"
    near = close_values(one.value.strip("%_") if one.how != "=" else one.value, values)
    if near:
        return f"{missing}. The nearest values are: {_list_values(near)}."
    if 0 < len(values) <= _FEW:
        return f"{missing}. Its values are: {_list_values(values)}."
    return f"{missing}."


def close_values(wanted: str, values: Sequence[str]) -> list[str]:
    """Up to five similar values, best first: by letters, by parts, or by initials."""
    plain = _plain(wanted)
    scored = [(_likeness(plain, _plain(value)), value) for value in values]
    return [value for score, value in sorted(scored, key=lambda one: -one[0]) if score >= 0.6][:_SHOWN]


def _likeness(wanted: str, plain: str) -> float:
    if not wanted or not plain:
        return 0.0
    if wanted == plain:
        return 1.0
    bare = re.sub(r"[\W_]+", "", wanted)
    if bare and bare == re.sub(r"[\W_]+", "", plain):
        return 0.99
    initials = "".join(word[0] for word in re.findall(r"\w+", plain))
    short = "".join(word[0] for word in re.findall(r"\w+", wanted))
    if len(initials) > 1 and (bare.startswith(initials) or initials.startswith(bare)) and len(bare) > 1:
        return 0.9
    if len(short) > 1 and plain.replace(".", "") in (short, short[:2], short[:3]):
        return 0.9
    least = 1 if not wanted.isascii() else 3
    inside = min(len(wanted), len(plain)) >= least and (wanted in plain or plain in wanted)
    ratio = difflib.SequenceMatcher(None, wanted, plain).ratio()
    return max(ratio, 0.8 if inside else 0.0)


def _plain(text: str) -> str:
    bare = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    return " ".join(bare.casefold().split())


def _list_values(values: Sequence[str]) -> str:
    return ", ".join(f"'{_cut(value)}'" for value in values)


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"

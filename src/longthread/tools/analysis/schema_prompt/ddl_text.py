"""The tables of a schema as CREATE statements, in at most so many tokens. Pure.

A column's line tells its type, its keys, its comment and what it holds. Where the whole does not fit, what the columns
hold goes first, then their comments, then the tables that a question is least likely about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_prompt.values import SourceValues
from longthread.view.tokens import estimate

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMENT = 100
"""Characters of a comment."""
_TYPE = 40
"""Characters of a type."""
_LABELS = 20
"""Allowed values of a column."""
_NAMED = 0.1
"""Share of the budget for the names of the tables that have no room."""
_OTHERS = "-- Other tables: {names}"
_MORE = "-- and {count} more"


@dataclass(frozen=True, slots=True)
class SchemaText:
    """The text, and whether it tells all that is known of the schema: no table, comment or value had to go, and all
    columns were asked what they hold."""

    text: str
    is_whole: bool


def schema_text(
    schema: Schema,
    values: SourceValues,
    *,
    dialect: str,
    budget: int,
    family: str,
    likely: Callable[[], Sequence[str]],
) -> SchemaText:
    """Return the text of a schema in at most `budget` tokens of a model family: of all tables in the schema's order,
    if that fits. `likely` names the tables that matter most, first the likeliest, where it does not."""
    tables = list(schema.tables.values())
    for number, create in enumerate(_forms(values, dialect)):
        text = "\n".join(map(create, tables))
        if estimate(text, family) <= budget:
            is_whole = number == 0 and values.is_complete and not any(map(_is_cut, tables))
            return SchemaText(text, is_whole)
    return _part(schema, values, dialect, budget, family, likely())


def _part(
    schema: Schema, values: SourceValues, dialect: str, budget: int, family: str, likely: Sequence[str]
) -> SchemaText:
    """Return the text of the likeliest tables that fit, and the names of the others."""
    ranked = [*likely, *(label for label in schema.tables if label not in set(likely))]
    room = int(budget * (1 - _NAMED))
    create = list(_forms(values, dialect))[1 if likely else 2]
    shown: list[str] = []
    for label in ranked:
        room -= estimate(create(schema.tables[label]), family) + 1
        if room < 0:
            break
        shown.append(label)
    texts = [create(schema.tables[label]) for label in schema.tables if label in set(shown)]
    left = [label for label in schema.tables if label not in set(shown)]
    names = _names(left, budget - sum(estimate(text, family) + 1 for text in texts), family)
    return SchemaText("\n".join([*texts, *names]), is_whole=False)


def _is_cut(table: Table) -> bool:
    """Whether a comment, a type or the allowed values of a column are shown in part."""
    comments = [table.comment, *(column.comment for column in table.columns)]
    return any(len(comment or "") > _COMMENT for comment in comments) or any(
        len(column.type) > _TYPE or len(column.labels) > _LABELS for column in table.columns
    )


def _names(left: Sequence[str], room: int, family: str) -> list[str]:
    named: list[str] = []
    for label in left:
        room -= estimate(f"{label}, ", family)
        if room < 10:
            break
        named.append(label)
    texts = [_OTHERS.format(names=", ".join(named))] if named else []
    return [*texts, *([_MORE.format(count=len(left) - len(named))] if len(named) < len(left) else [])]


def _forms(values: SourceValues, dialect: str) -> Sequence[Callable[[Table], str]]:
    """Return the ways to write a table, the fullest first."""
    return [
        partial(_create, values=values, dialect=dialect, comments=True),
        partial(_create, values=SourceValues(links=values.links), dialect=dialect, comments=True),
        partial(_create, values=SourceValues(links=values.links), dialect=dialect, comments=False),
    ]


def _create(table: Table, *, values: SourceValues, dialect: str, comments: bool) -> str:
    single = {**values.links.get(table.label, {})}
    single |= {key.columns[0]: key for key in table.foreign_keys if len(key.columns) == 1}
    parts = [
        _column(column, table, single.get(column.name), values.note_of(table.label, column.name), dialect, comments)
        for column in table.columns
    ]
    if len(table.primary_key) > 1:
        parts.append(f"PRIMARY KEY ({_listed(table.primary_key, dialect)})")
    parts += [
        f"FOREIGN KEY ({_listed(key.columns, dialect)}) REFERENCES {key.table} ({_listed(key.references, dialect)})"
        for key in table.foreign_keys
        if len(key.columns) > 1
    ]
    about = f" -- {_short(table.comment)}" if comments and table.comment else ""
    return f"CREATE {table.kind.upper()} {_table_name(table, dialect)} ({', '.join(parts)});{about}"


def _column(column: Column, table: Table, key: ForeignKey | None, holds: str, dialect: str, comments: bool) -> str:
    words = [_name(column.name, dialect), column.type[:_TYPE]]
    words += ["PRIMARY KEY"] if table.primary_key == (column.name,) else []
    words += [f"REFERENCES {key.table} ({_listed(key.references, dialect)})"] if key is not None else []
    labels = ", ".join(f"'{label}'" for label in column.labels[:_LABELS])
    notes = [_short(column.comment) if comments and column.comment else "", labels or holds]
    about = "; ".join(filter(None, notes)).replace("*/", "* /")
    return " ".join(filter(None, [*words, f"/* {about} */" if about else ""]))


def _table_name(table: Table, dialect: str) -> str:
    """Return a table's name as a statement may write it. Where a policy holds, `table.sql` is the policy's own."""
    return ".".join(_name(part, dialect) for part in table.label.split("."))


def _name(name: str, dialect: str) -> str:
    return name if _PLAIN.fullmatch(name) else quoted(name, dialect)


def _listed(names: Sequence[str], dialect: str) -> str:
    return ", ".join(_name(name, dialect) for name in names)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _COMMENT else f"{line[: _COMMENT - 1]}…"

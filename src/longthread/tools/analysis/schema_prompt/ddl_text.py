"""The tables of a schema as CREATE statements, in at most so many tokens. Pure.

A column's line tells its type, its keys, its comment and what it holds. Where the whole does not fit, what the columns
hold goes first, then their comments, then the tables that a question is least likely about, and of a table that is too
large the last columns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from longthread.tools.analysis.quoting import literal, quoted_if_needed, quoted_label
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_prompt.values import SourceValues
from longthread.view.tokens import estimate

_COMMENT = 100
"""Characters of a comment."""
_TYPE = 40
"""Characters of a type."""
_LABELS = 20
"""Allowed values of a column."""
_NAMED = 0.1
"""Share of the budget for the names of the tables that have no room."""
_SOME = 4
"""The fewest columns that a part of a table has."""
_LEAST = 30
"""Tokens of room that a table may fit in."""
_OTHERS = "-- Other tables: {names}"
_MORE = "-- and {count} more"
_MORE_COLUMNS = " -- and {count} more columns"


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
    forms = _forms(schema, values, dialect)
    for number, form in enumerate(forms):
        text = "\n".join(map(form.create, tables))
        if estimate(text, family) <= budget:
            is_whole = number == 0 and values.is_complete and not any(map(_is_cut, tables))
            return SchemaText(text, is_whole)
    return _part(schema, forms, budget, family, likely())


def _part(schema: Schema, forms: Sequence[_Form], budget: int, family: str, likely: Sequence[str]) -> SchemaText:
    """Return the text of the likeliest tables: whole tables that fit, some columns of tables that do not, and the names
    of the others."""
    full, bare = forms[1 if likely else 2], forms[2]
    room = int(budget * (1 - _NAMED))
    texts: dict[str, str] = {}
    partial: list[str] = []
    for label in dict.fromkeys([*likely, *schema.tables]):
        if room < _LEAST:
            break
        table = schema.tables[label]
        fitting = (text for form in (full, bare) if estimate(text := form.create(table), family) < room)
        if not (text := next(fitting, "")):  # half of the room is left to others, as far as they need it
            text = _some_columns(table, bare, room // 2, family)
            partial += [label] if text else []
        if text:
            texts[label] = text
            room -= estimate(text, family) + 1
    for label in partial:
        room += estimate(texts[label], family)
        texts[label] = _some_columns(schema.tables[label], bare, room, family)
        room -= estimate(texts[label], family)
    left = [table for label, table in schema.tables.items() if label not in texts]
    names = _names(left, bare, budget - sum(estimate(text, family) + 1 for text in texts.values()), family)
    return SchemaText("\n".join([*(texts[label] for label in schema.tables if label in texts), *names]), is_whole=False)


def _some_columns(table: Table, form: _Form, room: int, family: str) -> str:
    """Return the text of a table with as many columns as fit, its keys before others; none if these are too few."""
    keys = {*table.primary_key, *(form.keys_of(table))}
    ranked = sorted((column.name for column in table.columns), key=lambda name: name not in keys)

    def create(count: int) -> str:
        names = set(ranked[:count])
        some = replace(
            table,
            columns=tuple(column for column in table.columns if column.name in names),
            primary_key=table.primary_key if names.issuperset(table.primary_key) else (),
            foreign_keys=tuple(key for key in table.foreign_keys if names.issuperset(key.columns)),
        )
        return form.create(some) + _MORE_COLUMNS.format(count=len(ranked) - count)

    counts = range(_SOME, len(ranked))
    fitting = bisect_right(counts, room, key=lambda count: estimate(create(count), family))
    return create(counts[fitting - 1]) if fitting else ""


def _is_cut(table: Table) -> bool:
    """Whether a comment, a type or the allowed values of a column are shown in part."""
    comments = [table.comment, *(column.comment for column in table.columns)]
    return any(len(comment or "") > _COMMENT for comment in comments) or any(
        len(column.type) > _TYPE or len(column.labels) > _LABELS for column in table.columns
    )


def _names(left: Sequence[Table], form: _Form, room: int, family: str) -> list[str]:
    named: list[str] = []
    for table in left:
        name = form.name_of(table)
        room -= estimate(f"{name}, ", family)
        if room < 10:
            break
        named.append(name)
    texts = [_OTHERS.format(names=", ".join(named))] if named else []
    return [*texts, *([_MORE.format(count=len(left) - len(named))] if len(named) < len(left) else [])]


def _forms(schema: Schema, values: SourceValues, dialect: str) -> Sequence[_Form]:
    """Return the ways to write a table, the fullest first."""
    bare = SourceValues(links=values.links)
    return [
        _Form(schema, values, dialect, comments=True),
        _Form(schema, bare, dialect, comments=True),
        _Form(schema, bare, dialect, comments=False),
    ]


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write the tables of a schema."""

    schema: Schema
    values: SourceValues
    dialect: str
    comments: bool

    def create(self, table: Table) -> str:
        keys = self.keys_of(table)
        parts = [self._column(column, table, keys.get(column.name)) for column in table.columns]
        if len(table.primary_key) > 1:
            parts.append(f"PRIMARY KEY ({self._join_names(table.primary_key)})")
        parts += [
            f"FOREIGN KEY ({self._join_names(key.columns)}) {self._references(key)}"
            for key in table.foreign_keys
            if len(key.columns) > 1
        ]
        about = f" -- {_short(table.comment)}" if self.comments and table.comment else ""
        return f"CREATE {table.kind.upper()} {self.name_of(table)} ({', '.join(parts)});{about}"

    def keys_of(self, table: Table) -> dict[str, ForeignKey]:
        """Return the keys of single columns: the declared ones, and the ones that the values prove."""
        declared = {key.columns[0]: key for key in table.foreign_keys if len(key.columns) == 1}
        return {**self.values.links.get(table.label, {}), **declared}

    def name_of(self, table: Table) -> str:
        """Return a table's name as a statement may write it. Where a policy holds, `table.sql` is the policy's own."""
        return quoted_label(table.label, table.sql, self.dialect)

    def _column(self, column: Column, table: Table, key: ForeignKey | None) -> str:
        words = [quoted_if_needed(column.name, self.dialect), _type(column)]
        words += ["PRIMARY KEY"] if table.primary_key == (column.name,) else []
        words += [self._references(key)] if key is not None else []
        labels = ", ".join(map(literal, column.labels[:_LABELS]))
        comment = _short(column.comment) if self.comments and column.comment else ""
        notes = [comment, labels or self.values.note_of(table.label, column.name)]
        about = "; ".join(filter(None, notes)).replace("*/", "* /")
        return " ".join(filter(None, [*words, f"/* {about} */" if about else ""]))

    def _references(self, key: ForeignKey) -> str:
        target = self.schema.tables.get(key.table)
        name = quoted_label(key.table, "" if target is None else target.sql, self.dialect)
        return f"REFERENCES {name} ({self._join_names(key.references)})"

    def _join_names(self, names: Sequence[str]) -> str:
        return ", ".join(quoted_if_needed(name, self.dialect) for name in names)


def _type(column: Column) -> str:
    """Return a column's type; of a long one, such as an enumeration's, its first word."""
    return column.type if len(column.type) <= _TYPE else column.type.partition("(")[0][:_TYPE].strip()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _COMMENT else f"{line[: _COMMENT - 1]}…"

"""Tables as CREATE statements: those of a schema, in at most so many tokens, and results of `list_tables` and
`describe_table`, in a third of the tokens of their JSON. Pure.

A column's line tells its type, its keys, its comment and what it holds. Where a schema does not fit, what the columns
hold goes first, then their comments, then the tables that a question is least likely about, and of a table that is too
large the last columns. Names of columns that a listing has, and all of a column's values, are left to `describe_table`
and its argument `column`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.tools.analysis.quoting import literal, quoted_if_needed, quoted_label
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_values import SourceValues
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
    names = _list_names(left, bare, budget - sum(estimate(text, family) + 1 for text in texts.values()), family)
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


def _list_names(left: Sequence[Table], form: _Form, room: int, family: str) -> list[str]:
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


_VALUE = 30
"""Characters of one value of a column."""
_SHOWN_LABELS, _ALL, _FEW_VALUES = 20, 8, 3
"""Allowed values that are shown; values up to which all of a column are shown; values that are shown of more."""
_ALL_CHARACTERS = 120
"""Characters of all values of a column, where all are shown."""
_Data = Mapping[str, Any]


def observed_text(action: str, observation: _Data) -> str | None:
    """Return a listing or a description of tables as text; None for any other result, also for a part of a description
    (one column, or a page of a comment), which the model sees whole."""
    data = observation.get("data") if observation.get("ok") is True else None
    if not isinstance(data, Mapping):
        return None
    try:
        if action == "list_tables" and {"fingerprint", "tables", "about", "shown"} <= data.keys():
            return "\n".join(_listing(data))
        if action == "describe_table" and {"columns", "columns_shown"} <= data.keys():
            return "\n".join(_description(data))
    except (AttributeError, KeyError, TypeError, ValueError):  # another program's, in the same names
        return None
    return None


def _listing(data: _Data) -> Iterator[str]:
    yield f"{data['shown']} tables, with their rows:"
    for name in data["tables"]:
        about = data["about"].get(name, {})
        kind = " (view)" if about.get("kind") == "view" else ""
        rows, comment = _rows(about), about.get("comment")
        about_it = f" -- {_line(comment)}" if comment else ""
        yield f"{_line(name)}{kind}{f': {rows}' if rows else ''}{about_it}"
    if "next" in data:
        yield f"-- More from `offset` {data['next']} on."
    yield from _notes(data)


def _description(data: _Data) -> Iterator[str]:
    dialect, keys = str(data.get("dialect") or ""), data.get("foreign_keys") or ()
    label = str(data.get("table_name") or data["table"])
    name = quoted_label(label, str(data.get("sql_name") or ""), dialect)
    rows, comment = _rows(data), data.get("comment")
    head = " ".join(filter(None, [f"{rows} rows." if rows else "", _line(comment or "")]))
    yield f"CREATE {str(data.get('kind') or 'table').upper()} {name} ({f' -- {head}' if head else ''}"
    primary = [str(each) for each in data.get("primary_key") or ()]
    single = {key["columns"][0]: key for key in keys if len(key["columns"]) == 1}
    for column in data["columns"]:
        yield _column(column, primary, single.get(column["name"]), dialect)
    if len(primary) > 1:
        yield f"PRIMARY KEY ({_quote_names(primary, dialect)}),"
    for key in keys:
        if len(key["columns"]) > 1:
            yield f"FOREIGN KEY ({_quote_names(key['columns'], dialect)}) {_references(key, dialect)},"
    yield ");"
    yield from _beside(data, primary, dialect)


def _beside(data: _Data, primary: Sequence[str], dialect: str) -> Iterator[str]:
    """Yield what a description says after the columns: what refers to them, what is cut, and its notes."""
    others = data.get("referenced_by") or ()
    if others:
        yield f"-- Referenced by: {', '.join(_reference(each, primary, dialect) for each in others)}"
    shown, _, total = str(data["columns_shown"]).partition(" of ")
    cuts = [f"{data['columns_shown']} columns"] if shown != total or "next" in data else []
    cuts += [f"more from `offset` {data['next']} on"] if "next" in data else []
    cuts += [f"{data[name]} {name.removesuffix('_shown')}" for name in _PARTS if name in data]
    cuts += [f"comment from `comment_from` {data['comment_next']} on"] if "comment_next" in data else []
    if cuts:
        yield f"-- Shown: {', '.join(cuts)}."
    statistics = [str(data[name]) for name in ("statistics", "statistics_shown") if name in data]
    if statistics:
        yield f"-- Values: {', '.join(statistics)}."
    if data.get("in_short") or any("…" in _about(column) for column in data["columns"]):
        yield "-- `column` shows all that is known of one."
    yield from _notes(data)


_PARTS = ("foreign_keys_shown", "referenced_by_shown")


def _column(column: _Data, primary: Sequence[str], key: _Data | None, dialect: str) -> str:
    words = [quoted_if_needed(column["name"], dialect), str(column["type"])]
    words += ["PRIMARY KEY"] if primary == [column["name"]] else []
    words += [_references(key, dialect)] if key is not None else []
    is_key = key is not None or column["name"] in primary
    about = _about(column, is_key=is_key)
    return f"{' '.join(filter(None, words))},{f' -- {about}' if about else ''}"


def _about(column: _Data, *, is_key: bool = False) -> str:
    """What is known of a column: its comment, and what it holds; of a key, which joins alone use, its comment."""
    comment = [_line(column["comment"])] if column.get("comment") else []
    note = [_line(column["note"])] if column.get("note") else []
    return "; ".join(filter(None, [*comment, "" if is_key else _held(column), *note]))


def _held(column: _Data) -> str:
    """The allowed values of a column; all that it holds, if they are few; its range; or the most frequent ones."""
    if labels := column.get("labels"):
        more = [f"… ({len(labels)})"] if len(labels) > _SHOWN_LABELS or "labels_shown" in column else []
        return ", ".join([*(_value(label) for label in labels[:_SHOWN_LABELS]), *more])
    values, distinct = column.get("values") or (), column.get("distinct")
    texts = [_value(value) for value in values]
    if len(texts) == distinct and len(texts) <= _ALL and sum(map(len, texts)) <= _ALL_CHARACTERS:
        return ", ".join(texts)
    if "min" in column:
        least, most = _value(column["min"]), _value(column["max"])
        return least if least == most else f"{least} to {most}"
    if texts:
        return ", ".join([*texts[:_FEW_VALUES], f"… ({distinct})"])
    return f"{distinct} values" if distinct else ""


def _value(value: Any) -> str:
    return literal(_cut(_line(value), _VALUE)) if isinstance(value, str) else str(value)


def _references(key: _Data, dialect: str) -> str:
    return f"REFERENCES {key['table']} ({_quote_names(key['references'], dialect)})"


def _reference(key: _Data, primary: Sequence[str], dialect: str) -> str:
    target = "" if list(key["references"]) == list(primary) else f" to ({_quote_names(key['references'], dialect)})"
    return f"{key['table']} ({_quote_names(key['columns'], dialect)}){target}"


def _quote_names(names: Sequence[str], dialect: str) -> str:
    return ", ".join(quoted_if_needed(name, dialect) for name in names)


def _rows(about: _Data) -> str:
    count = about.get("rows")
    return "" if count is None else f"{'about ' if about.get('approximate') else ''}{count}"


def _notes(data: _Data) -> Iterator[str]:
    for note in data.get("notes") or ():
        yield f"-- {_line(note)}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _line(text: Any) -> str:
    return " ".join(str(text).split())

"""What a schema tells beside its names, without what a policy hides: comments, and the values that a column may hold.

Allowed values of a column are those of all rows: they are withheld where a user does not see all rows of a table, or
sees a mask in place of the column. A comment is withheld that names a hidden table, column or value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from longthread.tools.analysis.schema import Column, Schema, Table

_LABELS = re.compile(r"\b(enum|set)\s*\(\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\)", re.I)
"""The allowed values within a type."""


@dataclass(frozen=True)
class Restrictions:
    """What of the visible tables is not shown as it is, by label: `masked` columns in lower case, and tables of which
    some rows are hidden. Views read these, whatever their columns are called."""

    masked: Mapping[str, frozenset[str]] = field(default_factory=dict)
    bounded: frozenset[str] = frozenset()

    def withholds(self, table: Table, column: Column) -> bool:
        """Whether a column may hold values that the user does not see."""
        if table.kind == "view" and (self.bounded or any(self.masked.values())):
            return True
        return table.label in self.bounded or column.name.casefold() in self.masked.get(table.label, ())


def withhold(whole: Schema, seen: Schema, restrictions: Restrictions) -> Schema:
    """Return the schema that a user sees without the texts that tell what is hidden."""
    tables = [_without_labels(table, restrictions) for table in seen.tables.values()]
    labels = _labels(whole.tables.values()) - _labels(tables)
    hidden = hidden_names(whole, seen) | {label.casefold() for label in labels}
    return Schema([_without_comments(whole.tables[table.label], table, hidden) for table in tables], seen.home)


def hidden_names(whole: Schema, seen: Schema) -> set[str]:
    """Return the names of hidden tables and columns that no visible one has, in lower case; those of all hidden columns
    behind their table's."""
    qualified = {
        f"{name.casefold()}.{column}"
        for label, table in whole.tables.items()
        for column in _columns(table) - (_columns(seen.tables[label]) if label in seen.tables else set())
        for name in (label, label.rpartition(".")[2])
    }
    return (_all_names(whole) - _all_names(seen)) | qualified


def names_any(text: str, names: Iterable[str]) -> bool:
    """Return whether a text has one of the names, which are in lower case, as a word of its own."""
    text = text.casefold()
    return any(
        name in text and (not name.isascii() or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None)
        for name in names
    )


def _all_names(schema: Schema) -> set[str]:
    tables = {label.rpartition(".")[2].casefold() for label in schema.tables}
    return tables.union(*map(_columns, schema.tables.values()))


def _columns(table: Table) -> set[str]:
    return {column.name.casefold() for column in table.columns}


def _labels(tables: Iterable[Table]) -> set[str]:
    return {label for table in tables for column in table.columns for label in column.labels if label.strip()}


def _without_labels(table: Table, restrictions: Restrictions) -> Table:
    columns = tuple(
        replace(column, type=_LABELS.sub(r"\1", column.type), labels=(), withholds_labels=bool(column.labels))
        if restrictions.withholds(table, column)
        else column
        for column in table.columns
    )
    return replace(table, columns=columns)


def _without_comments(whole: Table, table: Table, hidden: Collection[str]) -> Table:
    """Return a table without the comments that name what is hidden, which are also its own hidden columns."""
    names = {*hidden, *(_columns(whole) - _columns(table))}
    columns = tuple(replace(column, comment=_unless_named(column.comment, names)) for column in table.columns)
    return replace(table, columns=columns, comment=_unless_named(table.comment, names))


def _unless_named(comment: str | None, names: Collection[str]) -> str | None:
    return None if comment and names_any(comment, names) else comment

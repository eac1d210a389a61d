"""Read a column that a table lacks from the table that its key leads to: the category of an order's item is its
product's. Pure.

The table's name in FROM becomes a subquery of its own columns and that one, joined by the key, which finds at most one
row: no row is lost, and none stands twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from longthread.tools.analysis.names.missing import Mend, SightedSource, UnknownColumn
from longthread.tools.analysis.quoting import quoted_if_needed, quoted_label
from longthread.tools.analysis.schema import ForeignKey, Schema, Table


@dataclass(frozen=True, slots=True)
class Lookup:
    """A `column` that `item`, which reads `table` in FROM, lacks, and that `parent` has, to which `key` leads."""

    item: exp.Table
    table: Table
    key: ForeignKey
    parent: Table
    column: str


def find_lookup(unknown: UnknownColumn, schema: Schema, dialect: str) -> Lookup | None:
    """Return where a column is read from, if it is certain: one table of the schema has it, one key of one source leads
    there, to at most one row, and no column of the source may be meant. `schema` has the keys that values prove."""
    query = unknown.column.parent_select
    having = [table for table in schema.tables.values() if _column_of(table, unknown, dialect) is not None]
    if query is None or len(having) != 1 or any(source.columns is None for source in unknown.sources):
        return None
    if (unknown.qualifier is not None and unknown.owner is None) or _reads_all(query):
        return None
    [parent] = having
    if any(source.table is parent for source in unknown.sources):
        return None
    sources = [unknown.owner] if unknown.owner is not None else [each for each in unknown.sources if not each.is_outer]
    lookups = [
        Lookup(item, source.table, key, parent, column)
        for source in sources
        if source.table is not None and not source.is_outer
        for item in _items_of(query, source)
        for key in source.table.foreign_keys
        if key.table == parent.label and (column := _column_of(parent, unknown, dialect)) is not None
    ]
    if len(lookups) != 1 or not _is_certain(lookups[0]):
        return None
    return lookups[0]


def _column_of(table: Table, unknown: UnknownColumn, dialect: str) -> str | None:
    """Return a table's column of the unknown one's name, as the database compares names."""
    names = (column.name for column in table.columns)
    return next((name for name in names if (name if dialect == "postgresql" else name.casefold()) == unknown.key), None)


def _reads_all(query: exp.Select) -> bool:
    """Return whether a SELECT reads all columns of a source, or joins by equal names: one more would change it."""
    if any(join.method or join.args.get("using") for join in query.args.get("joins") or []):
        return True
    return any(
        isinstance(item, exp.Star) or (isinstance(item, exp.Column) and item.is_star) for item in query.expressions
    )


def _items_of(query: exp.Select, source: SightedSource) -> Iterator[exp.Table]:
    """Yield what reads a source in FROM and JOIN, if it has the table's own names of columns."""
    assert source.table is not None
    names = [column.name.casefold() for column in source.table.columns]
    if [name.casefold() for name in (source.columns or {}).values()] != names:
        return
    clause = query.args.get("from_")
    items = [clause.this] if clause is not None else []
    for item in [*items, *(join.this for join in query.args.get("joins") or [])]:
        if isinstance(item, exp.Table) and item.alias_or_name.casefold() == source.key.casefold():
            yield item


def _is_certain(lookup: Lookup) -> bool:
    """Return whether a key finds at most one row, and no column of the table may be meant instead: `date` may be its
    `order_date`."""
    key, name = lookup.key, lookup.column.casefold()
    own = [column.name.casefold() for column in lookup.table.columns]
    is_unique = key.is_proven or key.references == lookup.parent.primary_key
    if len(key.columns) != 1 or name in [reference.casefold() for reference in key.references]:
        return False
    return is_unique and not any(name in each for each in own)


def widen_tables(lookups: Sequence[Lookup], dialect: str) -> list[Mend]:
    """Return the mendings that read the columns of lookups: one for each table in FROM."""
    by_item: dict[int, list[Lookup]] = {}
    for lookup in lookups:
        by_item.setdefault(int(lookup.item.parts[0].meta.get("start", -1)), []).append(lookup)
    return [mend for begin, group in by_item.items() if begin >= 0 for mend in _widen(begin, group, dialect)]


def _widen(begin: int, group: Sequence[Lookup], dialect: str) -> Iterator[Mend]:
    item, table = group[0].item, group[0].table
    end, alias = item.parts[-1].meta.get("end"), item.args.get("alias")
    if end is None or (alias is not None and alias.columns):
        return
    own = quoted_label(table.label, table.sql, dialect)
    columns, joins, notes = [f"{own}.*"], [], []
    for each in group:
        parent, [reference], [column] = each.parent, each.key.references, each.key.columns
        name = quoted_label(parent.label, parent.sql, dialect)
        read = f"{name}.{quoted_if_needed(each.column, dialect)}"
        on = f"{name}.{quoted_if_needed(reference, dialect)} = {own}.{quoted_if_needed(column, dialect)}"
        columns.append(read)
        joins.append(f" LEFT JOIN {name} ON {on}")
        notes.append(f"{table.label} has no {each.column}: it was read as {parent.label}.{each.column}, by {column}.")
    text = f"(SELECT {', '.join(dict.fromkeys(columns))} FROM {own}{''.join(dict.fromkeys(joins))})"
    if alias is None:
        text = f"{text} AS {quoted_if_needed(item.name, dialect)}"
    yield Mend(begin, end + 1, text, " ".join(dict.fromkeys(notes)))

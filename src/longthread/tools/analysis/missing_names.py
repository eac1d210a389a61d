"""Say where a name is that a statement lacks, and mend what is certain. Pure.

A column is *in sight* if a source of its SELECT, or of one around it, has it. A column without a table's name that
several tables have is mended if all hold the same. A column of a join's condition that its table lacks is mended if
one key is between the two. A part of a date in the form of another engine, as `YEAR(d)` for
SQLite, is written as this one has it where that is certain to mean the same: of a column that is a date or a text, in a
statement of one SELECT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from longthread.errors import ColumnNotFound, TableNotFound
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.quoting import quoted_if_needed, quoted_label
from longthread.tools.analysis.schema import ColumnShape, Schema, Table, close_names

Columns = Mapping[str, str] | None
"""Comparable names to written names; None if unknown."""

_LISTED = 12
"""Columns of a source that are listed."""
_TOLD = 6
"""Unknown names that one error explains."""
_PLACES = 3
"""Tables that are named for one column."""
_COMPARED = 200
"""Characters of an unknown name that an error repeats."""
_CODES = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d"}
_BEFORE = re.compile(r"(?i)\b(?:(YEAR|MONTH|DAY)\s*\(|EXTRACT\s*\(\s*(YEAR|MONTH|DAY)\s+FROM)\s*\Z")
_BEHIND = re.compile(r"\s*\)")
_NEAR = 60
"""Characters before a column in which its function stands."""
_WAYS = 4
"""Ways to write an ambiguous column that an error names."""


@dataclass(frozen=True, slots=True)
class SightedSource:
    """A source in sight: its comparable name, its name as SQL, its columns, its table unless it is a subquery, and
    whether it is that of a SELECT around this one."""

    key: str
    written: str
    columns: Columns
    table: Table | None
    is_outer: bool = False


@dataclass(frozen=True, slots=True)
class UnknownColumn:
    """A column that its source, or all sources in sight, lack. `key` is its comparable name; `sources` are in sight,
    the innermost first; `owner` is the one that its qualifier names; `note` ends its explanation."""

    column: exp.Column
    key: str
    sources: tuple[SightedSource, ...]
    owner: SightedSource | None = None
    note: str = ""

    @property
    def qualifier(self) -> exp.Expr | None:
        return self.column.parts[-2] if len(self.column.parts) > 1 else None

    @property
    def label(self) -> str:
        parts = [self.qualifier.name] if self.qualifier is not None else []
        return ".".join([*parts, self.column.name])[:_COMPARED]

    @property
    def begin(self) -> int:
        """The place of the column in its statement; 0 if unknown."""
        return int(self.column.parts[-1].meta.get("start", 0))

    def having(self) -> list[SightedSource]:
        """Return the sources in sight that have a column of this very name."""
        return [source for source in self.sources if source.columns and self.key in source.columns]


@dataclass(frozen=True, slots=True)
class Mend:
    """A replacement of the characters `begin` to `end` of a statement, and the note that tells of it."""

    begin: int
    end: int
    text: str
    note: str


def mend_column(unknown: UnknownColumn, schema: Schema, dialect: str, *, keys: bool = True) -> Mend | None:
    """Return the mending of a qualifier, if it is certain: exactly one source has the column, it belongs to this very
    SELECT, all columns in sight are known, no comparison would then hold two columns of one source, and no table that
    the query lacks may be meant instead. In a join, the one key between its two tables is, if `keys`."""
    qualifier, having = unknown.qualifier, unknown.having()
    if qualifier is None:
        return _add_dot(unknown, schema, dialect)
    if keys and (mend := _mend_key(unknown, dialect)) is not None:
        return mend
    if len(having) != 1 or any(source.columns is None for source in unknown.sources):
        return None
    if having[0].is_outer or _may_lack_table(unknown, having[0], schema):
        return None
    begin, end = qualifier.meta.get("start"), qualifier.meta.get("end")
    if begin is None or end is None or len(unknown.column.parts) != 2 or _joins(unknown.column, having[0]):
        return None
    written = having[0].written
    note = f"{unknown.label} was read as {written}.{unknown.column.name}, the only source here with that column."
    return Mend(begin, end + 1, written, note)


def _mend_key(unknown: UnknownColumn, dialect: str) -> Mend | None:
    """Return the mending of `ON a.x_id = x.x_id` where `a` has no `x_id`. It is certain if the two tables have exactly
    one key between them, both sides have the name of its column in `x`, the join asks for it once and for sure, and
    each of the two tables is read once."""
    column, owner, equation = unknown.column, unknown.owner, unknown.column.parent
    if owner is None or owner.is_outer or not isinstance(equation, exp.EQ):
        return None
    other = equation.right if equation.left is column else equation.left
    if not isinstance(other, exp.Column) or len(other.parts) != 2 or other.name.casefold() != column.name.casefold():
        return None
    joined = [source for source in unknown.sources if source.key == other.table.casefold() and source.key != owner.key]
    begin, end = column.this.meta.get("start"), column.this.meta.get("end")
    if begin is None or end is None or len(joined) != 1 or not _is_sure(equation):
        return None
    if not all(_is_read_once(source, unknown.sources) for source in (owner, joined[0])):
        return None
    assert owner.table is not None and joined[0].table is not None
    pairs = _key_pairs(owner.table, joined[0].table)
    if len(pairs) != 1 or pairs[0][1].casefold() != other.name.casefold():
        return None
    written = quoted_if_needed(pairs[0][0], dialect)
    note = f"{unknown.label} was read as {owner.written}.{written}, the key of that join."
    return Mend(begin, end + 1, written, note)


def _is_sure(equation: exp.EQ) -> bool:
    """Return whether a join's condition is this equation, alone or with others that do not compare two columns."""
    node: exp.Expr = equation
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    pairs = (
        each
        for each in node.find_all(exp.EQ)
        if isinstance(each.left, exp.Column) and isinstance(each.right, exp.Column)
    )
    return isinstance(node.parent, exp.Join) and node.arg_key == "on" and list(pairs) == [equation]


def _is_read_once(source: SightedSource, sources: Sequence[SightedSource]) -> bool:
    """Return whether a source is a table with its own names of columns, and no other source is that table."""
    if source.table is None or sum(each.table is source.table for each in sources) != 1:
        return False
    names = [column.name.casefold() for column in source.table.columns]
    return [name.casefold() for name in (source.columns or {}).values()] == names


def _key_pairs(one: Table, other: Table) -> list[tuple[str, str]]:
    """Return the columns of the keys between two tables, those of `one` first; several for a key of several columns."""
    keys = [(key.columns, key.references) for key in one.foreign_keys if key.table == other.label]
    keys += [(key.references, key.columns) for key in other.foreign_keys if key.table == one.label]
    return [pair for own, its in dict.fromkeys(keys) for pair in zip(own, its, strict=False)]


def _add_dot(unknown: UnknownColumn, schema: Schema, dialect: str) -> Mend | None:
    """Return the mending of a table's and its column's name without a dot: 库存数量 for 库存.数量. It is certain if one
    table of this very SELECT fits, and no table has such a column. An alias does not tell: `cid` is not `c.id`."""
    begin, end = (unknown.column.this.meta.get(key) for key in ("start", "end"))
    parts = [
        f"{source.written}.{quoted_if_needed(column, dialect)}"
        for source in unknown.sources
        if source.table is not None and not source.is_outer
        for column in (source.columns or {}).values()
        if f"{source.table.label.rpartition('.')[2]}{column}".casefold() == unknown.column.name.casefold()
    ]
    if begin is None or len(parts) != 1 or _lacking(unknown, schema):
        return None
    return Mend(begin, end + 1, parts[0], f"{unknown.label} was read as {parts[0]}.")


def _may_lack_table(unknown: UnknownColumn, source: SightedSource, schema: Schema) -> bool:
    """Return whether another table of the schema has the column, and the qualifier is not the name of the source's."""
    if source.table is not None and _is_named(source.table, unknown):
        return False
    return bool(_lacking(unknown, schema))


def _is_named(table: Table, unknown: UnknownColumn) -> bool:
    """Return whether a qualifier is the name of a table."""
    names = {table.label.casefold(), table.label.rpartition(".")[2].casefold()}
    return unknown.qualifier is not None and unknown.qualifier.name.casefold() in names


def _lacking(unknown: UnknownColumn, schema: Schema) -> list[Table]:
    """Return the tables that have a column of this very name, and that its own SELECT does not read."""
    read = {source.table.label for source in unknown.sources if source.table is not None and not source.is_outer}
    name = unknown.column.name.casefold()
    return [
        table
        for table in schema.tables.values()
        if table.label not in read and any(column.name.casefold() == name for column in table.columns)
    ]


def apply_mends(sql: str, mends: Sequence[Mend]) -> str:
    """Return the statement with its mendings, which do not overlap."""
    for mend in sorted(mends, key=lambda each: -each.begin):
        sql = f"{sql[: mend.begin]}{mend.text}{sql[mend.end :]}"
    return sql


def _joins(column: exp.Column, source: SightedSource) -> bool:
    """Return whether a column is in a join's condition, or is compared with another column of that source."""
    node: exp.Expr = column
    while node.parent is not None and not isinstance(node.parent, exp.Query):
        node = node.parent
        if isinstance(node, exp.Join):
            return True
        if isinstance(node, exp.Predicate):
            others = (other for other in node.find_all(exp.Column) if other is not column)
            if any(other.table.casefold() == source.key.casefold() for other in others):
                return True
    return False


def explain_columns(unknown: Sequence[UnknownColumn], schema: Schema, dialect: str) -> ColumnNotFound:
    """Return the error that names all unknown columns, each with the place where it is or the nearest names."""
    distinct: dict[str, UnknownColumn] = {}
    for each in sorted(unknown, key=lambda each: each.begin):
        distinct.setdefault(each.label, each)
    first, *others = [(label, _explanation(each, schema, dialect)) for label, each in list(distinct.items())[:_TOLD]]
    texts = [first[1], *(f"There is no column {label}. {text}" for label, text in others)]
    return ColumnNotFound(column=first[0], nearest=" ".join(texts))


def _explanation(unknown: UnknownColumn, schema: Schema, dialect: str) -> str:
    name, having, owner = unknown.column.name, unknown.having(), unknown.owner
    if owner is not None and any(_joins(unknown.column, source) for source in having):
        return " ".join(filter(None, [_key_of(unknown, owner, dialect), unknown.note]))
    lacking = _lacking(unknown, schema)
    meant = [table for table in lacking if owner is None and _is_named(table, unknown)][:1]
    # What the column's own table refers to comes first: "the category of an item" is its product's.
    sources = [owner, *(each for each in unknown.sources if each != owner)] if owner else unknown.sources
    places = _places(name, meant or lacking, sources, dialect)
    is_joined = any(joins for _, joins in places)
    texts = [] if unknown.qualifier is None or owner is not None else [_out_of_sight(unknown, meant)]
    if having and not (meant and is_joined):
        texts.append(_written_as(unknown, having, dialect))
    texts += [text for text, joins in places if joins or not having]
    if not having and (unknown.qualifier is None or owner is not None):
        texts.append(nearest_columns(name, [owner] if owner is not None else unknown.sources, only_close=is_joined))
    return " ".join(filter(None, [*texts, unknown.note]))


def _out_of_sight(unknown: UnknownColumn, meant: Sequence[Table]) -> str:
    """Say that no source has a qualifier's name, and which sources there are."""
    read = [source.written for source in unknown.sources if source.written]
    where = f"The query reads: {', '.join(read)}." if read else "The query has no FROM."
    if meant:
        return f"{meant[0].label} is not in the query. {where}"
    return f"No table or alias {unknown.column.parts[-2].name} is in sight. {where}"


def _written_as(unknown: UnknownColumn, having: Sequence[SightedSource], dialect: str) -> str:
    """Return how to write a column that other sources in sight have."""
    names = [
        f"{source.written}.{quoted_if_needed((source.columns or {})[unknown.key], dialect)}"
        for source in having[:_PLACES]
    ]
    if all(source.is_outer for source in having):
        return f"{names[0]} is of the query around this one."
    return f"Write {' or '.join(names)}."


def _key_of(unknown: UnknownColumn, owner: SightedSource, dialect: str) -> str:
    """Return what a source has, and its key to another source, where its join names a column that the other has."""
    others = [source for source in unknown.sources if source.key != owner.key]
    condition = _condition(owner.table, others, dialect, owner.written) if owner.table is not None else None
    return f"{_contents(owner)}." + (f" Its key is {condition}." if condition else "")


def nearest_columns(name: str, sources: Sequence[SightedSource], *, only_close: bool = False) -> str:
    """Return a sentence with the nearest columns, or with those of the sources unless `only_close`."""
    known = [(source, list(source.columns.values())) for source in sources if source.columns is not None]
    close = close_names(name, dict.fromkeys(column for _, columns in known for column in columns))
    if close:
        hints = [f"{near} (of {source.key})" for near in close for source, columns in known if near in columns]
        return f"The nearest columns are: {', '.join(hints[:5])}."
    if only_close:
        return ""
    if not known:
        return "The query has no FROM."
    return f"{'; '.join(_contents(source) for source, _ in known[:_PLACES])}."


def _contents(source: SightedSource) -> str:
    columns = list((source.columns or {}).values())
    return f"{source.key} has {', '.join(columns[:_LISTED])}{', …' if len(columns) > _LISTED else ''}"


def _places(
    name: str, tables: Sequence[Table], sources: Sequence[SightedSource], dialect: str
) -> list[tuple[str, bool]]:
    """Return tables that have a column, as sentences, and whether each can be joined. Tables that can be joined come
    first, with their condition."""
    conditions = sorted(
        ((table, _condition(table, sources, dialect)) for table in tables), key=lambda each: not each[1]
    )
    return [
        (f"{name} is in {table.label}: JOIN {quoted_label(table.label, table.sql, dialect)} ON {condition}.", True)
        if condition
        else (f"{name} is in {table.label}.", False)
        for table, condition in conditions[:_PLACES]
    ]


def _condition(table: Table, sources: Sequence[SightedSource], dialect: str, name: str = "") -> str | None:
    """Return the condition that joins a table, by its `name` here, to a source in sight: by a foreign key, else by a
    key's name in both."""
    name = name or quoted_label(table.label, table.sql, dialect)
    for source in sources:
        if source.table is None:
            continue
        for key in table.foreign_keys:
            if key.table == source.table.label:
                return _equal(name, key.columns, source.written, key.references, dialect)
        for key in source.table.foreign_keys:
            if key.table == table.label:
                return _equal(name, key.references, source.written, key.columns, dialect)
    for source in sources:
        if source.table is not None and (shared := _shared_key(table, source.table)):
            return _equal(name, (shared,), source.written, (shared,), dialect)
    return None


def _shared_key(one: Table, other: Table) -> str | None:
    """Return a column that both tables have and that is named like a key: not `id`, which each table has of its own."""
    names = {column.name.casefold() for column in other.columns}
    keys = {name.casefold() for table in (one, other) for name in table.primary_key if len(table.primary_key) == 1}
    for column in one.columns:
        name = column.name.casefold()
        if name in names and name != "id" and (name in keys or name.endswith("id")):
            return column.name
    return None


def _equal(left: str, columns: Sequence[str], right: str, others: Sequence[str], dialect: str) -> str:
    return " AND ".join(
        f"{left}.{quoted_if_needed(one, dialect)} = {right}.{quoted_if_needed(other, dialect)}"
        for one, other in zip(columns, others, strict=False)
    )


def explain_tables(missing: Sequence[exp.Table], statement: exp.Expr, schema: Schema) -> TableNotFound:
    """Return the error that names all unknown tables, each with the nearest names, or with the tables that have the
    columns which the statement reads of it."""
    distinct = list({each.name.casefold(): each for each in missing}.values())[:_TOLD]
    alone = len({table.name.casefold() for table in statement.find_all(exp.Table)}) == 1
    texts = [_table_explanation(each, statement, schema, alone=alone) for each in distinct]
    others = [f"There is no table {each.name[:_COMPARED]}. {text}" for each, text in zip(distinct, texts, strict=True)]
    return TableNotFound(table=distinct[0].name[:_COMPARED], nearest=" ".join([texts[0], *others[1:]]))


def _table_explanation(missing: exp.Table, statement: exp.Expr, schema: Schema, *, alone: bool) -> str:
    names = {missing.name.casefold(), missing.alias_or_name.casefold()}
    read = {
        column.name.casefold()
        for column in statement.find_all(exp.Column)
        if not isinstance(column.this, exp.Star) and (column.table.casefold() in names or (alone and not column.table))
    }
    counted = [
        (table, [column.name for column in table.columns if column.name.casefold() in read])
        for table in schema.tables.values()
    ]
    best = sorted((each for each in counted if each[1]), key=lambda each: -len(each[1]))[:_PLACES]
    having = [f"{table.label} has {', '.join(columns)}" for table, columns in best]
    return " ".join([schema.nearest(missing.name), *([f"{'; '.join(having)}."] if having else [])])


def mend_date_parts(statement: exp.Expr, sql: str, schema: Schema, dialect: str) -> list[Mend]:
    """Return the mendings of a statement's parts of dates that the engine has in another form. They do not overlap with
    those of qualifiers, which are within the argument."""
    known = find_dialect(dialect)
    if not known.date_part or len(list(statement.find_all(exp.Select))) != 1:
        return []
    kinds = (exp.Year, exp.Month, exp.Day) if known.has_extract else (exp.Year, exp.Month, exp.Day, exp.Extract)
    mends: list[Mend] = []
    for node in statement.find_all(*kinds):
        column = node.expression if isinstance(node, exp.Extract) else node.this
        if not isinstance(column, exp.Column) or not _is_date(column, statement, schema, known.date_shapes):
            continue
        begin, end = column.parts[0].meta.get("start"), column.parts[-1].meta.get("end")
        if begin is None or end is None:
            continue
        before = _BEFORE.search(sql[max(0, begin - _NEAR) : begin])
        behind = _BEHIND.match(sql, end + 1)
        if before is None or behind is None:
            continue
        part = (before[1] or before[2]).upper()
        name, opening = sql[begin : end + 1], begin - len(before[0])
        head, tail = known.date_part.format(code=_CODES[part], part=part, column="\0").split("\0")
        call = sql[opening : behind.end()]
        note = f"{known.title} has no {call}: it was written as {head}{name}{tail}."
        mends += [Mend(opening, begin, head, note), Mend(end + 1, behind.end(), tail, note)]
    return mends


def _is_date(column: exp.Column, statement: exp.Expr, schema: Schema, shapes: tuple[ColumnShape, ...]) -> bool:
    """Return whether each column of that name in the statement's tables has one of the shapes, and no alias has the
    name."""
    name = column.name.casefold()
    if any(alias.alias.casefold() == name for alias in statement.find_all(exp.Alias)):
        return False
    tables = {table.name.casefold() for table in statement.find_all(exp.Table)}
    found = [
        each.shape in shapes
        for label, table in schema.tables.items()
        if label.rpartition(".")[2].casefold() in tables
        for each in table.columns
        if each.name.casefold() == name
    ]
    return bool(found) and all(found)


def mend_ambiguous(
    column: exp.Column, query: exp.Select, owners: Mapping[str, str], compare: Callable[[exp.Expr], str]
) -> Mend | None:
    """Return the mending of an ambiguous column: if the inner joins of its SELECT make it equal in all `owners`, it is
    read as that of one of them; preferably as the one that the select list or GROUP BY reads.

    Args:
        owners: the sources that have the column, as `compare` folds their names, with their names as SQL.
    """
    key, begin = compare(column.this), column.this.meta.get("start")
    if begin is None or not _are_equal(query, key, set(owners), compare):
        return None
    grouped = query.args["group"].expressions if query.args.get("group") else []
    read = [
        compare(other.parts[-2])
        for item in [*grouped, *query.expressions]
        for other in item.find_all(exp.Column)
        if len(other.parts) == 2 and isinstance(other.this, exp.Identifier) and compare(other.this) == key
    ]
    owner = owners[next((name for name in read if name in owners), next(iter(owners)))]
    where = " and ".join(owners.values())
    note = f"{column.name} was read as {owner}.{column.name}: the joins make it equal in {where}."
    return Mend(begin, begin, f"{owner}.", note)


def _are_equal(query: exp.Select, key: str, owners: set[str], compare: Callable[[exp.Expr], str]) -> bool:
    """Return whether the conditions of inner joins and WHERE make a column equal in all sources that have it."""
    joins = query.args.get("joins") or []
    if any(
        join.side or join.method or join.kind not in ("", "INNER", "CROSS") or join.args.get("using") for join in joins
    ):
        return False
    pairs = list(_find_equal_pairs(query, key, compare))
    equal = {next(iter(owners))}
    for _ in pairs:
        equal |= {name for pair in pairs if equal & pair for name in pair}
    return owners <= equal


def _find_equal_pairs(query: exp.Select, key: str, compare: Callable[[exp.Expr], str]) -> Iterator[set[str]]:
    """Yield the pairs of sources whose columns of one name a SELECT's conditions equate."""
    where = query.args.get("where")
    conditions = [join.args.get("on") for join in query.args.get("joins") or []] + [where.this if where else None]
    waiting = [condition for condition in conditions if condition is not None]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.left, node.right]
        elif isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            sides = [side for side in (node.left, node.right) if len(side.parts) == 2 and compare(side.this) == key]
            if len(sides) == 2:
                yield {compare(side.parts[0]) for side in sides}


def ways_to_write(name: str, statement: exp.Expr, schema: Schema) -> list[str]:
    """Return a column as that of each table of a statement which has it."""
    having = {
        label.rpartition(".")[2].casefold()
        for label, table in schema.tables.items()
        if any(column.name.casefold() == name.casefold() for column in table.columns)
    }
    tables = [table for table in statement.find_all(exp.Table) if table.name.casefold() in having]
    return list(dict.fromkeys(f"{table.alias_or_name}.{name}" for table in tables))[:_WAYS]

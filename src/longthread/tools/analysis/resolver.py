"""Checks that a source has the tables and columns that a statement names, before it runs.

Names are resolved as in the dialect: through aliases, common table expressions and subqueries, and outwards from a
subquery. Where the columns cannot be known (table functions, pivots, fields of structs), the database decides.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from longthread.errors import SqlRefused, TableNotFound
from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.missing_names import (
    Columns,
    Mend,
    SightedSource,
    UnknownColumn,
    explain_columns,
    explain_tables,
    mend_ambiguous,
    mend_column,
)
from longthread.tools.analysis.schema import Schema, Table

_WORDS = """
    current_date current_time current_timestamp localtime localtimestamp user current_user session_user current_role
    current_schema current_catalog true false default
"""
_EVERYWHERE = frozenset(_WORDS.split())
_SYSTEM = ("sqlite_", "pg_", "duckdb_")
_STANDARD = ("information_schema", "INFORMATION_SCHEMA")
_TEXT = "For a text, write it in single quotes."
_QUOTED = "In double quotes or single ones it is a text in {title}: write a name in {quotes}."


@dataclass
class _Frame:
    """The scope of one SELECT: its sources by name, as they are written and with their tables; its own aliases."""

    query: exp.Select
    sources: dict[str, Columns] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    given: set[str] = field(default_factory=set)


SchemaTables = Mapping[str, Columns]
"""Common table expressions in scope."""


class Resolver:
    """Resolves names in one schema. `functions` are the database's own, which PostgreSQL also allows as columns."""

    def __init__(self, schema: Schema, dialect: str, functions: Collection[str] = ()) -> None:
        self._schema = schema
        self._dialect = find_dialect(dialect)
        self._hidden = _EVERYWHERE | self._dialect.hidden_columns | {name.casefold() for name in functions}
        self._by_name: dict[str, list[Table]] = {}
        for label, table in schema.tables.items():
            for name in {label.casefold(), label.rsplit(".", 1)[-1].casefold()}:
                self._by_name.setdefault(name, []).append(table)
        self._mentioned: set[str] = set()
        self._unknown: list[UnknownColumn] = []
        self._ambiguous: list[Mend] = []
        self._missing: list[exp.Table] = []

    def check(self, statement: exp.Expr) -> None:
        """Check the names of a statement.

        Raises:
            TableNotFound, ColumnNotFound: with all unknown names, and where they are or the nearest ones.
            SqlRefused: names cannot be resolved.
        """
        self._find_unknown(statement)
        if self._unknown:
            raise explain_columns(self._unknown, self._schema, self._dialect.name)

    def mends(self, statement: exp.Expr, *, keys: bool = True) -> list[Mend]:
        """Return what makes a statement's names right, if all of it is certain. `keys`: the schema hides none, so that
        they tell what a join means. Raises what `check` raises."""
        self._find_unknown(statement)
        possible = (mend_column(each, self._schema, self._dialect.name, keys=keys) for each in self._unknown)
        mends = [mend for mend in possible if mend is not None]
        if len(mends) < len(self._unknown):
            raise explain_columns(self._unknown, self._schema, self._dialect.name)
        return [*mends, *self._ambiguous]

    def _find_unknown(self, statement: exp.Expr) -> None:
        self._unknown, self._ambiguous, self._missing = [], [], []
        try:
            self._check(statement)
        except (AttributeError, RecursionError) as error:
            reason = "it is nested too deeply, or has something else where a name should stand."
            raise SqlRefused(reason=reason) from error
        if self._missing:
            raise explain_tables(self._missing, statement, self._schema)

    def _check(self, statement: exp.Expr) -> None:
        if self._schema.home:
            for table in statement.find_all(exp.Table):
                self._check_home(table)
        if not isinstance(statement, exp.Query) or statement.find(exp.Pivot):
            return
        self._mentioned = {name for node in statement.walk() for name in _mentions(node)}
        self._query(statement, {}, [])

    def _check_home(self, table: exp.Table) -> None:
        """Refuses tables of other databases, anywhere in the statement."""
        if table.catalog or table.db not in ("", self._schema.home, *_STANDARD):
            raise TableNotFound(table=f"{table.db}.{table.name}"[:200], nearest=self._schema.nearest(table.name))

    def _query(self, query: exp.Expr, tables: SchemaTables, outer: Sequence[_Frame]) -> Columns:
        """Checks a query; returns its columns."""
        tables = self._with(query, tables, outer)
        if isinstance(query, exp.Subquery):
            if not isinstance(query.this, exp.Query):
                return None
            return self._query(query.this, tables, outer)
        if isinstance(query, exp.SetOperation):
            found = self._query(query.left, tables, outer)
            self._query(query.right, tables, outer)
            return None if query.args.get("by_name") else found
        if isinstance(query, exp.Select):
            return self._select(query, tables, outer)
        return None

    def _with(self, query: exp.Expr, tables: SchemaTables, outer: Sequence[_Frame]) -> SchemaTables:
        clause = query.args.get("with_")
        if clause is None:
            return tables
        # Each may name itself, and in SQLite a later one: until it is known, the database decides.
        seen = {**tables, **{self._alias(one): None for one in clause.expressions}}
        for one in clause.expressions:
            found = self._query(one.this, seen, outer)
            seen[self._alias(one)] = self._rename_columns(one, found)
        return seen

    def _select(self, query: exp.Select, tables: SchemaTables, outer: Sequence[_Frame]) -> Columns:
        frame = _Frame(query)
        frames = [*outer, frame]
        for item in _from_items(query):
            name = self._alias(item)
            columns = self._rename_columns(item, self._item(item, tables, frames))
            frame.written[name] = self._write_source_name(item)
            if isinstance(item, exp.Table) and (table := self._find_table(item, tables)) is not None:
                frame.tables[name] = table
            # Two sources of one name: a mistake, or an unusual join.
            frame.sources[name] = None if name in frame.sources else columns
        frame.given = {self._fold_name(one.args["alias"]) for one in query.expressions if isinstance(one, exp.Alias)}
        self._walk(query, tables, frames)
        if '"' in self._dialect.text_quotes:
            readable = {name for found in frame.sources.values() if found is not None for name in found}
            note = _QUOTED.format(title=self._dialect.title, quotes=self._dialect.quote_title)
            for text in _texts_for_names(query, readable):
                named = exp.column(text.name)
                self._unknown.append(UnknownColumn(named, text.name.casefold(), _list_sources(frames), note=note))
        return self._list_returned_columns(query, frame)

    def _item(self, item: exp.Expr, tables: SchemaTables, frames: Sequence[_Frame]) -> Columns:
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and not item.args.get("rows_from"):
            return self._table(item, tables)
        if isinstance(item, exp.Subquery):
            return self._query(item, tables, frames)
        if isinstance(item, exp.Lateral) and isinstance(item.this, exp.Subquery):
            return self._query(item.this, tables, frames)
        if isinstance(item, exp.Table) and isinstance(item.this, exp.Func):
            return self._dialect.table_functions.get(item.this.name.casefold())
        return None

    def _table(self, table: exp.Table, tables: SchemaTables) -> Columns:
        folded = self._fold_name(table.this)
        if not table.db and folded in tables:
            return tables[folded]
        if (one := self._find_table(table, tables)) is not None:
            names = [column.name for column in one.columns]
            return {name if self._dialect.folds_names else name.casefold(): name for name in names} or None
        if not self._named_tables(table) and self._is_missing(table):
            self._missing.append(table)
        return None

    def _find_table(self, table: exp.Table, tables: SchemaTables) -> Table | None:
        """Return the one table of the schema that is meant; None for a common table expression."""
        if not isinstance(table.this, exp.Identifier) or (not table.db and self._fold_name(table.this) in tables):
            return None
        named = self._named_tables(table)
        return named[0] if len(named) == 1 else None

    def _named_tables(self, table: exp.Table) -> list[Table]:
        named = self._by_name.get(table.name.casefold(), [])
        if table.db:
            whole = f"{table.db}.{table.name}".casefold()
            return [one for one in named if one.label.casefold() == whole] or (named if len(named) == 1 else [])
        if len(named) > 1:
            return [one for one in named if one.label.casefold() == table.name.casefold()]
        return named

    def _is_missing(self, table: exp.Table) -> bool:
        """Return whether there is surely no such table. PostgreSQL has tables that a schema does not list (partitions,
        tables of extensions), and SQLite has tables that hold the data of virtual ones."""
        name = table.name.casefold()
        if not self._dialect.lists_own_tables or table.db.casefold() in _STANDARD or name.startswith(_SYSTEM):
            return False
        if self._dialect.lists_all_tables:
            return name not in self._by_name and name not in self._dialect.unlisted_tables
        if table.db:
            return False
        return name not in self._by_name and not any(name.startswith(f"{label}_") for label in self._by_name)

    def _walk(self, query: exp.Expr, tables: SchemaTables, frames: Sequence[_Frame]) -> None:
        """Checks the columns of one SELECT and its subqueries."""
        waiting: list[exp.Expr] = [child for key, child in _children(query) if key != "with_"]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Column):
                self._column(node, frames)
            elif isinstance(node, exp.Query):
                if not isinstance(node.parent, exp.From | exp.Join | exp.Lateral):  # else it was checked as a source
                    self._query(node, tables, frames)
            elif not isinstance(node, exp.Star):
                waiting += [child for key, child in _children(node) if key != "using"]

    def _column(self, column: exp.Column, frames: Sequence[_Frame]) -> None:
        parts = column.parts
        if len(parts) == 3 and self._schema.home and parts[0].name == self._schema.home:
            parts = parts[1:]
        name = parts[-1]
        if len(parts) > 2 or not all(isinstance(part, exp.Identifier) for part in parts[:-1]):
            return
        if len(parts) == 2:
            self._check_qualified(column, parts[0], name, frames)
        elif isinstance(name, exp.Identifier) and not self._is_known(name, frames):
            note = _TEXT if self._is_text(name) else ""
            self._unknown.append(UnknownColumn(column, self._fold_name(name), _list_sources(frames), note=note))
        elif isinstance(name, exp.Identifier) and (mend := self._mend_ambiguous(column, frames[-1])) is not None:
            self._ambiguous.append(mend)

    def _mend_ambiguous(self, column: exp.Column, frame: _Frame) -> Mend | None:
        key = self._fold_name(column.this)
        owners = {name: frame.written[name] for name, columns in frame.sources.items() if columns and key in columns}
        if len(owners) < 2 or key in frame.given or None in frame.sources.values():
            return None
        return mend_ambiguous(column, frame.query, owners, self._fold_name)

    def _check_qualified(
        self, column: exp.Column, qualifier: exp.Expr, name: exp.Expr, frames: Sequence[_Frame]
    ) -> None:
        owner = self._fold_name(qualifier)
        frame = next((each for each in reversed(frames) if owner in each.sources), None)
        if frame is None:
            if self._is_lost(qualifier, frames):
                self._unknown.append(UnknownColumn(column, self._fold_name(name), _list_sources(frames)))
            return
        columns = frame.sources[owner]
        if columns is not None and not isinstance(name, exp.Star) and not self._fits(name, columns):
            source = _source(frame, owner, is_outer=frame is not frames[-1])
            self._unknown.append(UnknownColumn(column, self._fold_name(name), _list_sources(frames), source))

    def _is_lost(self, owner: exp.Expr, frames: Sequence[_Frame]) -> bool:
        """Whether a qualifier is surely no source: in DuckDB it may be a struct. A table that has an alias is read by
        that alone."""
        name = owner.name.casefold()
        aliased = any(table.label.casefold() == name for frame in frames for table in frame.tables.values())
        if (name in self._mentioned and not aliased) or (self._dialect.has_structs and self._is_known(owner, frames)):
            return False
        return bool(self._by_name.get(name)) or not self._dialect.has_structs

    def _is_known(self, name: exp.Expr, frames: Sequence[_Frame]) -> bool:
        folded = self._fold_name(name)
        # SQLite takes a quoted name without a column for a text, even a table's name.
        texts = self._is_text(name) and not _may_be_table(name)
        if name.name.casefold() in self._hidden or (not texts and name.name.casefold() in self._mentioned):
            return True
        # Also where its alias is the same: "contry" AS contry.
        unnamed = frames[-1] if self._is_text(name) and _is_selected(name) else None
        return any(
            (folded in frame.given and frame is not unnamed)
            or (not texts and folded in frame.sources)
            or any(columns is None or self._fits(name, columns) for columns in frame.sources.values())
            for frame in frames
        )

    def _is_text(self, name: exp.Expr) -> bool:
        """Whether the database takes an unknown name for a text."""
        return self._dialect.unknown_is_text and bool(name.args.get("quoted"))

    def _fits(self, name: exp.Expr, columns: Mapping[str, str]) -> bool:
        return self._fold_name(name) in columns or name.name.casefold() in self._hidden

    def _list_returned_columns(self, query: exp.Select, frame: _Frame) -> Columns:
        returned: dict[str, str] = {}
        for item in query.expressions:
            found = self._name_item(item, frame)
            if found is None:
                return None
            returned |= found
        return returned

    def _name_item(self, item: exp.Expr, frame: _Frame) -> Columns:
        """The names of one selected item; None if the database makes them."""
        if isinstance(item, exp.Alias):
            alias = item.args["alias"]
            return {self._fold_name(alias): alias.name}
        if isinstance(item, exp.Star) and not any(item.args.get(key) for key in ("except_", "replace", "rename")):
            found = list(frame.sources.values())
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and len(item.parts) == 2:
            found = [frame.sources.get(self._fold_name(item.parts[0]))]
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Identifier):
            return {self._fold_name(item.this): item.name}
        else:
            return None
        return {key: name for columns in found for key, name in columns.items()} if None not in found else None  # type: ignore[union-attr]

    def _rename_columns(self, item: exp.Expr, columns: Columns) -> Columns:
        """The columns under the names of an alias. If their number is unknown, both names are kept."""
        alias = item.args.get("alias")
        given = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
        if not given:
            return columns
        names = {self._fold_name(one): one.name for one in given if isinstance(one, exp.Identifier)}
        if _width(item) == len(names):
            return names
        return None if columns is None else {**columns, **names}

    def _alias(self, item: exp.Expr) -> str:
        alias = item.args.get("alias")
        name = alias.this if isinstance(alias, exp.TableAlias) else None
        if name is None and isinstance(item, exp.Table):
            name = item.this
        return self._fold_name(name) if isinstance(name, exp.Identifier) else ""

    def _write_source_name(self, item: exp.Expr) -> str:
        """The name of a source as SQL."""
        alias = item.args.get("alias")
        name = alias.this if isinstance(alias, exp.TableAlias) else None
        name = item.this if name is None and isinstance(item, exp.Table) else name
        return name.sql(dialect=self._dialect.sqlglot) if isinstance(name, exp.Identifier) else ""

    def _fold_name(self, name: exp.Expr) -> str:
        """A name for comparison: PostgreSQL folds unquoted ones, the others ignore case."""
        if not self._dialect.folds_names:
            return name.name.casefold()
        return name.name if name.args.get("quoted") else re.sub("[A-Z]+", lambda found: found[0].lower(), name.name)


def _from_items(query: exp.Select) -> Iterator[exp.Expr]:
    """The sources in FROM and JOIN, also within parentheses."""
    clause = query.args.get("from_")
    items = [clause.this] if clause is not None else []
    items += [join.this for join in query.args.get("joins") or []]
    items += query.args.get("laterals") or []
    while items:
        item = items.pop(0)
        items += [join.this for join in item.args.get("joins") or []]
        yield item


def _is_selected(name: exp.Expr) -> bool:
    """Whether a name is in the select list, where its aliases are not in scope."""
    node = name
    while node.parent is not None and not isinstance(node.parent, exp.Select):
        node = node.parent
    return node.arg_key == "expressions"


def _texts_for_names(query: exp.Select, columns: Collection[str]) -> Iterator[exp.Expr]:
    """Texts where only a name makes sense: MySQL takes double quotes for a text."""
    orders = [one.this for one in query.args["order"].expressions] if query.args.get("order") else []
    groups = query.args["group"].expressions if query.args.get("group") else []
    yield from (one for one in [*orders, *groups] if _is_string(one))
    items = [one.this if isinstance(one, exp.Alias) else one for one in query.expressions]
    yield from (one for one in items if _is_string(one) and one.name.casefold() in columns)
    for node in query.walk(prune=lambda one: isinstance(one, exp.Query) and one is not query):
        if isinstance(node, exp.Sum | exp.Avg | exp.Min | exp.Max) and _is_string(node.this):
            yield node.this
        elif isinstance(node, exp.Predicate) and _is_string(node.this):
            others = [child for key, child in _children(node) if key != "this"]
            # Two texts may be compared on purpose, as parameters of a template.
            near = difflib.get_close_matches(node.this.name.casefold(), list(columns), n=1)
            if near and all(isinstance(other, exp.Literal) for other in others):
                yield node.this


def _is_string(node: object) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _width(query: exp.Expr) -> int | None:
    """The number of columns that a query returns, if its text implies it."""
    if isinstance(query, exp.CTE | exp.Subquery | exp.Lateral):
        return _width(query.this)
    if isinstance(query, exp.SetOperation):
        return _width(query.left)
    if isinstance(query, exp.Values):
        return len(query.expressions[0].expressions) if isinstance(query.expressions[0], exp.Tuple) else None
    if not isinstance(query, exp.Select) or query.find(exp.Star):
        return None
    return len(query.expressions)


def _children(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for key, value in node.args.items():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, exp.Expr):
                yield key, child


def _mentions(node: exp.Expr) -> Iterator[str]:
    """Names that may stand for a value anywhere: lambda variables and names of sources."""
    if isinstance(node, exp.Lambda):
        yield from (one.name.casefold() for one in node.expressions)
    elif isinstance(node, exp.Comprehension):
        yield from (one.name.casefold() for one in node.find_all(exp.Identifier))
    elif isinstance(node, exp.Table):
        yield node.name.casefold()
        yield node.alias.casefold()
    elif isinstance(node, exp.TableAlias):
        yield node.name.casefold()
    elif isinstance(node, exp.Unnest) and isinstance(node.args.get("offset"), exp.Identifier):
        yield node.args["offset"].name.casefold()


def _list_sources(frames: Sequence[_Frame]) -> tuple[SightedSource, ...]:
    return tuple(
        _source(frame, name, is_outer=frame is not frames[-1]) for frame in reversed(frames) for name in frame.sources
    )


def _source(frame: _Frame, name: str, *, is_outer: bool) -> SightedSource:
    return SightedSource(name, frame.written.get(name, name), frame.sources[name], frame.tables.get(name), is_outer)


def _may_be_table(name: exp.Expr) -> bool:
    """Whether SQLite takes a table's name as a value here: in full-text searches."""
    column = name.parent
    return (
        column is not None
        and isinstance(column.parent, exp.Match | exp.Func)
        and not isinstance(column.parent, exp.AggFunc | exp.Connector)
    )

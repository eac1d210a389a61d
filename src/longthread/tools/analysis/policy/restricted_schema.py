"""What one user sees of a schema: tables and columns that may be read, each table under SQL that reads no more."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from longthread.errors import ColumnNotFound, PolicyUnusable, SourceError, TableNotFound
from longthread.tools.analysis.guard import Guard, sqlglot_name
from longthread.tools.analysis.policy.sql_text import written
from longthread.tools.analysis.policy.user_policy import Unbound, UserPolicy, condition, masked, parsed
from longthread.tools.analysis.quoting import quoted
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table

_FENCE = {"sqlite": "LIMIT -1", "postgresql": "OFFSET 0", "duckdb": "LIMIT 4000000000000000000",
          "mysql": "LIMIT 18446744073709551615"}  # fmt: skip
"""Keeps a database from trying a statement's own conditions on rows that the user may not see: an error would tell what
is in them."""
_VIEW = "longthread_view"


@dataclass(frozen=True)
class Restricted:
    """A schema as one user sees it. `relations` are the queries in the place of tables that are restricted; a table
    that is in neither is not there for the user."""

    whole: Schema
    schema: Schema
    relations: Mapping[str, str]
    defined: frozenset[str] = frozenset()
    """Names of the functions that the database itself defines, which may read anything."""

    @cached_property
    def names(self) -> Mapping[str, list[Table]]:
        """The tables of the whole schema by every name that may mean them, in small letters."""
        found: dict[str, list[Table]] = {}
        for label, table in self.whole.tables.items():
            for name in {label.casefold(), label.rsplit(".", 1)[-1].casefold()}:
                found.setdefault(name, []).append(table)
        return found

    @cached_property
    def _hidden(self) -> list[str]:
        """What tables and columns are called that the user does not see, and nothing that the user sees."""
        whole, seen = _all_names(self.whole), _all_names(self.schema)
        return sorted(whole - seen)

    def is_named_in(self, text: str) -> bool:
        """Whether a text names something that the user does not see."""
        text = text.casefold()
        return any(
            re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) if name.isascii() else name in text
            for name in self._hidden
        )


def _all_names(schema: Schema) -> set[str]:
    tables = {label.rpartition(".")[2].casefold() for label in schema.tables}
    return tables | {column.name.casefold() for table in schema.tables.values() for column in table.columns}


Rewrite = Callable[[str, Restricted], str]
"""Makes a query read no more than a user may."""


def restrict(
    schema: Schema,
    policy: UserPolicy,
    dialect: str,
    views: Mapping[str, str],
    rewrite: Rewrite,
    defined: frozenset[str] = frozenset(),
) -> Restricted:
    """What a user sees. `views` are the definitions of views by label; one that cannot be understood is not seen.
    Raises PolicyUnusable when a policy names what is not there."""
    labels = _labels(schema, policy, dialect)
    relations: dict[str, str] = {}
    tables: dict[str, Table] = {}
    for label, table in schema.tables.items():
        if table.kind != "view" and (seen := _seen(table, policy, labels.get(label), dialect, table.sql, relations)):
            tables[label] = seen
    waiting = {label: views[label] for label, table in schema.tables.items() if table.kind == "view" and label in views}
    while waiting:  # a view may read others: those that read tables alone come first
        known = Restricted(schema, Schema(tables.values(), schema.home), dict(relations), defined)
        bodies = {label: body for label, sql in waiting.items() if (body := _body(sql, known, dialect, rewrite))}
        for label, body in bodies.items():
            del waiting[label]
            columns = ", ".join(quoted(column.name, dialect) for column in schema.tables[label].columns)
            relation = f"(WITH {_VIEW}({columns}) AS ({body}) SELECT {columns} FROM {_VIEW})"
            relations[label] = relation
            source = f"{relation} AS {quoted(label, dialect)}"
            seen = _seen(schema.tables[label], policy, labels.get(label), dialect, source, relations)
            if seen is not None:
                tables[label] = replace(seen, sql=f"{relations[label]} AS {quoted(label, dialect)}")
        if not bodies:
            break
    shown = [_without_hidden_keys(tables[label], tables) for label in schema.tables if label in tables]
    return Restricted(schema, Schema(shown, schema.home), relations, defined)


def _body(sql: str, known: Restricted, dialect: str, rewrite: Rewrite) -> str | None:
    """The query of a view, reading no more than the user may; None where it reads what is not known (yet)."""
    try:
        tree = sqlglot.parse_one(sql, read=sqlglot_name(dialect))
        query = tree.expression if isinstance(tree, exp.Create) else tree
        text = written(query, dialect)
        Resolver(known.schema, dialect).check(Guard(dialect).judge(text).tree)
        return rewrite(text, known)
    except (SourceError, SqlglotError):
        return None


def _seen(
    table: Table, policy: UserPolicy, named: str | None, dialect: str, source: str, relations: dict[str, str]
) -> Table | None:
    """A table as the user sees it, or None."""
    if named is None:
        return table
    if named in policy.hidden:
        return None
    hide = {name.casefold() for name in policy.hide.get(named, ())}
    mask = {name.casefold(): text for name, text in policy.mask.get(named, {}).items()}
    rows = policy.rows.get(named)
    if not hide and not mask and rows is None:
        return table
    columns = tuple(column for column in table.columns if column.name.casefold() not in hide)
    if not columns:
        return None
    try:
        filtered = f"WHERE {_condition(rows, policy, dialect)} " if rows is not None else ""
    except Unbound:
        return None
    listed = ", ".join(_selected(column, mask, dialect) for column in columns)
    relation = f"(SELECT {listed} FROM {source} {filtered}{_FENCE[dialect]})"
    relations[table.label] = relation
    return replace(
        table,
        sql=f"{relation} AS {quoted(table.label, dialect)}",
        columns=tuple(_plain(column) if column.name.casefold() in mask else column for column in columns),
        primary_key=table.primary_key if not hide & {name.casefold() for name in table.primary_key} else (),
        estimated_rows=None if rows is not None else table.estimated_rows,
    )


def _condition(text: str, policy: UserPolicy, dialect: str) -> str:
    return written(condition(text, policy.values, sqlglot_name(dialect)), dialect)


def _selected(column: Column, mask: Mapping[str, str | None], dialect: str) -> str:
    name = column.name.casefold()
    if name not in mask:
        return quoted(column.name, dialect)
    return f"{written(masked(mask[name], sqlglot_name(dialect)), dialect)} AS {quoted(column.name, dialect)}"


def _plain(column: Column) -> Column:
    return replace(column, primary_key=False)


def _without_hidden_keys(table: Table, tables: Mapping[str, Table]) -> Table:
    own = {column.name for column in table.columns}
    keys = tuple(key for key in table.foreign_keys if _is_visible(key, own, tables))
    return replace(table, foreign_keys=keys)


def _is_visible(key: ForeignKey, own: set[str], tables: Mapping[str, Table]) -> bool:
    target = tables.get(key.table)
    if target is None or not own.issuperset(key.columns):
        return False
    return {column.name for column in target.columns}.issuperset(key.references)


def _labels(schema: Schema, policy: UserPolicy, dialect: str) -> dict[str, str]:
    """Labels of the schema to the names that the policy gives them. What it names must be there: a misspelled table
    would be one that anybody reads."""
    found: dict[str, str] = {}
    for name in policy.tables:
        try:
            table = schema.find(name)
        except TableNotFound as error:
            raise PolicyUnusable(reason=f"it names the table {name}. {error}") from error
        if table.label in found:
            raise PolicyUnusable(reason=f"it names the table {table.label} twice.")
        columns = {column.name.casefold() for column in table.columns}
        for column in (*policy.hide.get(name, ()), *policy.mask.get(name, ())):
            if column.casefold() not in columns:
                raise PolicyUnusable(reason=f"the table {table.label} has no column {column}.")
        _check_expressions(table, policy, name, dialect, schema)
        found[table.label] = name
    return found


def _check_expressions(table: Table, policy: UserPolicy, name: str, dialect: str, schema: Schema) -> None:
    """What a condition or a mask names must be there: one that fails at each question protects nothing that works."""
    texts = [policy.rows.get(name), *policy.mask.get(name, {}).values()]
    for text in (one for one in texts if one is not None):
        tree = exp.select("1").from_(exp.to_table(_VIEW)).where(parsed(text, sqlglot_name(dialect)))
        own = Schema([Table(_VIEW, _VIEW, columns=table.columns), *schema.tables.values()])
        try:
            Resolver(own, dialect).check(tree)
        except (ColumnNotFound, TableNotFound) as error:
            raise PolicyUnusable(reason=f"of the table {table.label}: {text!r}. {error}") from error

"""The policy of one user for one source, the document that declares policies (YAML or JSON), and what the user sees.

users:
  ada: {region: EU, teams: [1, 2]}     # values that conditions may use, by user
groups:
  finance: {region: EU}                # the same, by group; a user's own values come first
sources:
  - source: shop.sqlite                # as it is given to --source
    tables:
      customers:
        rows: country = :region        # a condition over the table's columns; :user is the user's id
        hide: [email]                  # columns that do not exist
        mask: {phone: "'***'"}         # columns with another value: an expression over the table's columns
        except: [root]                 # users for whom none of this holds
        except_groups: [audit]         # groups for whose members none of this holds
      salaries: {hidden: true}         # a table that does not exist
      plans: {rows: "team IN (:groups)"}   # :groups are the names of the user's groups

The user sees the permitted tables and columns of a schema, and a query in place of each restricted table. What a schema
tells besides names is withheld too. Allowed values of a column are those of all rows: they are left out where a user
does not see all rows of a table, or sees a mask in place of the column. A comment is left out that names a hidden
table, column or value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlglot
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlglot import exp
from sqlglot.errors import SqlglotError

from longthread.errors import (
    ColumnNotFound,
    PoliciesInvalid,
    PolicyUnusable,
    SourceError,
    SourceWithoutPolicy,
    TableNotFound,
)
from longthread.tools.analysis.address import redact_spec, same_source
from longthread.tools.analysis.dialects.dialect import SqlDialect, find_dialect
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.resolver import Resolver
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.sql_text import sqlglot_name, write_sql


@dataclass(frozen=True)
class UserPolicy:
    """Restrictions by table label. `values` are the user's values for conditions. A table whose condition uses a
    missing value is hidden."""

    values: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, str] = field(default_factory=dict)
    hide: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mask: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(self.rows) | frozenset(self.hide) | frozenset(self.mask) | self.hidden


class Unbound(Exception):
    """A condition uses a value that the user lacks."""


def condition(text: str, values: Mapping[str, Any], dialect: SqlDialect) -> exp.Expr:
    """Parses a condition and puts in the user's values as literals. Raises Unbound, PolicyUnusable."""
    tree = parse_expression(text, dialect)
    for place in list(tree.find_all(exp.Placeholder)):
        if place.name not in values:
            raise Unbound(place.name)
        value = values[place.name]
        if isinstance(value, Sequence) and not isinstance(value, str):
            if not isinstance(place.parent, exp.In):
                raise PolicyUnusable(
                    reason=f"the list :{place.name} stands in {text!r}, but not in IN (:{place.name})."
                )
            for one in value or [None]:
                place.parent.append("expressions", _literal(one, dialect))
            place.pop()
        else:
            place.replace(_literal(value, dialect))
    return tree


def parse_mask(text: str | None, dialect: SqlDialect) -> exp.Expr:
    """Parses the expression of a mask. Raises PolicyUnusable."""
    tree = exp.Null() if text is None else parse_expression(text, dialect)
    if tree.find(exp.Query, exp.Placeholder):
        raise PolicyUnusable(reason=f"the mask {text!r} is more than an expression over the table's columns.")
    return tree


def parse_expression(text: str, dialect: SqlDialect) -> exp.Expr:
    """Parses a condition or an expression. Raises PolicyUnusable."""
    try:
        tree = sqlglot.parse_one(f"SELECT 1 WHERE ({text}\n)", read=dialect.sqlglot)
    except SqlglotError as error:
        raise PolicyUnusable(reason=f"{text!r} cannot be parsed as {dialect.sqlglot}.") from error
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    clauses = {key for key, value in tree.args.items() if value}
    if where is None or clauses != {"expressions", "where"} or not isinstance(where.this, exp.Paren):
        raise PolicyUnusable(reason=f"{text!r} is not one condition or expression.")
    inner: exp.Expr = where.this.this
    return inner.copy()


def _literal(value: Any, dialect: SqlDialect) -> exp.Expr:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return exp.Literal.number(value)
    text = str(value)
    if "\0" in text:
        raise PolicyUnusable(reason="a value of the user holds a NUL character.")
    literal = exp.Literal.string(text)
    if not dialect.exact_collation:
        return literal
    if text.endswith(" "):
        reason = f"a value of the user ends with a space, which {dialect.title} does not compare."
        raise PolicyUnusable(reason=reason)
    return exp.Collate(this=literal, expression=exp.Var(this=dialect.exact_collation))


PolicyValue = str | int | float | bool | None
PolicyValues = Mapping[str, PolicyValue | tuple[PolicyValue, ...]]
"""Values for conditions, by name."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class TablePolicy(_Strict):
    """The policy of one table."""

    rows: str | None = None
    hide: tuple[str, ...] = ()
    mask: Mapping[str, str | None] = Field(default_factory=dict)
    hidden: bool = False
    exempt: tuple[str, ...] = Field(default=(), alias="except")
    exempt_groups: tuple[str, ...] = Field(default=(), alias="except_groups")

    def holds_for(self, user: str, groups: Collection[str]) -> bool:
        return user not in self.exempt and set(self.exempt_groups).isdisjoint(groups)


class SourcePolicy(_Strict):
    """The policies of one source, by table."""

    source: str
    tables: Mapping[str, TablePolicy] = Field(default_factory=dict)


class Policies(_Strict):
    """The whole document."""

    users: Mapping[str, PolicyValues] = Field(default_factory=dict)
    groups: Mapping[str, PolicyValues] = Field(default_factory=dict)
    sources: tuple[SourcePolicy, ...]

    @classmethod
    def read(cls, path: Path) -> Policies:
        """Read a file. Raises PoliciesInvalid."""
        import yaml  # it takes time to load, and most sources have no policy

        try:
            text = path.read_text("utf-8")
            return cls.model_validate(json.loads(text) if path.suffix == ".json" else yaml.safe_load(text))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise PoliciesInvalid(where=path, reason=f"{place}: {first['msg']}.") from None
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise PoliciesInvalid(where=path, reason=f"{' '.join(str(error).split())[:300]}.") from None

    @property
    def names(self) -> frozenset[str]:
        """The users whom policies name."""
        exempt = (table.exempt for source in self.sources for table in source.tables.values())
        return frozenset(self.users).union(*exempt)

    def of(self, source: str, user: str, groups: Collection[str] | None = None) -> UserPolicy:
        """The policy of a source for one user, who is in these groups; None: there is no login. Raises
        SourceWithoutPolicy for a source that is not listed: another address of the same database must not circumvent a
        policy."""
        for one in self.sources:
            if same_source(one.source, source):
                values = self._values(user, groups)
                tables = {name: table for name, table in one.tables.items() if table.holds_for(user, groups or ())}
                return UserPolicy(
                    values,
                    rows={name: table.rows for name, table in tables.items() if table.rows is not None},
                    hide={name: frozenset(table.hide) for name, table in tables.items()},
                    mask={name: dict(table.mask) for name, table in tables.items()},
                    hidden=frozenset(name for name, table in tables.items() if table.hidden),
                )
        raise SourceWithoutPolicy(source=redact_spec(source))

    def _values(self, user: str, groups: Collection[str] | None) -> dict[str, Any]:
        """The values of a user: the user's own, or else those of the groups. Different ones of several groups are a
        list."""
        found: dict[str, Any] = {}
        for group in sorted(groups or ()):
            for name, value in self.groups.get(group, {}).items():
                found[name] = value if found.get(name, value) == value else _join_values(found[name], value)
        named = {} if groups is None else {"groups": tuple(sorted(groups))}
        return {**found, **self.users.get(user, {}), "user": user, **named}


def _join_values(one: Any, other: Any) -> tuple[Any, ...]:
    both = (each if isinstance(each, tuple) else (each,) for each in (one, other))
    return tuple(dict.fromkeys(value for each in both for value in each))


_LABELS = re.compile(r"\b(enum|set)\s*\(\s*'(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*\s*\)", re.I)
"""The allowed values within a type."""
_VIEW = "longthread_view"


@dataclass(frozen=True)
class Restrictions:
    """What of the visible tables is not shown as it is, by label: `masked` columns in lower case, and tables with some
    rows hidden. Views read these, whatever their columns are called."""

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
    labels = _all_labels(whole.tables.values()) - _all_labels(tables)
    hidden = hidden_names(whole, seen) | {label.casefold() for label in labels}
    return Schema([_without_comments(whole.tables[table.label], table, hidden) for table in tables], seen.home)


def hidden_names(whole: Schema, seen: Schema) -> set[str]:
    """Return the names of hidden tables and columns that no visible one has, in lower case; those of all hidden columns
    after their table's."""
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


def _all_labels(tables: Iterable[Table]) -> set[str]:
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


@dataclass(frozen=True)
class Restricted:
    """A schema as one user sees it. `relations` are the queries in place of restricted tables. A table that is in
    neither does not exist for the user."""

    whole: Schema
    schema: Schema
    relations: Mapping[str, str]
    defined: frozenset[str] = frozenset()
    """The database's own functions, which may read anything."""

    @cached_property
    def names(self) -> Mapping[str, list[Table]]:
        """The tables of the whole schema by each of their names, in lower case."""
        found: dict[str, list[Table]] = {}
        for label, table in self.whole.tables.items():
            for name in {label.casefold(), label.rsplit(".", 1)[-1].casefold()}:
                found.setdefault(name, []).append(table)
        return found

    @cached_property
    def _hidden_names(self) -> list[str]:
        return sorted(hidden_names(self.whole, self.schema))

    def is_named_in(self, text: str) -> bool:
        """Whether a text names a hidden table or column."""
        return names_any(text, self._hidden_names)


Rewrite = Callable[[str, Restricted], str]
"""Rewrites a query to read no more than a user may."""


def restrict(
    schema: Schema,
    policy: UserPolicy,
    dialect: str,
    views: Mapping[str, str],
    rewrite: Rewrite,
    defined: frozenset[str] = frozenset(),
) -> Restricted:
    """Restricts a schema. `views` are the definitions of views by label; one that cannot be parsed is hidden. Raises
    PolicyUnusable: the policy names what is not there."""
    # An error of a condition that the database evaluates on hidden rows would reveal their values.
    if not find_dialect(dialect).fence:
        raise PolicyUnusable(reason=f"a source in {dialect} takes none.")
    labels = _labels(schema, policy, dialect)
    relations: dict[str, str] = {}
    tables: dict[str, Table] = {}
    for label, table in schema.tables.items():
        if table.kind != "view" and (
            seen := _restrict_table(table, policy, labels.get(label), dialect, table.sql, relations)
        ):
            tables[label] = seen
    waiting = {label: views[label] for label, table in schema.tables.items() if table.kind == "view" and label in views}
    while waiting:  # a view may read other views: views that read only tables come first
        known = Restricted(schema, Schema(tables.values(), schema.home), dict(relations), defined)
        bodies = {label: body for label, sql in waiting.items() if (body := _body(sql, known, dialect, rewrite))}
        for label, body in bodies.items():
            del waiting[label]
            columns = ", ".join(quote_identifier(column.name, dialect) for column in schema.tables[label].columns)
            relation = f"(WITH {_VIEW}({columns}) AS ({body}) SELECT {columns} FROM {_VIEW})"
            relations[label] = relation
            source = f"{relation} AS {quote_identifier(label, dialect)}"
            seen = _restrict_table(schema.tables[label], policy, labels.get(label), dialect, source, relations)
            if seen is not None:
                tables[label] = replace(seen, sql=f"{relations[label]} AS {quote_identifier(label, dialect)}")
        if not bodies:
            break
    shown = [_without_hidden_keys(tables[label], tables) for label in schema.tables if label in tables]
    described = withhold(schema, Schema(shown, schema.home), _restrictions(policy, labels))
    return Restricted(schema, described, relations, defined)


def _restrictions(policy: UserPolicy, labels: Mapping[str, str]) -> Restrictions:
    masked = {label: frozenset(map(str.casefold, policy.mask.get(named, ()))) for label, named in labels.items()}
    return Restrictions(masked, frozenset(label for label, named in labels.items() if named in policy.rows))


def _body(sql: str, known: Restricted, dialect: str, rewrite: Rewrite) -> str | None:
    """The rewritten query of a view; None if it reads what is not known (yet)."""
    try:
        tree = sqlglot.parse_one(sql, read=sqlglot_name(dialect))
        query = tree.expression if isinstance(tree, exp.Create) else tree
        text = write_sql(query, dialect)
        Resolver(known.schema, dialect).check(Guard(dialect).judge(text).tree)
        return rewrite(text, known)
    except (SourceError, SqlglotError):
        return None


def _restrict_table(
    table: Table, policy: UserPolicy, named: str | None, dialect: str, source: str, relations: dict[str, str]
) -> Table | None:
    """A table as the user sees it; None if it is hidden."""
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
        bound = None if rows is None else condition(rows, policy.values, find_dialect(dialect))
    except Unbound:
        return None
    listed = ", ".join(_select_column(column, mask, dialect) for column in columns)
    filtered = f"WHERE {write_sql(bound, dialect)} " if bound is not None else ""
    relation = f"(SELECT {listed} FROM {source} {filtered}{find_dialect(dialect).fence})"
    relations[table.label] = relation
    return replace(
        table,
        sql=f"{relation} AS {quote_identifier(table.label, dialect)}",
        columns=tuple(replace(each, primary_key=False) if each.name.casefold() in mask else each for each in columns),
        primary_key=table.primary_key if not hide & {name.casefold() for name in table.primary_key} else (),
        estimated_rows=None if rows is not None else table.estimated_rows,
    )


def _select_column(column: Column, mask: Mapping[str, str | None], dialect: str) -> str:
    name = column.name.casefold()
    if name not in mask:
        return quote_identifier(column.name, dialect)
    masked = write_sql(parse_mask(mask[name], find_dialect(dialect)), dialect)
    return f"{masked} AS {quote_identifier(column.name, dialect)}"


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
    """Labels of the schema to names in the policy. Each name must exist: a misspelled table would be unprotected."""
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
    """Checks that conditions and masks name existing columns."""
    texts = [policy.rows.get(name), *policy.mask.get(name, {}).values()]
    for text in (one for one in texts if one is not None):
        tree = exp.select("1").from_(exp.to_table(_VIEW)).where(parse_expression(text, find_dialect(dialect)))
        own = Schema([Table(_VIEW, _VIEW, columns=table.columns), *schema.tables.values()])
        try:
            Resolver(own, dialect).check(tree)
        except (ColumnNotFound, TableNotFound) as error:
            raise PolicyUnusable(reason=f"of the table {table.label}: {text!r}. {error}") from error

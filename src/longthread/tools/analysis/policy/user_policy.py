"""The policy of one user for one source, and the document that declares policies: YAML or JSON.

users:
  ada: {region: EU, teams: [1, 2]}     # values that conditions may use, by user
sources:
  - source: shop.sqlite                # as it is given to --source
    tables:
      customers:
        rows: country = :region        # a condition over the table's columns; :user is the user's id
        hide: [email]                  # columns that do not exist
        mask: {phone: "'***'"}         # columns with another value: an expression over the table's columns
        except: [root]                 # users for whom none of this holds
      salaries: {hidden: true}         # a table that does not exist
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlglot
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlglot import exp
from sqlglot.errors import SqlglotError

from longthread.errors import PoliciesInvalid, PolicyUnusable, SourceWithoutPolicy
from longthread.tools.analysis.address import redact_spec, same_source
from longthread.tools.analysis.dialects.dialect import SqlDialect


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


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)


class TablePolicy(_Strict):
    """The policy of one table."""

    rows: str | None = None
    hide: tuple[str, ...] = ()
    mask: Mapping[str, str | None] = Field(default_factory=dict)
    hidden: bool = False
    exempt: tuple[str, ...] = Field(default=(), alias="except")


class SourcePolicy(_Strict):
    """The policies of one source, by table."""

    source: str
    tables: Mapping[str, TablePolicy] = Field(default_factory=dict)


class Policies(_Strict):
    """The whole document."""

    users: Mapping[str, Mapping[str, PolicyValue | tuple[PolicyValue, ...]]] = Field(default_factory=dict)
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

    def of(self, source: str, user: str) -> UserPolicy:
        """The policy of a source for one user. Raises SourceWithoutPolicy for a source that is not listed: another
        address of the same database must not circumvent a policy."""
        for one in self.sources:
            if same_source(one.source, source):
                values: dict[str, Any] = {**self.users.get(user, {}), "user": user}
                tables = {name: table for name, table in one.tables.items() if user not in table.exempt}
                return UserPolicy(
                    values,
                    rows={name: table.rows for name, table in tables.items() if table.rows is not None},
                    hide={name: frozenset(table.hide) for name, table in tables.items()},
                    mask={name: dict(table.mask) for name, table in tables.items()},
                    hidden=frozenset(name for name, table in tables.items() if table.hidden),
                )
        raise SourceWithoutPolicy(source=redact_spec(source))

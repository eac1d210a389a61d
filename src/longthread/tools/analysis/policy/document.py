"""The document that declares policies: YAML or JSON.

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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longthread.errors import PoliciesInvalid, SourceWithoutPolicy
from longthread.tools.analysis.address import redact_spec, same_source
from longthread.tools.analysis.policy.user_policy import UserPolicy

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
        """Reads a file. Raises PoliciesInvalid."""
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

"""Facts that a thread has learned about its source from observations: tables, schemas, samples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.model.builtin import QUERIES

_QUERY_LABEL = re.compile(r"q([0-9]{1,18})")


@dataclass(slots=True)
class Facts:
    """Facts about one schema of a source. `schemas` and `samples` have, by table, the newest data of `describe_table`
    and `sample_rows`; `queries` is the number of the last query label of any source."""

    source: str | None = None
    fingerprint: str | None = None
    dialect: str | None = None
    tables: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    queries: int = 0

    def is_about(self, source: str | None, fingerprint: str | None) -> bool:
        """Whether they hold for a source with this fingerprint."""
        return (self.source, self.fingerprint) == (source, fingerprint)

    def say_the_same_as(self, other: Facts) -> bool:
        """Whether both are equal, except for the last query label."""
        return replace(self, queries=0) == replace(other, queries=0)

    def without(self, seen: Facts) -> Facts:
        """The facts that `seen` lacks. All names are included with any entry of a listing."""
        about, columns = _unseen(self.about, seen.about), _unseen(self.columns, seen.columns)
        names = self.tables if about or columns else [name for name in self.tables if name not in seen.tables]
        return replace(
            self,
            tables=list(names),
            about=about,
            columns=columns,
            schemas=_unseen(self.schemas, seen.schemas),
            samples=_unseen(self.samples, seen.samples),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no fact."""
        return not (self.tables or self.about or self.columns or self.schemas or self.samples)

    def learn(self, action: str, observation: Mapping[str, Any]) -> None:
        """Adds an observation's facts, except of failed calls and wrong types, as in the database's view
        `state_data`."""
        data = observation.get("data")
        if not observation.get("ok") or not isinstance(data, Mapping):
            return
        table = data.get("table_name")
        if action == "list_tables":
            self._learn_tables(data)
        elif action == "describe_table" and isinstance(table, str):
            self.schemas[table] = dict(data)
            self._note_table(table)
        elif action == "sample_rows" and isinstance(table, str):
            self.samples[table] = dict(data)
            self._note_table(table)
        elif action in QUERIES and (label := _QUERY_LABEL.fullmatch(str(data.get("query")))):
            self.queries = max(self.queries, int(label[1]))

    def _learn_tables(self, data: Mapping[str, Any]) -> None:
        dialect, tables, about, columns = (data.get(key) for key in ("dialect", "tables", "about", "columns"))
        if isinstance(dialect, str):
            self.dialect = dialect
        if isinstance(tables, list | tuple):
            for name in tables:
                if isinstance(name, str):
                    self._note_table(name)
        if isinstance(about, Mapping):
            self.about |= about
        if isinstance(columns, Mapping):
            self.columns |= columns

    def _note_table(self, name: str) -> None:
        if name not in self.tables:
            self.tables.append(name)

    def copy(self) -> Facts:
        """A copy that may learn more."""
        return replace(
            self,
            tables=list(self.tables),
            about=dict(self.about),
            columns=dict(self.columns),
            schemas=dict(self.schemas),
            samples=dict(self.samples),
        )

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Facts:
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


def _unseen(known: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if seen.get(name) != value}

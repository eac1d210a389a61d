"""What a thread has learned about its source: tables, schemas, samples. Derived from observations alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(slots=True)
class Facts:
    """Facts about one source, as of one schema of it.

    `schemas` and `samples` hold, by table, the data of the newest `describe_table` and `sample_rows`; `queries` is the
    number of the last query label, whatever the source.
    """

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
        """Whether these facts still hold for a source with this fingerprint."""
        return (self.source, self.fingerprint) == (source, fingerprint)

    def say_the_same_as(self, other: Facts) -> bool:
        """Whether both hold the same about the same; the number of the last query label does not count."""
        return replace(self, queries=0) == replace(other, queries=0)

    def learn(self, action: str, observation: Mapping[str, Any]) -> None:
        """Take in what a tool observed. Failed calls teach nothing."""
        data = observation.get("data")
        if not observation.get("ok") or not isinstance(data, Mapping):
            return
        if action == "list_tables":
            self._learn_tables(data)
        elif action == "describe_table" and "table_name" in data:
            self.schemas[data["table_name"]] = dict(data)
            self._note_table(data["table_name"])
        elif action == "sample_rows" and "table_name" in data:
            self.samples[data["table_name"]] = dict(data)
            self._note_table(data["table_name"])
        elif action == "run_sql":
            self.queries = max(self.queries, int(str(data.get("query", "q0"))[1:] or 0))

    def _learn_tables(self, data: Mapping[str, Any]) -> None:
        self.dialect = data.get("dialect", self.dialect)
        for name in data.get("tables", []):
            self._note_table(name)
        self.about |= data.get("about", {})
        self.columns |= data.get("columns", {})

    def _note_table(self, name: str) -> None:
        if name not in self.tables:
            self.tables.append(name)

    def copy(self) -> Facts:
        """The same facts. Whoever learns on with them leaves these as they are: what was learned is never changed."""
        return replace(
            self,
            tables=list(self.tables),
            about=dict(self.about),
            columns=dict(self.columns),
            schemas=dict(self.schemas),
            samples=dict(self.samples),
        )

    def to_json(self) -> dict[str, Any]:
        """The facts as JSON; `from_json` restores them."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Facts:
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})

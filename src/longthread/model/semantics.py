"""The semantic layer of a source: its metrics, the dimensions that split them, and the joins between its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Grain = Literal["hour", "day", "week", "month", "quarter", "year"]
GRAINS: tuple[Grain, ...] = get_args(Grain)
"""The grains of a time, the finest first."""


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """A number that has one definition. `sql` aggregates columns of `table`, of the rows where `where` holds, and
    `time` names the dimension of its time. Without a table, `sql` calculates with other metrics."""

    name: str
    sql: str
    table: str | None = None
    meaning: str | None = None
    where: str | None = None
    time: str | None = None
    synonyms: Sequence[str] = ()

    @property
    def text(self) -> str:
        """All that it says, in which a hidden name may stand."""
        return " ".join(filter(None, [self.name, self.table, self.sql, self.where, self.meaning, *self.synonyms]))


@dataclass(frozen=True, slots=True)
class DimensionDefinition:
    """What metrics are split by: `sql` is an expression over columns of `table`. A time has a `grain`, its finest."""

    name: str
    table: str
    sql: str
    meaning: str | None = None
    grain: Grain | None = None
    synonyms: Sequence[str] = ()

    @property
    def text(self) -> str:
        """All that it says, in which a hidden name may stand."""
        return " ".join(filter(None, [self.name, self.table, self.sql, self.meaning, *self.synonyms]))


@dataclass(frozen=True, slots=True)
class JoinDefinition:
    """Columns of `table` that refer to one row of the table `to`, by its columns `references`."""

    table: str
    columns: Sequence[str]
    to: str
    references: Sequence[str]


@dataclass(frozen=True, slots=True)
class SemanticLayer:
    metrics: Mapping[str, MetricDefinition] = field(default_factory=dict)
    dimensions: Mapping[str, DimensionDefinition] = field(default_factory=dict)
    joins: Sequence[JoinDefinition] = ()


def layer_of(bodies: Iterable[Any]) -> SemanticLayer:
    """Return the layer of the `semantics` of definitions, the first of a name before others. What another program
    wrote, and has no such form, is left out."""
    metrics: dict[str, MetricDefinition] = {}
    dimensions: dict[str, DimensionDefinition] = {}
    joins: dict[JoinDefinition, None] = {}
    for body in bodies:
        for each in _objects(body, "metrics", "name", "sql"):
            given = {name: _text(each, name) for name in ("table", "meaning", "where", "time")}
            made = MetricDefinition(each["name"], each["sql"], **given, synonyms=_texts(each.get("synonyms")))
            metrics.setdefault(made.name, made)
        for each in _objects(body, "dimensions", "name", "table", "sql"):
            grain = next((grain for grain in GRAINS if grain == each.get("grain")), None)
            about = (_text(each, "meaning"), grain, _texts(each.get("synonyms")))
            dimensions.setdefault(each["name"], DimensionDefinition(each["name"], each["table"], each["sql"], *about))
        for each in _objects(body, "joins", "table", "to"):
            columns, references = _texts(each.get("columns")), _texts(each.get("references"))
            joins[JoinDefinition(each["table"], columns, each["to"], references)] = None
    return SemanticLayer(metrics, dimensions, tuple(joins))


def _objects(body: Any, kind: str, *required: str) -> list[Mapping[str, Any]]:
    items = body.get(kind) if isinstance(body, Mapping) else None
    found = items if isinstance(items, list | tuple) else ()
    return [each for each in found if isinstance(each, Mapping) and all(_text(each, name) for name in required)]


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) and value else None


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()

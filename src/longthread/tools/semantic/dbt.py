"""Takes over dbt's semantic models and metrics (MetricFlow YAML)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from longthread.errors import InvalidInput, SqlRefused
from longthread.model.semantics import GRAINS
from longthread.tools.analysis.sql_text import write_sql
from longthread.tools.semantic.expressions import parse, substitute_columns
from longthread.tools.semantic.imported import ForeignItem, ImportedLayer, about

_MODEL = re.compile(r"""(?:ref|source)\(.*?['"]([^'"]+)['"]\s*\)$""")
_DIMENSION = re.compile(r"""\{\{\s*(?:Time)?Dimension\(\s*['"](?:(?P<entity>\w+?)__)?(?P<name>\w+)['"]\s*\)\s*\}\}""")
_AGGREGATES = {
    "sum": "SUM({expr})",
    "min": "MIN({expr})",
    "max": "MAX({expr})",
    "count": "COUNT({expr})",
    "average": "AVG({expr})",
    "count_distinct": "COUNT(DISTINCT {expr})",
    "sum_boolean": "SUM(CASE WHEN {expr} THEN 1 ELSE 0 END)",
}
_DIALECT = "duckdb"
"""Of the arithmetic between metrics, which is the same in all."""
_CHANGES = ("filter", "offset_window", "offset_to_grain", "fill_nulls_with", "join_to_timespine")
"""What changes a metric where another one takes it in."""
_COLUMN = re.compile(r"\w+")


@dataclass(slots=True)
class _Model:
    table: str
    entity: str
    dimensions: dict[str, str] = field(default_factory=dict)
    measures: dict[str, ForeignItem] = field(default_factory=dict)
    time: str | None = None


def read_dbt(bodies: Sequence[Mapping[str, Any]], layer: ImportedLayer) -> None:
    """Read all semantic models and metrics of documents into a layer. Metrics of other kinds become its problems."""
    documents = [ForeignItem(body, "document") for body in bodies]
    models: list[_Model] = []
    entities: list[tuple[_Model, ForeignItem]] = []
    for item in (each for body in documents for each in body.objects("semantic_models", "semantic model")):
        try:
            model = _read_model(item, layer)
        except InvalidInput as error:
            layer.problems.append(f"{item.label}: {error}")
            continue
        models.append(model)
        entities += [(model, each) for each in item.objects("entities", "entity")]
    _read_joins(entities, layer)
    metrics = [each for body in documents for each in body.objects("metrics", "metric")]
    made = [
        ForeignItem({"name": name, "type": "simple", "type_params": {"measure": name}}, "metric")
        for model in models
        for name, measure in model.measures.items()
        if measure.data.get("create_metric") is True
    ]
    for metric in [*metrics, *made]:
        try:
            layer.metrics.append(_metric(metric, models))
        except (InvalidInput, SqlRefused) as error:
            layer.refuse(metric, error)


def _read_model(item: ForeignItem, layer: ImportedLayer) -> _Model:
    named = _MODEL.search((item.text("model") or "").strip())
    if named is None:
        raise InvalidInput(reason="its `model` is not ref('…'), which names a table.")
    primary = next((e.name for e in item.objects("entities", "entity") if e.data.get("type") == "primary"), None)
    defaults = ForeignItem(item.object("defaults"), "defaults")
    model = _Model(named[1], primary or item.text("primary_entity") or item.name)
    model.time = defaults.text("agg_time_dimension")
    for each in item.objects("dimensions", "dimension"):
        grain = ForeignItem(each.object("type_params"), "").text("time_granularity") or "day"
        is_time = each.data.get("type") == "time"
        model.dimensions[each.name] = each.text("expr") or each.name
        made = {"owner": model.entity, "table": model.table, "sql": model.dimensions[each.name]}
        layer.dimensions.append(
            _about(each) | made | ({"grain": grain if grain in GRAINS else "hour"} if is_time else {})
        )
    model.measures = {each.name: each for each in item.objects("measures", "measure")}
    return model


def _read_joins(entities: Sequence[tuple[_Model, ForeignItem]], layer: ImportedLayer) -> None:
    """A foreign entity of one model refers to the primary or unique one of the same name of another."""
    own = [(model, each) for model, each in entities if each.data.get("type") in ("primary", "unique")]
    for model, each in entities:
        if each.data.get("type") != "foreign":
            continue
        for other, key in own:
            if key.name != each.name or other is model:
                continue
            columns = [each.text("expr") or each.name], [key.text("expr") or key.name]
            if not all(_COLUMN.fullmatch(name) for names in columns for name in names):
                layer.problems.append(f"{each.label} of {model.table}: its `expr` is no column.")
                continue
            join = {"table": model.table, "columns": columns[0], "to": other.table, "references": columns[1]}
            layer.joins.append(join)


def _metric(metric: ForeignItem, models: Sequence[_Model]) -> dict[str, Any]:
    """Return a metric. Raises InvalidInput, SqlRefused: it cannot be taken over."""
    kind, params = metric.text("type"), ForeignItem(metric.object("type_params"), "metric")
    if kind == "simple":
        return _about(metric) | _simple(metric, params, models)
    if kind not in ("ratio", "derived"):
        raise InvalidInput(reason=f"its type is {kind}. Only simple, ratio and derived metrics can be taken over.")
    if metric.data.get("filter"):
        raise InvalidInput(reason="it has a `filter`. Give that to the metrics that it is made of.")
    if kind == "ratio":
        return _about(metric) | {"sql": f"{_input(params, 'numerator')} / {_input(params, 'denominator')}"}
    inputs = {each.text("alias") or each.name: each for each in params.objects("metrics", "metric")}
    for each in inputs.values():
        each.refuse(("filter", "offset_window", "offset_to_grain"))
    tree = parse(params.text("expr") or "", _DIALECT)
    names = {alias: each.name for alias, each in inputs.items()}
    tree = substitute_columns(tree, lambda column: exp.column(names.get(column.name, column.name)))
    return _about(metric) | {"sql": write_sql(tree, _DIALECT, comments=False)}


def _simple(metric: ForeignItem, params: ForeignItem, models: Sequence[_Model]) -> dict[str, Any]:
    name = _input(params, "measure", "filter")
    model = next((each for each in models if name in each.measures), None)
    if model is None:
        raise InvalidInput(reason=f"no semantic model here has its measure {name}. Give its file too.")
    measure = model.measures[name]
    measure.refuse(("non_additive_dimension", "agg_params"))
    template = _AGGREGATES.get(str(measure.data.get("agg")).lower())
    if template is None:
        raise InvalidInput(
            reason=f"its measure has agg {measure.data.get('agg')}. There are: {', '.join(_AGGREGATES)}."
        )
    filters = [
        *_filters(metric.data.get("filter")),
        *_filters(ForeignItem(params.object("measure"), "").data.get("filter")),
    ]
    return {
        "owner": model.entity,
        "table": model.table,
        "sql": template.format(expr=measure.text("expr") or name),
        "where": " AND ".join(f"({_bind_columns(each, model)})" for each in filters),
        "time": measure.text("agg_time_dimension") or model.time,
    }


def _input(params: ForeignItem, name: str, *allowed: str) -> str:
    """Return the name of a measure or metric that a metric is made of. Raises InvalidInput: it does not go in as it
    is."""
    value = params.data.get(name)
    if isinstance(value, Mapping):
        given = ForeignItem(value, name)
        given.refuse(key for key in _CHANGES if key not in allowed)
        value = given.name
    if not isinstance(value, str) or not value:
        raise InvalidInput(reason=f"its type_params do not name a {name}.")
    return value


def _filters(value: Any) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [each for each in items if isinstance(each, str) and each.strip()]


def _bind_columns(text: str, model: _Model) -> str:
    """Return a filter with columns in the place of its templates. Raises InvalidInput."""

    def column(found: re.Match[str]) -> str:
        if found["entity"] not in (None, model.entity) or found["name"] not in model.dimensions:
            raise InvalidInput(reason=f"its filter names {found[0]}, which is no dimension of {model.table}.")
        return f"({model.dimensions[found['name']]})"

    made = _DIMENSION.sub(column, text)
    if "{{" in made or "{%" in made:
        reason = f"its filter has another template than Dimension('entity__name'): {text.strip()[:100]}"
        raise InvalidInput(reason=reason)
    return made.strip()


def _about(item: ForeignItem) -> dict[str, Any]:
    return about(item, "label", item.object("meta") or ForeignItem(item.object("config"), "").object("meta"))

"""Reads the semantic layers of other tools: dbt's semantic models and metrics, and Cube's cubes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlglot import exp

from longthread.errors import InvalidInput, SqlRefused
from longthread.model.semantics import GRAINS
from longthread.tools.analysis.sql_text import write_sql
from longthread.tools.catalog.documents import read_mappings
from longthread.tools.semantic.expressions import parse, substitute_columns

_FORMS = "dbt's `semantic_models` and `metrics`, or Cube's `cubes`"


@dataclass(slots=True)
class ImportedLayer:
    """The `semantics` of a source, as read, and why each thing that was left out was."""

    metrics: list[dict[str, Any]] = field(default_factory=list)
    dimensions: list[dict[str, Any]] = field(default_factory=list)
    joins: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)

    def refuse(self, item: ForeignItem, error: Exception) -> None:
        """Leave a metric out."""
        self.problems.append(f"{item.label}: {error}")
        self.refused.add(item.name)

    @property
    def semantics(self) -> dict[str, Any]:
        """The metrics, dimensions and joins. A dimension whose name others have too has its `owner` before it."""
        counted = Counter(each["name"] for each in [*self.metrics, *self.dimensions])
        renamed = {
            (each["owner"], each["name"]): f"{each['owner']}_{each['name']}"
            for each in self.dimensions
            if counted[each["name"]] > 1
        }
        for each in self.metrics:
            each["time"] = renamed.get((each.get("owner"), each.get("time")), each.get("time"))
        for each in self.dimensions:
            each["name"] = renamed.get((each["owner"], each["name"]), each["name"])
        lists = {"metrics": self.metrics, "dimensions": self.dimensions}
        made = {kind: [_own_fields(each) for each in items] for kind, items in lists.items()}
        return made | {"joins": list({str(each): each for each in self.joins}.values())}


def read_layers(paths: Iterable[str | Path]) -> ImportedLayer:
    """Read files, and those of folders, as one layer. Raises CatalogInvalid, InvalidInput: one cannot be read, or none
    has such a layer."""
    bodies, layer = read_mappings(paths), ImportedLayer()
    read_dbt(bodies, layer)
    read_cubes(bodies, layer)
    if not (layer.metrics or layer.dimensions or layer.problems):
        raise InvalidInput(reason=f"There is nothing to import in these files. Give {_FORMS}.")
    while gone := [each for each in layer.metrics if not each.get("table") and _names(each) & layer.refused]:
        for each in gone:  # what is calculated from a metric that was left out
            layer.metrics.remove(each)
            missing = ", ".join(sorted(_names(each) & layer.refused))
            layer.refuse(ForeignItem(each, "metric"), InvalidInput(reason=f"it is made of {missing}."))
    return layer


def _names(metric: Mapping[str, Any]) -> set[str]:
    return set(re.findall(r"\w+", str(metric["sql"])))


def _own_fields(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "owner" and value}


def about(item: ForeignItem, label: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name, meaning and synonyms of an item: its label, and the `synonyms` of its `meta`."""
    given = meta.get("synonyms")
    texts = [item.data.get(label), *(given if isinstance(given, list) else [])]
    words = [each for each in dict.fromkeys(texts) if isinstance(each, str) and each.strip()]
    synonyms = [each for each in words if each.casefold() != item.name.casefold()]
    return {"name": item.name, "meaning": item.text("description"), "synonyms": synonyms}


class ForeignItem:
    """An object of another tool's document. `label` names it in errors, such as `the metric revenue`."""

    def __init__(self, data: Mapping[str, Any], kind: str) -> None:
        self.data = data
        self.name = str(data.get("name") or "")
        self.label = f"the {kind} {self.name or '(without a name)'}"

    def text(self, name: str) -> str | None:
        """A text that is not blank, or a number as text."""
        value = self.data.get(name)
        return str(value) if isinstance(value, str | int | float) and str(value).strip() else None

    def object(self, name: str) -> Mapping[str, Any]:
        value = self.data.get(name)
        return value if isinstance(value, Mapping) else {}

    def objects(self, name: str, kind: str) -> list[ForeignItem]:
        value = self.data.get(name)
        items = value if isinstance(value, list) else []
        return [ForeignItem(each, kind) for each in items if isinstance(each, Mapping)]

    def refuse(self, names: Iterable[str]) -> None:
        """Raises InvalidInput: it has a field that changes the number, and cannot be taken over."""
        for name in names:
            if self.data.get(name):
                raise InvalidInput(reason=f"it has `{name}`, which cannot be taken over.")


_REFERENCE = re.compile(r"\$?\{(?:(?P<cube>\w+)\.)?(?P<name>\w+)\}(?:\.(?P<column>\w+))?")
_SIDE = r"\$?\{(\w+)(?:\.(\w+))?\}(?:\.(\w+))?"
_EQUAL = re.compile(rf"\s*{_SIDE}\s*=\s*{_SIDE}\s*")
_CUBE_TYPES = {
    "sum": "SUM({sql})",
    "avg": "AVG({sql})",
    "min": "MIN({sql})",
    "max": "MAX({sql})",
    "count": "COUNT({sql})",
    "count_distinct": "COUNT(DISTINCT {sql})",
    "count_distinct_approx": "COUNT(DISTINCT {sql})",
}
_ONE = ("many_to_one", "one_to_one", "belongs_to", "belongsTo", "has_one", "hasOne")
_MANY = ("one_to_many", "has_many", "hasMany")


def read_cubes(bodies: Sequence[Mapping[str, Any]], layer: ImportedLayer) -> None:
    """Read all cubes of documents into a layer. What cannot be taken over becomes its problems."""
    cubes = {each.name: each for body in bodies for each in ForeignItem(body, "").objects("cubes", "cube")}
    measures = [(cube, each) for cube in cubes.values() for each in cube.objects("measures", "metric")]
    names = [each.name for _, each in measures]
    for cube in cubes.values():
        try:
            _read_cube(cube, cubes, layer)
        except InvalidInput as error:
            layer.problems.append(f"{cube.label}: {error}")
    for cube, measure in measures:
        try:
            made = _measure(cube, measure)
            made["name"] = _metric_name(cube, measure.name, names)
            if "table" not in made:
                made["sql"] = _rewrite_calculation(cube, measure, names)
            layer.metrics.append(made)
        except InvalidInput as error:
            layer.refuse(ForeignItem({"name": _metric_name(cube, measure.name, names)}, "metric"), error)


def _read_cube(cube: ForeignItem, cubes: Mapping[str, ForeignItem], layer: ImportedLayer) -> None:
    table = _table(cube)
    for each in cube.objects("dimensions", "dimension"):
        if each.data.get("type") == "geo" or each.data.get("sub_query") or "sql" not in each.data:
            layer.problems.append(f"{each.label} of the cube {cube.name}: it is no expression over the table.")
            continue
        made = {
            "name": each.name,
            "owner": cube.name,
            "table": table,
            "sql": _bind_members(each.text("sql") or "", cube),
        }
        layer.dimensions.append(made | _docs(each) | ({"grain": "day"} if each.data.get("type") == "time" else {}))
    for join in cube.objects("joins", "join"):
        try:
            layer.joins.append(_join(cube, join, cubes))
        except InvalidInput as error:
            layer.problems.append(f"{join.label} of the cube {cube.name}: {error}")


def _table(cube: ForeignItem) -> str:
    cube.refuse(("extends",))
    table = cube.text("sql_table")
    if table is None:
        raise InvalidInput(reason="it has no `sql_table`. Put its `sql` into a view of the database, and name that.")
    return table


def _join(cube: ForeignItem, join: ForeignItem, cubes: Mapping[str, ForeignItem]) -> dict[str, Any]:
    relation = join.text("relationship") or ""
    if join.name not in cubes or relation not in (*_ONE, *_MANY):
        raise InvalidInput(reason="it leads to no cube of these files, or its relationship is none that is known.")
    other = cubes[join.name]
    own: list[str] = []
    theirs: list[str] = []
    for part in re.split(r"\bAND\b", join.text("sql") or "", flags=re.I):
        if (found := _EQUAL.fullmatch(part)) is None:
            raise InvalidInput(reason=f"{part.strip()[:100]} is not {{CUBE}}.column = {{{join.name}}}.column.")
        sides = {_owner(found[n], cube): _column(found[n], found[n + 1] or found[n + 2], cubes, cube) for n in (1, 4)}
        if sides.keys() != {cube.name, join.name}:
            raise InvalidInput(reason=f"{part.strip()[:100]} does not name both cubes.")
        own.append(sides[cube.name])
        theirs.append(sides[join.name])
    if relation in _MANY:
        return {"table": _table(other), "columns": theirs, "to": _table(cube), "references": own}
    return {"table": _table(cube), "columns": own, "to": _table(other), "references": theirs}


def _owner(name: str, cube: ForeignItem) -> str:
    return cube.name if name == "CUBE" else name


def _column(owner: str, name: str | None, cubes: Mapping[str, ForeignItem], cube: ForeignItem) -> str:
    """Return the column of a side of a join: a dimension's, if it names one."""
    found = cubes.get(_owner(owner, cube))
    dimensions = found.objects("dimensions", "dimension") if found else []
    sql = next((each.text("sql") for each in dimensions if each.name == name and found), None)
    column = _bind_members(sql, found) if sql and found else name or ""
    if not re.fullmatch(r"\w+", column):
        raise InvalidInput(reason=f"{owner}.{name} is no column.")
    return column


def _measure(cube: ForeignItem, measure: ForeignItem) -> dict[str, Any]:
    measure.refuse(("rolling_window", "multi_stage", "time_shift", "group_by", "reduce_by"))
    kind, sql = str(measure.data.get("type")), measure.text("sql")
    filters = [each.text("sql") or "" for each in measure.objects("filters", "filter")]
    made = {"owner": cube.name, **_docs(measure)}
    if kind == "number":
        if filters:
            raise InvalidInput(reason="a calculated one has no filters. Give them to the measures that it is made of.")
        if _names_measure(sql or "", cube):
            return made
        return made | {"table": _table(cube), "sql": _bind_members(sql or "", cube)}
    if kind not in _CUBE_TYPES or (sql is None and kind != "count"):
        raise InvalidInput(reason=f"its type is {kind}. There are: {', '.join(_CUBE_TYPES)} (with `sql`), number.")
    where = " AND ".join(f"({_bind_members(each, cube)})" for each in filters)
    value = "*" if sql is None else _bind_members(sql, cube)
    return made | {"table": _table(cube), "sql": _CUBE_TYPES[kind].format(sql=value), "where": where}


def _metric_name(cube: ForeignItem, name: str, names: Sequence[str]) -> str:
    """Return the name of a metric: that of its measure, prefixed with its cube's if others are called so too."""
    return f"{cube.name}_{name}" if names.count(name) > 1 else name


def _names_measure(sql: str, cube: ForeignItem) -> bool:
    own = {each.name for each in cube.objects("measures", "metric")}
    return any(found["name"] in own and not found["column"] for found in _REFERENCE.finditer(sql))


def _rewrite_calculation(cube: ForeignItem, measure: ForeignItem, names: Sequence[str]) -> str:
    own = {each.name for each in cube.objects("measures", "metric")}

    def metric(found: re.Match[str]) -> str:
        if found["name"] not in own or found["cube"] not in (None, "CUBE", cube.name) or found["column"]:
            raise InvalidInput(reason=f"it names {found[0]}, which is no measure of its cube.")
        return _metric_name(cube, found["name"], names)

    return _REFERENCE.sub(metric, measure.text("sql") or "")


def _bind_members(sql: str, cube: ForeignItem, seen: tuple[str, ...] = ()) -> str:
    """Return SQL over the columns of the cube's table. Raises InvalidInput: it names another cube."""
    dimensions = {each.name: each.text("sql") or "" for each in cube.objects("dimensions", "dimension")}

    def column(found: re.Match[str]) -> str:
        name = found["name"]
        if found["cube"] is None and name in ("CUBE", cube.name) and found["column"]:
            return str(found["column"])
        if found["cube"] in (None, "CUBE", cube.name) and name in dimensions and name not in seen:
            inside = _bind_members(dimensions[name], cube, (*seen, name))
            return inside if inside == name else f"({inside})"
        raise InvalidInput(reason=f"it names {found[0]}, which is no column or dimension of its cube.")

    made = _REFERENCE.sub(column, sql)
    if "{" in made:
        raise InvalidInput(reason=f"its SQL has a template that is not known: {sql.strip()[:100]}")
    return made.strip()


def _docs(item: ForeignItem) -> dict[str, Any]:
    return about(item, "title", item.object("meta"))


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

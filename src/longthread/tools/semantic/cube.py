"""Takes over Cube's cubes: their measures, dimensions and joins (YAML)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.errors import InvalidInput
from longthread.tools.semantic.imported import ForeignItem, ImportedLayer, about

_REFERENCE = re.compile(r"\$?\{(?:(?P<cube>\w+)\.)?(?P<name>\w+)\}(?:\.(?P<column>\w+))?")
_SIDE = r"\$?\{(\w+)(?:\.(\w+))?\}(?:\.(\w+))?"
_EQUAL = re.compile(rf"\s*{_SIDE}\s*=\s*{_SIDE}\s*")
_AGGREGATES = {
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
            "sql": _bind_columns(each.text("sql") or "", cube),
        }
        layer.dimensions.append(made | _about(each) | ({"grain": "day"} if each.data.get("type") == "time" else {}))
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
    column = _bind_columns(sql, found) if sql and found else name or ""
    if not re.fullmatch(r"\w+", column):
        raise InvalidInput(reason=f"{owner}.{name} is no column.")
    return column


def _measure(cube: ForeignItem, measure: ForeignItem) -> dict[str, Any]:
    measure.refuse(("rolling_window", "multi_stage", "time_shift", "group_by", "reduce_by"))
    kind, sql = str(measure.data.get("type")), measure.text("sql")
    filters = [each.text("sql") or "" for each in measure.objects("filters", "filter")]
    made = {"owner": cube.name, **_about(measure)}
    if kind == "number":
        if filters:
            raise InvalidInput(reason="a calculated one has no filters. Give them to the measures that it is made of.")
        if _names_measure(sql or "", cube):
            return made
        return made | {"table": _table(cube), "sql": _bind_columns(sql or "", cube)}
    if kind not in _AGGREGATES or (sql is None and kind != "count"):
        raise InvalidInput(reason=f"its type is {kind}. There are: {', '.join(_AGGREGATES)} (with `sql`), number.")
    where = " AND ".join(f"({_bind_columns(each, cube)})" for each in filters)
    value = "*" if sql is None else _bind_columns(sql, cube)
    return made | {"table": _table(cube), "sql": _AGGREGATES[kind].format(sql=value), "where": where}


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


def _bind_columns(sql: str, cube: ForeignItem, seen: tuple[str, ...] = ()) -> str:
    """Return SQL over the columns of the cube's table. Raises InvalidInput: it names another cube."""
    dimensions = {each.name: each.text("sql") or "" for each in cube.objects("dimensions", "dimension")}

    def column(found: re.Match[str]) -> str:
        name = found["name"]
        if found["cube"] is None and name in ("CUBE", cube.name) and found["column"]:
            return str(found["column"])
        if found["cube"] in (None, "CUBE", cube.name) and name in dimensions and name not in seen:
            inside = _bind_columns(dimensions[name], cube, (*seen, name))
            return inside if inside == name else f"({inside})"
        raise InvalidInput(reason=f"it names {found[0]}, which is no column or dimension of its cube.")

    made = _REFERENCE.sub(column, sql)
    if "{" in made:
        raise InvalidInput(reason=f"its SQL has a template that is not known: {sql.strip()[:100]}")
    return made.strip()


def _about(item: ForeignItem) -> dict[str, Any]:
    return about(item, "title", item.object("meta"))

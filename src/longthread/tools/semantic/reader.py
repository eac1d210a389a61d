"""Reads and checks the `semantics` of a source in the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from longthread.errors import InvalidInput, SqlRefused
from longthread.model.semantics import GRAINS, SemanticLayer, layer_of
from longthread.tools.analysis.open import dialect_of
from longthread.tools.catalog.fields import LONGEST_NAME, FieldReader, short
from longthread.tools.semantic.expressions import NAME, check_aggregate, check_plain, fold_name, parse

LONGEST_TEXT = 2_000
_OWN = "metric_time"


def read_semantics(fields: FieldReader, address: str) -> dict[str, Any]:
    """Read the metrics, dimensions and joins of a source, without empty fields. Adds what is wrong to the problems."""
    given = fields.object("semantics")
    inside, dialect = fields.within("semantics", given), dialect_of(address)
    lists = {
        "metrics": [_metric(each, dialect) for each in inside.objects("metrics")],
        "dimensions": [_dimension(each, dialect) for each in inside.objects("dimensions")],
        "joins": [_join(each) for each in inside.objects("joins")],
    }
    inside.finish()
    _check_names(inside, lists)
    _check_calculated(inside, layer_of([lists]), dialect)
    return {name: items for name, items in lists.items() if items}


def _metric(fields: FieldReader, dialect: str) -> dict[str, Any]:
    table = fields.text("table", longest=LONGEST_TEXT)
    sql, where = fields.text("sql", required=True, longest=LONGEST_TEXT), fields.text("where", longest=LONGEST_TEXT)
    found = {
        "name": _name(fields),
        "meaning": fields.text("meaning", longest=LONGEST_TEXT),
        "table": table,
        "sql": sql,
        "where": where,
        "time": fields.text("time", longest=LONGEST_NAME),
        "synonyms": fields.texts("synonyms"),
    }
    fields.finish()
    if table is not None:
        _check_sql(fields, "sql", sql, dialect, check_aggregate)
        _check_sql(fields, "where", where, dialect, check_plain)
    for name in ("where", "time"):
        if table is None and found[name]:
            fields.problem(name, "it is of a metric with a table. Give it to the metrics that this one is made of.")
    return {name: value for name, value in found.items() if value}


def _dimension(fields: FieldReader, dialect: str) -> dict[str, Any]:
    name = _name(fields)
    found = {
        "name": name,
        "meaning": fields.text("meaning", longest=LONGEST_TEXT),
        "table": fields.text("table", required=True, longest=LONGEST_TEXT),
        "sql": fields.text("sql", longest=LONGEST_TEXT) or name,
        "grain": fields.text("grain"),
        "synonyms": fields.texts("synonyms"),
    }
    fields.finish()
    if found["grain"] and found["grain"] not in GRAINS:
        fields.problem("grain", f"it must be one of {', '.join(GRAINS)}, and is {short(found['grain'])}.")
    _check_sql(fields, "sql", str(found["sql"]), dialect, check_plain)
    return {field: value for field, value in found.items() if value}


def _join(fields: FieldReader) -> dict[str, Any]:
    found = {
        "table": fields.text("table", required=True, longest=LONGEST_TEXT),
        "columns": fields.texts("columns"),
        "to": fields.text("to", required=True, longest=LONGEST_TEXT),
        "references": fields.texts("references"),
    }
    fields.finish()
    if not found["columns"] or len(found["columns"] or ()) != len(found["references"] or ()):
        fields.problem("columns", "give as many columns as `references`, at least one.")
    return found


def _name(fields: FieldReader) -> str:
    name = fields.text("name", required=True, longest=LONGEST_NAME) or ""
    if name and not NAME.fullmatch(name):
        fields.problem("name", f"{short(name)} must be letters, digits and _. Write other words under `synonyms`.")
    elif "__" in name:
        fields.problem("name", f"{short(name)} has two _ in a row, which stand before a grain. Write one.")
    return name


def _check_sql(
    fields: FieldReader, name: str, sql: str | None, dialect: str, check: Callable[[exp.Expr], None]
) -> None:
    if not sql:
        return
    try:
        check(parse(sql, dialect))
    except (InvalidInput, SqlRefused) as error:
        fields.problem(name, str(error))


def _check_names(fields: FieldReader, lists: Mapping[str, list[dict[str, Any]]]) -> None:
    """Metrics and dimensions share one space of names, for a condition may name both."""
    seen = {_OWN}
    for kind in ("metrics", "dimensions"):
        for place, each in enumerate(lists[kind]):
            name = fold_name(str(each.get("name", "")))
            if name and name in seen:
                fields.problem(f"{kind}[{place}].name", f"{short(each['name'])} stands there twice, or is reserved.")
            seen.add(name)


def _check_calculated(fields: FieldReader, layer: SemanticLayer, dialect: str) -> None:
    """Check the metrics that name others: a time, or the metrics that they are calculated from."""
    made_of: dict[str, list[str]] = {}
    names = {fold_name(name): name for name in layer.metrics}
    for place, metric in enumerate(layer.metrics.values()):
        time = layer.dimensions.get(metric.time or "")
        if metric.time and (time is None or time.grain is None):
            fields.problem(f"metrics[{place}].time", f"{metric.time} is no dimension with a `grain`.")
        if metric.table is not None:
            continue
        try:
            tree = parse(metric.sql, dialect)
            check_plain(tree)
        except (InvalidInput, SqlRefused) as error:
            hint = f"{error} Without a `table`, it calculates with metrics, as in revenue / orders."
            fields.problem(f"metrics[{place}].sql", hint)
            continue
        columns = [column.name for column in tree.find_all(exp.Column)]
        missing = [name for name in columns if fold_name(name) not in names]
        if missing or not columns:
            there = ", ".join(list(layer.metrics)[:20])
            told = f"{', '.join(missing)} is no metric" if missing else "it names no metric"
            fields.problem(f"metrics[{place}].sql", f"{told}. Give a `table`, or use: {there}.")
        made_of[metric.name] = [names[fold_name(name)] for name in columns if fold_name(name) in names]
    for place, name in enumerate(layer.metrics):
        if _leads_to(name, name, made_of, set()):
            fields.problem(f"metrics[{place}].sql", f"{name} is calculated from itself.")


def _leads_to(name: str, end: str, made_of: Mapping[str, list[str]], seen: set[str]) -> bool:
    for each in made_of.get(name, ()):
        if each == end:
            return True
        if each not in seen:
            seen.add(each)
            if _leads_to(each, end, made_of, seen):
                return True
    return False

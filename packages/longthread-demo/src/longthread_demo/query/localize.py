"""Takes a column from the plan's own table where it stands there, so that no join is needed for it."""

from __future__ import annotations

from dataclasses import replace

from longthread_demo.query.joins import path
from longthread_demo.query.plan import Dimension, Field, PlannedMeasure, QueryPlan
from longthread_demo.schema import DemoSchema, Link, Ref


def localized(plan: QueryPlan, schema: DemoSchema) -> QueryPlan:
    """The plan with the key that points to a table in place of the key there, if that is all it needs of the table.

    A join would drop the rows whose key has no partner. Groups without rows need the other table.
    """
    if plan.keep_empty or plan.together:
        return plan
    own = {field: Field(Ref(plan.table, link.columns[0])) for field, link in _copies(plan, schema)}
    return _with(plan, own) if own else plan


def _copies(plan: QueryPlan, schema: DemoSchema) -> list[tuple[Field, Link]]:
    """Return the plan's fields that its own table holds, if it needs nothing else of their tables."""
    measured = {measure.table for measure in (*plan.measures, *(item.measure for item in plan.having))}
    measured |= {plan.order.table} if isinstance(plan.order, PlannedMeasure) else set()
    found: list[tuple[Field, Link]] = []
    for table, via in {(field.ref.table, field.via) for field in plan.fields()}:
        fields = {field for field in plan.fields() if (field.ref.table, field.via) == (table, via)}
        link = _link_to(plan.table, table, via, schema)
        if link is not None and table not in measured and {field.ref.column for field in fields} == {*link.references}:
            found += [(field, link) for field in fields]
    return found


def _link_to(start: str, end: str, via: Ref | None, schema: DemoSchema) -> Link | None:
    """The link of one column that a join from one table to another would take, if it is one step up."""
    if via is not None:
        links = [link for link in schema.links if link.target == end]
        link = next((link for link in links if (link.table, link.columns[0]) == (via.table, via.column)), None)
    else:
        hops = path(schema, start, end) or []
        link = hops[0].link if len(hops) == 1 and hops[0].up else None
    return link if link is not None and link.table == start and len(link.columns) == 1 else None


def _with(plan: QueryPlan, own: dict[Field, Field]) -> QueryPlan:
    def at_home(field: Field) -> Field:
        return own.get(field, field)

    def grouped(dimension: Dimension) -> Dimension:
        fields = tuple(at_home(field) for field in dimension.fields)
        key = at_home(dimension.key) if dimension.key is not None else None
        return replace(dimension, fields=fields, key=None if key in fields else key)

    return replace(
        plan,
        shown=tuple(dict.fromkeys(at_home(field) for field in plan.shown)),
        conditions=tuple(replace(item, field=at_home(item.field)) for item in plan.conditions),
        part=tuple(replace(item, field=at_home(item.field)) for item in plan.part),
        dimensions=tuple(grouped(dimension) for dimension in plan.dimensions),
        order=at_home(plan.order) if isinstance(plan.order, Field) else plan.order,
    )

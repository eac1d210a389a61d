"""A column without a table's name that several tables of its SELECT have. It is mended if all hold the same. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp

from longthread.tools.analysis.names.missing import Mend
from longthread.tools.analysis.schema import Schema

_PLACES = 4
"""Ways to write an ambiguous column that an error names."""


def mend_ambiguous(
    column: exp.Column, query: exp.Select, owners: Mapping[str, str], compare: Callable[[exp.Expr], str]
) -> Mend | None:
    """Return the mending of an ambiguous column: if the inner joins of its SELECT make it equal in all `owners`, it is
    read as that of one of them; preferably as the one that the select list or GROUP BY reads.

    Args:
        owners: the sources that have the column, as `compare` folds their names, with their names as SQL.
    """
    key, begin = compare(column.this), column.this.meta.get("start")
    if begin is None or not _are_equal(query, key, set(owners), compare):
        return None
    grouped = query.args["group"].expressions if query.args.get("group") else []
    read = [
        compare(other.parts[-2])
        for item in [*grouped, *query.expressions]
        for other in item.find_all(exp.Column)
        if len(other.parts) == 2 and isinstance(other.this, exp.Identifier) and compare(other.this) == key
    ]
    owner = owners[next((name for name in read if name in owners), next(iter(owners)))]
    where = " and ".join(owners.values())
    note = f"{column.name} was read as {owner}.{column.name}: the joins make it equal in {where}."
    return Mend(begin, begin, f"{owner}.", note)


def _are_equal(query: exp.Select, key: str, owners: set[str], compare: Callable[[exp.Expr], str]) -> bool:
    """Return whether the conditions of inner joins and WHERE make a column equal in all sources that have it."""
    joins = query.args.get("joins") or []
    if any(
        join.side or join.method or join.kind not in ("", "INNER", "CROSS") or join.args.get("using") for join in joins
    ):
        return False
    pairs = list(_find_equal_pairs(query, key, compare))
    equal = {next(iter(owners))}
    for _ in pairs:
        equal |= {name for pair in pairs if equal & pair for name in pair}
    return owners <= equal


def _find_equal_pairs(query: exp.Select, key: str, compare: Callable[[exp.Expr], str]) -> Iterator[set[str]]:
    """Yield the pairs of sources whose columns of one name a SELECT's conditions equate."""
    where = query.args.get("where")
    conditions = [join.args.get("on") for join in query.args.get("joins") or []] + [where.this if where else None]
    waiting = [condition for condition in conditions if condition is not None]
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.left, node.right]
        elif isinstance(node, exp.EQ) and isinstance(node.left, exp.Column) and isinstance(node.right, exp.Column):
            sides = [side for side in (node.left, node.right) if len(side.parts) == 2 and compare(side.this) == key]
            if len(sides) == 2:
                yield {compare(side.parts[0]) for side in sides}


def ways_to_write(name: str, statement: exp.Expr, schema: Schema) -> list[str]:
    """Return a column as that of each table of a statement which has it."""
    having = {
        label.rpartition(".")[2].casefold()
        for label, table in schema.tables.items()
        if any(column.name.casefold() == name.casefold() for column in table.columns)
    }
    tables = [table for table in statement.find_all(exp.Table) if table.name.casefold() in having]
    return list(dict.fromkeys(f"{table.alias_or_name}.{name}" for table in tables))[:_PLACES]

"""Ways from the table of a metric to those of its dimensions, along keys: each row leads to one row at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from longthread.errors import InvalidInput
from longthread.model.semantics import JoinDefinition
from longthread.tools.analysis.schema import Schema, Table
from longthread.tools.semantic.expressions import column_name


@dataclass(frozen=True)
class KeyJoin:
    """Columns of `table` that refer to one row of `to`. Not `certain`: no key of the database says that it is one."""

    table: Table
    columns: tuple[str, ...]
    to: Table
    references: tuple[str, ...]

    @property
    def is_certain(self) -> bool:
        return bool(self.to.primary_key) and set(self.references) == set(self.to.primary_key)


class JoinGraph:
    """The joins that people declared, and the foreign keys of the database."""

    def __init__(self, schema: Schema, declared: Sequence[JoinDefinition]) -> None:
        self._schema = schema
        self._definitions = declared

    def path(self, begin: Table, end: Table) -> list[KeyJoin] | None:
        """Return the shortest way, along declared joins before others; None if there is none. Raises InvalidInput:
        several are equally short."""
        for edges in (self._declared, [*self._declared, *self._keys]):
            if ways := list(_shortest(edges, begin, end)):
                if len(ways) > 1:
                    raise InvalidInput(reason=_ambiguous(begin, end, ways))
                return ways[0]
        return None

    @cached_property
    def _declared(self) -> list[KeyJoin]:
        known = self._schema.tables
        found = []
        for each in self._definitions:
            table, to = self._schema.find(each.table), self._schema.find(each.to)
            owner = f"the join of {each.table} and {each.to}"
            columns = tuple(column_name(known[table.label], name, owner) for name in each.columns)
            references = tuple(column_name(known[to.label], name, owner) for name in each.references)
            found.append(KeyJoin(table, columns, to, references))
        return found

    @cached_property
    def _keys(self) -> list[KeyJoin]:
        """The foreign keys between tables that no declared join connects."""
        declared = {(join.table.label, join.to.label) for join in self._declared}
        return [
            KeyJoin(table, key.columns, self._schema.tables[key.table], key.references)
            for table in self._schema.tables.values()
            for key in table.foreign_keys
            if key.table in self._schema.tables and (table.label, key.table) not in declared
        ]


def _shortest(edges: Sequence[KeyJoin], begin: Table, end: Table) -> Iterator[list[KeyJoin]]:
    if begin.label == end.label:
        yield []
        return
    ways: list[list[KeyJoin]] = [[]]
    seen = {begin.label}
    while ways:
        longer = [
            [*way, edge]
            for way in ways
            for edge in edges
            if edge.table.label == (way[-1].to.label if way else begin.label) and edge.to.label not in seen
        ]
        there = [way for way in longer if way[-1].to.label == end.label]
        if there:
            yield from there
            return
        seen |= {way[-1].to.label for way in longer}
        ways = longer


def _ambiguous(begin: Table, end: Table, ways: Sequence[Sequence[KeyJoin]]) -> str:
    named = [", ".join(f"{e.table.label}.{'+'.join(e.columns)} → {e.to.label}" for e in way) for way in ways]
    told = " or ".join(sorted(named)[:3])
    return (
        f"There are {len(ways)} ways from {begin.label} to {end.label}: {told}. Declare the one that is meant under "
        "`joins` of the source, or make the other a dimension of a view."
    )

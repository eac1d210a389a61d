"""Paths between tables along foreign keys."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from longthread_demo.query.plan import Field
from longthread_demo.schema import DemoSchema, Link, Ref

_UP, _DOWN, _INFERRED, _VALLEY = 1.0, 1.15, 0.05, 2.5


@dataclass(frozen=True)
class Hop:
    """One step along a link: up to the one (`up`), or down to the many, which multiplies rows."""

    link: Link
    up: bool

    @property
    def start(self) -> str:
        """The table it leaves."""
        return self.link.table if self.up else self.link.target

    @property
    def end(self) -> str:
        """The table it reaches."""
        return self.link.target if self.up else self.link.table


def path(schema: DemoSchema, start: str, end: str) -> list[Hop] | None:
    """The cheapest path; None when the tables are not connected. Going up and down again (two rows that merely share
    a third) costs extra, because it rarely is what was meant."""
    if start == end:
        return []
    queue: list[tuple[float, int, str, bool, list[Hop]]] = [(0.0, 0, start, False, [])]
    seen: dict[tuple[str, bool], float] = {}
    ticket = 0
    while queue:
        cost, _, table, went_up, hops = heapq.heappop(queue)
        if table == end:
            return hops
        if seen.get((table, went_up), 1e9) <= cost:
            continue
        seen[table, went_up] = cost
        for link in schema.links:
            for hop in (Hop(link, True), Hop(link, False)):
                if hop.start != table or hop.end == table or len(hops) >= 6:
                    continue
                price = (_UP if hop.up else _DOWN + (_VALLEY if went_up else 0)) + (0 if link.declared else _INFERRED)
                ticket += 1
                heapq.heappush(queue, (cost + price, ticket, hop.end, hop.up, [*hops, hop]))
    return None


def way(schema: DemoSchema, start: str, item: Field) -> list[Hop] | None:
    """The path to a field's table, through its `via` where it has one; None when there is none."""
    if item.via is None:
        return path(schema, start, item.ref.table)
    link, before = _link_of(schema, item.ref.table, item.via), path(schema, start, item.via.table)
    return None if link is None or before is None else [*before, Hop(link, True)]


def _link_of(schema: DemoSchema, table: str, via: Ref) -> Link | None:
    """The link to a table that begins with a column."""
    starts = (via.table, via.column)
    return next(
        (link for link in schema.links if link.target == table and (link.table, link.columns[0]) == starts), None
    )


def distance(schema: DemoSchema, start: str, end: str) -> float:
    """The length of the path in hops, downward ones and detours dearer; 99 when there is none."""
    hops = path(schema, start, end)
    if hops is None:
        return 99.0
    total, went_up = 0.0, False
    for hop in hops:
        total += _UP if hop.up else _DOWN + (_VALLEY if went_up else 0)
        went_up = hop.up
    return total


def choices(schema: DemoSchema, hop: Hop) -> list[Link]:
    """The links between the two tables of a hop: more than one means that the join was a choice."""
    return [link for link in schema.links if link.table == hop.link.table and link.target == hop.link.target]


@dataclass
class Joined:
    """A tree of joined tables grown from a base. `aliases` maps (table, via) to the name in the query."""

    schema: DemoSchema
    base: str
    aliases: dict[tuple[str, Ref | None], str] = field(default_factory=dict)
    hops: list[tuple[str, Hop, str]] = field(default_factory=list)
    many: set[str] = field(default_factory=set)
    missing: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.aliases[self.base, None] = self._alias(self.base)

    def add(self, fields: Iterable[Field]) -> None:
        """Join what these fields need; a table that cannot be reached is noted as missing."""
        for item in fields:
            self.reach(item.ref.table, item.via)

    def reach(self, table: str, via: Ref | None = None) -> str | None:
        """The alias of a table, joined now if need be."""
        if (table, via) in self.aliases:
            return self.aliases[table, via]
        if via is not None:
            return self._through(table, via)
        hops = path(self.schema, self.base, table)
        if hops is None:
            self.missing.append(table)
            return None
        at = self.aliases[self.base, None]
        for hop in hops:
            at = self._hop(at, hop, (hop.end, None))
        return at

    def _through(self, table: str, via: Ref) -> str | None:
        link = _link_of(self.schema, table, via)
        start = self.reach(via.table) if link is not None else None
        if link is None or start is None:
            self.missing.append(table)
            return None
        return self._hop(start, Hop(link, True), (table, via))

    def _hop(self, start: str, hop: Hop, end: tuple[str, Ref | None]) -> str:
        if end in self.aliases:
            return self.aliases[end]
        alias = self._alias(end[0], end[1])
        self.aliases[end] = alias
        self.hops.append((start, hop, alias))
        if not hop.up or start in self.many:
            self.many.add(alias)
        return alias

    def _alias(self, table: str, via: Ref | None = None) -> str:
        name = table.rsplit(".", 1)[-1]
        if via is not None:
            name = f"{name}_{via.column}"
        taken = set(self.aliases.values())
        number = 2
        alias = name
        while alias in taken:
            alias, number = f"{name}_{number}", number + 1
        return alias

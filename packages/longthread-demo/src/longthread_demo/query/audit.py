"""One query that counts what a plan's own query leaves out or counts more than once, so that an answer can say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread_demo.query.plan import PlannedMeasure, QueryPlan, field_of
from longthread_demo.query.render import PlanSql, label_of
from longthread_demo.query.sums import SumRow
from longthread_demo.schema import DemoSchema, key_of
from longthread_demo.talk import DemoCall, Exchange

_ALL, _LEFT_OUT, _SEVERAL, _SUMS = "rows_in_all", "rows_left_out", "rows_in_several_groups", "rows_of_sums"
_TIED = "groups_tied_with_last"


@dataclass(frozen=True)
class Audit:
    """What came back: of how many rows how many are in no group, their total, and how many are in several."""

    query: str
    rows: int
    left_out: int
    total: Any = None
    several: int = 0
    sums: tuple[bool, ...] = ()
    """For each row of sums whether the query would read it, did it not leave it out."""
    tied: int = 0
    """Groups after the limit that are equal to the last one before it."""

    @staticmethod
    def read(exchange: Exchange) -> Audit | None:
        """What an exchange has counted; None where it failed."""
        rows, columns = exchange.data.get("rows") or (), list(exchange.data.get("columns") or ())
        if not rows or len(rows[0]) != len(columns):
            return None
        found = dict(zip(columns, rows[0], strict=True))
        sums = tuple(bool(found.pop(name)) for name in columns if name.startswith(_SUMS))
        rows_in_all, left_out = (int(found.pop(name) or 0) for name in (_ALL, _LEFT_OUT))
        several = int(found.pop(_SEVERAL, 0) or 0)
        tied = max(0, int(found.pop(_TIED, 0) or 0))
        total = next(iter(found.values()), None)
        return Audit(str(exchange.data.get("query") or ""), rows_in_all, left_out, total, several, sums, tied)


def is_audit(call: DemoCall) -> bool:
    """Whether a call is such a query."""
    return call.name == "run_sql" and _LEFT_OUT in str(call.args.get("sql") or "")


def audit_sql(plan: QueryPlan, schema: DemoSchema, sums: Sequence[SumRow] = ()) -> str:
    """The query; empty where nothing can be left out or repeated, and no row of sums is in doubt."""
    if plan.together or plan.share or not (plan.measures or sums):
        return ""
    audit = _Audit(replace(plan, keep_empty=False), schema)
    audit.tied = _ties_sql(plan, schema)
    return audit.of(tuple(item for item in sums if (item.table, None) in audit.joined.aliases))


def _ties_sql(plan: QueryPlan, schema: DemoSchema) -> str:
    """Return the query that counts the groups after the limit that are equal to the last before it; empty without such
    a limit."""
    order = plan.order
    names = [field.ref.column for dimension in plan.dimensions for field in dimension.fields]
    is_ranking = plan.limit is not None and bool(names) and isinstance(order, PlannedMeasure)
    if not is_ranking or plan.wrap or len(set(names)) < len(names):
        return ""
    assert plan.limit is not None and isinstance(order, PlannedMeasure)
    groups = _AllGroups(replace(plan, measures=(order,)), schema)
    label = groups._alias(label_of(order, schema))
    last = plan.offset + plan.limit
    down = " DESC" if plan.descending else ""
    ranked = f"SELECT RANK() OVER (ORDER BY {label}{down}) AS standing FROM (\n{groups.text()}\n) AS each_group"
    return f"SELECT COUNT(*) - {last} FROM ({ranked}) AS ranked WHERE standing <= {last}".replace("\n", "\n    ")


class _AllGroups(PlanSql):
    """The plan's groups without its limit."""

    def _limit(self) -> str:
        return ""

    def _order(self, dims: list[str]) -> str:
        return ""


class _Audit(PlanSql):
    """The plan's joins, all but those of its conditions as outer joins."""

    tied = ""
    """The query that counts ties."""

    def _optional(self, alias: str) -> bool:
        return alias not in self.filtered()

    def of(self, sums: Sequence[SumRow]) -> str:
        lost = self._lost()
        counts = [(_LEFT_OUT, f"SUM(CASE WHEN {lost} THEN 1 ELSE 0 END)" if lost else "0")]
        if self.plan.measures and self.joined.many:
            return self._several(lost)
        if not lost and not sums and not self.tied:
            return ""
        summed = self.plan.measures[0] if self.plan.measures else None
        if lost and summed is not None and summed.function == "sum":
            value = self._value(summed)
            counts.append((label_of(summed, self.schema), f"SUM(CASE WHEN {lost} THEN {value} END)"))
        for at, item in enumerate(sums):
            tests = [self._is_sum(item), *([f"NOT ({lost})"] if lost else [])]
            read = f"SELECT COUNT(*)\n{self._from()}{self._where(tests, with_sums=True)}".replace("\n", "\n    ")
            counts.append((f"{_SUMS}_{at}", f"({read})"))
        listed = ", ".join(f"{text} AS {self._alias(name)}" for name, text in counts)
        listed += self._ties()
        return f"SELECT COUNT(*) AS {_ALL}, {listed}\n{self._from()}{self._where()}"

    def _ties(self) -> str:
        return f", ({self.tied}) AS {self._alias(_TIED)}" if self.tied else ""

    def _is_sum(self, item: SumRow) -> str:
        first = self.schema.tables[item.table].columns[0].name
        return f"{self._field(field_of(item.table, first))} = {self._literal(item.label)}"

    def _lost(self) -> str:
        """The test of a row that comes into no group, or has a price and no quantity; empty where there is none."""
        if not self.plan.measures:
            return ""  # a list shows what has no partner
        starts = {start for start, _, _ in self.joined.hops}
        tests = [
            f"{self._alias(end)}.{self._column((hop.link.references if hop.up else hop.link.columns)[0])} IS NULL"
            for _, hop, end in self.joined.hops
            if self._optional(end) and end not in starts
        ]
        tests += [test.replace(" IS NOT NULL", " IS NULL") for test in self._not_empty()]
        for measure in self.plan.measures:
            if measure.field is not None and measure.factor is not None:
                tests.append(f"({self._field(measure.field)} IS NULL) <> ({self._field(measure.factor)} IS NULL)")
        return " OR ".join(dict.fromkeys(tests))

    def _several(self, lost: str) -> str:
        """Where a row has many partners: the rows in no group, and those in more than one."""
        key = key_of(self.schema.tables[self.base])
        if key is None or not (lost or self.plan.dimensions):
            return ""
        dims = [text for dimension in self.plan.dimensions for text in self._dimension(dimension)]
        keys = [self._field(item.key) for item in self.plan.dimensions if item.key is not None]
        groups = [f"{text} AS g{at}" for at, text in enumerate(dict.fromkeys([*keys, *dims]))]
        row = self._field(field_of(self.base, key))
        inside = f"CASE WHEN {lost} THEN 0 ELSE 1 END" if lost else "1"
        listed = ", ".join([f"{row} AS row_key", f"{inside} AS in_group", *groups])
        pairs = f"SELECT DISTINCT {listed}\n{self._from()}{self._where()}".replace("\n", "\n    ")
        per_row = f"SELECT row_key, SUM(in_group) AS parts\n  FROM (\n    {pairs}\n  ) AS pairs\n  GROUP BY row_key"
        counts = ((_LEFT_OUT, "parts = 0"), (_SEVERAL, "parts > 1"))
        told = ", ".join(f"SUM(CASE WHEN {test} THEN 1 ELSE 0 END) AS {self._alias(name)}" for name, test in counts)
        told += self._ties()
        return f"SELECT COUNT(*) AS {_ALL}, {told}\nFROM (\n  {per_row}\n) AS per_row"

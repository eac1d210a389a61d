"""A plan as SQL of a dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeGuard

from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.quoting import quote_identifier
from longthread_demo.query.dialect import date_part, literal, quote_table
from longthread_demo.query.joins import Hop, Joined, way
from longthread_demo.query.plan import (
    Condition,
    Dimension,
    Field,
    Having,
    Operator,
    PlannedMeasure,
    QueryPlan,
    field_of,
)
from longthread_demo.query.sums import unwanted_label
from longthread_demo.schema import DemoColumn, DemoSchema, DemoTable, Ref, key_of, yes_no

_SPELLED = {"!=": "<>", "not >": "<="}
_NEGATIONS: dict[Operator, Operator] = {"!=": "=", "not in": "in", "not like": "like", "not >": ">"}


class Unreachable(Exception):  # kept apart from errors of the product
    """A table that the plan needs cannot be joined; `args[0]` are (base, table)."""


def sql_of(plan: QueryPlan, schema: DemoSchema) -> str:
    """The query of a plan. Raises Unreachable."""
    return PlanSql(plan, schema).text()


class PlanSql:
    """The SQL of one plan and its parts, with its tables joined from the plan's own."""

    def __init__(self, plan: QueryPlan, schema: DemoSchema) -> None:
        self.plan, self.schema, self.dialect = plan, schema, schema.dialect
        self.base = plan.table
        root = self.base
        if plan.keep_empty and plan.dimensions:
            root = plan.dimensions[0].fields[0].ref.table
        self.joined = Joined(schema, root)
        self.left = root != self.base
        self.joined.reach(self.base)
        plain = [condition for condition in plan.conditions if not self._apart(condition)]
        self.apart = [condition for condition in (*plan.conditions, *plan.part) if self._apart(condition)]
        self.plain = plain
        part = tuple(condition for condition in plan.part if not self._apart(condition))
        self.joined.add(replace(plan, conditions=tuple(plain), part=part).fields())
        for measure in () if plan.together else self._measures():
            self.joined.reach(measure.table)
        if self.joined.missing:
            raise Unreachable((self.base, self.joined.missing[0]))

    def _measures(self) -> list[PlannedMeasure]:
        found = [*self.plan.measures, *(item.measure for item in self.plan.having)]
        if isinstance(self.plan.order, PlannedMeasure) and self.plan.order not in found:
            found.append(self.plan.order)
        return list(dict.fromkeys(found))

    def _apart(self, condition: Condition) -> bool:
        """Whether a condition is a subquery of its own: existence, or the exclusion of a value in another table, which
        a row without a partner there passes."""
        if condition.operator in ("exists", "not exists"):
            return True
        return condition.operator in _NEGATIONS and bool(way(self.schema, self.base, condition.field))

    # Names.

    def _literal(self, value: object) -> str:
        return literal(value, self.dialect)

    def _alias(self, alias: str) -> str:
        return quote_identifier(alias, self.dialect)

    def _field(self, field: Field) -> str:
        if not self.joined.hops:
            return self._column(field.ref.column)
        alias = self.joined.aliases[field.ref.table, field.via]
        return f"{self._alias(alias)}.{self._column(field.ref.column)}"

    def _column(self, name: str) -> str:
        return quote_identifier(name, self.dialect)

    def _from(self) -> str:
        lines = ["FROM " + self._table(self.joined.base, self.joined.aliases[self.joined.base, None])]
        for start, hop, alias in self.joined.hops:
            kind = "LEFT JOIN" if self._optional(alias) else "JOIN"
            lines.append(f"{kind} {self._table(hop.end, alias)} ON {self._on(start, hop, alias)}")
        return "\n".join(lines)

    def _optional(self, alias: str) -> bool:
        """Return whether rows without a partner stay: for a percentage or a group without rows, and in a list where a
        joined table is only shown along with the rows, or sorts them."""
        if self.left or self.plan.share:
            return True
        listed = not (self.plan.measures or self.plan.dimensions or self.plan.distinct)
        return listed and alias not in self.filtered()

    def filtered(self) -> set[str]:
        """The joined tables that a condition needs, and those between."""
        needed = {self.joined.aliases[item.field.ref.table, item.field.via] for item in self.plain}
        way = {end: start for start, _, end in self.joined.hops}
        for name in list(needed):
            while name in way:
                name = way[name]
                needed.add(name)
        return needed

    def _table(self, table: str, alias: str) -> str:
        shown = quote_table(self.schema.tables[table], self.dialect)
        return shown if alias == table else f"{shown} AS {self._alias(alias)}"

    def _on(self, start: str, hop: Hop, end: str) -> str:
        many, one = (start, end) if hop.up else (end, start)
        pairs = zip(hop.link.columns, hop.link.references, strict=False)
        return " AND ".join(
            f"{self._alias(many)}.{self._column(left)} = {self._alias(one)}.{self._column(right)}"
            for left, right in pairs
        )

    # Expressions.

    def _measure(self, measure: PlannedMeasure) -> str:
        if measure.function == "count":
            key = key_of(self.schema.tables[measure.table])
            alias = self.joined.aliases[measure.table, None]
            several = any(alias != name for name in self.joined.many) if measure.table == self.joined.base else True
            if (several and self.joined.many) or self.left or (measure.table != self.joined.base):
                if key is None:
                    return self._rows_found(alias)
                return f"COUNT(DISTINCT {self._field(field_of(measure.table, key))})"
            return "COUNT(*)"
        text = self._value(measure)
        if measure.function == "distinct":
            return f"COUNT(DISTINCT {text})"
        return f"{measure.function.upper()}({text})"

    def _value(self, measure: PlannedMeasure) -> str:
        assert measure.field is not None
        value = self._field(measure.field)
        return f"{value} * {self._field(measure.factor)}" if measure.factor is not None else value

    def _rows_found(self, alias: str) -> str:
        """Return the count of rows of a table without a key: the rows that were found for a row of the base. Raises
        Unreachable: a join repeats them, or none leads to them."""
        way = next((hop for _, hop, end in self.joined.hops if end == alias), None)
        if self.joined.many - {alias} or way is None:
            raise Unreachable((self.base, sorted(self.joined.many - {alias} or {alias})[0]))
        found = way.link.references if way.up else way.link.columns
        return f"COUNT({self._alias(alias)}.{self._column(found[0])})"

    def _share(self, measure: PlannedMeasure) -> str:
        """A percentage: of the rows that pass the tests of `part`, else of each group."""
        whole = self._measure(measure)
        if not self.plan.part:
            return f"100.0 * {whole} / SUM({whole}) OVER ()"
        tests = " AND ".join(self._condition(condition) for condition in self.plan.part)
        value = self._field(measure.field) if measure.field is not None else "1"
        taken = f"{'COUNT' if measure.field is None else 'SUM'}(CASE WHEN {tests} THEN {value} END)"
        return f"100.0 * {taken} / NULLIF({whole}, 0)"

    def _dimension(self, dimension: Dimension) -> list[str]:
        if not dimension.grain:
            return [self._field(field) for field in dimension.fields]
        field = dimension.fields[0]
        column = self.schema.column(field.ref)
        if column.yearish:
            return [self._field(field)]
        return [self._date_part(self._field(field), dimension.grain, column)]

    def _date_part(self, text: str, grain: str, column: DemoColumn) -> str:
        if column.has_months:
            text = f"CONCAT({text}, '-01')" if find_dialect(self.dialect).pipes_are_or else f"({text} || '-01')"
        return date_part(text, grain, self.dialect, is_text=self.dialect != "sqlite" and _is_text(column))

    def _condition(self, condition: Condition) -> str:
        if condition.operator in ("exists", "not exists") or condition in self.apart:
            return self._subquery(condition)
        return self._test(self._field(condition.field), condition)

    def _test(self, text: str, condition: Condition) -> str:
        """The test of a value. An unknown one passes a negation: it is not in Oslo, as far as anyone knows."""
        if condition.operator in _NEGATIONS:
            return f"({text} IS NULL OR {self._compared(text, condition)})"
        return self._compared(text, condition)

    def _compared(self, text: str, condition: Condition) -> str:
        values, operator = condition.values, condition.operator
        if operator == "null":
            column = self.schema.column(condition.field.ref)
            empty = f" OR {text} = ''" if column.kind == "text" else ""
            return f"({text} IS NULL{empty})" if empty else f"{text} IS NULL"
        if operator == "not null":
            return f"{text} IS NOT NULL"
        if operator in ("in", "not in"):
            return f"{text} {operator.upper()} ({', '.join(self._literal(value) for value in values)})"
        if operator in ("like", "not like"):
            return f"LOWER({text}) {operator.upper()} {self._literal(str(values[0]).lower())}"
        if operator == "range":
            return self._range(text, condition)
        if operator == "ranges":
            return f"({' OR '.join(self._range(text, replace(condition, values=pair)) for pair in values)})"
        if operator == "newest":
            return self._newest(text, condition)
        value = values[0]
        column = self.schema.column(condition.field.ref)
        written = yes_no(column)
        if isinstance(value, bool) and written is not None:
            value = written[0 if value else 1]
        elif isinstance(value, bool) and not re.search("bool", column.type, re.I):
            value = int(value)
        return f"{text} {_SPELLED.get(operator, operator)} {self._literal(value)}"

    def _range(self, text: str, condition: Condition) -> str:
        low, high = condition.values
        column = self.schema.column(condition.field.ref)
        if column.yearish:
            first, last = (int(low[:4]) if low else None), (int(high[:4]) if high else None)
            if high and not high.endswith("-01-01") and last is not None:
                last += 1
            if first is not None and last == first + 1:
                return f"{text} = {first}"
            low, high = first, last
        elif _is_text(column) and all(bound is None or bound.endswith("-01") for bound in (low, high)):
            low, high = _cut(low), _cut(high)
        tests = [f"{text} >= {self._literal(low)}"] if low is not None else []
        tests += [f"{text} < {self._literal(high)}"] if high is not None else []
        return " AND ".join(tests)

    def _newest(self, text: str, condition: Condition) -> str:
        grain, back = condition.values
        ref = condition.field.ref
        column = self.schema.column(ref)
        table = quote_table(self.schema.tables[ref.table], self.dialect)
        source = f"SELECT MAX({self._column(ref.column)}) FROM {table}"
        if column.yearish:
            return f"{text} = ({source}){f' - {back}' if back else ''}"
        newest = f"({source})"
        mine, other = (self._date_part(part, grain, column) for part in (text, newest))
        return f"{mine} = {other}{f' - {back}' if back and grain == 'year' else ''}"

    def _subquery(self, condition: Condition) -> str:
        """`[NOT] EXISTS (…)` over the path from the base to the condition's table."""
        hops = way(self.schema, self.base, condition.field)
        if not hops:
            raise Unreachable((self.base, condition.field.ref.table))
        inner = Joined(self.schema, hops[0].end)
        first = "x_" + inner.aliases.pop((hops[0].end, None))
        inner.aliases[hops[0].end, None] = first
        at = first
        for hop in hops[1:]:
            at = inner._hop(at, hop, (hop.end, condition.field.via if hop is hops[-1] else None))
        lines = [f"SELECT 1 FROM {self._table(hops[0].end, first)}"]
        lines += [f"JOIN {self._table(hop.end, end)} ON {self._on(start, hop, end)}" for start, hop, end in inner.hops]
        outer = self.joined.aliases[self.base, None]
        tests = [self._on(outer, hops[0], first)]
        exists = condition.operator in ("exists", "not exists")
        inside: Sequence[Condition] = condition.values if exists else [_positive(condition)]
        for test in inside:
            tests.append(self._test(f"{self._alias(at)}.{self._column(test.field.ref.column)}", test))
        word = "EXISTS" if condition.operator == "exists" else "NOT EXISTS"
        return f"{word} ({' '.join(lines)} WHERE {' AND '.join(tests)})"

    # The whole.

    def text(self) -> str:
        plan = self.plan
        if plan.together:
            counts = (f"({self._count_all(self.schema.tables[m.table])}) AS " for m in plan.measures)
            return "SELECT " + ",\n  ".join(
                count + self._alias(label) for count, label in zip(counts, self._labels(), strict=True)
            )
        if not plan.measures and not plan.dimensions:
            return self._list()
        other = next((m.table for m in self._measures() if m.function in ("sum", "avg") and m.table != self.base), None)
        if other is not None:
            raise Unreachable((self.base, other))  # its rows would count once for each of the base
        if self.joined.many and any(m.function in ("sum", "avg") for m in self._measures()) and self._multiplied():
            return self._deduplicated()
        return self._grouped()

    def _count_all(self, table: DemoTable) -> str:
        label = unwanted_label(self.plan, table)
        test = f" WHERE {self._differs(self._column(table.columns[0].name), label)}" if label else ""
        return f"SELECT COUNT(*) FROM {quote_table(table, self.dialect)}{test}"

    def _multiplied(self) -> bool:
        """Whether a join repeats rows of the table that is summed."""
        alias = self.joined.aliases[self.base, None]
        return bool(self.joined.many - {alias}) and self.joined.base == self.base

    def _where(self, extra: Iterable[str] = (), *, with_sums: bool = False) -> str:
        apart = [condition for condition in self.apart if condition in self.plan.conditions]
        tests = [self._condition(condition) for condition in (*self.plain, *apart)]
        tests += [] if with_sums else self._no_sums()
        tests = list(dict.fromkeys([*tests, *extra]))
        return "\nWHERE " + "\n  AND ".join(tests) if tests else ""

    def _no_sums(self) -> list[str]:
        """The tests that a row is no sum of the others; one that a join did not find is none."""
        tests = []
        for name, via in self.joined.aliases:
            if label := unwanted_label(self.plan, self.schema.tables[name]):
                first = self.schema.tables[name].columns[0].name
                tests.append(self._differs(self._field(Field(Ref(name, first), via)), label))
        return tests

    def _differs(self, text: str, label: str) -> str:
        return f"({text} IS NULL OR {text} <> {self._literal(label)})"

    def _list(self) -> str:
        plan = self.plan
        shown = [self._field(field) for field in plan.shown] or ["*"]
        once = self._each_once()
        distinct = plan.distinct or (bool(self.joined.many) and not once)
        extra: list[str] = []
        order = ""
        if isinstance(plan.order, Field):
            by = self._field(plan.order)
            if plan.limit is not None:
                extra.append(f"{by} IS NOT NULL")
            order = f"\nORDER BY {by}{' DESC' if plan.descending else ''}"
            if (distinct or once) and by not in shown:
                shown.append(by)
        elif (distinct or once) and len(shown) == 1:
            order = f"\nORDER BY {shown[0]}"
        selected = ("DISTINCT " if distinct else "") + ", ".join(dict.fromkeys(shown))
        group = self._group([*once, *shown] if once else [])
        return f"SELECT {selected}\n{self._from()}{self._where(extra)}{group}{order}{self._limit()}"

    def _each_once(self) -> list[str]:
        """The key of the rows listed, where a join repeats them: two of one name stay two."""
        key = key_of(self.schema.tables[self.base])
        wanted = self.joined.many and not self.plan.distinct and self.plan.shown
        return [self._field(field_of(self.base, key))] if wanted and key is not None else []

    def _group(self, by: list[str]) -> str:
        return f"\nGROUP BY {', '.join(dict.fromkeys(by))}" if by else ""

    def _limit(self) -> str:
        if self.plan.limit is None:
            return ""
        return f"\nLIMIT {self.plan.limit}" + (f" OFFSET {self.plan.offset}" if self.plan.offset else "")

    def _labels(self) -> list[str]:
        """Names of the result's columns that are computed."""
        found = [label_of(measure, self.schema) for measure in self.plan.measures]
        return [f"{label}_percent" for label in found] if self.plan.share else found

    def _grouped(self) -> str:
        plan = self.plan
        labels = self._labels()
        dims = [text for dimension in plan.dimensions for text in self._dimension(dimension)]
        names = [self._named(dimension) for dimension in plan.dimensions]
        flat = [name for group in names for name in group]
        selected = [f"{text} AS {self._alias(name)}" if name else text for text, name in zip(dims, flat, strict=True)]
        measured = self._share if plan.share else self._measure
        selected += [f"{measured(m)} AS {self._alias(label)}" for m, label in zip(plan.measures, labels, strict=True)]
        keys = [self._field(d.key) for d in plan.dimensions if d.key is not None and self._field(d.key) not in dims]
        text = f"SELECT {', '.join(selected)}\n{self._from()}{self._where(self._not_empty())}"
        text += self._group([*keys, *dims])
        having = [self._having(item) for item in plan.having]
        having += [f"{self._measure(plan.order)} IS NOT NULL"] if self._ranks_amounts(plan.order) else []
        if having:
            text += "\nHAVING " + " AND ".join(having)
        if plan.wrap:
            return self._wrapped(text, labels)
        return text + self._order(dims) + self._limit()

    def _ranks_amounts(self, order: object) -> TypeGuard[PlannedMeasure]:
        """Whether a superlative is of amounts: it does not mean a group where none is known."""
        is_amount = isinstance(order, PlannedMeasure) and order.function not in ("count", "distinct")
        return is_amount and self.plan.limit is not None and not self.plan.share

    def _not_empty(self) -> list[str]:
        """A superlative over groups does not mean the group without a name."""
        plan = self.plan
        if plan.limit is None and not any(dimension.grain for dimension in plan.dimensions):
            return []
        return [f"{self._field(d.fields[0])} IS NOT NULL" for d in plan.dimensions if d.key is None]

    def _named(self, dimension: Dimension) -> list[str]:
        if dimension.grain:
            column = self.schema.column(dimension.fields[0].ref)
            return ["" if column.yearish else dimension.grain]
        return [f"{field.via.column}_{field.ref.column}" if field.via else "" for field in dimension.fields]

    def _having(self, item: Having) -> str:
        return f"{self._measure(item.measure)} {item.operator} {self._literal(item.value)}"

    def _wrapped(self, text: str, labels: list[str]) -> str:
        inner = text.replace("\n", "\n  ")
        if self.plan.wrap == "count":
            return f"SELECT COUNT(*) AS groups_found\nFROM (\n  {inner}\n) AS per_group"
        label = self._alias(labels[0])
        value = f"{label} * 1.0" if self.plan.wrap == "avg" else label
        name = self._alias(f"{self.plan.wrap}_{labels[0]}")
        return f"SELECT {self.plan.wrap.upper()}({value}) AS {name}\nFROM (\n  {inner}\n) AS per_group"

    def _order(self, dims: list[str]) -> str:
        plan = self.plan
        if not dims:
            return ""
        direction = " DESC" if plan.descending else ""
        if isinstance(plan.order, PlannedMeasure):
            if plan.order in plan.measures:
                label = self._alias(label_of(plan.order, self.schema))
                return f"\nORDER BY {label}{direction}, {dims[0]}"
            return f"\nORDER BY {self._measure(plan.order)}{direction}, {dims[0]}"
        if isinstance(plan.order, Field):
            return f"\nORDER BY {self._field(plan.order)}{direction}"
        if plan.order == "dimension" or any(dimension.grain for dimension in plan.dimensions):
            down = direction if plan.order == "dimension" else ""
            return "\nORDER BY " + ", ".join(text + down for text in dims)
        if plan.measures:
            return f"\nORDER BY {self._alias(self._labels()[0])} DESC, {dims[0]}"
        return f"\nORDER BY {dims[0]}"

    def _deduplicated(self) -> str:
        """A sum over rows that a join repeats: each row of the summed table counts once in its group."""
        plan = self.plan
        key = key_of(self.schema.tables[self.base])
        if key is None:
            raise Unreachable((self.base, sorted(self.joined.many)[0]))
        inner: list[str] = []
        dims: list[str] = []
        for number, dimension in enumerate(plan.dimensions, 1):
            for part, text in enumerate(self._dimension(dimension), 1):
                label = f"by_{number}_{part}" if part > 1 else f"by_{number}"
                inner.append(f"{text} AS {label}")
                dims.append(label)
        inner.append(f"{self._field(field_of(self.base, key))} AS row_key")
        outer = list(dims)
        having = []
        for number, measure in enumerate(self._measures(), 1):
            label = self._alias(label_of(measure, self.schema))
            if measure.field is None:
                text = "COUNT(*)"
            else:
                inner.append(f"{self._value(measure)} AS value_{number}")
                counted = (
                    "COUNT(DISTINCT value_{})"
                    if measure.function == "distinct"
                    else measure.function.upper() + "(value_{})"
                )
                text = counted.format(number)
            if measure in plan.measures:
                outer.append(f"{text} AS {label}")
            having += [
                f"{text} {item.operator} {self._literal(item.value)}" for item in plan.having if item.measure == measure
            ]
            having += [f"{text} IS NOT NULL"] if measure == plan.order and self._ranks_amounts(measure) else []
        body = f"SELECT DISTINCT {', '.join(inner)}\n{self._from()}{self._where(self._not_empty())}".replace(
            "\n", "\n  "
        )
        text = f"SELECT {', '.join(outer)}\nFROM (\n  {body}\n) AS each_once"
        if dims:
            text += f"\nGROUP BY {', '.join(dims)}"
        if having:
            text += "\nHAVING " + " AND ".join(having)
        if plan.wrap:
            return self._wrapped(text, self._labels())
        if dims and isinstance(plan.order, PlannedMeasure):
            text += f"\nORDER BY {self._alias(label_of(plan.order, self.schema))}{' DESC' if plan.descending else ''}"
        elif dims:
            text += f"\nORDER BY {dims[0]}"
        return text + self._limit()


def _positive(condition: Condition) -> Condition:
    return replace(condition, operator=_NEGATIONS[condition.operator])


def label_of(measure: PlannedMeasure, schema: DemoSchema) -> str:
    """The name of a measure's column in the result: `customer_count`, `total_unit_price`."""
    name = measure.field.ref.column if measure.field else measure.table.rsplit(".", 1)[-1]
    plain = re.sub(r"\W+", "_", name).lower()
    if measure.factor is not None:
        plain = f"{plain}_x_{re.sub(r'[^0-9a-zA-Z_一-龥]+', '_', measure.factor.ref.column).lower()}"
    prefix = {"sum": "total", "avg": "average", "min": "min", "max": "max"}
    if measure.function == "count":
        return f"{plain}_count"
    if measure.function == "sum" and plain.startswith("total"):
        return f"sum_of_{plain}"
    return f"distinct_{plain}" if measure.function == "distinct" else f"{prefix[measure.function]}_{plain}"


def _is_text(column: DemoColumn) -> bool:
    """Whether a column's days are written as text."""
    return not re.search("date|time", column.type, re.I)


def _cut(day: str | None) -> str | None:
    """Cut the first day of a month or year to that: a text such as `2024-02` comes before its days."""
    return re.sub(r"(-01){1,2}$", "", day) if day is not None else None

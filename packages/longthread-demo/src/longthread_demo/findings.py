"""The sentence that an answer begins with: what the rows say. "1990–2025: 18 to 81 launches a year".

Each number in it is a cell of the result, or how many rows it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from longthread.tools.analysis.column_format import ColumnFormat, FormattedRows, number_in, with_places
from longthread_demo.periods import PeriodSeries, step_of
from longthread_demo.query.audit import Audit
from longthread_demo.query.display import naming_columns
from longthread_demo.query.plan import Dimension, Field, PlannedMeasure, QueryPlan
from longthread_demo.query.render import PlanSql
from longthread_demo.query.wording import part_in_words
from longthread_demo.schema import DemoSchema, key_of
from longthread_demo.sentence_words import SentenceWords, joined

_GRAINS_ZH = {"year": "年", "quarter": "季度", "month": "月", "day": "天"}
_PERIODS_ZH = {"year": "年份", "quarter": "季度", "month": "月份", "day": "日期"}
_NAMED = 3
"""Rows that are named, at most."""
STATED = 4
"""Cells of the only row that are stated, at most."""


def read_rows(data: Mapping[str, Any], plan: QueryPlan, schema: DemoSchema) -> FormattedRows:
    """The result of a plan's query, from its observation."""
    years = {field.ref.column for field in plan.fields() if field.ref.column and schema.column(field.ref).yearish}
    found = FormattedRows.read(data, {name: ColumnFormat("plain", places=0) for name in years})
    if not plan.share or not found.formats:
        return found
    share = with_places(ColumnFormat("percent"), [row[-1] for row in found.rows])
    return replace(found, formats=(*found.formats[:-1], share))


class FoundSentence:
    """The meaning of one result, in one sentence. `audit` is what was counted for it."""

    def __init__(self, words: SentenceWords, found: FormattedRows, audit: Audit | None = None) -> None:
        self.audit = audit
        self.words, self.found, self.plan, self.say = words, found, words.plan, words.say
        self.first_measure = len(found.columns) - len(self.plan.measures)

    def sentence(self) -> str:
        """The sentence, without its end; empty where not all rows are there and nothing can be said of them."""
        plan = self.plan
        if not plan.measures:
            return self._of_list()
        if plan.wrap or not plan.dimensions:
            return self._of_value() if len(self.found.columns) == 1 else self._of_values()
        if len(self.found.rows) == 1:
            return self._of_group()
        if plan.limit is not None:
            return self._of_ranking()
        if not self.found.is_whole:
            is_counted = self.found.total and not any(self._may_lack(each) for each in plan.dimensions)
            return self._head(self.found.total or 0) + self.words.where() if is_counted else ""
        return self._of_groups()

    def _value(self, row: int, column: int) -> str:
        return self.found.strong(row, [column])

    # One row of values.

    def _of_values(self) -> str:
        """Several measures: 40 customers and 12 orders."""
        told = (self._write_measure(measure, 0, at) for at, measure in enumerate(self.plan.measures))
        return self.say(" and ", "，").join(told) + self.words.where()

    def _write_measure(self, measure: PlannedMeasure, row: int, column: int) -> str:
        """A measure with its value: 12 launches, total price 99."""
        value, counted = self._value(row, column), self.words.counted(measure)
        if self.plan.share:
            whole = counted or self.words.amount(measure)
            return self.say(f"{value} of {whole}", f"{joined('占', whole)}的 {value}")
        if counted:
            return self.say(f"{value} {counted}", joined(f"{value} 个", counted))
        return f"{self.words.amount(measure)} {value}"

    def _of_value(self) -> str:
        words, value = self.words, self._value(0, 0)
        measure = self.plan.measures[0]
        if self.plan.wrap:
            return self._of_wrap(value) + words.where()
        if self.plan.share:
            part = words.own(part_in_words(self.plan, words.language, home=self.plan.table))
            return self._write_measure(measure, 0, 0) + self.say(f": {part}", f"：{part}") + words.where()
        counted = words.counted(measure)
        if counted:
            only = value == "**1**" and measure.function == "count"
            english = f"There is {value} row of {counted}" if only else f"There are {value} {counted}"
            return self.say(english, joined(f"共有 {value} 个", counted)) + words.where()
        rows, amount = words.rows_of(measure.table), words.amount(measure)
        subject = joined(joined(joined(rows, "的"), amount), "是")
        return self.say(f"The {amount} of {rows} is {value}", f"{subject} {value}") + words.where()

    def _of_wrap(self, value: str) -> str:
        """How many groups there are, or a function of their first measure."""
        words, wrap = self.words, self.plan.wrap
        if wrap == "count":
            return self.say(f"There are {words.groups(value)}", f"共有 {words.groups(value)}")
        group = self.say(" and ", "、").join(words.group(dimension) for dimension in self.plan.dimensions)
        measured = words.measured(self.plan.measures[0])
        function = words.function(wrap)
        return self.say(
            f"The {function} {measured}, by {group}, is {value}",
            f"{joined(joined('每个', group), '的')}{joined(function, measured)}是 {value}",
        )

    # Groups.

    def _label(self, row: int) -> str:
        """What a row's group is called; one without a name by its key."""
        [first, *_] = self.plan.dimensions
        label = self.found.strong(row, range(max(1, self.first_measure)))
        if first.key is None or first.key.ref != first.fields[0].ref:
            return label
        group = self.words.group(first)
        return self.say(f"{group} {label}", joined(group, label))

    def _of_group(self) -> str:
        told = (self._write_measure(each, 0, self.first_measure + at) for at, each in enumerate(self.plan.measures))
        values = self.say(", ", "，").join(told)
        return f"{self._label(0)}{self.say(': ', '：')}{values}{self._tied()}{self.words.where()}"

    def _of_ranking(self) -> str:
        """The first groups with their values, and the last one."""
        number, column = len(self.found.rows), self.first_measure
        values = [self._write_measure(self.plan.measures[0], 0, column)]
        values += [self._value(row, column) for row in range(1, min(number, _NAMED))]
        text = self._list_names([self._beside(self._label(row), value) for row, value in enumerate(values)])
        if number > _NAMED:
            text += f" … {self._beside(self._label(number - 1), self._value(number - 1, column))}"
        return text + self._tied() + self.words.where()

    def _tied(self) -> str:
        """Return how many groups that the limit cuts off are equal to the last one."""
        audit, rows = self.audit, len(self.found.rows)
        if audit is None or not audit.tied or rows != self.plan.limit:
            return ""
        number, cite = f"**{audit.tied:,}**", f" [{audit.query}]" if audit.query else ""
        others = "other has" if audit.tied == 1 else "others have"
        order = self.plan.order
        is_count = isinstance(order, PlannedMeasure) and order.function in ("count", "distinct")
        same = "as many" if is_count else "the same"
        last = " as the last" if rows > 1 else ""
        beside = "与最后一个并列" if rows > 1 else "并列"
        return self.say(f" (and {number} {others} {same}{last}{cite})", f"（另有 {number} 个{beside}{cite}）")

    def _beside(self, name: str, value: str) -> str:
        return self.say(f"{name} ({value})", f"{name}（{value}）") if value else name

    def _list_names(self, names: Sequence[str]) -> str:
        return self.say(", ", "、").join(names)

    def _of_groups(self) -> str:
        """From the least to the most of each measure, over all groups; empty where it is not clear what they are."""
        without = [row for row in range(len(self.found.rows)) if row not in self.named]
        if without and (len(without) > 1 or len(self.named) < 2 or len(self.plan.dimensions) > 1):
            return ""
        ranges = [text for at, each in enumerate(self.plan.measures) if (text := self._range(each, at))]
        told = f"{self.say(': ', '：')}{self.say(', ', '，').join(ranges)}" if ranges else ""
        rest = self._without(without[0]) if without else ""
        if self.series is None:
            return self._head(len(self.named)) + self.words.where() + told + rest
        field = self.plan.dimensions[0].fields[0]
        said = [item for item in self.plan.conditions if item.field == field and self.series.says(item)]
        where = self.words.where(but=said)
        return self._period(self.series) + told + (self.say(",", "") if where else "") + where + rest

    def _without(self, row: int) -> str:
        """The values of the rows that are in no group."""
        group = self.words.group(self.plan.dimensions[0])
        values = [self._write_measure(each, row, self.first_measure + at) for at, each in enumerate(self.plan.measures)]
        head = self.say(f"; without {group}: ", f"；{joined(joined('没有', group), '的')}：")
        return head + self.say(", ", "，").join(values)

    def _head(self, number: int) -> str:
        return self.words.groups(f"**{number:,}**")

    @cached_property
    def named(self) -> list[int]:
        """The rows that are groups: NULL is none."""
        return [row for row in range(len(self.found.rows)) if self._is_group(row)]

    def _is_group(self, row: int) -> bool:
        cells = iter(self.found.rows[row])
        labels = [(each, [next(cells) for _ in each.fields]) for each in self.plan.dimensions]
        return not any(self._may_lack(each) and all(cell is None for cell in label) for each, label in labels)

    def _may_lack(self, dimension: Dimension) -> bool:
        """Whether NULL stands for rows without a group, and not for one without a name."""
        return dimension.key is None or dimension.key in dimension.fields or self.plan.share

    @cached_property
    def series(self) -> PeriodSeries | None:
        """The groups as years, quarters, months or days; None where they are others."""
        [first, *others] = self.plan.dimensions
        is_year = first.key is None and self.words.schema.column(first.fields[0].ref).yearish
        grain = "year" if is_year else first.grain
        if others or not grain:
            return None
        steps = [(step_of(self.found.rows[row][0], grain), row) for row in self.named]
        known = sorted((step, row) for step, row in steps if step is not None)
        if not known or len(known) < len(steps):
            return None
        (begin, low), (end, high) = known[0], known[-1]
        labels = (self.found.format_cell(low, 0), self.found.format_cell(high, 0))
        return PeriodSeries(grain, begin, end, *labels, number=len({step for step, _ in known}))

    def _period(self, series: PeriodSeries) -> str:
        """From the first to the last date, whichever way they are sorted; how many there are, where some are missing:
        a period without rows is in no result."""
        first, last, is_year = series.begin, series.end, series.grain == "year"
        if series.is_gapless and is_year:
            return self.say(f"{first}–{last}", f"{first}–{last} 年")
        if series.is_gapless:
            return self.say(f"{first} to {last}", f"{first} 至 {last}")
        measure = self.plan.measures[0]
        rows = self.words.rows_of(measure.table) if self._counts_rows(measure) else ""
        told = f"**{series.number:,}** {series.grain}s from {first} to {last}{f' with {rows}' if rows else ''}"
        holding = joined(joined("之间有", rows or "数据"), "的")
        unit = " 年" if is_year else " "
        return self.say(told, f"{first} 至 {last}{unit}{holding}{_PERIODS_ZH[series.grain]}共 **{series.number:,}** 个")

    def _counts_rows(self, measure: PlannedMeasure) -> bool:
        """Whether a measure counts the rows that make a group."""
        return measure.function == "count" and measure.table == self.plan.table and not self.plan.share

    def _range(self, measure: PlannedMeasure, at: int) -> str:
        """Return the range from the least to the most of a measure, and the first group where it is the most. It is
        empty without numbers, and where one number stands next to NULL."""
        column = self.first_measure + at
        cells = [(number_in(self.found.rows[row][column]), row) for row in self.named]
        known = sorted((number, row) for number, row in cells if number is not None)
        is_whole = len(known) == len(cells)
        if not known or (known[0][0] == known[-1][0] and not is_whole):
            return ""
        (least, low), (most, high) = known[0], known[-1]
        if least == most:
            one = self._value(low, column)
            return self._per_group(measure, self.say(one, f"都是 {one}"), self.say(" each", ""))
        span = f"{self._value(low, column)}{self.say(' to ', ' 到 ')}{self._value(high, column)}"
        text = self._per_group(measure, span, "", is_each=is_whole)
        is_alone = known[-2][0] != most and any(
            cell is not None for cell in self.found.rows[high][: self.first_measure]
        )
        return text + self._top(measure, high) if is_alone and at == 0 else text

    def _per_group(self, measure: PlannedMeasure, span: str, each: str, *, is_each: bool = True) -> str:
        """A measure's span, of each period if `is_each`."""
        words, counted, series = self.words, self.words.counted(measure), self.series
        if self.plan.share:
            whole = counted or words.amount(measure)
            return self.say(f"{span} of {whole}", f"{joined('各占', whole)}的 {span}")
        if series is not None:
            each = self.say(" each", f"每{_GRAINS_ZH[series.grain]}") if is_each else ""
        if words.is_chinese:
            return f"{joined(each, words.measured(measure))} {span}"
        is_gapless = series is not None and series.is_gapless
        if series is not None and not is_gapless and measure == self.plan.measures[0] and self._counts_rows(measure):
            return span + each  # the period has said of what
        each = f" a {series.grain}" if series is not None and is_gapless and each else each
        return f"{span} {counted}{each}" if counted else f"{words.amount(measure)} {span}{each}"

    def _top(self, measure: PlannedMeasure, row: int) -> str:
        is_count = measure.function in ("count", "distinct") and not self.plan.share
        label = self._label(row)
        if self.words.is_chinese:
            is_year = self.series is not None and self.series.grain == "year"
            return f"，{label}{' 年' if is_year else ' '}{'最多' if is_count else '最高'}"
        return f", {'most' if is_count else 'highest'}{': ' if self.series is None else ' in '}{label}"

    # Lists.

    def _of_list(self) -> str:
        number = len(self.found.rows)
        if number == 1 and len(self.found.columns) <= STATED:
            return self._of_row()
        if self.plan.limit is not None and number > 1:
            return self._of_sorted()
        total = self.found.total
        if total is None:
            return ""
        names = [self.found.strong(row, self._names()) for row in range(number)] if number <= _NAMED else []
        told = self.say(": ", "：") + self._list_names(names) if names and self.found.is_whole else ""
        return self._count_in_words(f"**{total:,}**", total) + self.words.where() + told

    def _count_in_words(self, shown: str, number: int) -> str:
        what = self._what() if number > 1 else ""
        if not what:
            return self.say(f"Found {shown} row{'s' if number > 1 else ''}", f"找到 {shown} 行")
        return self.say(f"Found {shown} {what}", joined(f"找到 {shown} 个", what))

    def _what(self) -> str:
        """What each row is; empty where a join may repeat it."""
        plan = self.plan
        if plan.distinct:
            return self.words.different(plan.shown[0]) if len(plan.shown) == 1 else ""
        return "" if PlanSql(plan, self.words.schema).joined.many else self.words.rows_of(plan.table)

    def _names(self) -> list[int]:
        """The columns that name a row."""
        naming = naming_columns(self.words.schema.tables[self.plan.table])
        return [at for at, name in enumerate(self.found.columns) if name in naming] or [0]

    def _of_row(self) -> str:
        """Return the cells of the only row: its name first, then the others with their columns."""
        names, columns = self._names(), self.found.columns
        others = [
            f"{self.words.column(columns[at])} {self._value(0, at)}" for at in range(len(columns)) if at not in names
        ]
        told = self.say(": ", "：") + self.say(", ", "，").join(others) if others else ""
        name = self.found.strong(0, names)
        if others and key_of(self.words.schema.tables[self.plan.table]) == columns[names[0]]:
            name = f"{self.words.column(columns[names[0]])} {name}"
        return name + told + self.words.where()

    def _of_sorted(self) -> str:
        """The first rows of a sorted list, each with what it is sorted by."""
        names, columns = self._names(), self.found.columns
        by = self.plan.order.ref.column if isinstance(self.plan.order, Field) else ""
        at = columns.index(by) if by in columns and columns.index(by) not in names else None
        told = []
        for row in range(min(len(self.found.rows), _NAMED)):
            value = "" if at is None else self._value(row, at)
            named = f"{self.words.column(by)} {value}" if value and row == 0 else value
            told.append(self._beside(self.found.strong(row, names), named))
        return self._list_names(told) + (" …" if len(self.found.rows) > _NAMED else "") + self.words.where()

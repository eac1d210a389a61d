"""The words of a sentence about a plan's result: what is counted, what an amount is, what rows are grouped by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from longthread.tools.analysis.schema_linking import is_cjk
from longthread_demo.nouns import name_in_words, plural_of, table_in_words, table_plural
from longthread_demo.query.plan import Condition, Dimension, Field, PlannedMeasure, QueryPlan
from longthread_demo.query.wording import conditions_in_words
from longthread_demo.schema import DemoSchema

_FUNCTIONS = {
    "en": {"sum": "total", "avg": "average", "min": "lowest", "max": "highest"},
    "zh": {"sum": "总", "avg": "平均", "min": "最低", "max": "最高"},
}
_OF_DATES = {"en": {"min": "earliest", "max": "latest"}, "zh": {"min": "最早", "max": "最晚"}}


@dataclass(frozen=True)
class SentenceWords:
    """The words about one plan in one language. `own` marks numbers that are of no query, such as those of a name."""

    plan: QueryPlan
    schema: DemoSchema
    language: str
    own: Callable[[str], str]

    @property
    def is_chinese(self) -> bool:
        return self.language == "zh"

    def say(self, english: str, chinese: str) -> str:
        """The one of the language."""
        return chinese if self.is_chinese else english

    def where(self, *, but: Sequence[Condition] = ()) -> str:
        """Return what holds for the rows, to stand after them; without the conditions `but`."""
        said = self.own(conditions_in_words(self.plan, self.language, home=self.plan.table, but=but))
        return self.say(f" where {said}", f"（{said}）") if said else ""

    def rows_of(self, table: str) -> str:
        """What the rows of a table are called, in plural."""
        found = self.schema.tables[table]
        return self.own(table_in_words(found, chinese=True) if self.is_chinese else table_plural(found))

    def column(self, name: str) -> str:
        """A column's name in words."""
        return self.own(name_in_words(name, chinese=self.is_chinese))

    def function(self, name: str, *, dated: bool = False) -> str:
        """An aggregate function as an adjective; of dates, the lowest is the earliest."""
        return {**_FUNCTIONS[self.language], **(_OF_DATES[self.language] if dated else {})}[name]

    def counted(self, measure: PlannedMeasure) -> str:
        """What a count counts, in plural; empty for an amount."""
        if measure.function == "count":
            return self.rows_of(measure.table)
        return self.amount(measure) if measure.function == "distinct" else ""

    def amount(self, measure: PlannedMeasure) -> str:
        """A function of a column: total price, 平均价格, different countries."""
        assert measure.field is not None
        name = self.column(measure.field.ref.column)
        if measure.factor is not None:
            name += f" × {self.column(measure.factor.ref.column)}"
        if measure.function == "distinct":
            return self.different(measure.field)
        function = self.function(measure.function, dated=self.schema.column(measure.field.ref).kind == "date")
        is_said = name.lower().startswith((function, _FUNCTIONS["en"][measure.function]))
        return name if is_said else self.say(f"{function} {name}", joined(function, name))

    def measured(self, measure: PlannedMeasure) -> str:
        """A measure as a noun: number of orders, 订单数, total price."""
        counted = self.counted(measure)
        return self.say(f"number of {counted}", joined(counted, "数")) if counted else self.amount(measure)

    def different(self, field: Field) -> str:
        """The different values of a column."""
        name = self.column(field.ref.column)
        return self.say(f"different {plural_of(name) or f'values of {name}'}", joined("不同的", name))

    def groups(self, number: str) -> str:
        """How many groups there are: 24 countries."""
        words = [self.group(dimension) for dimension in self.plan.dimensions]
        if len(words) == 1:
            many = plural_of(words[0]) or f"values of {words[0]}"
            return self.say(f"{number} {many}", joined(f"{number} 个", words[0]))
        return self.say(f"{number} combinations of {' and '.join(words)}", f"{'、'.join(words)}的 {number} 种组合")

    def group(self, dimension: Dimension) -> str:
        """What one group is: a country, a customer."""
        field = dimension.fields[0]
        if dimension.key is None:
            return self.column(field.ref.column)
        if field.via is not None:
            return self.column(field.via.column.removesuffix("_id"))
        return self.own(table_in_words(self.schema.tables[field.ref.table], chinese=self.is_chinese))


def joined(left: str, right: str) -> str:
    """Two parts of a Chinese sentence, with a space where a character meets a letter or a digit."""
    apart = left and right and is_cjk(left[-1]) != is_cjk(right[0])
    return f"{left} {right}" if apart else left + right

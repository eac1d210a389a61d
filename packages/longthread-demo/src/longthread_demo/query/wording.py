"""A plan in words, so that everyone sees how the question was read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from longthread_demo.query.plan import Condition, Dimension, Field, PlannedMeasure, QueryPlan
from longthread_demo.schema import DemoSchema

_FUNCTIONS = {
    "en": {
        "count": "number of",
        "distinct": "number of different",
        "sum": "total",
        "avg": "average",
        "min": "lowest",
        "max": "highest",
    },
    "zh": {
        "count": "数量",
        "distinct": "不同值的数量",
        "sum": "总和",
        "avg": "平均值",
        "min": "最小值",
        "max": "最大值",
    },
}
_OPERATORS = {
    "=": "=",
    "!=": "≠",
    ">": ">",
    ">=": "≥",
    "<": "<",
    "<=": "≤",
    "like": "~",
    "not like": "!~",
    "not >": "≤",
}
_GRAINS = {"zh": {"year": "年", "month": "月", "quarter": "季度", "day": "日"}, "en": {}}


def plan_in_words(plan: QueryPlan, schema: DemoSchema, language: str) -> str:
    """One line: what, by what, where, in which order."""
    chinese = language == "zh"
    what = _what(plan, language)
    if plan.share:
        what = _share(plan, what, language)
    if plan.dimensions:
        joint = "、" if chinese else " and "
        dims = joint.join(_dimension(dimension, language) for dimension in plan.dimensions)
        apart = [" " if dims.endswith("`") else "", " " if what.startswith("`") else ""]
        what = f"按 {dims}{apart[0]}统计的{apart[1]}{what}" if chinese else f"{what} by {dims}"
    if plan.wrap == "count":
        what = f"{what} 的组数" if chinese else f"how many groups in: {what}"
    elif plan.wrap:
        what = f"{what} 的{_FUNCTIONS['zh'][plan.wrap]}" if chinese else f"{_FUNCTIONS['en'][plan.wrap]} of the {what}"
    tests = conditions_in_words(plan, language)
    if tests:
        what += ("，条件：" if chinese else ", where ") + tests
    return what + _end(plan, language)


def conditions_in_words(plan: QueryPlan, language: str, *, home: str = "", but: Sequence[Condition] = ()) -> str:
    """Return what the rows and groups of a plan must be; empty where they may be any. The columns of `home` stand
    without its name; the conditions `but` are left out."""
    told = [item for item in plan.conditions if item not in but]
    tests = [_condition(item, language, home) for item in told]
    tests += [f"{_measure(item.measure, language)} {_OPERATORS[item.operator]} {item.value}" for item in plan.having]
    return ("，" if language == "zh" else " and ").join(tests)


def part_in_words(plan: QueryPlan, language: str, *, home: str = "") -> str:
    """What the rows are that a percentage counts; empty where it is of each group."""
    return ("，" if language == "zh" else " and ").join(_condition(item, language, home) for item in plan.part)


def _share(plan: QueryPlan, what: str, language: str) -> str:
    chinese = language == "zh"
    of = part_in_words(plan, language)
    if not of:
        return f"{what}的占比（%）" if chinese else f"percentage of the {what}"
    return f"{what}中 {of} 的占比（%）" if chinese else f"percentage of the {what} with {of}"


def _what(plan: QueryPlan, language: str) -> str:
    if plan.measures:
        return ("、" if language == "zh" else " and ").join(_measure(measure, language) for measure in plan.measures)
    if plan.shown and not plan.implied:
        columns = ", ".join(f"`{field.ref.column}`" for field in plan.shown[:6])
        different = plan.distinct and len(plan.shown) == 1
        if language == "zh":
            return f"`{plan.table}` 的{'不同' if different else ''} {columns}"
        return f"{'different ' if different else ''}{columns} of `{plan.table}`"
    return f"`{plan.table}`"


def _measure(measure: PlannedMeasure, language: str) -> str:
    word = _FUNCTIONS[language][measure.function]
    if measure.field is None:
        return f"`{measure.table}` 的{word}" if language == "zh" else f"{word} `{measure.table}`"
    name = f"`{measure.table}.{measure.field.ref.column}`"
    if measure.factor is not None:
        name += f" × `{measure.factor.ref.column}`"
    return f"{name} 的{word}" if language == "zh" else f"{word} {name}"


def _dimension(dimension: Dimension, language: str) -> str:
    field = dimension.fields[0]
    name = f"`{field.via.column if field.via else field.ref.table}`" if dimension.key else f"`{field.ref.column}`"
    if not dimension.grain:
        return name
    grain = _GRAINS[language].get(dimension.grain, dimension.grain)
    return f"{name} 的{grain}" if language == "zh" else f"{grain} of {name}"


def _condition(item: Condition, language: str, home: str = "") -> str:
    chinese = language == "zh"
    if item.operator in ("exists", "not exists"):
        have = item.operator == "exists"
        table = f"`{item.field.ref.table}`"
        return f"{'有' if have else '没有'} {table}" if chinese else f"it has {'' if have else 'no '}{table}"
    name = _name(item.field, home)
    if item.operator == "null":
        return f"{name} 为空" if chinese else f"{name} is missing"
    if item.operator == "not null":
        return f"{name} 不为空" if chinese else f"{name} is present"
    if item.operator == "range":
        return _range(name, *item.values, chinese=chinese)
    if item.operator == "ranges":
        joint = " 或 " if chinese else " or "
        return joint.join(_range(name, *pair, chinese=chinese) for pair in item.values)
    if item.operator == "newest":
        grain, back = item.values
        word = _GRAINS[language].get(grain, grain)
        minus = f" - {back}" if back else ""
        return f"{name} 在数据的最后一{word}{minus}" if chinese else f"{name} is in the last {word}{minus} of the data"
    if item.operator in ("in", "not in"):
        sign = "∈" if item.operator == "in" else "∉"
        return f"{name} {sign} ({', '.join(str(value) for value in item.values)})"
    return f"{name} {_OPERATORS[item.operator]} {item.values[0]}"


def _range(name: str, low: str | None, high: str | None, *, chinese: bool) -> str:
    """A half-open range of days: in a year or a month, from one to another, since or before one."""
    size = 4 if all(day is None or day.endswith("-01-01") for day in (low, high)) else 7
    if not all(day is None or day.endswith("-01") for day in (low, high)):
        parts = ([f"≥ {low}"] if low else []) + ([f"< {high}"] if high else [])
        return f"{name} " + ", ".join(parts)
    unit = " 年" if size == 4 else ""
    if low is None or high is None:
        day = (low or high or "")[:size]
        if chinese:
            return f"{name} 从 {day}{unit}起" if low else f"{name} 早于 {day}{unit}"
        return f"{name} {'since' if low else 'before'} {day}"
    first, last = low[:size], _day_before(high)[:size]
    if first == last:
        return f"{name} 在 {first}{unit}" if chinese else f"{name} in {first}"
    return f"{name} 从 {first} 到 {last}{unit}" if chinese else f"{name} from {first} to {last}"


def _day_before(day: str) -> str:
    return (date.fromisoformat(day) - timedelta(days=1)).isoformat()


def _name(field: Field, home: str) -> str:
    via = f"{field.via.column} → " if field.via else ""
    table = "" if field.ref.table == home and not via else f"{field.ref.table}."
    return f"`{via}{table}{field.ref.column}`"


def _end(plan: QueryPlan, language: str) -> str:
    chinese = language == "zh"
    text = ""
    if plan.order and (plan.limit is not None or isinstance(plan.order, Field)):
        if plan.order == "dimension":
            by = ""
        elif isinstance(plan.order, PlannedMeasure):
            by = _measure(plan.order, language)
        elif isinstance(plan.order, Field):
            by = f"`{plan.order.ref.column}`"
        direction = (
            ("从高到低" if plan.descending else "从低到高")
            if chinese
            else ("highest first" if plan.descending else "lowest first")
        )
        text += f"，按 {by} {direction}" if chinese else f", by {by}, {direction}" if by else ""
    if plan.limit is not None:
        text += f"，前 {plan.limit}" if chinese else f", first {plan.limit}"
    return text

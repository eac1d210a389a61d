"""How large a value a statement would make the database build, judged by the numbers that are written in it.

One call inside an embedded engine cannot be interrupted, and what it builds is not always counted by the engine's
memory limit. The sizes of all calls of a statement count together: sixty columns build sixty values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from sqlglot import exp

from longthread.tools.analysis.dialects.dialect import SqlDialect

LARGEST = 100_000
"""Characters and list elements that the calls of one statement may build."""

_SIZES = {
    "zeroblob": 0, "randomblob": 0, "space": 0, "repeat": 1, "replicate": 1, "lpad": 1, "rpad": 1, "pad": 1,
    "bitstring": 1, "list_resize": 1, "array_resize": 1, "array_fill": 1, "to_base": 2, "equi_width_bins": 2,
    "bar": 3,
}  # fmt: skip
"""Functions that build, and which of their arguments says how much."""
_LIST_BUILDERS = frozenset({"range", "generate_series", "explodinggenerateseries", "generate_date_array"})
"""Lists in DuckDB; rows that come one by one where they stand for a table, and everywhere else."""
_FORMATS = frozenset({"printf", "format"})
_GROWING = {"hex": 2, "to_hex": 2, "base64": 2, "to_base64": 2, "bin": 8, "to_binary": 8, "quote": 2, "url_encode": 3}
_REPLACING = frozenset({"replace", "regexp_replace"})
_REPEATING = frozenset(
    {"list_transform", "list_apply", "array_transform", "array_apply", "apply", "transform", "list_reduce",
     "array_reduce", "reduce", "list_filter", "array_filter", "filter"}
)  # fmt: skip
"""Functions that do something for each element: what is built inside is built that often."""
_WILD = frozenset(
    {"exp", "factorial", "gamma", "product", "epoch", "epoch_ms", "epoch_us", "epoch_ns", "hash", "unixepoch", "pow",
     "power", "random", "md5_number", "time_to_unix", "unix_seconds", "time_to_epoch"}
)  # fmt: skip
"""Functions that make large numbers out of small ones."""
_WILD_NODES = (exp.Pow, exp.BitwiseLeftShift, exp.Exp, exp.Rand)
_PLAIN = (exp.Literal, exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Cast, exp.DataType, exp.Interval,
          exp.Var, exp.Boolean, exp.Null, exp.Identifier)  # fmt: skip
_JUDGING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Limit, exp.Offset, exp.Fetch)
"""What a number is only compared with: it goes nowhere from there."""
_FINE = frozenset({"SECOND", "SECONDS", "S", "MILLISECOND", "MILLISECONDS", "MS", "MICROSECOND", "MICROSECONDS", "US"})


def built_size(statement: exp.Expr, dialect: SqlDialect) -> tuple[float, str]:
    """How many characters and list elements the calls of a statement build for one row, as far as it is written, and
    the name of the call that builds the most."""
    return _Sizes(statement, dialect).total()


class _Sizes:
    def __init__(self, statement: exp.Expr, dialect: SqlDialect) -> None:
        self._statement = statement
        self._format_specs = dialect.format_specs
        self._lists = _LIST_BUILDERS if dialect.builds_lists else frozenset()
        self._known_largest: float | None = None

    def total(self) -> tuple[float, str]:
        sizes = [(self._size(call), call) for call in self._outermost(self._statement)]
        if not sizes:
            return 0.0, ""
        size = sum(one for one, _ in sizes)
        if self._statement.find(exp.Subquery, exp.CTE):
            # What an inner query has built, an outer one may repeat.
            size *= math.prod(one for one, call in sizes if _repeats(call))
        return size, _label(max(sizes, key=lambda pair: pair[0])[1])

    def _outermost(self, statement: exp.Expr) -> Iterator[exp.Expr]:
        """Calls that build something, without those inside of them."""
        found: set[int] = set()
        for node in statement.walk(prune=lambda each: id(each) in found):
            counts = isinstance(node, exp.Func) and self._counts(node) and not isinstance(node.parent, exp.Table)
            if counts or isinstance(node, exp.Comprehension):
                found.add(id(node))
                yield node

    def _counts(self, call: exp.Func) -> bool:
        name = name_of(call)
        return any(name in names for names in (_SIZES, self._lists, _FORMATS, _GROWING, _REPLACING, _REPEATING))

    def _size(self, call: exp.Expr) -> float:
        """What one call builds: calls within calls multiply."""
        return math.prod(self._own(inner) for inner in call.find_all(exp.Func) if self._counts(inner))

    def _own(self, call: exp.Func) -> float:
        name = name_of(call)
        arguments = list(call.iter_expressions())
        if name in _GROWING:
            return _GROWING[name]
        if name in _REPLACING:
            return _growth(arguments)
        if name in _FORMATS:
            return _width(arguments[0] if arguments else None, self._format_specs)
        if name in self._lists:
            fine = any(_is_fine(interval) for interval in call.find_all(exp.Interval))
            return math.inf if fine else max((self._number(argument) for argument in arguments), default=1.0)
        place = _SIZES.get(name)
        if place is None:
            return 1.0
        if len(arguments) <= place:  # 'x'.repeat(5)
            return max((self._number(argument) for argument in arguments), default=1.0)
        text = arguments[0]
        length = len(text.name) if name in ("repeat", "replicate") and isinstance(text, exp.Literal) else 1
        return max(1, length) * self._number(arguments[place])

    def _number(self, argument: exp.Expr) -> float:
        """The largest number of an argument; one that is not written may come from anywhere in the statement."""
        if isinstance(argument, exp.Least):
            bounds = [_value(bound.name) for bound in argument.iter_expressions() if _is_number(bound)]
            if bounds:
                return max(1.0, min(bounds))
        if all(isinstance(node, _PLAIN) for node in argument.walk()):
            return _largest(argument)
        return self._anywhere()

    def _anywhere(self) -> float:
        if self._known_largest is None:
            self._known_largest = _largest(self._statement)
        return self._known_largest


def _repeats(call: exp.Expr) -> bool:
    """Whether a call multiplies what it is given."""
    if not isinstance(call, exp.Func):
        return True
    name = name_of(call)
    written = isinstance(next(call.iter_expressions(), None), exp.Literal)
    return name in _REPEATING or (name in ("repeat", "replicate") and not written)


def _label(call: exp.Expr) -> str:
    return name_of(call) if isinstance(call, exp.Func) else "this"


def name_of(node: exp.Func) -> str:
    """The name of a function as it is called, in lower case."""
    named = isinstance(node, exp.Anonymous | exp.AnonymousAggFunc)
    return node.name.casefold() if named else node.sql_name().casefold().replace("j_s_o_n", "json")


def _largest(node: exp.Expr) -> float:
    """The largest number that the numbers written in `node` can make. Where two unwritten ones are multiplied, each of
    them may be any that is written."""
    terms, factors, unknown = [1.0], [1.0], False
    for one in node.walk():
        if isinstance(one, _WILD_NODES) or (isinstance(one, exp.Func) and name_of(one) in _WILD):
            return math.inf
        if isinstance(one, exp.Mul | exp.Div):
            unknown |= not (_is_written(one.this) or _is_written(one.expression))
        elif isinstance(one, exp.Literal) and not isinstance(one.parent, _JUDGING):
            value = _value(one.name)
            scaling = isinstance(one.parent, exp.Mul | exp.Div)
            (factors if scaling else terms).append(max(value, 1 / value) if scaling and value else value)
    return math.prod(factors) * (math.prod(term for term in terms if term > 1) if unknown else sum(terms))


def _growth(arguments: Sequence[exp.Expr]) -> float:
    """How many times longer a replacement makes a text."""
    if len(arguments) < 3 or not isinstance(arguments[2], exp.Literal):
        return 1.0
    old = len(arguments[1].name) if isinstance(arguments[1], exp.Literal) else 1
    return max(1.0, len(arguments[2].name) / max(1, old))


def _width(text: exp.Expr | None, patterns: Sequence[str]) -> float:
    """The widths in a format such as %900000000d or {:>900}; one that is not written may be anything."""
    if not patterns:  # it formats one number or date
        return 1.0
    if not isinstance(text, exp.Literal):
        return math.inf
    plain = text.name.replace("{{", "")
    specs = [spec for pattern in patterns for spec in re.findall(pattern, plain)]
    if any("*" in spec or "{" in spec[1:] for spec in specs):
        return math.inf
    return max(1.0, sum(float(digits) for spec in specs for digits in re.findall(r"\d+", spec)))


def _is_fine(interval: exp.Interval) -> bool:
    unit = interval.args.get("unit")
    text = f"{interval.name} {unit.name if unit is not None else ''}".upper()
    return any(word in _FINE for word in re.findall(r"[A-Z]+", text)) or ":" in text


def _is_number(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _is_written(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Literal)


def _value(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return 0.0 if math.isnan(number) else abs(number)

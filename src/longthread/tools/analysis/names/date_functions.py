"""A date function of another engine, written as this one has it: `YEAR(d)` for SQLite. Pure.

Only what means the same is written anew: parts of a date, formats of numbers, today. The argument stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from longthread.tools.analysis.functions import ALLOWED
from longthread.tools.analysis.guard import sqlglot_name

_PARTS = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d", "HOUR": "%H"}
_TRUNCATED = {"YEAR": "%Y-01-01", "MONTH": "%Y-%m-01", "DAY": "%Y-%m-%d"}
_NOW, _TODAY = ("NOW", "GETDATE"), ("CURDATE", "TODAY")
_PERCENT = re.compile(r"(?:%[YmdH]|[-/.: 0-9])+")
"""Formats that all engines with `%` read the same: minutes are %M in SQLite, and %i in MySQL."""
_LETTERS = re.compile(r"(?:YYYY|MM|DD|HH24|[-/.: ])+")
_SHOWN = 100
"""Characters of a call that a note repeats."""
_CODES = {"%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH24"}


class _Forms(NamedTuple):
    """How an engine writes a part, a format (each: what stands before and behind the argument), now and today. None:
    it is not written anew."""

    name: str
    part: tuple[str, str] | None = None
    format: tuple[str, str] | None = None
    now: str | None = None
    today: str = "CURRENT_DATE"
    unlike: Collection[str] = ()
    """Functions that it has with other arguments than another engine."""


_FORMS: Mapping[str, _Forms] = {
    "sqlite": _Forms(
        "SQLite",
        part=("CAST(strftime('{0}', ", ") AS INTEGER)"),
        format=("strftime('{0}', ", ")"),
        now="datetime('now')",
        today="date('now')",
    ),
    "duckdb": _Forms("DuckDB", format=("strftime(", ", '{0}')"), unlike=("STRFTIME",)),
    "postgresql": _Forms(
        "PostgreSQL", part=("CAST(EXTRACT({1} FROM ", ") AS INTEGER)"), format=("to_char(", ", '{0}')")
    ),
    "mysql": _Forms("MySQL", format=("DATE_FORMAT(", ", '{0}')")),
}


@dataclass(frozen=True, slots=True)
class _Call:
    """A function's name, the place of its opening bracket, its arguments as tokens, and its closing bracket."""

    name: Token
    opening: Token
    arguments: Sequence[Sequence[Token]]
    closing: Token


def mend_date_functions(sql: str, dialect: str, own: Collection[str]) -> tuple[str, list[str]]:
    """Return a statement without date functions that its engine lacks, and a note for each. `own` are the functions
    that the database itself defines, in lower case."""
    forms = _FORMS.get(dialect)
    if forms is None:
        return sql, []
    try:
        tokens = Dialect.get_or_raise(sqlglot_name(dialect)).tokenize(sql)
    except TokenError:
        return sql, []
    notes: list[str] = []
    edits: list[tuple[int, int, str]] = []
    for call in _calls(tokens):
        name = call.name.text.upper()
        if name.casefold() in own or (name.casefold() in ALLOWED[sqlglot_name(dialect)] and name not in forms.unlike):
            continue
        if (written := _write(call, name, forms)) is None:
            continue
        before, argument, behind = written
        begin, end = call.name.start, call.closing.end + 1
        middle = (argument[0].start, argument[-1].end + 1) if argument else (end, end)
        edits += [(begin, middle[0], before), (middle[1], end, behind)]
        now = f"{before}{sql[slice(*middle)]}{behind}"
        notes.append(f"{forms.name} has no {_cut(sql[begin:end])}: it was written as {_cut(now)}.")
    for begin, end, text in sorted(edits, reverse=True):
        sql = f"{sql[:begin]}{text}{sql[end:]}"
    return sql, list(dict.fromkeys(notes))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _calls(tokens: Sequence[Token]) -> Iterator[_Call]:
    """Yield the calls of a statement, also those in the arguments of others."""
    for place in range(len(tokens) - 1):
        name, opening = tokens[place : place + 2]
        after_dot = place > 0 and tokens[place - 1].token_type == TokenType.DOT
        if opening.token_type == TokenType.L_PAREN and name.text.isidentifier() and not after_dot:
            arguments: list[list[Token]] = [[]]
            depth = 0
            for token in tokens[place + 2 :]:
                if token.token_type == TokenType.R_PAREN and depth == 0:
                    yield _Call(name, opening, arguments, token)
                    break
                depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
                if token.token_type == TokenType.COMMA and depth == 0:
                    arguments.append([])
                else:
                    arguments[-1].append(token)


def _write(call: _Call, name: str, forms: _Forms) -> tuple[str, Sequence[Token], str] | None:
    """Return what stands before an argument, the argument, and what stands behind it; None: the call stays."""
    first, *others = call.arguments
    if not first:
        text = forms.now if name in _NOW else forms.today if name in _TODAY else None
        return (text, (), "") if text is not None else None
    if forms.part is not None and not others:
        unit, of = name, first
        if name == "EXTRACT" and len(first) > 2 and first[1].text.upper() == "FROM" and forms.name == "SQLite":
            unit, of = first[0].text.upper(), first[2:]
        if unit in _PARTS:
            before, behind = (each.format(_PARTS[unit], unit) for each in forms.part)
            return before, of, behind
    if len(others) != 1 or forms.format is None:
        return None
    second = others[0]
    layout, of = None, first
    if name in ("DATE_FORMAT", "TO_CHAR"):
        layout = _layout(second)
    elif name == "STRFTIME" and (layout := _layout(first)) is not None:
        of = second
    elif name == "DATE_TRUNC" and forms.name == "SQLite" and _is_text(first):
        layout, of = _TRUNCATED.get(first[0].text.upper()), second
    if layout is None:
        return None
    if forms.name == "PostgreSQL":
        for percent, letters in _CODES.items():
            layout = layout.replace(percent, letters)
    before, behind = (each.format(layout) for each in forms.format)
    return before, of, behind


def _is_text(argument: Sequence[Token]) -> bool:
    return len(argument) == 1 and argument[0].token_type == TokenType.STRING


def _layout(argument: Sequence[Token]) -> str | None:
    """Return a format with `%`, if that is what a literal is; else None."""
    if not _is_text(argument):
        return None
    text = argument[0].text
    if _LETTERS.fullmatch(text) and "%" not in text:
        for percent, letters in _CODES.items():
            text = text.replace(letters, percent)
    return text if _PERCENT.fullmatch(text) else None

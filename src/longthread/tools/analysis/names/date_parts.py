"""A part of a date in the form of another engine: `YEAR(d)` for SQLite. It is written as this one has it where that is
certain to mean the same: of a column that is a date or a text, in a statement of one SELECT. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from longthread.tools.analysis.names.missing import Mend
from longthread.tools.analysis.schema import ColumnShape, Schema

_CODES = {"YEAR": "%Y", "MONTH": "%m", "DAY": "%d"}
_FORMS: Mapping[str, tuple[str, str, tuple[ColumnShape, ...]]] = {
    "sqlite": ("SQLite", "CAST(strftime('{code}', {column}) AS INTEGER)", ("date", "text")),
    "postgresql": ("PostgreSQL", "CAST(EXTRACT({part} FROM {column}) AS INTEGER)", ("date",)),
}
"""By engine: its name, its form of a part, and the shapes of columns that it reads as dates."""
_BEFORE = re.compile(r"(?i)\b(?:(YEAR|MONTH|DAY)\s*\(|EXTRACT\s*\(\s*(YEAR|MONTH|DAY)\s+FROM)\s*\Z")
_BEHIND = re.compile(r"\s*\)")
_NEAR = 60
"""Characters before a column in which its function stands."""


def mend_date_parts(statement: exp.Expr, sql: str, schema: Schema, dialect: str) -> list[Mend]:
    """Return the mendings of a statement's parts of dates that the engine has in another form. They do not overlap with
    those of qualifiers, which are within the argument."""
    form = _FORMS.get(dialect)
    if form is None or len(list(statement.find_all(exp.Select))) != 1:
        return []
    engine, written, shapes = form
    kinds = (exp.Year, exp.Month, exp.Day, exp.Extract) if dialect == "sqlite" else (exp.Year, exp.Month, exp.Day)
    mends: list[Mend] = []
    for node in statement.find_all(*kinds):
        column = node.expression if isinstance(node, exp.Extract) else node.this
        if not isinstance(column, exp.Column) or not _is_date(column, statement, schema, shapes):
            continue
        begin, end = column.parts[0].meta.get("start"), column.parts[-1].meta.get("end")
        if begin is None or end is None:
            continue
        before = _BEFORE.search(sql[max(0, begin - _NEAR) : begin])
        behind = _BEHIND.match(sql, end + 1)
        if before is None or behind is None:
            continue
        part = (before[1] or before[2]).upper()
        name, opening = sql[begin : end + 1], begin - len(before[0])
        head, tail = written.format(code=_CODES[part], part=part, column="\0").split("\0")
        call = sql[opening : behind.end()]
        note = f"{engine} has no {call}: it was written as {head}{name}{tail}."
        mends += [Mend(opening, begin, head, note), Mend(end + 1, behind.end(), tail, note)]
    return mends


def _is_date(column: exp.Column, statement: exp.Expr, schema: Schema, shapes: tuple[ColumnShape, ...]) -> bool:
    """Return whether each column of that name in the statement's tables has one of the shapes, and no alias has the
    name."""
    name = column.name.casefold()
    if any(alias.alias.casefold() == name for alias in statement.find_all(exp.Alias)):
        return False
    tables = {table.name.casefold() for table in statement.find_all(exp.Table)}
    found = [
        each.shape in shapes
        for label, table in schema.tables.items()
        if label.rpartition(".")[2].casefold() in tables
        for each in table.columns
        if each.name.casefold() == name
    ]
    return bool(found) and all(found)

"""Looking a word up among the values of the database, with one query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from longthread.tools.analysis.dialects.dialect import find_dialect
from longthread.tools.analysis.quoting import quote_identifier
from longthread.tools.analysis.schema_linking import atoms, is_cjk
from longthread_demo.glossary import glossary
from longthread_demo.query.dialect import literal, quote_table
from longthread_demo.schema import DemoColumn, DemoSchema, DemoTable, Ref
from longthread_demo.talk import DemoCall, Exchange
from longthread_demo.words.vocabulary import ProbedValue

_COLUMNS = ("found_in_table", "found_in_column", "found_value")
_PATTERN = re.compile(r"LIKE '%((?:[^'%]|'')+)%'")
_MOST_COLUMNS = 40
_MOST_WORDS = 6
_ENOUGH = 5


def is_probe(call: DemoCall) -> bool:
    """Whether a call is such a look-up."""
    return call.name == "run_sql" and _COLUMNS[2] in str(call.args.get("sql") or "")


def probed_words(call: DemoCall) -> set[str]:
    """The words a look-up was for, in lower case."""
    return {word.replace("''", "'") for word in _PATTERN.findall(str(call.args.get("sql") or ""))}


def found_in(exchange: Exchange) -> Iterator[ProbedValue]:
    """The values a look-up found."""
    if not is_probe(exchange.call):
        return
    columns = list(exchange.data.get("columns") or ())
    if tuple(columns[:3]) != _COLUMNS:
        return
    for row in exchange.data.get("rows") or ():
        yield ProbedValue(Ref(str(row[0]), str(row[1])), str(row[2]))


def probe_sql(words: Sequence[str], tables: Sequence[str], schema: DemoSchema) -> str:
    """One query over the likely text columns of the tables, nearest first; empty when there is nothing to search."""
    wanted = variants(words)
    parts: list[str] = []
    for name in tables:
        table = schema.tables[name]
        for column in table.columns:
            if len(parts) < _MOST_COLUMNS and _searchable(table, column):
                parts.append(_part(table, column, wanted, schema.dialect, len(parts)))
    return "\nUNION ALL\n".join(parts)


def variants(words: Sequence[str]) -> list[str]:
    """The words without a plural, and the parts of a name of several words."""
    found: list[str] = []
    for word in words[:3]:
        found.append(_singular(word.lower()))
        found += [part for part in word.lower().split() if len(part) >= 3]
        found += [other for other in glossary().raw.get(atoms(word), ()) if len(other) > 3 or is_cjk(other)][:3]
    return list(dict.fromkeys(found))[:_MOST_WORDS]


def _singular(word: str) -> str:
    if word.isascii() and len(word) > 4 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-3] if word.endswith("ies") else word[:-1]
    return word


def _searchable(table: DemoTable, column: DemoColumn) -> bool:
    if column.kind in ("number", "date", "bool"):
        return False
    if column.kind == "unknown" and column.keyish:
        return False
    known = column.distinct is not None and column.distinct <= len(column.values)
    return not known


def _part(table: DemoTable, column: DemoColumn, words: Sequence[str], dialect: str, number: int) -> str:
    name = quote_identifier(column.name, dialect)
    text = name if column.kind == "text" else f"CAST({name} AS {find_dialect(dialect).text_type})"
    tests = " OR ".join(f"LOWER({text}) LIKE {literal(f'%{word}%', dialect)}" for word in words)
    inner = (
        f"SELECT DISTINCT {literal(table.name, dialect)} AS {_COLUMNS[0]}, "
        f"{literal(column.name, dialect)} AS {_COLUMNS[1]}, "
        f"{text} AS {_COLUMNS[2]}, LENGTH({text}) AS size "
        f"FROM {quote_table(table, dialect)} WHERE {tests} ORDER BY size LIMIT {_ENOUGH}"
    )
    return f"SELECT {', '.join(_COLUMNS)} FROM ({inner}) AS p{number}"

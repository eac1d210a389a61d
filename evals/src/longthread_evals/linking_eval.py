"""The eval of schema linking: are the tables that a question needs among the likeliest of a thousand?

The schemas of a folder's databases are pooled, and filled up with made ones to a thousand tables. A question needs the
tables that one of its gold statements reads; it is found when all of them are among the first k.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from longthread.errors import StatementsInvalid
from longthread.tools.analysis.guard import Guard
from longthread.tools.analysis.open import open_source
from longthread.tools.analysis.schema import Column, ForeignKey, Schema, Table
from longthread.tools.analysis.schema_linking import Likely

_AREAS = """
    crm hr fleet clinic warehouse billing support school hotel energy insurance legal farm museum telecom library press
    airport stadium lab
"""
_THINGS = """
    customer order invoice payment product employee contract ticket visit user account transaction location city author
    publication course review salesperson car merchant coupon notification session rating restaurant address region
    shipment supplier category project task event message report budget device asset policy claim
"""
_PARTS = "history audit item type status link summary draft archive"
_COLUMNS = """
    id name created_at updated_at status amount total price city country email phone description category_id user_id
    customer_id order_id quantity rating start_date end_date title balance currency notes is_active type region year
    month count score owner_id code url version priority
"""

_OF_AREA = 12
"""Things of one system."""


@dataclass(frozen=True)
class LinkingQuestion:
    """A question, and sets of tables: any one set is enough."""

    text: str
    needs: Sequence[frozenset[str]]


def made_tables(count: int) -> Iterator[Table]:
    """Yield tables of other systems, each in a schema of its own: the same words, recombined. Always the same ones."""
    areas, things, parts, columns = (text.split() for text in (_AREAS, _THINGS, _PARTS, _COLUMNS))
    names = []
    for suffix, (number, area) in itertools.product(["", *(f"_{part}" for part in parts)], enumerate(areas)):
        chosen = [things[(number * 5 + step * (number % 7 + 1)) % len(things)] for step in range(_OF_AREA)]
        names += [f"{area}.{thing}{suffix}" for thing in dict.fromkeys(chosen)]
    for number, name in enumerate(names[:count]):
        picked = dict.fromkeys(columns[(number * 7 + step * step) % len(columns)] for step in range(4 + number % 9))
        yield Table(name, name, columns=tuple(Column(column, "TEXT") for column in picked))


async def pool_tables(folder: Path, count: int) -> Schema:
    """Return the tables of all databases of a folder, and made ones up to `count`. A table is called DATABASE.TABLE,
    and the database's name is not indexed."""
    tables: list[Table] = []
    for file in await asyncio.to_thread(lambda: sorted(folder.rglob("*.sqlite"))):
        async with await open_source(str(file)) as source:
            tables += [_within(file.stem, table) for table in (await source.schema()).tables.values()]
    return Schema([*tables, *made_tables(max(0, count - len(tables)))])


def _within(database: str, table: Table) -> Table:
    keys = tuple(ForeignKey(key.columns, f"{database}.{key.table}", key.references) for key in table.foreign_keys)
    return replace(table, label=f"{database}.{table.label}", foreign_keys=keys)


def read_questions(path: Path, schema: Schema) -> list[LinkingQuestion]:
    """Return a file's gold questions whose tables are in the pool. Raises StatementsInvalid."""
    known = {label.casefold(): label for label in schema.tables}
    found = []
    try:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            needs = [_find_needed(sql, row["db"], known) for sql in row["sql"]]
            if any(needs):
                found.append(LinkingQuestion(row["question"], [need for need in needs if need]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StatementsInvalid(where=path, reason=f"{type(error).__name__}: {error}.") from None
    return found


def _find_needed(sql: str, database: str, known: dict[str, str]) -> frozenset[str]:
    tables = Guard("sqlite").judge(sql).tree.find_all(exp.Table)
    names = [f"{database}.{table.name}".casefold() for table in tables]
    return frozenset(known[name] for name in names if name in known)


def measure_ranking(schema: Schema, questions: Sequence[LinkingQuestion], ks: Sequence[int]) -> dict[str, Any]:
    """Return the share of questions with all tables among the first k, and the cost of ranking."""
    likely = Likely(schema)
    hits = dict.fromkeys(ks, 0)
    taken = []
    for question in questions:
        started = time.process_time()
        ranked = likely.rank(question.text, max(ks))
        taken.append((time.process_time() - started) * 1000)
        for k in ks:
            hits[k] += any(need <= set(ranked[:k]) for need in question.needs)
    return {
        "tables": len(schema),
        "questions": len(questions),
        "all_needed": {str(k): round(count / max(1, len(questions)), 4) for k, count in hits.items()},
        "p50_ms": round(sorted(taken)[len(taken) // 2], 2) if taken else None,
    }

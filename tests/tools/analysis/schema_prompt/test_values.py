"""What the columns of a source hold: that of all rows, or nothing, and whether each column was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engines import ENGINES, made_database

from longthread.tools.analysis import schema_values as reading
from longthread.tools.analysis.schema_text import schema_text
from longthread.tools.analysis.schema_values import SourceValues, read_values
from longthread.tools.analysis.source import Source

MANY = """
CREATE TABLE digits (d INTEGER);
INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9);
CREATE TABLE orders (status VARCHAR(9), day VARCHAR(19), due DATE, kind VARCHAR(9), mixed VARCHAR(19), late VARCHAR(9));
INSERT INTO orders
  SELECT 'closed', '2020-01-02', '2020-02-03', 'one', '2020-01-02', NULL
  FROM digits a, digits b, digits c, digits d, digits e WHERE e.d < 2;
INSERT INTO orders VALUES ('open', '2025-06-22 10:00', '2025-07-23', 'k1', 'unknown', 'only');
"""
"""20,001 rows, of which the last alone differs."""
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT 'x' AS word FROM n WHERE i < 0"


@pytest.fixture(params=ENGINES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    kinds = ", ".join(f"('open', '2021-01-01', '2021-01-01', 'k{n}', '2021-01-01', NULL)" for n in range(9))
    return made_database(request, f"{MANY}INSERT INTO orders VALUES {kinds};", tmp_path)


async def read(source: Source) -> SourceValues:
    schema = await source.schema()
    return await source.work(lambda connection: read_values(connection, schema, source.dialect))


async def is_whole(source: Source, values: SourceValues) -> bool:
    schema = await source.schema()
    return schema_text(schema, values, dialect="sqlite", budget=5_000, family="any", likely=list).is_whole


async def test_values_and_ranges_are_those_of_all_rows(
    opened: Any, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_VALUE_SECONDS", 60.0)
    monkeypatch.setattr(reading, "_STATEMENT_SECONDS", 20.0)
    values = await read(await opened(address))
    assert values.values == {
        "orders": {"status": ["closed", "open"], "mixed": ["2020-01-02", "2021-01-01", "unknown"], "late": ["only"]}
    }
    assert values.ranges == {"orders": {"day": ["2020-01-02", "2025-06-22"], "due": ["2020", "2025"]}}
    assert values.is_complete


@pytest.mark.parametrize(
    ("type_name", "held", "note"),
    [
        ("DATE", ["2020-01-02", "2020-01-02 10:00"], "2020-01-02"),
        ("DATE", ["2020-01-02", "2020-01-04"], "2020-01-02 to 2020-01-04"),
        ("DATE", ["2020-01-02", "2020-03-04"], "2020-01 to 2020-03"),
        ("DATE", ["2020-01-02", "2024-01-02"], "2020 to 2024"),
        ("TIME", ["09:30:00.000", "17:00:00.000"], "09:30:00.000 to 17:00:00.000"),
        ("TIMESTAMP", ["1700000000123", "1800000000456"], "1700000000123 to 1800000000456"),
        ("DATE", ["2020-01-02", "soon"], ""),
        ("DATE", [None, None], ""),
        ("TEXT", [None, None], ""),
        ("TEXT", ["2020-01-02", None], "'2020-01-02'"),
        ("TEXT", ["2020-01-02", ""], ""),
    ],
)
async def test_a_range_is_told_if_its_ends_are_dates(
    opened: Any, make_sqlite: Any, type_name: str, held: list[str | None], note: str
) -> None:
    source = await opened(make_sqlite(f"CREATE TABLE t (c {type_name})", t=[(each,) for each in held]))
    values = await read(source)
    assert (values.note_of("t", "c"), values.is_complete) == (note, True)


async def test_a_range_stands_once_in_its_table(opened: Any, make_sqlite: Any) -> None:
    source = await opened(
        make_sqlite(
            "CREATE TABLE t (made DATE, sent DATE, paid DATE); CREATE TABLE u (made DATE)",
            t=[("2020-01-02", "2020-02-03", "2021-01-01"), ("2024-01-02", "2024-05-06", "2021-02-02")],
            u=[("2020-01-02",), ("2024-01-02",)],
        )
    )
    values = await read(source)
    assert values.ranges == {
        "t": {"made": ["2020", "2024"], "paid": ["2021-01", "2021-02"]},
        "u": {"made": ["2020", "2024"]},
    }


async def test_a_column_without_its_turn_leaves_the_look_incomplete(
    opened: Any, make_sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await opened(make_sqlite("CREATE TABLE t (c TEXT); INSERT INTO t VALUES ('a')"))
    whole = await read(source)
    monkeypatch.setattr(reading, "_VALUE_SECONDS", 0.0)
    part = await read(source)
    assert (whole.is_complete, part.is_complete, part.values) == (True, False, {})
    assert (await is_whole(source, whole), await is_whole(source, part)) == (True, False)


async def test_only_columns_that_could_tell_something_count(
    opened: Any, make_sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await opened(
        make_sqlite("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER, k TEXT CHECK (k IN ('a', 'b')))")
    )
    monkeypatch.setattr(reading, "_VALUE_SECONDS", 0.0)
    assert (await read(source)).is_complete


async def test_a_statement_without_end_takes_no_turn_of_others(
    opened: Any, make_sqlite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await opened(
        make_sqlite(f"CREATE VIEW a AS {ENDLESS}; CREATE TABLE b (c TEXT); INSERT INTO b VALUES ('told')")
    )
    monkeypatch.setattr(reading, "_VALUE_SECONDS", 20.0)
    monkeypatch.setattr(reading, "_STATEMENT_SECONDS", 0.5)
    values = await read(source)
    assert (values.values, values.is_complete) == ({"b": {"c": ["told"]}}, False)
    assert not await is_whole(source, values)

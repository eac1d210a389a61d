# ruff: noqa: E501 - a statement reads better in one line
from __future__ import annotations

import pytest

from longthread.errors import SqlRefused
from longthread.tools.analysis.guard import Guard

ORDINARY = [
    ("duckdb", "SELECT name, repeat('█', (100*share)::int) FROM t WHERE year = 2024 ORDER BY 2 LIMIT 20"),
    ("duckdb", "SELECT lpad(name, 10, '0'), pow(a,2), price*1000000 FROM t LIMIT 200000"),
    ("duckdb", "SELECT unnest(generate_series(DATE '2020-01-01', DATE '2020-12-31', INTERVAL 1 DAY))"),
    ("duckdb", "SELECT unnest(generate_series(min(d), max(d), INTERVAL 15 MINUTE)) FROM t"),
    (
        "duckdb",
        "SELECT replace(replace(replace(price,'$',''),',',''),' ',''), hex(a), printf('%.2f', x*100000000), format('{:,}', n) FROM t",
    ),
    ("duckdb", "SELECT [x*2 FOR x IN range(10)], list_transform(range(5), x -> x + 1)"),
    ("duckdb", "SELECT repeat('x', least(n, 1000)), pow(2, n) FROM t"),
    ("duckdb", "SELECT * FROM generate_series(1, 10000000) t(i)"),
    ("duckdb", "SELECT sum(i) FROM t, generate_series(1, n) g(i)"),
    ("postgresql", "SELECT generate_series(1, 1000000)"),
    ("postgresql", "SELECT format('%s-%10s', a, b), lpad(a::text, 5, '0') FROM t LIMIT 500000"),
    (
        "sqlite",
        "SELECT printf('%05d', id), printf('{\"a\": {\"b\": %d}}', x), replace(a,'&','&amp;'), strftime('%Y', d) FROM t WHERE x > 5000000",
    ),
    ("sqlite", "SELECT substr(text, 1, 10000000), instr(a,b) FROM t"),
    ("mysql", "SELECT FORMAT(amount, 2) FROM t"),
]

ENORMOUS = [
    ("sqlite", "SELECT instr(hex(zeroblob(20000000)), hex(zeroblob(10000000))||'1')"),
    ("sqlite", "SELECT " + ", ".join(["hex(zeroblob(5000))"] * 60)),
    ("duckdb", "SELECT bitstring('1',2000000000)"),
    ("duckdb", "SELECT repeat('x', a) FROM (SELECT 2000000000 AS a)"),
    ("duckdb", "SELECT repeat('x', a*b) FROM (SELECT 50000 AS a, 40000 AS b)"),
    ("duckdb", "SELECT repeat('x', pow(10,9)::int)"),
    ("duckdb", "SELECT repeat('x', '2000000000'::INT)"),
    ("duckdb", "SELECT len(range(2000000000))"),
    ("duckdb", "SELECT repeat('x', count(*)) FROM range(2000000000)"),
    ("duckdb", "SELECT list_transform(range(50000), x -> range(50000))"),
    ("duckdb", "SELECT [range(50000) FOR x IN range(50000)]"),
    ("duckdb", "SELECT format('{:>2000000000}', 1)"),
    ("duckdb", "SELECT format(f, 1) FROM (SELECT '{:>2000000000}' AS f)"),
    ("duckdb", "SELECT printf('%2000000000d', 1)"),
    ("duckdb", "SELECT printf('%1.900000000f', 1)"),
    ("duckdb", "SELECT replace(repeat('a',1000),'a',repeat('b',1000))"),
    ("duckdb", "SELECT unnest(generate_series(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL 1 SECOND))"),
    ("duckdb", "SELECT lpad('x',2000000000,'y')"),
    ("duckdb", "SELECT list_resize([1], 2000000000)"),
    ("duckdb", "SELECT generate_series(1, 2000000000)"),
    ("duckdb", "SELECT repeat('x', 1 << 30)"),
    ("duckdb", "SELECT repeat('x', 50000) || repeat('y', 60000)"),
    ("duckdb", "SELECT 'x'.repeat(2000000000)"),
    ("duckdb", "SELECT bar(1,0,1,2000000000)"),
    ("duckdb", "SELECT * FROM unnest(range(2000000000))"),
    ("duckdb", "SELECT rpad('x',2000000000,'y'), to_base(1,2,2000000000)"),
    ("duckdb", "SELECT array_resize([1],2000000000)"),
    ("postgresql", "SELECT array_fill(1, ARRAY[100000000])"),
    ("postgresql", "SELECT format('%1$900000000s', 'x')"),
    ("duckdb", "SELECT equi_width_bins(0,2000000000,2000000000,false)"),
    ("duckdb", "SELECT fill FROM (SELECT repeat(n, 10) fill FROM (SELECT repeat('x', 50000) n))"),
    ("duckdb", "SELECT repeat('x', epoch(now())::BIGINT)"),
    ("duckdb", "SELECT repeat('x', 1000 * 1000 * 1000)"),
]


@pytest.mark.parametrize(("dialect", "sql"), ORDINARY)
def test_what_builds_little_passes(dialect: str, sql: str) -> None:
    assert Guard(dialect).check(sql) == sql


@pytest.mark.parametrize(("dialect", "sql"), ENORMOUS)
def test_what_would_build_too_much_is_refused(dialect: str, sql: str) -> None:
    with pytest.raises(SqlRefused, match="would build more than 100000"):
        Guard(dialect).check(sql)


def test_the_sizes_of_a_statement_count_together() -> None:
    one = "lpad(name, 60000)"
    assert Guard("duckdb").check(f"SELECT {one} FROM t")
    with pytest.raises(SqlRefused, match="pad would build"):
        Guard("duckdb").check(f"SELECT {one}, {one} FROM t")

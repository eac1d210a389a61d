"""Values of which a driver's own types hold less, by engine: an expression, how `run_sql` shows it, and how a CSV file
has it where that is not the server's own text with its times by ISO 8601."""

from __future__ import annotations

from typing import Any, NamedTuple


class Awkward(NamedTuple):
    sql: str
    cell: Any
    text: str | None = None


SQLITE = [
    Awkward("9223372036854775807", "9223372036854775807"),
    Awkward("9007199254740991", 9007199254740991),
    Awkward("-9007199254740993", "-9007199254740993"),
    Awkward("1e999", "Infinity", "Infinity"),
    Awkward("-1e999", "-Infinity", "-Infinity"),
    Awkward("0.1 + 0.2", 0.30000000000000004, "0.3"),
    Awkward("x'00ff'", "x'00ff'", "x'00ff'"),
    Awkward("'a' || char(0) || 'b'", "a\0b", "a\0b"),
    Awkward("NULL", None, ""),
    Awkward("'-5'", "-5"),
    Awkward("'2020-01-02 03:04:05'", "2020-01-02 03:04:05", "2020-01-02 03:04:05"),
    Awkward("'{\"a\": 9007199254740993}'", '{"a": 9007199254740993}'),
]

DUCKDB = [
    Awkward("INTERVAL 14 MONTH", "1 year 2 months"),
    Awkward("age(DATE '2024-03-01', DATE '1990-02-28')", "34 years 1 day"),
    Awkward("-INTERVAL 14 MONTH", "-1 year -2 months"),
    Awkward("INTERVAL '2 days 03:04:05.5'", "2 days 03:04:05.5"),
    Awkward("DATE 'infinity'", "infinity"),
    Awkward("TIMESTAMP '-infinity'", "-infinity"),
    Awkward("DATE '0044-03-15 (BC)'", "0044-03-15 (BC)"),
    Awkward("DATE '12020-01-01'", "12020-01-01"),
    Awkward("'nan'::DOUBLE", "NaN", "NaN"),
    Awkward("'-inf'::FLOAT", "-Infinity", "-Infinity"),
    Awkward("0.1::FLOAT", 0.1),
    Awkward("1e10::FLOAT", 1e10),
    Awkward("TIMESTAMP_NS '2020-01-01 00:00:00.123456789'", "2020-01-01T00:00:00.123456789"),
    Awkward("TIMESTAMP '2020-01-01 00:00:00'", "2020-01-01T00:00:00"),
    Awkward("TIMESTAMPTZ '2020-01-01 00:00:00+05:30'", "2019-12-31T18:30:00+00:00"),
    Awkward("TIMETZ '03:04:05+02'", "03:04:05+02:00"),
    Awkward("TIME '03:04:05.25'", "03:04:05.25"),
    Awkward("1.50::DECIMAL(10, 2)", 1.5),
    Awkward("12345678901234567.89::DECIMAL(38, 2)", "12345678901234567.89"),
    Awkward("9223372036854775807", "9223372036854775807"),
    Awkward("18446744073709551615::UBIGINT", "18446744073709551615"),
    Awkward("5::HUGEINT", 5),
    Awkward("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
    Awkward("'101'::BIT", "101"),
    Awkward(r"'\x00\xFFabc'::BLOB", r"\x00\xFFabc"),
    Awkward("'a'::ENUM('a', 'b')", "a"),
    Awkward("'00000000-0000-0000-0000-000000000001'::UUID", "00000000-0000-0000-0000-000000000001"),
    Awkward("""'{"a":  1}'::JSON""", '{"a":  1}'),
    Awkward("union_value(k := INTERVAL 1 MONTH)", "1 month"),
    Awkward("[1, NULL]", [1, None], "[1, null]"),
    Awkward("[INTERVAL 14 MONTH]", ["1 year 2 months"], '["1 year 2 months"]'),
    Awkward("[0.1::FLOAT, 'nan'::FLOAT]", [0.1, "NaN"], '[0.1, "NaN"]'),
    Awkward("[TIMESTAMPTZ '2020-01-01 00:00:00+00']", ["2020-01-01T00:00:00+00:00"], '["2020-01-01T00:00:00+00:00"]'),
    Awkward("[9007199254740993]", ["9007199254740993"], '["9007199254740993"]'),
    Awkward("{'f': 0.1::FLOAT, 'i': [INTERVAL 1 YEAR]}", {"f": 0.1, "i": ["1 year"]}, '{"f": 0.1, "i": ["1 year"]}'),
    Awkward("MAP {1: INTERVAL 1 MONTH}", {"1": "1 month"}, '{"1": "1 month"}'),
    Awkward("row(1, INTERVAL 1 MONTH)", "(1, 1 month)"),
]

POSTGRESQL = [
    Awkward("'1 year 2 mons -3 days 04:05:06.7'::interval", "1 year 2 mons -3 days +04:05:06.7"),
    Awkward("'-1 years -2 mons'::interval", "-1 years -2 mons"),
    Awkward("'-01:00:00'::interval", "-01:00:00"),
    Awkward("'infinity'::date", "infinity"),
    Awkward("'-infinity'::timestamptz", "-infinity"),
    Awkward("'0044-03-15 BC'::date", "0044-03-15 BC"),
    Awkward("'0044-03-15 10:00:00+00 BC'::timestamptz", "0044-03-15T10:00:00+00:00 BC"),
    Awkward("'12020-01-01'::date", "12020-01-01"),
    Awkward("'24:00:00'::time", "24:00:00"),
    Awkward("'03:04:05+02'::timetz", "03:04:05+02:00"),
    Awkward("'2020-01-01 00:00:00+05:30'::timestamptz", "2019-12-31T18:30:00+00:00"),
    Awkward("'2020-01-01 00:00:00.123456'::timestamp", "2020-01-01T00:00:00.123456"),
    Awkward("'NaN'::float8", "NaN"),
    Awkward("'-Infinity'::float8", "-Infinity"),
    Awkward("'NaN'::numeric", "NaN"),
    Awkward("'Infinity'::numeric", "Infinity"),
    Awkward("'0.1'::float4", 0.1),
    Awkward("-323::numeric / 3", -107.66666666666667),
    Awkward("1.50::numeric(10, 2)", 1.5),
    Awkward("0.12345678901234567890::numeric(30, 20)", "0.12345678901234567890"),
    Awkward("12345678901234567.89::numeric", "12345678901234567.89"),
    Awkward("-9223372036854775808", "-9223372036854775808"),
    Awkward("'$1,234.50'::money", "$1,234.50"),
    Awkward("B'101'", "101"),
    Awkward("'\\x00ff'::bytea", "\\x00ff"),
    Awkward("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
    Awkward("'::ffff:1.2.3.4/120'::inet", "::ffff:1.2.3.4/120"),
    Awkward("'[1,5)'::int4range", "[1,5)"),
    Awkward("'empty'::daterange", "empty"),
    Awkward("'{[1,3),[5,6)}'::int4multirange", "{[1,3),[5,6)}"),
    Awkward("'[0044-03-15 BC,infinity)'::daterange", '["0044-03-15 BC",infinity)'),
    Awkward("row(1, 'a b')", '(1,"a b")'),
    Awkward("'null'::jsonb", "null"),
    Awkward(
        """'{"a": 9007199254740993, "b": [1.5, null]}'::jsonb""",
        {"a": "9007199254740993", "b": [1.5, None]},
        '{"a": "9007199254740993", "b": [1.5, null]}',
    ),
    Awkward("'{1.50,NULL,NaN}'::numeric[]", [1.5, None, "NaN"], '[1.5, null, "NaN"]'),
    Awkward(
        "'{infinity,2020-01-01 00:00:00+00}'::timestamptz[]",
        ["infinity", "2020-01-01T00:00:00+00:00"],
        '["infinity", "2020-01-01T00:00:00+00:00"]',
    ),
    Awkward("'{1 mon}'::interval[]", ["1 mon"], '["1 mon"]'),
    Awkward("ARRAY['gold', 'silver']::tier[]", "{gold,silver}"),
    Awkward("'gold'::tier", "gold"),
    Awkward("'(1,2)'::point", "(1,2)"),
    Awkward("'a b'::tsvector", "'a' 'b'"),
]

MYSQL = [
    Awkward("u", "18446744073709551615"),
    Awkward("i", "-9223372036854775808"),
    Awkward("f", 0.1),
    Awkward("d", "12345678901234567890.0123456789"),
    Awkward("price", 1.5),
    Awkward("avg(n) OVER ()", 7),
    Awkward("CAST(22 AS decimal(30, 12)) / 3", 7.333333333333333),
    Awkward("y", 2024),
    Awkward("clock", "-838:59:59"),
    Awkward("zero", "0000-00-00"),
    Awkward("at", "2024-02-29T10:00:00.125"),
    Awkward("nowhere", "0000-00-00T00:00:00"),
    Awkward("b", "101", "101"),
    Awkward("s", "x,y"),
    Awkward("e", "b"),
    Awkward("raw", "0x00ff", "0x00ff"),
    Awkward("j", '{"a": 9007199254740993}'),
    Awkward("id", "00000000-0000-0000-0000-000000000001"),
    Awkward("host", "::1"),
]
MYSQL_TABLE = """
CREATE TABLE t (u bigint unsigned, i bigint, f float, d decimal(40, 10), price decimal(10, 2), n int, y year,
    clock time, zero date, at datetime(3), nowhere datetime, b bit(3), s set('x', 'y'), e enum('a', 'b'), raw binary(2),
    j json, id uuid, host inet6);
SET SESSION sql_mode = '';
INSERT INTO t VALUES (18446744073709551615, -9223372036854775808, 0.1, 12345678901234567890.0123456789, 1.5, 7, 2024,
    '-900:00:00', '0000-00-00', '2024-02-29 10:00:00.125', '0000-00-00', b'101', 'y,x', 'b', x'00ff',
    '{"a": 9007199254740993}', '00000000-0000-0000-0000-000000000001', '::1');
"""

VALUES = {"sqlite": SQLITE, "duckdb": DUCKDB, "postgresql": POSTGRESQL, "mysql": MYSQL}

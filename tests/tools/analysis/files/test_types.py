"""Each column alone in a file: its type, its first value, and what is told of it."""

from __future__ import annotations

import duckdb
import pytest

from longthread.tools.analysis.files.columns import infer_types

_CASES = [
    (["1", "-20"], "BIGINT", "1", None),
    (["1.5", "2"], "DOUBLE", "1.5", None),
    (["1e-05", "0.5"], "DOUBLE", "1e-05", None),
    (["1.5E5", "2.0E6"], "DOUBLE", "150000.0", None),
    (["12345678901234567890", "1"], "HUGEINT", "12345678901234567890", None),
    (["0.1234567890123456789", "1"], "DECIMAL(38,19)", "0.1234567890123456789", None),
    (["1.5e400", "1"], "VARCHAR", "1.5e400", "1 of 2 values are numbers"),
    (["1E5", "2E7"], "VARCHAR", "1E5", "may be a code"),
    (["1E5", "3A1"], "VARCHAR", "1E5", None),
    (["00123", "45678"], "VARCHAR", "00123", "begin with zeros"),
    (["+4915112345678", "+4915112345679"], "VARCHAR", "+4915112345678", None),
    (["+5", "-3"], "BIGINT", "5", None),
    (["1_000", "2_000"], "VARCHAR", "1_000", None),
    (["1,234.56", "2.5"], "DOUBLE", "1234.56", "1,234.56"),
    (["1.234,56", "2,5"], "DOUBLE", "1234.56", "1.234,56"),
    (["1 234,5", "12,5"], "DOUBLE", "1234.5", "1 234,56"),
    (["1\u00a0234\u00a0567", "12"], "BIGINT", "1234567", "1 234,56"),
    (["1'234.50", "2'000.00"], "DOUBLE", "1234.5", "1'234.56"),
    (["12,34,567", "1,00,000"], "BIGINT", "1234567", "1,234.56"),
    (["1,234,567", "12,345"], "BIGINT", "1234567", "1,234.56"),
    (["1,50", "2,75"], "DOUBLE", "1.5", "1.234,56"),
    (["1,234", "5,678"], "VARCHAR", "1,234", "with thousands or with a decimal comma"),
    (["1.234", "5.678"], "DOUBLE", "1.234", None),
    (["$1,200", "$300"], "BIGINT", "1200", "in $"),
    (["€ 5,00", "€ 1.200,00"], "DOUBLE", "5.0", "in €"),
    (["5 元", "12 元"], "BIGINT", "5", "in 元"),
    (["$5", "€6"], "VARCHAR", "$5", None),
    (["12.5%", "3%"], "DOUBLE", "12.5", "in percent"),
    (["(300)", "200"], "BIGINT", "-300", None),
    (["−5", "7"], "BIGINT", "-5", None),
    (["1", "N/A"], "BIGINT", "1", '1 value such as "N/A" is read as missing'),
    (["1", "-", "—"], "BIGINT", "1", "2 values such as"),
    (["NA", "US"], "VARCHAR", "NA", None),
    (["1", "about 2", "3"], "VARCHAR", "1", "2 of 3 values are numbers"),
    (["true", "FALSE"], "BOOLEAN", "True", None),
    (["2021-03-05", "2021-12-31"], "DATE", "2021-03-05", None),
    (["2021/3/5", "2021/12/31"], "DATE", "2021-03-05", None),
    (["2021.3.5", "2021-12-31"], "DATE", "2021-03-05", None),
    (["2021年3月5日", "2021年12月15日"], "DATE", "2021-03-05", None),
    (["2021年3月5日 14:30", "2021年12月15日 08:00"], "TIMESTAMP", "2021-03-05 14:30:00", None),
    (["25/03/2021", "01/02/2021"], "DATE", "2021-03-25", "day/month/year"),
    (["03/25/2021", "01/02/2021"], "DATE", "2021-03-25", "month/day/year"),
    (["03/04/2021", "05/06/2021"], "VARCHAR", "03/04/2021", "both fit and give other days"),
    (["01/01/2021", "02/02/2021"], "DATE", "2021-01-01", None),
    (["13/13/2021", "01/02/2021"], "VARCHAR", "13/13/2021", None),
    (["05.03.2021", "06.03.2021"], "DATE", "2021-03-05", "day/month/year"),
    (["1/2/21", "2/3/21"], "VARCHAR", "1/2/21", "both fit and give other days"),
    (["3/25/21 5:04 PM", "3/1/21 5:05 AM"], "TIMESTAMP", "2021-03-25 17:04:00", "month/day/year"),
    (["5-Mar-2021", "31-Dec-2021"], "DATE", "2021-03-05", None),
    (["Mar 5, 2021", "December 31, 2021"], "DATE", "2021-03-05", None),
    (["2021-03-05 14:05", "2021-03-06 00:00"], "TIMESTAMP", "2021-03-05 14:05:00", None),
    (["2021-03-05T14:05:01.123456789", "2021-03-06T00:00:00"], "TIMESTAMP_NS", "2021-03-05 14:05:01.123456789", None),
    (["2021-03-05T10:00:00Z", "2021-03-06T11:00:00+02:00"], "TIMESTAMP WITH TIME ZONE", "2021-03-05 10:00:00+00", None),
    (["2021-03-05T10:00:00Z", "2021-03-06T11:00:00"], "VARCHAR", "2021-03-05T10:00:00Z", "time zone"),
    (["2021-02-30", "2021-03-01"], "VARCHAR", "2021-02-30", "1 of 2 values are dates"),
    (["20210305", "20211231"], "BIGINT", "20210305", None),
    (["12:30", "07:05"], "TIME", "12:30:00", None),
    (["5-Mar-21", "31-Dec-69"], "DATE", "2021-03-05", "years with two digits"),
    (["5 March 21 10:30", "31 May 21 08:00"], "TIMESTAMP", "2021-03-05 10:30:00", "years with two digits"),
    (["5-Mar-21", "31-Dec-2021"], "VARCHAR", "5-Mar-21", "1 of 2 values are dates"),
    (["1234567890123456.7", "12.5"], "DECIMAL(38,1)", "1234567890123456.7", None),
    (["9999999999999999.0", "1"], "DECIMAL(38,1)", "9999999999999999.0", None),
    (["9007199254740.9931", "1.5"], "DECIMAL(38,4)", "9007199254740.9931", None),
    (["48.856614000000001", "2.3522219000000002"], "DOUBLE", "48.856614", None),
    (["-99999999999999999999999999999999999999.9", "1"], "DOUBLE", "-1e+38", "are rounded to 15 digits"),
    (["EUR 5", "EUR 12345678901234567"], "BIGINT", "5", "in EUR"),
    (["€1.234", "€5"], "VARCHAR", "€1.234", "with thousands or with a decimal point"),
    (["R$ 1.234", "R$ 10.000"], "VARCHAR", "R$ 1.234", "with thousands or with a decimal point"),
    (["€1.50", "€5"], "DOUBLE", "1.5", "in €"),
    (["$3.459", "$3.5"], "DOUBLE", "3.459", "in $"),
    (["(5)", "(6)"], "BIGINT", "-5", "in parentheses are read as negative"),
    (["25:30", "07:05"], "VARCHAR", "25:30", None),
]  # fmt: skip


@pytest.mark.parametrize(("values", "kind", "first", "told"), _CASES)
def test_a_column_has_the_type_that_all_its_values_have(
    values: list[str], kind: str, first: str, told: str | None
) -> None:
    with duckdb.connect() as root:
        root.execute("SET TimeZone = 'UTC'")
        root.execute("CREATE TABLE t AS SELECT unnest(?::VARCHAR[]) AS c0", [values])
        column = infer_types(root, "t", ["c0"], "t")[0]
        row = root.execute(f"SELECT v::VARCHAR, typeof(v) FROM (SELECT {column.expression} AS v FROM t)").fetchone()
    assert row is not None
    assert (row[1], row[0].casefold()) == (kind, first.casefold())
    assert told is None or told in " ".join(column.notes)
    assert column.notes or kind != "VARCHAR" or told is None


def test_later_rows_decide_too() -> None:
    with duckdb.connect() as root:
        root.execute("CREATE TABLE t AS SELECT '01/02/2021' AS c0 FROM range(5000) UNION ALL SELECT '25/12/2021'")
        column = infer_types(root, "t", ["c0"], "t")[0]
    assert column.notes == ["dates are read as day/month/year"]


def test_what_decimal_commas_say_of_the_other_columns() -> None:
    with duckdb.connect() as root:
        root.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES ('2,5', '1.234', '7'), ('1.000,5', '5.678', '8')) t(c0, c1, c2)"
        )
        columns = infer_types(root, "t", ["c0", "c1", "c2"], "t")
    assert ["CAST" in column.expression for column in columns] == [True, False, True]
    assert "since other columns of the file have decimal commas" in columns[1].notes[0]

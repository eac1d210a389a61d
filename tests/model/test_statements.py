"""Two texts are one statement if they differ in nothing that an answer depends on."""

from __future__ import annotations

import pytest

from longthread.model.run import statement_form

COUNT = "SELECT count(*) FROM customers WHERE country = 'UK' -- all\nORDER BY 1"


@pytest.mark.parametrize(
    "other",
    [
        f"  {COUNT};\n",
        COUNT.replace("SELECT", "select").replace("customers", "Customers"),
        COUNT.replace(" FROM", "\n\tFROM"),
    ],
)
def test_blanks_case_and_the_end_do_not_count(other: str) -> None:
    assert statement_form(other) == statement_form(COUNT)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SELECT 1 WHERE a = 'uk'", "SELECT 1 WHERE a = 'UK'"),
        ("SELECT 1 WHERE a = 'a b'", "SELECT 1 WHERE a = 'a  b'"),
        ("SELECT 1 WHERE a = 'it''s x'", "SELECT 1 WHERE a = 'it''s X'"),
        ('SELECT "customerid" FROM t', 'SELECT "CustomerId" FROM t'),
        ("SELECT `customerid` FROM t", "SELECT `CustomerId` FROM t"),
        ("SELECT $$uk$$", "SELECT $$UK$$"),
        ("SELECT $a$it's uk$a$", "SELECT $a$it's UK$a$"),
        ("SELECT 1 -- don't\nWHERE a = 'uk'", "SELECT 1 -- don't\nWHERE a = 'UK'"),
        ("SELECT 1 /* don't */ WHERE a = 'uk'", "SELECT 1 /* don't */ WHERE a = 'UK'"),
        ("SELECT 1 # don't\nWHERE a = 'uk'", "SELECT 1 # don't\nWHERE a = 'UK'"),
        ("SELECT 'a\\' or ', 'uk'", "SELECT 'a\\' or ', 'UK'"),
        ("SELECT 1 -- a\n, 2", "SELECT 1 -- a , 2"),
        ("SELECT 'uk", "SELECT 'UK"),
        ("SELECT 1 WHERE a = '国家'", "SELECT 1 WHERE a = '城市'"),
    ],
)
def test_literals_quoted_names_and_comments_count_exactly(first: str, second: str) -> None:
    assert statement_form(first) != statement_form(second)


def test_names_that_keep_their_case_count_with_it() -> None:
    assert statement_form("SELECT 1 FROM T", folds=False) != statement_form("SELECT 1 FROM t", folds=False)
    assert statement_form("SELECT 1  FROM T;", folds=False) == statement_form("SELECT 1 FROM T", folds=False)

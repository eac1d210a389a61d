"""URLs of sources, in their parts and as text again."""

from __future__ import annotations

from typing import Any

import pytest

from longthread.tools.analysis.address import SourceUrl
from longthread.tools.analysis.engines.postgresql import build_options

READ: dict[str, SourceUrl] = {
    "postgresql://ann@db.example.com:5433/shop": SourceUrl("postgresql", "ann", None, "db.example.com", 5433, "shop"),
    "postgresql+psycopg://ann:p%40ss%3A%2F@[::1]/a%20b": SourceUrl(
        "postgresql+psycopg", "ann", "p@ss:/", "::1", None, "a b"
    ),
    "mysql://%E6%9D%8E:%E5%AF%86@h/%E5%BA%93": SourceUrl("mysql", "李", "密", "h", None, "库"),
    "sqlite:///relative.db": SourceUrl("sqlite", database="relative.db"),
    "sqlite:////absolute/数据.db": SourceUrl("sqlite", database="/absolute/数据.db"),
    "duckdb:///:memory:": SourceUrl("duckdb", database=":memory:"),
    "postgresql:///shop?host=/tmp&sslmode=require": SourceUrl(
        "postgresql", database="shop", query={"host": ("/tmp",), "sslmode": ("require",)}
    ),
    "postgresql://?host=a:1&host=b:2": SourceUrl("postgresql", query={"host": ("a:1", "b:2")}),
    "mysql://u:@h": SourceUrl("mysql", "u", "", "h"),
    "mysql://": SourceUrl("mysql"),
}


@pytest.mark.parametrize("text", READ)
def test_a_url_is_read_in_its_parts_and_written_as_one_that_reads_the_same(text: str) -> None:
    assert SourceUrl.parse(text) == READ[text]
    assert SourceUrl.parse(READ[text].text()) == READ[text]


def test_a_password_is_hidden_and_special_characters_are_encoded() -> None:
    url = SourceUrl("mysql", "a/b", "p@:?", "::1", 1, "x y/z?", {"b": ("1 2", "&"), "a": ("密",)})
    assert url.text() == "mysql://a%2Fb:p%40%3A%3F@[::1]:1/x y/z%3F?a=%E5%AF%86&b=1+2&b=%26"
    assert url.text(password=False).startswith("mysql://a%2Fb:***@[::1]:1/")
    assert SourceUrl.parse(url.text()) == url


@pytest.mark.parametrize(
    "text", ["", "shop.db", "postgresql:/h/db", "postgresql://u:s3cret@h:port/db", "mysql://h:/db", "a-b://h"]
)
def test_what_is_no_url_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it is no URL$|^its port is no number$") as told:
        SourceUrl.parse(text)
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("postgresql://", {}),
        ("postgresql://u:p@h:1/d", {"user": "u", "password": "p", "host": "h", "port": 1, "dbname": "d"}),
        ("postgresql:///d?host=/tmp&port=5433", {"host": "/tmp", "port": "5433", "dbname": "d"}),
        ("postgresql:///d?host=a,b&port=1,2", {"host": "a,b", "port": "1,2", "dbname": "d"}),
        ("postgresql:///d?host=a:1&host=b:2", {"host": "a,b", "port": "1,2", "dbname": "d"}),
        ("postgresql:///d?host=a:1&host=b", {"host": "a,b", "port": "1,", "dbname": "d"}),
        ("postgresql://h/d?sslmode=disable&sslmode=require", {"host": "h", "dbname": "d", "sslmode": "require"}),
    ],
)
def test_a_url_says_what_libpq_is_told(text: str, options: dict[str, Any]) -> None:
    assert build_options(SourceUrl.parse(text)) == options

"""SQL templates: what is bound, what is escaped, and what is refused with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from longthread.errors import ArgumentsInvalid, ToolInvalid
from longthread.tools.types.query import compile_template

PROPERTIES: dict[str, Any] = {
    "query": {"type": "string"},
    "limit": {"type": "integer", "default": 10},
    "flag": {"type": "boolean"},
    "price": {"type": "number"},
    "kind": {"enum": ["a", "b"]},
    "maybe": {"type": ["string", "null"]},
    "ids": {"type": "array", "items": {"type": "integer"}},
    "any": {},
}
DIALECTS = ["postgresql", "mysql", "sqlite", "duckdb"]
PRINTED = "SELECT * FROM data WHERE content ILIKE '%{{query}}%' LIMIT {{limit}}"


@pytest.mark.parametrize(
    ("dialect", "run"),
    [
        ("postgresql", "SELECT * FROM data WHERE content ILIKE $1 LIMIT $2"),
        ("sqlite", "SELECT * FROM data WHERE content LIKE :p1 ESCAPE '\\' LIMIT :p2"),
        ("duckdb", "SELECT * FROM data WHERE content ILIKE $1 ESCAPE '\\' LIMIT $2"),
        ("mysql", "SELECT * FROM data WHERE content LIKE :p1 LIMIT :p2"),
    ],
)
def test_the_documents_template_is_compiled_as_it_is_printed(dialect: str, run: str) -> None:
    template = compile_template(PRINTED, PROPERTIES, dialect)
    statement = template.statement({"query": r"50% of_\x", "limit": 5})
    assert statement.run == template.example == run
    assert statement.values == [r"%50\% of\_\\x%", 5]
    text = r"'%50\% of\_\\x%'"
    text = text.replace("\\", "\\\\") if dialect == "mysql" else text
    said = run.replace("$1", text).replace(":p1", text)
    assert statement.shown == said.replace("$2", " 5 ").replace(":p2", " 5 ")


def test_mysql_has_texts_in_double_quotes_too() -> None:
    template = compile_template(
        'SELECT `a b` FROM t WHERE a = "it\'s {{query}}" AND b LIKE "{{query}}!%"', PROPERTIES, "mysql"
    )
    statement = template.statement({"query": "50%"})
    assert statement.run == "SELECT `a b` FROM t WHERE a = :p1 AND b LIKE :p2"
    assert statement.values == ["it's 50%", r"50\%!%"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT * FROM t WHERE a = {{query}}", ["x'y"]),
        ("SELECT * FROM t WHERE a = '{{query}}'", ["x'y"]),
        ("SELECT * FROM t WHERE a = 'it''s {{query}} / {{kind}}'", ["it's x'y / b"]),
        ("SELECT * FROM t WHERE a = {{ query }} AND b <> {{query}}", ["x'y", "x'y"]),
        ("SELECT {{price}} * n, {{flag}} AS 名字, '中文{{query}}' FROM t", [1.5, True, "中文x'y"]),
        ("SELECT * FROM t WHERE a IN ({{kind}}, 'z') AND b BETWEEN {{limit}} AND {{price}}", ["b", 10, 1.5]),
        ("SELECT * FROM t WHERE n-{{limit}} > 0 LIMIT {{limit}} OFFSET {{limit}}", [10, 10, 10]),
        ("SELECT * FROM t WHERE CAST({{maybe}} AS TEXT) IS NULL OR a = {{maybe}}", [None, None]),
        ("SELECT * FROM t WHERE a = 'x{{maybe}}'", [None]),
        ("SELECT CASE WHEN a = {{query}} THEN {{limit}} ELSE lower({{query}}) END FROM t", ["x'y", 10, "x'y"]),
        ("WITH w AS (SELECT * FROM t WHERE a = {{query}}) SELECT * FROM w ORDER BY 1", ["x'y"]),
        ("SELECT * FROM t WHERE d > CAST({{query}} AS DATE)", ["x'y"]),
        ("SELECT * FROM t WHERE {{query}} LIKE a", ["x'y"]),
        ("SELECT * FROM t WHERE a = '{{flag}} {{price}}'", ["true 1.5"]),
    ],
)
def test_values_are_bound(dialect: str, sql: str, values: list[Any]) -> None:
    template = compile_template(sql, PROPERTIES, dialect)
    given = {"query": "x'y", "kind": "b", "limit": 10, "price": 1.5, "flag": True}
    statement = template.statement(given)
    assert statement.values == values
    assert "{{" not in statement.run
    assert "x'y" not in statement.run


@pytest.mark.parametrize(
    ("dialect", "sql", "run", "value"),
    [
        ("sqlite", "SELECT 1 FROM t WHERE a LIKE '{{query}}!%' ESCAPE '!'", "LIKE :p1 ESCAPE '!'", r"!%!_\!!!%"),
        ("sqlite", r"SELECT 1 FROM t WHERE a LIKE 'C:\{{query}}'", r"LIKE :p1 ESCAPE '\'", r"C:\\\%\_\\!"),
        ("postgresql", r"SELECT 1 FROM t WHERE a LIKE '\%{{query}}'", "LIKE $1", r"\%\%\_\\!"),
        ("duckdb", "SELECT 1 FROM t WHERE a NOT ILIKE {{query}}", r"NOT ILIKE $1 ESCAPE '\'", r"\%\_\\!"),
        ("sqlite", "SELECT 1 FROM t WHERE a GLOB '*{{query}}*'", "GLOB :p1", r"*%_\!*"),
    ],
)
def test_wildcards_of_a_value_are_themselves(dialect: str, sql: str, run: str, value: str) -> None:
    template = compile_template(sql, PROPERTIES, dialect)
    statement = template.statement({"query": r"%_\!"})
    assert statement.run.endswith(run)
    assert statement.values == [value]


def test_glob_knows_other_wildcards() -> None:
    assert compile_template("SELECT 1 FROM t WHERE a GLOB '*{{query}}'", PROPERTIES, "sqlite").statement(
        {"query": "a*[?"}
    ).values == ["*a[*][[][?]"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM {{query}}", "Names cannot be arguments"),
        ("SELECT * FROM data_{{query}}", "within a word"),
        ('SELECT * FROM "{{query}}"', "Names cannot be arguments"),
        ("SELECT t.{{query}} FROM t", "Names cannot be arguments"),
        ("SELECT {{query}}.a FROM t", ""),
        ("SELECT a AS {{query}} FROM t", "Names cannot be arguments"),
        ("SELECT {{query}}(a) FROM t", ""),
        ("SELECT a FROM t ORDER BY {{query}}", "ORDER BY"),
        ("SELECT a FROM t ORDER BY a {{query}}", ""),
        ("SELECT a FROM t GROUP BY {{query}}", "GROUP BY"),
        ("SELECT a /* {{query}} */ FROM t", "in a comment"),
        ("SELECT a FROM t -- {{query}}\n", "in a comment"),
        ("SELECT a FROM t WHERE a {{query}} 5", ""),
        ("SELECT a FROM t {{query}}", ""),
        ("SELECT a FROM t; {{query}}", ""),
        ("SELECT CAST(a AS {{query}}) FROM t", ""),
        ("SELECT EXTRACT({{query}} FROM a) FROM t", "Names cannot be arguments"),
        ("SELECT a COLLATE {{query}} FROM t", "Names cannot be arguments"),
        ("SELECT a FROM t WHERE d > DATE '{{query}}'", "CAST("),
        ("SELECT a FROM t WHERE d > INTERVAL '{{limit}} days'", "CAST("),
        ("SELECT a FROM t WHERE a LIKE '%' || {{query}} || '%'", "as one text"),
        ("SELECT a FROM t WHERE a LIKE concat('%', {{query}}, '%')", "as one text"),
        ("SELECT a FROM t LIMIT {{query}}", "must be integer"),
        ("SELECT a FROM t LIMIT '{{limit}}'", "must be integer"),
        ("SELECT a FROM t WHERE a = {{ids}}", "must say the type of `ids`"),
        ("SELECT a FROM t WHERE a = '{{ids}}'", "must say the type of `ids`"),
        ("SELECT a FROM t WHERE a IN (SELECT {{ids}})", "must say the type of `ids`"),
        ("SELECT a FROM t WHERE a = {{any}}", "must say the type of `any`"),
        ("SELECT a FROM t WHERE a = {{qeury}}", "The nearest are: query"),
        ("SELECT a FROM t WHERE a = {{query", "is not the place of an argument"),
        ("SELECT a FROM t WHERE a = {{query.x}}", "is not the place of an argument"),
        ("SELECT a FROM t WHERE a = {{{query}}}", ""),
        ("SELECT a FROM t WHERE a = $${{query}}$$", ""),
        ("SELECT a FROM t WHERE a = :p9 AND b = {{query}}", ""),
    ],
)
def test_what_is_no_value_is_refused(dialect: str, sql: str, said: str) -> None:
    with pytest.raises(ToolInvalid) as caught:
        compile_template(sql, PROPERTIES, dialect)
    assert said in str(caught.value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_quoted_name_has_no_place(dialect: str) -> None:
    name = "`x{{query}}`" if dialect == "mysql" else '"x{{query}}"'
    with pytest.raises(ToolInvalid, match="Names cannot be arguments"):
        compile_template(f"SELECT {name} FROM t", PROPERTIES, dialect)


@pytest.mark.parametrize("sql", ["SELECT a FROM t WHERE a ~ '^{{query}}'", "SELECT a FROM t WHERE a = E'x{{query}}'"])
def test_what_postgresql_would_read_otherwise_is_refused(sql: str) -> None:
    with pytest.raises(ToolInvalid):
        compile_template(sql, PROPERTIES, "postgresql")


@pytest.mark.parametrize("own", ["$1", ":p1", "?"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_places_of_sqls_own_are_refused(dialect: str, own: str) -> None:
    with pytest.raises(ToolInvalid):
        compile_template(f"SELECT a FROM t WHERE a = {own} AND b = {{{{query}}}}", PROPERTIES, dialect)


def test_a_number_that_no_database_takes_is_refused() -> None:
    template = compile_template("SELECT {{limit}} FROM t", PROPERTIES, "sqlite")
    with pytest.raises(ArgumentsInvalid, match="64 bits"):
        template.statement({"limit": 2**63})
    assert template.statement({"limit": -(2**63)}).values == [-(2**63)]


def test_types_are_those_of_the_schema() -> None:
    properties = {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "b": {"const": 5}, "c": {"enum": [[1]]}}
    assert compile_template("SELECT {{a}}, {{b}}", properties, "sqlite").statement({"a": None, "b": 5}).values == [
        None,
        5,
    ]
    with pytest.raises(ToolInvalid, match="type of `c`"):
        compile_template("SELECT {{c}}", properties, "sqlite")


@pytest.mark.parametrize(
    ("dialect", "run"),
    [
        ("sqlite", "SELECT a FROM t WHERE b = :p1 AND a IN (:p2, :p3, :p4) LIMIT :p5"),
        ("postgresql", "SELECT a FROM t WHERE b = $1 AND a IN ($2, $3, $4) LIMIT $5"),
    ],
)
def test_a_list_is_as_many_parameters_as_it_has_items(dialect: str, run: str) -> None:
    sql = "SELECT a FROM t WHERE b = {{query}} AND a IN ({{ids}}) LIMIT {{limit}}"
    template = compile_template(sql, PROPERTIES, dialect)
    statement = template.statement({"query": "x", "ids": [7, 8, 9], "limit": 5})
    assert (statement.run, statement.values) == (run, ["x", 7, 8, 9, 5])
    for none in ([], None):
        assert template.statement({"query": "x", "ids": none, "limit": 5}).values == ["x", None, 5]

"""What differs between databases stands in one module for each of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from longthread.tools.analysis.dialects.dialect import find_dialect, is_file, list_sources, load_dialects

TOOLS = Path(__file__).parents[3] / "src" / "longthread" / "tools"


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("postgresql", "postgresql"),
        ("postgres", "postgresql"),
        ("mysql", "mysql"),
        ("mariadb", "mysql"),
        ("sqlite", "sqlite"),
        ("duckdb", "duckdb"),
        ("tsql", "tsql"),
        ("mssql", "tsql"),
        ("oracle", "oracle"),
    ],
)
def test_a_dialect_is_found_by_each_of_its_names(name: str, dialect: str) -> None:
    assert find_dialect(name).name == dialect


def test_the_most_likely_dialect_of_a_source_is_first() -> None:
    assert list_sources()[:4] == ["postgresql", "mysql", "sqlite", "duckdb"]
    assert [name for name in list_sources()[:4] if is_file(name)] == ["sqlite", "duckdb"]


def test_an_unknown_dialect_allows_no_function() -> None:
    assert not find_dialect("oracle").functions
    assert not find_dialect("oracle").fence


def test_dialects_load_neither_sqlglot_nor_a_driver() -> None:
    """The process that runs the statements of a file has no use for them."""
    load = "from longthread.tools.analysis.dialects import dialect; dialect.load_dialects(); import sys"
    show = "print({'sqlglot', 'duckdb', 'psycopg', 'pymysql'} & set(sys.modules))"
    command = [sys.executable, "-c", f"{load}; {show}"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "set()"


def test_the_name_of_a_dialect_decides_nothing_outside_of_its_own_modules() -> None:
    names = {name for each in load_dialects() for name in (each.name, each.sqlglot, *each.schemes, *each.aliases)}
    assert {"postgres", "mariadb", "tsql"} < names
    compared = {
        f"{path.relative_to(TOOLS)}:{node.lineno}"
        for path in TOOLS.rglob("*.py")
        if path.parent.name != "engines"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare)
        and any(isinstance(each, ast.Constant) and each.value in names for each in ast.walk(node))
    }
    assert compared == set()

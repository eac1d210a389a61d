"""The public names are those that the documentation uses, and few."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longthread
import longthread.conversation_state
import longthread.langgraph
import longthread.testing

ROOT = Path(__file__).parents[1]
NAMES = """
    Analyst Catalog LongthreadError LongthreadSaver LongthreadStore Memories MemoryMiddleware Owner Question Recaller
    Scope Settings Statement create_app errors open_store recall_tool
"""
LANGGRAPH = """
    LongthreadSaver LongthreadStore MemoryExtractor MemoryMessagesState MemoryMiddleware export_langgraph
    import_langgraph memory_node recall_tool
"""
STATES = "CacheConfig SignatureDatabase"
PUBLIC = ("longthread", "longthread.conversation_state", "longthread.langgraph", "longthread.testing")
OF_PLUGINS = {
    "longthread.plugins": {"hookimpl"},
    "longthread.llm.chat": {"Chunk"},
    "longthread.messages.message": {"Message"},
}
"""What a plugin is made with, by its module."""


def examples() -> list[tuple[str, str]]:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    found = [(page, re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M)) for page in pages]
    found += [(script, [script.read_text("utf-8")]) for script in ROOT.glob("examples/*.py")]
    return [(str(page.relative_to(ROOT)), code) for page, codes in found for code in codes]


def test_the_public_names_stay() -> None:
    assert longthread.__all__ == NAMES.split()
    assert longthread.langgraph.__all__ == LANGGRAPH.split()
    assert longthread.conversation_state.__all__ == STATES.split()


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_name_is_there(module: str) -> None:
    public = importlib.import_module(module)
    for name in public.__all__:
        assert getattr(public, name).__name__.rpartition(".")[2] == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = public.nothing


def test_a_name_is_listed_before_it_is_loaded() -> None:
    assert set(dir(longthread)) == {*longthread.__all__, "__version__"}


def test_the_documentation_imports_public_names_alone() -> None:
    checked = 0
    for page, code in examples():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                assert not [each.name for each in node.names if each.name.partition(".")[0] == "longthread"], page
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "longthread":
                assert node.module in {*PUBLIC, *OF_PLUGINS}, page
                public = OF_PLUGINS.get(node.module) or {*importlib.import_module(node.module).__all__}
                assert {each.name for each in node.names} <= public, page
                checked += 1
    assert checked > 15


def test_the_page_of_the_api_lists_each_name() -> None:
    page = (ROOT / "docs/reference/api.md").read_text("utf-8")
    for name in PUBLIC:
        section = page.split(f"## `{name}`\n")[1].split("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)", section, re.MULTILINE)
        assert sorted(listed) == sorted(importlib.import_module(name).__all__), name


def test_to_import_the_package_loads_nothing_else() -> None:
    script = "import sys, longthread; print(sorted(n for n in sys.modules if n.startswith(('longthread', 'lang'))))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "['longthread']\n"

"""The core needs neither LangChain nor LangGraph, and says how to install them where something does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGES = ("langchain", "langchain_core", "langchain_openai", "langgraph", "langsmith", "openai")
MISSING = f"import sys\nsys.modules.update(dict.fromkeys({PACKAGES}))\n"
LOADED = "print([n for n in sys.modules if n.partition('.')[0].startswith(('langchain', 'langgraph', 'langsmith'))])"
UNUSED = "print('unused:', sys.modules.keys() & {'httpx', 'duckdb', 'psycopg', 'yaml', 'fastapi', 'markdown_it'})"
RUN = """
from longthread.cli.start import main
sys.argv = ['longthread', *{!r}]
try:
    main()
except SystemExit as ended:
    assert not ended.code
"""
TELL = """
from longthread.errors import LongthreadError
try:
    {}
except LongthreadError as error:
    print(error)
"""


def python(code: str, tmp_path: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_question_is_answered_and_threads_are_listed_without_them(tmp_path: Path) -> None:
    store = ["--database", str(tmp_path / "c.db")]
    ask = RUN.format(["ask", "How many rockets are there?", "--source", "demo", "--model", "demo", *store])
    told = python(MISSING + ask + UNUSED, tmp_path)
    assert "Demo model" in told
    assert "unused: set()" in told
    listed = python("import sys\n" + RUN.format(["threads", "list", *store]) + LOADED, tmp_path)
    assert "How many rockets" in listed
    assert "Would delete" in python(
        MISSING + RUN.format(["db", "prune", "--entries-older-than", "1d", *store]), tmp_path
    )
    assert listed.rstrip().endswith("[]")


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("from longthread import LongthreadSaver", "langgraph"),
        ("import longthread.langgraph", "langgraph"),
        ("from longthread.llm.models import resolve_model; resolve_model('groq:llama3', Settings())", "langchain"),
    ],
)
def test_what_needs_them_says_how_to_install_them(code: str, extra: str, tmp_path: Path) -> None:
    told = python(MISSING + "from longthread.settings import Settings" + TELL.format(code), tmp_path)
    assert "pip install 'langchain" in told
    assert f"'{extra}<" in told

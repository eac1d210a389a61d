"""The core needs neither LangChain nor LangGraph, and says how to install them where something does."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGES = ("langchain", "langchain_core", "langchain_openai", "langgraph", "langsmith", "openai")
MISSING = f"import sys\nsys.modules.update(dict.fromkeys({PACKAGES}))\n"
LOADED = "print([n for n in sys.modules if n.partition('.')[0].startswith(('langchain', 'langgraph', 'langsmith'))])"
NOT_FOR_A_QUESTION = {"httpx", "duckdb", "psycopg", "yaml", "fastapi", "markdown_it", "opentelemetry"}
UNUSED = f"print('unused:', sys.modules.keys() & {NOT_FOR_A_QUESTION})"
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
        ("from longthread.llm.models import resolve_model; resolve_model('cohere:command', Settings())", "langchain"),
    ],
)
def test_what_needs_them_says_how_to_install_them(code: str, extra: str, tmp_path: Path) -> None:
    told = python(MISSING + "from longthread.settings import Settings" + TELL.format(code), tmp_path)
    assert "pip install 'langchain" in told
    assert f"'{extra}<" in told


APP_MISSING = "import sys\nfrom longthread.extras import APP_MODULES\nsys.modules.update(dict.fromkeys(APP_MODULES))\n"
AGENT = """
from langchain.agents import create_agent
from longthread import LongthreadSaver, MemoryMiddleware, recall_tool
from longthread.testing import ScriptedChatModel
with LongthreadSaver.from_conn_string('c.db') as saver:
    model = ScriptedChatModel([{'action': 'recall_memory', 'args': {'query': 'goldfish'}}, {'finish': 'Rex'}])
    agent = create_agent(model, [recall_tool(saver)], checkpointer=saver, middleware=[MemoryMiddleware(saver)])
    agent.invoke({'messages': [('user', 'What is my goldfish called?')]}, {'configurable': {'thread_id': 't'}})
"""


@pytest.mark.slow
def test_langgraph_and_the_log_need_no_app(tmp_path: Path) -> None:
    python(APP_MISSING + AGENT, tmp_path)
    store = ["--database", str(tmp_path / "c.db")]
    assert "goldfish" in python(APP_MISSING + RUN.format(["threads", "list", *store]), tmp_path)
    assert "goldfish" in python(APP_MISSING + RUN.format(["recall", "goldfish", *store]), tmp_path)
    assert "The last view" in python(APP_MISSING + RUN.format(["view", "t", *store]), tmp_path)


@pytest.mark.parametrize(
    "code",
    [
        "from longthread import Analyst",
        "from longthread import Catalog",
        "from longthread import create_app",
        "from longthread.testing import ProviderEmulator",
    ],
)
def test_what_needs_the_app_says_how_to_install_it(code: str, tmp_path: Path) -> None:
    told = python(APP_MISSING + TELL.format(code), tmp_path)
    assert "which is not installed: pip install " in told
    assert "'fastapi<" in told
    assert "longthread-demo" not in told  # an extra of its own


def test_what_needs_another_package_of_the_repository_says_how_to_install_it(tmp_path: Path) -> None:
    missing = "import sys\nsys.modules['longthread_testing.emulator'] = sys.modules['longthread_testing'] = None\n"
    told = python(missing + TELL.format("from longthread.testing import ProviderEmulator"), tmp_path)
    assert "needs the Python package longthread-testing, which is not installed: pip install -e packages/" in told


def test_an_eval_that_needs_langchain_says_how_to_install_it(tmp_path: Path) -> None:
    command = "from longthread.cli.app import main; sys.argv = ['longthread', 'eval', 'context']; main()"
    ended = subprocess.run(
        [sys.executable, "-c", MISSING + command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    told = " ".join(ended.stderr.split())
    assert ended.returncode == 2
    assert "`longthread eval context` needs the Python package langchain_core, which is not installed: pip" in told


@pytest.mark.parametrize("command", ["ask", "demo", "gateway"])
def test_a_command_that_needs_the_app_says_how_to_install_it(command: str, tmp_path: Path) -> None:
    arguments = [command, "How many?"] if command == "ask" else [command]
    ended = subprocess.run(
        [sys.executable, "-c", APP_MISSING + RUN.format([*arguments, "--database", "c.db"])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert f"`longthread {command}` needs the Python package" in " ".join(ended.stderr.split())


def test_a_command_of_another_package_says_how_to_install_it(tmp_path: Path) -> None:
    no_plugins = "import importlib.metadata, sys\nimportlib.metadata.entry_points = lambda **group: ()\n"
    ended = subprocess.run(
        [sys.executable, "-c", no_plugins + RUN.format(["eval", "recall", "file.jsonl"])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )
    assert ended.stderr.splitlines()[0] == (
        "Error: `longthread eval` needs the Python package longthread-evals, which is not installed: "
        "pip install -e evals"
    )


def test_langgraph_installs_few_packages() -> None:
    assert len(closure("longthread", "langgraph")) <= 60


def closure(name: str, extra: str = "") -> set[str]:
    """The packages that pip installs for one, by what the installed ones require here."""
    found, waiting = set[tuple[str, str]](), {(name, extra)}
    while waiting:
        package, wanted = one = waiting.pop()
        found.add(one)
        for each in map(Requirement, requires(package) or ()):
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in ("", wanted)):
                waiting |= {(canonicalize_name(each.name), more) for more in ("", *each.extras)} - found
    return {package for package, _ in found}

"""The examples run as they stand, print what is right, and are listed."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from tests.test_docs import environment

pytestmark = pytest.mark.one_backend

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
PUBLIC = {"longthread", "longthread.conversation_state", "longthread.langgraph", "longthread.testing"}
MOST_LINES, LONG = 70, "long_conversation"

PRINTS = {
    "approval": [
        "waiting",
        "They say: “Not to everybody.”",
        "'result': 'sent to ada@example.org'",
        "Ada's mail is sent, and that to everybody is not.",
    ],
    "ask_csv": ["| Lyon | 2,300 |", "**Berlin**: total revenue **2,100** where `city` = Berlin [q2]."],
    "ask_policy": [
        "ada: There are **2** customers [q1].",
        "bob: There is **1** row of customers [q1].",
        "ada: I cannot answer this. I could not place “emails”",
    ],
    "business_term": ["The GMV is 150 [q1].", "SELECT sum(amount) FILTER (WHERE status = 'paid') AS gmv FROM orders"],
    "custom_tool": ["['Falcon Heavy', 'United States']]", "{'mean': 3.0}"],
    "deep_agent": ["['task', 'write_file']\nThe report is in /report.md.\nThe tower is 330 m high."],
    "evaluate": ["refused: Forecast the launches of next year\n2 of 3 right"],
    "fastapi_app": ["There are **41** rockets [q1].\n400 thread_not_found\nok"],
    "gateway_claude_code": [
        "without the gateway: messages.1.content.0.type: Expected `thinking`",
        "through the gateway: The file says 42.\nthe provider got: ['thinking', 'tool_use']",
    ],
    "gateway_responses": [
        "without the gateway: Previous response with id",
        "through the gateway: I got 3 messages.",
    ],
    "http_client": [
        "  run_sql …\nThere are **41** rockets [q1].",
        "How many launches are there? It is one of 2 branches.",
    ],
    "import_export": [
        "# How many rockets are there?",
        "1 thread imported",
        "most: **China** [q2]",
        "Forgotten: user default: 1 conversation",
    ],
    "langgraph_agent": ["What was my customer number? It is 4711.\nMemories: ['Ada lives in Lyon.']"],
    "langgraph_graph": [
        "A person is asked: Delete it?\nThe last question: No, keep it.",
        "A fork after the first answer: I see 3 messages.",
    ],
    "langgraph_move": ["LongthreadSaver: You said 5 things.", "AsyncSqliteSaver: You said 7 things."],
    "mcp_server": ["There are **41** rockets [q1].\nSELECT COUNT(*)", "conversations: 1"],
    "mcp_tools": ["weather_forecast {'structured': {'result': 'Oslo: sunny, 21 °C'}", "Tomorrow in Oslo: sunny."],
    "memories": ["In kilograms.\nsemantic memory: The user wants weights in kilograms."],
    "replay_view": ["Against call 1\nthe same beginning: 13 tokens", "user      whole     and by country?"],
    "resume_after_kill": ["interrupted", "There are 41 rockets [q1].", "3 requests to the model"],
    "scheduled_report": ["| 2024 | 71 |", "year,launches_count\n2023,2\n2024,5\n2025,3"],
    "signature_cache": [
        "Conversation has 2 messages\ncursor sig_2 4\nCleaned up 1 expired states\nTrue []",
    ],
    "slack_bot": [
        "#space bot: There are **41** rockets [q1].",
        "#finance bot: There are **51** launches",
        "#space bot: There are **15** rockets where `country` = China [q2].",
    ],
    "sub_agent": ["The counter says: There are **41** rockets.\nThe counter was asked: How many rockets are there?"],
}
"""What each program prints, in this order."""


def run(program: Path, folder: Path, commands: Path, *arguments: str) -> str:
    """Run a program as a user does, and return what it prints."""
    done = subprocess.run(
        [str(commands / "python"), str(program), *arguments],
        cwd=folder,
        env=environment(folder, commands),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_is_right(name: str, tmp_path: Path, warmed: Path) -> None:
    printed, place = run(EXAMPLES / f"{name}.py", tmp_path, warmed), 0
    for part in PRINTS[name]:
        place = printed.find(part, place)
        assert place >= 0, f"{part!r} is not in, or not at its place of:\n{printed}"


def test_a_long_conversation_is_restarted_and_knows_what_was_said_first(
    store_address: str, tmp_path: Path, warmed: Path
) -> None:
    printed = run(EXAMPLES / f"{LONG}.py", tmp_path, warmed, store_address)
    found = dict(line.split(": ", 1) for line in printed.splitlines())
    assert found["answer"] == "It is 192.0.2.7."
    assert found["note"] == "By the way, I am allergic to nuts."
    assert int(found["messages_in_state"]) < 100
    assert int(found["most_messages_in_a_prompt"]) < 150


def test_the_plugin_works_where_it_is_installed(tmp_path: Path) -> None:
    """In a fresh environment, which has the packages of this one."""
    folder = Path(shutil.copytree(EXAMPLES / "plugin", tmp_path / "acme"))
    venv.create(tmp_path / "venv")
    python, packages = str(tmp_path / "venv/bin/python"), sysconfig.get_path("purelib")
    [own] = (tmp_path / "venv/lib").glob("python*/site-packages")
    (own / "packages.pth").write_text(f"import site; site.addsitedir({packages!r})\n")

    def start(*command: str) -> str:
        values = os.environ | {"LONGTHREAD_DATA_DIR": str(tmp_path / "data"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(command, cwd=tmp_path, env=values, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    start(sys.executable, "-m", "pip", "--python", python, "install", "-q", *offline, "-e", str(folder))
    assert "8 passed" in start(python, "-m", "pytest", "-p", "no:langsmith_plugin", str(folder))
    longthread = "from longthread.cli.start import main; main()"
    listed = map(json.loads, start(python, "-c", longthread, "plugins", "list", "--json").splitlines())
    [offers] = [row["offers"] for row in listed if row["plugin"] == "acme"]
    assert offers == {
        "commands": ["acme"],
        "engines": ["acme"],
        "models": ["acme"],
        "tool_types": ["conversion"],
    }
    assert start(python, "-c", longthread, "acme") == "acme:echo\n"


def test_the_list_of_examples_has_each_one_with_its_purpose() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| \[(\w+\.py)\]\(\1\) \| (.+) \|$", page, re.MULTILINE))
    purposes = {each.name: str(ast.get_docstring(parse(each))).split("\n")[0] for each in PROGRAMS}
    assert listed == purposes
    assert {f"{name}.py" for name in (*PRINTS, LONG)} == purposes.keys()


def test_an_example_is_short() -> None:
    lines = {each.stem: len(each.read_text("utf-8").splitlines()) for each in PROGRAMS}
    assert {name for name, count in lines.items() if count > MOST_LINES} == {LONG}


def test_an_example_uses_public_names_alone() -> None:
    nodes = [(each.name, node) for each in PROGRAMS for node in ast.walk(parse(each))]
    imported = [
        (file, node.module, alias.name)
        for file, node in nodes
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("longthread")
        for alias in node.names
    ]
    assert len(imported) > 50
    private = [
        each for each in imported if each[1] not in PUBLIC or each[2] not in importlib.import_module(each[1]).__all__
    ]
    assert private == []


def parse(program: Path) -> ast.Module:
    return ast.parse(program.read_text("utf-8"))

"""`longthread tools run`: a tool is called as an agent would call it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longthread.cli.commands import ask as approve
from longthread.cli.terminal import Terminal

pytestmark = pytest.mark.one_backend

Run = Callable[..., Any]
TOOLS = """
{kind: source, name: main, address: demo}
---
kind: tool
name: find
type: query
schema:
  name: find_rockets
  parameters: {type: object, properties: {n: {type: integer, default: 1}, name: {type: string}}, required: [name]}
implementation: {database: main, sql_template: "SELECT name FROM rockets WHERE name LIKE '%{{name}}%' LIMIT {{n}}"}
---
kind: tool
name: twice
type: code
schema: {name: twice, parameters: {type: object, properties: {n: {type: integer, default: 2}}}}
implementation: {code: "def execute(n):\\n    return {'数': n * 2}", approve: true}
---
kind: tool
name: send
type: api
schema: {name: send, parameters: {type: object, properties: {}}}
implementation: {endpoint: "http://127.0.0.1:9/x", headers: {X: "${TRIAL_KEY}"}}
"""


@pytest.fixture
def defined(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text(TOOLS)
    run("apply", "-f", "tools.yaml")


def told(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def says(*answers: str) -> Callable[[str], str]:
    """Somebody who types these lines."""
    left = iter(answers)
    return lambda prompt: next(left)


def test_a_query_tool_is_tried(run: Run, defined: None) -> None:
    for name in ("find", "find_rockets"):
        seen = told(run("tools", "run", name, "--args", '{"name": "Long", "n": 2}'))
        assert seen["ok"] and len(seen["data"]["rows"]) == 2
    [line] = run("tools", "run", "find", "--args", '{"name": "x\' OR 1=1 --"}', "--json").stdout.splitlines()
    assert json.loads(line)["data"]["rows"] == []
    wrong = told(run("tools", "run", "find", "--args", '{"nom": 1}', code=1))
    assert wrong["error"]["type"] == "arguments_invalid" and "`name`" in wrong["error"]["message"]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_tool_that_needs_approval_is_called_when_somebody_says_so(
    run: Run, defined: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_monty")
    assert "--yes" in str(run("tools", "run", "twice", code=2).exception)
    assert told(run("tools", "run", "twice", "--yes"))["data"]["result"] == {"数": 4}
    monkeypatch.setattr(Terminal, "asks", True)
    for answers, result in ((["y"], {"数": 4}), (["e", '{"n": 5}'], {"数": 10})):
        monkeypatch.setattr(approve, "_read", says(*answers))
        seen = run("tools", "run", "twice")
        assert told(seen)["data"]["result"] == result and '"n": 2' in seen.stderr
    monkeypatch.setattr(approve, "_read", says("n", ""))
    assert told(run("tools", "run", "twice", code=1))["error"]["type"] == "rejected"
    monkeypatch.setattr(approve, "_read", lambda prompt: None)
    assert "not called" in str(run("tools", "run", "twice", code=2).exception)
    # What does not fit is told before anybody is asked.
    assert told(run("tools", "run", "twice", "--args", '{"n": "x"}', code=1))["error"]["type"] == "arguments_invalid"


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_guards_and_secrets_hold_as_for_an_agent(
    run: Run, defined: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert told(run("tools", "run", "send", code=1))["error"]["type"] == "secret_unusable"
    monkeypatch.setenv("LONGTHREAD_SECRET_TRIAL_KEY", "very-secret-value")
    refused = run("tools", "run", "send", code=1)
    assert told(refused)["error"]["type"] == "api_refused" and "very-secret" not in refused.output
    sql = {"sql": "DELETE FROM rockets"}
    refused = run("tools", "run", "run_sql", "--source", "demo", "--args", json.dumps(sql), code=1)
    assert told(refused)["error"]["type"] == "sql_refused"
    for source in ("demo", "main"):
        found = told(run("tools", "run", "list_tables", "-s", source))
        assert "rockets" in found["data"]["tables"]
    switched = TOOLS.replace("name: find\n", "name: find\nis_active: false\n")
    run("apply", "-f", "-", text=switched)
    assert "switched off" in str(run("tools", "run", "find", code=2).exception)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["none"], "no tool none.*tools list"),
        (["find", "--args", "[1]"], "no JSON object"),
        (["find", "--args", "{"], "no JSON"),
        (["find", "--source", "demo"], "Leave --source out"),
        (["remember"], "conversation"),
        (["run_sql"], "no source to ask"),
    ],
)
def test_what_cannot_be_tried_is_told(run: Run, defined: None, args: list[str], problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        raise run("tools", "run", *args, code=2).exception

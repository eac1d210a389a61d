"""Runs on a server: they are shown, stopped and decided about as those of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.cli.remote.conftest import Command, ServeProcess
from tests.cli.test_approve import DEFINITIONS, DONE, MAIL

from longthread.cli.remote.client import ServerClient
from longthread.cli.remote.logins import Logins, ServerLogin
from longthread.cli.remote.run_calls import ServerRun
from longthread.errors import NotOnServer, OptionNotOnServer, ServerUnreachable, SourceError, ThreadNotFound
from longthread.testing import ProviderEmulator, Slow

pytestmark = pytest.mark.one_backend

QUESTION = "How many launches were there per year?"
_OF_THIS_RUN = {"thread_id", "run_id", "message_id", "elapsed_ms", "seq"}


def events_of(result: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def compare(events: list[dict[str, Any]]) -> list[str]:
    """What two runs have in common that do the same. Calls of one reply end in any order, and text comes in pieces."""
    calls = [event["call_id"] for event in events if event["type"] == "step_started"]
    found = []
    for event in events:
        kept = {name: value for name, value in event.items() if name not in _OF_THIS_RUN}
        kept |= {"call_id": calls.index(event["call_id"])} if "call_id" in event else {}
        if event["type"] != "text":
            found.append(re.sub(r'"elapsed_ms": \d+', "", json.dumps(kept, sort_keys=True)))
    return sorted(found)


def test_a_run_of_a_server_is_shown_as_one_of_this_machine(command: Command, serve: ServeProcess) -> None:
    command("login", serve())
    there = events_of(command("ask", QUESTION, "--json"))
    here = events_of(command("ask", QUESTION, "--source", "demo", "--model", "demo", "--local", "--json"))
    assert [event["type"] for event in there].count("step_finished") >= 3
    assert compare(there) == compare(here)
    seqs = [event["seq"] for event in there]
    assert seqs == sorted(seqs) and len({event["run_id"] for event in there}) == 1
    shown = command("ask", QUESTION)
    assert there[-1]["answer"] in shown.stdout
    assert "› describe_table launches" in shown.stderr


def test_a_question_goes_on_where_it_is_said(command: Command, serve: ServeProcess) -> None:
    command("login", serve())
    thread = events_of(command("ask", QUESTION, "--thread", "years", "--json"))[0]["thread_id"]
    assert thread == "years", "the server has a source, and so a new conversation may be named"
    for given in ("last", "yea", "years"):
        assert events_of(command("ask", "and how many failed?", "-t", given, "--json"))[0]["thread_id"] == "years"
    missing = command("ask", "More?", "-t", "last", "--local", "--database", "none.db", "--source", "demo", code=2)
    assert isinstance(missing.exception, ThreadNotFound)
    assert isinstance(command("resume", "nothing-like-it", code=2).exception, ThreadNotFound)
    chat = command("chat", "-t", "years", text="How many rockets are there?\n/quit\n")
    assert "41" in chat.stdout


def test_an_error_of_a_server_is_that_of_a_store(command: Command, serve: ServeProcess) -> None:
    command("login", serve())
    there = command("ask", "How many?", "--source", "nosuch.db", code=3)
    here = command("ask", "How many?", "--source", "nosuch.db", "--local", code=3)
    assert isinstance(there.exception, SourceError) and isinstance(here.exception, SourceError)
    assert there.exception.code == here.exception.code
    command("ask", QUESTION, "--thread", "t")
    command("ask", QUESTION, "--thread", "t", "--local", "--source", "demo", "--model", "demo")
    for words in (("resume", "t"), ("stop", "t"), ("approve", "t")):
        failed = command(*words, code=2), command(*words, "--local", code=2)
        assert str(failed[0].exception) == str(failed[1].exception)


def test_a_call_that_waits_is_decided_from_here(command: Command, serve: ServeProcess, store_address: str) -> None:
    Path("clerk.yaml").write_text(DEFINITIONS, encoding="utf-8")
    command("apply", "-f", "clerk.yaml", "--database", store_address)
    with ProviderEmulator([MAIL, DONE, MAIL, DONE, MAIL]) as provider:
        command("login", serve("--model", "llama3", "--source", "demo", LLM_BASE_URL=provider.base_url))
        waits = command("ask", "Write to Ada.", "--agent", "clerk", "-t", "mails", code=10)
        assert '"to": "ada"' in waits.stderr and "longthread approve mails --call" in waits.stderr
        refused = command("approve", "mails", "--model", "demo", code=2)
        assert isinstance(refused.exception, OptionNotOnServer)
        edited = events_of(command("approve", "mails", "--args", '{"to": "grace"}', "--json"))
        assert edited[0]["type"] == "decided", "what was shown is not shown again"
        assert edited[-1]["answer"] == "Done."
        [result] = [event for event in edited if event["type"] == "step_finished"]
        assert (result["action"], result["observation"]["data"]["result"]) == ("send_mail", {"sent": "grace"})
        command("ask", "Again.", "-t", "mails", code=10)
        assert "Done." in command("reject", "mails", "--reason", "Not now.").stdout
        assert "Not now." in json.dumps(provider.requests[-1].body)
        command("ask", "Again.", "-t", "mails", code=10)
        stopped = events_of(command("stop", "mails", "--json"))
        assert [(event["type"], event["reason"]) for event in stopped] == [("paused", "stopped")]


def test_ctrl_c_stops_the_run_on_the_server(
    command: Command, serve: ServeProcess, warmed: Path, tmp_path: Path
) -> None:
    with ProviderEmulator([{"finish": "Ready."}, Slow({"finish": "Late."}, seconds=60)]) as provider:
        url = serve("--model", "llama3", "--source", "demo", LLM_BASE_URL=provider.base_url)
        command("login", url)
        command("ask", "Are you there?", "-t", "slow")
        process = subprocess.Popen(
            [str(warmed / "longthread"), "ask", "How many?", "-t", "slow", "--json"],
            env={name: os.environ[name] for name in ("PATH", "LONGTHREAD_DATA_DIR")} | {"HOME": str(tmp_path)},
            cwd=tmp_path / "client",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["type"] == "started"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["reason"]) == ("paused", "stopped")
    assert "Traceback" not in err


@contextmanager
def cutting_proxy(target: str, cuts: list[int], what: str = "/events") -> Iterator[str]:
    """Hand on connections to a server; one that asks for `what` is cut after so many bytes of the answer, in turn."""
    there = (urlsplit(target).hostname or "", urlsplit(target).port or 0)
    listener = socket.create_server(("127.0.0.1", 0))

    def hand_on(client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while piece := client.recv(65_536):
                server.sendall(piece)

    def serve_one(client: socket.socket) -> None:
        with client, socket.create_connection(there) as server, suppress(OSError):
            asked = client.recv(65_536)
            is_meant = what.encode() in asked.partition(b"\r\n")[0]
            left = cuts.pop(0) if is_meant and cuts else 1 << 40
            server.sendall(asked.replace(b"keep-alive", b"close"))
            threading.Thread(target=hand_on, args=(client, server), daemon=True).start()
            while left > 0 and (piece := server.recv(min(left, 4096))):
                client.sendall(piece)
                left -= len(piece)
            client.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve_one, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()


def test_a_stream_that_breaks_goes_on_without_a_gap(
    command: Command, serve: ServeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.cli.remote.client._AGAIN_SECONDS", 0.01)
    url = serve()
    command("login", url)
    cuts = [900, 1300, 2100, 700]
    with cutting_proxy(url, cuts) as proxy:
        command("login", proxy)
        cut = events_of(command("ask", QUESTION, "--json"))
    assert cuts == []
    assert cut == asyncio.run(read_again(url, cut[0]["thread_id"], cut[0]["run_id"]))


async def read_again(url: str, thread_id: str, run_id: str) -> list[dict[str, Any]]:
    """The events of a run, in one piece."""
    async with ServerClient(ServerLogin(url, "", "")) as client:
        return [event.to_json() async for event in ServerRun(client, thread_id, run_id).events()]


def test_a_server_that_is_gone_for_long_is_said_so(command: Command, serve: ServeProcess) -> None:
    command("login", serve())
    command("logout")
    done = command("ask", "x", "--server", "http://127.0.0.1:9", code=2)
    assert "longthread login" in str(done.exception)
    Logins().keep(ServerLogin("http://127.0.0.1:9", "ada", ""))
    assert isinstance(command("ask", "x", code=1).exception, ServerUnreachable)


def test_what_needs_a_store_says_so(
    command: Command, serve: ServeProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command("login", serve())
    for words in (("db", "status"), ("forget", "--deleted", "--dry-run"), ("view", "last"), ("apply", "-f", "x.yaml")):
        done = command(*words, code=2)
        assert isinstance(done.exception, NotOnServer)
        assert f"`longthread {' '.join(words[: 1 + (words[0] == 'db')])}`" in str(done.exception)
    command("db", "upgrade", "--local")
    command("db", "status", "--local")
    command("db", "status", "--database", str(tmp_path / "client/data/conversations.db"))
    command("--local", "db", "status")
    command("db", "status", "--local", "--server", "https://example.com", code=2)
    command("plugins", "list")
    monkeypatch.setenv("LONGTHREAD_DATABASE", str(tmp_path / "client/data/conversations.db"))
    command("db", "status")


def test_a_question_whose_answer_is_lost_is_asked_once(
    command: Command, serve: ServeProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longthread.cli.remote.run_calls._AGAIN_SECONDS", 0.01)
    url = serve()
    with cutting_proxy(url, [20], "POST /api/chat ") as proxy:
        command("login", proxy)
        command("ask", "How many rockets are there?", "-t", "once")
    command("login", url)
    shown = events_of(command("threads", "show", "once", "--json"))
    assert [each["text"] for each in shown if each["role"] == "user"] == ["How many rockets are there?"]


def test_a_terminal_shows_which_server_is_used(
    command: Command, serve: ServeProcess, warmed: Path, tmp_path: Path
) -> None:
    url = serve()
    command("login", url)
    assert url not in command("threads", "list").stderr
    master, slave = pty.openpty()
    done = subprocess.run(
        [str(warmed / "longthread"), "threads", "list"],
        env={name: os.environ[name] for name in ("PATH", "LONGTHREAD_DATA_DIR")} | {"HOME": str(tmp_path)},
        cwd=tmp_path / "client",
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        check=True,
    )
    assert url not in done.stdout
    assert f"{url} as default" in os.read(master, 4096).decode()
    os.close(master)
    os.close(slave)

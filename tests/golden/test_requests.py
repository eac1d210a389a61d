"""The server, the gateway and the MCP server answer the recorded transcript over sockets, on both backends.

To record a change that a user shall see: LONGTHREAD_TEST_RECORD=1 pytest -m "slow or not slow" tests/golden.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import reduce
from itertools import groupby
from pathlib import Path
from string import Template
from typing import Any

import httpx
import pytest
from tests.golden.normalizer import Normalizer, dump
from tests.golden.transcript import replay

from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

TOKEN = "token-of-this-test"
HEADERS = ("allow", "content-disposition", "location", "retry-after", "www-authenticate", "x-conversation-id")
"""Headers of an answer that are recorded, with its content type."""
_DELTAS = {"TEXT_MESSAGE_CONTENT", "TOOL_CALL_ARGS", "REASONING_MESSAGE_CONTENT"}


@contextmanager
def run_server(*command: str, folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run a server as a process and yield the URL that it prints. SIGTERM ends it."""
    path = folder / f"{command[1]}.log"
    with (
        path.open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log) as running,
    ):
        try:
            while not (url := re.search(r"http://127\.0\.0\.1:\d+", path.read_text("utf-8"))):
                assert running.poll() is None, path.read_text("utf-8")
                time.sleep(0.02)
            yield url[0]
        finally:
            running.terminate()


@pytest.fixture
def servers(folder: Path, environment: dict[str, str], emulator: ProviderEmulator) -> Iterator[dict[str, httpx.Client]]:
    """A client for each server; the servers share one store."""
    tokens = {"LONGTHREAD_GATEWAY_TOKEN": TOKEN, "LONGTHREAD_MCP_TOKEN": TOKEN}
    providers = ("--anthropic-url", emulator.anthropic_url, "--openai-url", emulator.anthropic_url)
    subprocess.run(["longthread", "apply", "-f", "catalog.yaml"], cwd=folder, env=environment, check=True)
    commands = {
        "server": ("serve", "--source", "demo"),
        "gateway": ("gateway", *providers),
        "mcp": ("mcp", "--http", "--source", "demo"),
    }
    with ExitStack() as stack:
        clients = {}
        for name, command in commands.items():
            started = run_server("longthread", *command, "--port", "0", folder=folder, environment=environment | tokens)
            url = stack.enter_context(started)
            clients[name] = stack.enter_context(httpx.Client(base_url=url, timeout=60, trust_env=False))
        while clients["server"].get("/ready").json() == {"status": "warming"}:
            time.sleep(0.02)
        yield clients


def test_requests(backend: str, store_address: str, folder: Path, servers: dict[str, httpx.Client]) -> None:
    normalize = Normalizer({str(folder): "<folder>", store_address: "<store>"})
    variables: dict[str, str] = {}

    def ask(line: str, parts: list[str]) -> str:
        name, method, path = Template(line).safe_substitute(variables).split(" ")
        request = _parse_request([Template(part).safe_substitute(variables) for part in parts])
        if "twice" in parts:
            servers[name].request(method, path, **request)
        answer = servers[name].request(method, path, **request)
        for part in parts:
            if part.startswith("keep "):
                for key, value in _select_values(answer, part.removeprefix("keep ")):
                    variables[key] = value
                    normalize.replace_value(value, key)
        return normalize(f"{answer.status_code}" if "silent" in parts else _format_answer(answer, normalize))

    replay("requests.txt", ask, may_record=backend == "sqlite")


def _parse_request(parts: list[str]) -> dict[str, Any]:
    """Return the arguments for the client from the lines below a request."""
    request: dict[str, Any] = {"headers": {}}
    for part in parts:
        word, _, rest = part.partition(" ")
        if word.startswith("{"):
            request["json"] = json.loads(part)
        elif word == "text":
            request["content"] = rest.replace("\\n", "\n").encode()
        elif word.endswith(":"):
            request["headers"][word[:-1]] = rest
    return request


def _select_values(answer: httpx.Response, wanted: str) -> Iterator[tuple[str, str]]:
    """Yield names and values: each `name=path` names a header, or a place in the body such as `messages.0.id`.

    What an answer lacks is left out: the answer itself shows why.
    """
    for name, _, path in (each.partition("=") for each in wanted.split(" ")):
        with suppress(LookupError, TypeError, ValueError):
            yield name, answer.headers.get(path) or str(reduce(_select_part, path.split("."), answer.json()))


def _select_part(part: Any, key: str) -> Any:
    return part[int(key) if isinstance(part, list) else key]


def _format_answer(answer: httpx.Response, normalize: Normalizer) -> str:
    """Write an answer as text: its status, the recorded headers, its body."""
    kind = answer.headers.get("content-type", "")
    head = f"{answer.status_code} {kind}".rstrip()
    lines = [head, *(f"{name}: {answer.headers[name]}" for name in HEADERS if name in answer.headers)]
    if kind.startswith("text/event-stream"):
        return "\n".join([*lines, *_merge_frames(answer.text, normalize)])
    if "json" in kind and answer.content:
        return "\n".join([*lines, dump(answer.json(), sort=True, normalize=normalize)])
    if answer.request.url.path == "/metrics":
        return "\n".join([*lines, *(line for line in answer.text.splitlines() if line.startswith("#"))])
    return "\n".join([*lines, *answer.text.splitlines()])


def _merge_frames(text: str, normalize: Normalizer) -> Iterator[str]:
    """Yield the events of a stream. Pieces of one text are merged: their number depends on the time."""
    parts = (part for part in re.split(r"\r?\n\r?\n", text) if part.strip() and not part.startswith(":"))
    frames = [_parse_frame(part) for part in parts]

    def key_of_text(frame: tuple[str, Any]) -> Any:
        event = frame[1]
        if isinstance(event, dict) and event.get("type") in _DELTAS:
            return event["type"], event.get("messageId"), event.get("toolCallId")
        return id(frame)

    for _, group in groupby(frames, key_of_text):
        head, event = (pieces := list(group))[0]
        if len(pieces) > 1:
            event = event | {"delta": "".join(each["delta"] for _, each in pieces)}
        yield head + (event if isinstance(event, str) else dump(event, sort=True, normalize=normalize))


def _parse_frame(text: str) -> tuple[str, Any]:
    """Return the fields of a frame before its data, and the data, parsed where it is JSON."""
    lines = text.splitlines()
    head = "".join(f"{line} | " for line in lines if not line.startswith("data:"))
    data = "\n".join(line[5:].lstrip() for line in lines if line.startswith("data:"))
    try:
        return head, json.loads(data)
    except ValueError:
        return head, data

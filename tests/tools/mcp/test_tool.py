"""MCP tools, against real servers: a program, and one on a socket of this machine."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from longthread.errors import ApiRefused, ToolInvalid
from longthread.tools.api_exchange import Network
from longthread.tools.mcp import Servers, ServerUrl
from longthread.tools.mcp_session import Web
from longthread.tools.secrets import Secrets
from longthread.tools.tool import Tool
from longthread.tools.types.mcp import build, check

HERE = Path(__file__).parent
PROGRAM: dict[str, Any] = {"args": ["-m", "tests.tools.mcp.offering"]}
"""A server as a program. What it imports takes seconds, so that a warm process starts it: see `warm_program`."""
OLD: dict[str, Any] = {"command": sys.executable, "args": [str(HERE / "old.py")]}
OBJECT = {"type": "object"}
HOSTILE: list[dict[str, object]] = [
    {"name": "fine", "inputSchema": OBJECT},
    {"name": "slow", "inputSchema": {**OBJECT, "properties": {"a": {"type": "string", "pattern": "^(a|a)*(?=b)$"}}}},
    {"name": "names", "inputSchema": {**OBJECT, "patternProperties": {"^(a|a)*$": {}}, "additionalProperties": False}},
    {"name": "circle", "inputSchema": {**OBJECT, "properties": {"a": {"$ref": "#/properties/a", "default": 1}}}},
    {"name": "fi\u001b[2J\nne", "description": "x" * 10_000, "inputSchema": OBJECT},
    {"name": "fine", "description": "again", "inputSchema": OBJECT},
    {"name": "", "inputSchema": OBJECT},
    {"name": "long" * 1000, "inputSchema": OBJECT},
]
"""Tools that are described as nobody should."""


def offering(*tools: dict[str, object]) -> dict[str, Any]:
    """A server with these tools."""
    return OLD | {"args": [*OLD["args"], json.dumps(tools)]}


def defined(parameters: dict[str, Any] | None = None, **implementation: Any) -> SimpleNamespace:
    return SimpleNamespace(name="example", description="", parameters=parameters or {}, implementation=implementation)


@pytest.fixture(autouse=True)
def warm_program(warmed: Path) -> None:
    PROGRAM["command"] = str(warmed / "python")


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with Servers() as found:
        yield found


class Running:
    """The server on a port, started by a warm process."""

    def __init__(self, python: Path) -> None:
        self.python = str(python)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            self.python, "-m", "tests.tools.mcp.offering", str(self.port), stderr=asyncio.subprocess.DEVNULL
        )
        await self._until(listens=True)

    async def _until(self, *, listens: bool) -> None:
        async with asyncio.timeout(30):
            while await self._listens() is not listens:  # noqa: ASYNC110 - the port of another process
                await asyncio.sleep(0.02)

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            await self.process.wait()
            await self._until(listens=False)
            self.process = None


@pytest.fixture
async def running(warmed: Path) -> AsyncIterator[Running]:
    found = Running(warmed / "python")
    await found.start()
    yield found
    await found.stop()


async def the(servers: Servers, tool_name: str, **implementation: Any) -> Tool:
    [tool] = await build(defined(tool_name=tool_name, **implementation), servers)
    return tool


def names(tools: Sequence[Tool]) -> set[str]:
    return {tool.name for tool in tools}


async def test_a_tool_has_the_schema_of_its_server_and_is_called_with_its_defaults(servers: Servers) -> None:
    tool = await the(servers, "add", **PROGRAM)
    assert (tool.name, tool.description) == ("example", "Adds two numbers")
    assert tool.parameters["properties"]["b"]["default"] == 1
    assert (await tool.call({"a": 41}))["data"]["structured"] == {"result": 42}
    for wrong in ({"a": "many"}, {}, {"a": 1, "c": 2}):
        seen = await tool.call(wrong)
        assert (seen["ok"], seen["error"]["type"]) == (False, "arguments_invalid")


async def test_all_tools_are_found_and_chosen_by_name(servers: Servers) -> None:
    every = names(await build(defined(**PROGRAM), servers))
    assert {"example_add", "example_wait", "example_picture"} <= every
    some = await build(defined(**PROGRAM, tools=["a*", "fail"], exclude=["ab*"]), servers)
    assert names(some) == {"example_add", "example_fail"}
    with pytest.raises(ToolInvalid, match="no tool that `tools`"):
        await build(defined(**PROGRAM, tools=["nothing"]), servers)
    with pytest.raises(ToolInvalid, match=r"no tool subtract\. There are: .*add"):
        await the(servers, "subtract", **PROGRAM)


async def test_what_a_server_says_of_its_tools_hurts_nobody(servers: Servers) -> None:
    tools = {tool.name: tool for tool in await build(defined(**offering(*HOSTILE)), servers)}
    assert tools.keys() == {
        "example_fine", "example_slow", "example_names", "example_fi__2J_ne", "example_", f"example_{'long' * 14}"
    }  # fmt: skip
    # Python's regular expressions would take years for these.
    assert (await tools["example_slow"].call({"a": "a" * 1000}))["ok"]
    assert (await tools["example_names"].call({"a" * 1000 + "!": 1}))["ok"]
    with pytest.raises(ToolInvalid, match="is not as the protocol has it"):
        await build(defined(**offering({"name": "wrong", "inputSchema": {**OBJECT, "properties": "none"}})), servers)


async def test_over_http_the_same_tools_are_used(servers: Servers, running: Running) -> None:
    tool = await the(servers, "add", url=running.url, allow_private=True)
    assert (await tool.call({"a": 2, "b": 3}))["data"]["structured"] == {"result": 5}
    many = await asyncio.gather(*(tool.call({"a": number}) for number in range(20)))
    assert [one["data"]["structured"]["result"] for one in many] == list(range(1, 21))


@pytest.mark.parametrize(("server", "tool", "version"), [(PROGRAM, "add", "2026-07-28"), (OLD, "greet", "2025-03-26")])
async def test_both_eras_are_spoken(servers: Servers, server: dict[str, Any], tool: str, version: str) -> None:
    found = await the(servers, tool, **server)
    seen = await found.call({"who": "you"} if tool == "greet" else {"a": 1})
    assert seen["ok"], seen
    assert [session.version for session in servers._sessions.values()] == [version]
    if tool == "greet":
        assert seen["data"]["text"] == "Hello you"


async def test_a_program_has_the_environment_that_is_listed_and_no_other(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_SECRET", "not for it")
    secrets = Secrets({"TOKEN": "s3cret-token"})
    implementation = {**PROGRAM, "env": {"LISTED": "yes", "KEY": "${TOKEN}"}, "tool_name": "environment"}
    [tool] = await build(defined(**implementation), servers, secrets=secrets)
    seen = (await tool.call({}))["data"]["structured"]
    seen = seen.get("result", seen)
    assert {name: seen[name] for name in ("LISTED", "KEY")} == {"LISTED": "yes", "KEY": "***"}
    assert set(seen) <= {"LISTED", "KEY", "LC_CTYPE"}, "Python itself sets LC_CTYPE"


async def test_an_error_of_the_tool_is_an_observation(servers: Servers) -> None:
    secrets = Secrets({"TOKEN": "s3cret-token"})
    [tool] = await build(defined(**PROGRAM, tool_name="fail", env={"T": "${TOKEN}"}), servers, secrets=secrets)
    seen = await tool.call({"why": "it was s3cret-token"})
    assert (seen["ok"], seen["error"]["type"]) == (False, "mcp_tool_failed")
    assert "it was ***" in seen["error"]["message"]


async def test_a_picture_is_named_and_a_long_text_is_cut(servers: Servers) -> None:
    picture = await the(servers, "picture", **PROGRAM)
    [content] = (await picture.call({}))["data"]["content"]
    assert content == {"type": "image", "mime_type": "image/png", "bytes": 70}
    long = await the(servers, "long", **PROGRAM)
    seen = (await long.call({"size": 100_000}))["data"]
    assert len(seen.get("text", "")) <= 64_000
    assert seen["notes"]


async def test_a_message_that_is_too_large_ends_the_session(servers: Servers, running: Running) -> None:
    for server in (PROGRAM, {"url": running.url, "allow_private": True}):
        tool = await the(servers, "long", max_bytes=20_000, **server)
        seen = await tool.call({"size": 100_000})
        assert seen["error"]["type"] == "mcp_failed"
        assert "more than 20000 bytes" in seen["error"]["message"]
        assert (await tool.call({"size": 3}))["ok"]


async def test_a_program_that_dies_is_told_and_the_next_call_starts_it_anew(servers: Servers) -> None:
    about, die = await the(servers, "about", **PROGRAM), await the(servers, "die", **PROGRAM)
    first = (await about.call({"name": "x"}))["data"]["structured"]
    seen = await die.call({})
    assert seen["error"]["type"] == "mcp_failed"
    assert "ended with code 3. It said last: these are my last words" in seen["error"]["message"]
    second = (await about.call({"name": "x"}))["data"]["structured"]
    assert first["pid"] != second["pid"]
    os.kill(second["pid"], 9)
    third = await about.call({"name": "x"})
    again = third if third["ok"] else await about.call({"name": "x"})
    assert again["data"]["structured"]["pid"] != second["pid"]


async def test_a_program_that_hangs_is_left_and_ended(servers: Servers) -> None:
    about = await the(servers, "about", timeout_ms=20_000, **PROGRAM)
    first = (await about.call({"name": "x"}))["data"]["structured"]
    wait = await the(servers, "wait", timeout_ms=300, **PROGRAM)
    seen = await wait.call({"seconds": 60})
    assert "did not answer within 0.3 s" in seen["error"]["message"]
    second = (await about.call({"name": "x"}))["data"]["structured"]
    assert first["pid"] != second["pid"]
    await servers.close()
    for pid in (first["pid"], second["pid"]):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_program_that_does_not_start_is_told(servers: Servers, tmp_path: Path) -> None:
    with pytest.raises(ToolInvalid, match="there is no program no-such-program"):
        await build(defined(command="no-such-program"), servers)
    with pytest.raises(ToolInvalid, match="ended with code 7"):
        await build(defined(command=sys.executable, args=["-c", "raise SystemExit(7)"]), servers)
    with pytest.raises(ToolInvalid, match=r"did not answer within 0\.5 s"):
        await build(
            defined(command=sys.executable, args=["-c", "import time; time.sleep(60)"], timeout_ms=500), servers
        )


async def test_a_server_that_starts_anew_is_connected_to_anew(servers: Servers, running: Running) -> None:
    about = await the(servers, "about", url=running.url, allow_private=True)
    first = (await about.call({"name": "x"}))["data"]["structured"]
    await running.stop()
    seen = await about.call({"name": "x"})
    assert seen["error"]["type"] == "mcp_failed"
    await running.start()
    second = (await about.call({"name": "x"}))["data"]["structured"]
    assert first["pid"] != second["pid"]


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "10.0.0.1", "169.254.169.254", "[::ffff:7f00:1]"],
)
async def test_private_addresses_are_not_asked(servers: Servers, host: str) -> None:
    with pytest.raises(ToolInvalid, match="The request was not sent"):
        await build(defined(url=f"http://{host}:9/mcp"), servers)


async def test_a_name_that_changes_its_address_is_judged_each_time(running: Running) -> None:
    answers = [["127.0.0.1"]] * 3

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers.pop() if answers else ["169.254.169.254"]

    async with Servers(Network(resolve=resolve)) as servers:
        url = running.url.replace("127.0.0.1", "localhost")
        with pytest.raises(ToolInvalid, match=r"no connection|not sent"):
            answers.clear()
            await the(servers, "add", url=url, allow_private=True)
        answers.extend([["127.0.0.1"]] * 100)
        tool = await the(servers, "add", url=url, allow_private=True)
        answers.clear()
        seen = await tool.call({"a": 1})
        assert seen["error"]["type"] == "api_refused"


@pytest.mark.parametrize("url", ["http://one.example:81/mcp", "https://one.example/mcp", "http://two.example/mcp"])
async def test_what_a_server_is_told_is_told_to_no_other(url: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.215.14"]

    own = ServerUrl("one", "http://one.example/mcp", (("Authorization", "Bearer x"),), False, 1_000)
    web = Web(own, Network(resolve=resolve))
    assert await web.check_addresses(httpx.URL(own.url)) == ["93.184.215.14"]
    with pytest.raises(ApiRefused, match="another server"):
        await web.check_addresses(httpx.URL(url))


@pytest.mark.parametrize(
    ("implementation", "said"),
    [
        ({}, "`command`, for stdio, or `url`"),
        ({"command": "x", "url": "http://x.example"}, "`url` is no field of the transport stdio"),
        ({"url": "http://x.example", "env": {}}, "`env` is no field"),
        ({"command": "x", "transport": "sse"}, "`transport` is 'sse'"),
        ({"command": "x", "args": ["--key", "${KEY}"]}, "Put it in `env`"),
        ({"command": "x", "env": {"A": "${KEY}"}, "secrets": []}, "not in its list `secrets`"),
        ({"command": "x", "env": {"A=B": "c"}}, "no name of a variable"),
        ({"url": "ftp://x.example"}, "not an http"),
        ({"url": "http://user:word@x.example"}, "not an http"),
        ({"url": "http://${HOST}/mcp"}, "not an http"),
        ({"url": "http://x.example", "headers": {"Host": "y"}}, "none that a tool may set"),
        ({"command": "x", "timeout_ms": 0}, "`timeout_ms`"),
        ({"command": "x", "tool_name": "a", "tools": ["b"]}, "`tool_name` has chosen one"),
        ({"command": "x", "comand": "y"}, "`comand` is no field"),
    ],
)
def test_what_cannot_work_is_refused(implementation: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolInvalid, match=said.replace("(", r"\(")):
        check(implementation, {})


def test_parameters_need_the_tool_that_takes_them() -> None:
    with pytest.raises(ToolInvalid, match="`tool_name` is missing"):
        check({"command": "x"}, {"type": "object", "properties": {"a": {"type": "string"}}})
    check(
        {"server": "files", "transport": "stdio", "command": "npx", "args": ["-y", "server"], "env": {},
         "tool_name": "read", "timeout_ms": 5000}, {}
    )  # fmt: skip


async def test_without_the_library_the_message_says_what_to_install(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "longthread.tools.mcp_session", None)
    with pytest.raises(ToolInvalid, match=r"pip install 'mcp"):
        await build(defined(command="x"), servers)


async def test_a_server_that_cannot_be_used_is_news_once_and_told_in_one_line(servers: Servers) -> None:
    code = "def begin():\n    raise RuntimeError('no key')\nbegin()"
    broken = {"command": sys.executable, "args": ["-c", code]}
    news = []
    for name in ("one", "another", "one"):
        with pytest.raises(ToolInvalid) as problem:
            await the(servers, name, **broken)
        news.append(not problem.value.details["known"])
        assert "ended with code 1. It said last: RuntimeError: no key. The next call" in str(problem.value)
        assert "Traceback" not in str(problem.value) and "its failed" not in str(problem.value)
    assert news == [True, False, False]
    with pytest.raises(ToolInvalid) as problem:
        await the(servers, "other", command="/nowhere/server")
    assert not problem.value.details["known"] and "The MCP server server failed" in str(problem.value)

"""Over HTTP, in the era of sessions: a server that knows `initialize` alone, and forgets."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from tests.tools.api.conftest import Request, Server, answer, server

from longthread.tools.mcp import Servers
from longthread.tools.secrets import Secrets
from longthread.tools.types.mcp import build

__all__ = ["server"]

TOOL = {"name": "greet", "inputSchema": {"type": "object", "properties": {}}}


class Old:
    """Its session has a number; another is forgotten."""

    def __init__(self) -> None:
        self.session = 1

    def __call__(self, request: Request) -> bytes:
        if request.method != "POST":
            return answer("", 405)
        asked = request.json
        if asked["method"] == "initialize":
            about = {"name": "old", "version": "1"}
            result: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": about}
        elif request.headers.get("mcp-session-id") != str(self.session):
            return answer("", 404)
        elif "id" not in asked:
            return answer("", 202)
        else:
            said = f"Hello, says {request.headers['authorization']}"
            results = {"tools/list": {"tools": [TOOL]}, "tools/call": {"content": [{"type": "text", "text": said}]}}
            result = results[asked["method"]]
        written = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        return answer(written, mcp_session_id=str(self.session))


async def test_a_session_that_was_forgotten_is_begun_anew_and_the_secret_goes_to_the_server_alone(
    server: Server,
) -> None:
    old = server.answering = Old()
    definition = SimpleNamespace(
        name="greet",
        description="",
        parameters={},
        implementation={
            "url": f"{server.url}/mcp",
            "headers": {"Authorization": "Bearer ${TOKEN}"},
            "tool_name": "greet",
            "allow_private": True,
        },
    )
    async with Servers() as servers:
        [tool] = await build(definition, servers, secrets=Secrets({"TOKEN": "s3cret-token"}))
        first = await tool.call({})
        old.session = 2
        second = await tool.call({})
    assert first["ok"] and second["ok"], (first, second)
    assert first["data"]["text"] == second["data"]["text"] == "Hello, says Bearer ***"
    assert {request.headers["authorization"] for request in server.came} == {"Bearer s3cret-token"}

"""An agent uses the tools of an MCP server that its catalog names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread import Catalog
from longthread.store import runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

OFFERING = Path(__file__).parents[1] / "tools" / "mcp" / "offering.py"
PROGRAM: dict[str, Any] = {"command": sys.executable, "args": [str(OFFERING)]}
DEFINITIONS: list[dict[str, Any]] = [
    {"kind": "tool", "name": "sums", "type": "mcp", "implementation": PROGRAM | {"tools": ["add", "fail"]}},
    {"kind": "tool", "name": "who", "type": "mcp", "implementation": PROGRAM | {"tool_name": "about"}},
    {"kind": "tool", "name": "gone", "type": "mcp", "implementation": {"command": "no-such-program"}},
    {"kind": "skill", "name": "offered", "tools": [{"tool": "sums", "default_params": {"b": 5}}, "who", "gone"]},
    {"kind": "agent", "name": "clerk", "system_prompt": "You count.", "skills": ["offered"]},
]


async def test_tools_are_discovered_offered_and_called(open_analyst: OpenAnalyst) -> None:
    script = [
        call("sums_add", a=2),
        call("who", name="x"),
        call("sums_fail", why="no reason"),
        call("sums_add", a="two"),
        finish("7."),
    ]
    model = ScriptedChatModel(script)
    analyst = await open_analyst(model)
    await Catalog(analyst.store).apply(DEFINITIONS)
    handle = await analyst.ask("2 and 5?", agent="clerk", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, handle.thread_id)
        assert run is not None
        seen: list[Any] = [step.observation for step in await runs.steps_of(tx, run) if step.kind == "tool"]
    added, who, failed, wrong = seen
    assert added["data"]["structured"] == {"result": 7}, "with the skill's default"
    assert who["data"]["structured"]["name"] == "x"
    assert "no reason" in failed["error"]["message"]
    assert wrong["error"]["type"] == "arguments_invalid"

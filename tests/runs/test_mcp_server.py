"""An agent asks Longthread itself, as the tools of an MCP server that its catalog names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.analysts import OpenAnalyst
from tests.script import call, finish

from longthread import Catalog
from longthread.store import listing, runs
from longthread.testing import ScriptedChatModel

pytestmark = pytest.mark.one_backend

COMMAND = "from longthread.cli.start import main; main()"


async def test_an_agent_asks_the_analyst_of_another_process(
    open_analyst: OpenAnalyst, backend: str, store_address: str, tmp_path: Path, warmed: Path
) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "LONGTHREAD_DATA_DIR": str(tmp_path / "data"),
        "LONGTHREAD_DATABASE_URL": store_address,
    }
    python = sys.executable if backend == "sqlite" else str(warmed / "python")
    args = ["-c", COMMAND, "mcp", "--source", "demo", "--model", "demo", "--user", "clerk"]
    program: dict[str, Any] = {"command": python, "args": args, "env": env, "tools": ["ask", "recall"]}
    script = [
        call("space_ask", question="运载火箭有多少？"),
        call("space_recall", query="运载火箭"),
        call("space_ask", question="And?", thread="none"),
        finish("41."),
    ]
    analyst = await open_analyst(ScriptedChatModel(script))
    await Catalog(analyst.store).apply(
        [
            {"kind": "tool", "name": "space", "type": "mcp", "implementation": program},
            {"kind": "skill", "name": "space", "tools": ["space"]},
            {"kind": "agent", "name": "chief", "system_prompt": "You ask others.", "skills": ["space"]},
        ]
    )
    handle = await analyst.ask("How many rockets?", agent="chief", user_id=analyst.settings.user)
    assert (await handle.wait()).type == "finished"
    async with analyst.store.reading() as tx:
        run = await runs.last_run(tx, handle.thread_id)
        assert run is not None
        seen: list[Any] = [step.observation for step in await runs.steps_of(tx, run) if step.kind == "tool"]
        [theirs] = await listing.list_threads(tx, user_id="clerk")
    asked, recalled, wrong = seen
    assert "41" in asked["data"]["structured"]["answer"]
    assert asked["data"]["structured"]["thread"] == theirs.id
    assert recalled["data"]["structured"]["found"][0]["thread"] == theirs.id
    assert wrong["error"]["type"] == "mcp_tool_failed" and "no thread none" in wrong["error"]["message"]

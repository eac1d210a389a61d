"""A client reaches what is its user's, whoever it is that the settings name."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.mcp.clients import called, directly, refused

from longthread import Catalog, Owner, Statement
from longthread.server.mcp.serve import offers

pytestmark = pytest.mark.one_backend


async def test_no_tool_reaches_another_users_conversation(open_analyst: Any) -> None:
    analyst = await open_analyst(user="ada")
    handle = await analyst.ask("How many rockets are there?", user_id="ada")
    await handle.wait()
    agent = (await Catalog(analyst.store).agent("analyst")).id
    kept = await analyst.memories.remember(Owner("ada", agent), Statement("Ada likes rockets."))
    of_threads = [each.name for each in offers(analyst, "grace") if "thread" in each.parameters["properties"]]
    assert {"ask", "resume", "read_thread", "recall", "view"} <= {*of_threads}
    more = {"ask": {"question": "And sites?"}, "recall": {"query": "rockets"}}
    async with directly(analyst, "grace") as client:
        for tool in of_threads:
            told = await refused(client, tool, thread=handle.thread_id, **more.get(tool, {}))
            assert told.startswith(f"There is no thread {handle.thread_id}."), tool
        assert (await called(client, "list_threads"))["threads"] == []
        assert (await called(client, "recall", query="rockets"))["found"] == []
        assert (await called(client, "search_memories", query="rockets"))["memories"] == []
        assert (await refused(client, "forget", memory=kept.memory.id)).startswith("There is no memory")
        assert (await client.list_resources()).resources == []
    async with directly(analyst) as client:
        assert [each["thread"] for each in (await called(client, "list_threads"))["threads"]] == [handle.thread_id]
        assert (await called(client, "recall", query="rockets"))["found"]

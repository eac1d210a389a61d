"""A client reaches what is its user's, whoever it is that the settings name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.server.mcp.clients import called, directly, listening, over_http, refused
from tests.server.mcp.test_auth import ACCEPT, PING

from longthread import Catalog, Owner, Statement
from longthread.access.keys import NewKey, create_key, revoke_key
from longthread.access.users import create_user
from longthread.server.mcp.serve import offers
from longthread.store import runs

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


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_key_reaches_what_is_its_users(open_analyst: Any, era: str) -> None:
    analyst = await open_analyst(auth="login")
    async with analyst.store.writing() as tx:
        ada = await create_user(tx, "ada", role="admin", user_id="default")
        bob = await create_user(tx, "bob")
        made = [(await create_key(tx, user, NewKey("mcp", ["mcp"])))[1] for user in (ada, bob)]
    async with listening(analyst) as (url, _):
        async with over_http(url, era, **{"X-Api-Key": made[0]}) as client:
            asked = await called(client, "ask", question="How many rockets are there?")
            assert asked["status"] == "finished"
            assert [each["thread"] for each in (await called(client, "list_threads"))["threads"]] == [asked["thread"]]
        async with over_http(url, era, Authorization=f"Bearer {made[1]}") as client:
            assert (await called(client, "list_threads"))["threads"] == []
            told = await refused(client, "read_thread", thread=asked["thread"])
            assert told.startswith(f"There is no thread {asked['thread']}.")
    async with analyst.store.reading() as tx:
        [run] = await runs.list_runs(tx, asked["thread"], limit=5)
    assert run.asker is not None and run.asker.user == ada.id and run.asker.key is not None


async def test_a_session_is_of_the_key_that_opened_it(open_analyst: Any) -> None:
    analyst = await open_analyst(auth="login")
    async with analyst.store.writing() as tx:
        user, other = await create_user(tx, "ada"), await create_user(tx, "bob")
        keys = [(await create_key(tx, each, NewKey("mcp", ["mcp"])))[1] for each in (user, other)]
    async with listening(analyst) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        opened = await client.post(url, json=PING, headers=ACCEPT | {"X-Api-Key": keys[0]})
        assert opened.status_code == 200
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        lists = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        answer = await client.post(url, json=lists, headers=ACCEPT | session | {"X-Api-Key": keys[1]})
        assert answer.status_code == 404
        assert (
            await client.post(url, json=lists, headers=ACCEPT | session | {"X-Api-Key": keys[0]})
        ).status_code == 200


async def test_a_key_without_the_scope_opens_nothing(open_analyst: Any) -> None:
    analyst = await open_analyst(auth="login", mcp_token="a-token-of-this-test")
    async with analyst.store.writing() as tx:
        ada = await create_user(tx, "ada")
        _, chat = await create_key(tx, ada, NewKey("chat", ["chat", "gateway"]))
    async with listening(analyst) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        for headers, status in (
            ({}, 401),
            ({"X-Api-Key": "a-token-of-this-test"}, 401),
            ({"X-Api-Key": "lt_abcdefgh_" + "x" * 43}, 401),
            ({"X-Api-Key": chat}, 403),
        ):
            answer = await client.post(url, json=PING, headers=ACCEPT | headers)
            assert answer.status_code == status, answer.text
            assert ("WWW-Authenticate" in answer.headers) == (status == 401)


async def test_a_stream_ends_with_its_key(open_analyst: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longthread.server.authentication.FRESH_SECONDS", 0.02)
    monkeypatch.setattr("longthread.server.authentication.WATCH_SECONDS", 0.02)
    analyst = await open_analyst(auth="login")
    async with analyst.store.writing() as tx:
        user = await create_user(tx, "ada")
        key, secret = await create_key(tx, user, NewKey("mcp", ["mcp"]))
    async with (
        listening(analyst) as (url, _),
        httpx.AsyncClient(trust_env=False, timeout=20, headers=ACCEPT | {"X-Api-Key": secret}) as client,
    ):
        opened = await client.post(url, json=PING)
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        async with client.stream("GET", url, headers=session) as answer:
            assert answer.status_code == 200
            async with analyst.store.writing() as tx:
                await revoke_key(tx, key.id, user_id=user.id)
            async for _ in answer.aiter_raw():
                pass
        assert (await client.post(url, json=PING, headers=session)).status_code == 401

"""Whose a conversation is: what another key, or none, gets of it, and what becomes of those from before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start, gateway_of

from longthread.gateway.stored_calls import rebuild_missing
from longthread.server.gateway_access import Door
from longthread.store import listing
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.store.queries import Sql
from longthread.store.tables import read_tables
from longthread.store.transfer.backup import restore_backup, write_backup
from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend

PRIVATE = "我的秘密 private question"
ALICE, MALLORY = {"authorization": "Bearer alice-key"}, {"authorization": "Bearer mallory-key"}
OTHERS = [MALLORY, {}, {"x-api-key": "mallory-key"}]
MODEL = "gpt-6.2-sol"


@pytest.fixture
def stateless() -> Iterator[ProviderEmulator]:
    """A provider that holds nothing, and refuses thinking that is not its own."""
    with ProviderEmulator(None, rules=ProviderRules(signatures=True, binding=True, stored=False)) as emulator:
        yield emulator


async def post(
    url: str, path: str, body: dict[str, Any], headers: dict[str, str], method: str = "POST"
) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        return await client.request(method, url + path, json=body or None, headers=headers)


async def respond(url: str, headers: dict[str, str], text: str = PRIVATE, **fields: Any) -> httpx.Response:
    return await post(url, "/v1/responses", {"model": MODEL, "input": text, **fields}, headers)


async def message(url: str, headers: dict[str, str], messages: list[dict[str, Any]], **fields: Any) -> httpx.Response:
    body = {"model": "claude-haiku-4-5", "max_tokens": 2000, "messages": messages, **fields}
    return await post(url, "/v1/messages", body, {"anthropic-version": "2023-06-01", **headers})


THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def visible(answer: httpx.Response) -> dict[str, Any]:
    """A reply as clients send it that drop thinking."""
    return {"role": "assistant", "content": [each for each in answer.json()["content"] if each["type"] == "text"]}


async def titles(store: Driver) -> list[str]:
    async with store.reading() as tx:
        return [thread.id for thread in await listing.list_threads(tx, user_id="ada")]


async def orphan(store: Driver) -> None:
    """Bring the store's conversations to what they were before they had owners."""
    async with store.writing() as tx:
        await tx.run(Sql("UPDATE thread_clients SET owner = NULL"))
        await tx.run(Sql("DELETE FROM gateway_nodes"))
    assert await rebuild_missing(store)


@pytest.mark.parametrize("other", OTHERS)
async def test_a_stored_response_is_its_owners(
    start: Start, stateless: ProviderEmulator, other: dict[str, str]
) -> None:
    url = await start(stateless)
    response = (await respond(url, ALICE)).json()
    path = f"/v1/responses/{response['id']}"
    asked = len(stateless.requests)
    for method, end in (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", "")):
        answer = await post(url, path + end, {}, other, method)
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "invalid_request_error")
        assert PRIVATE not in answer.text
    answer = await respond(url, other, "go on", previous_response_id=response["id"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_found")
    item = {"type": "item_reference", "id": response["output"][-1]["id"]}
    answer = await post(url, "/v1/responses", {"model": MODEL, "input": [item, said("go on")]}, other)
    assert answer.status_code == 404
    assert len(stateless.requests) == asked, "nothing of it went up"
    assert (await post(url, path, {}, ALICE, "GET")).json()["id"] == response["id"]
    assert (await respond(url, ALICE, "go on", previous_response_id=response["id"])).status_code == 200
    assert PRIVATE in stateless.requests[-1].raw.decode()


async def test_a_restored_response_is_its_owners_alone(
    store: Driver, start: Start, stateless: ProviderEmulator, tmp_path: Path
) -> None:
    url = await start(stateless)
    response = (await respond(url, ALICE | {"x-conversation-id": "team-chat"})).json()
    async with open_store(tmp_path / "backup.db") as file, open_store(tmp_path / "restored.db") as target:
        await write_backup(store, file, lambda *progress: None)
        await restore_backup(file, target, lambda *progress: None)
        await rebuild_missing(target)
        async with gateway_of(target, stateless) as again:
            path = f"/v1/responses/{response['id']}/input_items"
            answers = [await post(again, path, {}, headers, "GET") for headers in (MALLORY, ALICE)]
    assert [(each.status_code, PRIVATE in each.text) for each in answers] == [(404, False), (200, True)]


@pytest.mark.parametrize("other", OTHERS)
async def test_a_name_leads_to_ones_own_conversation(
    store: Driver, start: Start, stateless: ProviderEmulator, other: dict[str, str]
) -> None:
    url = await start(stateless)
    named = {"x-conversation-id": "team-chat"}
    first = await respond(url, ALICE | named)
    assert first.headers["x-conversation-id"] == "team-chat"
    theirs = await respond(url, other | named, "hello")
    own = theirs.headers["x-conversation-id"]
    assert (own != "team-chat", theirs.headers["x-longthread-branch"]) == (True, "new")
    for name in ("team-chat", own):
        await respond(url, other, "go on", conversation=name)
        sent = stateless.requests[-1].raw.decode()
        assert (PRIVATE in sent, "hello" in sent) == (False, True)
    for name in ("team-chat", own):
        again = await respond(url, other | {"x-conversation-id": name}, "again")
        assert again.headers["x-conversation-id"] == own
    await respond(url, ALICE, "go on", conversation="team-chat")
    assert PRIVATE in stateless.requests[-1].raw.decode()
    assert sorted(await titles(store)) == sorted(["team-chat", own])


@pytest.mark.parametrize("other", OTHERS)
async def test_anothers_thinking_is_not_put_in(
    store: Driver, start: Start, stateless: ProviderEmulator, other: dict[str, str]
) -> None:
    url = await start(stateless)
    first = await message(url, ALICE, [said(PRIVATE)], **THINKING)
    talk = [said(PRIVATE), visible(first), said("go on")]
    theirs = await message(url, other, talk, **THINKING)
    assert (theirs.headers["x-longthread-restored"], theirs.headers["x-longthread-branch"]) == ("0", "new")
    assert theirs.headers["x-conversation-id"] != first.headers["x-conversation-id"]
    own = await message(url, ALICE, talk, **THINKING)
    assert (own.headers["x-longthread-restored"], own.headers["x-longthread-branch"]) == ("1", "main")
    assert len(await titles(store)) == 2


async def test_an_anthropic_thread_is_its_owners(start: Start, stateless: ProviderEmulator) -> None:
    url = await start(stateless)
    beta = {"anthropic-beta": "message-threads-2026-01-01"}
    first = await message(url, ALICE | beta, [said(PRIVATE)], thread={"type": "new"})
    thread = {"type": "continue", "previous_message_id": first.json()["id"]}
    theirs = await message(url, MALLORY | beta, [said("go on")], thread=thread)
    assert (theirs.status_code, theirs.json()["error"]["details"]["error_code"]) == (404, "thread_not_found")
    assert (await message(url, ALICE | beta, [said("go on")], thread=thread)).status_code == 200


async def test_conversations_that_begin_alike_are_told_apart_by_client(
    store: Driver, start: Start, stateless: ProviderEmulator
) -> None:
    url = await start(stateless)
    agents = [ALICE | {"user-agent": agent} for agent in ("codex_cli_rs/1.0", "opencode/1.0")]
    first, second = [await message(url, agent, [said("hi")]) for agent in agents]
    assert first.headers["x-conversation-id"] != second.headers["x-conversation-id"]
    talk = [said("hi"), visible(first), said("and then?")]
    for agent, begun in ((agents[1], second), (agents[0], first), (agents[1], second)):
        answer = await message(url, agent, talk)
        assert answer.headers["x-conversation-id"] == begun.headers["x-conversation-id"]
    elsewhere = await message(url, ALICE | {"user-agent": "aider/1.0"}, talk)
    assert elsewhere.headers["x-conversation-id"] in await titles(store)
    assert len(await titles(store)) == 2, "another client goes on with what is there"


async def test_no_credential_is_in_the_store(store: Driver, start: Start, stateless: ProviderEmulator) -> None:
    await message(
        await start(stateless), {"x-api-key": "alice-key", "authorization": "Bearer alice-token"}, [said("hi")]
    )
    async with store.reading() as tx:
        tables = await read_tables(tx)
        rows = [row for table in tables.all for row in await tx.fetch(Sql(f'SELECT * FROM "{table.name}"'))]
        [owner] = await tx.fetch(Sql("SELECT owner FROM thread_clients"))
    assert len(owner["owner"]) == 32
    assert not any(secret in repr(rows) for secret in ("alice-key", "alice-token"))


async def test_a_token_with_a_name_outlives_a_key(start: Start, stateless: ProviderEmulator) -> None:
    url = await start(stateless, door=Door(tokens={"the-token-of-alice": "alice", "the-token-of-bob-s": "bob"}))
    alice, bob = ({"x-longthread-token": token} for token in ("the-token-of-alice", "the-token-of-bob-s"))
    response = (await respond(url, alice | ALICE)).json()
    path = f"/v1/responses/{response['id']}"
    assert (await post(url, path, {}, alice | {"x-api-key": "a-new-key"}, "GET")).status_code == 200
    assert (await post(url, path, {}, bob | ALICE, "GET")).status_code == 404


async def test_the_index_is_made_again_for_the_owner(store: Driver, start: Start, stateless: ProviderEmulator) -> None:
    url = await start(stateless)
    response = (await respond(url, ALICE)).json()
    async with store.writing() as tx:
        await tx.run(Sql("DELETE FROM gateway_nodes"))
    assert await rebuild_missing(store) == 1
    assert (await post(url, f"/v1/responses/{response['id']}", {}, MALLORY, "GET")).status_code == 404
    assert (await post(url, f"/v1/responses/{response['id']}", {}, ALICE, "GET")).status_code == 200


@pytest.mark.parametrize("by", ["content", "id", "retrieving", "name", "conversation"])
async def test_a_conversation_from_before_is_of_the_first_who_goes_on_with_it(
    store: Driver, start: Start, stateless: ProviderEmulator, by: str
) -> None:
    url = await start(stateless)
    named = {"x-conversation-id": "team-chat"}
    response = (await respond(url, ALICE | named)).json()
    await orphan(store)
    url = await start(stateless)
    path = f"/v1/responses/{response['id']}"
    before = [
        said(PRIVATE),
        *(
            {"role": each["role"], "content": each["content"]}
            for each in response["output"]
            if each["type"] == "message"
        ),
    ]
    if by == "content":
        body = {"model": MODEL, "input": [*before, said("go on")]}
        answer = await post(url, "/v1/responses", body, ALICE)
    elif by == "id":
        answer = await respond(url, ALICE, "go on", previous_response_id=response["id"])
    elif by == "name":
        answer = await respond(url, ALICE | named, "go on")
    elif by == "conversation":
        answer = await respond(url, ALICE, "go on", conversation="team-chat")
    else:
        answer = await post(url, path, {}, ALICE, "GET")
    assert answer.status_code == 200, answer.text
    assert answer.headers.get("x-conversation-id", "team-chat") == "team-chat"
    assert await titles(store) == ["team-chat"]
    assert (await post(url, path, {}, MALLORY, "GET")).status_code == 404
    assert (await post(url, path, {}, ALICE, "GET")).status_code == 200
    answer = await respond(url, MALLORY | named, "hello")
    assert answer.headers["x-conversation-id"] != "team-chat"


async def test_a_key_that_knows_nothing_of_it_gets_no_conversation_from_before(
    store: Driver, start: Start, stateless: ProviderEmulator
) -> None:
    url = await start(stateless)
    first = await message(url, ALICE, [said(PRIVATE)], **THINKING)
    await orphan(store)
    url = await start(stateless)
    other = await message(
        url, MALLORY, [said(PRIVATE), said("Something else.", "assistant"), said("go on")], **THINKING
    )
    assert other.headers["x-conversation-id"] != first.headers["x-conversation-id"]
    talk = [said(PRIVATE), visible(first), said("go on")]
    own = await message(url, ALICE, talk, **THINKING)
    assert (own.headers["x-conversation-id"], own.headers["x-longthread-restored"]) == (
        first.headers["x-conversation-id"],
        "1",
    )

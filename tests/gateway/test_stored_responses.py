"""Responses by their id, through the gateway: retrieve, delete, input items, cancel, and what is said of an upgrade."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from tests.gateway.conftest import Start
from tests.gateway.open_responses import check, check_events
from tests.gateway.responses_talk import CLOCK, MODEL, Talk, bare

from longthread.gateway.stored_calls import rebuild_missing
from longthread.messages.message import Message
from longthread.store.driver import Driver
from longthread.store.queries import Sql
from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend


@pytest.fixture
def stateless() -> Iterator[ProviderEmulator]:
    """A provider that holds nothing."""
    with ProviderEmulator(None, rules=ProviderRules(stored=False)) as emulator:
        yield emulator


@pytest.fixture
async def talk(start: Start, stateless: ProviderEmulator) -> AsyncIterator[Talk]:
    async with Talk(await start(stateless), instructions="Be brief.") as talk:
        yield talk


def dumped(response: Any) -> dict[str, Any]:
    found: dict[str, Any] = response.model_dump(mode="json", exclude_unset=True)
    return found


@pytest.mark.parametrize("streams", [False, True])
async def test_a_response_is_retrieved_whole_after_a_restart(
    start: Start, stateless: ProviderEmulator, streams: bool
) -> None:
    given = {"instructions": "Be brief.", "metadata": {"一": "二"}}
    async with Talk(await start(stateless), streams=streams, **given) as talk:
        first = await talk.say('use the tool clock with {"zone": "UTC"}')
        second = await talk.add({"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "12"})
    async with Talk(await start(stateless)) as talk:
        for response in (first, second):
            found = await talk.client.responses.retrieve(response.id)
            assert dumped(found) == dumped(response)
            check(dumped(found))
    assert not any(request.method == "GET" for request in stateless.requests)


async def test_a_response_is_streamed_again(talk: Talk) -> None:
    first = await talk.say('use the tool clock with {"zone": "UTC"}')
    again = [dumped(event) async for event in await talk.client.responses.retrieve(first.id, stream=True)]
    check_events(again)
    assert again[-1]["response"] == dumped(first)
    said = "".join(event["delta"] for event in again if event["type"] == "response.function_call_arguments.delta")
    assert json.loads(said) == {"zone": "UTC"}
    for number in (0, 3, len(again) - 2):
        stream = await talk.client.responses.retrieve(first.id, stream=True, starting_after=number)
        assert [dumped(event) async for event in stream] == again[number + 1 :]
    # There were more events the first time: whoever saw them still gets the last one.
    stream = await talk.client.responses.retrieve(first.id, stream=True, starting_after=500)
    assert [dumped(event) async for event in stream] == [again[-1] | {"sequence_number": 501}]


async def test_a_text_is_streamed_again(talk: Talk) -> None:
    first = await talk.say("一🎉")
    again = [dumped(event) async for event in await talk.client.responses.retrieve(first.id, stream=True)]
    check_events(again)
    assert "".join(each["delta"] for each in again if each["type"] == "response.output_text.delta") == "You said: 一🎉"


@pytest.mark.parametrize("deleted", [False, True])
async def test_an_index_that_is_made_anew_has_the_names_that_were_there(
    start: Start, store: Driver, deleted: bool
) -> None:
    """Of a reply that is hidden whole, too: here nothing was said, and the tokens ended while the model reasoned."""
    cut = Message("assistant", content=[{"type": "reasoning", "summary": []}])
    cut = replace(cut, response_metadata={"finish_reason": "length"})
    with ProviderEmulator([cut]) as emulator:
        async with Talk(await start(emulator)) as talk:
            first = await talk.send("")
            if deleted:
                await talk.client.responses.delete(first.id)
            async with store.writing() as tx:
                await tx.run(Sql("DELETE FROM gateway_nodes"))
            assert await rebuild_missing(store) == (not deleted)
            if deleted:
                with pytest.raises(openai.NotFoundError):
                    await talk.client.responses.retrieve(first.id)
            else:
                assert dumped(await talk.client.responses.retrieve(first.id)) == dumped(first)


async def test_a_deleted_response_is_gone_and_the_conversation_is_not(talk: Talk, stateless: ProviderEmulator) -> None:
    first = await talk.say("one")
    await talk.client.responses.delete(first.id)
    for ask in (talk.client.responses.retrieve, talk.client.responses.delete, talk.client.responses.cancel):
        with pytest.raises(openai.NotFoundError, match=f"Response with id '{first.id}' not found."):
            await ask(first.id)
    async with Talk(str(talk.client.base_url).removesuffix("/v1/"), previous_response_id=first.id) as other:
        with pytest.raises(openai.BadRequestError, match="not found"):
            await other.send("two")
    await talk.say("two")
    assert talk.headers["x-longthread-branch"] == "main"


@pytest.mark.parametrize(("user", "stored"), [("bob", True), ("ada", False)])
async def test_a_response_of_another_user_or_not_to_be_stored_is_not_found(
    start: Start, stateless: ProviderEmulator, user: str, stored: bool
) -> None:
    async with Talk(await start(stateless), store=stored) as talk:
        first = await talk.say("one")
    async with Talk(await start(stateless, user=user)) as talk:
        for ask in (talk.client.responses.retrieve, talk.client.responses.delete):
            with pytest.raises(openai.NotFoundError):
                await ask(first.id)
        with pytest.raises(openai.NotFoundError):
            await talk.client.responses.input_items.list(first.id)


async def test_the_input_items_of_a_response_come_in_pages(talk: Talk) -> None:
    talk.items = [{"role": "developer", "content": "Be brief."}]
    await talk.ask_the_time("UTC")
    last = await talk.say("again")
    every = [dumped(item) async for item in talk.client.responses.input_items.list(last.id, order="asc", limit=3)]
    given = talk.items[:-2]
    assert [item["type"] for item in every] == [item.get("type", "message") for item in given]
    assert len({item["id"] for item in every}) == len(every)
    assert every[0]["content"] == [{"type": "input_text", "text": "Be brief."}]
    assert every[2]["encrypted_content"] == given[2]["encrypted_content"]
    newest = await talk.client.responses.input_items.list(last.id, limit=2)
    assert [item.id for item in newest.data] == [item["id"] for item in every[::-1][:2]]
    assert newest.has_more
    after = await talk.client.responses.input_items.list(last.id, after=newest.data[-1].id, limit=100)
    assert [item.id for item in after.data] == [item["id"] for item in every[::-1][2:]]
    assert not after.has_more
    for query in ({"limit": 0}, {"limit": 101}, {"after": "msg_unknown"}):
        with pytest.raises(openai.BadRequestError):
            await talk.client.responses.input_items.list(last.id, **query)  # type: ignore[arg-type]


async def test_the_input_items_of_a_response_on_a_previous_one_are_all(
    start: Start, stateless: ProviderEmulator
) -> None:
    async with Talk(await start(stateless)) as talk:
        first = await talk.send("one")
    async with Talk(await start(stateless), previous_response_id=first.id) as talk:
        second = await talk.send("two")
        found = [item async for item in talk.client.responses.input_items.list(second.id, order="asc")]
    assert [item.type for item in found] == ["message", "reasoning", "message", "message"]
    assert [item.id for item in found[1:3]] == [item.id for item in first.output]


async def test_only_what_ran_in_the_background_is_cancelled(talk: Talk) -> None:
    first = await talk.say("one")
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        await talk.client.responses.cancel(first.id)
    behind = await talk.client.responses.create(model=MODEL, input="two", background=True, stream=True)
    response = [event async for event in behind][-1].response  # type: ignore[union-attr]
    assert dumped(await talk.client.responses.cancel(response.id)) == dumped(response)


async def test_a_provider_that_holds_responses_is_asked_for_the_unknown_ones(start: Start) -> None:
    with ProviderEmulator(None) as provider:
        async with Talk(provider.anthropic_url) as direct:
            before = await direct.send("one")
        async with Talk(await start(provider, holds_state=True)) as talk:
            assert dumped(await talk.client.responses.retrieve(before.id)) == dumped(before)
            assert len([item async for item in talk.client.responses.input_items.list(before.id)]) == 1
            queued = await talk.client.responses.create(model=MODEL, input="two", background=True)
            assert queued.status == "queued"
            assert (await talk.client.responses.retrieve(queued.id)).status == "completed"
            own = await talk.send("three")
            await talk.client.responses.delete(own.id)
            with pytest.raises(openai.NotFoundError):
                await talk.client.responses.retrieve(own.id)
        async with Talk(provider.anthropic_url) as direct:
            with pytest.raises(openai.NotFoundError):
                await direct.client.responses.retrieve(own.id)


async def test_tokens_are_counted_with_what_is_restored(talk: Talk, stateless: ProviderEmulator) -> None:
    await talk.say("one")
    thread_id = talk.headers["x-conversation-id"]
    items: Any = [*bare(talk.items), {"role": "user", "content": "two"}]
    counted = await talk.client.responses.input_tokens.count(model=MODEL, input=items)
    assert counted.input_tokens > 0
    assert stateless.requests[-1].body["input"][1]["type"] == "reasoning"
    compacted = await talk.client.responses.compact(model=MODEL, input=items)
    assert stateless.requests[-1].body["input"][1]["type"] == "reasoning"
    assert compacted.output[-1].type == "compaction"
    await talk.say("two")
    assert (talk.headers["x-conversation-id"], talk.headers["x-longthread-branch"]) == (thread_id, "main")


async def test_a_compacted_conversation_goes_on(talk: Talk, stateless: ProviderEmulator) -> None:
    """Its item is visible: another one is another conversation. Its id comes back if it was dropped."""
    await talk.say("one")
    given: Any = talk.items
    compacted = await talk.client.responses.compact(model=MODEL, input=given)
    talk.items = [item.model_dump(mode="json", exclude_none=True, warnings=False) for item in compacted.output]
    await talk.say("two")
    await talk.say("three")
    assert stateless.requests[-1].body["input"] == talk.items[: len(stateless.requests[-1].body["input"])]
    assert talk.headers["x-longthread-branch"] == "main"


async def test_an_upgrade_to_a_websocket_is_refused_so_that_clients_post(talk: Talk) -> None:
    headers = {
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "xusmSxkOUK5USHmPRXFT8Q==",
    }
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{talk.client.base_url}responses", headers=headers)
    assert answer.status_code == 426
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert answer.headers["x-should-retry"] == "false"


async def test_the_store_keeps_tools_once(talk: Talk) -> None:
    """A response repeats the request's tools and instructions; what is shown of them is the request's."""
    first = await talk.say("one")
    found = await talk.client.responses.retrieve(first.id)
    assert dumped(found)["tools"] == [CLOCK]
    assert found.instructions == "Be brief."

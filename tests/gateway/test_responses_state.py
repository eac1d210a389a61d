"""State of OpenAI's Responses for providers that hold none: it survives restarts, and belongs to its user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from tests.gateway.conftest import Start
from tests.gateway.responses_talk import MODEL, Talk, bare

from longthread.server.gateway import own_routes
from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend


@pytest.fixture
def stateless() -> Iterator[ProviderEmulator]:
    """A provider that holds nothing."""
    with ProviderEmulator(None, rules=ProviderRules(stored=False)) as emulator:
        yield emulator


@pytest.fixture
def provider() -> Iterator[ProviderEmulator]:
    """A provider that holds responses."""
    with ProviderEmulator(None) as emulator:
        yield emulator


def went_up(emulator: ProviderEmulator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = emulator.requests[-1].body["input"]
    return found


def output(response: Any) -> list[dict[str, Any]]:
    return [item.model_dump(mode="json", exclude_none=True) for item in response.output]


def result(response: Any) -> list[dict[str, Any]]:
    call = next(item for item in response.output if item.type == "function_call")
    return [{"type": "function_call_output", "call_id": call.call_id, "output": "12:00"}]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_previous_response_is_put_in_after_a_restart(
    start: Start, stateless: ProviderEmulator, streams: bool
) -> None:
    developer = {"role": "developer", "content": "Be brief."}
    asked = {"role": "user", "content": 'use the tool clock with {"zone": "UTC"}'}
    async with Talk(await start(stateless), streams=streams, instructions="first") as talk:
        first = await talk.send([developer, asked])
    async with Talk(await start(stateless), streams=streams, previous_response_id=first.id) as talk:
        second = await talk.send(result(first))
        assert "previous_response_id" not in stateless.requests[-1].body
        assert "instructions" not in stateless.requests[-1].body
        sent = went_up(stateless)
        assert [sent[0], sent[1]] == [developer, {"type": "message", **asked}]
        assert sent[2:4] == output(first)
        assert sent[4:] == result(first)
        assert second.output[-1].content[0].text == "The tool said: 12:00"
    async with Talk(await start(stateless), streams=streams, previous_response_id=second.id) as talk:
        third = await talk.send("again")
        assert went_up(stateless)[5:-1] == output(second)
        assert went_up(stateless)[-1] == {"type": "message", "role": "user", "content": "again"}
        assert talk.headers["x-longthread-branch"] == "main"
        assert third.output[-1].content[0].text == "You said: again"


async def test_a_conversation_may_go_on_twice_from_one_response(start: Start, stateless: ProviderEmulator) -> None:
    url = await start(stateless)
    async with Talk(url) as talk:
        first = await talk.send("one")
        thread_id = talk.headers["x-conversation-id"]
    branches = []
    for text in ("two", "three"):
        async with Talk(url, previous_response_id=first.id) as talk:
            await talk.send(text)
            assert went_up(stateless)[1:-1] == output(first)
            branches.append((talk.headers["x-conversation-id"], talk.headers["x-longthread-branch"]))
    assert branches == [(thread_id, "main"), (thread_id, "fork")]


async def test_equal_conversations_are_told_apart_by_what_they_go_on_from(
    start: Start, stateless: ProviderEmulator
) -> None:
    """Both begin with the same words; what is put in is the named one's, not the newest one's."""
    url = await start(stateless)
    begun = []
    for _ in range(2):
        async with Talk(url) as talk:
            begun.append((await talk.send("one"), talk.headers["x-conversation-id"]))
    for first, thread_id in begun:
        async with Talk(url, previous_response_id=first.id) as talk:
            await talk.send("two")
            assert went_up(stateless)[1:-1] == output(first)
            assert talk.headers["x-conversation-id"] == thread_id


async def test_a_client_with_its_own_reasoning_keeps_it_among_equal_conversations(
    start: Start, stateless: ProviderEmulator
) -> None:
    url = await start(stateless)
    async with Talk(url) as first, Talk(url) as second:
        await first.say("one")
        await second.say("one")
        for talk in (first, second, first):
            thread_id = talk.headers["x-conversation-id"]
            await talk.say("two")
            assert went_up(stateless) == talk.items[: len(went_up(stateless))]
            assert talk.headers["x-conversation-id"] == thread_id
            assert talk.headers["x-longthread-restored"] == "0"


@pytest.mark.parametrize(
    ("options", "leaves_out"),
    [({}, {"headers": {"x-longthread-keep": "nothing"}}), ({"keep": "asked"}, {"json": {"store": False}})],
)
async def test_what_is_not_kept_goes_on_from_what_is(
    start: Start, stateless: ProviderEmulator, options: dict[str, Any], leaves_out: dict[str, dict[str, Any]]
) -> None:
    url = f"{await start(stateless, **options)}/v1/responses"
    async with httpx.AsyncClient() as client:
        first = await client.post(url, json={"model": MODEL, "input": "one"})
        asked = {"model": MODEL, "input": "two", "previous_response_id": first.json()["id"]}
        asked |= leaves_out.get("json", {})
        second = await client.post(url, json=asked, headers=leaves_out.get("headers"))
        assert second.status_code == 200
        assert [item.get("role") for item in went_up(stateless) if item.get("role")] == ["user", "assistant", "user"]
        asked["previous_response_id"] = second.json()["id"]
        await client.post(url, json=asked, headers=leaves_out.get("headers"))
        assert stateless.requests[-1].body == asked, "perhaps the provider knows it"


@pytest.mark.parametrize("user", ["ada", "bob"])
async def test_an_unknown_response_is_the_vendors_error(start: Start, stateless: ProviderEmulator, user: str) -> None:
    """It is unknown, or another user's, or must not be stored."""
    async with Talk(await start(stateless), store=user == "bob") as talk:
        first = await talk.send("one")
    count = len(stateless.requests)
    async with Talk(await start(stateless, user=user), previous_response_id=first.id) as talk:
        with pytest.raises(openai.BadRequestError) as raised:
            await talk.send("two")
    assert raised.value.code == "previous_response_not_found"
    assert raised.value.param == "previous_response_id"
    assert raised.value.body == {
        "message": f"Previous response with id '{first.id}' not found.",
        "type": "invalid_request_error",
        "param": "previous_response_id",
        "code": "previous_response_not_found",
    }
    assert len(stateless.requests) == count


async def test_a_response_and_a_conversation_exclude_each_other(start: Start, stateless: ProviderEmulator) -> None:
    async with Talk(await start(stateless), previous_response_id="resp_1", conversation="conv_1") as talk:
        with pytest.raises(openai.BadRequestError, match="Mutually exclusive"):
            await talk.send("one")


async def test_items_are_found_by_reference(start: Start, stateless: ProviderEmulator) -> None:
    """Vercel's SDK: each item of a reply comes back as a reference."""
    async with Talk(await start(stateless)) as talk:
        await talk.ask_the_time("UTC")
        await talk.say("again")
        items = talk.items

    def referred(item: dict[str, Any]) -> dict[str, Any]:
        return {"type": "item_reference", "id": item["id"]} if "id" in item else item

    async with Talk(await start(stateless)) as talk:
        await talk.send([*map(referred, items), {"role": "user", "content": "more"}])
        assert went_up(stateless)[:-1] == items
        assert talk.headers["x-longthread-branch"] == "main"
    async with Talk(await start(stateless)) as talk:
        await talk.send([*({"id": item["id"]} if "id" in item else item for item in items), items[0]])
        assert went_up(stateless)[:-1] == items
    async with Talk(await start(stateless, user="bob")) as talk:
        with pytest.raises(openai.NotFoundError, match="Item with id 'rs_"):
            await talk.send([*map(referred, items), {"role": "user", "content": "more"}])


async def test_a_provider_that_holds_state_is_asked_by_ids(start: Start, provider: ProviderEmulator) -> None:
    """And gets the whole once it has forgotten."""
    url = await start(provider, holds_state=True)
    async with Talk(url) as talk:
        first = await talk.send("one")
    async with Talk(url, previous_response_id=first.id) as talk:
        second = await talk.send("two")
        assert provider.requests[-1].body["previous_response_id"] == first.id
        assert provider.requests[-1].body["input"] == "two"
        provider.forget()
    async with Talk(url, previous_response_id=second.id) as talk:
        await talk.send("three")
        assert talk.headers["x-longthread-branch"] == "main"
    assert provider.requests[-2].body["input"] == "three"
    assert went_up(provider)[1:-1] == [
        *output(first),
        {"type": "message", "role": "user", "content": "two"},
        *output(second),
    ]
    async with Talk(url, previous_response_id="resp_unknown") as talk:
        with pytest.raises(openai.BadRequestError, match="resp_unknown"):
            await talk.send("four")


def test_only_the_vendors_own_endpoints_are_known_to_hold_state() -> None:
    assert [upstream.holds_state for upstream in own_routes().upstreams.values()] == [True, True]
    others = own_routes("http://localhost:1", "http://localhost:2")
    assert [upstream.holds_state for upstream in others.upstreams.values()] == [False, False]


async def test_a_conversation_goes_on_by_its_name(start: Start) -> None:
    """Providers without conversations skip the field, and know nothing of what was said."""
    with ProviderEmulator(None, rules=ProviderRules(stored=False)) as emulator:
        url = await start(emulator)
        async with httpx.AsyncClient() as client:
            body = {"model": MODEL, "input": "one"}
            headers = {"x-conversation-id": "conv_1", "authorization": "Bearer key"}  # as `Talk`, whose it is
            answer = await client.post(f"{url}/v1/responses", json=body, headers=headers)
        first = answer.json()["output"]
        async with Talk(url, conversation={"id": "conv_1"}) as talk:
            await talk.send("two")
            assert talk.headers["x-conversation-id"] == "conv_1"
            assert talk.headers["x-longthread-branch"] == "main"
        sent = went_up(emulator)
        assert sent[1:-1] == first
        assert "conversation" not in emulator.requests[-1].body


async def test_what_only_another_provider_reads_is_left_out(start: Start) -> None:
    other = ProviderRules(secret=b"another", stored=False)
    with ProviderEmulator(None) as first, ProviderEmulator(None, rules=other) as second:
        async with Talk(await start(first, name="first"), bare) as talk:
            response = await talk.send("one")
        async with Talk(await start(second, name="second"), previous_response_id=response.id) as talk:
            await talk.send("two")
        assert len(second.requests) == 1
        assert [item["role"] for item in went_up(second)] == ["user", "assistant", "user"]
        assert "id" not in went_up(second)[1]

"""OpenAI's Responses through the gateway: what lossy clients drop comes back, and what they change wins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import openai
import pytest
from tests.gateway.conftest import USER, Start
from tests.gateway.responses_talk import (
    LOSSY,
    MODEL,
    Change,
    Talk,
    bare,
    exact,
    unencrypted,
    without_reasoning,
)

from longthread.messages.message import Message
from longthread.store import log
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator, ProviderRules, Refused

pytestmark = pytest.mark.one_backend


@pytest.fixture
def provider() -> Iterator[ProviderEmulator]:
    """A provider that holds responses, and binds reasoning to its id and to what followed."""
    with ProviderEmulator(None) as emulator:
        yield emulator


@pytest.fixture
def stateless() -> Iterator[ProviderEmulator]:
    """A provider that holds nothing."""
    with ProviderEmulator(None, rules=ProviderRules(stored=False)) as emulator:
        yield emulator


def went_up(emulator: ProviderEmulator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = emulator.requests[-1].body["input"]
    return found


def hidden(items: list[dict[str, Any]]) -> list[Any]:
    """What a client may drop, in order."""
    return [item if item.get("type") == "reasoning" else (item.get("id"), item.get("phase")) for item in items]


@pytest.mark.parametrize("change", [without_reasoning, unencrypted])
async def test_the_provider_refuses_what_clients_drop(
    provider: ProviderEmulator, stateless: ProviderEmulator, change: Change
) -> None:
    emulator = provider if change is without_reasoning else stateless
    async with Talk(emulator.anthropic_url, change) as talk:
        with pytest.raises(openai.APIStatusError):
            await talk.ask_the_time("UTC")


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("change", LOSSY)
async def test_what_a_client_drops_comes_back(
    start: Start, provider: ProviderEmulator, change: Change, streams: bool
) -> None:
    async with Talk(await start(provider), change, streams=streams) as talk:
        for zone in ("UTC", "CET"):
            response = await talk.ask_the_time(zone)
        assert response.output[-1].content[0].text == "The tool said: 12:00"
        assert int(talk.headers["x-longthread-restored"]) > 0
        assert hidden(went_up(provider)) == hidden(talk.items[: len(went_up(provider))])


@pytest.mark.parametrize("change", LOSSY)
async def test_a_provider_that_holds_nothing_gets_all_of_it(
    start: Start, stateless: ProviderEmulator, change: Change
) -> None:
    async with Talk(await start(stateless), change, store=False, include=["reasoning.encrypted_content"]) as talk:
        for zone in ("UTC", "CET"):
            await talk.ask_the_time(zone)
        assert hidden(went_up(stateless)) == hidden(talk.items[: len(went_up(stateless))])


async def test_an_exact_client_is_passed_byte_for_byte(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    body = (
        b'{ "model":"gpt-5",\n "input" : [ {"content":"\\u00e9\\ud83d\\ude00 \xc3\xa9","role":"user",'
        b'"x":1.0}], "unknown":{"a":[1,2.50,{"b":null}]}, "stream" : false}'
    )
    headers = {"content-type": "application/json", "openai-beta": "x=1"}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/responses?x=1", content=body, headers=headers)
    assert answer.status_code == 200
    assert provider.requests[-1].raw == body
    assert provider.requests[-1].headers["openai-beta"] == "x=1"


async def test_whole_items_go_up_untouched(start: Start, provider: ProviderEmulator) -> None:
    """Codex: developer messages, `store: false`, and each item as it came."""
    said = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment/>"}]}
    given = {"store": False, "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}}
    async with Talk(await start(provider), exact, streams=True, **given) as talk:
        talk.items = [said, said, user]
        await talk.ask_the_time("UTC")
        await talk.say("again")
        assert talk.headers["x-longthread-restored"] == "0"
        assert talk.headers["x-longthread-branch"] == "main"
        sent = went_up(provider)
        assert sent == talk.items[: len(sent)]


async def test_the_log_has_what_was_said(start: Start, store: Driver, provider: ProviderEmulator) -> None:
    async with Talk(await start(provider), bare, streams=True, instructions="Be brief.") as talk:
        await talk.ask_the_time("UTC")
        await talk.say("一二三")
        thread_id = talk.headers["x-conversation-id"]
    async with store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id=USER)
        entries = await log.branch(tx, thread_id, thread.tip)
    assert [(entry.role, entry.text) for entry in entries] == [
        ("user", 'Please use the tool clock with {"zone": "UTC"}'),
        ("assistant", ""),
        ("tool", "12:00"),
        ("assistant", "The tool said: 12:00"),
        ("user", "一二三"),
        ("assistant", "You said: 一二三"),
    ]
    assert [(call.name, call.args) for call in entries[1].tool_calls] == [("clock", {"zone": "UTC"})]


async def test_an_edit_wins_and_makes_a_branch(start: Start, provider: ProviderEmulator) -> None:
    async with Talk(await start(provider), bare) as talk:
        await talk.say("one")
        await talk.say("two")
        thread_id = talk.headers["x-conversation-id"]
        before = talk.items[:3]
        talk.items = before[:]
        await talk.say("three")
        assert talk.headers["x-longthread-branch"] == "fork"
        assert talk.headers["x-conversation-id"] == thread_id
        assert hidden(went_up(provider)) == hidden([*before, {}])
        talk.items = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "I never said that"}]
        await talk.say("four")
        assert went_up(provider)[1] == {"role": "assistant", "content": "I never said that"}
        assert talk.headers["x-longthread-restored"] == "0"


async def test_without_reasoning_nothing_is_put_in(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    async with Talk(url, bare) as talk, Talk(url, bare, reasoning={"effort": "none"}) as off:
        await talk.say("one")
        off.items = talk.items
        await off.say("two")
        assert off.headers["x-longthread-restored"] == "0"


@pytest.mark.parametrize("streams", [False, True])
async def test_what_the_provider_refuses_is_taken_out_and_never_restored(
    start: Start, store: Driver, streams: bool
) -> None:
    """Another provider of the same name cannot read what the first one encrypted."""
    other = ProviderRules(secret=b"another", stored=False)
    with ProviderEmulator(None) as first, ProviderEmulator(None, rules=other) as second:
        async with Talk(await start(first), bare) as talk:
            await talk.say("one")
            await talk.say("two")
            items = talk.items
        async with Talk(await start(second), exact, streams=streams) as talk:
            talk.items = items
            await talk.say("three")
            assert [request.body["input"][1]["type"] for request in second.requests] == ["reasoning", "message"]
            assert int(talk.headers["x-longthread-dropped"]) > 0
            assert all("encrypted_content" not in item for item in went_up(second))
        async with Talk(await start(second), bare) as talk:
            talk.items = items
            await talk.say("four")
            assert len(second.requests) == 3


@pytest.mark.parametrize(
    "refused",
    [
        "Item 'rs_{last}' of type 'reasoning' was provided without its required following item.",
        "Item with id 'rs_{last}' not found. Items are not persisted when `store` is set to false.",
    ],
)
async def test_what_stands_before_the_failing_item_stays(start: Start, refused: str) -> None:
    """The provider names the second of three; the first stays, the second and the third go."""
    said: list[str] = []

    def script(messages: list[Any]) -> Any:
        if messages[-1].text == "fail" and not said:
            said.append("refused")
            return Refused(400, refused.format(last=failing[0]), param="input")
        return "aye"

    failing: list[str] = []
    with ProviderEmulator(script) as emulator:
        async with Talk(await start(emulator), exact) as talk:
            for text in ("one", "two", "three"):
                await talk.say(text)
            reasoning = [item["id"] for item in talk.items if item["type" if "type" in item else "role"] == "reasoning"]
            failing.append(reasoning[1].removeprefix("rs_"))
            await talk.say("fail")
        sent = went_up(emulator)
    assert [item["id"] for item in sent if item.get("type") == "reasoning"] == reasoning[:1]
    assert "id" in sent[2]
    assert not any("id" in item for item in sent[3:])


async def test_an_error_of_the_provider_goes_through_byte_for_byte(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    output = {"type": "function_call_output", "call_id": "call_none", "output": "x"}
    body = json.dumps({"model": MODEL, "input": [output]})
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/responses", content=body)
        direct = await client.post(f"{provider.base_url}/responses", content=body)
    assert (answer.status_code, answer.content) == (direct.status_code, direct.content)
    assert answer.status_code == 400
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1000])
async def test_a_stream_may_be_cut_anywhere(start: Start, store: Driver, chunk_bytes: int) -> None:
    with ProviderEmulator(None, chunk_bytes=chunk_bytes) as emulator:
        async with Talk(await start(emulator), bare, streams=True) as talk:
            await talk.say('一🎉 response.completed "type":"response.completed"')
            kinds = [event.type for event in talk.events]
            assert kinds[0] == "response.created"
            assert kinds[-1] == "response.completed"
            assert [event.sequence_number for event in talk.events] == list(range(len(kinds)))
            await talk.say("two")
            assert hidden(went_up(emulator)) == hidden(talk.items[: len(went_up(emulator))])


async def test_a_text_as_the_input_is_one_message(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    async with Talk(url, bare) as talk:
        response = await talk.send("one")
        talk.items = [{"role": "user", "content": [{"type": "input_text", "text": "one"}]}]
        talk.items += [item.model_dump(mode="json", exclude_none=True) for item in response.output]
        await talk.say("two")
        assert hidden(went_up(provider))[1:3] == hidden(talk.items)[1:3]


async def test_a_reply_without_words_is_not_put_into_the_next_try(start: Start) -> None:
    """The tokens ended while it reasoned: nobody who asks again shows that there was a reply."""
    cut = Message("assistant", content=[{"type": "reasoning", "summary": []}])
    cut = replace(cut, response_metadata={"finish_reason": "length"})
    with ProviderEmulator([cut, cut, "aye"]) as emulator:
        async with Talk(await start(emulator), bare) as talk:
            for given in ("one", "one", [{"role": "user", "content": "one"}]):
                response = await talk.send(given)
                assert emulator.requests[-1].body["input"] == given
            assert response.output[-1].content[0].text == "aye"


@pytest.mark.parametrize(
    "field",
    [
        {"input": None},
        {"input": []},
        {"input": 5},
        {"input": [None]},
        {"input": [{"role": ["user"], "content": "x"}]},
        {"input": [{"role": "user", "content": 5}]},
        {"input": [{"type": ["x"]}]},
        {"input": [{"type": "item_reference"}]},
        {"input": [{"type": "reasoning", "summary": None, "encrypted_content": 5}, {"role": "user", "content": "x"}]},
        {"previous_response_id": 5},
        {"previous_response_id": ""},
        {"conversation": {"id": None}},
        {"tools": [5, None], "reasoning": "high", "include": 5},
        {"input": "\ud83d \u0000"},
    ],
)
async def test_a_request_of_another_form_is_for_the_provider_to_judge(
    start: Start, provider: ProviderEmulator, field: dict[str, Any]
) -> None:
    body = json.dumps({"model": MODEL, "input": "hello", **field}).encode()
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{await start(provider)}/v1/responses", content=body)
        await client.post(f"{provider.base_url}/responses", content=body)
    there, *_, straight = provider.requests  # one with reasoning that nobody reads is repaired
    assert there.raw == straight.raw == body
    assert answer.headers.get("x-longthread-not-kept") in (None, "The request cannot be read.")

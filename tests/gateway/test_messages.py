"""Anthropic's Messages through the gateway: what lossy clients drop comes back, and what they change wins."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.gateway.conftest import OPENED, USER, Start

from longthread.gateway.request import Asked
from longthread.gateway.service import ANTHROPIC
from longthread.store import gateway as calls
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator

if TYPE_CHECKING:
    import anthropic

pytestmark = pytest.mark.one_backend

MODEL = "claude-opus-5-5"
CLOCK = {
    "name": "clock",
    "description": "The time.",
    "input_schema": {"type": "object", "properties": {"zone": {"type": "string"}}},
}
Change = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
"""What a client does to the messages that it sends back."""


def blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def stripped(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    thinking = ("thinking", "redacted_thinking")
    return [each | {"content": [b for b in blocks(each) if b["type"] not in thinking]} for each in messages]


def unsigned(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def without(block: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in block.items() if key != "signature"}

    return [each | {"content": [without(block) for block in blocks(each)]} for each in messages]


def reordered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(each) for each in value] if isinstance(value, list) else value

    return [turned(each) for each in stripped(messages)]


def marked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Text as blocks, and `cache_control` on the last one."""
    found = stripped(messages)
    found[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return found


def parted(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each block as a message of its own."""
    return [{"role": each["role"], "content": [block]} for each in stripped(messages) for block in each["content"]]


def exact(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return messages


LOSSY = [stripped, unsigned, reordered, marked, parted]


class Talk:
    """A client that keeps its conversation, and sends it with `change`."""

    def __init__(self, url: str, change: Change = exact, *, streams: bool = False, **given: Any) -> None:
        import anthropic  # it takes seconds, and each process that collects these tests would do it

        self.client = anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0)
        OPENED.append(self.client)
        self.messages: list[dict[str, Any]] = []
        self.headers: httpx.Headers = httpx.Headers()
        self._change = change
        self._streams = streams
        self._given = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "tools": [CLOCK], "model": MODEL} | given

    async def say(self, content: Any) -> anthropic.types.Message:
        self.messages.append({"role": "user", "content": content})
        sent = self._change(copy.deepcopy(self.messages))
        given: dict[str, Any] = {"max_tokens": 2000, "messages": sent, **self._given}
        if self._streams:
            async with self.client.messages.stream(**given) as stream:
                reply = await stream.get_final_message()
                self.headers = stream.response.headers
        else:
            raw = await self.client.messages.with_raw_response.create(**given)
            reply, self.headers = await raw.parse(), raw.headers
        said = [block.model_dump(mode="json", exclude_none=True) for block in reply.content]
        self.messages.append({"role": "assistant", "content": said})
        return reply

    async def ask_the_time(self, zone: str) -> anthropic.types.Message:
        """A turn with a tool's call and its result."""
        reply = await self.say(f'Please use the tool clock with {{"zone": "{zone}"}}')
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "12:00"}
            for block in reply.content
            if block.type == "tool_use"
        ]
        assert results
        return await self.say(results)


def signatures(messages: list[dict[str, Any]]) -> list[str]:
    return [block["signature"] for each in messages for block in blocks(each) if block["type"] == "thinking"]


def went_up(emulator: ProviderEmulator) -> dict[str, Any]:
    return emulator.requests[-1].body


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("change", LOSSY)
async def test_what_a_client_drops_comes_back(
    start: Start, provider: ProviderEmulator, change: Change, streams: bool
) -> None:
    import anthropic

    with pytest.raises(anthropic.BadRequestError):
        await Talk(provider.anthropic_url, change, streams=streams).ask_the_time("direct")
    talk = Talk(await start(provider), change, streams=streams)
    for zone in ("UTC", "CET"):
        await talk.ask_the_time(zone)
    assert int(talk.headers["x-longthread-restored"]) == 3
    thinking = [
        block for each in went_up(provider)["messages"] for block in each["content"] if block["type"] == "thinking"
    ]
    assert [block["signature"] for block in thinking] == [
        block["signature"] for each in talk.messages for block in blocks(each) if block["type"] == "thinking"
    ][:3]


def test_a_number_that_a_client_writes_anew_is_the_same() -> None:
    """Programs in JavaScript read 1.0 and write 1."""

    def nodes(args: str) -> Sequence[int]:
        call = f'{{"type":"tool_use","id":"c","name":"clock","input":{args}}}'
        body = f'{{"messages":[{{"role":"assistant","content":[{call}]}}]}}'
        return Asked.read(ANTHROPIC, USER, body.encode()).nodes

    assert nodes('{"a":1.0,"b":[-2e3,{"c":1E2}],"d":"1.0"}') == nodes('{"a":1,"b":[-2000,{"c":100}],"d":"1.0"}')
    assert len({nodes(f'{{"a":{number}}}')[0] for number in ("1", "1.5", '"1.0"', "true", "1e300")}) == 5


async def test_an_exact_client_is_passed_byte_for_byte(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    body = (
        b'{ "model":"claude-opus-5-5",\n "messages" : [ {"content":"\\u00e9\\ud83d\\ude00 \xc3\xa9","role":"user",'
        b'"x":1.0}],"max_tokens":10, "unknown":{"a":[1,2.50,{"b":null}]}, "stream" : false}'
    )
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", "anthropic-beta": "x-1,y-2"}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/messages?beta=true", content=body, headers=headers)
        direct = await client.post(f"{provider.anthropic_url}/v1/messages?beta=true", content=body, headers=headers)
    assert answer.status_code == direct.status_code == 200
    there, straight = provider.requests
    assert there.raw == straight.raw == body
    assert there.headers["anthropic-beta"] == "x-1,y-2"


async def test_a_restart_loses_nothing(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    talk = Talk(await start(provider), stripped)
    await talk.ask_the_time("UTC")
    again = Talk(await start(provider), stripped)
    again.messages = talk.messages
    reply = await again.ask_the_time("CET")
    assert reply.content[-1].text == "The tool said: 12:00"  # type: ignore[union-attr]
    assert talk.headers["x-conversation-id"] == again.headers["x-conversation-id"]


async def test_an_edit_wins_and_makes_a_branch(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    talk = Talk(await start(provider), stripped)
    await talk.say("one")
    await talk.say("two")
    thread_id = talk.headers["x-conversation-id"]
    before = await _texts(store, thread_id)
    talk.messages = [*talk.messages[:2], {"role": "user", "content": "three"}]
    talk.messages.pop()
    await talk.say("three")
    assert talk.headers["x-longthread-branch"] == "fork"
    assert talk.headers["x-conversation-id"] == thread_id
    sent = [block.get("text") for each in went_up(provider)["messages"] for block in blocks(each)]
    assert [text for text in sent if text] == ["one", "You said: one", "three"]
    assert await _texts(store, thread_id) == ["one", "You said: one", "three", "You said: three"]
    async with store.reading() as tx:
        every = await log.entries_between(tx, thread_id, 1, 99)
    assert [entry.text for entry in every] == [*before, "three", "You said: three"]


async def test_an_edited_reply_gets_nothing_back_behind_the_edit(provider: ProviderEmulator, start: Start) -> None:
    talk = Talk(await start(provider), stripped)
    await talk.say("one")
    talk.messages[-1]["content"] = [{"type": "text", "text": "I never said that"}]
    await talk.say("two")
    assert talk.headers["x-longthread-restored"] == "0"
    assert went_up(provider)["messages"][1]["content"] == [{"type": "text", "text": "I never said that"}]


async def test_users_are_apart(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    ada, bob = await start(provider, user="ada"), await start(provider, user="bob")
    talk = Talk(ada, stripped)
    await talk.say("one")
    other = Talk(bob, stripped)
    other.messages = list(talk.messages)
    await other.say("two")
    assert other.headers["x-longthread-restored"] == "0"
    assert other.headers["x-conversation-id"] != talk.headers["x-conversation-id"]


async def test_equal_replies_are_siblings_and_the_newest_decides(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    url = await start(provider)
    first, second = Talk(url, stripped), Talk(url, stripped)
    await first.say("one")
    await second.say("one")
    assert first.headers["x-conversation-id"] != second.headers["x-conversation-id"]
    # Both hold the same visible words: the newest conversation with them goes on.
    third = Talk(url, stripped)
    third.messages = list(first.messages)
    await third.say("two")
    assert third.headers["x-conversation-id"] == second.headers["x-conversation-id"]
    assert went_up(provider)["messages"][1]["content"][0] == second.messages[1]["content"][0]


async def test_with_thinking_off_nothing_is_put_in(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider)
    talk = Talk(url, stripped)
    await talk.say("one")
    off = Talk(url, stripped, thinking={"type": "disabled"})
    off.messages = talk.messages
    await off.say("two")
    assert off.headers["x-longthread-restored"] == "0"


async def test_another_family_of_models_gets_nothing_of_this_one(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider)
    talk = Talk(url, stripped)
    await talk.say("one")
    other = Talk(url, stripped, model="claude-sonnet-5")
    other.messages = talk.messages
    await other.say("two")
    assert other.headers["x-longthread-restored"] == "0"
    assert other.headers["x-conversation-id"] == talk.headers["x-conversation-id"]


async def test_what_the_provider_refuses_is_taken_out_and_never_restored(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    url = await start(provider)
    talk = Talk(url, stripped)
    await talk.say("one")
    # The system prompt is another one now: the thinking is bound to the old one.
    changed = Talk(url, stripped, system="Be brief.")
    changed.messages = list(talk.messages)
    await changed.say("two")
    assert changed.headers["x-longthread-restored"] == "0" or int(changed.headers["x-longthread-dropped"]) > 0
    again = Talk(url, stripped, system="Be brief.")
    again.messages = list(talk.messages)
    count = len(provider.requests)
    await again.say("three")
    assert len(provider.requests) == count + 1


async def test_what_was_refused_once_stays_out_and_later_thinking_stays_in(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    """A compaction: the last reply is sent again behind a summary, where its signature does not hold."""
    url = await start(provider)
    talk = Talk(url)
    await talk.say("one")
    compacted = Talk(url)
    compacted.messages = [{"role": "user", "content": "What was said: one"}, talk.messages[-1]]
    await compacted.say("two")
    assert compacted.headers["x-longthread-dropped"] == "1"
    for said in ("three", "four"):
        count = len(provider.requests)
        await compacted.say(said)
        assert len(provider.requests) == count + 1
        assert signatures(went_up(provider)["messages"]) == signatures(compacted.messages[2:-1])


async def test_an_error_of_the_provider_goes_through_byte_for_byte(provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider)
    blank = {"type": "text", "text": " "}
    body = json.dumps({"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": [blank]}]})
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{url}/v1/messages", content=body)
        direct = await client.post(f"{provider.anthropic_url}/v1/messages", content=body)
    assert answer.status_code == direct.status_code == 400
    got, wanted = answer.json(), direct.json()
    assert {**got, "request_id": ""} == {**wanted, "request_id": ""}
    assert answer.headers["request-id"]


async def test_nothing_is_kept_where_nothing_may_be(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, keep="nothing")
    await Talk(url).say("one")
    all_kept = await start(provider)
    async with httpx.AsyncClient() as client:
        body = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}
        answer = await client.post(f"{all_kept}/v1/messages", json=body, headers={"x-longthread-keep": "nothing"})
    assert answer.status_code == 200
    assert "x-longthread-keep" not in provider.requests[-1].headers
    async with store.reading() as tx:
        assert await listing.list_threads(tx, user_id=USER) == []


async def test_the_header_chooses_the_thread_and_never_limits_restoring(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    url = await start(provider)
    talk = Talk(url, stripped)
    await talk.ask_the_time("UTC")
    fork = Talk(url, stripped, extra_headers={"X-Conversation-Id": "my-fork"})
    fork.messages = list(talk.messages)
    await fork.ask_the_time("CET")
    assert fork.headers["x-conversation-id"] == "my-fork"
    assert int(fork.headers["x-longthread-restored"]) == 3
    async with store.writing() as tx:
        await log.delete_thread(tx, talk.headers["x-conversation-id"], user_id=USER)
    await fork.ask_the_time("PST")  # the fork has all that it needs
    assert int(fork.headers["x-longthread-restored"]) == 5


async def test_message_threads_of_the_sdk_survive_a_restart(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    beta = {"anthropic-beta": "message-threads-2026-08-12"}
    first = {"model": MODEL, "max_tokens": 50, "system": "Be brief.", "tools": [CLOCK], "thread": {"type": "create"}}
    async with httpx.AsyncClient() as client:
        url = await start(provider)
        said = [{"role": "user", "content": 'use the tool clock with {"zone": "UTC"}'}]
        answer = await client.post(f"{url}/v1/messages", json=first | {"messages": said}, headers=beta)
        reply = answer.json()
        assert "thread" not in went_up(provider)
        assert "anthropic-beta" not in provider.requests[-1].headers
        call = reply["content"][-1]
        follows = {"type": "continue", "previous_message_id": reply["id"]}
        result = [{"type": "tool_result", "tool_use_id": call["id"], "content": "12:00"}]
        second: dict[str, Any] = {
            "model": MODEL,
            "max_tokens": 50,
            "thread": follows,
            "messages": [{"role": "user", "content": result}],
        }
        url = await start(provider)
        answer = await client.post(f"{url}/v1/messages", json=second, headers=beta)
        assert answer.json()["content"][-1]["text"] == "The tool said: 12:00"
        up = went_up(provider)
        assert (up["system"], up["tools"]) == ("Be brief.", [CLOCK])
        whole = [*said, {"role": "assistant", "content": reply["content"]}, *second["messages"]]
        assert [blocks(each) for each in up["messages"]] == [blocks(each) for each in whole]
        unknown = second | {"thread": {"type": "continue", "previous_message_id": "msg_of_nobody"}}
        answer = await client.post(f"{url}/v1/messages", json=unknown, headers=beta)
        assert (answer.status_code, answer.json()["error"]["details"]) == (404, {"error_code": "thread_not_found"})


async def test_the_tool_runner_of_the_sdk_keeps_its_conversation(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    import anthropic

    asked: list[str] = []

    @anthropic.beta_async_tool
    async def clock(zone: str) -> str:
        """The time."""
        asked.append(zone)
        return "12:00"

    client = anthropic.AsyncAnthropic(api_key="key", base_url=await start(provider), max_retries=0)
    OPENED.append(client)
    said: Any = [{"role": "user", "content": 'use the tool clock with {"zone": "UTC"}'}]
    runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=50, tools=[clock], messages=said)
    last = await runner.until_done()
    assert asked == ["UTC"]
    assert last.content[-1].text == "The tool said: 12:00"  # type: ignore[union-attr]


async def test_the_client_is_told_apart(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider)
    body = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"user-agent": "claude-cli/2.1.332 (external, cli)", "x-claude-code-session-id": "session-1"}
    async with httpx.AsyncClient() as client:
        await client.post(f"{url}/v1/messages", json=body, headers=headers)
        below = headers | {"x-claude-code-agent-id": "a1"}
        body = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "look"}]}
        answer = await client.post(f"{url}/v1/messages", json=body, headers=below)
    assert answer.headers["x-conversation-id"] == "session-1:a1"
    async with store.reading() as tx:
        child = await log.find_thread(tx, "session-1:a1", user_id=USER)
        first = await calls.calls_until(tx, "session-1", 9)
    assert child.parent_id == "session-1"
    assert [call.status for call in first.values()] == [200]


async def test_a_conversation_whose_tools_change_goes_on(
    store: Driver, provider: ProviderEmulator, start: Start
) -> None:
    """Not with the first request that has others, which may be one beside it, but with the next question."""
    talk = Talk(await start(provider), stripped, thinking={"type": "disabled"})
    await talk.say("one")
    thread_id = talk.headers["x-conversation-id"]
    talk._given["tools"] = [CLOCK, CLOCK | {"name": "late"}]
    found = []
    for zone in ("UTC", "CET", "PST"):
        await talk.ask_the_time(zone)
        found.append(talk.headers["x-longthread-branch"])
    assert found == ["side", "main", "main"]
    said = await _texts(store, thread_id)
    assert said[:2] == ["one", "You said: one"]
    assert len([text for text in said if text.startswith("Please use the tool")]) == 3
    talk._given["tools"] = [CLOCK | {"name": "title"}]
    await talk.say("Make a title")
    assert talk.headers["x-longthread-branch"] == "side"
    assert await _texts(store, thread_id) == said


async def test_a_title_s_request_gives_no_title(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider)
    headers = {"user-agent": "opencode/1.18", "x-session-id": "session-2"}
    asked = {"model": MODEL, "max_tokens": 5, "messages": [{"role": "user", "content": "Make a title"}]}
    said = asked | {"tools": [CLOCK], "messages": [{"role": "user", "content": "What is the time?"}]}
    async with httpx.AsyncClient() as client:
        for body in (asked, said):
            await client.post(f"{url}/v1/messages", json=body, headers=headers)
    async with store.reading() as tx:
        thread = await log.find_thread(tx, "session-2", user_id=USER)
    assert thread.title == "What is the time?"
    assert await _texts(store, "session-2") == ["What is the time?", "You said: What is the time?"]


async def _texts(store: Driver, thread_id: str) -> list[str]:
    async with store.reading() as tx:
        thread = await log.find_thread(tx, thread_id, user_id=USER)
        return [entry.text for entry in await log.branch(tx, thread_id, thread.tip)]

"""Chat Completions of every vendor through the gateway: byte for byte, in any stream, and never worse than direct."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import USER, Start
from tests.gateway.plain_provider import Answer, PlainProvider, completion, events, refused

from longthread.gateway.http import Incoming
from longthread.gateway.service import COMPLETIONS, Gateway, GatewayOptions
from longthread.gateway.upstream import Route, Routes, Upstream
from longthread.messages.entries import message_of
from longthread.store import gateway as calls
from longthread.store import log
from longthread.store.driver import Driver
from longthread.testing import ProviderEmulator, ProviderRules

pytestmark = pytest.mark.one_backend

Messages = list[dict[str, Any]]
PATH = "/v1/chat/completions"
DETAILS = [
    {"type": "reasoning.summary", "summary": "因为", "format": "anthropic-claude-v1", "index": 0},
    {"type": "reasoning.encrypted", "data": "gAAA+/=", "id": "rs_1", "index": 1},
]
USER_ASKS = {"role": "user", "content": "Which time is it?"}


def call(number: int, zone: str = "UTC", **more: Any) -> dict[str, Any]:
    return {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "clock", "arguments": json.dumps({"zone": zone})},
    } | more


def signed(number: int) -> dict[str, Any]:
    return call(number, extra_content={"google": {"thought_signature": f"sig {number}"}})


def results(*numbers: int) -> Messages:
    return [{"role": "tool", "tool_call_id": f"call_{number}", "content": "12:00"} for number in numbers]


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as opened:
        yield opened


async def ask(client: httpx.AsyncClient, url: str, messages: Messages, **fields: Any) -> httpx.Response:
    body = {"model": "m-1", "messages": messages} | fields
    return await client.post(url + PATH, json=body, headers={"authorization": "Bearer key"})


async def test_every_request_is_passed_byte_for_byte(start: Start, client: httpx.AsyncClient) -> None:
    body = (
        b'{ "model":"m-1",\n "messages" : [ {"content":"\\u00e9\\ud83d \xc3\xa9","role":"user","x":1.0}, {"role":'
        b'"assistant","content":null,"reasoning_content":"","x":2}, {"role":"user","content":[]}],"seed":'
        b'12345678901234567890, "unknown":{"a":[1,2.50,{"b":null}],"a":2}, "stream" : false}'
    )
    headers = {"content-type": "application/json", "authorization": "Bearer k", "x-unknown": "1"}
    with ProviderEmulator(None) as provider:
        for url in (await start(provider), provider.anthropic_url):
            answer = await client.post(f"{url}{PATH}?beta=true", content=body, headers=headers)
            assert answer.status_code == 200
        through, direct = provider.requests
        assert through.raw == direct.raw == body
        assert through.headers["authorization"] == "Bearer k"
        assert through.headers["x-unknown"] == "1"


@pytest.mark.parametrize("status", [400, 401, 413, 422, 429, 500])
async def test_an_error_of_the_providers_is_passed_byte_for_byte(
    start: Start, client: httpx.AsyncClient, status: int
) -> None:
    body = b'{"error" : {"message":"\\u4e0d \xe8\xa1\x8c", "code":null}}'
    with PlainProvider(lambda _: Answer(body, status)) as provider:
        answer = await ask(client, await start(provider), [USER_ASKS])
    assert (answer.status_code, answer.content) == (status, body)


async def test_each_signature_comes_back_to_its_own_call(start: Start, client: httpx.AsyncClient) -> None:
    said = {"tool_calls": [signed(1), call(2), signed(3)], "reasoning": "why", "reasoning_details": DETAILS}
    with PlainProvider(lambda _: completion(said)) as provider:
        url = await start(provider)
        await ask(client, url, [USER_ASKS])
        plain = {"role": "assistant", "content": "", "tool_calls": [call(1), call(2), call(3)]}
        answer = await ask(client, url, [USER_ASKS, plain, *results(1, 2, 3)])
        sent = provider.requests[-1]["messages"][1]
    assert answer.headers["x-longthread-restored"] == "4"
    assert sent == {"role": "assistant", "content": ""} | said


async def test_what_a_client_sends_half_becomes_whole(start: Start, client: httpx.AsyncClient) -> None:
    """One signature is dropped, one has a stand-in, and one is at another call."""
    said = {"content": "Let me see.", "tool_calls": [signed(1), signed(2), call(3)], "reasoning_content": "why"}
    with PlainProvider(lambda _: completion(said)) as provider:
        url = await start(provider)
        await ask(client, url, [USER_ASKS])
        stands_in = call(2, extra_content={"google": {"thought_signature": "skip_thought_signature_validator"}})
        moved = call(3, extra_content={"google": {"thought_signature": "sig 1"}})
        half = {"role": "assistant", "content": "Let me see.", "tool_calls": [call(1), stands_in, moved]}
        await ask(client, url, [USER_ASKS, half | {"reasoning_content": None}, *results(1, 2, 3)])
        assert provider.requests[-1]["messages"][1] == {"role": "assistant"} | said


async def test_a_stream_is_read_as_the_same_reply(start: Start, client: httpx.AsyncClient) -> None:
    stream = events(
        {"role": "assistant", "content": "", "reasoning": None},
        {"reasoning": "wh", "reasoning_details": [{"type": "reasoning.summary", "summary": "因", "index": 0}]},
        {"reasoning": "y", "reasoning_details": [{"type": "reasoning.summary", "summary": "为", "index": 0}]},
        {"reasoning_details": [DETAILS[1]]},
        {"content": "One \ud83d"},
        {"content": "\ude00 moment"},
        {"tool_calls": [{"index": 0, **call(1), "function": {"name": "clock", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"zone": '}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '"UTC"}'}, "extra_content": {"google": {}}}]},
        {"tool_calls": [{"index": 0, "extra_content": {"google": {"thought_signature": "sig 1"}}}]},
        {"tool_calls": [{"index": 0, **signed(2)}]},  # Gemini's second call with the index of the first
        finish="tool_calls",
    )
    with PlainProvider(lambda _: stream) as provider:
        url = await start(provider)
        answer = await ask(client, url, [USER_ASKS], stream=True)
        assert answer.content == b"".join(stream.body)
        plain = {"role": "assistant", "content": "One 😀 moment", "tool_calls": [call(1), call(2)]}
        await ask(client, url, [USER_ASKS, plain, *results(1, 2)], stream=True)
        sent = provider.requests[-1]["messages"][1]
    summary = {"type": "reasoning.summary", "summary": "因为", "index": 0}
    hidden = {"reasoning": "why", "reasoning_details": [summary, DETAILS[1]], "tool_calls": [signed(1), signed(2)]}
    assert sent == plain | hidden


async def test_without_thinking_nothing_is_restored(start: Start, client: httpx.AsyncClient) -> None:
    with PlainProvider(lambda _: completion({"content": "noon", "reasoning_content": "why"})) as provider:
        url = await start(provider)
        await ask(client, url, [USER_ASKS])
        messages = [USER_ASKS, {"role": "assistant", "content": "noon"}, USER_ASKS]
        answer = await ask(client, url, messages, thinking={"type": "disabled"})
        assert answer.headers["x-longthread-restored"] == "0"
        assert provider.requests[-1]["messages"] == messages
        answer = await ask(client, url, messages)
        assert answer.headers["x-longthread-restored"] == "1"


async def test_half_a_character_comes_back(start: Start, client: httpx.AsyncClient) -> None:
    """A stream that a limit ended within one: JSON can say it, and bytes cannot."""
    with PlainProvider(lambda _: events({"reasoning": "wh \ud83d"}, {"content": "n \ud83d"})) as provider:
        url = await start(provider)
        await ask(client, url, [USER_ASKS], stream=True)
        body = json.dumps({"model": "m-1", "messages": [USER_ASKS, {"role": "assistant", "content": "n \ud83d"}]})
        answer = await client.post(url + PATH, content=body.encode(), headers={"authorization": "Bearer key"})
        assert answer.headers["x-longthread-restored"] == "1"
        assert provider.requests[-1]["messages"][1]["reasoning"] == "wh \ud83d"


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    "message", ["property 'reasoning_content' is unsupported", "Invalid reasoning_content", "boom"]
)
async def test_restoring_never_makes_an_error_of_a_reply(
    start: Start, client: httpx.AsyncClient, status: int, message: str
) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        strange = any("reasoning_content" in each for each in body["messages"])
        return refused(message, status) if strange else completion({"content": "noon", "reasoning_content": "why"})

    with PlainProvider(answer) as provider:
        url = await start(provider)
        messages = [USER_ASKS]
        for _ in range(3):
            found = await ask(client, url, messages)
            assert found.status_code == 200
            assert found.headers["x-longthread-restored"] == "0" or message.startswith("Invalid")
            assert all("reasoning_content" not in each for each in provider.requests[-1]["messages"])
            messages += [{"role": "assistant", "content": "noon"}, USER_ASKS]
        # Once it has said that it knows no such field, nothing is asked twice.
        assert len(provider.requests) == (5 if message == "boom" else 4)
        await ask(client, url, [{"role": "user", "content": "another conversation"}])
        await ask(client, await start(provider), messages)  # another process asks once more
        assert len(provider.requests) == (8 if message == "boom" else 7)


async def test_a_field_that_was_taken_once_is_put_in_again_after_a_refusal(
    start: Start, client: httpx.AsyncClient
) -> None:
    bad: list[str] = []

    def answer(body: dict[str, Any]) -> Answer:
        sent = [each["reasoning_content"] for each in body["messages"] if "reasoning_content" in each]
        if sent and bad:
            return refused(f"reasoning_content: {bad.pop()}")
        return completion({"content": "noon", "reasoning_content": "why"})

    with PlainProvider(answer) as provider:
        url = await start(provider)
        messages = [USER_ASKS]
        for restored in (0, 1, 0, 1):
            if restored == 0:
                bad.extend(["is too long"] * (len(messages) > 1))
            found = await ask(client, url, messages)
            assert (found.status_code, found.headers["x-longthread-restored"]) == (200, str(restored))
            messages += [{"role": "assistant", "content": "noon"}, USER_ASKS]


async def test_a_client_with_a_sentinel_keeps_its_reply(start: Start, client: httpx.AsyncClient) -> None:
    """The provider has forgotten its signatures, and takes what stands in for them."""

    def answer(body: dict[str, Any]) -> Answer:
        for each in body["messages"]:
            for own in each.get("tool_calls") or ():
                sent = own.get("extra_content", {}).get("google", {}).get("thought_signature")
                if sent is None:
                    return refused("Function call is missing a thought_signature in functionCall parts.")
                if sent != "skip_thought_signature_validator":
                    return refused("Thought signature is not valid")
        return completion({"tool_calls": [signed(1)]})

    with PlainProvider(answer) as provider:
        url = await start(provider)
        await ask(client, url, [USER_ASKS])
        sentinel = call(1, extra_content={"google": {"thought_signature": "skip_thought_signature_validator"}})
        messages = [USER_ASKS, {"role": "assistant", "content": None, "tool_calls": [sentinel]}, *results(1)]
        assert (await ask(client, url, messages)).status_code == 200
        assert provider.requests[-1]["messages"] == messages


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("finish", ["stop", None])
async def test_a_stream_is_kept_when_it_says_that_it_is_whole(
    start: Start, store: Driver, client: httpx.AsyncClient, done: bool, finish: str | None
) -> None:
    """Some never send `[DONE]`, some no reason; without both it broke off."""
    with PlainProvider(lambda _: events({"content": "noon"}, finish=finish, done=done)) as provider:
        answer = await ask(client, await start(provider), [USER_ASKS], stream=True)
    thread_id = answer.headers["x-conversation-id"]
    async with store.reading() as tx:
        found = await calls.find_call(tx, thread_id, 1)
    assert found is not None
    assert found.broken == ("" if done or finish else "provider")


async def test_usage_comes_after_the_end_of_the_first_of_several_choices(
    start: Start, store: Driver, client: httpx.AsyncClient
) -> None:
    """The conversation goes on with the first choice, whichever client chose."""
    stream = events({"content": "noon"})
    other = b'data: {"choices":[{"index":1,"delta":{"content":"night"},"finish_reason":"length"}]}\n\n'
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
    pieces = [other, *list(stream.body)[:-1], other, usage, b"data: [DONE]\n\n"]
    with PlainProvider(lambda _: Answer(pieces)) as provider:
        answer = await ask(client, await start(provider), [USER_ASKS], stream=True)
    thread_id = answer.headers["x-conversation-id"]
    async with store.reading() as tx:
        [_, said] = await log.branch(tx, thread_id, 2, limit=9)
        found = await calls.find_call(tx, thread_id, 1)
    assert (said.text, said.tokens) == ("noon", 2)
    assert found is not None
    assert (found.usage, found.head["finish_reason"]) == ({"prompt_tokens": 3, "completion_tokens": 2}, "stop")


@pytest.mark.parametrize("gzip", [False, True])
async def test_a_stream_in_single_bytes_is_passed_and_kept(
    start: Start, store: Driver, client: httpx.AsyncClient, gzip: bool
) -> None:
    rules = ProviderRules(reasoning_content="kimi", thought_signatures=True)
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}]
    wanted = [{"role": "user", "content": 'use the tool clock with {"zone": "时区 😀"}'}]
    with ProviderEmulator(None, rules=rules, chunk_bytes=1, gzip=gzip) as provider:
        url = await start(provider)
        answer = await ask(client, url, wanted, tools=tools, stream=True)
        assert answer.content.endswith(b"data: [DONE]\n\n")
        async with store.reading() as tx:
            said = await log.branch(tx, answer.headers["x-conversation-id"], 2, limit=9)
        own = {"id": said[1].tool_calls[0].id, "type": "function"}
        plain = own | {"function": {"name": "clock", "arguments": '{"zone":"时区 😀"}'}}
        result = {"role": "tool", "tool_call_id": own["id"], "content": "12"}
        again = [*wanted, {"role": "assistant", "content": None, "tool_calls": [plain]}, result]
        answer = await ask(client, url, again, tools=tools, stream=True)
    assert (answer.status_code, answer.headers["x-longthread-restored"]) == (200, "2")


async def test_the_log_holds_what_was_said(start: Start, store: Driver, client: httpx.AsyncClient) -> None:
    said = {"content": "Let me see.", "tool_calls": [signed(1)], "reasoning_content": "why"}
    with PlainProvider(lambda _: completion(said, usage={"completion_tokens": 7})) as provider:
        url = await start(provider)
        instructions = [{"role": "system", "content": "Be kind."}, {"role": "developer", "content": "And short."}]
        answer = await ask(client, url, [*instructions, USER_ASKS], temperature=0.50)
    thread_id = answer.headers["x-conversation-id"]
    async with store.reading() as tx:
        entries = await log.branch(tx, thread_id, 2, limit=9)
        found = await calls.find_call(tx, thread_id, 1)
        assert found is not None
        frame = await calls.find_frame(tx, thread_id, found.frame)
        assert await log.find_thread(tx, thread_id, user_id=USER)
    assert [(entry.role, entry.text) for entry in entries] == [
        ("user", USER_ASKS["content"]),
        ("assistant", "Let me see."),
    ]
    assert [(each.name, each.args) for each in entries[1].tool_calls] == [("clock", {"zone": "UTC"})]
    assert message_of(entries[1]).content == "Let me see."
    assert (frame["temperature"], json.loads(frame["messages"])) == ("0.5", instructions)


async def test_boilerplate_alone_joins_no_two_chats(start: Start, store: Driver, client: httpx.AsyncClient) -> None:
    """Aider begins every chat with the same messages, assistant's among them."""
    boilerplate: Messages = [{"role": "system", "content": "Act as an expert."}]
    for number in range(3):
        boilerplate += [{"role": "user", "content": f"example {number}"}, {"role": "assistant", "content": "Ok."}]
    with PlainProvider(lambda body: completion({"content": f"done: {body['messages'][-1]['content']}"})) as provider:
        url = await start(provider)
        first = await ask(client, url, [*boilerplate, {"role": "user", "content": "repo map\nfix a bug"}])
        second = await ask(client, url, [*boilerplate, {"role": "user", "content": "repo map\nadd a test"}])
        threads = [answer.headers["x-conversation-id"] for answer in (first, second)]
        assert len(set(threads)) == 2
        # The last message shrinks when it is history: the repository's map and the reminder go.
        shrunk = [
            {"role": "user", "content": "fix a bug"},
            {"role": "assistant", "content": "done: repo map\nfix a bug"},
        ]
        third = await ask(client, url, [*boilerplate, *shrunk, {"role": "user", "content": "repo map\nand now?"}])
        assert third.headers["x-conversation-id"] not in threads
        assert provider.requests[-1]["messages"][-3:-1] == shrunk


async def test_an_edit_wins_and_a_rewind_is_honoured(start: Start, store: Driver, client: httpx.AsyncClient) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        number = len(body["messages"])
        return completion({"content": f"reply {number}", "reasoning_content": f"why {number}"})

    def said(number: int, text: str | None = None) -> dict[str, Any]:
        return {"role": "assistant", "content": text or f"reply {number}"}

    asks: Messages = [{"role": "user", "content": text} for text in ("one", "two", "three")]
    with PlainProvider(answer) as provider:
        url = await start(provider)

        async def sent(*messages: dict[str, Any]) -> tuple[list[str | None], str, str]:
            found = await ask(client, url, list(messages))
            hidden = [each.get("reasoning_content") for each in provider.requests[-1]["messages"]]
            return hidden, found.headers["x-conversation-id"], found.headers["x-longthread-branch"]

        _, thread_id, _ = await sent(asks[0])
        assert await sent(asks[0], said(1), asks[1]) == ([None, "why 1", None], thread_id, "main")
        last = await sent(asks[0], said(1), asks[1], said(3), asks[2])
        assert last == ([None, "why 1", None, "why 3", None], thread_id, "main")
        edited = await sent(asks[0], said(1), asks[1], said(3, "mine"), asks[2])
        assert edited == ([None, "why 1", None, None, None], thread_id, "fork")
        rewound = await sent(asks[0], said(1), {"role": "user", "content": "instead"})
        assert rewound == ([None, "why 1", None], thread_id, "fork")
        again = await sent(asks[0], said(1), asks[1], said(3), asks[2], said(5), asks[0])
        assert again == ([None, "why 1", None, "why 3", None, "why 5", None], thread_id, "fork")


async def test_models_are_those_of_the_upstream_in_the_callers_dialect(start: Start, client: httpx.AsyncClient) -> None:
    with ProviderEmulator(None, models=["m-1", "meta/llama 3"]) as provider:
        url = await start(provider)
        for headers in ({"authorization": "Bearer k"}, {"x-api-key": "k", "anthropic-version": "2023-06-01"}):
            for path in ("", "/m-1", "/meta%2Fllama%203", "/none"):
                through = await client.get(f"{url}/v1/models{path}", headers=headers)
                direct = await client.get(f"{provider.anthropic_url}/v1/models{path}", headers=headers)
                found, there = ({**each.json(), "request_id": 0} for each in (through, direct))
                assert (through.status_code, found) == (direct.status_code, there)
        assert "anthropic" not in (await client.get(f"{url}/v1/models")).text


@pytest.mark.parametrize("said", [{"content": "", "reasoning_content": "why"}, {"content": None}, {"refusal": "no"}])
@pytest.mark.parametrize("asked", [[USER_ASKS], [{"role": "system", "content": "Say noon."}], []])
async def test_a_reply_of_nothing_and_a_request_of_nothing_are_passed(
    start: Start, client: httpx.AsyncClient, said: dict[str, Any], asked: Messages
) -> None:
    """A limit may end a reply within its thinking, and instructions alone may be a request."""
    with PlainProvider(lambda _: completion(said)) as provider:
        url = await start(provider)
        messages = [*asked]
        for _ in range(3):
            answer = await ask(client, url, messages)
            assert (answer.status_code, answer.json()["choices"][0]["message"]) == (
                200,
                {"role": "assistant", "content": None} | said,
            )
            plain = {"role": "assistant", "content": ""} | {name: said[name] for name in ("refusal",) if name in said}
            messages += [plain, USER_ASKS]
            assert "x-longthread-not-kept" not in answer.headers
        sent = provider.requests[-1]["messages"]
        assert [each["content"] for each in sent] == [each["content"] for each in messages[:-2]]


STRANGE = [
    b"",
    b"no json",
    b"7",
    b'{"choices":[]}',
    b'{"choices":null}',
    b'{"choices":[null]}',
    b'{"choices":[{"message":null,"delta":null}]}',
    b'{"choices":[{"message":{"content":7},"delta":{"content":7}}]}',
    b'{"choices":[{"message":{"content":[7]},"delta":{"content":[7]}}]}',
    b'{"choices":[{"message":{"tool_calls":[null]},"delta":{"tool_calls":[null]}}]}',
    b'{"choices":[{"message":{"tool_calls":[{"function":7}]},"delta":{"tool_calls":[{"function":7}]}}]}',
    b'{"choices":[{"message":{"content":"a secret \xff"},"delta":{"content":"a secret \xff"}}]}',
    b'{"choices":' + 100_000 * b"[",
]


@pytest.mark.parametrize("streams", [False, True])
async def test_replies_that_nobody_can_read_are_passed_byte_for_byte(
    start: Start, client: httpx.AsyncClient, streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bodies = iter(STRANGE)
    sent: list[bytes] = []

    def answer(_: dict[str, Any]) -> Answer:
        body = next(bodies)
        sent.append(b"data: " + body + b"\n\n" if streams else body)
        return Answer([sent[-1]] if streams else body)

    with PlainProvider(answer) as provider:
        url = await start(provider)
        for _ in STRANGE:
            found = await ask(client, url, [USER_ASKS], stream=streams)
            assert (found.status_code, found.content) == (200, sent[-1])
            if b"secret" in sent[-1] and not streams:
                assert found.headers["x-longthread-not-kept"] == "The reply cannot be read."
    assert "is not kept: UnicodeDecodeError" in caplog.text
    assert "secret" not in caplog.text


async def test_requests_that_nobody_can_read_are_passed_byte_for_byte(start: Start, client: httpx.AsyncClient) -> None:
    """The provider says what is wrong with them."""
    hi = b'"messages":[{"role":"user","content":"hi"}]'
    bodies = [
        b"",
        b"\xff",
        b"[]",
        b'{"model":["m"],' + hi + b"}",
        b'{"tools":{"x":1},' + hi + b"}",
        b'{"tools":[7,{"function":[]},{"type":{}}],"functions":7,' + hi + b"}",
        b'{"thinking":"off","reasoning":7,"chat_template_kwargs":[],"reasoning_effort":{},' + hi + b"}",
        b'{"stream":"yes","store":"no","model":"m\\ud83d",' + hi + b"}",
        b'{"messages":[{"role":"assistant","content":[{"type":["text"],"text":7}],"tool_calls":[{"function":7}]}]}',
        b'{"messages":[{"role":"tool","content":[7]},{"role":"user","content":[{"text":1}]}]}',
        b'{"messages":[{"role":"assistant","content":"x","reasoning_content":7,"reasoning_details":{"a":[]}}]}',
    ]
    got: list[bytes] = []
    with ProviderEmulator(["ok"], loop=True) as provider:
        url = await start(provider)
        for body in bodies:
            through = await client.post(url + PATH, content=body)
            direct = await client.post(provider.anthropic_url + PATH, content=body)
            got = [each.raw for each in provider.requests[-2:]]
            assert (got, through.status_code) == ([body, body], direct.status_code)


async def test_models_are_asked_of_an_upstream_with_responses_alone(store: Driver) -> None:
    """Clients of OpenAI's have one list of models for both of its dialects."""
    with ProviderEmulator(None, models=["m-1"]) as provider:
        upstreams = {name: Upstream(name, provider.anthropic_url, ["responses"]) for name in ("own", "routed")}
        routes = Routes(upstreams, [Route("mine", "routed", "m-1")])
        gateway = Gateway(store, routes, GatewayOptions(USER))
        for path, status in (("/v1/models", 200), ("/v1/models/mine", 200), ("/v1/chat/models", 404)):
            answer = await gateway.relay(COMPLETIONS, Incoming("GET", path, []))
            assert answer.status == status
            if answer.stream is not None:
                assert b"m-1" in b"".join([piece async for piece in answer.stream])
        await gateway.close()

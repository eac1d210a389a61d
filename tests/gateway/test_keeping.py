"""What the gateway keeps, what it leaves out, and what it does when it cannot keep."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.contract.runs import USER as RUNNER
from tests.contract.runs import begun
from tests.gateway.conftest import USER, Start, gateway_of
from tests.store.samples import everything

from longthread.errors import StoreUnavailable
from longthread.gateway.service import BODY_LIMIT
from longthread.messages.entries import message_of
from longthread.model.entry import Draft
from longthread.model.ids import short_id
from longthread.server import gateway
from longthread.server.gateway_access import Door
from longthread.server.requests import own_names
from longthread.store import gateway as calls
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.maintenance.retention import expire
from longthread.testing import Dropped, ProviderEmulator, ProviderRules, Slow
from longthread_testing.emulator.faults import StreamError

pytestmark = pytest.mark.one_backend

CANARY = "canary-4711"


def body(said: str, **given: Any) -> dict[str, Any]:
    asked = {"model": "claude-opus-5-5", "max_tokens": 500, "thinking": {"type": "adaptive"}}
    return asked | {"messages": [{"role": "user", "content": said}]} | given


async def post(url: str, content: Any, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.post(f"{url}/v1/messages", json=content, headers=headers)


async def test_what_is_not_kept_leaves_no_byte(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    ways = [(await start(provider, keep="nothing"), {}), (await start(provider), {"x-longthread-keep": "nothing"})]
    for url, headers in ways:
        for streams in (False, True):
            answer = await post(url, body(CANARY, stream=streams), **{"x-conversation-id": CANARY, **headers})
            assert answer.status_code == 200
            assert "You said" in answer.text
            assert "x-conversation-id" not in answer.headers
    async with store.reading() as tx:
        assert CANARY not in repr(await everything(tx, derived=True))


async def test_asked_obeys_the_client(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider, keep="asked")
    await post(url, body(CANARY, store=False))
    async with store.reading() as tx:
        assert CANARY not in repr(await everything(tx, derived=True))
    await post(url, body("keep this"))
    async with store.reading() as tx:
        assert len(await listing.list_threads(tx, user_id=USER)) == 1


@pytest.mark.parametrize("is_named", [False, True])
async def test_an_expired_conversation_is_absent_and_nothing_breaks(
    store: Driver, start: Start, provider: ProviderEmulator, is_named: bool
) -> None:
    url = await start(provider, ttl=3600)
    names = {"x-conversation-id": "mine"} if is_named else {}
    first = await post(url, body(CANARY), **names)
    thread_id = first.headers["x-conversation-id"]
    async with store.writing() as tx:
        await log.position(tx, thread_id)
        await calls.expire_after(tx, thread_id, -1)
    said = [block for block in first.json()["content"] if block["type"] == "text"]
    history = [{"role": "user", "content": CANARY}, {"role": "assistant", "content": said}]
    second = await post(url, body("", messages=[*history, {"role": "user", "content": "two"}]), **names)
    assert second.status_code == 200
    assert second.headers["x-longthread-restored"] == "0"
    assert second.headers["x-longthread-branch"] == "new"
    assert (second.headers["x-conversation-id"] == thread_id) == is_named
    assert (await expire(store)).threads == (0 if is_named else 1), "a new one has its name"
    async with store.reading() as tx:
        [left] = await listing.list_threads(tx, user_id=USER)
        assert len(await calls.calls_until(tx, left.id, 9)) == 1


async def test_a_sub_agent_that_goes_on_keeps_its_conversation(
    store: Driver, start: Start, provider: ProviderEmulator
) -> None:
    """Threads go with the one above them."""
    url = await start(provider, ttl=3600)
    main = {"x-claude-code-session-id": "main"}
    below = main | {"x-claude-code-agent-id": "agent"}

    async def expires_in(thread_id: str, seconds: int) -> None:
        async with store.writing() as tx:
            await log.position(tx, thread_id)
            await calls.expire_after(tx, thread_id, seconds)

    await post(url, body("do it"), **main)
    await expires_in("main", 1800)
    await post(url, body("done"), **below)
    async with store.reading() as tx:
        one, other = [(await log.find_thread(tx, name, user_id=USER)).expires_at for name in ("main", "main:agent")]
    assert one == other
    for name in ("main", "main:agent"):
        await expires_in(name, -1)
    await post(url, body("once more"), **below)
    assert (await expire(store)).threads == 0, "all that had expired is gone, and the new one is below no expired one"
    async with store.reading() as tx:
        assert len(await calls.calls_until(tx, "main:agent", 9)) == 1


async def test_a_deleted_conversation_leaves_no_trace(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    answer = await post(
        await start(provider), body(CANARY, system=CANARY, tools=[{"name": CANARY, "input_schema": {}}])
    )
    async with store.writing() as tx:
        await log.delete_thread(tx, answer.headers["x-conversation-id"], user_id=USER)
    async with store.reading() as tx:
        left = await everything(tx, derived=True)
    assert {name for name, rows in left.items() if name.startswith("gateway") and rows} == {"gateway_salt"}
    assert CANARY not in repr(left)


@pytest.mark.parametrize("fault", [Dropped(pieces=2), Dropped(pieces=-1), StreamError(pieces=2)])
async def test_a_stream_that_breaks_off_is_no_reply(store: Driver, start: Start, fault: Any) -> None:
    with ProviderEmulator([fault, "whole"]) as emulator:
        url = await start(emulator)
        async with httpx.AsyncClient() as client:
            got = b""
            try:
                async with client.stream("POST", f"{url}/v1/messages", json=body("hello", stream=True)) as answer:
                    thread_id = answer.headers["x-conversation-id"]
                    async for piece in answer.aiter_raw():
                        got += piece
            except httpx.RemoteProtocolError:
                assert isinstance(fault, Dropped)
        assert b"message_stop" not in got
        again = await post(url, body("hello"))
        assert again.status_code == 200
        assert again.headers["x-conversation-id"] == thread_id
        async with store.reading() as tx:
            thread = await log.find_thread(tx, thread_id, user_id=USER)
            entries = await log.branch(tx, thread.id, thread.tip)
            made = await calls.calls_until(tx, thread_id, 9)
    assert [entry.role for entry in entries] == ["user", "assistant"]
    assert [call.is_answered for call in made.values()] == [False, True]


async def test_a_failing_store_delivers_and_says_so(
    store: Driver, start: Start, provider: ProviderEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    lenient, strict = await start(provider), await start(provider, strict=True)

    @asynccontextmanager
    async def failing() -> AsyncIterator[Any]:
        raise StoreUnavailable(where="here", reason="the disk is full.")
        yield

    monkeypatch.setattr(type(store), "writing", lambda self: failing())
    answer = await post(lenient, body("hello"))
    assert answer.status_code == 200
    assert "the disk is full" in answer.headers["x-longthread-not-kept"]
    streamed = await post(lenient, body("hello", stream=True))
    assert "message_stop" in streamed.text
    assert ": not kept:" in streamed.text
    monkeypatch.setattr(type(store), "reading", lambda self: failing())
    assert (await post(lenient, body("hello"))).status_code == 200
    rest = body("and then?", thread={"type": "continue", "previous_message_id": answer.json()["id"]})
    asked = len(provider.requests)
    for refused in (await post(strict, body("hello")), await post(lenient, rest)):
        assert (refused.status_code, refused.headers["x-should-retry"]) == (503, "true")
        assert refused.json()["error"]["type"] == "api_error"
    assert len(provider.requests) == asked, "without the log, the provider would answer half a conversation"


async def test_without_the_catalog_nobody_is_asked(
    store: Driver, start: Start, provider: ProviderEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A route may say that the request, and its key, go elsewhere."""

    def failing(_: Driver) -> Any:
        raise StoreUnavailable(where="here", reason="the disk is gone.")

    url = await start(provider)
    with monkeypatch.context() as patch:
        patch.setattr(type(store), "reading", failing)
        refused = await post(url, body("hello"))
        assert (refused.status_code, refused.headers["x-should-retry"]) == (503, "true")
        assert "the disk is gone" in refused.json()["error"]["message"]
        assert provider.requests == []
    assert (await post(url, body("hello"))).status_code == 200


async def test_a_silent_stream_gets_pings(store: Driver, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PING_SECONDS", 0.05)
    with ProviderEmulator([Slow("at last", seconds=0.5)]) as emulator:
        answer = await post(await start(emulator), body("hello", stream=True))
    assert "message_stop" in answer.text


async def test_too_large_a_body_and_one_that_is_no_json(start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(f"{url}/v1/messages", content=b"x" * (BODY_LIMIT + 1))
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")
        assert answer.headers["x-should-retry"] == "false"
        for wrong in (b"{", b"[]", b'{"messages": 3}', b'{"model": "claude-x", "messages": [{"role": "user"}', b"\xff"):
            answer = await client.post(f"{url}/v1/messages", content=wrong)
            direct = await client.post(f"{provider.anthropic_url}/v1/messages", content=wrong)
            assert answer.status_code == direct.status_code


async def test_what_a_client_sent_is_sent_again_byte_for_byte(start: Start) -> None:
    """Requests as an SDK made them, recorded at the provider, and sent through the gateway."""
    with ProviderEmulator(None, rules=ProviderRules(signatures=True, binding=True)) as recorder:
        said: list[Any] = []
        async with httpx.AsyncClient() as client:
            for number in range(3):
                said.append({"role": "user", "content": f"turn {number} 你好"})
                raw = json.dumps(body("", messages=said), indent=number or None, ensure_ascii=number % 2 == 0)
                answer = await client.post(f"{recorder.anthropic_url}/v1/messages", content=raw.encode())
                said.append({"role": "assistant", "content": answer.json()["content"]})
        recorded = [request.raw for request in recorder.requests]
    with ProviderEmulator(None, rules=ProviderRules(signatures=True)) as provider:
        url = await start(provider)
        async with httpx.AsyncClient() as client:
            for raw in recorded:
                assert (await client.post(f"{url}/v1/messages", content=raw)).status_code == 200
        assert [request.raw for request in provider.requests] == recorded


async def test_an_entry_is_the_message_as_it_came(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    said = [{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}]
    answer = await post(await start(provider), body("", messages=said))
    async with store.reading() as tx:
        entries = await log.entries_between(tx, answer.headers["x-conversation-id"], 1, 9)
    question, reply = map(message_of, entries)
    assert question.content == said[0]["content"]
    assert reply.content == answer.json()["content"]
    assert entries[1].tokens == answer.json()["usage"]["output_tokens"]


async def test_gateways_over_one_store_go_on_with_each_other_s_conversations(
    store: Driver, provider: ProviderEmulator
) -> None:
    async with gateway_of(store, provider) as one, gateway_of(store, provider) as two:
        first = await post(one, body("hello"))
        text = [block for block in first.json()["content"] if block["type"] == "text"]
        history = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": text}]
        both = [post(url, body("", messages=[*history, {"role": "user", "content": url}])) for url in (one, two)]
        answers = await asyncio.gather(*both)
    assert [answer.headers["x-longthread-restored"] for answer in answers] == ["1", "1"]
    assert {answer.headers["x-conversation-id"] for answer in answers} == {first.headers["x-conversation-id"]}


async def test_what_a_run_goes_on_from_stays(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    """A request that names the thread of a run that goes on is a branch beside it."""
    await begun(store, thread_id="chat")
    async with store.writing() as tx:
        [question] = await log.extend(tx, "chat", [Draft("q", "user", "How many?")])
    answer = await post(await start(provider, user=RUNNER), body("hello"), **{"x-conversation-id": "chat"})
    assert answer.headers["x-conversation-id"] == "chat"
    async with store.reading() as tx:
        assert (await log.find_thread(tx, "chat", user_id=RUNNER)).tip == question.seq
        assert len(await calls.calls_until(tx, "chat", 9)) == 1


@pytest.mark.parametrize("name", [b"x" * 201, b"\xc2\xa0", b"a\xc2\x80"])
async def test_what_is_no_name_of_a_conversation(
    store: Driver, start: Start, provider: ProviderEmulator, name: bytes
) -> None:
    url = await start(provider)
    async with httpx.AsyncClient() as client:
        path, said = f"{url}/v1/messages", body("hello")
        refused = await client.post(path, json=said, headers=[(b"x-conversation-id", name)])
        assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
        assert "at most 200 characters" in refused.json()["error"]["message"]
        assert provider.requests == []
        answer = await client.post(path, json=said, headers=[(b"x-session-id", name)])
    assert (answer.status_code, len(answer.headers["x-conversation-id"])) == (200, len(short_id()))


async def test_web_pages_and_other_paths_are_refused(store: Driver, provider: ProviderEmulator, start: Start) -> None:
    url = await start(provider, door=Door(own_names("127.0.0.1")))
    page = await post(url, body("hello"), origin="https://example.com", **{"content-type": "text/plain"})
    assert (page.status_code, page.json()["error"]["type"]) == (403, "permission_error")
    rebound = await post(url, body("hello"), host="evil.example:80")
    assert rebound.status_code == 421
    async with httpx.AsyncClient() as client:
        for path in ("/", "/admin", "/v1", "/v1/%2e%2e/admin"):
            assert (await client.get(url + path)).status_code == 404
    assert provider.requests == []
    assert (await post(url, body("hello"))).status_code == 200


async def test_credentials_of_servers_are_not_kept(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    server = {"type": "url", "url": "https://mcp.example", "name": "x", "authorization_token": CANARY}
    answer = await post(await start(provider), body("hello", mcp_servers=[server], api_key=CANARY))
    assert provider.requests[-1].body["mcp_servers"] == [server]
    assert provider.requests[-1].body["api_key"] == CANARY
    async with store.reading() as tx:
        [call] = (await calls.calls_until(tx, answer.headers["x-conversation-id"], 9)).values()
        frame = await calls.find_frame(tx, call.thread_id, call.frame)
        assert CANARY not in repr(await everything(tx, derived=True))
    assert json.loads(frame["mcp_servers"]) == [server | {"authorization_token": "***"}]
    assert json.loads(frame["api_key"]) == "***"


async def test_a_compressed_request_is_read_and_goes_up_as_it_came(
    store: Driver, start: Start, provider: ProviderEmulator
) -> None:
    url = await start(provider)
    said = body("hello")
    async with httpx.AsyncClient() as client:
        packed = gzip.compress(json.dumps(said).encode())
        answer = await client.post(f"{url}/v1/messages", content=packed, headers={"content-encoding": "gzip"})
        assert "x-conversation-id" in answer.headers or answer.status_code == 400
        assert provider.requests[-1].raw == packed
        bomb = gzip.compress(bytes(BODY_LIMIT + 1))
        answer = await client.post(f"{url}/v1/messages", content=bomb, headers={"content-encoding": "gzip"})
        assert answer.status_code == 413


async def test_a_client_that_leaves_stops_the_provider(store: Driver, start: Start) -> None:
    # The reply takes two minutes, however slow the machine is. A provider that is stopped ends at its next piece.
    with ProviderEmulator([Slow("one two three " * 4, between=1.0)], chunk_bytes=20) as emulator:
        url = await start(emulator)
        async with (
            httpx.AsyncClient() as client,
            client.stream("POST", f"{url}/v1/messages", json=body("hello", stream=True)) as answer,
        ):
            async for _ in answer.aiter_raw():
                break
        async with store.reading() as tx:
            assert await listing.list_threads(tx, user_id=USER) == []


async def test_a_refusal_holds_for_its_prompt_alone(store: Driver, start: Start, provider: ProviderEmulator) -> None:
    url = await start(provider)
    asked = {"system": "Be brief."}
    first = await post(url, body("one", **asked))
    said = [block for block in first.json()["content"] if block["type"] == "text"]
    history = [{"role": "user", "content": "one"}, {"role": "assistant", "content": said}]
    title = [*history, {"role": "user", "content": "Give this a title."}]
    other = await post(url, body("", messages=title, system="You name conversations."))
    assert (other.status_code, other.headers["x-longthread-dropped"]) == (200, "1")
    second = await post(url, body("", messages=[*history, {"role": "user", "content": "two"}], **asked))
    assert second.headers["x-longthread-restored"] == "1"

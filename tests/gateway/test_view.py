"""What a call of the gateway sent up and got back can be looked at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from typer.testing import CliRunner

from longthread.cli.app import app
from longthread.errors import InvalidInput
from longthread.gateway.dialects import DIALECTS
from longthread.gateway.http import Incoming
from longthread.gateway.service import Gateway, GatewayOptions
from longthread.gateway.stored_calls import CLIENT, InspectedGatewayCall, SentPart, look_at_call
from longthread.gateway.upstream import Routes, Upstream
from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread.testing import ProviderEmulator

pytestmark = pytest.mark.one_backend

THINKING = {"type": "enabled", "budget_tokens": 1024}
CLOCK = {"name": "clock", "description": "The time.", "input_schema": {"type": "object"}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "tusks of the 海象"}}
Message = dict[str, Any]


def gateway_on(store: Driver, provider: ProviderEmulator) -> Gateway:
    upstream = Upstream("emulated", provider.anthropic_url, list(DIALECTS))
    return Gateway(store, Routes({"emulated": upstream}), GatewayOptions("ada"))


@pytest.fixture
async def gateway(store: Driver, provider: ProviderEmulator) -> AsyncIterator[Gateway]:
    opened = gateway_on(store, provider)
    yield opened
    await opened.close()


async def ask(gateway: Gateway, messages: Sequence[Message], **fields: Any) -> tuple[str, Message]:
    """Return the thread and the reply."""
    given = {"model": "claude-opus-5-5", "max_tokens": 2000, "thinking": THINKING, "tools": [CLOCK], "system": "简短"}
    body = json.dumps({**given, "messages": list(messages), **fields}, ensure_ascii=False).encode()
    headers = [(b"x-api-key", b"k"), (b"anthropic-version", b"2023-06-01"), (b"user-agent", b"claude-cli/2.1")]
    answer = await gateway.reply(DIALECTS["anthropic"], Incoming("POST", "/v1/messages", headers, body))
    assert answer.status == 200, answer.body
    return dict(answer.headers)[b"x-conversation-id"].decode(), json.loads(answer.body)


def user(text: str, *more: Any) -> Message:
    return {"role": "user", "content": [{"type": "text", "text": text}, *more]}


def stripped(content: Sequence[Any]) -> list[Any]:
    return [block for block in content if block["type"] != "thinking"]


async def conversation(gateway: Gateway) -> tuple[str, list[Message]]:
    """Three calls by a client that strips the thinking of the second reply."""
    said = [user("Hello", DOCUMENT)]
    _, first = await ask(gateway, said)
    said += [{"role": "assistant", "content": first["content"]}, user("again")]
    _, second = await ask(gateway, said)
    said += [{"role": "assistant", "content": stripped(second["content"])}, user("and again")]
    thread_id, _ = await ask(gateway, said)
    return thread_id, said


async def looked(store: Driver, thread_id: str, n: int | None = None) -> InspectedGatewayCall:
    async with store.reading() as tx:
        found = await look_at_call(tx, thread_id, n)
    assert found is not None
    return found


def parts(found: InspectedGatewayCall) -> list[list[tuple[str, bool, Any]]]:
    return [[(part.kind, part.sent, part.origin) for part in each.parts] for each in found.messages]


def hidden(found: InspectedGatewayCall) -> list[SentPart]:
    return [part for each in found.messages for part in each.parts if part.kind == "hidden"]


async def test_a_call_shows_what_went_up_with_what_was_put_back(
    store: Driver, gateway: Gateway, provider: ProviderEmulator
) -> None:
    thread_id, _ = await conversation(gateway)
    found = await looked(store, thread_id)
    call = found.call
    assert (call.n, found.last, found.client, call.upstream, call.status) == (3, 3, "claude_code", "emulated", 200)
    assert (call.restored, call.dropped, found.is_whole) == (1, 0, True)
    assert (found.frame["system"], found.frame["tools"], found.frame["thinking"]) == ("简短", [CLOCK], THINKING)
    assert call.usage["output_tokens"] > 0
    assert parts(found) == [
        [("text", True, None), ("other", True, None)],
        [("hidden", True, 1), ("text", True, None)],
        [("text", True, None)],
        [("hidden", True, 2), ("text", True, None)],
        [("text", True, None)],
    ]
    sent = [block for message in provider.requests[-1].body["messages"] for block in message["content"]]
    assert [part.block for each in found.messages for part in each.parts] == sent
    assert [part.kind for each in found.reply for part in each.parts] == ["hidden", "text"]
    first = await looked(store, thread_id, 1)
    assert (first.call.n, len(first.messages), (await looked(store, thread_id, -3)).call) == (1, 1, first.call)


async def test_hidden_parts_that_did_not_go_up_are_shown_as_such(store: Driver, gateway: Gateway) -> None:
    thread_id, said = await conversation(gateway)
    off = [message | {"content": stripped(message["content"])} for message in said]
    same, _ = await ask(gateway, [*off, user("without")], thinking={"type": "disabled"})
    assert same == thread_id
    found = await looked(store, thread_id)
    assert [(part.sent, part.origin) for part in hidden(found)] == [(False, None), (False, None)]


async def test_hidden_parts_that_a_new_client_brings_are_its_own(store: Driver, gateway: Gateway) -> None:
    _, said = await conversation(gateway)
    changed = [user("Good day"), *said[1:2], user("go on")]
    drops = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    thread_id, _ = await ask(gateway, changed, thinking=THINKING | drops)
    found = await looked(store, thread_id)
    assert [part.origin for part in hidden(found)] == [CLIENT]


async def test_there_is_no_other_call(store: Driver, gateway: Gateway) -> None:
    thread_id, _ = await conversation(gateway)
    for number in (0, 4, -4):
        with pytest.raises(InvalidInput, match=f"There is no call {number}: the thread's last one is 3"):
            await looked(store, thread_id, number)
    async with store.writing() as tx:
        await log.create_thread(tx, "other", user_id="ada")
        assert await look_at_call(tx, "other", None) is None


async def test_recall_finds_a_document_and_no_thinking(store: Driver, gateway: Gateway) -> None:
    _, said = await conversation(gateway)
    recaller = Recaller(store)
    found = await recaller.find(Question("tusks 海象", Scope("ada"), k=1))
    assert [hit.entry.seq for hit in found.hits] == [1]
    signature = said[1]["content"][0]["signature"]
    assert (await recaller.find(Question(signature, Scope("ada"), k=1))).hits == []
    await recaller.close()


def test_the_commands_show_it(store_address: str, provider: ProviderEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_USER", "ada")
    monkeypatch.setenv("COLUMNS", "140")

    async def fill() -> str:
        async with open_store(store_address) as store:
            gateway = gateway_on(store, provider)
            thread_id, _ = await conversation(gateway)
            await gateway.close()
            return thread_id

    thread_id = asyncio.run(fill())

    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "--database", store_address])
        assert result.exit_code == 0, result.output
        return result.output

    shown = said("view", "last", "--call", "3")
    for text in ("Call 3 of 3", "claude_code asked emulated (anthropic): status 200", "1 put back, 0 dropped"):
        assert text in shown
    for text in ("system: 简短", "tools: clock", "sent, of call 2", "海象"):
        assert text in shown
    told = json.loads(said("view", "last", "--call", "3", "--json"))
    assert (told["thread"], told["call"], told["restored"], told["whole"]) == (thread_id, 3, 1, True)
    assert told["messages"][3]["parts"][0]["origin"] == 2
    assert said("view", "last", "--prompt") == "简短\n"
    assert f"through the gateway: claude_code, 3 calls (longthread view {thread_id} --call N)" in said(
        "threads", "show", "last"
    )
    [first, *_] = map(json.loads, said("threads", "show", "last", "--json").splitlines())
    assert first["payload"]["dialect"] == "anthropic"
    assert json.loads(first["payload"]["blocks"]) == [{"type": "text", "text": "Hello"}, DOCUMENT]
    assert thread_id in said("threads", "list")
    assert thread_id in said("threads", "search", "and again")

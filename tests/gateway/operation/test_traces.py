"""A call through the gateway as a collector sees it: in its caller's trace, to its end, without contents and keys."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.gateway.conftest import Start
from tests.otel.collector import Collector, collecting

from longthread.otel.export import exporting
from longthread.settings import Settings
from longthread.testing import ProviderEmulator, Refused

pytestmark = pytest.mark.one_backend

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{CALLER}-00f067aa0ba902b7-01"
SECRET, KEY = "the payroll of March", "sk-of-the-client"
HEADERS = {"authorization": f"Bearer {KEY}", "traceparent": TRACEPARENT}


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    with collecting() as found:
        yield found


async def ask(url: str, path: str = "chat/completions", **body: Any) -> httpx.Response:
    said = {"model": "emulated", "messages": [{"role": "user", "content": f"What is {SECRET}?"}], **body}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        return await client.post(f"{url}/v1/{path}", json=said, headers=HEADERS)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_is_a_span_of_its_callers_trace(start: Start, collector: Collector, streams: bool) -> None:
    with ProviderEmulator(None) as provider:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            more = {"stream": True, "stream_options": {"include_usage": True}} if streams else {}
            answer = await ask(await start(provider), **more)
            assert answer.status_code == 200
    [call] = collector.spans
    assert (call.name, call.kind) == ("chat emulated", "client")
    assert (call.trace_id, call.parent_id) == (CALLER, TRACEPARENT[36:52])
    about = call.attributes
    assert about["gen_ai.conversation.id"] == answer.headers["x-conversation-id"]
    assert (about["longthread.call"], about["longthread.upstream"]) == (1, "emulated")
    assert (about["gen_ai.provider.name"], about["gen_ai.request.stream"]) == ("openai", streams)
    assert about["gen_ai.usage.input_tokens"] > 0 and about["gen_ai.usage.output_tokens"] > 0
    assert about["http.response.status_code"] == 200 and not call.failed
    [sent] = provider.requests
    assert sent.headers["traceparent"] == f"00-{CALLER}-{call.id}-01"
    assert collector.point("gen_ai.client.inference.duration", gen_ai__request__model="emulated").count == 1
    for secret in (SECRET, KEY, "payroll"):
        assert not any(secret.encode() in body for body in collector.bodies)


async def test_anthropics_tokens_are_told_as_the_conventions_count_them(start: Start, collector: Collector) -> None:
    with ProviderEmulator(None) as provider:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            answer = await ask(await start(provider), "messages", max_tokens=100)
    usage, [call] = json.loads(answer.text)["usage"], collector.spans
    cached = [usage.get(f"cache_{each}_input_tokens") or 0 for each in ("read", "creation")]
    assert call.attributes["gen_ai.usage.input_tokens"] == usage["input_tokens"] + sum(cached)
    assert call.attributes["gen_ai.provider.name"] == "anthropic"


async def test_what_the_provider_refuses_and_where_none_is_fails(start: Start, collector: Collector) -> None:
    with ProviderEmulator([Refused(429, SECRET)]) as provider:
        async with exporting(Settings.of(otel_endpoint=collector.url)):
            url = await start(provider)
            assert (await ask(url)).status_code == 429
            provider.__exit__(None, None, None)
            assert (await ask(url)).status_code == 502
    refused, unreached = collector.spans
    assert (refused.failed, refused.attributes["error.type"]) == (True, "429")
    assert unreached.failed and unreached.attributes["error.type"].startswith("Client")
    assert not any(SECRET.encode() in body for body in collector.bodies)


async def test_off_a_clients_header_goes_up_as_it_came(start: Start) -> None:
    with ProviderEmulator(None) as provider:
        await ask(await start(provider))
    [sent] = provider.requests
    assert sent.headers["traceparent"] == TRACEPARENT

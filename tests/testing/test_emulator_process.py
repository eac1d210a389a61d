"""The emulator as a process, and its lean form for benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx
import pytest

from longthread.messages.chat_completions import CompletionReply
from longthread.messages.message import Message
from longthread_testing.emulator.__main__ import _app, _parser
from longthread_testing.emulator.lean import TEXT, LeanProvider
from longthread_testing.emulator.lean_turns import SQL, words
from longthread_testing.emulator.provider import ProviderEmulator

ASKS: dict[str, dict[str, Any]] = {
    "/v1/messages": {"messages": [{"role": "user", "content": "q"}]},
    "/v1/responses": {"input": "q"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "q"}], "stream_options": {"include_usage": True}},
}
THINKING = {"thinking": {"budget_tokens": 1024, "type": "enabled"}}
QUOTED = {"role": "user", "content": json.dumps({"stream": True, **THINKING})}


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://emulator")


@pytest.mark.parametrize("path", ASKS)
@pytest.mark.parametrize("more", [{}, THINKING])
async def test_lean_replies_are_those_of_the_emulator(path: str, more: dict[str, Any]) -> None:
    def kinds(reply: httpx.Response) -> list[str]:
        lines = [line[6:] for line in reply.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line).get("type", "chunk") if line != "[DONE]" else line for line in lines]

    ask = {"model": "m", **ASKS[path], **more}
    async with client(LeanProvider()) as lean, client(ProviderEmulator([TEXT] * 3).app) as full:
        whole, again = [await lean.post(path, json=ask) for _ in range(2)]
        streamed = await lean.post(path, json={**ask, "stream": True})
        like = await full.post(path, json={**ask, "stream": True})
    assert whole.json()["id"] != again.json()["id"]
    assert json.dumps(TEXT, ensure_ascii=False) in whole.text
    assert ('"signature"' in whole.text) == (path == "/v1/messages" and bool(more))
    if not more:
        assert kinds(streamed) == kinds(like)
    assert whole.headers["request-id"] == whole.headers["x-request-id"] != again.headers["request-id"]


async def test_lean_replies_go_by_fields_and_not_by_texts() -> None:
    async with client(LeanProvider()) as lean:
        reply = await lean.post("/v1/messages", json={"model": "m", "messages": [QUOTED]})
        assert [each["type"] for each in reply.json()["content"]] == ["text"]
        assert (await lean.get("/v1/nowhere")).status_code == 404


async def test_a_lean_turn_runs_a_query_and_then_says_its_pieces() -> None:
    async def said(provider: httpx.AsyncClient, roles: list[str]) -> tuple[list[str], Message]:
        body = {"model": "lean-12x1+5", "stream": True, "messages": [{"role": role, "content": ""} for role in roles]}
        reply = await provider.post("/v1/chat/completions", json=body)
        read = CompletionReply("lean")
        events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: {")]
        pieces = [text for event in events for text, _ in read.add(event) if text]
        assert read.is_whole
        return pieces, read.message()

    async with client(LeanProvider()) as lean:
        _, asked = await said(lean, ["system", "user"])
        pieces, answer = await said(lean, ["system", "user", "assistant", "tool"])
    assert [(call["name"], call["args"]) for call in asked.tool_calls] == [("run_sql", {"sql": SQL})]
    assert pieces == words(12)
    assert answer.text == "".join(pieces)


async def test_rules_are_options() -> None:
    app = _app(_parser().parse_args(["--signatures", "--no-threads", "--model", "claude-opus-5-5"]))
    async with client(app) as provider:
        ask = {"model": "m", "messages": [{"role": "user", "content": "q"}], **THINKING}
        reply = await provider.post("/v1/messages", json=ask)
        models = (await provider.get("/v1/models")).json()["data"]
    assert [each["type"] for each in reply.json()["content"]] == ["thinking", "text"]
    assert [each["id"] for each in models] == ["claude-opus-5-5"]


def test_a_process_prints_its_url_and_ends_by_a_signal() -> None:
    command = [sys.executable, "-m", "longthread_testing.emulator", "--lean", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().strip()
        reply = httpx.post(f"{url}/v1/chat/completions", json={"model": "m", **ASKS["/v1/chat/completions"]})
        process.terminate()
        process.wait(20)
        assert process.stderr.read() == ""
    assert reply.json()["choices"][0]["message"]["content"] == TEXT

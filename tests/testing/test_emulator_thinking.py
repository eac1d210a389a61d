"""The emulator's rules on Anthropic's thinking blocks, threads and counts, over its ASGI application."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from longthread.messages.message import Message, tool_call
from longthread.testing import ProviderEmulator, ProviderRules, Refused, Slow
from longthread_testing.emulator.rules import model_family

BOUND = ProviderRules(signatures=True, binding=True)
SIGNED = ProviderRules(signatures=True)
TOOL = {"name": "add", "input_schema": {"type": "object"}}
BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
ASK: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 99,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [TOOL],
    "thinking": {"type": "adaptive"},
    "messages": [{"role": "user", "content": 'use the tool add with {"b": 2, "a": 1}'}],
}


async def send(provider: ProviderEmulator, body: dict[str, Any], path: str = "", **headers: str) -> httpx.Response:
    transport = httpx.ASGITransport(provider.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://emulator") as client:
        return await client.post(f"/v1/messages{path}", json=body, headers=headers)


async def tool_loop(provider: ProviderEmulator, ask: dict[str, Any] = ASK) -> dict[str, Any]:
    """Return a request with two finished turns, one of them a tool loop, and a new question."""
    body = copy.deepcopy(ask)
    for _ in range(3):
        reply = await send(provider, body)
        assert reply.status_code == 200, reply.text
        said = reply.json()
        call = next((each for each in said["content"] if each["type"] == "tool_use"), None)
        result: Any = "And now?"
        if call:
            result = [{"type": "tool_result", "tool_use_id": call["id"], "content": "3"}]
        body["messages"] += [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": result}]
    return body


def message_of(reply: httpx.Response) -> str:
    told: str = reply.json()["error"]["message"]
    return told


def events_of(reply: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


@pytest.mark.parametrize("display", ["omitted", "summarized"])
async def test_a_reply_begins_with_signed_thinking_streamed_and_not(display: str) -> None:
    provider = ProviderEmulator(["so"], loop=True, rules=BOUND)
    ask = {**ASK, "thinking": {"type": "enabled", "budget_tokens": 1024, "display": display}}
    whole = (await send(provider, ask)).json()["content"]
    assert [each["type"] for each in whole] == ["thinking", "text"]
    assert bool(whole[0]["thinking"]) == (display == "summarized")
    events = events_of(await send(provider, {**ask, "stream": True}))
    deltas = [each["delta"] for each in events if each.get("index") == 0 and "delta" in each]
    assert deltas[-1]["type"] == "signature_delta"
    assert "".join(each.get("thinking", "") for each in deltas) == whole[0]["thinking"]
    assert deltas[-1]["signature"] != whole[0]["signature"]


async def test_no_thinking_unless_asked_for() -> None:
    thought = Message("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}])
    provider = ProviderEmulator([thought, thought, "so"], rules=SIGNED)
    for mode in ({"type": "disabled"}, None, {"type": "between_tools"}):
        reply = (await send(provider, {**ASK, "thinking": mode})).json()
        assert [each["type"] for each in reply["content"]] == ["text"]


async def test_updates_between_tools_come_back_as_thinking() -> None:
    update = Message("assistant", [{"type": "thinking", "thinking": "hm"}], tool_calls=[tool_call("add", {}, "c")])
    provider = ProviderEmulator([update, "so"], rules=BOUND)
    ask = {**ASK, "thinking": {"type": "between_tools"}}
    said = (await send(provider, ask)).json()["content"]
    assert [each["type"] for each in said] == ["thinking", "tool_use"]
    result = {"type": "tool_result", "tool_use_id": "c", "content": "3"}
    more = [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    assert (await send(provider, {**ask, "messages": [*ASK["messages"], *more]})).status_code == 200


def _moved_cache_control(body: dict[str, Any]) -> None:
    del body["system"][0]["cache_control"]
    body["messages"][-2]["content"][-1]["cache_control"] = {"type": "ephemeral"}


def _strings_as_blocks(body: dict[str, Any]) -> None:
    body["system"] = body["system"][0]["text"]
    for message in body["messages"]:
        if isinstance(message["content"], str):
            message["content"] = [{"type": "text", "text": message["content"]}]
    body["messages"][2]["content"][0]["content"] = [{"type": "text", "text": "3"}]


def _reordered_keys(body: dict[str, Any]) -> None:
    call = body["messages"][1]["content"][-1]
    call["input"] = dict(reversed(call["input"].items()))
    body["messages"] = [dict(reversed(each.items())) for each in body["messages"]]


@pytest.mark.parametrize("change", [lambda body: None, _moved_cache_control, _strings_as_blocks, _reordered_keys])
async def test_a_history_of_equal_values_is_accepted(change: Callable[[dict[str, Any]], None]) -> None:
    provider = ProviderEmulator(None, rules=BOUND)
    body = await tool_loop(provider)
    change(body)
    assert (await send(provider, body)).status_code == 200
    assert (await send(provider, body, "/count_tokens")).json()["input_tokens"] > 1


def _edited_question(body: dict[str, Any]) -> None:
    body["messages"][0]["content"] += "!"


def _edited_result(body: dict[str, Any]) -> None:
    body["messages"][2]["content"][0]["content"] = "4"


def _edited_system(body: dict[str, Any]) -> None:
    body["system"][0]["text"] = "Be long."


def _another_tool(body: dict[str, Any]) -> None:
    body["tools"].append({**TOOL, "name": "other"})


def _first_thinking_gone(body: dict[str, Any]) -> None:
    del body["messages"][1]["content"][0]


def _second_thinking_gone(body: dict[str, Any]) -> None:
    del body["messages"][3]["content"][0]


BOUND_CHANGES = [
    (_edited_question, 1),
    (_edited_result, 3),
    (_edited_system, 1),
    (_another_tool, 1),
    (_first_thinking_gone, 3),
    (_second_thinking_gone, 5),
]


@pytest.mark.parametrize(("change", "place"), BOUND_CHANGES)
async def test_a_changed_prefix_breaks_what_comes_after_it(change: Callable[..., None], place: int) -> None:
    provider = ProviderEmulator(None, rules=BOUND)
    body = await tool_loop(provider)
    change(body)
    for path in ("", "/count_tokens"):
        reply = await send(provider, body, path)
        assert reply.status_code == 400
        assert reply.json()["error"]["type"] == "invalid_request_error"
        assert message_of(reply).startswith(
            f"messages.{place}.content.0: Invalid `signature` in `thinking` block. The block is bound to a different"
        )
    assert (await send(ProviderEmulator(None, rules=SIGNED), body)).status_code == 200


@pytest.mark.parametrize(("change", "place"), BOUND_CHANGES)
async def test_a_changed_prefix_may_drop_all_later_thinking(change: Callable[..., None], place: int) -> None:
    provider = ProviderEmulator(None, rules=BOUND)
    body = await tool_loop(provider)
    change(body)
    body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    reply = (await send(provider, body, **BETA)).json()
    dropped = [f"messages.{number}.content.0" for number in range(place, 6, 2)]
    assert [each["path"] for each in reply["input_transformations"]] == dropped
    assert {each["reason"] for each in reply["input_transformations"]} == {"prefix_binding_mismatch"}
    started = events_of(await send(provider, {**body, "stream": True}, **BETA))[0]
    assert started["message"]["input_transformations"] == reply["input_transformations"]
    body["messages"] += [{"role": "assistant", "content": reply["content"]}, {"role": "user", "content": "more"}]
    again = (await send(provider, body, **BETA)).json()
    assert [each["path"] for each in again["input_transformations"]] == dropped  # what came after them holds
    assert "input_transformations" not in (await send(provider, body)).json()


async def test_without_binding_a_changed_prefix_is_told_and_nothing_is_dropped() -> None:
    provider = ProviderEmulator(None, rules=SIGNED)
    body = await tool_loop(provider)
    assert (await send(provider, body, **BETA)).json()["input_transformations"] == []
    _edited_result(body)
    told = (await send(provider, body, **BETA)).json()["input_transformations"]
    assert [(each["type"], each["path"]) for each in told] == [
        ("thinking_mismatch_allowed", "messages.3.content.0"),
        ("thinking_mismatch_allowed", "messages.5.content.0"),
    ]


async def test_forged_missing_and_altered_thinking() -> None:
    provider = ProviderEmulator(None, rules=SIGNED)
    body = await tool_loop(provider, {**ASK, "thinking": {"type": "adaptive", "display": "summarized"}})
    for place, field, value, told in [
        (1, "signature", "Zm9yZ2Vk", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (1, "signature", "", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (1, "signature", None, "messages.1.content.0.thinking.signature: Field required"),
        (1, "thinking", None, "messages.1.content.0.thinking.thinking: Field required"),
        (1, "thinking", "else", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (5, "thinking", "else", "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest"),
    ]:
        sent = copy.deepcopy(body)
        sent["messages"][place]["content"][0][field] = value
        reply = await send(provider, sent)
        assert (reply.status_code, message_of(reply)[: len(told)]) == (400, told)


async def test_redacted_thinking_is_the_scripts_wish() -> None:
    redacted = Message("assistant", [{"type": "redacted_thinking"}, {"type": "text", "text": "so"}])
    provider = ProviderEmulator([redacted, "ok"], rules=BOUND)
    said = (await send(provider, ASK)).json()["content"]
    assert [each["type"] for each in said] == ["redacted_thinking", "text"]
    body = {**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": said}]}
    body["messages"].append({"role": "user", "content": "And?"})
    assert (await send(provider, body)).status_code == 200
    said[0]["data"] = said[0]["data"][:-8]
    assert message_of(await send(provider, body)) == (
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
    )


async def test_the_last_message_of_a_tool_loop() -> None:
    provider = ProviderEmulator(None, rules=SIGNED)
    enabled = {**ASK, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    said = (await send(provider, enabled)).json()["content"]
    result = {"type": "tool_result", "tool_use_id": said[-1]["id"], "content": "3"}
    loop = [*ASK["messages"], {"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    bare = copy.deepcopy(loop)
    del bare[1]["content"][0]
    later = [{"role": "assistant", "content": "3"}, {"role": "user", "content": "And?"}]
    off = {**ASK, "thinking": {"type": "disabled"}}
    assert (await send(provider, {**enabled, "messages": loop})).status_code == 200
    told = message_of(await send(provider, {**enabled, "messages": bare}))
    assert told.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`"
    )
    told = message_of(await send(provider, {**off, "messages": loop}))
    assert "in the final position cannot contain `thinking`" in told
    for body in ({**ASK, "messages": bare}, {**off, "messages": bare}, {**enabled, "messages": [*bare, *later]}):
        assert (await send(provider, body)).status_code == 200
    assert (await send(provider, {**off, "messages": [*loop, *later]})).status_code == 200
    lax = ProviderEmulator(None, rules=ProviderRules(signatures=True, thinking_first=False))
    assert (await send(lax, {**enabled, "messages": bare})).status_code == 200


async def test_a_signature_is_bound_to_the_models_family() -> None:
    provider = ProviderEmulator(None, rules=SIGNED)
    body = await tool_loop(provider)
    assert (await send(provider, {**body, "model": "claude-opus-6"})).status_code == 200
    assert (await send(provider, {**body, "model": "claude-sonnet-5"})).status_code == 400
    body["thinking"] = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    reply = (await send(provider, {**body, "model": "claude-sonnet-5"}, **BETA)).json()
    assert {each["reason"] for each in reply["input_transformations"]} == {"model_binding_mismatch"}


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("claude-opus-5-5", "claude-opus"),
        ("claude-3-5-sonnet-20241022", "claude-sonnet"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet"),
        ("gpt-6.2-sol", "gpt-sol"),
        ("stub-model", "stub-model"),
        ("7b", "7b"),
    ],
)
def test_families(model: str, family: str) -> None:
    assert model_family(model) == family


async def test_system_messages_in_a_conversation_are_accepted_and_bound() -> None:
    provider = ProviderEmulator(None, rules=BOUND)
    ask = {**ASK, "messages": [*ASK["messages"], {"role": "system", "content": "Today is Monday."}]}
    body = await tool_loop(provider, ask)
    assert (await send(provider, body)).status_code == 200
    body["messages"][1]["content"] = "Today is Tuesday."
    assert (await send(provider, body)).status_code == 400


def test_binding_needs_signatures() -> None:
    with pytest.raises(ValueError, match="needs signatures"):
        ProviderRules(binding=True)


# Message threads.

THREADS = {"anthropic-beta": "message-threads-2026-08-12"}
PLAIN = {name: value for name, value in ASK.items() if name != "thinking"}


def code_of(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["details"]["error_code"]


async def test_a_thread_is_continued_with_what_is_new() -> None:
    provider = ProviderEmulator(None)
    first = (await send(provider, {**PLAIN, "thread": {"type": "create"}}, **THREADS)).json()
    result = {"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": "3"}
    more: dict[str, Any] = {
        "model": PLAIN["model"],
        "max_tokens": 9,
        "thread": {"type": "continue", "previous_message_id": first["id"]},
        "messages": [{"role": "user", "content": [result]}],
    }
    reply = await send(provider, more, **THREADS)
    assert reply.json()["content"] == [{"type": "text", "text": "The tool said: 3"}]
    assert code_of(await send(provider, more, **THREADS)) == (400, "thread_already_continued")
    more["thread"]["previous_message_id"] = reply.json()["id"]
    more["messages"] = [{"role": "user", "content": 'use the tool add with {"a": 5}'}]
    assert code_of(await send(provider, {**more, "tools": []}, **THREADS)) == (400, "thread_fingerprint_mismatch")
    thinking = {"type": "enabled", "budget_tokens": 1024}
    refused = await send(provider, {**more, "thinking": thinking}, **THREADS)
    assert code_of(refused) == (400, "thread_unsupported_request")
    assert refused.json()["error"]["details"]["unsupported"] == ["thinking"]
    third = await send(provider, more, **THREADS)
    assert third.json()["content"][0]["input"] == {"a": 5}  # the tools of the thread
    more["thread"]["previous_message_id"] = third.json()["id"]
    provider.forget()
    assert code_of(await send(provider, more, **THREADS)) == (404, "thread_not_found")


async def test_a_reply_is_continued_once_at_a_time_and_again_after_a_failure() -> None:
    provider = ProviderEmulator(["one", Refused(529, "Overloaded"), Slow("two", seconds=0.05)])
    first = (await send(provider, {**PLAIN, "thread": {"type": "create"}}, **THREADS)).json()
    thread = {"type": "continue", "previous_message_id": first["id"]}
    more = {"model": PLAIN["model"], "thread": thread, "messages": [{"role": "user", "content": "more"}]}
    assert (await send(provider, more, **THREADS)).status_code == 529
    replies = await asyncio.gather(*(send(provider, more, **THREADS) for _ in range(2)))
    said, refused = sorted(replies, key=lambda each: each.status_code)
    assert said.json()["content"] == [{"type": "text", "text": "two"}]
    assert code_of(refused) == (400, "thread_continue_in_flight")


async def test_without_the_beta_or_the_rule_a_thread_is_an_unknown_field() -> None:
    body = {**PLAIN, "thread": {"type": "create"}}
    for provider, headers in (
        (ProviderEmulator(None), {}),
        (ProviderEmulator(None, rules=ProviderRules(threads=False)), THREADS),
    ):
        reply = await send(provider, body, **headers)
        assert (reply.status_code, message_of(reply)) == (400, "thread: Extra inputs are not permitted")

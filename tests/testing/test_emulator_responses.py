"""The emulator's Responses: events, reasoning items and held responses, with the SDK over a socket and without."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from longthread.messages.message import Message
from longthread.testing import ProviderEmulator, ProviderRules

CALL = 'use the tool add with {"a": 1}'
TOOL: Any = {"type": "function", "name": "add", "parameters": {"type": "object"}}
ASK: dict[str, Any] = {"model": "gpt-5", "input": [{"role": "user", "content": CALL}], "tools": [TOOL]}


async def ask(
    provider: ProviderEmulator, path: str = "", method: str = "POST", **body: Any
) -> tuple[int, dict[str, Any]]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(provider.app), base_url="http://emulator") as client:
        reply = await client.request(method, f"/v1/responses{path}", json=body if method == "POST" else None)
    return reply.status_code, reply.json()


async def turn(provider: ProviderEmulator, **body: Any) -> dict[str, Any]:
    status, reply = await ask(provider, **{**ASK, **body})
    assert status == 200, reply
    return reply


def result(reply: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": reply["output"][-1]["call_id"], "output": "3"}


@pytest.fixture
def client() -> Iterator[openai.OpenAI]:
    with ProviderEmulator(None) as provider, openai.OpenAI(base_url=provider.base_url, api_key="k") as client:
        yield client


def test_a_stream_has_each_event_in_its_place_and_the_whole_content_when_an_item_is_done(client: openai.OpenAI) -> None:
    events: list[Any] = list(client.responses.create(**{**ASK, "stream": True}))
    assert [each.sequence_number for each in events] == [*range(len(events))]
    kinds = [each.type.removeprefix("response.") for each in events]
    assert [kind for place, kind in enumerate(kinds) if kinds[place - 1] != kind] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    begun = next(each.item for each in events if each.type == "response.output_item.added")
    done = next(each.item for each in events if each.type == "response.output_item.done")
    assert begun.id == done.id
    assert done.encrypted_content.startswith(begun.encrypted_content)
    assert len(done.encrypted_content) > len(begun.encrypted_content)
    final = events[-1].response
    assert [item.type for item in final.output] == ["reasoning", "function_call"]
    assert json.loads(final.output[1].arguments) == {"a": 1}
    assert final.usage.total_tokens == final.usage.input_tokens + final.usage.output_tokens


def test_the_helper_of_the_sdk_gathers_a_text_with_its_phase(client: openai.OpenAI) -> None:
    with client.responses.stream(model="gpt-5", input="你好") as stream:
        for _ in stream:
            pass
        final = stream.get_final_response()
    assert final.output_text == "You said: 你好"
    message: Any = final.output[1]
    assert message.phase == "final_answer"


async def test_the_phase_of_a_text_beside_a_call() -> None:
    said = {"thought": "Let me see.", "action": "add", "args": {}}
    blocks = [{"type": "text", "text": "One.", "phase": "commentary"}, {"type": "text", "text": "Two."}]
    provider = ProviderEmulator([said, Message("assistant", [*blocks])])
    first, second = await turn(provider), await turn(provider)
    assert [(item["type"], item.get("phase")) for item in first["output"]] == [
        ("reasoning", None),
        ("message", "commentary"),
        ("function_call", None),
    ]
    assert [item["phase"] for item in second["output"]] == ["commentary", "final_answer"]  # blocks are exact


def test_a_response_is_continued_retrieved_and_deleted(client: openai.OpenAI) -> None:
    first: Any = client.responses.create(**ASK)
    output: Any = [{"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "3"}]
    second = client.responses.create(model="gpt-5", input=output, previous_response_id=first.id)
    assert second.output_text == "The tool said: 3"
    assert second.previous_response_id == first.id
    assert client.responses.retrieve(second.id) == second
    kinds = [item.type for item in client.responses.input_items.list(second.id, order="asc", limit=2)]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
    replayed: Any = client.responses.retrieve(second.id, stream=True, starting_after=3)
    numbers = [event.sequence_number for event in replayed]
    assert numbers == [*range(4, 4 + len(numbers))]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="gpt-5", input=output, previous_response_id=first.id)
    assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")


async def test_instructions_are_not_carried_over() -> None:
    seen: list[list[str]] = []
    provider = ProviderEmulator(lambda messages: seen.append([each.role for each in messages]) or "ok")
    first = await turn(provider, instructions="Be brief.")
    await turn(provider, input="more", previous_response_id=first["id"])
    assert seen == [["system", "user"], ["user", "assistant", "user"]]


async def test_the_call_of_a_tool_in_a_namespace_names_the_namespace() -> None:
    space = {"type": "namespace", "name": "agents", "description": "", "tools": [{**TOOL, "name": "spawn"}]}
    provider = ProviderEmulator([{"action": "spawn", "args": {}}, {"action": "add", "args": {}}])
    inside, outside = [await turn(provider, tools=[TOOL, space]) for _ in range(2)]
    assert (inside["output"][-1]["name"], inside["output"][-1]["namespace"]) == ("spawn", "agents")
    assert "namespace" not in outside["output"][-1]
    asked = [{"role": "user", "content": "use the tool spawn with {}"}]
    assert (await turn(ProviderEmulator(None), tools=[space], input=asked))["output"][-1]["name"] == "spawn"


@pytest.mark.parametrize("store", [False, True])
async def test_what_is_not_stored_is_not_found(store: bool) -> None:
    provider = ProviderEmulator(None, rules=ProviderRules(stored=not store))
    reply = await turn(provider, store=store)
    assert (await ask(provider, f"/{reply['id']}", "GET"))[0] == 404
    status, told = await ask(provider, **ASK, previous_response_id=reply["id"])
    assert (status, told["error"]["code"]) == (400, "previous_response_not_found")
    reference = {"type": "item_reference", "id": reply["output"][0]["id"]}
    for item in (reference, {**reply["output"][0], "encrypted_content": None}):
        status, told = await ask(provider, **{**ASK, "input": [item]})
        assert status == 404
        assert told["error"]["message"].startswith(
            f"Item with id '{reference['id']}' not found. Items are not persisted when `store` is set to false."
        )
    assert (await turn(provider, input=[*ASK["input"], *reply["output"], result(reply)]))["output"]


async def test_items_may_be_referred_to() -> None:
    provider = ProviderEmulator(None)
    reply = await turn(provider)
    references = [{"type": "item_reference", "id": item["id"]} for item in reply["output"]]
    bare = {**reply["output"][0], "encrypted_content": None}
    for items in (references, [references[0], reply["output"][1]], [bare, references[1]]):
        again = await turn(provider, input=[*ASK["input"], *items, result(reply)])
        assert again["output"][1]["content"][0]["text"] == "The tool said: 3"
    provider.forget()
    assert (await ask(provider, **{**ASK, "input": references}))[0] == 404


async def refused(provider: ProviderEmulator, items: list[dict[str, Any]]) -> tuple[str | None, str]:
    status, told = await ask(provider, **{**ASK, "store": False, "input": items})
    assert status == 400, told
    return told["error"]["code"], told["error"]["message"]


async def test_reasoning_is_bound_to_its_id_and_to_what_follows() -> None:
    provider = ProviderEmulator(None)
    reply = await turn(provider, store=False)
    reasoning, call = reply["output"]
    user, output = ASK["input"][0], result(reply)
    other = {**reasoning, "id": "rs_other"}
    code, message = await refused(provider, [user, other, call, output])
    assert code == "invalid_encrypted_content" and "rs_other" in message
    forged = {**reasoning, "encrypted_content": reasoning["encrypted_content"][:-4]}
    code, message = await refused(provider, [user, forged, call, output])
    assert code == "invalid_encrypted_content" and "could not be verified" in message
    told = f"Item '{reasoning['id']}' of type 'reasoning' was provided without its required following item."
    parted = [
        [user, reasoning],
        [user, reasoning, user, call, output],
        [user, reasoning, {**call, "id": "fc_other"}, output],
    ]
    for items in parted:
        assert await refused(provider, items) == (None, told)
    bare = [{name: value for name, value in item.items() if name != "id"} for item in (reasoning, call)]
    for items in ([*bare, output], [call, output], [bare[1], output]):
        await turn(provider, store=False, input=[user, *items])
    lax = ProviderEmulator(None, rules=ProviderRules(reasoning=False))
    assert (await turn(lax, input=[user, forged, call, output]))["output"][0]["type"] == "message"


async def test_a_stored_item_needs_its_reasoning() -> None:
    provider = ProviderEmulator(None)
    reply = await turn(provider)
    reasoning, call = reply["output"]
    user, output = ASK["input"][0], result(reply)
    needs = f"its required 'reasoning' item: '{reasoning['id']}'."
    told = f"Item '{call['id']}' of type 'function_call' was provided without {needs}"
    assert await refused(provider, [user, call, output]) == (None, told)
    assert await refused(provider, [user, {"type": "item_reference", "id": call["id"]}, output]) == (None, told)
    await turn(provider, input=[user, {**call, "id": None}, output])


async def test_calls_and_results_are_paired() -> None:
    provider = ProviderEmulator(None)
    reply = await turn(provider)
    user, output = ASK["input"][0], result(reply)
    told = f"No tool output found for function call {output['call_id']}."
    assert (await refused(provider, [user, *reply["output"]]))[1] == told
    told = f"No tool call found for function call output with call_id {output['call_id']}."
    assert (await refused(provider, [user, output]))[1] == told


async def test_the_input_is_compacted_and_counted() -> None:
    provider = ProviderEmulator(None)
    reply = await turn(provider)
    whole = {**ASK, "input": [*ASK["input"], *reply["output"], result(reply)]}
    status, compacted = await ask(provider, "/compact", **whole)
    assert (status, compacted["object"]) == (200, "response.compaction")
    assert [item["type"] for item in compacted["output"]] == ["message", "compaction"]
    assert (await turn(provider, input=[*compacted["output"], {"role": "user", "content": "And?"}]))["output"]
    forged = copy.deepcopy(compacted["output"])
    forged[1]["encrypted_content"] = "Zm9yZ2Vk"
    assert (await refused(provider, forged))[0] == "invalid_encrypted_content"
    status, counted = await ask(provider, "/input_tokens", **whole)
    assert (status, counted["object"]) == (200, "response.input_tokens")
    assert counted["input_tokens"] > (await ask(provider, "/input_tokens", **ASK))[1]["input_tokens"]


async def test_a_response_in_the_background_may_be_cancelled() -> None:
    provider = ProviderEmulator(None)
    queued = await turn(provider, background=True)
    assert (queued["status"], queued["output"]) == ("queued", [])
    assert (await ask(provider, f"/{queued['id']}/cancel"))[1]["status"] == "cancelled"
    assert (await ask(provider, f"/{queued['id']}", "GET"))[1]["status"] == "cancelled"
    done = await turn(provider, background=True)
    assert (await ask(provider, f"/{done['id']}", "GET"))[1]["status"] == "completed"
    assert (await ask(provider, f"/{done['id']}/cancel"))[1]["status"] == "completed"
    status, told = await ask(provider, f"/{(await turn(provider))['id']}/cancel")
    assert (status, told["error"]["message"]) == (400, "Cannot cancel a synchronous response.")


async def test_a_websocket_is_refused_so_that_clients_fall_back() -> None:
    assert (await ask(ProviderEmulator(None), method="GET"))[0] == 426


async def test_a_conversation_is_not_known() -> None:
    provider = ProviderEmulator(None)
    assert (await ask(provider, **ASK, conversation="conv_1"))[0] == 404
    status, told = await ask(provider, **ASK, conversation="conv_1", previous_response_id="resp_1")
    assert (status, told["error"]["code"]) == (400, "mutually_exclusive_parameters")

"""Reasoning that is bound to its call comes back beside it, whatever a client changed before it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar

import httpx
import pytest
from tests.gateway.conftest import USER, Start, gateway_of
from tests.gateway.plain_provider import Answer, PlainProvider, completion, refused

from longthread.gateway.restore import binding_of
from longthread.gateway.stored_calls import rebuild_missing
from longthread.store import listing, log
from longthread.store.driver import Driver
from longthread.store.queries import Sql

pytestmark = pytest.mark.sampled(2)

Items = list[dict[str, Any]]
Step = tuple[Items, Items]
"""A message as a client without hidden parts has it, and as the provider wants it."""
THINKS = {"type": "adaptive"}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=30) as opened:
        yield opened


class Vendor:
    """A model of Chat Completions with hidden parts beside its calls."""

    path, items = "/v1/chat/completions", "messages"
    frame: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, model: str, hidden: Mapping[str, Any], of_call: Mapping[str, Any] | None = None) -> None:
        self.model, self._hidden, self._of_call = model, hidden, of_call or {}
        self.ids = "call_q{}7xw"

    def answer(self, body: dict[str, Any]) -> Answer:
        """Call a tool for a question, and answer after its result."""
        number = len(body[self.items])
        said = {"content": f"Answer {number}."} | numbered(self._hidden, number)
        if body[self.items][-1]["role"] == "user":
            function = {"name": "clock", "arguments": '{"zone": "UTC"}'}
            call = {"id": self.ids.format(number), "type": "function", "function": function}
            said |= {"content": "看一下", "tool_calls": [call | numbered(self._of_call, number)]}
        return completion(said)

    def replied(self, answer: httpx.Response) -> Step:
        whole = answer.json()["choices"][0]["message"]
        bare = {name: whole[name] for name in ("role", "content", "tool_calls") if name in whole}
        if "tool_calls" in bare:
            calls = bare["tool_calls"]
            bare["tool_calls"] = [{k: v for k, v in call.items() if k != "extra_content"} for call in calls]
        return [bare], [whole]

    def result(self, whole: Items) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": whole[0]["tool_calls"][0]["id"], "content": "12:00"}


class MessagesVendor(Vendor):
    """One with an endpoint in Anthropic's dialect."""

    path = "/v1/messages"
    frame: ClassVar = {"max_tokens": 900, "thinking": THINKS}

    def answer(self, body: dict[str, Any]) -> Answer:
        number = len(body["messages"])
        asks = isinstance(body["messages"][-1]["content"], str)
        said: Items = [{"type": "text", "text": "Let me see." if asks else f"Answer {number}."}]
        if asks:
            said.append({"type": "tool_use", "id": f"toolu_q{number}7xw", "name": "clock", "input": {"zone": "UTC"}})
        content = [numbered(self._hidden, number), *said]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.model, "stop_reason": "end_turn"}
        return Answer(json.dumps(head | {"content": content, "usage": {}}).encode())

    def replied(self, answer: httpx.Response) -> Step:
        content = answer.json()["content"]
        bare = [block for block in content if block["type"] != "thinking"]
        return [{"role": "assistant", "content": bare}], [{"role": "assistant", "content": content}]

    def result(self, whole: Items) -> dict[str, Any]:
        call = next(each for each in whole[0]["content"] if each["type"] == "tool_use")
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "12:00"}]}


class ItemsVendor(Vendor):
    """OpenAI's Responses: reasoning with encrypted content before the item that it led to."""

    path, items = "/v1/responses", "input"
    frame: ClassVar = {"store": False, "include": ["reasoning.encrypted_content"]}

    def answer(self, body: dict[str, Any]) -> Answer:
        number = len(body["input"])
        reasoning = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"enc-{number}"}
        if body["input"][-1].get("role") == "user":
            ids = {"id": f"fc_{number}", "call_id": f"call_q{number}7xw"}
            led_to: dict[str, Any] = {"type": "function_call", "name": "clock", "arguments": "{}"} | ids
        else:
            content = [{"type": "output_text", "text": f"Answer {number}.", "annotations": []}]
            led_to = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}
        body = {"id": f"resp_{number}", "status": "completed", "output": [reasoning, led_to]}
        return Answer(json.dumps(body).encode())

    def replied(self, answer: httpx.Response) -> Step:
        whole = answer.json()["output"]
        kept = [each for each in whole if each["type"] != "reasoning"]
        return [{name: value for name, value in each.items() if name != "id"} for each in kept], whole

    def result(self, whole: Items) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": whole[-1]["call_id"], "output": "12:00"}


def numbered(fields: Mapping[str, Any], number: int) -> dict[str, Any]:
    return dict(json.loads(json.dumps(fields).replace("#", str(number))))


SIGNATURE = {"extra_content": {"google": {"thought_signature": "sig-#"}}}
DETAILS = {"reasoning_details": [{"type": "reasoning.encrypted", "data": "enc-#", "id": "r-#", "index": 0}]}
THOUGHT = {"type": "thinking", "thinking": "why #"}
VENDORS = {
    "deepseek": Vendor("deepseek-v4-pro", {"reasoning_content": "想 #"}),
    "kimi": Vendor("kimi-k3-thinking", {"reasoning_content": "why #"}),
    "glm": Vendor("zai-org/glm-5", {"reasoning_content": "why #"}),
    "minimax": Vendor("MiniMax-M3", {"reasoning_details": [{"type": "reasoning.text", "text": "why #"}]}),
    "openrouter": Vendor("openai/gpt-6", {"reasoning": "why #"} | DETAILS),
    "gemini": Vendor("gemini-3-pro", {}, SIGNATURE),
    "unknown": Vendor("house-model", {"reasoning_content": "why #"}),
    "responses": ItemsVendor("gpt-6", {}),
    "deepseek-messages": MessagesVendor(
        "deepseek-v4-pro", {"type": "thinking", "thinking": "why #", "signature": "u#"}
    ),
    "unknown-messages": MessagesVendor("house-model", {"type": "thinking", "thinking": "why #", "signature": ""}),
}
CHANGES: dict[str, Callable[[list[Step]], list[Step]]] = {
    "nothing": lambda steps: steps,
    "the oldest turn is dropped": lambda steps: steps[4:],
    "an old result is pruned": lambda steps: [*steps[:2], both(steps[2], pruned), *steps[3:]],
    "a summary and the last turn": lambda steps: [says("总结：…"), *steps[-4:]],
    "the first question is rewritten": lambda steps: [says("<env/> step 0"), *steps[1:]],
    "texts are trimmed": lambda steps: [both(each, trimmed) for each in steps],
    "a reminder is put in": lambda steps: [*steps[:-4], says("<reminder/>"), *steps[-4:]],
    "a failed attempt is removed": lambda steps: steps[:4] + steps[8:],
}


def says(text: str) -> Step:
    message = {"role": "user", "content": text}
    return [message], [message]


def both(step: Step, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Step:
    return [change(each) for each in step[0]], [change(each) for each in step[1]]


def pruned(item: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(item).replace("12:00", "[cleared]")))


def trimmed(item: dict[str, Any]) -> dict[str, Any]:
    """What a client makes of texts, which it does not of thinking."""
    content = item.get("content")
    if isinstance(content, str) and item["role"] != "tool":
        return item | {"content": content.strip() + "\n"}
    if isinstance(content, list):
        texts = ("text", "output_text")
        return item | {"content": [b | {"text": b["text"] + "\n"} if b["type"] in texts else b for b in content]}
    return item


def bare(steps: list[Step]) -> Items:
    return [each for step in steps for each in step[0]]


def whole(steps: list[Step]) -> Items:
    return [each for step in steps for each in step[1]]


async def ask(client: httpx.AsyncClient, url: str, vendor: Vendor, items: Items, **headers: str) -> httpx.Response:
    body = {"model": vendor.model, vendor.items: items, **vendor.frame}
    return await client.post(url + vendor.path, json=body, headers={"authorization": "Bearer key", **headers})


async def talk(client: httpx.AsyncClient, url: str, vendor: Vendor, turns: int = 3, **headers: str) -> list[Step]:
    """Ask, send the tool's result, and so on, as a client without hidden parts."""
    steps: list[Step] = []
    for number in range(turns):
        steps.append(says(f"step {number}"))
        steps.append(vendor.replied(await ask(client, url, vendor, bare(steps), **headers)))
        result = vendor.result(steps[-1][1])
        steps.append(([result], [result]))
        steps.append(vendor.replied(await ask(client, url, vendor, bare(steps), **headers)))
    return steps


@pytest.mark.parametrize("name", VENDORS)
async def test_reasoning_comes_back_whatever_is_changed_before_it(
    start: Start, client: httpx.AsyncClient, name: str
) -> None:
    vendor = VENDORS[name]
    with PlainProvider(vendor.answer) as provider:
        url = await start(provider)
        talked = await talk(client, url, vendor)
        for change, apply in CHANGES.items():
            steps = [*apply(talked), says("and now?")]
            answer = await ask(client, url, vendor, bare(steps))
            assert provider.requests[-1][vendor.items] == whole(steps), change
            assert int(answer.headers["x-longthread-restored"]) >= 1
            # What was put in is known from then on.
            steps += [vendor.replied(answer), says("and then?")]
            await ask(client, url, vendor, bare(steps))
            assert provider.requests[-1][vendor.items] == whole(steps), change


@pytest.mark.parametrize("name", ["deepseek", "responses", "deepseek-messages"])
async def test_a_copy_of_the_log_knows_replies_by_themselves(
    store: Driver, start: Start, client: httpx.AsyncClient, name: str
) -> None:
    """The index follows from the entries, and goes with them."""
    vendor = VENDORS[name]
    with PlainProvider(vendor.answer) as provider:
        url = await start(provider)
        steps = await talk(client, url, vendor, 2)
        async with store.writing() as tx:
            before = await tx.fetch(Sql("SELECT * FROM gateway_nodes ORDER BY thread, seq, place"))
            await tx.run(Sql("DELETE FROM gateway_nodes"))
        assert await rebuild_missing(store) == 1
        async with store.reading() as tx:
            assert await tx.fetch(Sql("SELECT * FROM gateway_nodes ORDER BY thread, seq, place")) == before
        shorter = [*steps[4:], says("and now?")]
        await ask(client, url, vendor, bare(shorter))
        assert provider.requests[-1][vendor.items] == whole(shorter)
        async with store.writing() as tx:
            for each in await listing.list_threads(tx, user_id=USER):
                await log.delete_thread(tx, each.id, user_id=USER)
        await ask(client, url, vendor, bare(shorter))
        assert provider.requests[-1][vendor.items] == bare(shorter)


async def test_nobody_gets_the_reasoning_of_another(store: Driver, client: httpx.AsyncClient) -> None:
    vendor = VENDORS["deepseek"]
    with PlainProvider(vendor.answer) as provider:
        async with gateway_of(store, provider) as url, gateway_of(store, provider, user="bob") as other:  # type: ignore[arg-type]
            steps = [*(await talk(client, url, vendor, 2))[4:], says("and now?")]
            for address, key, expected in ((other, "key", bare), (url, "another", bare), (url, "key", whole)):
                await ask(client, address, vendor, bare(steps), authorization=f"Bearer {key}")
                assert provider.requests[-1]["messages"] == expected(steps)


async def test_ids_that_repeat_tell_no_call_apart(start: Start, client: httpx.AsyncClient) -> None:
    """Of a server that counts from `call_0` in each conversation. What is said beside the call decides, and then the
    thread, and then the time."""
    said = iter(["one", "two", "two"])

    def answer(body: dict[str, Any]) -> Answer:
        function = {"name": "ls", "arguments": "{}"}
        text = next(said, "x")
        call = {"id": "call_0", "type": "function", "function": function}
        return completion(
            {"content": text, "tool_calls": [call], "reasoning_content": f"{text} {len(provider.requests)}"}
        )

    vendor = Vendor("house-model", {})
    with PlainProvider(answer) as provider:
        url = await start(provider)
        first, second, third = [
            vendor.replied(await ask(client, url, vendor, bare([says(text)]), **{"x-conversation-id": text}))
            for text in ("a", "b", "c")
        ]

        async def restored(step: Step, **headers: str) -> Any:
            result = vendor.result(step[1])
            await ask(client, url, vendor, [*bare([says("other"), step]), result], **headers)
            return provider.requests[-1]["messages"][1].get("reasoning_content")

        assert await restored(first) == "one 1"
        assert await restored(third) == "two 3"
        assert await restored(second, **{"x-conversation-id": "b"}) == "two 2"
        other = first[0][0] | {"content": "three"}
        assert await restored(([other], first[1])) is None


async def test_equal_calls_of_one_conversation_get_each_its_own(start: Start, client: httpx.AsyncClient) -> None:
    def answer(body: dict[str, Any]) -> Answer:
        call = {"id": "call_0", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        return completion({"tool_calls": [call], "reasoning_content": f"why {len(body['messages'])}"})

    vendor = Vendor("house-model", {})
    with PlainProvider(answer) as provider:
        url = await start(provider)
        steps = [says("go")]
        for _ in range(3):
            steps.append(vendor.replied(await ask(client, url, vendor, bare(steps))))
            result = vendor.result(steps[-1][1])
            steps.append(([result], [result]))
        steps = [says("go on"), *steps[3:]]
        await ask(client, url, vendor, bare(steps))
        assert provider.requests[-1]["messages"] == whole(steps)


async def test_a_call_is_known_by_its_id_if_the_text_beside_it_changed(start: Start, client: httpx.AsyncClient) -> None:
    """Also one of several, which a client sends apart."""
    calls = [
        {"type": "function_call", "call_id": f"call_{n}x7k", "id": f"fc_{n}", "name": "f", "arguments": "{}"}
        for n in (1, 2)
    ]
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
    reply = {"id": "resp_1", "status": "completed", "output": [reasoning, *calls]}
    vendor = VENDORS["responses"]
    with PlainProvider(lambda _: Answer(json.dumps(reply).encode())) as provider:
        url = await start(provider)
        await ask(client, url, vendor, bare([says("go")]))
        results = [{"type": "function_call_output", "call_id": each["call_id"], "output": "ok"} for each in calls]
        sent = [{name: value for name, value in each.items() if name != "id"} for each in calls]
        question = {"role": "user", "content": "other"}
        await ask(client, url, vendor, [question, sent[0], results[0], sent[1], results[1]])
        expected = [question, reasoning, calls[0], results[0], calls[1], results[1]]
        assert provider.requests[-1]["input"] == expected
        # Without the item that it led to, reasoning is refused: then nothing of the reply is put in.
        await ask(client, url, vendor, [question, sent[1], results[1]])
        assert provider.requests[-1]["input"] == [question, sent[1], results[1]]


async def test_a_model_of_the_same_vendor_gets_what_nobody_signed(start: Start, client: httpx.AsyncClient) -> None:
    for name, expected in (("deepseek", True), ("gemini", False)):
        vendor = VENDORS[name]
        with PlainProvider(vendor.answer) as provider:
            url = await start(provider, name=name)
            steps = [*(await talk(client, url, vendor, 1)), says("and now?")]
            other = Vendor({"deepseek": "deepseek-chat", "gemini": "gemini-flash"}[name], {})
            await ask(client, url, other, bare(steps))
            assert (provider.requests[-1]["messages"] == whole(steps)) is expected


@pytest.mark.parametrize("model", ["claude-opus-5-5", "house-model"])
async def test_what_is_bound_to_its_prefix_stays_exact(start: Start, client: httpx.AsyncClient, model: str) -> None:
    """Of Anthropic, and of an unknown vendor who signs."""
    vendor = MessagesVendor(model, THOUGHT | {"signature": "sig #"})
    with PlainProvider(vendor.answer) as provider:
        url = await start(provider)
        steps = await talk(client, url, vendor, 2)
        for shorter, expected in ((steps, whole), (steps[4:], bare)):
            await ask(client, url, vendor, bare([*shorter, says("and now?")]))
            assert provider.requests[-1]["messages"] == expected([*shorter, says("and now?")])


@pytest.mark.parametrize(
    ("name", "branch"), [("deepseek", "main"), ("responses", "main"), ("deepseek-messages", "new")]
)
async def test_one_line_break_behind_a_text_is_no_edit(
    start: Start, client: httpx.AsyncClient, name: str, branch: str
) -> None:
    """In the dialects in which nobody binds anything to the prefix."""
    vendor = VENDORS[name]
    with PlainProvider(vendor.answer) as provider:
        url = await start(provider)
        steps = [both(each, trimmed) for each in await talk(client, url, vendor, 1)]
        answer = await ask(client, url, vendor, bare([*steps, says("and now?")]))
        assert answer.headers["x-longthread-branch"] == branch
        assert provider.requests[-1][vendor.items] == whole([*steps, says("and now?")])


MISSES = [
    (
        "deepseek-v4-pro",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        {"reasoning_content": ""},
    ),
    (
        "kimi-k3",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
        {"reasoning_content": ""},
    ),
    ("gemini-3-pro", "Function call is missing a thought_signature in functionCall parts.", {}),
]


@pytest.mark.parametrize(("model", "message", "fields"), MISSES, ids=[each[0] for each in MISSES])
async def test_history_from_elsewhere_passes_with_what_the_vendor_takes(
    start: Start, client: httpx.AsyncClient, model: str, message: str, fields: dict[str, Any]
) -> None:
    stand_in = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
    call = {"id": "call_e1x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    expected = said | fields if fields else said | {"tool_calls": [call | stand_in]}
    steps: list[Step] = [says("go"), ([said], [expected])]
    result = {"role": "tool", "tool_call_id": "call_e1x", "content": "ok"}
    steps.append(([result], [result]))

    def answer(body: dict[str, Any]) -> Answer:
        return completion({"content": "done"}) if expected in body["messages"] else refused(message)

    vendor = Vendor(model, {})
    with PlainProvider(answer) as provider:
        url = await start(provider)
        first = await ask(client, url, vendor, bare(steps))
        assert first.status_code == 200
        assert first.headers["x-longthread-repaired"]
        assert provider.requests[-1]["messages"] == whole(steps)
        steps += [vendor.replied(first), says("and now?")]
        assert (await ask(client, url, vendor, bare(steps))).status_code == 200
        assert len(provider.requests) == 3, "what was taken once is put in at once"


async def test_a_turn_without_thinking_goes_on_without(start: Start, client: httpx.AsyncClient) -> None:
    said = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    call = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
    ]
    reply = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}

    def answer(body: dict[str, Any]) -> Answer:
        is_off = body["thinking"]["type"] == "disabled"
        return Answer(json.dumps(reply | {"stop_reason": "end_turn"}).encode()) if is_off else refused(said)

    vendor = MessagesVendor("claude-opus-5-5", {})
    with PlainProvider(answer) as provider:
        found = await ask(client, await start(provider), vendor, history)
    assert found.status_code == 200
    assert "thinking is off" in found.headers["x-longthread-repaired"]
    assert provider.requests[-1]["messages"] == history


async def test_what_seems_not_to_be_taken_is_put_in_after_all(start: Start, client: httpx.AsyncClient) -> None:
    """The client switches thinking off, and the vendor wants the reasoning all the same."""
    vendor = VENDORS["deepseek"]

    def answer(body: dict[str, Any]) -> Answer:
        calls = [each for each in body["messages"] if each.get("tool_calls")]
        if all(each.get("reasoning_content") for each in calls):
            return vendor.answer(body)
        return refused("The `reasoning_content` in the thinking mode must be passed back to the API.")

    with PlainProvider(answer) as provider:
        url = await start(provider)
        steps = [*(await talk(client, url, vendor, 1)), says("and now?")]
        body = {"model": vendor.model, "messages": bare(steps), "enable_thinking": False}
        found = await client.post(url + vendor.path, json=body, headers={"authorization": "Bearer key"})
        assert found.status_code == 200
        assert provider.requests[-1]["messages"] == whole(steps)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("claude-opus-5-5", "prefix"),
        ("us.anthropic.claude-sonnet-5", "prefix"),
        ("anthropic/claude-haiku-5", "prefix"),
        ("deepseek-r1-distill-qwen-32b", "call"),
        ("moonshotai/kimi-k3", "call"),
        ("gpt-6", "call"),
        ("o4-mini", "call"),
        ("my-model", None),
        ("prometheus", None),
    ],
)
def test_vendors_are_told_by_their_models(model: str, expected: str | None) -> None:
    assert binding_of(model) == expected

"""What is known of recent requests changes nothing but the time that the next one takes: a process that remembers them
sends up the same bytes as one that has just been started."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.gateway import CALL
from tests.examples import examples
from tests.gateway.conftest import USER

from longthread.gateway import service
from longthread.gateway.dialects.anthropic import Anthropic
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.http import Incoming
from longthread.gateway.parts import Anchored, IndexedParts, Part, anchor_hidden, chain, digests, node_of, visible_parts
from longthread.gateway.request import Asked, Recent
from longthread.gateway.service import ANTHROPIC, COMPLETIONS, RESPONSES, Gateway, GatewayOptions
from longthread.gateway.upstream import Connections, Routes, Upstream, UpstreamResponse
from longthread.store.driver import Driver
from longthread.store.open import open_store

pytestmark = pytest.mark.one_backend

DIALECTS: list[Dialect] = [Anthropic()]
_SAID = st.sampled_from(["", "a", "b", "长"])
_BLOCK = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _SAID),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, _SAID),
    st.just({"type": "tool_use", "id": "t", "name": "clock", "input": {}}),
)
_MESSAGE = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, _SAID),
    st.builds(lambda blocks: {"role": "assistant", "content": blocks}, st.lists(_BLOCK, max_size=2)),
    st.builds(lambda text: {"role": "user", "content": [{"type": "tool_result", "content": text}]}, _SAID),
)


def _seen(asked: Asked) -> Any:
    return (
        asked.fields,
        asked.items,
        asked.parts,
        asked.digests,
        asked.nodes,
        asked.hidden_parts,
        asked.frame_count,
        asked.frame,
    )


def _body(messages: Any, before: str = "") -> bytes:
    return json.dumps({"model": "m" + before, "messages": messages}, ensure_ascii=False).encode()


@given(st.lists(st.lists(_MESSAGE, max_size=4), max_size=6), st.integers(0, 60))
def test_a_request_reads_the_same_after_any_others(requests: list[list[Any]], characters: int) -> None:
    recent = Recent(characters * 10)
    for number, messages in enumerate(requests):
        body = _body(messages, before="x" * (number % 2))  # the list does not always begin at one place
        assert _seen(Asked.read(DIALECTS[0], "ada", body, recent)) == _seen(Asked.read(DIALECTS[0], "ada", body))


def _talk(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"said {number}"} for number in range(count)
    ]


@pytest.mark.parametrize(("known", "asked", "reads"), [(9, 11, 2), (11, 9, 0), (11, 11, 0)])
def test_only_what_is_new_is_read(known: int, asked: int, reads: int) -> None:
    counted: list[int] = []

    class Counting(Anthropic):
        def parts(self, items: Any) -> Any:
            counted.append(len(items))
            return super().parts(items)

    recent = Recent()
    for count in (known, asked):
        Asked.read(Counting(), "ada", _body(_talk(count)), recent)
    assert counted == [known, reads]


def test_a_message_that_changed_is_read_with_all_behind_it() -> None:
    recent = Recent()
    before, after = _talk(11), _talk(13)
    after[8] = {**after[8], "content": "something else"}
    Asked.read(DIALECTS[0], "ada", _body(before), recent)
    asked = Asked.read(DIALECTS[0], "ada", _body(after), recent)
    assert _seen(asked) == _seen(Asked.read(DIALECTS[0], "ada", _body(after)))
    assert "something else" in [part.value for part in asked.parts]


def test_another_user_has_other_digests() -> None:
    recent = Recent()
    one, other = (Asked.read(DIALECTS[0], user, _body(_talk(5)), recent) for user in ("ada", "bob"))
    assert not {*one.digests} & {*other.digests}


def test_what_is_known_does_not_grow_without_end() -> None:
    recent = Recent(400_000)
    for number in range(2_000):
        Asked.read(DIALECTS[0], "ada", _body([{"role": "user", "content": f"{number} " * 40}]), recent)
    assert 1 <= len(recent._reads) <= 10
    for number in range(2_000):
        recent.put_hidden(replace(CALL, n=number), [], None)
    assert 1 <= len(recent._hidden._kept) <= 800


def test_one_large_request_leaves_the_others_known() -> None:
    recent = Recent(400_000)
    Asked.read(DIALECTS[0], "ada", _body(_talk(5)), recent)
    Asked.read(DIALECTS[0], "ada", _body([{"role": "user", "content": "x" * 300_000}]), recent)
    assert [len(read.cut.spans) for read in recent._reads] == [len(_talk(5))]


_ROOT = b"root"
_KINDS = st.sampled_from([(b"v", None), (None, b"h"), (None, b"other"), (None, None)])
"""Visible, hidden, and kept but never restored."""
_PARTS = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), _KINDS), max_size=14)


def parts(drawn: Sequence[tuple[str, tuple[bytes | None, bytes | None]]]) -> list[Part]:
    return [
        Part(role, "other", visible, hidden, number // 2, number % 2)  # type: ignore[arg-type]
        for number, (role, (visible, hidden)) in enumerate(drawn)
    ]


def anchors(every: Sequence[Part]) -> list[Anchored]:
    """A hidden part is before the next visible part of its run of one role; behind the last one at the run's end; and
    before the next one of another run if its own has none."""
    found = []
    for place, part in enumerate(every):
        number = sum(each.visible is not None for each in every[:place])
        others = [n for n, each in enumerate(every) if each.role != part.role]
        start = max((n + 1 for n in others if n < place), default=0)
        end = min((n for n in others if n > place), default=len(every))
        before, behind = (
            any(each.visible is not None for each in run) for run in (every[start:place], every[place:end])
        )
        after = before and not behind
        if part.hidden is not None:
            found.append(Anchored(number - after, after, part.hidden, part))
    return found


@given(_PARTS, st.lists(st.integers(0, 14), max_size=4))
def test_parts_that_come_bit_by_bit_are_indexed_as_all_at_once(drawn: list[object], cuts: list[int]) -> None:
    every = parts(drawn)  # type: ignore[arg-type]
    found = IndexedParts(_ROOT)
    at = 0
    for cut in [*sorted(cuts), len(every)]:
        found = found.followed_by(every[at : max(at, cut)])
        at = max(at, min(cut, len(every)))
    for each in (found, found.followed_by(parts(drawn)).first(len(every))):  # type: ignore[arg-type]
        assert list(each.parts) == every
        assert list(each.hidden) == anchors(every) == anchor_hidden(every)
        assert list(each.digests) == digests(_ROOT, visible_parts(every))
        assert list(each.nodes) == list(map(node_of, each.digests))
        assert [each.parts[place] for place in each.places] == visible_parts(every)
        for visible in range(len(each.nodes) + 1):
            own = [one for one in anchors(every) if one.at < visible]
            assert list(each.hidden_before(visible)) == own
            assert each.hash_before(visible) == chain(own)
        assert each.hash_with([]) == chain(each.hidden)
        assert each.hash_with(each.hidden) == chain([*each.hidden, *each.hidden])


@given(_PARTS)
def test_what_is_behind_the_first_visible_parts(drawn: list[object]) -> None:
    every = parts(drawn)  # type: ignore[arg-type]
    found = IndexedParts(_ROOT).followed_by(every)
    assert found.behind(0) == 0
    for visible in range(1, len(found.nodes) + 1):
        own = {each.part.item * 2 + each.part.place for each in found.hidden if each.at < visible}
        place = found.places[visible - 1] + 1
        assert found.behind(visible) == next((n for n in range(place, len(every)) if n not in own), len(every))


Items = list[dict[str, Any]]
PATHS = {"anthropic": "/v1/messages", "responses": "/v1/responses", "completions": "/v1/chat/completions"}
HIDDEN = ("id", "phase", "status", "reasoning_content", "extra_content")
THOUGHTS = ("thinking", "reasoning")
quietly = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
moves = st.lists(
    st.tuples(st.sampled_from(["say", "say", "say", "again", "rewind", "other", "respell"]), st.integers(0, 2**16)),
    min_size=4,
    max_size=10,
)


class Provider(Connections):
    """It answers anything, and thinks before it speaks. `got` are the bytes that it was sent last."""

    def __init__(self, reply: Callable[[int], dict[str, Any]]) -> None:
        super().__init__()
        self._reply = reply
        self.count = 0
        self.got = b""

    async def send(
        self, upstream: Upstream, dialect: str, asked: Incoming, body: bytes, *, is_patient: bool = False
    ) -> UpstreamResponse:
        self.got = body
        self.count += 1
        return Answer(json.dumps(self._reply(self.count), ensure_ascii=False).encode())


class Answer(UpstreamResponse):
    """A whole answer."""

    def __init__(self, body: bytes) -> None:
        self.status = 200
        self.headers = [(b"content-type", b"application/json")]
        self._body = body

    async def read(self, limit: int = 0) -> bytes:
        return self._body


def messages_reply(number: int) -> dict[str, Any]:
    thinking = {"type": "thinking", "thinking": f"想 {number}", "signature": f"sig{number}"}
    said = [{"type": "text", "text": f"said {number}"}, {"type": "text", "text": "and more"}]
    content = [thinking, said[0]] if number % 3 else [thinking, said[0], {**thinking, "signature": "2nd"}, said[1]]
    return {"id": f"msg_{number}", "role": "assistant", "content": content, "stop_reason": "end_turn"}


def responses_reply(number: int) -> dict[str, Any]:
    text = {"type": "output_text", "text": f"说 {number}", "annotations": []}
    output: Items = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"enc{number}"},
        {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text], "phase": "commentary"},
    ]
    if number % 3 == 0:
        output.append({"type": "reasoning", "id": f"rt_{number}", "summary": [], "encrypted_content": "2nd"})
    return {"id": f"resp_{number}", "status": "completed", "output": output}


def completions_reply(number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": f"said {number}", "reasoning_content": f"想 {number}"}
    if number % 3 == 0:
        message["reasoning_details"] = [{"type": "reasoning.text", "text": "2nd"}]  # type: ignore[assignment]
    return {"id": f"c_{number}", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


CASES: dict[str, tuple[Dialect, Callable[[int], dict[str, Any]], Callable[[dict[str, Any]], Items]]] = {
    "anthropic": (ANTHROPIC, messages_reply, lambda reply: [{"role": "assistant", "content": reply["content"]}]),
    "responses": (RESPONSES, responses_reply, lambda reply: reply["output"]),
    "completions": (COMPLETIONS, completions_reply, lambda reply: [reply["choices"][0]["message"]]),
}


def lossy(items: Items, seed: int) -> Items:
    """What a client sends of a conversation. It does the same to a message each time, as long as the seed stays."""
    found: Items = []
    for number, item in enumerate(items):
        dice = random.Random(f"{seed} {number}")  # no secret
        drops = random.Random(seed).choice([0.0, 0.5, 1.0])
        if item.get("type") in THOUGHTS and dice.random() < drops:
            continue
        item = {name: value for name, value in item.items() if name not in HIDDEN or dice.random() >= drops}
        if isinstance(item.get("content"), list):
            item["content"] = [
                each for each in item["content"] if each["type"] not in THOUGHTS or dice.random() >= drops
            ]
        texts = [each for each in item.get("content") or () if isinstance(each, dict) and "text" in each]
        if item.get("role") == "assistant" and texts and dice.random() < 0.25:  # the client goes on with the reply
            item["content"] = [*item["content"], texts[0] | {"text": "added"}]
        before = found[-1] if found else {}
        joins = item.get("role") == before.get("role") and isinstance(before.get("content"), list)
        if joins and isinstance(item.get("content"), list) and dice.random() < 0.5:
            found[-1] = before | {"content": [*before["content"], *item["content"]]}
        elif item.get("content") != []:
            found.append(item)
    return found


def body_of(dialect: Dialect, items: Items, seed: int) -> bytes:
    """A request. The seed chooses how it is spelled, and where its list stands."""
    dice = random.Random(seed)  # no secret
    fields: dict[str, Any] = {"model": "m", "max_tokens": 100, "thinking": {"type": "adaptive"}, "temperature": 1}
    fields[dialect.items] = items
    names = sorted(fields)
    dice.shuffle(names)
    spelling: dict[str, Any] = {"indent": dice.choice([None, None, 1]), "ensure_ascii": dice.random() < 0.3}
    return json.dumps({name: fields[name] for name in names}, **spelling).encode()


def gateway(store: Driver, routes: Routes, provider: Provider) -> Gateway:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "Connections", lambda: provider)
        return Gateway(store, routes, GatewayOptions(USER))


async def play(store: Driver, name: str, steps: list[tuple[str, int]]) -> int:
    """Play a client's moves. Before each request to the warm gateway a new one gets the same. Return how many were
    restored."""
    dialect, reply, said = CASES[name]
    routes = Routes({"u": Upstream("u", "http://provider", [name])})
    provider = Provider(reply)
    warm = gateway(store, routes, provider)
    own, restored = uuid.uuid4(), 0
    branches: list[Items] = [[]]
    current, seed = branches[0], steps[0][1]
    for number, (move, dice) in enumerate(steps):
        if move == "respell":
            seed = dice
        elif move == "other":
            current = branches[dice % len(branches)]
        elif move == "rewind":
            starts = [place for place, each in enumerate(current) if each.get("role") == "user"]
            current = current[: starts[dice % len(starts)]] if starts else []
            branches.append(current)
        if move != "again" or not current or current[-1].get("role") != "user":
            text = {"responses": "input_text"}.get(name, "text")
            current.append({"role": "user", "content": [{"type": text, "text": f"{own} {number} 问"}]})
        asked = Incoming("POST", PATHS[name], [], body_of(dialect, lossy(current, seed), seed))
        await gateway(store, routes, provider).reply(dialect, asked, counts=True)  # which keeps nothing
        expected = provider.got
        answer = await warm.reply(dialect, asked)
        assert provider.got == expected
        restored += dict(answer.headers)[b"x-longthread-restored"] != b"0"
        if move != "again":
            current += said(json.loads(answer.body))
    return restored


def run(address: str, name: str, steps: list[tuple[str, int]]) -> int:
    async def go() -> int:
        async with open_store(address) as store:
            return await play(store, name, steps)

    return asyncio.run(go())


@pytest.mark.parametrize("name", CASES)
def test_each_turn_of_a_client_that_drops_all_is_restored(store_address: str, name: str) -> None:
    drops_all = next(seed for seed in range(100) if random.Random(seed).choice([0.0, 0.5, 1.0]) == 1.0)
    assert run(store_address, name, [("say", drops_all)] * 6) == 5


@pytest.mark.parametrize("name", CASES)
@quietly
@given(steps=moves)
def test_warm_and_cold_send_up_the_same_bytes(store_address: str, name: str, steps: list[tuple[str, int]]) -> None:
    run(store_address, name, steps)

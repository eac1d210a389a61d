"""Views of messages: the same beginning byte for byte, thinking whole or not at all, told again by their manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from longthread.agent.messages import draft_of
from longthread.agent.window import STEP, Fitted, Past, Spot, Wanted, fit, item_of
from longthread.model.entry import Entry
from longthread.model.manifest import Segment
from longthread.testing.watching import orphans
from longthread.view.tokens import IMAGE, estimate

TEXTS = st.sampled_from(["", "short", "有多少客户？" * 30, "word " * 300, '{"rows":[' + "[1,2]," * 400 + "[3,4]]}"])


def spot(message: BaseMessage, seq: int) -> Spot:
    draft = draft_of(message)
    fields = {name: getattr(draft, name) for name in draft.__slots__}
    return Spot(Entry(**fields, thread_id="t", seq=seq, parent_seq=seq - 1, created_at=datetime.now(UTC)), message)


@st.composite
def conversations(draw: st.DrawFn) -> list[Spot]:
    messages: list[BaseMessage] = []

    def thought() -> Any:
        signature = f"s{len(messages)}"
        return {"type": "thinking", "thinking": draw(TEXTS), "signature": signature}

    for turn in range(draw(st.integers(1, 7))):
        messages.append(HumanMessage(f"{turn}: {draw(TEXTS)}", id=f"q{turn}"))
        for call in range(draw(st.integers(0, 3))):
            made = [tool_call(name="run_sql", args={"sql": draw(TEXTS)}, id=f"c{turn}.{call}")]
            content = [thought(), {"type": "text", "text": "so"}] if draw(st.booleans()) else "so"
            messages.append(AIMessage(content, tool_calls=made, id=f"a{turn}.{call}"))
            messages.append(ToolMessage(draw(TEXTS), tool_call_id=f"c{turn}.{call}", id=f"t{turn}.{call}"))
        messages.append(AIMessage([thought(), {"type": "text", "text": draw(TEXTS)}], id=f"f{turn}"))
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def dumped(messages: Sequence[BaseMessage]) -> list[str]:
    return [json.dumps(message.model_dump(), ensure_ascii=False, sort_keys=True) for message in messages]


def thinking(messages: Sequence[BaseMessage]) -> list[str]:
    blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
    return [json.dumps(block) for block in blocks if isinstance(block, dict) and block.get("type") == "thinking"]


def stored(fitted: Fitted) -> Past:
    """What another process knows of a call: its manifest, as it is stored."""
    told = json.loads(json.dumps([segment.to_json() for segment in fitted.segments]))
    return Past([Segment.from_json(each) for each in told], fitted.view.summary.text)


@settings(max_examples=60, deadline=None)
@given(conversations(), st.integers(300, 12_000), st.sampled_from(["any", "o200k", "claude"]), st.text(max_size=50))
def test_a_process_goes_on_with_the_prompt_of_another(
    spots: list[Spot], budget: int, family: str, summary: str
) -> None:
    fitted: Fitted | None = None
    for end in [n for n in range(1, len(spots) + 1) if n == len(spots) or spots[n].message.type != "tool"]:
        if isinstance(spots[end - 1].message, AIMessage) and spots[end - 1].entry.tool_calls:
            continue
        wanted = Wanted(budget, family, past=stored(fitted) if fitted else None, summary=summary)
        # Made anew, as after a restart: nothing that was computed before is there.
        last, fitted = fitted, fit([Spot(each.entry, each.message) for each in spots[:end]], wanted)
        seen = fitted.messages
        assert fitted.view.tokens <= budget
        assert sum(item_of(message, family=family).tokens for message in seen) <= budget
        assert orphans(seen) == 0
        assert set(thinking(seen)) <= set(thinking([each.message for each in spots]))
        if fitted.view.grown and last is not None:
            assert dumped(seen)[: len(last.messages)] == dumped(last.messages)


def turns(count: int) -> list[Spot]:
    messages: list[BaseMessage] = []
    for turn in range(count):
        messages += [HumanMessage(f"question {turn}", id=f"q{turn}"), AIMessage(f"answer {turn}", id=f"f{turn}")]
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def test_a_window_that_moves_on_changes_the_views_beginning_seldom() -> None:
    spots, limit = turns(200), 100
    past, planned = None, 0
    for end in range(limit + 1, len(spots), 2):
        window = spots[end - limit - 1 : end]
        fitted = fit(window, Wanted(100_000, past=past))
        planned += not fitted.view.grown
        past = stored(fitted)
        assert len(fitted.messages) >= limit - 2 * STEP
        assert fitted.messages[0].type == "human"
    assert planned <= 300 / STEP + 2


def test_what_a_message_costs_is_counted_once_and_in_whole() -> None:
    call = tool_call(name="run_sql", args={"sql": "SELECT 1"}, id="c")
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "word " * 100, "signature": "abc"},
        {"type": "text", "text": "so many"},
        {"type": "tool_use", "id": "c", "name": "run_sql", "input": {"sql": "SELECT 1"}},
    ]
    item = item_of(AIMessage(blocks, tool_calls=[call]))
    assert item.text == "so many"
    assert 100 < item.thinking < 150
    assert item.extra > 0
    assert item.other < 20
    assert item.tokens > item.condensed().tokens + 100
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert IMAGE < item_of(HumanMessage([image, {"type": "text", "text": "what is it?"}])).tokens < IMAGE + 50
    reasoned = AIMessage("42", additional_kwargs={"reasoning_content": "word " * 100})
    assert item_of(reasoned).thinking == estimate("word " * 100)


def test_thinking_goes_before_anything_is_cut() -> None:
    long = AIMessage(
        [{"type": "thinking", "thinking": "word " * 3_000, "signature": "s"}, {"type": "text", "text": "42"}]
    )
    spots = [spot(HumanMessage("why?", id="q"), 1), spot(long, 2), spot(HumanMessage("really?", id="r"), 3)]
    seen = fit(spots, Wanted(1_000)).messages
    assert [message.content for message in seen] == ["why?", [{"type": "text", "text": "42"}], "really?"]


def test_what_was_recalled_stands_last_and_the_summary_first() -> None:
    fitted = fit(turns(2), Wanted(5_000, summary="Before: sales.", topics=["sales"], recalled="The budget is 7."))
    assert str(fitted.messages[0].text).startswith("[Conversation Summary]\nBefore: sales.")
    assert str(fitted.messages[-1].text).endswith("The budget is 7.")
    assert [segment.how for segment in fitted.segments] == ["summary", "whole", "recalled"]
    again = fit(turns(3), Wanted(5_000, past=stored(fitted), summary="Another."))
    assert again.view.grown
    assert dumped(again.messages)[:5] == dumped(fitted.messages)[:5]

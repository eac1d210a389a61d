"""Views of messages: the same beginning byte for byte, thinking whole or not at all, told again by their manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages.tool import invalid_tool_call, tool_call
from tests.examples import examples
from tests.view.files import documents, noise

from longthread.context.system_prompt import summary_with_digest
from longthread.context.window import DIGESTED, STEP, FittedView, PreviousCall, ViewRequest, WindowMessage, fit, item_of
from longthread.memory.summary.digest import Digest, digest_entries, json_of
from longthread.messages.entries import draft_of
from longthread.messages.langchain import all_to_langchain
from longthread.messages.message import Message, is_thinking
from longthread.model.entry import NOTE, Entry
from longthread.model.run import Segment
from longthread.view.tokens import IMAGE, estimate
from longthread_evals.view_watch import orphans

pytestmark = pytest.mark.one_backend

TEXTS = st.sampled_from(["", "short", "有多少客户？" * 30, "word " * 300, '{"rows":[' + "[1,2]," * 400 + "[3,4]]}"])


def spot(message: Message, seq: int) -> WindowMessage:
    draft = draft_of(message)
    fields = {name: getattr(draft, name) for name in draft.__slots__}
    return WindowMessage(
        Entry(**fields, thread_id="t", seq=seq, parent_seq=seq - 1, created_at=datetime.now(UTC)), message
    )


@st.composite
def conversations(draw: st.DrawFn) -> list[WindowMessage]:
    messages: list[Message] = []

    def thought() -> Any:
        signature = f"s{len(messages)}"
        if draw(st.integers(0, 3)) == 0:
            return {"type": "reasoning", "id": f"rs_{signature}", "summary": [], "encrypted_content": draw(TEXTS)}
        return {"type": "thinking", "thinking": draw(TEXTS), "signature": signature}

    def unread(name: str) -> None:
        bad = [invalid_tool_call(name="run_sql", args=draw(TEXTS), id=name, error="") for _ in range(2)]
        messages.append(Message("assistant", [thought()], invalid_tool_calls=bad, id=f"b{name}"))
        for n in range(draw(st.integers(0, 2))):
            messages.append(Message("tool", "malformed", tool_call_id=name, id=f"u{name}.{n}"))

    for turn in range(draw(st.integers(1, 7))):
        messages.append(Message("user", f"{turn}: {draw(TEXTS)}", id=f"q{turn}"))
        for call in range(draw(st.integers(0, 3))):
            made = [tool_call(name="run_sql", args={"sql": draw(TEXTS)}, id=f"c{turn}.{call}")] * draw(
                st.integers(1, 2)
            )
            content = [thought(), {"type": "text", "text": "so"}] if draw(st.booleans()) else "so"
            messages.append(Message("assistant", content, tool_calls=made, id=f"a{turn}.{call}"))
            for n, each in enumerate(made):
                messages.append(Message("tool", draw(TEXTS), tool_call_id=each["id"], id=f"t{turn}.{call}.{n}"))
        if draw(st.integers(0, 4)) == 0:
            unread(f"x{turn}")
        said = [{"type": "text", "text": draw(TEXTS)}] * draw(st.integers(0, 1))
        messages.append(Message("assistant", [thought(), *said], id=f"f{turn}"))
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def dumped(messages: Sequence[Message]) -> list[str]:
    return [json.dumps(asdict(message), ensure_ascii=False, sort_keys=True) for message in messages]


def thinking(messages: Sequence[Message]) -> list[str]:
    blocks = [block for message in messages if isinstance(message.content, list) for block in message.content]
    return [json.dumps(block) for block in blocks if isinstance(block, dict) and is_thinking(block)]


def stored(fitted: FittedView) -> PreviousCall:
    """What another process knows of a call: its manifest, as it is stored."""
    told = json.loads(json.dumps([segment.to_json() for segment in fitted.segments]))
    return PreviousCall([Segment.from_json(each) for each in told], fitted.view.summary.text)


@settings(max_examples=examples(60))
@given(conversations(), st.integers(300, 12_000), st.sampled_from(["any", "o200k", "claude"]), st.text(max_size=50))
def test_a_process_goes_on_with_the_prompt_of_another(
    spots: list[WindowMessage], budget: int, family: str, summary: str
) -> None:
    fitted: FittedView | None = None
    for end in [n for n in range(1, len(spots) + 1) if n == len(spots) or spots[n].message.role != "tool"]:
        newest = spots[end - 1].message
        if newest.role == "assistant" and (newest.tool_calls or newest.invalid_tool_calls):
            continue
        wanted = ViewRequest(budget, family, past=stored(fitted) if fitted else None, summary=summary)
        # Made anew, as after a restart: nothing that was computed before is there.
        last, fitted = fitted, fit([WindowMessage(each.entry, each.message) for each in spots[:end]], wanted)
        seen = fitted.messages
        assert fitted.view.tokens <= budget
        assert sum(item_of(message, family=family).tokens for message in seen) <= budget
        assert orphans(all_to_langchain(seen)) == 0
        assert all(message.content or message.tool_calls for message in seen if message.role == "assistant")
        assert set(thinking(seen)) <= set(thinking([each.message for each in spots]))
        if fitted.view.grown and last is not None:
            assert dumped(seen)[: len(last.messages)] == dumped(last.messages)


def test_a_call_whose_result_comes_late_is_shown_from_then_on() -> None:
    """And what has no other half is in nobody's way: the view goes on from the one before."""
    made = [tool_call(name="job", args={}, id=f"j{n}") for n in range(2)]
    asked = [Message("user", "Run it", id="q"), Message("assistant", "", tool_calls=made, id="a")]
    results = [Message("tool", f"{n} rows", tool_call_id=f"j{n}", id=f"t{n}") for n in range(2)]

    def views(*messages: Message) -> list[FittedView]:
        """Those behind each message but calls and results, and behind the last message."""
        spots, found = [spot(message, seq) for seq, message in enumerate(messages, start=1)], list[FittedView]()
        ends = [n for n, each in enumerate(messages, start=1) if each.role == "user"]
        for end in sorted({*ends, len(messages)}):
            past = stored(found[-1]) if found else None
            found.append(
                fit([WindowMessage(each.entry, each.message) for each in spots[:end]], ViewRequest(20_000, past=past))
            )
        return found

    more = [Message("user", f"And {n}?", id=f"m{n}") for n in range(5)]
    late = views(*asked, more[0], results[0], more[1], results[1], more[2], more[3])
    assert [fitted.view.grown for fitted in late] == [False, True, True, False, True]
    assert [message.id for message in late[-1].messages] == ["q", "a", "t0", "t1", "m0", "m1", "m2", "m3"]
    assert {each.why for each in late[2].segments} == {None, "unpaired"}
    assert {each.how for each in late[-1].segments} == {"whole"}
    # Where it is the newest unit that was completed, the view grows at its end.
    before = fit([spot(message, seq) for seq, message in enumerate(asked, start=1)], ViewRequest(20_000))
    whole = [spot(message, seq) for seq, message in enumerate([*asked, *results, more[0]], start=1)]
    after = fit(whole, ViewRequest(20_000, past=stored(before)))
    assert after.view.grown
    assert [message.id for message in after.messages] == ["q", "a", "t0", "t1", "m0"]


def turns(count: int) -> list[WindowMessage]:
    messages: list[Message] = []
    for turn in range(count):
        messages += [
            Message("user", f"question {turn}", id=f"q{turn}"),
            Message("assistant", f"answer {turn}", id=f"f{turn}"),
        ]
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def test_a_window_that_moves_on_changes_the_views_beginning_seldom() -> None:
    spots, limit = turns(200), 100
    past, planned = None, 0
    for end in range(limit + 1, len(spots), 2):
        window = spots[end - limit - 1 : end]
        fitted = fit(window, ViewRequest(100_000, past=past))
        planned += not fitted.view.grown
        past = stored(fitted)
        assert len(fitted.messages) >= limit - 2 * STEP
        assert fitted.messages[0].role == "user"
    assert planned <= 300 / STEP + 2


def test_what_a_message_costs_is_counted_once_and_in_whole() -> None:
    call = tool_call(name="run_sql", args={"sql": "SELECT 1"}, id="c")
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "word " * 100, "signature": "abc"},
        {"type": "text", "text": "so many"},
        {"type": "tool_use", "id": "c", "name": "run_sql", "input": {"sql": "SELECT 1"}},
    ]
    item = item_of(Message("assistant", blocks, tool_calls=[call]))
    assert item.text == "so many"
    assert 100 < item.thinking < 150
    assert item.extra > 0
    assert item.other < 20
    assert item.tokens > item.condense().tokens + 100
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert IMAGE < item_of(Message("user", [image, {"type": "text", "text": "what is it?"}])).tokens < IMAGE + 50
    reasoned = Message("assistant", "42", additional_kwargs={"reasoning_content": "word " * 100})
    assert item_of(reasoned).thinking == estimate("word " * 100)
    searched: Any = {"type": "server_tool_call", "id": "s", "name": "run", "args": {"code": "word " * 100}}
    assert item_of(Message("assistant", [searched])).other > 100


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"])
def test_thinking_beside_the_content_counts_and_goes_whole(key: str) -> None:
    thought = "word " * 3_000 if key == "reasoning_content" else [{"text": "word " * 3_000, "signature": "s"}]
    answer = Message("assistant", "42", additional_kwargs={key: thought}, id="a")
    assert item_of(answer).thinking >= estimate("word " * 3_000)
    spots = [spot(Message("user", "why?", id="q"), 1), spot(answer, 2), spot(Message("user", "really?", id="r"), 3)]
    assert fit(spots, ViewRequest(1_000)).messages[1].additional_kwargs == {}
    assert fit(spots, ViewRequest(9_000)).messages[1].additional_kwargs == {key: thought}


def test_thinking_goes_before_anything_is_cut() -> None:
    long = Message(
        "assistant",
        [{"type": "thinking", "thinking": "word " * 3_000, "signature": "s"}, {"type": "text", "text": "42"}],
    )
    spots = [spot(Message("user", "why?", id="q"), 1), spot(long, 2), spot(Message("user", "really?", id="r"), 3)]
    seen = fit(spots, ViewRequest(1_000)).messages
    assert [message.content for message in seen] == ["why?", [{"type": "text", "text": "42"}], "really?"]


def test_what_was_recalled_stands_last_and_the_summary_first() -> None:
    fitted = fit(turns(2), ViewRequest(5_000, summary="Before: sales.", topics=["sales"], recalled="The budget is 7."))
    assert str(fitted.messages[0].text).startswith("[Conversation Summary]\nBefore: sales.")
    assert str(fitted.messages[-1].text).endswith("The budget is 7.")
    assert [segment.how for segment in fitted.segments] == ["summary", "whole", "recalled"]
    again = fit(turns(3), ViewRequest(5_000, past=stored(fitted), summary="Another."))
    assert again.view.grown
    assert dumped(again.messages)[:5] == dumped(fitted.messages)[:5]


def decisions(count: int) -> list[WindowMessage]:
    messages: list[Message] = []
    for turn in range(count):
        said = f"Decision {turn}: the port of service {turn} is {40_000 + turn}. "
        messages += [
            Message("user", said + "story " * 150, id=f"q{turn}"),
            Message("assistant", "Noted.", id=f"f{turn}"),
        ]
    return [spot(message, seq) for seq, message in enumerate(messages, start=1)]


def of_digest(segments: Sequence[Segment]) -> set[int]:
    """The entries that a view shows, or that the text of its summary tells of."""
    spoken = [each for each in segments if each.how != "left out" or each.why == "digest"]
    return {seq for each in spoken for seq in range(each.first, each.last + 1)} - {0}


def test_what_a_plan_has_no_room_for_is_told_by_its_digest_at_once() -> None:
    spots, start, mark = decisions(40), 0, 0
    past, planned = None, 0
    for end in range(1, len(spots) + 1, 2):
        wanted = ViewRequest(8_000, past=past, topics=["ports"], mark=mark)
        fitted = fit(spots[start:end], wanted)
        assert dumped(fit(spots[start:end], wanted).messages) == dumped(fitted.messages)
        past = stored(fitted)
        planned += not fitted.view.grown
        assert fitted.view.tokens <= 8_000
        assert of_digest(past.segments) >= set(range(mark + 1, end + 1))
        text = "\n".join(str(message.text) for message in fitted.messages)
        assert [turn for turn in range(mark, end // 2 + 1) if f"{40_000 + turn}" not in text] == []
    assert planned >= 2


def test_the_manifest_says_what_is_told_by_digest_and_when_the_window_moves_on_past_that() -> None:
    spots = decisions(20)
    planned = fit(spots[:35], ViewRequest(2_400))
    ways = [(each.first, each.how, each.why) for each in planned.segments if each.how in ("summary", "left out")]
    assert ways == [(0, "summary", None), (1, "left out", "digest")]
    out = next(each for each in planned.segments if each.how == "left out")
    grown = fit(spots[:36], ViewRequest(2_400, past=stored(planned)))
    assert grown.view.grown
    assert of_digest(grown.segments) == set(range(1, 37))
    assert out in grown.segments
    moved = fit(spots[out.last - 2 : 37], ViewRequest(2_400, past=stored(grown), summary="Another.", mark=out.last - 2))
    assert moved.view.grown
    ways = [(each.first, each.last, each.why) for each in moved.segments if each.why]
    assert ways == [(1, out.last - 2, "digest"), (out.last - 1, out.last, "digest")]
    assert of_digest(moved.segments) == set(range(1, 38))


def test_questions_go_before_facts_where_tier_1_is_full_and_nothing_is_cut() -> None:
    spots = decisions(60)
    known = digest_entries([each.entry for each in spots[:80]])
    wanted = ViewRequest(4_000, summary=known.text(), digest=json_of(known), topics=["ports"], mark=80)
    fitted = fit(spots[80:], wanted)
    text = fitted.view.summary.text
    assert fitted.view.summary.tokens <= 400
    assert "characters left out" not in text
    assert text.index("Facts and decisions") > text.index("Asked before")
    asked, facts = text.split("Facts and decisions")
    assert facts.count("the port of service") > 2 * asked.count("the port of service")
    shown = "\n".join(str(message.text) for message in fitted.messages)
    assert all(f"{40_000 + turn}" in shown for turn in range(50, 60))


def test_a_digest_leaves_what_a_model_wrote_the_most_of_tier_1() -> None:
    fitted = fit(decisions(200), ViewRequest(4_000, summary="known " * 2_000, topics=["ports"]))
    text = fitted.view.summary.text
    assert fitted.view.summary.tokens <= 400
    assert fitted.view.tokens <= 4_000
    assert text.count("known") > 90
    assert "the port of service" in text
    assert "ports" in text


@pytest.mark.parametrize("family", ["any", "o200k", "claude"])
@pytest.mark.parametrize("budget", [256, 300, 500, 700])
def test_where_there_is_no_room_for_a_digest_it_is_said_what_is_left_out(budget: int, family: str) -> None:
    fitted = fit(decisions(20), ViewRequest(budget, family, topics=["ports", "services"]))
    out = [each for each in fitted.segments if each.how == "left out"]
    assert {each.why for each in out} == {"digest"}
    last = out[-1].last
    assert f"{last} earlier messages (numbers 1 to {last}) are left out here" in fitted.view.summary.text
    assert fitted.view.tokens <= budget
    known = fit(decisions(20), ViewRequest(budget, family, summary="known " * 200))
    assert "Earlier messages (up to number" in known.view.summary.text
    assert known.view.tokens <= budget


@pytest.mark.parametrize("share", range(60, 140, 4))
def test_whatever_the_room_it_is_told_that_messages_are_left_out(share: int) -> None:
    said = "发货单和库存表要在星期五之前核对完毕缺货的商品按仓库分别列出并通知各个门店的负责人再由他们确认数量" * 5
    call = tool_call(name="act", args={"q": said[:30]}, id="c")
    messages = [
        Message("user", said[:50]),
        Message("assistant", said[9:29], tool_calls=[call]),
        Message("tool", said, tool_call_id="c"),
    ]
    text = summary_with_digest(
        "", {}, [spot(message, n).entry for n, message in enumerate(messages, 1)], [], share, "any"
    )
    assert text
    assert estimate(text) <= share


@pytest.mark.parametrize("family", ["o200k", "claude", "any"])
def test_what_was_cut_costs_what_it_costs_now(family: str) -> None:
    def view(question: str, rest: Sequence[Message], family: str, past: PreviousCall | None = None) -> FittedView:
        messages = [Message("user", question, id="q"), *rest]
        return fit([spot(message, n) for n, message in enumerate(messages, 1)], ViewRequest(8_000, family, past=past))

    before = view("plain words " * 8_000, [], "o200k")
    assert [each.how for each in before.segments] == ["cut"]
    # Edited under its id, and read by another model.
    after = view(
        "发货单和库存表" * 8_000,
        [Message("assistant", "so", id="a"), Message("user", "and?", id="q2")],
        family,
        stored(before),
    )
    assert after.view.tokens <= 8_000
    assert sum(item_of(message, family=family).tokens for message in after.messages) <= 8_000


def test_what_is_left_out_is_said_in_chinese() -> None:
    spots = [spot(Message("user", f"端口号 {n} 是什么？"), n) for n in range(1, 100_001, 2_500)]
    fitted = fit(spots, ViewRequest(256))
    assert re.search("前面 3[0-9] 条消息（编号 1 至 [0-9]+）在此省略，可以调取。", fitted.view.summary.text)


def test_messages_of_a_state_that_is_not_logged_have_no_numbers() -> None:
    for summary, said in (
        ("", "earlier messages are left out here"),
        ("known " * 200, "Earlier messages are left out here"),
    ):
        spots = [WindowMessage(replace(each.entry, thread_id=""), each.message) for each in decisions(20)]
        assert said in fit(spots, ViewRequest(256, summary=summary)).view.summary.text


def test_where_there_is_no_room_at_all_the_manifest_says_so() -> None:
    fitted = fit(decisions(20), ViewRequest(200))
    assert not fitted.view.summary.text
    assert {each.why for each in fitted.segments if each.how == "left out"} == {"budget"}


def test_of_very_many_messages_the_newest_are_digested() -> None:
    fitted = fit(turns(2_000), ViewRequest(4_000))
    counts = {each.why: each.last - each.first + 1 for each in fitted.segments if each.how == "left out"}
    assert counts["digest"] < 2 * DIGESTED < counts["budget"]


def asked(text: str, source: str, schema: str) -> Message:
    note = {"kind": "question", "source": source, "fingerprint": schema}
    return Message("user", text, additional_kwargs={NOTE: note})


def test_tables_of_another_source_are_not_told_by_a_summary() -> None:
    calls = [
        tool_call(name="list_tables", args={}, id="c"),
        tool_call(name="run_sql", args={"sql": "SELECT 7"}, id="d"),
    ]
    found = json.dumps({"ok": True, "data": {"dialect": "sqlite", "tables": ["invoices"]}})
    rows = json.dumps({"ok": True, "data": {"query": "q1", "sql": "SELECT 7", "rows": [[7]]}})
    before: list[Message] = [
        asked("Which tables? The budget is 9000.", "one.db", "a"),
        Message("assistant", "", tool_calls=calls),
        Message("tool", found, tool_call_id="c"),
        Message("tool", rows, tool_call_id="d"),
        Message("assistant", "One."),
    ]
    known = digest_entries([spot(message, seq).entry for seq, message in enumerate(before, 1)])
    for source, schema, is_told in (("one.db", "a", True), ("one.db", "b", False), ("two.db", "a", False)):
        spots = [spot(asked("And here?", source, schema), 6)]
        fitted = fit(spots, ViewRequest(20_000, summary=known.text(), digest=json_of(known), mark=5))
        text = fitted.view.summary.text
        assert "9000" in text
        assert ("invoices" in text, "SELECT 7" in text) == (is_told, is_told)
        assert fitted.view.summary.tokens == fitted.segments[0].tokens


def test_a_view_that_tells_of_tables_does_not_go_on_for_another_source() -> None:
    known = Digest(items={"told": ["The budget is 9000."]}, tables={"invoices": ""}, source="one.db", fingerprint="a")
    messages = [asked("Which tables?", "one.db", "a"), Message("assistant", "One."), asked("Sure?", "one.db", "a")]
    wanted = ViewRequest(20_000, summary=known.text(), digest=json_of(known), mark=5)
    spots = [spot(message, seq) for seq, message in enumerate(messages, 6)]
    first = fit(spots[:1], wanted)
    again = fit(spots, replace(wanted, past=stored(first)))
    assert "invoices" in again.view.summary.text and again.view.grown
    other = [*spots[:2], spot(asked("And here?", "two.db", "b"), 8)]
    moved = fit(other, replace(wanted, past=stored(first)))
    assert "invoices" not in moved.view.summary.text and "9000" in moved.view.summary.text
    on = [*other, spot(Message("assistant", "None."), 9), spot(asked("Really?", "two.db", "b"), 10)]
    assert fit(on, replace(wanted, past=stored(moved))).view.grown


@pytest.mark.parametrize("form", documents(b""))
@pytest.mark.parametrize("mime", ["application/pdf", "image/png", "audio/mp3"])
def test_a_question_is_shown_with_its_attachment(form: str, mime: str) -> None:
    """As text, the bytes of a file of 300 KB would cost more than most windows have."""
    block = documents(noise(300_000), mime)[form]
    question = Message("user", [{"type": "text", "text": "What does it say?"}, block], id="q")
    shown = fit([spot(question, 1)], ViewRequest(100_000))
    assert shown.messages == [question]
    assert [segment.how for segment in shown.segments] == ["whole"]

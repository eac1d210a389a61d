"""What a process remembers of messages of states: so much, and no more."""

from __future__ import annotations

import gc
import json
import random
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call

from longthread.context.window import ViewRequest, as_answered, fit
from longthread.langgraph.memory import message_view
from longthread.langgraph.memory.message_view import StateMessages, StoredView
from longthread.model.run import Segment


def picture(n: int) -> HumanMessage:
    url = {"url": "data:image/png;base64," + "A" * 1_000}
    return HumanMessage([{"type": "image_url", "image_url": url}], id=f"m{n}")


def test_large_messages_are_not_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_view, "CHARACTERS", 10_000)
    messages, alive = StateMessages(), []
    for n in range(50):
        shown = [picture(n)]
        alive.append(weakref.ref(shown[0]))
        assert len(messages.spots(shown)) == 1
    del shown
    gc.collect()
    assert 0 < sum(each() is not None for each in alive) < 10


def test_one_that_is_larger_than_all_may_be_is_shown_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_view, "CHARACTERS", 10)
    messages, large = StateMessages(), [picture(1), picture(2)]
    first = messages.spots(large)
    assert [spot.entry.id for spot in first] == ["m1", "m2"]
    assert messages.spots(large)[1].item.tokens == first[1].item.tokens


def repaired(name: str = "x") -> list[BaseMessage]:
    """A call that could not be read, and the result of it that LangChain's agents add: it has no id yet."""
    broken = invalid_tool_call(name="read", args='{"n": ', id=name, error="")
    return [AIMessage("Let me see.", invalid_tool_calls=[broken], id=f"a{name}"), ToolMessage("no", tool_call_id=name)]


def test_a_message_that_gets_its_id_after_the_call_is_known_by_it_all_through() -> None:
    messages, state = StateMessages(), [HumanMessage("q", id="q"), *repaired(), HumanMessage("And?", id="q2")]
    for family in ("any", "claude"):
        assert messages.spots(state)[2].item_for(family).condense().how == "whole"
    state[2].id = "kept"
    for family in ("any", "claude"):
        item = messages.spots(state)[2].item_for(family)
        assert (item.key, item.condense().item.key, item.whole.item.key) == ("kept", "kept", "kept")
    assert messages.spots(state)[2].item is messages.spots(state)[2].item, "and is computed once"


def test_it_is_condensed_again_where_the_next_view_is_planned_too() -> None:
    messages, long = StateMessages(), HumanMessage("word " * 2_000, id="q")
    state = [long, *repaired(), AIMessage("word " * 540, id="a"), HumanMessage("And?", id="q2")]
    first = fit(messages.spots(state), ViewRequest(budget=2_000))
    state[2].id = "kept"
    again = fit(messages.spots(state), ViewRequest(budget=2_000))
    assert [message.text for message in again.messages] == [message.text for message in first.messages]
    assert [message.id for message in again.messages] == ["q", "ax", "kept", "a", "q2"]


@pytest.mark.parametrize("names", [("x",), ("x", "y"), ("x", "x")])
def test_a_view_goes_on_when_results_in_it_have_got_their_ids(names: tuple[str, ...]) -> None:
    state: list[BaseMessage] = [HumanMessage("q", id="q")]
    for name in names:
        state += repaired(name)
    spots = StateMessages().spots(state)
    fitted = fit(spots, ViewRequest(budget=20_000))
    # Each in a segment of its own, as where they were cut.
    alone = [Segment(n, n, "whole") for n in range(1, len(state) + 1)]
    for segments in (fitted.segments, alone):
        kept = StoredView.from_json(json.loads(json.dumps(StoredView.of(segments, spots).to_json())))
        assert kept is not None
        later = [each.model_copy(update={"id": each.id or f"kept{n}"}) for n, each in enumerate(state)]
        assert kept.past(StateMessages().spots(later), "").segments == segments
        moved = kept.past(StateMessages().spots(later[1:]), "").segments
        assert [each.last for each in moved if each.last > 0] == [each.last - 1 for each in segments if each.last > 1]


def test_messages_of_one_id_stay_two_where_a_call_of_theirs_was_answered() -> None:
    state = [HumanMessage("q", id="q"), *repaired("x"), *repaired("y")]
    state[3].id = state[1].id
    spots = StateMessages().spots(state)
    assert [spot.item.key for spot in as_answered(spots)] == [spot.item.key for spot in spots]
    view = fit(spots, ViewRequest(budget=20_000)).messages
    assert [message.tool_calls[0]["id"] for message in view if message.role == "assistant"] == ["x", "y"]


def test_threads_that_run_at_once_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_view, "CHARACTERS", 200)
    messages, interval = StateMessages(), sys.getswitchinterval()

    def work(seed: int) -> int:
        chance = random.Random(seed)
        count = 0
        for n in range(300):
            said = [HumanMessage("x" * chance.choice((1, 50, 150)), id=f"{seed}.{n}.{each}") for each in range(3)]
            count += sum(spot.item.tokens > 0 for spot in messages.spots(said))
        return count

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(work, range(8))) == [900] * 8
    finally:
        sys.setswitchinterval(interval)
    held = [known for _, known in messages._known.items()]
    assert messages._known.size == sum(known.size for known in held)
    assert len(held) == 1 or messages._known.size <= 200

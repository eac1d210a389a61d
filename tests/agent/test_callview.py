"""What a process remembers of messages of states: so much, and no more."""

from __future__ import annotations

import gc
import weakref

import pytest
from langchain_core.messages import HumanMessage

from longthread.agent import callview
from longthread.agent.callview import Messages


def picture(n: int) -> HumanMessage:
    url = {"url": "data:image/png;base64," + "A" * 1_000}
    return HumanMessage([{"type": "image_url", "image_url": url}], id=f"m{n}")


def test_large_messages_are_not_held_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callview, "CHARACTERS", 10_000)
    messages, alive = Messages(), []
    for n in range(50):
        shown = [picture(n)]
        alive.append(weakref.ref(shown[0]))
        assert len(messages.spots(shown)) == 1
    del shown
    gc.collect()
    assert 0 < sum(each() is not None for each in alive) < 10


def test_one_that_is_larger_than_all_may_be_is_shown_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callview, "CHARACTERS", 10)
    messages, large = Messages(), [picture(1), picture(2)]
    first = messages.spots(large)
    assert [spot.entry.id for spot in first] == ["m1", "m2"]
    assert messages.spots(large)[1].item.tokens == first[1].item.tokens

"""How long a run waits before it sends a failed model call again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longthread.llm.failures import RateLimited
from longthread.messages.message import Message
from longthread.runs import model_call

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize(("asked", "shortest", "longest"), [(7.0, 7.0, 7.0), (None, 0.75, 1.25), (600.0, 60.0, 60.0)])
async def test_a_run_waits_as_long_as_the_provider_asks_for(
    monkeypatch: pytest.MonkeyPatch, asked: float | None, shortest: float, longest: float
) -> None:
    waited: list[float] = []
    replies: list[Any] = [RateLimited("slow down", retry_after=asked), Message("assistant", "yes")]

    async def attempt(*_: Any) -> Message:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(model_call, "attempt", attempt)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    reply = await model_call.retry_reply(None, None, 1)  # type: ignore[arg-type]  # nothing of them is looked at
    assert reply.text == "yes"
    assert len(waited) == 1
    assert shortest <= waited[0] <= longest

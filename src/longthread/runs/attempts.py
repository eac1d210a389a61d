"""A model call that failed is tried again, where that may help."""

from __future__ import annotations

import asyncio
import random
from itertools import count

from longthread.llm.failures import ProviderError
from longthread.llm.models import retryable
from longthread.llm.overflow import overflow_of
from longthread.messages.message import Message
from longthread.runs.protocol import attempt
from longthread.runs.request import ChatRequest
from longthread.runs.run_context import RunContext

_LONGEST = 60.0
"""Seconds between two attempts, at most."""


async def retried(context: RunContext, request: ChatRequest, retries: int) -> Message:
    """The reply to a request, which is sent again up to so many times. It waits 1 s, 2 s, 4 s, … in between,
    or as long as the provider asks for, up to a minute.

    Raises:
        ProviderError: what the last attempt raised, or the first one that no other can follow.
    """
    for failed in count():
        try:
            return await attempt(context, request)
        except ProviderError as error:
            if failed >= retries or not _may_pass(error):
                raise
            asked = error.retry_after
        await asyncio.sleep(_wait(failed, asked))
    raise AssertionError


def _may_pass(error: ProviderError) -> bool:
    """Whether the same request may succeed: not one that was too long."""
    return retryable(error) and overflow_of(error) is None


def _wait(failed: int, asked: float | None = None) -> float:
    """Seconds until the next attempt. They differ, so that many runs do not ask a provider at once. Never earlier than
    the provider asks for, if that is within the limit."""
    ours = min(_LONGEST, 2.0**failed) * random.uniform(0.75, 1.25)
    return max(ours, min(_LONGEST, asked or 0.0))

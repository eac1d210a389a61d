"""Retries of failed model calls."""

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
    """Return the reply, after up to `retries` retries. Waits 1 s, 2 s, 4 s, …, or what the provider asks for, at
    most a minute. Raises ProviderError: the last attempt's, or the first that a retry cannot help."""
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
    return retryable(error) and overflow_of(error) is None


def _wait(failed: int, asked: float | None = None) -> float:
    """Return the seconds until the next attempt: random, to spread many runs, and no fewer than the provider asks
    for, at most a minute."""
    ours = min(_LONGEST, 2.0**failed) * random.uniform(0.75, 1.25)
    return max(ours, min(_LONGEST, asked or 0.0))

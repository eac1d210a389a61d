"""The business terms of a source that a run's question is likely about."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice

from longthread.context.window import Window
from longthread.errors import LongthreadError
from longthread.memory.business_terms import likely, lines, text_of
from longthread.model.continue_request import asks_to_continue
from longthread.store import catalog as catalog_store
from longthread.store.driver import Driver
from longthread.tools.analysis.source import Source
from longthread.tools.catalog import address

_EARLIER = 5
"""Earlier questions whose terms are shown too: a follow-up does not repeat them."""
_logger = logging.getLogger(__name__)


async def taught(store: Driver, source: Source, questions: Sequence[str]) -> list[str]:
    """Return a source's terms for its questions, newest question first, without those that name a hidden table or
    column. A run goes on without terms if they cannot be read."""
    try:
        async with store.reading() as tx:
            every = await catalog_store.sources(tx)
        own = [each for each in every if each.is_active and address.is_of(each.address, source.spec)]
        chosen = [each for each in likely(own, questions) if not source.hides(text_of(each))]
        about = [each.description for each in own if each.description and not source.hides(each.description)]
        return lines(about, chosen)
    except LongthreadError as error:
        _logger.warning("A run has no business terms: %s", error)
        return []


def questions_of(window: Window, question: str) -> list[str]:
    """Return the question of a run, and those before it, newest first."""
    before = [spot.entry.text for spot in reversed(window.spots[: window.question]) if spot.entry.role == "user"]
    asked = (text for text in before if text != question and not asks_to_continue(text))
    return [question, *islice(asked, _EARLIER)]

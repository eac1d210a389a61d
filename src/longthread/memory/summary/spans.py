"""Which stretches of a thread are about which topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from longthread.memory.summary.topics import normal
from longthread.model.thread import Scope
from longthread.store import topics
from longthread.store.driver import Transaction

_Item = TypeVar("_Item")

STRETCH = 40
"""Entries that have topics of their own: about as many as leave the window at a time."""


def stretches(entries: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """Split consecutive entries into parts of nearly equal length, at most one stretch each."""
    count = -(-len(entries) // STRETCH)
    for number in range(count):
        yield entries[len(entries) * number // count : len(entries) * (number + 1) // count]


async def ranges_of(tx: Transaction, scope: Scope, topic: str) -> dict[str, list[tuple[int, int]]]:
    """Return the entries about a topic, in any spelling, as ranges by thread; none: {}."""
    meant = normal(topic)
    found: dict[str, list[tuple[int, int]]] = {}
    for name in await topics.list_topic_names(tx, scope):
        if name == topic or normal(name) == meant:
            for thread_id, spans in (await topics.find_topic_spans(tx, scope, name)).items():
                found.setdefault(thread_id, []).extend((span.first, span.last) for span in spans)
    return {thread_id: _joined(ranges) for thread_id, ranges in found.items()}


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined

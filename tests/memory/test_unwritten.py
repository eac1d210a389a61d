"""A summary that a model writes: the digest is there at once, and the model's words take its place when they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.memory.threads import counted, kept_of, talk, topics_of

from longthread.memory.summary.pruning import PruningPolicy, prune_thread
from longthread.store import summaries
from longthread.store.driver import Driver

POLICY = PruningPolicy(max_messages=40, threshold=10)


@dataclass
class Writer:
    """Writes what it is told to, when it may."""

    words: Callable[[str], str]
    name: str = "writer"
    topics_only: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)

    async def write(self, instructions: str, text: str) -> str:
        self.asked.append(text)
        self.begun.set()
        await self.may.wait()
        return '["prices"]' if "index" in instructions else self.words(text)


async def broken_off(store: Driver, writer: Writer) -> None:
    """A pass that is cancelled while the model writes."""
    work = asyncio.ensure_future(prune_thread(store, "t", POLICY, extract=counted, summarizer=writer))
    begun = asyncio.ensure_future(writer.begun.wait())
    await asyncio.wait({work, begun}, return_when=asyncio.FIRST_COMPLETED)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_the_digest_is_there_while_the_model_writes_and_the_next_pass_goes_on(store: Driver) -> None:
    await talk(store, "t", 12)
    await broken_off(store, Writer(lambda text: "never"))
    digest = await kept_of(store, "t")
    assert digest is not None
    assert (digest.last_seq, digest.message_count, digest.model, digest.unwritten) == (28, 28, None, True)
    assert "How about 1?" in digest.summary
    async with store.reading() as tx:
        seen = await summaries.find(tx, "t")
    assert seen is not None
    assert seen.unwritten
    writer = Writer(lambda text: "They ask for prices.")
    writer.may.set()
    kept = await prune_thread(store, "t", POLICY, extract=counted, summarizer=writer)
    assert kept == await kept_of(store, "t")
    assert kept is not None
    assert (kept.summary, kept.last_seq, kept.message_count) == ("They ask for prices.", 28, 28)
    assert (kept.model, kept.unwritten) == ("writer", False)
    assert "How about 1?" in writer.asked[0]
    assert await topics_of(store, "t") == ["prices"]
    before = len(writer.asked)
    assert await prune_thread(store, "t", POLICY, extract=counted, summarizer=writer) == kept
    assert len(writer.asked) == before, "it is paid for once"


async def test_what_came_since_goes_on_from_the_models_last_words(store: Driver) -> None:
    await talk(store, "t", 12)
    writer = Writer(lambda text: "First part.")
    writer.may.set()
    await prune_thread(store, "t", POLICY, extract=counted, summarizer=writer)
    for n in (24, 36):
        await talk(store, "t", n)
        await broken_off(store, Writer(lambda text: "never"))
        digest = await kept_of(store, "t")
        assert digest is not None
        assert digest.summary.startswith("First part."), n
        assert digest.unwritten
    second = Writer(lambda text: "Second part.")
    second.may.set()
    kept = await prune_thread(store, "t", POLICY, extract=counted, summarizer=second)
    assert kept is not None
    assert kept.summary == "First part.\n\nSecond part."
    assert (kept.model, kept.unwritten) == ("writer", False)
    assert kept.message_count == kept.last_seq


async def test_where_the_model_fails_the_digest_stays_and_it_is_not_asked_again(store: Driver) -> None:
    await talk(store, "t", 12)
    failing = Writer(lambda text: "")
    failing.may.set()
    kept = await prune_thread(store, "t", POLICY, extract=counted, summarizer=failing)
    assert kept == await kept_of(store, "t")
    assert kept is not None
    assert "How about 1?" in kept.summary
    assert (kept.model, kept.unwritten) == (None, False)
    before = len(failing.asked)
    await prune_thread(store, "t", POLICY, extract=counted, summarizer=failing)
    assert len(failing.asked) == before

"""What a part of a conversation is about: by a model's word where there is one, else by statistics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from longthread.memory import topics
from longthread.memory.digest import clean
from longthread.memory.indexing import content_of, is_recallable
from longthread.memory.summaries import Summarizer, ask
from longthread.memory.topics import Topic
from longthread.model.entry import Entry

_INSTRUCTIONS = "You keep the index of a long conversation. Reply as you are asked to, and with nothing else."
_READ = 12_000
"""Characters that a model is given to read, the newest."""

Extract = Callable[[Sequence[str], Sequence[str]], Iterable[Topic]]
"""Statistics: the topics of some messages, of which the thread has had some already."""


@dataclass(slots=True)
class Mentions:
    """How often each topic is mentioned in what has been read, page by page. `known` are those of the thread before."""

    known: Sequence[str] = ()
    extract: Extract = topics.extract
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, entries: Iterable[Entry]) -> None:
        """Take in a page, by statistics."""
        self._count(self.extract(_said(entries), self._names))

    async def ask(self, entries: Iterable[Entry], summarizer: Summarizer) -> None:
        """Take in a page as a model names its topics; by statistics, where it does not."""
        said = _said(entries)
        prompt = topics.asked("\n".join(said)[-_READ:], self._names)
        names = topics.parse(await ask(summarizer, _INSTRUCTIONS, prompt), self._names)
        if names:
            self._count(await asyncio.to_thread(topics.mentions, names, said))
        else:
            self._count(await asyncio.to_thread(self.extract, said, self._names))

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self.known, *self.counts]))

    def _count(self, found: Iterable[Topic]) -> None:
        for topic in found:
            self.counts[topic.name] = self.counts.get(topic.name, 0) + topic.mentions


def _said(entries: Iterable[Entry]) -> list[str]:
    return [clean(content_of(entry)) for entry in entries if is_recallable(entry)]

"""Names the topics of a part of a conversation: by a model where there is one, else by statistics."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from longthread.memory.index.entry_text import is_prompt, is_recallable
from longthread.memory.summary import topics
from longthread.memory.summary.digest import clean
from longthread.memory.summary.spans import stretches
from longthread.memory.summary.summaries import Summarizer, ask
from longthread.memory.summary.topics import Topic
from longthread.model.entry import Entry
from longthread.store.topics import Span

_INSTRUCTIONS = "You keep the index of a long conversation. Reply as you are asked to, and with nothing else."
_READ = 4_000
"""Characters that a model is given to read, the newest of what people and models said."""
_ESCAPE = re.compile(r"\\[nrt]")
_SQL = re.compile(r"\"sql\"\s*:\s*\"((?:[^\"\\]|\\.)*+)\"")

Extract = Callable[[Sequence[str], Sequence[str]], Iterable[Topic]]
"""Statistics: the topics of some messages, of which the thread has had some already."""


@dataclass(slots=True)
class Mentions:
    """Counts each topic's mentions, page by page. `known` are the thread's topics before."""

    known: Sequence[str] = ()
    extract: Extract = topics.extract_topics
    spans: list[Span] = field(default_factory=list)

    def add(self, entries: Sequence[Entry]) -> None:
        for part in stretches(entries):
            self._keep(part, self.extract(_said(part), self._names))

    async def ask(self, entries: Sequence[Entry], summarizer: Summarizer) -> None:
        """Count a page with topics from a model; by statistics if it fails."""
        said = _said([entry for entry in entries if entry.role != "tool"]) or _said(entries)
        prompt = topics.write_topic_request("\n".join(said)[-_READ:], self._names)
        names = topics.parse_topics(await ask(summarizer, _INSTRUCTIONS, prompt), self._names)
        if names:
            await asyncio.to_thread(self._count, entries, names)
        else:
            await asyncio.to_thread(self.add, entries)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys([*self.known, *(span.topic for span in self.spans)]))

    def _count(self, entries: Sequence[Entry], names: Sequence[str]) -> None:
        """Count the names in each stretch of a page; a name in none of them counts for all."""
        said: set[str] = set()
        for part in stretches(entries):
            found = [topic for topic in topics.mentions(names, _said(part), least=0) if topic.mentions]
            said |= {topic.name for topic in found}
            self._keep(part, found)
        self._keep(entries, [Topic(name, 1) for name in names if name not in said])

    def _keep(self, part: Sequence[Entry], found: Iterable[Topic]) -> None:
        seen_at = part[-1].created_at.isoformat(timespec="microseconds")
        self.spans += [Span(topic.name, part[0].seq, part[-1].seq, topic.mentions, seen_at) for topic in found]


def _said(entries: Iterable[Entry]) -> list[str]:
    """Return the messages' texts and the texts in call arguments, without JSON escapes and SQL."""
    said = []
    for entry in entries:
        if is_recallable(entry) and not is_prompt(entry):
            given = [item for call in entry.tool_calls for item in call.args.items()]
            asked = [_code(text) if name == "sql" else text for name, text in given if isinstance(text, str)]
            text = (
                _SQL.sub(lambda sql: _code(sql[1]), _ESCAPE.sub(" ", entry.text))
                if entry.role == "tool"
                else entry.text
            )
            said.append(clean("\n".join([text, *asked])))
    return said


def _code(text: str) -> str:
    return f"```\n{text}\n```"

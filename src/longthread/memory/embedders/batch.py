"""Embeds several texts, so that a text which the embedder rejects costs only its own vector."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from longthread.memory.embedders.embedder import EmbedderFailed, Vectors
from longthread.memory.embedders.question_vector import ANY, is_about_the_text

MOST_REFUSED = 16
"""So many refused one after the other, before any was taken: the embedder does not work, whatever it says."""

Make = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Makes vectors, one a text; raises EmbedderFailed."""


@dataclass(slots=True)
class BatchVectors:
    """Vectors by place, or why there are none. After a `failure`, the texts from `end` on have neither."""

    end: int
    vectors: dict[int, Vectors] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    failure: EmbedderFailed | None = None


async def make_vectors(make: Make, texts: Sequence[str]) -> BatchVectors:
    """Embed texts at once; if that fails, one by one, to learn whether a text or the embedder is the cause."""
    made = BatchVectors(len(texts))
    found = await _tried(make, texts)
    if isinstance(found, EmbedderFailed):  # whether it is about a text is seen by asking again
        await _one_by_one(make, texts, made)
    else:
        made.vectors = dict(enumerate(found))
    return made


async def _tried(make: Make, texts: Sequence[str]) -> Vectors | EmbedderFailed:
    try:
        return await make(texts)
    except EmbedderFailed as error:
        return error


async def _one_by_one(make: Make, texts: Sequence[str], made: BatchVectors) -> None:
    for place, text in enumerate(texts):
        found = await _tried(make, [text])
        if not isinstance(found, EmbedderFailed):
            [made.vectors[place]] = found
            continue
        if len(made.refused) + 1 >= MOST_REFUSED and not made.vectors:
            # All of them are embedded again later: none is skipped.
            made.end, made.refused, made.failure = 0, {}, found
            return
        if not await is_about_the_text(lambda: make([ANY]), found):
            made.end, made.failure = place, found
            return
        made.refused[place] = str(found)

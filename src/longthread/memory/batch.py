"""Has vectors made of several texts, so that one which the embedder does not take costs only its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from longthread.memory.asking import reason_of
from longthread.memory.embedding import Vectors

FEW = 16
"""So many refused one after the other, before any was taken: the embedder does not work, whatever it says."""
_ANY = "."
"""What every embedder takes that works."""
_NOT_ABOUT_THE_TEXT = frozenset({401, 403, 404, 408, 429, 502, 503, 504})
"""Answers of a server that tell of a key, a model, a limit or the server."""

Make = Callable[[Sequence[str]], Awaitable[Vectors]]
"""Makes vectors, one a text; raises whatever the embedder raises, and where they are not what they should be."""


@dataclass(slots=True)
class Made:
    """What came of texts, by their places: their vectors, or why they have none. With a `failure` the embedder stopped
    working, and the texts from place `end` on have neither."""

    end: int
    vectors: dict[int, Vectors] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    failure: Exception | None = None


async def make_vectors(make: Make, texts: Sequence[str]) -> Made:
    """Vectors of texts, at once; where that fails one by one, to learn whether it is a text or the embedder."""
    made = Made(len(texts))
    try:
        made.vectors = dict(enumerate(await make(texts)))
    except Exception:  # noqa: BLE001 - whatever it is: whether it is about a text is seen by asking again
        await _one_by_one(make, texts, made)
    return made


async def _one_by_one(make: Make, texts: Sequence[str], made: Made) -> None:
    for place, text in enumerate(texts):
        try:
            [made.vectors[place]] = await make([text])
        except Exception as error:  # noqa: BLE001 - as above
            if len(made.refused) + 1 >= FEW and not made.vectors:
                # All of them may be asked again: none is passed over.
                made.end, made.refused, made.failure = 0, {}, error
                return
            if not await _is_about_the_text(make, error):
                made.end, made.failure = place, error
                return
            made.refused[place] = reason_of(error)


async def _is_about_the_text(make: Make, error: Exception) -> bool:
    """Whether an embedder that failed works: only then is it the text that it does not take."""
    if isinstance(error, OSError) or getattr(error, "status_code", None) in _NOT_ABOUT_THE_TEXT:
        return False
    try:
        await make([_ANY])
    except Exception:  # noqa: BLE001 - as above; the first error is the one that is told
        return False
    return True

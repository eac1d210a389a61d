"""The manifest of a view: how each entry went into a model call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

How = Literal["whole", "condensed", "cut", "left out", "summary", "facts", "terms", "recalled"]
Why = Literal["budget", "digest", "stale", "unpaired"]
TEXTS: frozenset[How] = frozenset({"summary", "facts", "terms", "recalled"})
"""Segments that are texts. All but the summary come after the messages."""
NO_ROOM: frozenset[Why | None] = frozenset({"budget", "digest"})
"""Reasons for entries that had no room."""


@dataclass(frozen=True, slots=True)
class Segment:
    """The entries from seq `first` to `last` of a view, which went in alike, and their tokens together.

    `how`: `whole`; `condensed`: without thinking, results shortened (to `limit` characters, if given); `cut`: a single
    entry, its text cut to `limit` characters and, if `bare`, its calls without arguments; `left out`; `summary`: only a
    summary covers them. Notes after the messages: `facts` of the source that the view no longer has whole, `terms` of
    the source, `recalled` entries. Their texts are stored with the call's prompt.

    `why` entries were left out: `budget`: no room; `digest`: no room, but the summary's text covers them; `unpaired`: a
    call without result or the reverse; `stale`: of another source or schema. With another `how`, `stale` means that
    only the calls and results were left out.

    `form` is how results were shown: 0 as in older calls; 1 shortened by rows; 2 also the tables of a source shown as
    text. A whole segment has it only where such a result is in it.
    """

    first: int
    last: int
    how: How
    tokens: int = 0
    why: Why | None = None
    limit: int | None = None
    bare: bool = False
    form: int = 0

    def to_json(self) -> list[Any]:
        values = [self.first, self.last, self.how, self.tokens, self.why, self.limit, self.bare, self.form or None]
        while values[-1] is None or values[-1] is False:
            values.pop()
        return values

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Segment:
        return cls(*data)


def segments_of(manifest: Sequence[Any]) -> list[Segment]:
    """The segments of a stored manifest; empty for the oldest format."""
    return [Segment.from_json(each) for each in manifest if isinstance(each, list)]

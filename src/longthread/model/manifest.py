"""The manifest of a view: how each entry went into a model call, as runs of entries that went in alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

How = Literal["whole", "condensed", "cut", "left out", "summary", "facts", "terms", "recalled"]
Why = Literal["budget", "digest", "stale", "unpaired"]
TEXTS: frozenset[How] = frozenset({"summary", "facts", "terms", "recalled"})
"""How segments went in that are texts and no messages. All but the first stand behind the messages."""
NO_ROOM: frozenset[Why | None] = frozenset({"budget", "digest"})
"""Why entries were left out that would be shown if there were room."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Entries of a view, by their seqs from `first` to `last`, that went in alike, and what they cost together.

    `how`: `whole`; `condensed` (results made shorter by their structure, to `limit` characters where that is told, and
    thinking left out); `cut`, one entry alone, its text to `limit` characters and, where `bare`, its calls without
    their arguments; `left out`; `summary`, the entries that only a summary tells of, if at all. The others are no
    entries but notes behind the messages: `facts`, what is known of the source and stands no longer whole in the view;
    `terms`, the source's business terms; `recalled`, what was recalled for this call. The texts are kept with the
    call's prompt.

    `why` they were left out: `budget`, there was no room; `digest`, there was no room, and the text of the view's
    summary tells of them too; `unpaired`, a call without its result or the other way round; `stale`, observed of
    another source or schema. With another `how`, `stale` means that of these entries the calls
    and results were left out, and the rest was not.
    """

    first: int
    last: int
    how: How
    tokens: int = 0
    why: Why | None = None
    limit: int | None = None
    bare: bool = False

    def to_json(self) -> list[Any]:
        """The segment as a short list; `from_json` restores it."""
        values = [self.first, self.last, self.how, self.tokens, self.why, self.limit, self.bare]
        while values[-1] is None or values[-1] is False:
            values.pop()
        return values

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Segment:
        return cls(*data)


def segments_of(manifest: Sequence[Any]) -> list[Segment]:
    """The segments of a stored manifest; none of one that was written before there were segments."""
    return [Segment.from_json(each) for each in manifest if isinstance(each, list)]

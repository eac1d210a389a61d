"""A list of messages as it was given to be stored, without a copy of what is held of it anyway."""

from __future__ import annotations

from dataclasses import dataclass, field

from langchain_core.messages import BaseMessage


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of messages as it was given: the first `count` are those of `objects`, and `rest` are the others.

    `objects` is a list that is held: it only grows, so that nothing of it need be copied. The caller may go on to
    change the list that was given.
    """

    rest: list[BaseMessage]
    objects: list[BaseMessage] = field(default_factory=list)
    count: int = 0

    def __len__(self) -> int:
        return self.count + len(self.rest)

    def since(self, place: int, stop: int | None = None) -> list[BaseMessage]:
        """The messages from a place on, or those before another place."""
        stop = len(self) if stop is None else stop
        rest = self.rest[max(0, place - self.count) : max(0, stop - self.count)]
        return self.objects[place : min(stop, self.count)] + rest if place < self.count else rest

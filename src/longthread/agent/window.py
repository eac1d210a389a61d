"""The messages of a run: the thread's last ones and those that the run adds, and what of them a model call sees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage

from longthread.agent.citations import Query
from longthread.agent.messages import draft_of, message_of
from longthread.model.entry import Draft, Entry
from longthread.model.manifest import Segment, Why
from longthread.view.compose import Item, Part, compose
from longthread.view.manifest import is_observed, segments
from longthread.view.tokens import estimate

_NOTHING = Part(Item("", "user", ""), "left out")


@dataclass(frozen=True)
class Spot:
    """A message, and the entry that it is. What is computed from it is computed once: it outlives the run."""

    entry: Entry
    message: BaseMessage

    @cached_property
    def item(self) -> Item:
        """What the composer sees of it."""
        return item_of(self.message, self.entry)

    @cached_property
    def about(self) -> tuple[str, str] | None:
        """Of a question: the source that it is about, and the source's schema."""
        note = self.entry.metadata
        found = note.get("kind") == "question" and "source" in note and "fingerprint" in note
        return (note["source"], note["fingerprint"]) if found else None

    @cached_property
    def query(self) -> Query | None:
        """Of a result: the labelled query that it answers."""
        return Query.read(self.entry.text) if self.entry.role == "tool" else None


def spot_of(entry: Entry) -> Spot:
    """The message of an entry, where it stands."""
    return Spot(entry, message_of(entry))


@dataclass(slots=True)
class Window:
    """The messages of a run, oldest first. `question` is the place of the one that started it."""

    spots: list[Spot]
    question: int
    _by_id: dict[str | None, Spot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_id = {spot.message.id: spot for spot in self.spots}

    def add(self, entry: Entry, message: BaseMessage) -> None:
        """A message that the run has added."""
        spot = Spot(entry, message)
        self.spots.append(spot)
        self._by_id[message.id] = spot

    def find(self, message: BaseMessage) -> Spot | None:
        """Where a message of the graph's state stands; None when it is not the run's."""
        return self._by_id.get(message.id)

    @property
    def messages(self) -> list[BaseMessage]:
        return [spot.message for spot in self.spots]

    @property
    def entries(self) -> list[Entry]:
        return [spot.entry for spot in self.spots]

    @property
    def own(self) -> list[BaseMessage]:
        """The messages behind the one that started the run."""
        return [spot.message for spot in self.own_spots]

    @property
    def own_spots(self) -> list[Spot]:
        return self.spots[self.question + 1 :]


def fit(spots: Sequence[Spot], budget: int) -> tuple[list[AnyMessage], list[Segment]]:
    """The messages that fit into `budget` tokens, and the manifest: how each one went in."""
    stale = _stale(spots)
    parts = compose([spot.item for n, spot in enumerate(spots) if n not in stale], budget)
    messages = {spot.item.key: spot.message for spot in spots}
    shown = [shown_of(messages[part.item.key], part) for part in parts if part.how != "left out"]
    return shown, segments(_told(spots, stale, {part.item.key: part for part in parts}))


def _told(
    spots: Sequence[Spot], stale: frozenset[int], parts: dict[str, Part]
) -> Iterator[tuple[int, Part, Why | None]]:
    for n, spot in enumerate(spots):
        part = None if n in stale else parts.get(spot.item.key)
        if part is None:
            yield spot.entry.seq, _NOTHING, "stale" if n in stale else "unpaired"
        else:
            yield spot.entry.seq, part, "budget" if part.how == "left out" else None


def _stale(spots: Sequence[Spot]) -> frozenset[int]:
    """The places of what was observed of another source, or of another schema of this one.

    Such tables would be taken for known. Questions and answers stay: they are the conversation.
    """
    start = 0
    before: tuple[str, str] | None = None
    for n, spot in enumerate(spots):
        if spot.about is not None:
            if before not in (None, spot.about):
                start = n
            before = spot.about
    return frozenset(n for n in range(start) if is_observed(spots[n].item))


def item_of(message: BaseMessage, draft: Draft | None = None) -> Item:
    """What the composer sees of a message; `draft` is the message as a draft, where it is known."""
    draft = draft or draft_of(message)
    calls = [call.to_json() for call in draft.tool_calls]
    return Item(
        key=message.id or draft.id,
        role=draft.role,
        text=draft.text if isinstance(message.content, str) else json.dumps(message.content, ensure_ascii=False),
        calls=tuple(call["id"] for call in calls),
        answers=draft.tool_call_id,
        extra=estimate(json.dumps(calls, ensure_ascii=False)) if calls else 0,
    )


def shown_of(message: BaseMessage, part: Part) -> AnyMessage:
    """The message as its part says that it is shown."""
    shown: AnyMessage = message  # type: ignore[assignment]  # the types of AnyMessage are all that there are
    if part.bare and isinstance(message, AIMessage):
        # Blocks of content may hold the calls once more; their text is what is kept of them.
        calls = [{**call, "args": {"left_out": "too long to show"}} for call in message.tool_calls]
        shown = message.model_copy(update={"tool_calls": calls, "content": str(message.text)})
    return shown if part.text is None else _with_text(shown, part.text)


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    if isinstance(message, AIMessage | ToolMessage) or isinstance(message.content, str):
        return message.model_copy(update={"content": text})
    return message.model_copy(update={"content": [{"type": "text", "text": text}]})


def spots_of(entries: Iterable[Entry]) -> list[Spot]:
    """The messages of entries, where they stand."""
    return [spot_of(entry) for entry in entries]

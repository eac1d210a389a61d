"""The messages of a run: the thread's last ones and those that the run adds, and what of them a model call sees."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from longthread.agent.citations import Query
from longthread.agent.messages import draft_of, message_of
from longthread.model.entry import Draft, Entry
from longthread.model.manifest import Segment, Why
from longthread.view.compose import Before, Config, View, compose
from longthread.view.items import BARE_ARGS, Item, Part
from longthread.view.manifest import is_observed, segments, shown
from longthread.view.tokens import ANY, IMAGE, estimate

STEP = 20
"""Messages that leave a view at least that has shown all of the hot window, when this moves on (document 004 §3.1)."""

_NOTHING = Part(Item("", "user", ""), "left out")
_THINKING = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
"""Types of content blocks that hold a model's thinking. They are shown as they are, or not at all."""
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "server_tool_call"})
"""Types of blocks that say once more what a message's calls say."""
_IMAGES = frozenset({"image", "image_url", "input_image"})
_NOT_SEEN = frozenset({"left out", "summary", "recalled"})
_REASONING = "reasoning_content"
"""Key of `additional_kwargs` under which some providers' thinking stands."""


@dataclass(frozen=True)
class Spot:
    """A message, and the entry that it is. What is computed from it is computed once: it outlives the run."""

    entry: Entry
    message: BaseMessage

    _items: dict[str, Item] = field(default_factory=dict, compare=False, repr=False)

    @property
    def item(self) -> Item:
        """What the composer sees of it."""
        return self.item_for(ANY)

    def item_for(self, family: str) -> Item:
        """What the composer sees of it, by what it costs with a family of models."""
        if family not in self._items:
            self._items[family] = item_of(self.message, self.entry, family)
        return self._items[family]

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


@dataclass(frozen=True, slots=True)
class Past:
    """The call before: its manifest and its summary. `estimated` and `reported` are the tokens of its prompt, if known.

    Both count only for the model that was called, `model`.
    """

    segments: Sequence[Segment]
    summary: str = ""
    estimated: int = 0
    reported: int = 0
    model: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a view is made for: at most `budget` tokens of a family of models, after the call before.

    `summary` ends with the entry `mark`.
    """

    budget: int
    family: str = ANY
    config: Config = field(default_factory=Config)
    past: Past | None = None
    summary: str = ""
    topics: Sequence[str] = ()
    recalled: str = ""
    mark: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A view as messages, with its manifest."""

    messages: list[AnyMessage]
    segments: list[Segment]
    view: View


def fit(spots: Sequence[Spot], wanted: Wanted) -> Fitted:
    """The messages that fit into the budget, and the manifest: how each one went in."""
    before = _before(spots, wanted)
    hidden = _stale(spots)
    passed = _passed(spots, wanted.past, wanted.mark) if before is not None and before.gone else 0
    items = [spot.item_for(wanted.family) for n, spot in enumerate(spots) if n >= passed and n not in hidden]
    view = compose(
        items,
        wanted.budget,
        wanted.config,
        summary=wanted.summary,
        topics=wanted.topics,
        recalled=wanted.recalled,
        before=before,
    )
    messages = {spot.item_for(wanted.family).key: spot.message for spot in spots}
    seen = [shown_of(messages[part.item.key], part) for part in view.shown]
    keys = [spot.item_for(wanted.family).key for spot in spots]
    parts = {part.item.key: part for part in view.parts}
    told = segments(_told(spots, keys, hidden, parts, passed), wanted.config.tool_max)
    return Fitted(
        [*digest_messages(view.summary.text), *seen, *digest_messages(view.recalled.text)],
        _digests(spots, view, told, wanted),
        view,
    )


def digest_messages(text: str) -> list[AnyMessage]:
    """A text that stands for messages, as one."""
    return [HumanMessage(text, additional_kwargs={"longthread": {"kind": "digest"}})] if text else []


def _digests(spots: Sequence[Spot], view: View, told: list[Segment], wanted: Wanted) -> list[Segment]:
    """The segments, with those of the texts that stand for messages. A summary that stays tells of what it told of."""
    first = [each for each in wanted.past.segments if each.how == "summary"] if view.grown and wanted.past else []
    if view.summary.text and not first:
        first = [Segment(0, wanted.mark or spots[0].entry.seq - 1, "summary", view.summary.tokens)]
    last = [Segment(0, 0, "recalled", view.recalled.tokens)] if view.recalled.text else []
    return [*first, *told, *last]


def _before(spots: Sequence[Spot], wanted: Wanted) -> Before | None:
    """The view of the call before, as far as its messages are here."""
    if wanted.past is None:
        return None
    by_seq = {spot.entry.seq: spot.item_for(wanted.family) for spot in spots}
    parts: dict[str, Part] = {}
    gone = False
    for segment in wanted.past.segments:
        if segment.how in ("summary", "recalled"):
            continue
        for seq in range(segment.first, segment.last + 1):
            item = by_seq.get(seq)
            if item is not None:
                parts[item.key] = shown(segment, item) or Part(item, "left out")
            elif segment.how != "left out":
                gone = True
    return Before(parts, wanted.past.summary, gone)


def _passed(spots: Sequence[Spot], past: Past | None, mark: int) -> int:
    """How many of the oldest messages are left out because the window has moved on, and the mark has not.

    They are some more than must be, up to a user's message: else the view's beginning would change with each message.
    """
    first = min((each.first for each in past.segments if each.how not in _NOT_SEEN), default=0) if past else 0
    step = max(STEP, len(spots) // 5)
    if len(spots) <= step or not mark < first < spots[0].entry.seq:
        return 0
    return next((n for n in range(step, len(spots)) if spots[n].entry.role == "user"), 0)


def _told(
    spots: Sequence[Spot], keys: Sequence[str], stale: frozenset[int], parts: dict[str, Part], passed: int
) -> Iterator[tuple[int, Part, Why | None]]:
    for n, spot in enumerate(spots):
        part = None if n in stale else parts.get(keys[n])
        if n < passed and n not in stale:
            yield spot.entry.seq, _NOTHING, "budget"
        elif part is None:
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


def item_of(message: BaseMessage, draft: Draft | None = None, family: str = ANY) -> Item:
    """What the composer sees of a message; `draft` is the message as a draft, where it is known."""
    draft = draft or draft_of(message)
    calls = [call.to_json() for call in draft.tool_calls]
    malformed = list(getattr(message, "invalid_tool_calls", ()))  # which are sent as they came
    blocks = [block for block in message.content if isinstance(block, dict)] if type(message.content) is list else []
    thinking = [block for block in blocks if block.get("type") in _THINKING]
    images = sum(block.get("type") in _IMAGES for block in blocks)
    rest = [block for block in blocks if block.get("type") not in _THINKING | _CALLS | _IMAGES | {"text"}]
    reasoning = message.additional_kwargs.get(_REASONING) or ""
    return Item(
        key=message.id or draft.id,
        role=draft.role,
        text=draft.text,
        calls=tuple(call["id"] for call in calls),
        answers=draft.tool_call_id,
        extra=_json_tokens(calls, family) + _json_tokens(malformed, family),
        thinking=_json_tokens(thinking, family) + (estimate(str(reasoning), family) if reasoning else 0),
        other=_json_tokens(rest, family) + images * IMAGE + 4 * len(blocks),
        family=family,
    )


def _json_tokens(value: list[Any], family: str) -> int:
    return estimate(json.dumps(value, ensure_ascii=False, default=str), family) if value else 0


def shown_of(message: BaseMessage, part: Part) -> AnyMessage:
    """The message as its part says that it is shown."""
    seen: AnyMessage = message  # type: ignore[assignment]  # the types of AnyMessage are all that there are
    if part.how != "whole" and isinstance(message, AIMessage):
        seen = _without_thinking(message)
        if part.bare:
            # Blocks of content may hold the calls once more; their text is what is kept of them.
            calls = [{**call, "args": dict(BARE_ARGS)} for call in message.tool_calls]
            seen = seen.model_copy(update={"tool_calls": calls, "content": str(message.text)})
    return seen if part.text is None else _with_text(seen, part.text)


def _without_thinking(message: AIMessage) -> AIMessage:
    content, kwargs = message.content, message.additional_kwargs
    if type(content) is list:
        left = [block for block in content if not (isinstance(block, dict) and block.get("type") in _THINKING)]
        content = left if left else ""
    if _REASONING in kwargs:
        kwargs = {key: value for key, value in kwargs.items() if key != _REASONING}
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs})


def _with_text(message: AnyMessage, text: str) -> AnyMessage:
    if isinstance(message, AIMessage | ToolMessage) or isinstance(message.content, str):
        return message.model_copy(update={"content": text})
    return message.model_copy(update={"content": [{"type": "text", "text": text}]})


def spots_of(entries: Iterable[Entry]) -> list[Spot]:
    """The messages of entries, where they stand."""
    return [spot_of(entry) for entry in entries]

"""The messages of a run, the thread's last ones and its own, and which of them a model call sees."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from longthread.context.citations import CitedQuery
from longthread.context.system_prompt import facts_note, summary_with_digest, terms_note
from longthread.messages.entries import message_of
from longthread.messages.fields import calls_of, storable
from longthread.messages.message import (
    CALLS,
    Message,
    beside_content,
    find_hosted,
    has_items,
    has_unread,
    is_thinking,
    read_answered_calls,
    readable,
    without_thinking,
)
from longthread.model.content import attachment_of
from longthread.model.entry import INTERRUPTED, Draft, Entry, ToolCall, with_mark
from longthread.model.fold import Facts, observation_of
from longthread.model.ids import new_id
from longthread.model.run import TEXTS, How, Segment, Why
from longthread.tools.analysis.schema_text import observed_text
from longthread.view.compose import DigestMessage, PreviousView, View, ViewConfig, compose, share_of
from longthread.view.items import BARE_ARGS, FORM, ViewItem, ViewPart, is_observed, segments, show_part
from longthread.view.tokens import ANY, attachment_tokens, estimate

STEP = 20
"""The fewest messages that leave a view of the whole window when the window moves on (document 004 §3.1)."""

DIGESTED = 500
"""The most messages, the newest ones, that a digest covers in a view without room for them."""

EXPLORING = frozenset({"list_tables", "describe_table", "sample_rows"})
"""The tools whose results are known facts."""

NOTES: Sequence[How] = ("facts", "terms", "recalled")
"""The notes after the messages, in their order."""

WriteMessage = Callable[[Message], str]
"""Return the text that a protocol sends for a whole message."""

_NOTHING = ViewPart(ViewItem("", "user", ""), "left out")
_NOT_SEEN = TEXTS | {"left out"}


@dataclass(frozen=True)
class WindowMessage:
    """A message with its entry. Computed values are cached: it outlives the run."""

    entry: Entry
    message: Message

    _items: dict[tuple[str, bool], ViewItem] = field(default_factory=dict, compare=False, repr=False)

    @property
    def item(self) -> ViewItem:
        return self.item_for(ANY)

    def item_for(self, family: str, write: WriteMessage | None = None) -> ViewItem:
        """Return the composer's item, with the token estimate of a model family. `write` gives the text that the
        protocol sends for a whole message; None: its own text and calls."""
        cached = family, write is not None
        if cached not in self._items:
            item = item_of(self.message, self.entry, family)
            if self.told_text is not None:
                item = replace(item, text=self.told_text, stored=item.text)
            if write is not None:
                item = replace(item, written=write(shown_of(self.message, item.whole)), extra=0)
            # Messages of one view may have the same id.
            self._items[cached] = item if item.key == self.entry.id else replace(item, key=self.entry.id)
        return self._items[cached]

    @cached_property
    def about(self) -> tuple[str, str] | None:
        """Of a question: its source and the source's schema."""
        note = self.entry.metadata
        found = self.entry.kind == "question" and "source" in note and "fingerprint" in note
        return (note["source"], note["fingerprint"]) if found else None

    @cached_property
    def exploring_observation(self) -> Mapping[str, Any] | None:
        """Of a result that describes the source's tables: the observation."""
        is_told = self.message.role == "tool" and self.message.name in EXPLORING
        return observation_of(self.entry.text) if is_told else None

    @cached_property
    def told_text(self) -> str | None:
        """Of such a result: the text that tells it in fewer tokens."""
        return (
            None
            if self.exploring_observation is None
            else observed_text(str(self.message.name), self.exploring_observation)
        )

    @cached_property
    def query(self) -> CitedQuery | None:
        return CitedQuery.read(self.entry.text) if self.entry.role == "tool" else None


def spot_of(entry: Entry) -> WindowMessage:
    """The message of an entry; an interrupted one says in the view that it was."""
    if entry.kind == INTERRUPTED:
        entry = replace(entry, text=with_mark(entry.text), payload=None)
    return WindowMessage(entry, message_of(entry))


@dataclass(slots=True)
class Window:
    """The messages of a run, oldest first. `question` is the index of the one that started it."""

    spots: list[WindowMessage]
    question: int
    _by_id: dict[str | None, WindowMessage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_id = {spot.message.id: spot for spot in self.spots}

    def add(self, entry: Entry, message: Message) -> None:
        spot = WindowMessage(entry, message)
        self.spots.append(spot)
        self._by_id[message.id] = spot

    def find(self, message: Message) -> WindowMessage | None:
        """Find a message of the graph's state; None if it is not the run's."""
        return self._by_id.get(message.id)

    @property
    def messages(self) -> list[Message]:
        return [spot.message for spot in self.spots]

    @property
    def entries(self) -> list[Entry]:
        return [spot.entry for spot in self.spots]

    @property
    def own(self) -> list[Message]:
        """Return the messages after the one that started the run."""
        return [spot.message for spot in self.own_spots]

    @property
    def own_spots(self) -> list[WindowMessage]:
        return self.spots[self.question + 1 :]


@dataclass(frozen=True, slots=True)
class PreviousCall:
    """The call before: its manifest, its summary and the names of the `tools` that it offered. `estimated` and
    `reported` are the tokens of its prompt, if known; both count only for its `model`."""

    segments: Sequence[Segment]
    summary: str = ""
    estimated: int = 0
    reported: int = 0
    model: str = ""
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What a view is made for: at most `budget` tokens of a model family, after the call before.

    `summary` ends with the entry `mark`; `digest` is its data, if no model wrote it. `facts` are those known of the
    source: the view notes the ones that no message shows whole. `terms` are its business terms; both notes have at most
    `extra` tokens. `write` gives the text that the protocol sends for a whole message; None: its own text and calls.
    """

    budget: int
    family: str = ANY
    write: WriteMessage | None = None
    config: ViewConfig = field(default_factory=ViewConfig)
    past: PreviousCall | None = None
    summary: str = ""
    digest: Mapping[str, Any] = field(default_factory=dict)
    topics: Sequence[str] = ()
    recalled: str = ""
    mark: int = 0
    facts: Facts | None = None
    terms: Sequence[str] = ()
    extra: int = 0

    def item_of(self, spot: WindowMessage) -> ViewItem:
        return spot.item_for(self.family, self.write)


@dataclass(frozen=True, slots=True)
class FittedView:
    """A view as messages, with its manifest; its notes, by their names in that."""

    messages: list[Message]
    segments: list[Segment]
    view: View
    notes: Mapping[How, str]


def fit(spots: Sequence[WindowMessage], wanted: ViewRequest) -> FittedView:
    """Return the messages that fit into the budget, and the manifest of how each was shown."""
    spots = as_answered(spots)
    before = _before(spots, wanted)
    hidden = _stale(spots)
    passed = _count_passed(spots, wanted.past, wanted.mark) if before is not None and before.gone else 0
    view, digested, facts = _knowing(spots, wanted, before, hidden, passed)
    keys = [wanted.item_of(spot).key for spot in spots]
    messages = {key: spot.message for key, spot in zip(keys, spots, strict=True)}
    seen = [shown_of(messages[part.item.key], part) for part in view.shown_parts]
    parts = {part.item.key: part for part in view.parts}
    ways = segments(_ways(spots, keys, hidden, parts, passed, digested), wanted.config.tool_max)
    digests: dict[How, DigestMessage] = {"facts": facts, "terms": _terms(wanted), "recalled": view.recalled}
    behind = [Segment(0, 0, how, note.tokens) for how, note in digests.items() if note.text]
    notes = {how: note.text for how, note in digests.items() if note.text}
    return FittedView(
        [*digest_messages(view.summary.text), *seen, *note_messages(notes)],
        [*_digests(spots, view, ways, wanted), *behind],
        view,
        notes,
    )


def as_answered(spots: Sequence[WindowMessage]) -> Sequence[WindowMessage]:
    """Turn unread calls that have a result into read ones."""
    found = list(spots)
    for n in [n for n, spot in enumerate(spots) if has_unread(spot.message)]:
        behind = takewhile(lambda each: each.entry.role == "tool", islice(spots, n + 1, None))
        message = read_answered_calls(spots[n].message, [each.entry.tool_call_id for each in behind])
        if message is not spots[n].message:
            found[n] = WindowMessage(replace(spots[n].entry, tool_calls=_told_calls(message)), message)
    return found


def _knowing(
    spots: Sequence[WindowMessage],
    wanted: ViewRequest,
    before: PreviousView | None,
    hidden: frozenset[int],
    passed: int,
) -> tuple[View, frozenset[int], DigestMessage]:
    """Return the view, the indices that its summary's text covers beyond the mark, and the note of facts. The facts
    are what no message shows whole: what leaves the view to make room for them joins them."""
    terms, spare = _terms(wanted).tokens, 0
    most = wanted.extra - terms
    for last in (False, False, False, True):
        view, digested = _telling(spots, wanted, before, hidden, passed, terms + spare)
        left = wanted.facts.without(_told_whole(spots, view, hidden)) if wanted.facts is not None else Facts()
        facts = facts_note(left, spare if last else most, wanted.family)
        if facts.tokens <= spare:
            break
        spare = facts.tokens
    return replace(view, noted=terms + facts.tokens), digested, facts


def _terms(wanted: ViewRequest) -> DigestMessage:
    return terms_note(wanted.terms, wanted.extra // 2, wanted.family)


def _told_whole(spots: Sequence[WindowMessage], view: View, hidden: frozenset[int]) -> Facts:
    whole = {part.item.key for part in view.parts if part.how == "whole"}
    told = Facts()
    for n, spot in enumerate(spots):
        if n not in hidden and spot.entry.id in whole and spot.exploring_observation is not None:
            told.learn(str(spot.message.name), spot.exploring_observation)
    return told


def _telling(
    spots: Sequence[WindowMessage],
    wanted: ViewRequest,
    before: PreviousView | None,
    hidden: frozenset[int],
    passed: int,
    noted: int,
) -> tuple[View, frozenset[int]]:
    """Return the view, and the indices that its summary's text covers beyond the mark.

    A planned view has no room for some messages that no summary covers yet. Their digest takes room itself: what leaves
    the view for it joins the digest. A view that grows keeps its beginning.
    """
    items = [wanted.item_of(spot) for n, spot in enumerate(spots) if n >= passed and n not in hidden]
    share, text, digested = share_of(wanted.budget, wanted.config.summary), wanted.summary, frozenset[int]()
    has_shrunk = False
    while True:
        view = compose(
            items,
            wanted.budget,
            wanted.config,
            summary=text,
            topics=wanted.topics,
            recalled=wanted.recalled,
            noted=noted,
            before=before,
        )
        if view.grown:
            return view, _find_digested(spots, wanted.past)
        missing = _find_untold(spots, wanted, view, hidden, passed)
        if digested and missing <= digested:
            if has_shrunk or missing in (digested, frozenset()):
                return view, digested
            # If a question is cut now, others may have room: the digest covers only what is not shown.
            digested, has_shrunk = missing, True
        else:
            digested |= missing
        entries = [spots[n].entry for n in sorted(digested)]
        last, text = (
            text,
            summary_with_digest(
                wanted.summary, wanted.digest, entries, wanted.topics, share, wanted.family, _about(spots)
            ),
        )
        if text == last:  # nothing to add, or no room for it
            return view, digested if text != wanted.summary else frozenset()


def _find_untold(
    spots: Sequence[WindowMessage], wanted: ViewRequest, view: View, hidden: frozenset[int], passed: int
) -> frozenset[int]:
    """Return the indices of the newest messages after the mark that a view has no room for."""
    out = {part.item.key for part in view.parts if part.how == "left out"}
    items = [(n, wanted.item_of(spot)) for n, spot in enumerate(spots) if spot.entry.seq > wanted.mark]
    gone = [n for n, item in items if n not in hidden and not item.silent and (n < passed or item.key in out)]
    return frozenset(gone[-DIGESTED:])


def _find_digested(spots: Sequence[WindowMessage], past: PreviousCall | None) -> frozenset[int]:
    """Return the indices that the summary's text of the view before covered."""
    named = [each for each in past.segments if each.why == "digest"] if past else []
    return frozenset(n for n, spot in enumerate(spots) if any(e.first <= spot.entry.seq <= e.last for e in named))


def digest_messages(text: str) -> list[Message]:
    return [Message("user", text).add_note(kind="digest")] if text else []


def note_messages(notes: Mapping[How, str]) -> list[Message]:
    return digest_messages("\n\n".join(notes[how] for how in NOTES if notes.get(how)))


def _digests(spots: Sequence[WindowMessage], view: View, ways: list[Segment], wanted: ViewRequest) -> list[Segment]:
    """Add the segments of the summary's text. A summary that stays covers the same messages, also when the window
    has moved past it."""
    past = wanted.past.segments if view.grown and wanted.past else []
    start = spots[0].entry.seq if spots else wanted.mark + 1  # a model may be asked to begin
    first = [each for each in past if each.how == "summary"]
    digested = [replace(each, last=min(each.last, start - 1)) for each in past if each.why == "digest"]
    behind = [each for each in digested if 0 < each.first <= each.last]
    if view.summary.text and not first:
        # Without a summary the text is the digest alone, which covers nothing before the window.
        mark = wanted.mark or (start - 1 if wanted.summary else 0)
        first = [Segment(0, mark, "summary", view.summary.tokens)]
    return [*first, *behind, *ways]


def _before(spots: Sequence[WindowMessage], wanted: ViewRequest) -> PreviousView | None:
    """Return the view of the call before, as far as its messages are here."""
    if wanted.past is None:
        return None
    by_seq = {spot.entry.seq: wanted.item_of(spot) for spot in spots}
    parts: dict[str, ViewPart] = {}
    # A summary may describe tables of an earlier source.
    gone = bool(wanted.past.summary) and _about(spots, _last(wanted.past)) not in (None, _about(spots))
    for segment in wanted.past.segments:
        if segment.how in TEXTS:
            continue
        if segment.why == "unpaired":  # treat it as new: its other half may have come since
            continue
        # What an earlier version shortened is shown as now, at the cost of one change of the prompt.
        present = segment if segment.form == FORM else replace(segment, form=FORM)
        for seq in range(segment.first, segment.last + 1):
            item = by_seq.get(seq)
            if item is not None:
                parts[item.key] = show_part(present, item) or ViewPart(item, "left out")
            elif segment.how != "left out":
                gone = True
    return PreviousView(parts, wanted.past.summary, gone)


def _about(spots: Sequence[WindowMessage], last: int | None = None) -> tuple[str, str] | None:
    """Return the source and schema of the newest question, or of the newest up to the entry `last`."""
    return next(
        (spot.about for spot in reversed(spots) if spot.about is not None and (last is None or spot.entry.seq <= last)),
        None,
    )


def _last(past: PreviousCall) -> int:
    return max((each.last for each in past.segments if each.how not in TEXTS), default=0)


def _count_passed(spots: Sequence[WindowMessage], past: PreviousCall | None, mark: int) -> int:
    """Count the oldest messages to leave out because the window has moved on and the mark has not. Some more are
    left out, up to a user's message: else the view's beginning would change with each message."""
    first = min((each.first for each in past.segments if each.how not in _NOT_SEEN), default=0) if past else 0
    step = max(STEP, len(spots) // 5)
    if len(spots) <= step or not mark < first < spots[0].entry.seq:
        return 0
    return next((n for n in range(step, len(spots)) if spots[n].entry.role == "user"), 0)


def _ways(
    spots: Sequence[WindowMessage],
    keys: Sequence[str],
    stale: frozenset[int],
    parts: dict[str, ViewPart],
    passed: int,
    digested: frozenset[int],
) -> Iterator[tuple[int, ViewPart, Why | None]]:
    for n, spot in enumerate(spots):
        part = None if n in stale else parts.get(keys[n])
        no_room: Why = "digest" if n in digested else "budget"
        if n < passed and n not in stale:
            yield spot.entry.seq, _NOTHING, no_room
        elif part is None:
            yield spot.entry.seq, _NOTHING, "stale" if n in stale else "unpaired"
        else:
            yield spot.entry.seq, part, no_room if part.how == "left out" else None


def _stale(spots: Sequence[WindowMessage]) -> frozenset[int]:
    """Return the indices of observations of another source or schema, which the model would take for known.
    Questions and answers stay."""
    start = 0
    before: tuple[str, str] | None = None
    for n, spot in enumerate(spots):
        if spot.about is not None:
            if before not in (None, spot.about):
                start = n
            before = spot.about
    return frozenset(n for n in range(start) if is_observed(spots[n].item))


def item_of(message: Message, draft: Draft | None = None, family: str = ANY) -> ViewItem:
    """Return the composer's item of a message; `draft` is the message as a draft, if known."""
    sent, key = readable(message), message.id or (draft.id if draft is not None else new_id())
    calls = [call.to_json() for call in (draft.tool_calls if draft is not None else _told_calls(message))]
    text = draft.text if draft is not None and sent is message else sent.text
    message = sent
    blocks = [block for block in message.content if isinstance(block, dict)] if type(message.content) is list else []
    rest = [block for block in blocks if not is_thinking(block) and block.get("type") not in CALLS | {"text"}]
    rest += find_hosted(message)
    thinking = _json_tokens([block for block in blocks if is_thinking(block)], family)
    thinking += sum(_reasoning_tokens(each, family) for each in beside_content(message))
    # The provider refuses its own tools' items without the reasoning before them: they are one.
    bound = thinking if rest and has_items(message) else 0
    return ViewItem(
        key=key,
        role=message.role,
        text=text,
        calls=tuple(call["id"] for call in calls),
        answers=storable(message.tool_call_id),
        extra=_json_tokens(calls, family),
        thinking=thinking - bound,
        other=_beside_tokens(rest, family) + 4 * len(blocks) + bound,
        beside=0 if message.role == "assistant" else len(rest),
        silent=thinking > bound and not (text.strip() or calls or rest),
        family=family,
    )


def _told_calls(message: Message) -> tuple[ToolCall, ...]:
    return calls_of(message.tool_calls, message.id).told


def _beside_tokens(blocks: Sequence[Any], family: str) -> int:
    """Estimate the tokens of blocks that are no text: attachments by their kind, others as JSON."""
    found = [(block, attachment_of(block) if isinstance(block, dict) else None) for block in blocks]
    attached = sum(attachment_tokens(each, family) for _, each in found if each is not None)
    return attached + _json_tokens([block for block, each in found if each is None], family)


def _reasoning_tokens(value: Any, family: str) -> int:
    return estimate(value, family) if isinstance(value, str) else _json_tokens([value], family)


def _json_tokens(value: list[Any], family: str) -> int:
    return estimate(json.dumps(value, ensure_ascii=False, default=str), family) if value else 0


def shown_of(message: Message, part: ViewPart) -> Message:
    """Return a message as a part of the view shows it."""
    seen = readable(message)
    if part.how != "whole" and seen.role == "assistant":
        seen = without_thinking(seen)
        if part.bare:
            # Blocks of content may repeat the calls; only their text stays.
            calls = [{**call, "args": dict(BARE_ARGS)} for call in seen.tool_calls]
            seen = replace(seen, tool_calls=calls, content=str(seen.text))
    if part.text is not None:
        return replace(seen, content=part.text)
    # The data goes along for who reads no text; no provider is sent it.
    return replace(seen, content=part.item.text, artifact=part.item.stored) if part.item.stored else seen


def spots_of(entries: Iterable[Entry]) -> list[WindowMessage]:
    return [spot_of(entry) for entry in entries]

"""What one model call sees of a thread. Pure: the same input gives the same view.

A view only grows at its end, so that each prompt begins with the one before it and a provider's cache stays warm, until
it would pass its budget, the high-water mark. Then it is planned again, down to the low-water mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from longthread.view.condense import TOOL_MAX, cut_middle
from longthread.view.items import ViewItem, ViewPart, cost, cut_text, fit_unit, least, units_of, unthinking
from longthread.view.tokens import ANY, MESSAGE_OVERHEAD, estimate

SUMMARY = "[Conversation Summary]"
TOPICS = "[Recallable Topics]:"
HINT = "Use the recall_memory tool to retrieve details about any topic above."
RECALLED = "[Recalled from earlier]"
LEAST_TIER1 = 56
"""The least tokens of tier 1, unless that is more than a quarter of the budget."""
_LEAST_RESULT = 20
"""The least characters of a cut result."""
_Parts = Mapping[int, Sequence[ViewPart]]
"""Parts by the place of their unit."""


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A message in place of others. Without a text there is none."""

    text: str = ""
    tokens: int = 0

    @classmethod
    def of(cls, text: str, family: str) -> DigestMessage:
        return cls(text, estimate(text, family) + MESSAGE_OVERHEAD) if text else cls()


def share_of(budget: int, share: float) -> int:
    """The tokens of tier 1 in a budget."""
    return max(int(budget * share), min(LEAST_TIER1, budget // 4))


def tier1(summary: str, topics: Sequence[str]) -> str:
    """The text of tier 1 (document 004 §4.4), or empty."""
    parts = [f"{SUMMARY}\n{summary.strip()}"] if summary.strip() else []
    if topics:
        parts.append(f"{TOPICS} {', '.join(topics)}\n{HINT}")
    return "\n\n".join(parts)


def tier1_of(summary: str, topics: Sequence[str], budget: int, family: str) -> DigestMessage:
    """Tier 1 in at most `budget` tokens: the summary is cut, and topics may take half."""
    whole = DigestMessage.of(tier1(summary, topics), family)
    if whole.tokens <= budget:
        return whole
    names = list(topics)
    while names and DigestMessage.of(tier1("", names), family).tokens > budget // 2:
        names.pop()
    index = tier1("", names)
    room = budget - DigestMessage.of(index, family).tokens
    while True:
        text = digest_of(tier1(summary, ()), room, family).text
        fitted = DigestMessage.of("\n\n".join(each for each in (text, index) if each), family)
        if fitted.tokens <= budget:
            return fitted
        room -= fitted.tokens - budget


def digest_of(text: str, budget: int, family: str) -> DigestMessage:
    """A text, cut in the middle to at most `budget` tokens."""
    shown, limit = DigestMessage.of(text, family), len(text)
    while shown.tokens > budget:
        limit = int(limit * 0.95 * max(0, budget - MESSAGE_OVERHEAD) / shown.tokens)
        shown = DigestMessage.of(cut_middle(text, limit) if limit > 80 else "", family)
    return shown


@dataclass(frozen=True, slots=True)
class ViewConfig:
    """How a view is planned. `summary`, `condensed` and `whole` are shares of the budget (document 004 §4.1).

    `full_recent` messages at most are whole after planning (MEMORY_FULL_RECENT_COUNT), and condensed results have
    `tool_max` characters (MEMORY_CONDENSED_TOOL_MAX). `low_water` is the part of the tiers that planning fills with
    messages: the rest is for what comes. `max_length`: characters of the summary and all messages before the newest
    `full_recent` (MESSAGE_COMPRESS_MAX_LENGTH); None: the tiers alone rule.
    """

    full_recent: int = 10
    tool_max: int = TOOL_MAX
    summary: float = 0.10
    condensed: float = 0.35
    whole: float = 0.55
    low_water: float = 0.5
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class PreviousView:
    """The view of the call before: how each message that it knew went in, by key, and its summary.

    Messages that are not in `parts` are new. `gone` says that some messages that it showed are no longer available.
    """

    parts: Mapping[str, ViewPart]
    summary: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a call sees: the summary first, then the parts that are not left out, then the notes of this call: those
    that were given, and what was recalled.

    `tokens` is what all of it costs. `grown` says that it begins with the view before.
    """

    parts: Sequence[ViewPart]
    summary: DigestMessage = field(default_factory=DigestMessage)
    recalled: DigestMessage = field(default_factory=DigestMessage)
    noted: int = 0
    grown: bool = False

    @property
    def shown_parts(self) -> list[ViewPart]:
        """The parts that are seen."""
        return [part for part in self.parts if part.how != "left out"]

    @property
    def tokens(self) -> int:
        return cost(self.parts) + self.summary.tokens + self.recalled.tokens + self.noted


def compose(
    items: Sequence[ViewItem],
    budget: int,
    config: ViewConfig | None = None,
    *,
    summary: str = "",
    topics: Sequence[str] = (),
    recalled: str = "",
    noted: int = 0,
    before: PreviousView | None = None,
) -> View:
    """Choose what is shown of `items`, oldest first, so that all of it costs at most `budget` tokens.

    A tool call and its results are one unit, shown together or not at all; results without a call, and calls without
    all their results, are never shown. The newest user message is always in, cut in the middle if it must be.

    `summary`, of messages older than `items`, is tier 1 with `topics`. `recalled` belongs to this call alone and comes
    last, with other notes of `noted` tokens.
    """
    config = config or ViewConfig()
    family = items[0].family if items else ANY
    share = int(budget * config.summary)
    note = digest_of(f"{RECALLED}\n{recalled}" if recalled else "", share, family)
    room = budget - note.tokens - noted
    units = units_of(items)
    if before is not None and not before.gone:
        kept = DigestMessage.of(before.summary, family)
        parts = _grow_view(units, before, room - kept.tokens)
        if parts is not None and not _is_longer(units, parts, _beside(kept, config)):
            return View(_all(units, parts), kept, note, noted, grown=True)
    first = tier1_of(summary, topics, share_of(budget, config.summary), family)
    if config.max_length is not None and len(first.text) > config.max_length // 2:
        first = DigestMessage.of(cut_text(first.text, config.max_length // 2), family)
    # After another summary nothing begins where it did, and what is shown again only takes the room for what comes.
    start = _start_of(units, before) if before is not None and first.text == before.summary else None
    parts = _plan_view(units, room - first.tokens, _beside(first, config), before is not None, start)
    return View(_all(units, parts), first, note, noted)


def _beside(first: DigestMessage, config: ViewConfig) -> ViewConfig:
    """What is left for messages of the characters that all that is older may have."""
    return config if config.max_length is None else replace(config, max_length=config.max_length - len(first.text))


ViewParts = dict[int, Sequence[ViewPart]]
"""Parts of units, by the unit's place."""


def _all(units: Sequence[Sequence[ViewItem]], parts: ViewParts) -> list[ViewPart]:
    return [
        part for n, unit in enumerate(units) for part in parts.get(n) or [ViewPart(item, "left out") for item in unit]
    ]


def _grow_view(units: Sequence[Sequence[ViewItem]], before: PreviousView, room: int) -> ViewParts | None:
    """The view before with what is new at its end; None when that cannot be, or has no room."""
    parts: ViewParts = {}
    left = sum(part.how != "left out" for part in before.parts.values())
    for n, unit in enumerate(units):
        known = before.parts.get(unit[0].key)
        if known is None:
            if left:
                return None
            parts[n] = [item.whole for item in unit]
        elif known.how != "left out":
            parts[n] = [before.parts[item.key] for item in unit if item.key in before.parts]
            if len(parts[n]) < len(unit):
                return None
            left -= len(unit)
    fits = left == 0 and sum(cost(each) for each in parts.values()) <= room
    return parts if fits else None


def _plan_view(
    units: Sequence[Sequence[ViewItem]], room: int, config: ViewConfig, again: bool, start: int | None
) -> ViewParts:
    """What is shown when nothing of it is given. `again`: another view was planned before; `start` is the place of the
    oldest unit that it showed, if this one can begin there."""
    whole: ViewParts = {n: [item.whole for item in unit] for n, unit in enumerate(units)}
    fits = sum(cost(parts) for parts in whole.values()) <= room * (1 - (1 - config.low_water) / 2 if again else 1)
    if fits and not _is_longer(units, whole, config):
        return whole
    pinned = _pin(units)
    parts = _show_newest(units, pinned, room, config)
    if cost(parts[pinned]) > room:  # no question, and calls that have no room even without their arguments
        return _plan_view(units[:pinned], room, config, again, start if start is not None and start < pinned else None)
    edge = _add_whole(units, parts, whole, room, config)
    edge, spent = _add_thoughts(units, parts, range(edge - 1, pinned, -1), room, config) or (edge, 0)
    _add_condensed(units, parts, edge, room, config, start, spent)
    if config.max_length is not None and _is_longer(units, parts, config):
        parts = shorten_parts(parts, int(config.max_length * config.low_water), config.full_recent, pinned)
    return _in_room(parts, room, pinned)


def _pin(units: Sequence[Sequence[ViewItem]]) -> int:
    """The place of the newest user message, which is always shown."""
    return max((n for n, unit in enumerate(units) if unit[0].role == "user"), default=len(units) - 1)


def _is_longer(units: Sequence[Sequence[ViewItem]], parts: ViewParts, config: ViewConfig) -> bool:
    return is_longer(parts, config.max_length, config.full_recent, _pin(units))


def _show_newest(units: Sequence[Sequence[ViewItem]], pinned: int, room: int, config: ViewConfig) -> ViewParts:
    """Return the newest user message, and the newest unit: shown whatever their size, and whole as long as both fit
    along with the calls between them, condensed, as far as these have room in tier 2.

    Results are cut first. The question is cut only where not even the least of the newest unit has room next to it.
    """
    newest = len(units) - 1
    most = int(room * config.whole)
    if pinned == newest:
        return {newest: _newest(units[newest], room, most, config)}
    question, behind = [item.whole for item in units[pinned]], least(units[newest])
    if cost(question) + behind > room:
        question = fit_unit(units[pinned], max(most // 2, min(most, room - behind)), config.tool_max)
    left = room - cost(question)
    before = sum(cost(_thought(unit, config)) for unit in units[pinned + 1 : newest])
    free = left - min(before, int(room * config.condensed * config.low_water))
    share = max(left // 2, left - (room - most))
    parts = _newest(units[newest], free, min(share, free), config)
    if units[newest][0].thinking and parts[0].how != "whole":
        parts = _newest(units[newest], left, share, config)
    return {pinned: question, newest: parts}


def _newest(unit: Sequence[ViewItem], room: int, share: int, config: ViewConfig) -> Sequence[ViewPart]:
    """Return the newest unit whole, or cut to its share plus its thinking; with all the room where only that keeps the
    thinking."""
    if cost(item.whole for item in unit) <= room:
        return [item.whole for item in unit]
    most = min(room, share + unit[0].thinking)
    narrow = fit_unit(unit, most, config.tool_max)
    if cost(narrow) <= most and (narrow[0].how == "whole" or not unit[0].thinking):
        return narrow
    wide = fit_unit(unit, room, config.tool_max)
    return wide if cost(narrow) > most or wide[0].how == "whole" else narrow


def _add_whole(
    units: Sequence[Sequence[ViewItem]], parts: ViewParts, whole: ViewParts, room: int, config: ViewConfig
) -> int:
    """Tier 3: the newest units whole, as far as they fit. Returns the place of the oldest of them."""
    left = int(room * config.whole * config.low_water) - sum(cost(each) for each in parts.values())
    count = sum(len(units[n]) for n in parts)
    edge = len(units) - 1
    for n in range(len(units) - 2, -1, -1):
        if n not in parts:
            left, count = left - cost(whole[n]), count + len(units[n])
            if left < 0 or count > config.full_recent:
                break
            parts[n] = whole[n]
        edge = n
    return edge


def _add_thoughts(
    units: Sequence[Sequence[ViewItem]], parts: ViewParts, turn: Sequence[int], room: int, config: ViewConfig
) -> tuple[int, int] | None:
    """The units of the turn that goes on, at the places `turn`: with their thinking, which providers want back until
    the turn is over, and their results condensed. Where not all of them have room, the oldest go without.

    Returns the place of the oldest, and what is spent on them beyond tier 3; None when there are none.
    """
    if not any(units[n][0].thinking for n in turn):
        return None
    kept = {n: _thought(units[n], config) for n in turn}
    used, total = sum(cost(each) for each in parts.values()), sum(cost(each) for each in kept.values())
    if used + total <= room:
        parts |= kept
        return turn[-1], total
    left = room * (1 - (1 - config.low_water) / 2 - config.condensed * config.low_water) - used
    edge = turn[0] + 1
    for n in turn:
        left -= cost(kept[n])
        if left < 0:
            break
        parts[n], edge = kept[n], n
    return edge, 0


def _thought(unit: Sequence[ViewItem], config: ViewConfig) -> Sequence[ViewPart]:
    """A unit whose results are condensed, and the rest whole."""
    return [item.whole if item.answers is None else item.condense(config.tool_max) for item in unit]


def _add_condensed(
    units: Sequence[Sequence[ViewItem]],
    parts: ViewParts,
    edge: int,
    room: int,
    config: ViewConfig,
    start: int | None,
    spent: int,
) -> None:
    """Add tier 2: the units before place `edge`, condensed. After them, `spent` is what the turn's thinking is kept in.

    The tier begins at `start`, where the view before began, as long as it fits into its share: then the prompt's
    beginning stays the same. When it does not fit any longer, only so much is shown that it may grow again.
    """
    share, used = room * config.condensed, sum(cost(each) for each in parts.values())
    left = room - used - min(spent, room * (1 - config.low_water) / 2)
    most = max(1, int(share * config.low_water / 2))
    if start is not None:
        tier = {n: _condense_unit(units[n], most, config) for n in range(start, edge) if n not in parts}
        if sum(cost(each) for each in tier.values()) <= min(share, left - room * config.summary):
            parts |= tier
            return
    total, low = 0, min(share * config.low_water, left)
    for n in range(edge - 1, -1, -1):
        if n not in parts:
            shorter = _condense_unit(units[n], most, config)
            total += cost(shorter)
            if total > low:
                break
            parts[n] = shorter


def _condense_unit(unit: Sequence[ViewItem], most: int, config: ViewConfig) -> Sequence[ViewPart]:
    parts = [item.condense(config.tool_max) for item in unit]
    return parts if cost(parts) <= most else unthinking(unit, most, config.tool_max)


def _start_of(units: Sequence[Sequence[ViewItem]], before: PreviousView) -> int | None:
    """The place of the oldest unit that the view before showed, if the new one can begin there."""
    if before.gone:
        return None
    shown = {key for key, part in before.parts.items() if part.how != "left out"}
    return next((n for n, unit in enumerate(units) if unit[0].key in shown), None)


def _in_room(parts: ViewParts, room: int, pinned: int) -> ViewParts:
    """The parts without the oldest, where even so they have no room: many calls at once, say."""
    used = sum(cost(each) for each in parts.values())
    for n in sorted(parts):
        if used > room and n != pinned:
            used -= cost(parts.pop(n))
    return parts


def older(parts: _Parts, recent: int, pinned: int) -> list[int]:
    """The places of the units before the newest `recent` messages, without the pinned one."""
    count, places = 0, []
    for n in sorted(parts, reverse=True):
        if count >= recent and n != pinned:
            places.append(n)
        count += len(parts[n])
    return places[::-1]


def is_longer(parts: _Parts, most: int | None, recent: int, pinned: int) -> bool:
    """Whether the older messages have more than `most` characters (None: no limit)."""
    return most is not None and _length(parts[n] for n in older(parts, recent, pinned)) > most


def shorten_parts(parts: _Parts, most: int, recent: int, pinned: int) -> dict[int, Sequence[ViewPart]]:
    """Cuts older results, and then drops the oldest units, to at most `most` characters."""
    places = older(parts, recent, pinned)
    results = sum(part.item.role == "tool" for n in places for part in parts[n])
    rest = _length([part for part in parts[n] if part.item.role != "tool"] for n in places)
    limit = max(_LEAST_RESULT, (most - rest) // max(1, results))
    shown = dict(parts) | {n: [_cut(part, limit) for part in parts[n]] for n in places}
    for n in places:
        if _length(shown[each] for each in places if each in shown) <= most:
            break
        del shown[n]
    return shown


def _cut(part: ViewPart, limit: int) -> ViewPart:
    if part.item.role != "tool" or len(_text(part)) <= limit:
        return part
    return part.item.cut(limit, bare=part.bare)


def _length(units: Iterable[Sequence[ViewPart]]) -> int:
    return sum(len(_text(part)) for unit in units for part in unit)


def _text(part: ViewPart) -> str:
    if part.text is not None:
        return part.text
    return part.item.text if part.item.written is None else part.item.written

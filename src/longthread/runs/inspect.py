"""What past model calls saw and used: each entry of a view, how it was shown and why; and the tokens of all runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from longthread.access.prices import compute_cost
from longthread.context.window import (
    WindowMessage,
    as_answered,
    digest_messages,
    note_messages,
    shown_of,
    spots_of,
)
from longthread.errors import EntryNotFound
from longthread.llm.sql_protocol import render_answering, render_writing, write_message
from longthread.messages.message import Message
from longthread.model.entry import Entry
from longthread.model.run import TEXTS, How, Segment, Step, segments_of
from longthread.model.thread import active_ranges
from longthread.runs.protocol import as_text, without_malformed
from longthread.runs.views import Prompt
from longthread.settings import Price
from longthread.store import log, recall_index, runs
from longthread.store.branches import branch_points
from longthread.store.driver import Transaction
from longthread.store.run_rows import bare_steps
from longthread.tools.tool import Tool
from longthread.view.items import ViewEntry, show_part, units_of
from longthread.view.tokens import ANY

_CHUNK = 50
"""Steps that are read at a time."""
_END = 2**62


@dataclass(frozen=True, slots=True)
class InspectedCall:
    """A call's view. `number` counts the thread's model calls from 1.

    `why_planned` says why the view does not extend that of the call before; it is empty if it does. `system` is the
    system prompt, and `tools` the names of the tools that were offered.
    """

    number: int
    step: Step
    segments: Sequence[Segment]
    entries: Sequence[ViewEntry]
    why_planned: str
    system: str = ""
    tools: Sequence[str] = ()

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)


@dataclass(frozen=True, slots=True)
class ViewDifference:
    """How the views of two calls differ, as seqs. `same` counts the tokens that both begin with."""

    same: int
    entered: Sequence[int]
    left: Sequence[int]
    changed: Sequence[tuple[int, How, How]]


async def calls_of(tx: Transaction, thread_id: str) -> list[Step]:
    """Return the thread's model calls whose views are stored, oldest first."""
    return [step for step in await runs.steps_from(tx, thread_id, 0) if segments_of(step.manifest)]


async def calls_before(tx: Transaction, thread_id: str, stop: int | None, *, limit: int) -> list[Step]:
    """Return the last calls before step `stop` (None: the end) whose views are stored, oldest first; at least `limit`,
    if there are so many. It reads few steps more than it returns."""
    at = await runs.next_step(tx, thread_id) if stop is None else stop
    found: list[Step] = []
    while at > 0 and len(found) < limit:
        first = max(0, at - _CHUNK)
        steps = await runs.steps_between(tx, thread_id, first, at)
        found = [*(step for step in steps if segments_of(step.manifest)), *found]
        at = first
    return found


async def call_at(tx: Transaction, thread_id: str, index: int) -> Step:
    """Return the call at a step. Raises EntryNotFound: there is none whose view is stored."""
    for step in await runs.steps_between(tx, thread_id, index, index + 1):
        if segments_of(step.manifest):
            return step
    raise EntryNotFound(thread=thread_id, entry=f"with a view at step {index}")


async def look(tx: Transaction, calls: Sequence[Step], number: int) -> InspectedCall:
    """Return the view of call `number`. Raises EntryNotFound: no such call, or some of its entries were deleted."""
    if not 0 < number <= len(calls):
        raise EntryNotFound(thread=calls[0].thread_id if calls else "", entry=f"call {number}")
    step = calls[number - 1]
    segments = segments_of(step.manifest)
    prompt = await Prompt.of_step(tx, step)
    entries = await _entries(tx, step, segments, prompt)
    why = "the first call"
    if number > 1:
        before = calls[number - 2]
        earlier = await _entries(tx, before, segments_of(before.manifest), await Prompt.of_step(tx, before))
        why = _why(earlier, entries)
    system, tools = (prompt.system, [tool.name for tool in prompt.tools]) if prompt else ("", [])
    return InspectedCall(number, step, segments, entries, why, system, tools)


def difference(one: InspectedCall, other: InspectedCall) -> ViewDifference:
    mine, theirs = ([seen for seen in each.entries if seen.how != "left out"] for each in (one, other))
    same = 0
    for left, right in zip(mine, theirs, strict=False):
        if _compare_key(left) != _compare_key(right):
            break
        same += left.tokens
    ours = {seen.seq: seen.how for seen in mine if seen.how not in TEXTS}
    others = {seen.seq: seen.how for seen in theirs if seen.how not in TEXTS}
    return ViewDifference(
        same=same,
        entered=[seq for seq in ours if seq not in others],
        left=[seq for seq in others if seq not in ours],
        changed=[(seq, others[seq], how) for seq, how in ours.items() if others.get(seq, how) != how],
    )


async def _entries(tx: Transaction, step: Step, segments: Sequence[Segment], prompt: Prompt | None) -> list[ViewEntry]:
    # Everything before the last condensed message is tier 2, even if there was nothing to condense.
    edge = max((segment.last for segment in segments if segment.how == "condensed"), default=0)
    earlier = await _earlier(tx, step.thread_id, segments)
    begins, _ = await recall_index.first_seq(tx, step.thread_id)
    write = write_message if prompt is not None and prompt.spoken == "sql" else None
    found: list[ViewEntry] = []
    mark = 0
    for segment, spots in zip(segments, await seen_between(tx, step.thread_id, segments, begins), strict=True):
        if segment.how == "summary":
            text, mark = prompt.summary if prompt else "", segment.last
            told = _several(earlier, 1, mark)
            found.append(ViewEntry(mark, "user", "summary", segment.why, 1, segment.tokens, text, *told[::2]))
            continue
        if segment.how in TEXTS:
            text = prompt.notes.get(segment.how, "") if prompt else ""
            found.append(ViewEntry(segment.last, "user", segment.how, segment.why, None, segment.tokens, text, None, 0))
            continue
        for seq in range(segment.first, min(begins, segment.last + 1)):
            tier = None if segment.how == "left out" else 2 if seq <= edge else 3
            found.append(ViewEntry(seq, "", segment.how, "pruned", tier, 0, ""))
        for spot in spots:
            part = show_part(segment, spot.item_for(ANY, write))
            if part is None:
                found.append(
                    ViewEntry(spot.entry.seq, spot.entry.role, "left out", segment.why, None, 0, spot.item.text)
                )
                continue
            text = part.item.text if part.text is None else part.text
            tier = 2 if spot.entry.seq <= edge else 3
            found.append(ViewEntry(spot.entry.seq, spot.entry.role, part.how, None, tier, part.tokens, text))
    first, last, count = _several(earlier, mark + 1, _END)
    if count:
        place = 1 if found and found[0].how == "summary" else 0
        found.insert(place, ViewEntry(last, "", "left out", "window", None, 0, "", first, count))
    return found


async def _earlier(tx: Transaction, thread_id: str, segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """Return the ranges of the branch's entries before all that the call looked at."""
    begin = min((segment.first for segment in segments if segment.how not in TEXTS), default=0)
    first, _ = await recall_index.first_seq(tx, thread_id)
    if begin <= first:
        return []
    ranges = active_ranges(begin, await branch_points(tx, thread_id))
    return [(max(a, first), min(b, begin - 1)) for a, b in ranges if b >= first and a < begin]


def _several(ranges: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int, int]:
    there = [(max(a, first), min(b, last)) for a, b in ranges if a <= last and b >= first]
    if not there:
        return first, last, 0
    return min(a for a, _ in there), max(b for _, b in there), sum(b - a + 1 for a, b in there)


def _why(before: Sequence[ViewEntry], now: Sequence[ViewEntry]) -> str:
    """Say why a view does not begin with the view before; empty if it does."""
    old = [seen for seen in before if seen.tier is not None]
    new = [seen for seen in now if seen.tier is not None]
    if [_compare_key(seen) for seen in new[: len(old)]] == [_compare_key(seen) for seen in old]:
        return ""
    known = {seen.seq: seen for seen in now if seen.why != "window"}
    if any(seen.seq not in known for seen in old if seen.how != "summary"):
        return "the hot window has moved on, or another branch was taken"
    if any(known[seen.seq].why == "stale" for seen in old if seen.how != "summary"):
        return "another source, or another schema of it"
    return "the high-water mark was reached"


def _compare_key(seen: ViewEntry) -> tuple[int, str, int]:
    # Without its thinking a message has the same text and fewer tokens.
    return seen.seq, seen.text, seen.tokens


@dataclass(frozen=True, slots=True)
class Sent:
    """What a model call was sent: the messages, the system prompt first, and the tools that were offered."""

    messages: Sequence[Message]
    tools: Sequence[Tool]


async def sent(tx: Transaction, step: Step) -> Sent:
    """Reconstruct what a past model call was sent, from the entries, the manifest and the prompt. Raises
    EntryNotFound: some of it was deleted, or the step is not such a call."""
    prompt = await Prompt.of_step(tx, step)
    if prompt is None:
        raise EntryNotFound(thread=step.thread_id, entry=f"step {step.index}")
    middle = await _messages(tx, step)
    messages = without_malformed([*digest_messages(prompt.summary), *middle, *note_messages(prompt.notes)])
    if prompt.spoken == "native":
        return Sent([Message("system", prompt.system), *messages], prompt.tools)
    if prompt.spoken in ("sql", "answer"):
        shown = render_answering(messages) if prompt.spoken == "answer" else render_writing(messages)
        return Sent([Message("system", prompt.system), *shown], ())
    system, texts = as_text(prompt.system, messages, prompt.tools)
    return Sent([Message("system", system), *texts], ())


async def seen_between(
    tx: Transaction, thread_id: str, segments: Sequence[Segment], begins: int = 0
) -> list[Sequence[WindowMessage]]:
    """Return the messages of each segment as the view had them; none for a text. Entries before `begins` may be
    gone. Raises EntryNotFound: some of them were deleted."""
    found: list[Sequence[Entry]] = []
    for segment in segments:
        if segment.how in TEXTS:
            found.append(())
            continue
        entries = await log.entries_between(tx, thread_id, segment.first, segment.last)
        begin = max(begins, segment.first)
        if len(entries) <= segment.last - begin:
            raise EntryNotFound(thread=thread_id, entry=begin)
        found.append(entries)
    # A call may be in another segment than its result.
    spots = iter(as_answered(spots_of(chain.from_iterable(found))))
    return [list(islice(spots, len(entries))) for entries in found]


async def _messages(tx: Transaction, step: Step) -> list[Message]:
    parts, messages, segments = {}, {}, segments_of(step.manifest)
    for segment, spots in zip(segments, await seen_between(tx, step.thread_id, segments), strict=True):
        for spot in spots:
            part = show_part(segment, spot.item)
            if part is not None:
                parts[spot.item.key], messages[spot.item.key] = part, spot.message
    # Results go right after their calls, wherever they are in the log.
    order = [item for unit in units_of([part.item for part in parts.values()]) for item in unit]
    return [shown_of(messages[item.key], parts[item.key]) for item in order]


@dataclass(slots=True)
class ModelUsage:
    """Calls of one model, and the tokens that its provider counted. Of `uncounted` calls it said nothing;
    `cached_tokens` are those of the input that it had in its cache."""

    calls: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    def add(self, step: Step) -> None:
        """Add a call that has ended."""
        self.calls += 1
        self.uncounted += "input_tokens" not in step.usage
        self.input_tokens += step.usage.get("input_tokens", 0)
        self.output_tokens += step.usage.get("output_tokens", 0)
        self.cached_tokens += step.usage.get("cached_tokens", 0)

    def cost(self, price: Price) -> float:
        """Return what the counted tokens cost."""
        counted = {"tokens_in": self.input_tokens, "tokens_out": self.output_tokens, "cached": self.cached_tokens}
        return compute_cost(price, **counted)


@dataclass(slots=True)
class ThreadUsage:
    """What a thread and those below it have used: questions between agents belong to the conversation."""

    runs: int = 0
    tool_calls: int = 0
    models: dict[str, ModelUsage] = field(default_factory=dict)
    fallbacks: dict[str, ModelUsage] = field(default_factory=dict)
    """What other models answered in place of those, by the run's model."""

    def add(self, model: str, steps: Iterable[Step]) -> None:
        """Add a run of a model by its steps."""
        self.runs += 1
        for step in steps:
            if step.kind == "tool":
                self.tool_calls += 1
            elif step.status != "running":
                kind = self.fallbacks if step.usage.get("fallback") else self.models
                kind.setdefault(model, ModelUsage()).add(step)


async def usage_of(tx: Transaction, thread_id: str, *, user_id: str) -> ThreadUsage:
    """Return what a user's thread has used, with those below it. It reads all runs, without the results of their
    steps. Raises ThreadNotFound."""
    await log.find_thread(tx, thread_id, user_id=user_id)
    found = ThreadUsage()
    for each in (thread_id, *await log.threads_below(tx, thread_id, user_id=user_id)):
        for run, steps in await bare_steps(tx, each):
            found.add(run.model, await runs.steps_of(tx, run) if steps is None else steps)
    return found

"""What a view has no room for and no summary tells of yet: its digest, with the summary's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longthread.memory.summary.digest import Digest, cut_to, digest_entries, fitted, merged, tokens_of
from longthread.model.entry import Entry
from longthread.model.language import is_chinese
from longthread.view import tier1

LEAST = 60
"""Tokens that tier 1 must have for a digest: less would say nothing."""
_LEFT_OUT = {
    False: "{count} earlier messages{which} are left out here and can be recalled.",
    True: "前面 {count} 条消息{which}在此省略，可以调取。",
}
_ALL_LEFT_OUT = {
    False: "Earlier messages{which} are left out here and can be recalled.",
    True: "前面的消息{which}在此省略，可以调取。",
}
_WHICH = {False: " (numbers {first} to {last})", True: "（编号 {first} 至 {last}）"}
_UP_TO = {False: " (up to number {last})", True: "（至编号 {last}）"}


def told(
    summary: str,
    digest: Mapping[str, Any],
    entries: Sequence[Entry],
    topics: Sequence[str],
    share: int,
    family: str,
    about: tuple[str, str] | None = None,
) -> str:
    """The summary with what the entries behind it come to, so that with the topics it costs at most `share` tokens.

    It is no longer than half of that, or than the summary was, unless what is new needs it to keep its facts: what
    tier 1 gets, the messages do not have. Beside what a model wrote the digest has a quarter, or what is left of half.
    Where no model did, `digest` is what the summary says, and both are one. What was observed of another source, or of
    another schema of it, than the view is `about` is not told: it would be taken for known.

    Where there is no room for a digest, the text says which messages are left out.
    """
    room = max(share - _beside(topics, family), share // 2 - _beside((), family))
    before, old = tokens_of(summary), Digest.from_json(digest)
    stale = about is not None and old.source is not None and not old.is_about(*about)
    named = _left_out(summary, entries) if entries and share >= tier1.LEAST else ""
    if room < LEAST:
        return named or summary
    if not entries and (not digest or (before <= room and not stale)):
        return summary
    new = digest_entries(entries)
    if digest or not summary.strip():
        # What a digest has a line of may be too long for the room.
        return _text(merged(old.said if stale else old, new), new, max(before, room // 2), room) or named
    text = _text(new, new, max(room // 4, room // 2 - before), room // 2).strip() or named
    return "\n\n".join(part for part in (cut_to(summary, room - tokens_of(text)).strip(), text) if part)


def _left_out(summary: str, entries: Sequence[Entry]) -> str:
    """Which messages are left out, in the conversation's language; with a summary, for which there is no room either,
    all of those before as well."""
    questions = [entry.text for entry in entries if entry.role == "user"]
    chinese = 2 * sum(map(is_chinese, questions)) > len(questions)
    words, numbers = (_ALL_LEFT_OUT, _UP_TO) if summary.strip() else (_LEFT_OUT, _WHICH)
    # Messages of a state that is no thread of the log are counted from where it begins now: that says nothing.
    logged = entries[0].thread_id
    which = numbers[chinese].format(first=entries[0].seq, last=entries[-1].seq) if logged else ""
    return words[chinese].format(count=len(entries), which=which)


def _beside(topics: Sequence[str], family: str) -> int:
    """What tier 1 costs beside the summary. Topics that take more than half of it are left out there."""
    return tier1.DigestMessage.of(tier1.tier1("…\n\n", topics), family).tokens


def _text(whole: Digest, new: Digest, limit: int, most: int) -> str:
    """A digest in `limit` tokens, or `most` where with less not all facts of what is new are in it."""
    shown = fitted(whole, min(limit, most))
    if not set(new.items.get("told", ())) <= set(shown.items.get("told", ())):
        shown, limit = fitted(whole, most), most
    return cut_to(shown.text(), min(limit, most))

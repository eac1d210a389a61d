"""The digest of what a view has no room for and no summary covers yet, with the summary's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from longthread.memory.summary.digest import Digest, cut_to, digest_entries, fitted, merged, tokens_of
from longthread.model.entry import Entry
from longthread.model.language import is_chinese
from longthread.view import tier1

LEAST = 60
"""Tokens that tier 1 must have for a digest: fewer would be useless."""
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


def summary_with_digest(
    summary: str,
    digest: Mapping[str, Any],
    entries: Sequence[Entry],
    topics: Sequence[str],
    share: int,
    family: str,
    about: tuple[str, str] | None = None,
) -> str:
    """Return the summary with a digest of the entries behind it; with the topics it costs at most `share` tokens.

    The text has at most half of that, or the summary's length, unless new facts need more: what tier 1 gets, the
    messages lose. Beside a model's summary the digest has a quarter, or what is left of the half. If no model wrote the
    summary, `digest` is its data, and both are one. Observations of another source or schema than `about` are left out:
    the model would take them for known.

    If there is no room for a digest, the text says which messages are left out.
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
        # Even one line of a digest may be too long.
        return _text(merged(old.said if stale else old, new), new, max(before, room // 2), room) or named
    text = _text(new, new, max(room // 4, room // 2 - before), room // 2).strip() or named
    return "\n\n".join(part for part in (cut_to(summary, room - tokens_of(text)).strip(), text) if part)


def _left_out(summary: str, entries: Sequence[Entry]) -> str:
    """Say which messages are left out, in the conversation's language; with a summary that has no room, all before
    them too."""
    questions = [entry.text for entry in entries if entry.role == "user"]
    chinese = 2 * sum(map(is_chinese, questions)) > len(questions)
    words, numbers = (_ALL_LEFT_OUT, _UP_TO) if summary.strip() else (_LEFT_OUT, _WHICH)
    # Outside of a thread of the log, seqs count from the current beginning and mean nothing.
    logged = entries[0].thread_id
    which = numbers[chinese].format(first=entries[0].seq, last=entries[-1].seq) if logged else ""
    return words[chinese].format(count=len(entries), which=which)


def _beside(topics: Sequence[str], family: str) -> int:
    """Return the tokens of tier 1 beside the summary. Topics of more than half of it are left out there."""
    return tier1.DigestMessage.of(tier1.tier1("…\n\n", topics), family).tokens


def _text(whole: Digest, new: Digest, limit: int, most: int) -> str:
    """Return a digest in `limit` tokens, or in `most` if it would lose new facts."""
    shown = fitted(whole, min(limit, most))
    if not set(new.items.get("told", ())) <= set(shown.items.get("told", ())):
        shown, limit = fitted(whole, most), most
    return cut_to(shown.text(), min(limit, most))

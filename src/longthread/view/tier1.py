"""Tier 1 of a view: summary, topics and recalled entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from longthread.view.condense import cut_middle
from longthread.view.tokens import MESSAGE_OVERHEAD, estimate

SUMMARY = "[Conversation Summary]"
TOPICS = "[Recallable Topics]:"
HINT = "Use the recall_memory tool to retrieve details about any topic above."
RECALLED = "[Recalled from earlier]"
LEAST = 56
"""The least tokens of tier 1, unless that is more than a quarter of the budget."""


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
    return max(int(budget * share), min(LEAST, budget // 4))


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

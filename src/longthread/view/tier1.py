"""Tier 1 of a view, the summary and the topics, and what was recalled for one call."""

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
"""Tokens that tier 1 has in any window, as long as that is no more than a quarter: enough to say what is left out."""


@dataclass(frozen=True, slots=True)
class DigestMessage:
    """A message that stands for others. Without a text there is none, and it costs nothing."""

    text: str = ""
    tokens: int = 0

    @classmethod
    def of(cls, text: str, family: str) -> DigestMessage:
        """The text as it is."""
        return cls(text, estimate(text, family) + MESSAGE_OVERHEAD) if text else cls()


def share_of(budget: int, share: float) -> int:
    """The tokens of a budget that are tier 1's."""
    return max(int(budget * share), min(LEAST, budget // 4))


def tier1(summary: str, topics: Sequence[str]) -> str:
    """The text of tier 1 (document 004 §4.4); empty without either."""
    parts = [f"{SUMMARY}\n{summary.strip()}"] if summary.strip() else []
    if topics:
        parts.append(f"{TOPICS} {', '.join(topics)}\n{HINT}")
    return "\n\n".join(parts)


def tier1_of(summary: str, topics: Sequence[str], budget: int, family: str) -> DigestMessage:
    """Tier 1 in at most `budget` tokens: the summary is cut in the middle, and of the topics the last ones go where
    they would take more than half."""
    whole = DigestMessage.of(tier1(summary, topics), family)
    if whole.tokens <= budget:
        return whole
    names = list(topics)
    while names and DigestMessage.of(tier1("", names), family).tokens > budget // 2:
        names.pop()
    index = tier1("", names)
    room = budget - DigestMessage.of(index, family).tokens
    while True:
        told = digest_of(tier1(summary, ()), room, family).text
        fitted = DigestMessage.of("\n\n".join(text for text in (told, index) if text), family)
        if fitted.tokens <= budget:
            return fitted
        room -= fitted.tokens - budget


def digest_of(text: str, budget: int, family: str) -> DigestMessage:
    """The text, cut in the middle to at most `budget` tokens."""
    shown, limit = DigestMessage.of(text, family), len(text)
    while shown.tokens > budget:
        limit = int(limit * 0.95 * max(0, budget - MESSAGE_OVERHEAD) / shown.tokens)
        shown = DigestMessage.of(cut_middle(text, limit) if limit > 80 else "", family)
    return shown

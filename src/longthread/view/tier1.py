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


@dataclass(frozen=True, slots=True)
class Digest:
    """A message that stands for others. Without a text there is none, and it costs nothing."""

    text: str = ""
    tokens: int = 0

    @classmethod
    def of(cls, text: str, family: str) -> Digest:
        """The text as it is."""
        return cls(text, estimate(text, family) + MESSAGE_OVERHEAD) if text else cls()


def tier1(summary: str, topics: Sequence[str]) -> str:
    """The text of tier 1 (document 004 §4.4); empty without either."""
    parts = [f"{SUMMARY}\n{summary.strip()}"] if summary.strip() else []
    if topics:
        parts.append(f"{TOPICS} {', '.join(topics)}\n{HINT}")
    return "\n\n".join(parts)


def digest_of(text: str, budget: int, family: str) -> Digest:
    """The text, cut in the middle to at most `budget` tokens."""
    shown, limit = Digest.of(text, family), len(text)
    while shown.tokens > budget:
        limit = int(limit * 0.95 * max(0, budget - MESSAGE_OVERHEAD) / shown.tokens)
        shown = Digest.of(cut_middle(text, limit) if limit > 80 else "", family)
    return shown

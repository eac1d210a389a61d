"""Pages of a long message, each small enough for the model's next view, where its window is known."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.memory.search.excerpt import start_of
from longthread.view.tokens import ANY, estimate

WHOLE_CHARS = 20_000
"""The most characters of a page."""
_LEAST_CHARS = 200
"""The least characters of a page, however small the window is."""
_SHARE = 0.4
"""A page's share of a view's budget, which also holds the question, and perhaps another page."""
_MORE = 40
"""Tokens of the note on how to continue."""


@dataclass(frozen=True, slots=True)
class PageRoom:
    """The budget of a view's messages in tokens of a family of models; 0 if unknown."""

    budget: int = 0
    family: str = ANY

    @property
    def tokens(self) -> int:
        """The tokens of a page."""
        return int(self.budget * _SHARE)

    def has_for(self, beside: Mapping[str, Any]) -> bool:
        """Whether `beside` leaves half of a page for its text."""
        return not self.budget or self._cost(beside) <= self.tokens // 2

    def page(self, text: str, begins: int, beside: Mapping[str, Any]) -> int:
        """The end of the page of a text that begins there and is shown with `beside`."""
        size = min(len(text) - begins, WHOLE_CHARS)
        left = max(1, self.tokens - self._cost(beside) - _MORE)
        while self.budget and size > _LEAST_CHARS:
            cost = self._cost(text[begins : begins + size])
            if cost <= left:
                break
            size = max(_LEAST_CHARS, int(size * 0.95 * left / cost))
        return min(len(text), begins + size)

    def start(self, text: str, wanted: Collection[str], beside: Mapping[str, Any]) -> int:
        """The beginning of the page with most of the `wanted` terms."""
        begins, size = 0, self.page(text, 0, beside)
        while True:
            begins = start_of(text, wanted, size)
            fits = self.page(text, begins, beside) - begins
            if fits >= min(size, len(text) - begins):
                return begins
            size = fits  # this part of the text costs more than its beginning

    def _cost(self, value: Any) -> int:
        return estimate(json.dumps(value, ensure_ascii=False), self.family)

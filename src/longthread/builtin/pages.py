"""The pages in which a model reads a long message: each is shown whole in its next view, where the window is known."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from longthread.memory.search.excerpt import start_of
from longthread.view.tokens import ANY, estimate

WHOLE_CHARS = 20_000
"""Characters of a page at most."""
_LEAST_CHARS = 200
"""And at least, however small the window is: a page must go on."""
_SHARE = 0.4
"""What a page may take of the budget of a view: the question stands beside it, and perhaps another page."""
_MORE = 40
"""Tokens of what tells where to go on."""


@dataclass(frozen=True, slots=True)
class PageRoom:
    """What a view's messages may cost in all: `budget` tokens of a family of models, 0 where that is not known."""

    budget: int = 0
    family: str = ANY

    @property
    def tokens(self) -> int:
        """What a page may cost."""
        return int(self.budget * _SHARE)

    def has_for(self, beside: Mapping[str, Any]) -> bool:
        """Whether a page has room for what stands beside its text, and is still a page."""
        return not self.budget or self._cost(beside) <= self.tokens // 2

    def page(self, said: str, begins: int, beside: Mapping[str, Any]) -> int:
        """Where the page of a text ends that begins there.

        Args:
            beside: what is told with it.
        """
        size = min(len(said) - begins, WHOLE_CHARS)
        left = max(1, self.tokens - self._cost(beside) - _MORE)
        while self.budget and size > _LEAST_CHARS:
            cost = self._cost(said[begins : begins + size])
            if cost <= left:
                break
            size = max(_LEAST_CHARS, int(size * 0.95 * left / cost))
        return min(len(said), begins + size)

    def start(self, said: str, wanted: Collection[str], beside: Mapping[str, Any]) -> int:
        """Where the page begins that has most of the `wanted` terms."""
        begins, size = 0, self.page(said, 0, beside)
        while True:
            begins = start_of(said, wanted, size)
            fits = self.page(said, begins, beside) - begins
            if fits >= min(size, len(said) - begins):
                return begins
            size = fits  # what stands there costs more than what the text begins with

    def _cost(self, value: Any) -> int:
        return estimate(json.dumps(value, ensure_ascii=False), self.family)

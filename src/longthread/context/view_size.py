"""How much smaller a view is than the messages that it was made of: for metrics, the log and traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from longthread.context.window import FittedView, ViewRequest, WindowMessage
from longthread.metrics import VIEW_MESSAGES, VIEW_TOKENS, VIEWS


@dataclass(frozen=True, slots=True)
class ViewSize:
    """The size of a view.

    `before` are the estimated tokens of the window's whole messages, and `after` those of the view with
    its summary and notes. `messages` are counted by how they were shown; `is_grown` says that the view begins with the
    one before.
    """

    before: int
    after: int
    messages: Mapping[str, int]
    is_grown: bool

    @classmethod
    def of(cls, fitted: FittedView, spots: Sequence[WindowMessage], wanted: ViewRequest) -> ViewSize:
        shown = Counter(part.how.replace(" ", "_") for part in fitted.view.parts)
        shown["left_out"] += len(spots) - shown.total()  # the window has moved past them, or they are stale
        before = sum(wanted.item_of(spot).tokens for spot in spots)
        return cls(before, fitted.view.tokens, shown, fitted.view.grown)

    @property
    def attributes(self) -> dict[str, Any]:
        """What a span of the model call tells of it."""
        return {
            "gen_ai.conversation.compacted": self.after < self.before,
            "longthread.view.tokens_before": self.before,
            "longthread.view.tokens_after": self.after,
            "longthread.view.planned": not self.is_grown,
        }

    def count(self) -> None:
        """Count the view: once for each model call, however often its view was made smaller."""
        VIEWS.add("grown" if self.is_grown else "planned")
        VIEW_TOKENS.add("before", by=self.before)
        VIEW_TOKENS.add("after", by=self.after)
        for how, count in self.messages.items():
            if count:
                VIEW_MESSAGES.add(how, by=count)


def sum_sizes(sizes: Iterable[ViewSize]) -> dict[str, int]:
    """Return what the views of a run had together, by the names of the log's fields."""
    sizes = list(sizes)
    return {
        "views": len(sizes),
        "views_planned": sum(not each.is_grown for each in sizes),
        "tokens_before": sum(each.before for each in sizes),
        "tokens_after": sum(each.after for each in sizes),
        "messages_condensed": sum(each.messages.get(how, 0) for each in sizes for how in ("condensed", "cut")),
        "messages_left_out": sum(each.messages.get("left_out", 0) for each in sizes),
    }

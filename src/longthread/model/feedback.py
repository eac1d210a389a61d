"""What a person thinks of an answer: whether it helped, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, get_args

from longthread.model.thread import RESERVED

Opinion = Literal["up", "down"]
"""Thumbs."""
FEEDBACK = f"{RESERVED}feedback"
"""The key of a message's metadata that holds it."""
FEEDBACK_LENGTH = 2_000
"""Characters of the sentence."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """An opinion of an answer, since `at`. `text` says why, or is empty."""

    opinion: Opinion
    at: datetime
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"opinion": self.opinion, "text": self.text, "at": self.at.isoformat(timespec="microseconds")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Raises ValueError, TypeError or KeyError for what `to_json` did not write."""
        if data["opinion"] not in get_args(Opinion):
            raise ValueError(f"{data['opinion']!r} is no opinion")
        return cls(data["opinion"], datetime.fromisoformat(data["at"]), str(data["text"])[:FEEDBACK_LENGTH])

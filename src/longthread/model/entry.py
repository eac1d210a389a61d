"""An entry: one immutable message of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from longthread.model.content import said_beside
from longthread.model.payload import is_short, whole_payload

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run one tool. `args` is the decoded argument object."""

    id: str
    name: str
    args: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "name": self.name, "args": dict(self.args)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCall:
        return cls(id=data["id"], name=data["name"], args=data["args"])


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry before the log has given it a place.

    `payload` is whatever of the raw message the other fields do not hold, as its sender wrote it; with them it
    restores the message exactly. None when the fields say it all.
    """

    id: str
    role: Role
    text: str
    tool_calls: Sequence[ToolCall] = ()
    tool_call_id: str | None = None
    name: str | None = None
    payload: bytes | None = None
    tokens: int | None = None
    latency_ms: int | None = None
    run_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def told(self) -> bytes | None:
        """The payload with nothing of it told in short."""
        return whole_payload(self.payload, self.text, self.metadata) if is_short(self.payload) else self.payload

    @property
    def beside(self) -> str:
        """What the message says beside its text and its calls."""
        return said_beside(self.payload)


@dataclass(frozen=True, slots=True)
class Entry(Draft):
    """An entry of the log.

    `seq` counts the thread's entries from 1 in the order they were written, over all branches. `parent_seq` is the
    entry before it on its branch, 0 for a branch's first. `metadata["kind"]` is `"question"`,
    `"answer"`, `"summary"`, `"malformed"` or absent.
    """

    thread_id: str = ""
    seq: int = 0
    parent_seq: int = 0
    created_at: datetime = field(default_factory=lambda: datetime.min)

    @property
    def kind(self) -> str | None:
        """What the entry is for, beyond its role."""
        value = self.metadata.get("kind")
        return str(value) if value is not None else None

    def says_the_same_as(self, draft: Draft) -> bool:
        """Whether storing `draft` here would store nothing new."""
        same = all(getattr(self, name) == getattr(draft, name) for name in _CONTENT)
        return same and self.told == draft.told and tuple(self.tool_calls) == tuple(draft.tool_calls)


_CONTENT = ("role", "text", "tool_call_id", "name")

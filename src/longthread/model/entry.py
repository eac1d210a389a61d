"""An entry: one immutable message of a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from longthread.model.content import extra_text
from longthread.model.payload import SEALED_NOTE, SEALED_PAYLOAD, whole_payload

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
    """An entry that is not in the log yet.

    `payload` holds what the other fields lack of the raw message, so that both restore it exactly; None if that is
    nothing.
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
    def full_payload(self) -> bytes | None:
        """The payload with its shortened parts restored."""
        return whole_payload(self.payload, self.text, self.metadata)

    @property
    def shown_text(self) -> str:
        """The text for people; where only an application's serializer can read it, a note that says so."""
        sealed = not self.text and self.payload is not None and self.payload.startswith(SEALED_PAYLOAD)
        return SEALED_NOTE if sealed else self.text

    @property
    def extra_text(self) -> str:
        """The searchable text of the message beside its text and its calls."""
        return extra_text(self.payload, self.text)


@dataclass(frozen=True, slots=True)
class Entry(Draft):
    """An entry of the log.

    `seq` counts the thread's entries from 1, over all branches. `parent_seq` is the entry before it on its branch, or
    0. `replaces` is the entry whose place this later version of a message takes, or 0. A branch shows the newest
    version under the `seq` and `parent_seq` of that place. `metadata["kind"]` is `"question"`, `"answer"`, `"summary"`,
    `"interrupted"`, `"chunk"`, `"malformed"` or absent.
    """

    thread_id: str = ""
    seq: int = 0
    parent_seq: int = 0
    created_at: datetime = field(default_factory=lambda: datetime.min)
    replaces: int = 0

    @property
    def kind(self) -> str | None:
        """What the entry is for, beyond its role."""
        value = self.metadata.get("kind")
        return str(value) if value is not None else None

    @property
    def is_imported_memory(self) -> bool:
        """Whether an import took it from another program's memory of the thread. It is on a branch of its own, but
        took the place of nothing."""
        return self.role == "system" and self.kind in ("chunk", "summary")

    def says_the_same_as(self, draft: Draft) -> bool:
        """Whether storing `draft` here would store nothing new."""
        same = all(getattr(self, name) == getattr(draft, name) for name in _CONTENT)
        return same and self.full_payload == draft.full_payload and tuple(self.tool_calls) == tuple(draft.tool_calls)


_CONTENT = ("role", "text", "tool_call_id", "name")

"""Calls that need a person's approval, and the decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from longthread.errors import InvalidInput

Choice = Literal["approve", "edit", "reject"]
CHOICES: tuple[Choice, ...] = ("approve", "edit", "reject")
Outcome = Literal["approve", "edit", "reject", "superseded"]
"""The outcome of a call. `superseded`: another question came, or the run was stopped."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's decision about a call: approve it, edit its arguments (`args`), or reject it with a `message`. `tool`
    is the tool that an edit names, which it cannot change."""

    type: Choice = "approve"
    args: Mapping[str, Any] = field(default_factory=dict)
    message: str | None = None
    tool: str | None = None

    @classmethod
    def of(cls, data: Any) -> Decision:
        """Parses a decision of LangChain's human-in-the-loop middleware: `{"type": "approve"}`, `{"type": "edit",
        "edited_action": {"name", "args"}}` (or just `args`), `{"type": "reject", "message"?}`. Raises InvalidInput."""
        if not isinstance(data, Mapping) or data.get("type") not in CHOICES:
            raise InvalidInput(reason=f"A decision is an object with a `type`: one of {', '.join(CHOICES)}.")
        action = data.get("edited_action")
        args: Any = action.get("args") if isinstance(action, Mapping) else data.get("args")
        message = data.get("message")
        if data["type"] == "edit" and not isinstance(args, Mapping):
            raise InvalidInput(reason="An edit gives the arguments of the call, an object, as `edited_action.args`.")
        if message is not None and not isinstance(message, str):
            raise InvalidInput(reason="The `message` of a decision is a text.")
        if data["type"] != "edit":
            return cls(data["type"], message=message or None)
        tool = action.get("name") if isinstance(action, Mapping) else None
        return cls("edit", dict(args), message or None, None if tool is None else str(tool))


@dataclass(frozen=True, slots=True)
class Approval:
    """A call of a tool with `approve`.

    `message_id` is the reply with the call, `place` its place there. `args` include defaults; edited ones must fit the
    schema `parameters`. `decision` is None while the call waits; `message` is the reason of a rejection.
    """

    thread_id: str
    run_id: str
    message_id: str
    call_id: str
    place: int
    tool: str
    description: str
    args: Mapping[str, Any]
    parameters: Mapping[str, Any]
    asked_at: datetime
    decision: Outcome | None = None
    edited: Mapping[str, Any] | None = None
    message: str | None = None
    by: str | None = None
    at: datetime | None = None

    @property
    def made_with(self) -> Mapping[str, Any]:
        """The final arguments of the call."""
        return self.args if self.edited is None else self.edited

    def request(self) -> dict[str, Any]:
        """The request for a person."""
        return {
            "id": self.call_id,
            "tool": self.tool,
            "description": self.description,
            "args": dict(self.args),
            "parameters": dict(self.parameters),
        }

    def to_json(self) -> dict[str, Any]:
        """The call with its decision."""
        edited = {} if self.edited is None else {"edited": dict(self.edited)}
        note = {} if self.message is None else {"message": self.message}
        return {
            "id": self.call_id,
            "run": self.run_id,
            "tool": self.tool,
            "args": dict(self.args),
            "asked_at": self.asked_at.isoformat(),
            "decision": self.decision,
            **edited,
            **note,
            "by": self.by,
            "decided_at": self.at.isoformat() if self.at else None,
        }

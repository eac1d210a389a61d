"""The events of a run, from AG-UI's that a server sends: a run is shown alike wherever it is executed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from longthread.cli.remote.client import ServerAnswer, error_of
from longthread.errors import RunNotExecuted
from longthread.model.run import Event, EventType

_NOTE = "longthread"
_ENDS = {"finished", "paused", "failed", "waiting"}


class EventReader:
    """Reads one run's events in their order."""

    def __init__(self, thread_id: str, run_id: str, *, has_started: bool) -> None:
        self.thread_id = thread_id
        self.run_id = run_id
        self._has_started = has_started
        self._actions: dict[str, str] = {}
        self._args: dict[str, str] = {}
        self._step: ServerAnswer = {}

    def read(self, place: str, sent: ServerAnswer) -> Event | None:
        """Return the event that AG-UI's event with this id completes, if it completes one.

        Raises:
            RunNotExecuted: the run's process is gone.
        """
        self.run_id = str(sent.get("runId") or self.run_id)
        made = self._read(sent)
        if made is None:
            return None
        number, _, part = place.partition(".")
        seq = (int(number) if number.isdecimal() else 0) + bool(part)
        moment = datetime.fromtimestamp((sent.get("timestamp") or 0) / 1000, UTC)
        return Event(self.thread_id, self.run_id, seq, made[0], made[1], moment)

    def _read(self, sent: ServerAnswer) -> tuple[EventType, ServerAnswer] | None:
        match sent.get("type"):
            case "RUN_STARTED" if not self._has_started:  # it also starts again after a decision
                self._has_started = True
                return "started", _note(sent)
            case "TEXT_MESSAGE_CONTENT":
                return "text", {"message_id": sent["messageId"], "delta": sent["delta"]}
            case "REASONING_MESSAGE_CONTENT":
                return "thought", {"text": sent["delta"], "message_id": sent["messageId"].removesuffix(".thought")}
            case "STEP_STARTED":
                return self._begin_step(_note(sent), str(sent["stepName"]))
            case "TOOL_CALL_ARGS":
                self._args[sent["toolCallId"]] = self._args.get(sent["toolCallId"], "") + sent["delta"]
            case "TOOL_CALL_END":
                return self._describe_step(sent["toolCallId"])
            case "TOOL_CALL_RESULT":
                return self._end_step(sent)
            case "CUSTOM":
                return self._read_custom(sent)
            case "RUN_FINISHED":
                return read_outcome(sent.get("result") or {})
            case "RUN_ERROR":
                return read_outcome(_note(sent) | {"status": "failed"})
        return None

    def _begin_step(self, note: ServerAnswer, name: str) -> tuple[EventType, ServerAnswer] | None:
        call_id = str(note["call_id"])
        is_again = call_id in self._actions  # another process makes the call again: its arguments do not come again
        self._actions[call_id], self._step = name.partition(":")[2], note
        return self._describe_step(call_id) if is_again else None

    def _describe_step(self, call_id: str) -> tuple[EventType, ServerAnswer]:
        return "step_started", {"step": self._step.get("step"), **self._describe_call(call_id)}

    def _describe_call(self, call_id: str) -> ServerAnswer:
        args = json.loads(self._args.get(call_id) or "{}")
        return {"action": self._actions.get(call_id, ""), "args": args, "call_id": call_id}

    def _end_step(self, sent: ServerAnswer) -> tuple[EventType, ServerAnswer]:
        note, call_id = _note(sent), str(sent["toolCallId"])
        return "step_finished", {
            "step": note.get("step"),
            **self._describe_call(call_id),
            "ok": note.get("ok"),
            "observation": json.loads(sent["content"]),
            "elapsed_ms": note.get("elapsed_ms"),
        }

    def _read_custom(self, sent: ServerAnswer) -> tuple[EventType, ServerAnswer] | None:
        value = sent.get("value") or {}
        match sent.get("name"):
            case "longthread.warning":
                return "warning", {"message": value["message"]}
            case "longthread.decided":
                return "decided", {"calls": value["calls"], "pending": 0}
            case "longthread.interrupted":
                raise RunNotExecuted(thread=self.thread_id)
        return None


def read_outcome(result: ServerAnswer) -> tuple[EventType, ServerAnswer] | None:
    """Return the event that ended a run, from its outcome with its `status`; None if it has not ended."""
    status = result.pop("status", None)
    if status not in _ENDS:
        return None
    error = result.get("error")
    if isinstance(error, dict):  # the server has worded it for clients of HTTP
        known = error_of(str(error.get("type")), error.get("params"), str(error.get("message")))
        result["error"] = error | {"message": str(known)}
    return status, result


def _note(sent: ServerAnswer) -> Any:
    return dict((sent.get("metadata") or {}).get(_NOTE) or {})

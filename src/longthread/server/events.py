"""A run's events in the vocabulary of AG-UI 1.0.

The output depends on the run's events, from its first, and on the language alone. A stream that was cut can therefore
continue from stored events (see `longthread.server.stream`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from ag_ui import core as agui
from pydantic import Field

from longthread.model.run import Event
from longthread.server.page import PageLanguage, translate_observation, translate_text
from longthread.server.problems import error_for_http

WARNING = "longthread.warning"
"""Custom event, value `{"message"}`: something was cut, retried or not parsed."""
WITHDRAWN = "longthread.text_withdrawn"
"""Custom event, value `{"message_id"}`: this text is no answer, but a thought or an aborted attempt."""
DECIDED = "longthread.decided"
"""Custom event, value `{"calls": [{id, tool, decision, by, args?, message?}]}`: a person's decisions."""
INTERRUPTED = "longthread.interrupted"
"""Custom event, value `{}`: the process that executed the run is gone. Run and stream can be resumed."""
REMOVED = "longthread.question_removed"
"""Custom event, value `{"queued_id"}`, the last one of a question that was removed from its queue."""
NOTE = "longthread"
"""Key in an event's `metadata` for what AG-UI has no field for."""
_OfRun = (
    agui.RunStartedEvent
    | agui.TextMessageStartEvent
    | agui.TextMessageContentEvent
    | agui.TextMessageEndEvent
    | agui.ReasoningStartEvent
    | agui.ReasoningMessageStartEvent
    | agui.ReasoningMessageContentEvent
    | agui.ReasoningMessageEndEvent
    | agui.ReasoningEndEvent
    | agui.StepStartedEvent
    | agui.ToolCallStartEvent
    | agui.ToolCallArgsEvent
    | agui.ToolCallEndEvent
    | agui.ToolCallResultEvent
    | agui.StepFinishedEvent
    | agui.CustomEvent
    | agui.RunFinishedEvent
    | agui.RunErrorEvent
)
SentEvent = Annotated[_OfRun, Field(discriminator="type")]
"""One of AG-UI's events that a run's stream is made of."""
AgUiEvent = Annotated[_OfRun | agui.MessagesSnapshotEvent, Field(discriminator="type")]
"""The same for AG-UI's endpoint, which also sends the whole conversation."""


class Encoder:
    """Encodes the events of one run, in order from the first, for a client that reads a language."""

    def __init__(self, language: PageLanguage = "en") -> None:
        self._language = language
        self._text_id: str | None = None
        self._text = ""
        self._parent_id: str | None = None
        self._steps: dict[str, str] = {}
        self._calls: set[str] = set()
        self._model = ""
        self._metadata: dict[str, Any] = {}
        self._waits = False
        self._decided_calls: list[Any] = []

    def encode(self, event: Event) -> list[agui.BaseEvent]:
        """The AG-UI events of `event`. Whatever one opens is closed before the run's end.

        In AG-UI a run that waits for a person finishes with an interrupt, and starts again under the same id.
        """
        goes_on = self._waits and event.type not in {"waiting", "decided"}
        made = [*(self._started_again(event) if goes_on else []), *self._encode_event(event)]
        for each in made:
            each.timestamp = _stamp(event)
        return made

    def more_text(self, event: Event) -> str | None:
        """The AG-UI event, as JSON, of text that only continues an open message; None for all else, to `encode`.

        A stream is mostly such text, and AG-UI's models take ten times as long.
        """
        if event.type != "text" or self._waits or event.data["message_id"] != self._text_id:
            return None
        delta = str(event.data["delta"])
        self._text += delta
        said = f'"messageId":{_dump(self._text_id)},"delta":{_dump(delta)}'
        return f'{{"type":"TEXT_MESSAGE_CONTENT","timestamp":{_stamp(event)},{said}}}'

    def stands_as(self, other: Encoder) -> bool:
        """Whether both encode whatever follows alike."""
        return vars(self) == vars(other)

    def _encode_event(self, event: Event) -> list[agui.BaseEvent]:
        match event.type:
            case "started":
                return self._encode_started(event)
            case "text":
                return self._add_text(str(event.data["message_id"]), str(event.data["delta"]))
            case "thought":
                return self._thought(event)
            case "step_started":
                return self._step_started(event.data)
            case "step_finished":
                return self._step_finished(event.data)
            case "waiting":
                return self._waiting(event)
            case "decided":
                self._decided_calls += event.data["calls"]
                return [] if event.data["pending"] else self._started_again(event)
            case "warning":
                message = translate_text(str(event.data.get("message", "")), self._language)
                return [agui.CustomEvent(name=WARNING, value={"message": message})]
            case "finished":
                return self._encode_finished(event)
            case "paused":
                return self._encode_paused(event)
            case "failed":
                return self._encode_failed(event)

    def _encode_started(self, event: Event) -> list[agui.BaseEvent]:
        self._model = str(event.data.get("model", ""))
        self._metadata = dict(event.data)
        return [self._run_started(event, event.data.get("continues"))]

    def _run_started(self, event: Event, parent: str | None = None) -> agui.RunStartedEvent:
        return agui.RunStartedEvent(
            thread_id=event.thread_id,
            run_id=event.run_id,
            protocol_version=agui.PROTOCOL_VERSION,
            parent_run_id=parent,
            metadata={NOTE: self._metadata},
        )

    # Waiting for a person: decisions are sent when the run goes on, for until then it has finished.

    def _waiting(self, event: Event) -> list[agui.BaseEvent]:
        self._waits = True
        asks = [_interrupt(call) for call in event.data["calls"]]
        outcome = agui.RunFinishedInterruptOutcome(interrupts=asks)
        return [*self._close_steps(), *self._withdraw(), self._end(event, outcome)]

    def _started_again(self, event: Event) -> list[agui.BaseEvent]:
        decided, self._decided_calls, self._waits = self._decided_calls, [], False
        return [
            self._run_started(event),
            *([agui.CustomEvent(name=DECIDED, value={"calls": decided})] if decided else []),
        ]

    # Text: at most one message is open, and only the answer's is closed without being withdrawn.

    def _add_text(self, message_id: str, delta: str) -> list[agui.BaseEvent]:
        made: list[agui.BaseEvent] = []
        if message_id != self._text_id:
            made = [*self._withdraw(), agui.TextMessageStartEvent(message_id=message_id, role="assistant")]
            self._text_id, self._text = message_id, ""
        self._text += delta
        return [*made, agui.TextMessageContentEvent(message_id=message_id, delta=delta)]

    def _close(self) -> list[agui.BaseEvent]:
        if self._text_id is None:
            return []
        closed, self._text_id = self._text_id, None
        return [agui.TextMessageEndEvent(message_id=closed)]

    def _withdraw(self) -> list[agui.BaseEvent]:
        withdrawn = self._text_id
        end = self._close()
        return [*end, agui.CustomEvent(name=WITHDRAWN, value={"message_id": withdrawn})] if end else []

    def _leave(self, data: Mapping[str, Any]) -> list[agui.BaseEvent]:
        """End the text of a run that ended early. It stays where it is part of the conversation."""
        if self._text_id is None or self._text_id != data.get("message_id") or not data.get("unfinished"):
            return self._withdraw()
        closed, self._text_id = self._text_id, None
        return [agui.TextMessageEndEvent(message_id=closed, metadata={NOTE: {"interrupted": True}})]

    def _whole(self, message_id: str, text: str) -> list[agui.BaseEvent]:
        """The complete answer, without what was streamed of it already."""
        if not text:
            return self._withdraw()
        rest = _rest(self._text, text) if self._text_id == message_id else None
        if rest is not None:
            return [*(self._add_text(message_id, rest) if rest else []), *self._close()]
        # A message that was withdrawn under this id stays withdrawn.
        fresh = f"{message_id}.whole" if self._text_id == message_id else message_id
        return [*self._withdraw(), *self._add_text(fresh, text), *self._close()]

    def _thought(self, event: Event) -> list[agui.BaseEvent]:
        message_id = str(event.data.get("message_id") or f"{event.run_id}.{event.seq}")
        thought = f"{message_id}.thought"
        self._parent_id = message_id
        return [
            *self._withdraw(),
            agui.ReasoningStartEvent(message_id=thought),
            agui.ReasoningMessageStartEvent(message_id=thought, role="reasoning"),
            agui.ReasoningMessageContentEvent(message_id=thought, delta=str(event.data.get("text", ""))),
            agui.ReasoningMessageEndEvent(message_id=thought),
            agui.ReasoningEndEvent(message_id=thought),
        ]

    # Steps: each holds one tool call.

    def _step_started(self, data: Mapping[str, Any]) -> list[agui.BaseEvent]:
        call_id, name = str(data["call_id"]), f"{data['step']}:{data['action']}"
        made = self._withdraw()
        if call_id in self._steps:
            # The process died during the call, and another one runs it again: it is still the same call.
            made.append(agui.StepFinishedEvent(step_name=self._steps.pop(call_id)))
        self._steps[call_id] = name
        made.append(agui.StepStartedEvent(step_name=name, metadata={NOTE: {"step": data["step"], "call_id": call_id}}))
        if call_id not in self._calls:
            self._calls.add(call_id)
            made += [
                agui.ToolCallStartEvent(
                    tool_call_id=call_id, tool_call_name=str(data["action"]), parent_message_id=self._parent_id
                ),
                agui.ToolCallArgsEvent(tool_call_id=call_id, delta=_dump(data.get("args", {}))),
                agui.ToolCallEndEvent(tool_call_id=call_id),
            ]
        return made

    def _step_finished(self, data: Mapping[str, Any]) -> list[agui.BaseEvent]:
        call_id = str(data["call_id"])
        self._parent_id = None
        note = {"step": data["step"], "ok": data.get("ok"), "elapsed_ms": data.get("elapsed_ms")}
        result = agui.ToolCallResultEvent(
            message_id=f"{call_id}.result",
            tool_call_id=call_id,
            content=_dump(translate_observation(data.get("observation"), self._language)),
            role="tool",
            metadata={NOTE: note},
        )
        name = self._steps.pop(call_id, None)
        return [result, agui.StepFinishedEvent(step_name=name)] if name else [result]

    def _close_steps(self) -> list[agui.BaseEvent]:
        names = list(self._steps.values())
        self._steps.clear()
        return [agui.StepFinishedEvent(step_name=name) for name in names]

    # Ends.

    def _encode_finished(self, event: Event) -> list[agui.BaseEvent]:
        answer = str(event.data.get("answer", ""))
        text = self._whole(_message_id(event), answer)
        return [*self._close_steps(), *text, self._end(event, agui.RunFinishedSuccessOutcome())]

    def _encode_paused(self, event: Event) -> list[agui.BaseEvent]:
        reason = str(event.data.get("reason", ""))
        summary = str(event.data.get("summary", ""))
        if reason not in ("max_steps", "repeated", "budget_spent"):
            # Stopped from outside: there is no interrupt.
            return [
                *self._close_steps(),
                *self._leave(event.data),
                self._end(event, agui.RunFinishedCancelledOutcome()),
            ]
        asks = agui.Interrupt(id=event.run_id, reason=f"longthread:{reason}", message=event.data.get("hint"))
        outcome = agui.RunFinishedInterruptOutcome(interrupts=[asks])
        return [*self._close_steps(), *self._whole(_message_id(event), summary), self._end(event, outcome)]

    def _encode_failed(self, event: Event) -> list[agui.BaseEvent]:
        data = error_for_http(event.data)
        error = data.get("error") or {}
        failed = agui.RunErrorEvent(
            message=str(error.get("message", "")),
            code=error.get("type"),
            usage=self._usage(event.data),
            metadata={NOTE: {"status": "failed", **data}},
        )
        return [*self._close_steps(), *self._leave(event.data), failed]

    def _end(self, event: Event, outcome: Any) -> agui.RunFinishedEvent:
        return agui.RunFinishedEvent(
            thread_id=event.thread_id,
            run_id=event.run_id,
            result={"status": event.type, **event.data},
            outcome=outcome,
            usage=self._usage(event.data),
        )

    def _usage(self, data: Mapping[str, Any]) -> list[agui.TokenUsage] | None:
        usage = data.get("usage") or {}
        if not any(usage.values()):
            return None
        sent, made = usage.get("input_tokens", 0), usage.get("output_tokens", 0)
        return [agui.TokenUsage(model=self._model, input_tokens=sent, output_tokens=made, total_tokens=sent + made)]


def _interrupt(call: Mapping[str, Any]) -> agui.Interrupt:
    """The interrupt of a call. Its response is a decision of LangChain's human-in-the-loop middleware."""
    edit = {
        "properties": {
            "type": {"const": "edit"},
            "edited_action": {
                "type": "object",
                "properties": {"name": {"const": call["tool"]}, "args": call["parameters"]},
                "required": ["args"],
            },
        },
        "required": ["type", "edited_action"],
    }
    approve = {"properties": {"type": {"const": "approve"}}, "required": ["type"]}
    message = {"type": "string"}
    reject = {"properties": {"type": {"const": "reject"}, "message": message}, "required": ["type"]}
    return agui.Interrupt(
        id=call["id"],
        reason="longthread:approval",
        message=call["description"],
        tool_call_id=call["id"],
        response_schema={"type": "object", "oneOf": [approve, edit, reject]},
        metadata={NOTE: {"tool": call["tool"], "args": call["args"]}},
    )


def _rest(told: str, whole: str) -> str | None:
    """Return what is left of a text after the part that was already sent, white space around that part aside; None if
    the text begins otherwise."""
    if whole.startswith(told):
        return whole[len(told) :]
    said = told.strip()
    if not whole.lstrip().startswith(said):
        return None
    rest = whole.lstrip()[len(said) :]
    return rest if told.endswith(said) else rest.lstrip()


def _stamp(event: Event) -> int:
    return round(event.at.timestamp() * 1000)


def _message_id(event: Event) -> str:
    return str(event.data.get("message_id") or f"{event.run_id}.answer")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)

"""The JSON-in-text ReAct protocol, for models without native tool calls.

The model replies with one object, `{"thought", "action", "args"}` to use a tool or `{"thought", "finish"}` to answer;
a result comes back as a user message that begins with `Observation: `. All functions here are pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longthread.llm.reply_text import sql_of
from longthread.llm.text_calls import as_calls, final_answer, is_marked, label_free, sign_of_call, written_calls
from longthread.messages.message import Message, decode, scan
from longthread.model.fold import PARSE_ERROR
from longthread.model.run import statement_form
from longthread.model.thinking import split_thinking
from longthread.tools.tool import Observation, Tool

STOPS = ("\nObservation:",)
"""Where a reply ends: the model may not write the result itself."""
OBSERVATION = "Observation: "
"""What a user message begins with when it carries a tool's result."""
RAW_LIMIT = 2_000
"""Characters of a reply that are quoted back to the model that wrote it."""


@dataclass(frozen=True, slots=True)
class ActionCall:
    thought: str
    action: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finish:
    thought: str
    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """The reply is neither; `reason` tells the model what is wrong."""

    reason: str


ParsedReply = ActionCall | Finish | Malformed


# Reading a reply.

_FENCE = re.compile(r"\A```\w*|```\w*\Z")
_FINISHES = frozenset({"finish", "final answer", "final_answer", "finalanswer"})
_RUN = "run_sql"
_KEYS = frozenset({"thought", "action", "args", "arguments", "action_input", "finish", "answer"})


def parse_reply(text: str, *, strict: bool, tools: Sequence[Tool] = (), ran: Collection[str] = ()) -> ParsedReply:
    """Parse a reply. Never raises.

    `strict` is for a model whose prompt asks for JSON only. Without it, prose without any sign of a call is the answer.
    Accepted around the object: a fence, prose, thinking; inside it: trailing commas and raw line breaks in strings; in
    its place: the forms of calls that models write into their text (`text_calls`). Of several calls the first one
    counts: what follows it was written without its result.

    A reply of nothing but SQL is a call of `run_sql`, if that is among `tools`. If the SQL is in `ran`, the run's
    queries (in their `statement_form`), it is the answer that the user wanted to see.
    """
    whole = _is_object(text)
    thinking, body = ("", text) if whole else split_thinking(text)
    if not body.strip():
        return Malformed("The reply is empty." if not thinking else "Thinking came, but neither a call nor an answer.")
    found: list[tuple[str, dict[str, Any]]] = []
    written = [] if whole else written_calls(body, tools)
    if isinstance(written, str):
        return Malformed(written)
    rest, broken = ("", "") if written else scan(body, found)
    replies = written or _replies(found, tools, strict=strict)
    if broken and (replies or strict or sign_of_call(rest) or _strip_fence(body).startswith("{")):
        return Malformed(broken)
    if replies:
        reply = _read(replies[0][1], thinking or label_free(replies[0][0]))
    else:
        reply = _without_object(body, rest, [data for _, data in found], strict=strict, thinking=thinking)
    return _run_if_sql(reply, body, tools, ran)


def _is_object(text: str) -> bool:
    """Return whether a reply is one object and nothing else: tags in it belong to its texts."""
    bare = _strip_fence(text)
    return bare.startswith("{") and bare.endswith("}") and isinstance(decode(bare), dict)


def _replies(
    found: Sequence[tuple[str, dict[str, Any]]], tools: Sequence[Tool], *, strict: bool
) -> list[tuple[str, dict[str, Any]]]:
    replies: list[tuple[str, dict[str, Any]]] = []
    marked = False
    for before, data in found:
        marked = marked or is_marked(before)
        calls = as_calls(data, tools, marked=marked)
        if calls and not data.get("finish"):
            replies += [(before, call) for call in calls]
        elif _is_reply(data, strict):
            replies.append((before, data))
    return replies


def _run_if_sql(reply: ParsedReply, body: str, tools: Sequence[Tool], ran: Collection[str]) -> ParsedReply:
    if isinstance(reply, ActionCall):
        return reply
    sql = sql_of(reply.text if isinstance(reply, Finish) else body)
    if sql is None or statement_form(sql) in ran or all(tool.name != _RUN for tool in tools):
        return reply
    return ActionCall(reply.thought if isinstance(reply, Finish) else "", _RUN, {"sql": sql})


def _strip_fence(text: str) -> str:
    return _FENCE.sub("", text.strip()).strip()


def _without_object(
    body: str, rest: str, found: Sequence[Mapping[str, Any]], *, strict: bool, thinking: str
) -> Finish | Malformed:
    if any(set(data) == {"thought"} for data in found):
        return Malformed('The object has a "thought", but neither an "action" nor a "finish".')
    if any({"name", "arguments"} == set(data) for data in found) or sign_of_call(rest):
        return Malformed("This looks like a call, but it is not in the expected form.")
    if lines := final_answer(body):
        thought = "\n\n".join(filter(None, [thinking, lines[0]]))
        return (
            Finish(thought, lines[1])
            if lines[1]
            else Malformed("There is a thought, but neither a call nor an answer.")
        )
    if strict:
        return Malformed('There is no JSON object with an "action" or a "finish" in the reply.')
    return Finish(thinking, body.strip())


def _is_reply(data: Mapping[str, Any], strict: bool) -> bool:
    """Return whether an object is meant for the protocol. In prose, an object with other keys is data of the answer."""
    return ("action" in data or "finish" in data) and (strict or "thought" in data or data.keys() <= _KEYS)


def _read(data: Mapping[str, Any], before: str) -> ParsedReply:
    """Parse an object of the protocol; `before` stands in for a missing thought."""
    thought = data.get("thought") or before
    thought = thought if isinstance(thought, str) else json.dumps(thought, ensure_ascii=False)
    action = data.get("action")
    finish = data.get("finish")
    if isinstance(action, str) and action.strip().lower() in _FINISHES:
        given = (None if finish is True else finish, data.get("answer"), _args(data))
        return _finish(thought, next((value for value in given if not _absent(value)), None))
    if not _absent(finish):
        if not _absent(action):
            return Malformed('The object has both an "action" and a "finish". Send one of them.')
        return _finish(thought, data.get("answer") if finish is True else finish)
    if _absent(action):
        return Malformed('"finish" is empty: it must hold the answer.' if "finish" in data else '"action" is empty.')
    if not isinstance(action, str):
        return Malformed('"action" must be the name of a tool, a string.')
    args = _args(data)
    if isinstance(args, str):
        args = decode(args) if args.strip() else {}
    if not isinstance(args, dict):
        return Malformed('"args" must be a JSON object with the arguments of the tool.')
    return ActionCall(thought, action.strip(), args)


def _args(data: Mapping[str, Any]) -> Any:
    values = (data.get(name) for name in ("args", "arguments", "action_input"))
    return next((value for value in values if value is not None), {})


def _absent(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, str) and not value.strip())


def _finish(thought: str, value: Any) -> Finish | Malformed:
    """Return the answer, from a string or an object with one text in it."""
    if isinstance(value, Mapping):
        names = [name for name in ("answer", "finish", "text", "data") if name in value] or list(value)
        value = value[names[0]] if len(names) == 1 else dict(value) or None
    if _absent(value):
        return Malformed('"finish" is empty: it must hold the answer.')
    thinking, text = split_thinking(value) if isinstance(value, str) else ("", json.dumps(value, ensure_ascii=False))
    if not text.strip():
        return Malformed('"finish" holds thinking alone: it must hold the answer.')
    return Finish(thought or thinking, text.strip() if thinking else text)


# Checking native calls.

_CUT_OFF = frozenset({"length", "max_tokens", "model_length"})


def cut_off(message: Message) -> bool:
    """Return whether the provider cut the reply off at its token limit."""
    about = message.response_metadata
    reasons = (about.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    return any(str(reason).lower() in _CUT_OFF for reason in reasons)


def check_calls(message: Message) -> Malformed | None:
    """Return what is wrong with the native calls of a reply; None if they may run."""
    for invalid in message.invalid_tool_calls:
        why = arguments_problem(invalid["args"]) or "they are not a JSON object"
        return Malformed(f"The arguments of {invalid['name']} cannot be read: {why}.")
    if message.tool_calls and cut_off(message):
        return Malformed("The reply reached the token limit before the call was complete. Send a shorter call.")
    return None


def arguments_problem(text: str | None) -> str | None:
    """Say why a call's arguments are no JSON object. An empty text means no arguments."""
    data = decode(text.strip()) if text and text.strip() else {}
    return data if isinstance(data, str) else None


# Telling the model.


def parse_error_observation(raw: str, reason: str, tools: Sequence[Tool], *, spoken: str = "json") -> Observation:
    """Return the observation after a malformed reply: what came and, in the protocol that is `spoken`, what is
    expected."""
    raw = raw.encode("utf-8", "replace").decode()
    if len(raw) > RAW_LIMIT:
        raw = f"{raw[:RAW_LIMIT]}… ({len(raw):,} characters)"
    return {
        "ok": False,
        "error_type": PARSE_ERROR,  # its name in document 001
        "error": {
            "type": PARSE_ERROR,
            "message": f"The reply was neither a call nor an answer, so nothing was done. {reason}",
            "raw_response": raw,
            **({"expected": _describe_expected(tools), "example": _example(tools)} if spoken == "json" else {}),
            **({"expected": _EXPECTED[spoken].format(tools=_names(tools))} if spoken in _EXPECTED else {}),
        },
    }


_EXPECTED = {
    "native": "A call of one tool, or the answer in words. Tools: {tools}.",
    "sql": "One SELECT in a ```sql fence, or the answer in words.",
    "answer": "The answer in words.",
}


def _names(tools: Sequence[Tool]) -> str:
    return ", ".join(tool.name for tool in tools) or "none"


def _describe_expected(tools: Sequence[Tool]) -> str:
    finish = '{"thought": "<why>", "finish": "<the answer>"} to answer'
    if not tools:
        return f"One JSON object and nothing else: {finish}."
    call = '{"thought": "<why>", "action": "<tool>", "args": {<arguments>}} to use a tool'
    return f"One JSON object and nothing else: {call}, or {finish}. Tools: {_names(tools)}."


def _example(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return a valid reply, with the tool that needs the fewest arguments."""
    if not tools:
        return {"thought": "I know the answer.", "finish": "There are 3."}
    tool = min(tools, key=lambda each: len(each.parameters.get("required", ())))
    properties = tool.parameters.get("properties", {})
    args = {name: _sample(name, properties.get(name, {})) for name in tool.parameters.get("required", ())}
    return {"thought": f"I need {tool.name} for this.", "action": tool.name, "args": args}


def _sample(name: str, schema: Mapping[str, Any]) -> Any:
    for given in ("examples", "enum"):
        if schema.get(given):
            return schema[given][0]
    samples: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    kind = schema.get("type")
    return samples.get(kind, f"<{name}>") if isinstance(kind, str) else f"<{name}>"


def instructions(tools: Sequence[Tool]) -> str:
    """Return the section of the system prompt that teaches the protocol and lists the tools."""
    return "\n".join(
        [
            "## How to reply",
            "",
            "Reply with exactly one JSON object and nothing before or after it.",
            *(_calling(tools) if tools else ()),
            "To answer the user, put the whole answer into `finish`, in the user's language:",
            '{"thought": "<why this answers the question>", "finish": "<the answer>"}',
            "",
            'Escape quotes and line breaks inside strings (`\\"`, `\\n`).',
        ]
    )


def _calling(tools: Sequence[Tool]) -> Iterator[str]:
    yield "To use a tool:"
    yield '{"thought": "<why>", "action": "<tool>", "args": {<arguments>}}'
    yield f"Its result comes as the next message, which begins with `{OBSERVATION.strip()}`. One tool at a time; never"
    yield "write an observation yourself. For example:"
    yield json.dumps(_example(tools), ensure_ascii=False)
    yield ""
    yield "The tools:"
    for tool in tools:
        yield f"- `{tool.name}`: {' '.join(tool.description.split())}"
        required = tool.parameters.get("required", ())
        for name, schema in tool.parameters.get("properties", {}).items():
            about = " ".join(str(schema.get("description", "")).split())
            need = "required" if name in required else "optional"
            yield f"    - `{name}` ({_type_of(schema)}, {need}){': ' if about else ''}{about}"
    yield ""


def _type_of(schema: Mapping[str, Any]) -> str:
    if schema.get("enum"):
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if isinstance(schema.get("anyOf"), list):
        return " or ".join(_type_of(option) for option in schema["anyOf"])
    kind = schema.get("type", "any")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


# Showing a history of native calls to a model that has none.


def render(messages: Iterable[Message]) -> list[Message]:
    """Convert a history to text: calls become JSON, results become user messages.

    Concurrent calls are shown one after the other, each with its result, so that roles alternate and every call is an
    example of the expected form. Other messages stay as they are.
    """
    shown: list[Message] = []
    messages = list(messages)
    place = 0
    while place < len(messages):
        message = messages[place]
        place += 1
        if message.role == "tool":
            _observe(shown, [message])
        elif message.role == "assistant" and message.tool_calls:
            end = place
            while end < len(messages) and messages[end].role == "tool":
                end += 1
            results = [result for result in messages[place:end] if result.role == "tool"]
            _replay(shown, message, results)
            place = end
        else:
            shown.append(message)
    return shown


def _replay(shown: list[Message], message: Message, results: list[Message]) -> None:
    left = list(results)
    thought = str(message.text)
    for call in message.tool_calls:
        shown.append(Message("assistant", _call_text(thought, call)))
        thought = ""
        _observe(shown, [result for result in left if result.tool_call_id == call["id"]])
        left = [result for result in left if result.tool_call_id != call["id"]]
    _observe(shown, left)


def _call_text(thought: str, call: Mapping[str, Any]) -> str:
    return json.dumps({"thought": thought, "action": call["name"], "args": call["args"]}, ensure_ascii=False)


def _observe(shown: list[Message], results: Sequence[Message]) -> None:
    """Append results as a user message, or to the last one if that is an observation."""
    if not results:
        return
    text = "\n".join(f"{OBSERVATION}{result.text}" for result in results)
    data = results[0].artifact if len(results) == 1 else None
    observed = Message("user", text, artifact=data).add_note(kind="observation")
    last = shown[-1] if shown else None
    if (
        last is not None
        and last.role == "user"
        and last.additional_kwargs == observed.additional_kwargs
        and last.text.startswith(OBSERVATION)
    ):
        observed = replace(observed, content=f"{last.text}\n{text}", artifact=None)
        shown.pop()
    shown.append(observed)

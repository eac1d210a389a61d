"""How calls and answers are exchanged with a model: by its own tool calls, or as JSON in text."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.llm.chat import find_loop
from longthread.llm.failures import ProviderError
from longthread.llm.json_protocol import (
    OBSERVATION,
    STOPS,
    ActionCall,
    Finish,
    Malformed,
    ParsedReply,
    check_calls,
    cut_off,
    instructions,
    parse_error_observation,
    parse_reply,
    render,
)
from longthread.llm.models import DEMO, failure_reason, refuses_tools, reply_limit, setting_name, supports_tools
from longthread.llm.overflow import overflow_of
from longthread.llm.sql_protocol import (
    is_stuck,
    label_answer,
    parse_answer,
    parse_written,
    render_answering,
    render_writing,
)
from longthread.llm.sql_reply import was_tried
from longthread.messages.message import Message, tool_call
from longthread.messages.sanitize import storable
from longthread.messages.tool_calls import as_json
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.ids import new_id
from longthread.model.statements import statement_form
from longthread.model.thinking import split_thinking
from longthread.runs.budget import malformed_in_a_row
from longthread.runs.evidence import MARK, find_unsupported, reminder, was_reminded
from longthread.runs.request import ChatRequest
from longthread.runs.run_context import RunContext, is_malformed, noted, pairs
from longthread.tools.tool import Observation, Tool

_OTHER_TEMPERATURE = 0.5
"""That of a call after two failures of one kind: the same reply would fail again."""


async def attempt(context: RunContext, request: ChatRequest) -> Message:
    """Ask the model once, in the run's protocol; `auto` takes native calls if the model has them.

    The message has tool calls or is the answer. Any other reply becomes a call of `json_parse_error`, whose result
    tells the model what was wrong. Raises ProviderError: the model failed, and the failure was published.
    """
    context.message_id = new_id()
    request = replace(request, messages=without_malformed(request.messages))
    try:
        if context.protocol == "sql":
            message = await _in_sql(context, request)
        elif _speaks_json(context, request):
            message = await _in_json(context, request)
        else:
            message = await _natively(context, request)
        return await _require_query(context, message)
    except ProviderError as error:
        # The caller decides about retries and the fallback, and reports what becomes of a request that was too long.
        if overflow_of(error) is None:
            reason = failure_reason(error, context.settings, context.own_settings)
            await context.stream.publish("warning", message=f"The model call failed: {reason}")
        raise


async def _require_query(context: RunContext, message: Message) -> Message:
    """Return a reply. An answer that no query supports goes back to the model, once; the second one is marked."""
    reason = None if message.tool_calls or context.run.model == DEMO else find_unsupported(context, str(message.text))
    if reason is None:
        return message
    if was_reminded(context):
        await context.stream.publish("warning", message=MARK)
        return message
    await context.stream.withdraw_text(context.message_id)
    return _malformed(message, reminder(reason))


def _speaks_json(context: RunContext, request: ChatRequest) -> bool:
    return context.protocol == "json" or (context.protocol == "auto" and not supports_tools(request.model))


async def _natively(context: RunContext, request: ChatRequest) -> Message:
    context.spoken = "native"
    try:
        message = _clean(await request.reply(context))
    except ProviderError as error:
        if context.protocol != "auto" or not refuses_tools(error):
            raise
        context.protocol = "json"
        await context.stream.publish("warning", message="The model has no tool calls: asking it for JSON text.")
        return await _in_json(context, request)
    if problem := check_calls(message):
        return _read(context, message, problem)
    if message.tool_calls:
        return _with_own_ids(_without_thinking(message), context.call_ids())
    if cut_off(message):
        await context.stream.publish("warning", message=_cut_note(context, request))
    text = str(message.text)
    reply = _parsed(context, message, strict=False)
    if context.protocol == "native" and isinstance(reply, Finish) and reply.text == text.strip():
        reply = replace(reply, text=text)
    return _read(context, message, reply)


def _cut_note(context: RunContext, request: ChatRequest) -> str:
    """Say how long an answer could be that was cut off, and what sets that."""
    most = reply_limit(request.model, context.settings)
    if (room := request.options.max_tokens) is not None and room < most:
        return f"The answer was cut off: the context window left room for {room:,} tokens."
    place = setting_name("max_tokens", "LLM_MAX_TOKENS", context.own_settings)
    return f"The answer reached {most:,} tokens and was cut off: {place} allows no more."


def _parsed(context: RunContext, message: Message, *, strict: bool) -> ParsedReply:
    """Parse the text of a reply. A call that was written into it, and cut off, may lack its end."""
    tools = list(context.tools.values())
    reply = parse_reply(str(message.text), strict=strict, tools=tools, ran=_ran(context))
    if isinstance(reply, ActionCall) and cut_off(message):
        return Malformed("The reply reached the token limit before the call was complete. Send a shorter call.")
    return reply


def _ran(context: RunContext) -> set[str]:
    """Return the statements of this run, in their `statement_form`."""
    return {
        statement_form(str(call["args"].get("sql", "")))
        for _, call, result in pairs(context.window.own)
        if call["name"] == "run_sql"
        and was_tried(str(call["args"].get("sql", "")), ok=bool(observation_of(str(result.text)).get("ok")))
    }


def _without_thinking(message: Message) -> Message:
    """Move the thinking in a message's text to its thought. The text is the rest, or the thinking if nothing else
    is."""
    raw = str(message.text)
    thinking, rest = split_thinking(raw)
    shown = rest.strip() or thinking
    if not thinking or not isinstance(message.content, str):
        return message
    return noted(replace(message, content=shown), raw=raw, thought=thinking)


async def _in_json(context: RunContext, request: ChatRequest) -> Message:
    context.spoken = "json"
    system, messages = as_text(request.system, request.messages, context.offered)
    options = replace(request.options, stop=STOPS)
    message = _clean(await replace(request, system=system, messages=messages, tools=(), options=options).reply(context))
    return _read(context, message, _parsed(context, message, strict=True))


async def _in_sql(context: RunContext, request: ChatRequest) -> Message:
    """Ask for a statement, or for the answer from the rows of the last one. No tools are offered."""
    context.spoken = "answer" if context.answering else "sql"
    messages = render_answering(request.messages) if context.answering else render_writing(request.messages)
    options = replace(request.options, stops_loops=True)
    if is_stuck(context.window.own):
        options = replace(options, temperature=_OTHER_TEMPERATURE)
    message = _clean(await replace(request, messages=messages, tools=(), options=options).reply(context))
    if (loop := find_loop(str(message.text))) is not None:
        return await _leave_loop(context, message, loop)
    text, tools, ran = str(message.text), list(context.tools.values()), _ran(context)
    question = "" if malformed_in_a_row(context.window.own) else context.run.question  # it goes back once
    reply = parse_answer(text, ran, tools, question) if context.answering else parse_written(text, tools, ran)
    if isinstance(reply, ActionCall) and cut_off(message):
        reply = Malformed("The reply reached the token limit before the statement was complete. Send a shorter one.")
    if not isinstance(reply, Finish):
        await context.stream.withdraw_text(context.message_id)
    elif context.answering:
        reply = replace(reply, text=label_answer(reply.text, context.window.own))
    return _read(context, message, reply)


async def _leave_loop(context: RunContext, message: Message, loop: int) -> Message:
    """Return a reply that repeats itself as malformed, with one round of it: a model that reads its loop goes on."""
    await context.stream.withdraw_text(context.message_id)
    raw = str(message.text)
    shortened = noted(replace(message, content=f"{raw[:loop].rstrip()} …"), raw=raw)
    return _read(context, shortened, Malformed("The reply repeated itself, and was stopped. Send a shorter one."))


def as_text(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> tuple[str, list[Message]]:
    """Convert a prompt and messages for a model without tool calls: tools become instructions, calls and results
    text."""
    shown: list[Any] = render(messages)
    return f"{system}\n\n{instructions(list(tools))}".strip(), shown


def _read(context: RunContext, message: Message, reply: ActionCall | Finish | Malformed) -> Message:
    raw = str(message.text)
    match reply:
        case ActionCall(thought, action, args):
            call = tool_call(action, dict(args), new_id())
            return noted(replace(message, content=thought, tool_calls=[call]), raw=raw)
        case Finish(thought, text):
            if text == raw:
                return message
            return noted(replace(message, content=text), raw=raw, thought=thought)
        case Malformed(reason):
            raw = raw or _calls_text(message)
            tools = list(context.tools.values())
            return _malformed(message, parse_error_observation(raw, reason, tools, spoken=context.spoken))


def _malformed(message: Message, observation: Observation) -> Message:
    """Return the reply as a call of `json_parse_error`. None of its calls is run: the model must repeat them all."""
    call = tool_call(PARSE_ERROR, {}, new_id())
    changed = replace(message, tool_calls=[call], invalid_tool_calls=[])
    return noted(changed, kind="malformed", observation=observation)


def without_malformed(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with malformed replies and their observations as plain text."""
    shown: list[Message] = []
    errors: set[str | None] = set()
    for message in messages:
        if is_malformed(message):
            errors |= {call["id"] for call in message.tool_calls}
            raw = str(message.text)
            shown.append(Message("assistant", raw if raw.strip() else "(an empty reply)", id=message.id))
        elif message.role == "tool" and message.tool_call_id in errors:
            marks = {"longthread": {"kind": "observation"}}
            text = f"{OBSERVATION}{_without_raw(str(message.text))}"
            shown.append(Message("user", text, id=message.id, additional_kwargs=marks))
        else:
            shown.append(message)
    return shown


def _without_raw(text: str) -> str:
    """Return the observation of a malformed reply without that reply: it stands right before."""
    observation = observation_of(text)
    error = observation.get("error")
    if not isinstance(error, Mapping) or "raw_response" not in error:
        return text
    told = {name: value for name, value in error.items() if name != "raw_response"}
    return json.dumps({**observation, "error": told}, ensure_ascii=False, separators=(",", ":"))


def _calls_text(message: Message) -> str:
    read = [(call["name"], json.dumps(call["args"], ensure_ascii=False)) for call in message.tool_calls]
    unread = [(call["name"] or "", call["args"] or "") for call in message.invalid_tool_calls]
    return "\n".join(f"{name}({arguments})" for name, arguments in [*read, *unread])


def _with_own_ids(message: Message, before: Collection[str | None]) -> Message:
    """Give a new id to each call that has none, or one that another call of the conversation has.

    Some servers number the calls of each reply (`call_0`). Providers that repeat the ids in content blocks have unique
    ones.
    """
    taken = set(before)
    calls = []
    for call in message.tool_calls:
        own = call["id"] if call["id"] and call["id"] not in taken else new_id()
        taken.add(own)
        calls.append({**call, "id": own})
    return message if calls == message.tool_calls else replace(message, tool_calls=calls)


def _clean(message: Message) -> Message:
    cleaned = {name: storable(getattr(message, name)) for name in _FREE_FIELDS}
    # The arguments of a call are JSON for whoever checks, runs or shows it.
    return replace(message, **{**cleaned, "tool_calls": as_json(message.tool_calls)})


_FREE_FIELDS = ("content", "invalid_tool_calls", "additional_kwargs", "response_metadata")

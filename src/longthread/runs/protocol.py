"""Ask a model once: its own tool calls, JSON in text, or SQL; then read what it replied.

An answer about data needs a query: what it says without one goes back to the model once, and is marked then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from itertools import chain
from typing import Any

from longthread.builtin.memory_tools import FORGET, REMEMBER
from longthread.context.citations import as_digits, citations, holds, numbers_in
from longthread.errors import SqlRepeated
from longthread.llm.chat import LOOP, PLAIN, CallOptions, ChatModel, ReplyBounds, ToolSpec, find_loop, reply_of
from longthread.llm.failures import ProviderError, overflow_of
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
from longthread.llm.reply_text import was_tried
from longthread.llm.sql_protocol import (
    failure_of,
    is_stuck,
    label_answer,
    parse_answer,
    parse_written,
    render_answering,
    render_writing,
)
from longthread.messages.fields import as_json, storable
from longthread.messages.message import Message, tool_call
from longthread.metrics import MODEL_CALLS, MODEL_SECONDS, TOKENS
from longthread.model.catalog import CHART, QUERIES, RUN_SQL
from longthread.model.fold import PARSE_ERROR, observation_of
from longthread.model.ids import new_id
from longthread.model.run import statement_form
from longthread.model.thinking import split_thinking
from longthread.runs.run_context import (
    NO_QUERY,
    RunContext,
    is_malformed,
    is_reminder,
    malformed_in_a_row,
    pairs,
)
from longthread.tools.tool import Observation, Tool

_OTHER_TEMPERATURE, _LAST_TEMPERATURE = 0.5, 1.0
"""That of a call after two failures of one kind, where the same reply would fail again, and that of a call after a
statement that came again twice all the same."""
MARK = "No query was run for this answer: its numbers are the model's own."
_LABEL = re.compile(r"\[q(\d+)\]")
_DIGITS = re.compile(r"\d+")
_ECHOES = frozenset({REMEMBER, FORGET, CHART})
"""Tools whose results repeat what the model wrote."""
_SHOWN = 5


async def attempt(context: RunContext, request: ChatRequest) -> Message:
    """Ask the model once, in the run's protocol; `auto` takes native calls if the model has them.

    The message has tool calls or is the answer. Any other reply becomes a call of `json_parse_error`, whose result
    tells the model what was wrong. Raises ProviderError: the model failed, and the failure was published.
    """
    context.reply.message_id = new_id()
    request = replace(request, messages=without_malformed(request.messages))
    try:
        if context.model.protocol == "sql":
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
    await context.stream.withdraw_text(context.reply.message_id)
    return _mark_malformed(message, reminder(reason))


def _speaks_json(context: RunContext, request: ChatRequest) -> bool:
    return context.model.protocol == "json" or (context.model.protocol == "auto" and not supports_tools(request.model))


async def _natively(context: RunContext, request: ChatRequest) -> Message:
    context.reply.spoken = "native"
    try:
        message = _clean(await request.reply(context))
    except ProviderError as error:
        if context.model.protocol != "auto" or not refuses_tools(error):
            raise
        context.model.protocol = "json"
        await context.stream.publish("warning", message="The model has no tool calls: asking it for JSON text.")
        return await _in_json(context, request)
    if problem := check_calls(message):
        return _read(context, message, problem)
    if message.tool_calls:
        return _with_own_ids(_without_thinking(message), context.call_ids())
    if cut_off(message):
        await context.stream.publish("warning", message=_cut_note(context, request))
    text = str(message.text)
    reply = _parse_text(context, message, strict=False)
    if context.model.protocol == "native" and isinstance(reply, Finish) and reply.text == text.strip():
        reply = replace(reply, text=text)
    return _read(context, message, reply)


def _cut_note(context: RunContext, request: ChatRequest) -> str:
    """Say how long an answer could be that was cut off, and what sets that."""
    most = reply_limit(request.model, context.settings)
    if (room := request.options.max_tokens) is not None and room < most:
        return f"The answer was cut off: the context window left room for {room:,} tokens."
    place = setting_name("max_tokens", "LLM_MAX_TOKENS", context.own_settings)
    return f"The answer reached {most:,} tokens and was cut off: {place} allows no more."


def _parse_text(context: RunContext, message: Message, *, strict: bool) -> ParsedReply:
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
    return replace(message, content=shown).add_note(raw=raw, thought=thinking)


async def _in_json(context: RunContext, request: ChatRequest) -> Message:
    context.reply.spoken = "json"
    system, messages = as_text(request.system, request.messages, context.reply.offered)
    options = replace(request.options, stop=STOPS)
    message = _clean(await replace(request, system=system, messages=messages, tools=(), options=options).reply(context))
    return _read(context, message, _parse_text(context, message, strict=True))


async def _in_sql(context: RunContext, request: ChatRequest) -> Message:
    """Ask for a statement, or for the answer from the rows of the last one. No tools are offered."""
    context.reply.spoken = "answer" if context.reply.answering else "sql"
    messages = render_answering(request.messages) if context.reply.answering else render_writing(request.messages)
    options = replace(request.options, stops_loops=not context.reply.answering)  # an answer may repeat equal rows
    if is_stuck(context.window.own):
        repeated = sum(failure_of(each) == SqlRepeated.code for each in context.window.own)
        options = replace(options, temperature=_OTHER_TEMPERATURE if repeated < 2 else _LAST_TEMPERATURE)
    message = _clean(await replace(request, messages=messages, tools=(), options=options).reply(context))
    if message.response_metadata.get("finish_reason") == LOOP and (loop := find_loop(str(message.text))) is not None:
        return await _leave_loop(context, message, loop)
    text, tools, ran = str(message.text), list(context.tools.values()), _ran(context)
    question = "" if malformed_in_a_row(context.window.own) else context.run.question  # it goes back once
    reply = parse_answer(text, ran, tools, question) if context.reply.answering else parse_written(text, tools, ran)
    if isinstance(reply, ActionCall) and cut_off(message):
        reply = Malformed("The reply reached the token limit before the statement was complete. Send a shorter one.")
    if not isinstance(reply, Finish):
        await context.stream.withdraw_text(context.reply.message_id)
    elif context.reply.answering:
        reply = replace(reply, text=label_answer(reply.text, context.window.own))
    return _read(context, message, reply)


async def _leave_loop(context: RunContext, message: Message, loop: int) -> Message:
    """Return a reply that repeats itself as malformed, with one round of it: a model that reads its loop goes on."""
    await context.stream.withdraw_text(context.reply.message_id)
    raw = str(message.text)
    shortened = replace(message, content=f"{raw[:loop].rstrip()} …").add_note(raw=raw)
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
            return replace(message, content=thought, tool_calls=[call]).add_note(raw=raw)
        case Finish(thought, text):
            if text == raw:
                return message
            return replace(message, content=text).add_note(raw=raw, thought=thought)
        case Malformed(reason):
            raw = raw or _calls_text(message)
            tools = list(context.tools.values())
            return _mark_malformed(message, parse_error_observation(raw, reason, tools, spoken=context.reply.spoken))


def _mark_malformed(message: Message, observation: Observation) -> Message:
    """Return the reply as a call of `json_parse_error`. None of its calls is run: the model must repeat them all."""
    call = tool_call(PARSE_ERROR, {}, new_id())
    changed = replace(message, tool_calls=[call], invalid_tool_calls=[])
    return changed.add_note(kind="malformed", observation=observation)


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
            text = f"{OBSERVATION}{_without_raw(str(message.text))}"
            shown.append(Message("user", text, id=message.id).add_note(kind="observation"))
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
    # The arguments of a call are JSON for all code that checks, runs or shows it.
    return replace(message, **{**cleaned, "tool_calls": as_json(message.tool_calls)})


_FREE_FIELDS = ("content", "invalid_tool_calls", "additional_kwargs", "response_metadata")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What a model is sent: the system prompt, the messages, the tools and the call's options."""

    model: ChatModel
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    options: CallOptions = PLAIN

    async def reply(self, context: RunContext) -> Message:
        """Return the model's reply; its text is published as it comes. Raises ProviderError."""
        sent = [Message("system", self.system), *self.messages]
        context.reply.sent = sent
        try:
            with MODEL_SECONDS.time_block():
                bounds = ReplyBounds(context.settings.reply_timeout)
                message = await reply_of(self.model, sent, self.tools, self.options, context.publish_text, bounds)
        except ProviderError:
            MODEL_CALLS.add("error")
            raise
        MODEL_CALLS.add("ok")
        usage = message.usage_metadata or {}
        for direction in ("input", "output"):
            TOKENS.add(direction, by=usage.get(f"{direction}_tokens", 0))
        await context.end_text()
        most = context.settings.max_tool_calls
        if (count := len(message.tool_calls)) > most:
            told = f"The reply makes {count} calls, of which the first {most} are made: LLM_MAX_TOOL_CALLS."
            await context.stream.publish("warning", message=told)
            message = _with_calls(message, most)
        return message


def _with_calls(message: Message, most: int) -> Message:
    """Return a reply with no more than so many calls. The model sees what became of these, and can make the others."""
    calls = message.tool_calls[:most]
    kept, content = {call["id"] for call in calls}, message.content
    if isinstance(content, list):
        content = [each for each in content if _call_id(each) in {None, *kept}]
    return replace(message, content=content, tool_calls=calls)


def _call_id(block: Any) -> str | None:
    return block.get("id") if isinstance(block, dict) and block.get("type") == "tool_use" else None


def find_unsupported(context: RunContext, answer: str) -> str | None:
    """Return what an answer says that nothing gave: labels of queries that never ran, or numbers. None if nothing, or
    if the agent asks no data.

    Numbers may be in words (`as_digits`). Rows of this run's queries support all numbers, since an answer may compute
    from them. Without such rows a number must stand in a result of the conversation, or in the user's words or
    memories; the day supports a date alone.
    """
    if RUN_SQL not in context.tools:
        return None
    unknown = [label for label in _LABEL.findall(answer) if int(label) > context.calls.queries]
    if unknown:
        return f"There is no query [q{unknown[0]}]."
    if any(_has_rows(message) for message in context.window.own):
        return None
    queries = [spot.query for spot in context.window.spots if spot.query is not None]
    day = context.run.started_at.astimezone(context.settings.zone)
    said = as_digits(_mention_of(day).sub(" ", answer))
    missing = [each["number"] for each in citations(said, queries) if each["query"] is None]
    known = _known_numbers(context) if missing else frozenset()
    missing = [number for number in missing if not holds(known, number)]
    return f"No query gave these numbers: {', '.join(missing[:_SHOWN])}." if missing else None


def _has_rows(message: Message) -> bool:
    data = observation_of(str(message.text)).get("data") if message.name in QUERIES else None
    return isinstance(data, Mapping) and bool(data.get("rows"))


def _known_numbers(context: RunContext) -> frozenset[Decimal | str]:
    """Return the numbers in the user's words and memories, and in the results of other tools."""
    messages = [spot.message for spot in context.window.spots]
    words = [
        context.run.question,
        context.knowledge.recalled,
        *(str(each.text) for each in messages if each.role == "user"),
    ]
    own = as_digits("\n".join(words))
    told = (str(each.text) for each in messages if each.role == "tool" and each.name not in _ECHOES)
    results = (text for text in told if observation_of(text).get("ok"))
    found = chain(numbers_in(own), map(Decimal, _DIGITS.findall(own)), *map(numbers_in, results))
    return frozenset(found)


def _mention_of(day: datetime) -> re.Pattern[str]:
    """Return the pattern of this day, its month and its year in an answer, as people write dates."""
    year, month, of_month = f"{day:%Y}", f"0?{day.month}", f"0?{day.day}"
    name = f"(?:{day:%B}|{day:%b}\\.?)"
    nth = rf"{of_month}(?:st|nd|rd|th)?\.?"
    forms = (
        rf"{year}\s*[-/.年]\s*{month}(?:\s*[-/.月]\s*{of_month}\s*日?|\s*月|(?!\s*[-/.]?\d))",
        rf"{of_month}[-/.]\s?{month}[-/.]\s?{year}",
        rf"{month}/{of_month}/{year}",
        rf"{month}\s*月\s*{of_month}\s*[日号號]",
        rf"{name}\s+{nth}(?:,?\s+{year})?",
        rf"{nth}\s+(?:of\s+)?{name}(?:,?\s+{year})?",
        rf"{nth}\s+(?:de\s+)?[^\W\d_]{{3,10}}\s+(?:de\s+)?{year}",
        rf"{name},?\s+{year}",
        rf"(?:\b(?:in|of|for|since|during|until|by|year|is)\s+|[(（]){year}",
        rf"{year}\s*年",
    )
    return re.compile(rf"(?<![\d.,])(?:{'|'.join(forms)})(?!\d|[.,]\d)", re.I)


def was_reminded(context: RunContext) -> bool:
    return any(is_reminder(message) for message in context.window.own)


def reminder(reason: str) -> Observation:
    """Return the observation that reminds a model to query."""
    message = f"{reason} Ask the database first, then answer from the rows."
    return {"ok": False, "error": {"type": NO_QUERY, "message": message}}

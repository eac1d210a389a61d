"""One message of a conversation, with pictures in any provider's form; a model's reply, joined of its pieces.

JSON objects are read despite the mistakes that models make, but the arguments of a call are never completed.
Thinking is shown unchanged, or not at all.

Calls whose arguments are no JSON object are invalid: no tool has run for them. Clients send them unchanged, and
providers refuse a call without a result. A view shows them as text. If a result does follow, and LangChain's agents
add one before the next question, they are calls like others.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import Any

from longthread.model.content import CALLS as CALLS
from longthread.model.content import HOSTED, THINKING
from longthread.model.entry import NOTE, MessageKind, Role, kind_in, note_in

Content = str | list[str | dict[str, Any]]
"""A text, or the parts of a message: texts, and blocks in the form of their provider."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said. Its containers are never changed: `dataclasses.replace` makes another message.

    The names are those of the stored payload, which LangChain's messages have too. A reply's `tool_calls` are `{"name",
    "args", "id", "type": "tool_call"}`. Its `invalid_tool_calls` are `{"name", "args", "id", "error", "type":
    "invalid_tool_call"}`, with `args` as the text that came. `usage_metadata` holds `input_tokens`, `output_tokens` and
    `total_tokens`. `tool_call_id`, `artifact` and `status` are a tool result's. `additional_kwargs` and
    `response_metadata` are the provider's own. `extra` holds other fields of a stored payload.
    """

    role: Role
    content: Content = ""
    additional_kwargs: dict[str, Any] = field(default_factory=dict)
    response_metadata: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    id: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    invalid_tool_calls: list[dict[str, Any]] = field(default_factory=list)
    usage_metadata: dict[str, Any] | None = None
    tool_call_id: str | None = None
    artifact: Any = None
    status: str = "success"
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The visible text: the content, or the text parts of it, joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(map(_text_of, self.content))

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks of the content; none if it is a text."""
        return [] if isinstance(self.content, str) else [part for part in self.content if isinstance(part, dict)]

    @property
    def note(self) -> dict[str, Any]:
        """What Longthread notes on the message: the metadata of its entry."""
        return note_in({"additional_kwargs": self.additional_kwargs})

    @property
    def kind(self) -> MessageKind | None:
        """What the message is, beyond its role."""
        return kind_in(self.note)

    def add_note(self, *, kind: MessageKind | None = None, **note: Any) -> Message:
        """Return the message with its kind and a note, which add to what is noted on it."""
        more = note if kind is None else {"kind": kind, **note}
        return replace(self, additional_kwargs=self.additional_kwargs | {NOTE: self.note | more})


def _text_of(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if part.get("type") == "text" and isinstance(text, str) else ""


def tool_call(name: str, args: dict[str, Any], id: str | None) -> dict[str, Any]:  # noqa: A002  # the key's name
    return {"name": name, "args": args, "id": id, "type": "tool_call"}


def invalid_tool_call(
    name: str | None,
    args: str | None,
    id: str | None,  # noqa: A002
    error: str | None = None,
) -> dict[str, Any]:
    """Return a call whose arguments are no JSON object; `args` is their text, byte for byte."""
    return {"name": name, "args": args, "id": id, "error": error, "type": "invalid_tool_call"}


_DATA = re.compile(r"data:(image/[\w.+-]+)[^,]{0,100};base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture at `url`, or its `data` in base64 with the type `mime`."""

    url: str = ""
    mime: str = ""
    data: str = ""


def inline(block: Mapping[str, Any]) -> Picture | None:
    """Return the picture of a block in the form of OpenAI, Anthropic or LangChain; None for other blocks."""
    if block.get("type") == "image_url":
        image = block.get("image_url")
        return _at(image.get("url") if isinstance(image, dict) else image)
    if block.get("type") != "image":
        return None
    inner = block.get("source")
    source: Mapping[str, Any] = inner if isinstance(inner, dict) else block
    data = source.get("base64") or source.get("data")
    if isinstance(data, str) and data:
        mime = source.get("media_type") or source.get("mime_type") or "image/png"
        return Picture(mime=str(mime), data=data)
    return _at(source.get("url"))


def _at(url: Any) -> Picture | None:
    if not isinstance(url, str) or not url:
        return None
    found = _DATA.fullmatch(url)
    return Picture(mime=found[1], data=found[2]) if found else Picture(url=url)


_OPENS_OBJECT = re.compile(r"\{\s*(?:[\"'“]|$)")
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_TOKEN = re.compile(rf'{_STRING}|["{{}}]', re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_BRACKET = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_ATTEMPTS = 500  # objects read in one reply, against text that is made of nothing else
_NESTING = 100  # levels; far above any call, far below the interpreter's recursion limit


def scan(body: str, found: list[tuple[str, dict[str, Any]]]) -> tuple[str, str]:
    """Append the outermost objects of `body` to `found`, each with the text before it. Returns the text outside
    them, and what is wrong with the one that cannot be read ("" if none)."""
    rest: list[str] = []
    broken = ""
    done = 0
    for start in _starts(body):
        if start < done:
            continue
        end = end_of_object(body, start)
        if end is None:
            # An object nested in half an object is not the whole.
            broken = "The JSON object is not closed: a quote, a bracket or a brace is missing."
            break
        data = decode(body[start:end])
        if isinstance(data, str):
            broken = f"The JSON object cannot be read: {data}."
        else:
            found.append((body[done:start], data))
        rest.append(body[done : start if isinstance(data, dict) else end])
        done = end
    rest.append(body[done:])
    return "".join(rest), broken


def _starts(body: str) -> Iterator[int]:
    return (match.start() for match in islice(_OPENS_OBJECT.finditer(body), _ATTEMPTS))


def end_of_object(body: str, start: int) -> int | None:
    """Return the index after the brace that closes the one at `start`; None if it is never closed."""
    depth = 0
    for token in _TOKEN.finditer(body, start):
        if token[0] == '"':
            return None
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def decode(text: str) -> dict[str, Any] | str:
    """Return the object of `text`, or why it cannot be read."""
    if _nesting(text) > _NESTING:
        return "it is nested too deeply"
    try:
        try:
            data = _DECODER.decode(text)
        except json.JSONDecodeError:
            data = _DECODER.decode(_without_trailing_commas(text))
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return f"{error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeEncodeError:
        return "it holds half of a surrogate pair"
    except ValueError as error:
        return str(error).rstrip(".")
    return data if isinstance(data, dict) else "it is not an object"


def _nesting(text: str) -> int:
    steps = {"{": 1, "[": 1, "}": -1, "]": -1}
    return max(accumulate(steps.get(match[0], 0) for match in _BRACKET.finditer(text)), default=0)


def _without_trailing_commas(text: str) -> str:
    return _TRAILING_COMMA.sub(lambda match: match[1] or "", text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f'the key "{next(name for name in names if names.count(name) > 1)}" appears twice')
    return data


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


@dataclass(slots=True)
class CallPieces:
    """One call of a reply. The last field holds the provider's own keys."""

    id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    beside: dict[str, Any] = field(default_factory=dict)

    def add_name(self, name: str | None) -> None:
        """Add a piece of the name. Some servers repeat the whole name with every piece."""
        if name and name != self.name:
            self.name += name

    def add_arguments(self, arguments: Any) -> None:
        """Add a piece of the arguments; some servers send the object itself."""
        if arguments:
            self.arguments.append(arguments if isinstance(arguments, str) else json.dumps(arguments))


def read_calls(pieces: list[CallPieces]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the calls of a whole reply: the readable ones, and those whose arguments are no JSON object."""
    read, unread = [], []
    for each in pieces:
        text = "".join(each.arguments)
        args = decode(text.strip()) if text.strip() else {}
        if isinstance(args, dict):
            read.append(tool_call(each.name, args, each.id) | each.beside)
        else:
            unread.append(invalid_tool_call(each.name, text, each.id, args))
    return read, unread


def usage_of(input_tokens: Any, output_tokens: Any, cache_read: Any = 0, cache_written: Any = 0) -> dict[str, Any]:
    """Return a message's usage. `input_tokens` counts all input, cached or not."""
    given, made = _count(input_tokens), _count(output_tokens)
    usage: dict[str, Any] = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    details = {"cache_read": _count(cache_read), "cache_creation": _count(cache_written)}
    if details := {name: count for name, count in details.items() if count}:
        usage["input_token_details"] = details
    return usage


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


_KEYS = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")
"""Keys of `additional_kwargs` that hold some providers' thinking."""
_ITEM = "reasoning"
"""The type of a block, and the key, of a possible item of OpenAI's Responses, which the reply's other items need."""
_ITEM_IDS = "__openai_function_call_ids__"


def is_thinking(block: dict[str, Any]) -> bool:
    return block.get("type") in THINKING


def beside_content(message: Message) -> list[Any]:
    return [each for key in _KEYS if (each := message.additional_kwargs.get(key))]


def find_hosted(message: Message) -> list[Any]:
    """Return what the provider's own tools did for a reply, if it is outside of the content."""
    return list(message.additional_kwargs.get(HOSTED) or ())


def has_items(message: Message) -> bool:
    """Return whether there is thinking that is, or may be, an item of OpenAI's Responses."""
    return _ITEM in message.additional_kwargs or any(block.get("type") == _ITEM for block in message.blocks)


def without_thinking(message: Message) -> Message:
    """Return the message without thinking, as if it had never had any. The items' ids go too: OpenAI's Responses
    refuse an item with an id but without the reasoning before it."""
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key not in _KEYS}
    content, own_id = message.content, message.id
    if type(content) is list:
        content = [block for block in content if not (isinstance(block, dict) and is_thinking(block))] or ""
    if has_items(message):
        kwargs = {key: value for key, value in kwargs.items() if key not in (HOSTED, _ITEM_IDS)}
        content = [_without_id(block) for block in content] if type(content) is list else content
        own_id = None if (own_id or "").startswith("msg_") else own_id
    return replace(message, content=content, additional_kwargs=kwargs, id=own_id)


def _without_id(block: Any) -> Any:
    if not isinstance(block, dict) or block.get("type") in ("tool_use", "tool_call"):  # their id is the call's
        extras = block.get("extras") if isinstance(block, dict) else None
        if not isinstance(extras, dict) or "item_id" not in extras:
            return block
        return {**block, "extras": {key: value for key, value in extras.items() if key != "item_id"}}
    return {key: value for key, value in block.items() if key != "id"}


_NOT_SENT = frozenset({"tool_calls", "function_call"})
"""Keys of `additional_kwargs` that clients take calls from if a message has none."""


def has_unread(message: Message) -> bool:
    return bool(message.invalid_tool_calls)


def readable(message: Message) -> Message:
    """Return the message with its unread calls as text, before its other calls."""
    if not has_unread(message):
        return message
    if has_items(message):  # they precede the calls that are removed
        message = without_thinking(message)
    told = "\n".join(map(_describe_unread, message.invalid_tool_calls))
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key not in _NOT_SENT}
    content = _content(message, told)
    return replace(message, content=content, invalid_tool_calls=[], additional_kwargs=kwargs)


def read_answered_calls(message: Message, results: Sequence[str | None]) -> Message:
    """Return the message with its unread calls that have results as read ones. `results` are the call ids of the
    results right after it."""
    if not has_unread(message):
        return message
    left = Counter(results) - Counter(call["id"] for call in message.tool_calls)
    read, unread = list(message.tool_calls), []
    for call in message.invalid_tool_calls:
        if left[call["id"]] > 0:
            left[call["id"]] -= 1
            read.append(tool_call(call["name"] or "unknown", {"unread": call["args"]}, call["id"]))
        else:
            unread.append(call)
    if len(unread) == len(message.invalid_tool_calls):
        return message
    return replace(message, tool_calls=read, invalid_tool_calls=unread)


def _describe_unread(call: Mapping[str, Any]) -> str:
    return f"(This call of {call['name'] or 'a tool'} could not be read, and was not run: {call['args'] or ''})"


def _content(message: Message, told: str) -> Any:
    if type(message.content) is not list:
        return f"{message.content}\n{told}".lstrip()
    unread = {call["id"] for call in message.invalid_tool_calls} - {call["id"] for call in message.tool_calls}
    kept = [block for block in message.content if not _is_of(block, unread)]
    first = next((n for n, block in enumerate(kept) if _type(block) in CALLS), len(kept))
    return [*kept[:first], {"type": "text", "text": told}, *kept[first:]]


def _is_of(block: Any, calls: set[str | None]) -> bool:
    if _type(block) == "invalid_tool_call":
        return True
    return _type(block) in CALLS and (block.get("call_id") or block.get("id")) in calls


def _type(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None

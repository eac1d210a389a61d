"""OpenAI's Chat Completions, and what vendors add to them, as the gateway reads and writes them.

A message's blocks are its hidden fields and its name, its content, and then its calls: each field and each call is a
block `{"field": …, "value": …}`. The message of a tool is one block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from longthread.gateway.dialects.anthropic import error_message, names_of, text_in
from longthread.gateway.dialects.dialect import Belonging, Edit, HiddenMissing, HiddenRefused, Reply, RequestFields
from longthread.gateway.dialects.stream import message_of
from longthread.gateway.parts import Part, loose_text_bytes, text_bytes, visible_json
from longthread.gateway.raw_json import (
    Value,
    element_texts,
    field_block,
    field_value,
    members,
    with_members,
    write_json,
)
from longthread.model.entry import Role

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_INSTRUCTIONS = ("system", "developer")
_HIDDEN = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "extra_content")
"""An assistant message's fields that only providers read: DeepSeek's, Kimi's and GLM's; OpenRouter's and MiniMax's;
LiteLLM's; Gemini's."""
_HIDDEN_BLOCKS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Mistral's, and those of proxies, in an assistant's content."""
_OF_CALL = "extra_content"
"""A call's field that only providers read: Gemini's signature."""
_CALLS, _CALL_HIDDEN = "tool_calls", f"tool_calls.{_OF_CALL}"
_STAND_IN = "skip_thought_signature_validator"
_STAND_INS = frozenset({_STAND_IN, "context_engineering_is_the_way_to_go"})
"""What clients send to Gemini for a signature that they do not have ("Thought signatures", ai.google.dev)."""
_LISTS = frozenset({"content", _CALLS})
_INVISIBLE = frozenset({"cache_control"})
_ABOUT_HIDDEN = re.compile(r"thought.?signature|reasoning|thinking|signature|encrypted", re.IGNORECASE)
_INVALID = re.compile(
    r"invalid|not valid|corrupt|malformed|mismatch|modified|altered|not what|verif|decrypt|decode", re.IGNORECASE
)
_MISSING = re.compile(r"missing|must be passed back|required", re.IGNORECASE)
_ABOUT_SIGNATURE = re.compile(r"thought.?signature", re.IGNORECASE)


class _Slot(NamedTuple):
    """Where a block stands in its message: in a field, in an `element` of a list, in that element's `member`."""

    field: str
    element: int | None
    member: str | None
    value: Any


class Completions:
    name = "completions"
    items = "messages"
    final: tuple[str, ...] = ("[DONE]",)
    ping = b": ping\n\n"
    vendor_fields: tuple[str, ...] = _HIDDEN

    def items_without_list(self, fields: RequestFields) -> Sequence[Value]:
        raise ValueError(f"The request has no list of {self.items}.")

    def tool_names(self, fields: RequestFields) -> list[str]:
        return [name for key in ("tools", "functions") if key in fields for name in names_of(fields[key].value)]

    def parts(self, items: Sequence[Any]) -> list[Part]:
        found: list[Part] = []
        for number, message in enumerate(items):
            role = _role(message)
            for place, slot in enumerate(_slots(message)):
                part = _part(role, number, place, _block(slot))
                if part is not None:
                    found.append(part)
        return found

    def read_blocks(self, role: Role, blocks: Sequence[Any]) -> list[Part]:
        found = (_part(role, 0, place, block) for place, block in enumerate(blocks))
        return [part for part in found if part is not None]

    def blocks(self, raw: str) -> list[str]:
        return [block for _, block in _raw_blocks(raw)]

    def is_named(self, fields: RequestFields) -> bool:
        return False

    def item_ids(self, blocks: Sequence[Any]) -> list[str]:
        return []

    def write_messages(self, entries: Sequence[tuple[Role, Sequence[str]]]) -> list[str]:
        return [message for role, blocks in entries for message in _write_entry(role, blocks)]

    def frame_items(self, items: Sequence[Any]) -> int:
        roles = (item.get("role") if isinstance(item, dict) else None for item in items)
        return next((number for number, role in enumerate(roles) if role not in _INSTRUCTIONS), len(items))

    def asks_hidden(self, fields: RequestFields, *, by_default: bool = False) -> bool:
        """Whether the model may think: requests seldom say that it does, and some that it does not."""
        asked = {name: found.value for name, found in fields.items()}
        template = asked.get("chat_template_kwargs")
        return not any(_is_off(each) for each in (asked, template if isinstance(template, dict) else {}))

    def binds_prefix(self, part: Part) -> bool:
        """What proxies of Anthropic's models add, and signed blocks of thinking."""
        key = part.hidden or b""
        is_signed = bool(part.value) and key.startswith(b"{")
        return is_signed or key.startswith(b"thinking_blocks ") or b'"format":"anthropic-' in key

    def belongs_to(self, block: str) -> Belonging:
        return "part" if _is_field(block) == _CALL_HIDDEN else "message"

    def pins_errors(self, fields: RequestFields) -> bool:
        return False

    def edit_message(self, raw: str, edit: Edit) -> str:
        return _edit_message(raw, edit)

    def reply(self, body: bytes) -> Reply:
        text = body.decode("utf-8", "surrogatepass")
        fields = dict(members(text, lists=frozenset({"choices"})))
        choice = dict(members(text, fields["choices"].value[0].start))
        message = choice["message"]
        raw = text[message.start : message.end]
        if message.value.get("role") != "assistant":  # some leave it out
            raw = with_members(raw, {"role": write_json("assistant")})
        head = {name: found.value for name, found in fields.items() if name != "choices"}
        finish = choice["finish_reason"].value if "finish_reason" in choice else None
        return self._reply(raw, head | {"finish_reason": finish})

    def read_stream(self, body: bytes) -> Reply:
        message, head, whole = message_of(body)
        if not whole:  # it is unknown which calls are complete
            message = {name: value for name, value in message.items() if name not in (_CALLS, "function_call")}
        return self._reply(write_json(message), head, whole=whole)

    def _reply(self, raw: str, head: Mapping[str, Any], *, whole: bool = True) -> Reply:
        blocks = self.blocks(raw)
        usage = head.get("usage")
        return Reply(
            parts=self.read_blocks("assistant", [json.loads(block, strict=False) for block in blocks]),
            raws=[blocks],
            id=head.get("id"),
            whole=whole,
            model=head.get("model"),
            usage=usage if isinstance(usage, dict) else {},
            head=head,
        )

    def refusal(self, body: bytes) -> HiddenRefused | None:
        """Invalid hidden parts alone: without them, a provider that misses some would miss more."""
        message = error_message(body)
        if not _ABOUT_HIDDEN.search(message) or not _INVALID.search(message) or _MISSING.search(message):
            return None
        return HiddenRefused()

    def missing(self, body: bytes) -> HiddenMissing | None:
        """Vendors take an empty text for reasoning that was never there, and Gemini a stand-in for a signature."""
        message = error_message(body)
        if not _MISSING.search(message):
            return None
        if _ABOUT_SIGNATURE.search(message):
            return HiddenMissing("a call has Gemini's stand-in for a signature", stand_in=_with_stand_in)
        if "reasoning_content" in message:
            return HiddenMissing("calls without reasoning say that it is empty", stand_in=_with_empty_reasoning)
        return None

    def error(self, status: int, code: str, message: str) -> bytes:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return write_json({"error": {"message": message, "type": kind, "param": None, "code": code or None}}).encode()


def _role(message: Any) -> Role:
    """Raises ValueError: it is no message."""
    role = _ROLES.get(message.get("role", "")) if isinstance(message, dict) else None
    if role is None or not isinstance(message.get("content"), str | list | None):
        raise ValueError("A message has another role or content than OpenAI's.")
    return role


def _slots(message: Mapping[str, Any]) -> Iterator[_Slot]:
    """Yield the places of a message's blocks, in their order."""
    role = message["role"]
    if role in ("tool", "function"):
        yield _Slot("", None, None, message)
        return
    calls = message.get(_CALLS) or () if role == "assistant" else ()
    for name in _HIDDEN if role == "assistant" else ("name",):
        value = message.get(name)
        # Where vendors want it back, along with calls, an empty one is not a missing one.
        if value or (value == "" and calls and name == "reasoning_content"):
            yield _Slot(name, None, None, value)
    content = message.get("content")
    if isinstance(content, list):
        for index, block in enumerate(content):
            yield _Slot("content", index, None, block)
    elif content is not None:
        yield _Slot("content", None, None, content)
    if role == "assistant":
        yield from _said_beside(message)
    for index, call in enumerate(calls):
        if isinstance(call, dict) and call.get(_OF_CALL):
            yield _Slot(_CALLS, index, _OF_CALL, call[_OF_CALL])
        yield _Slot(_CALLS, index, None, call)


def _said_beside(message: Mapping[str, Any]) -> Iterator[_Slot]:
    for name in ("refusal", "audio", "function_call"):
        if value := message.get(name):
            yield _Slot(name, None, None, value)


def _block(slot: _Slot) -> Any:
    """Return the block of a slot as entries have it, parsed."""
    if slot.field in ("", "content"):
        return slot.value
    return {"field": f"{slot.field}.{slot.member}" if slot.member else slot.field, "value": slot.value}


def _raw_blocks(raw: str) -> list[tuple[_Slot, str]]:
    """Return a message's blocks as JSON texts, with their places."""
    fields = dict(members(raw, lists=_LISTS))
    message = {
        name: [each.value for each in found.value] if name in _LISTS and isinstance(found.value, list) else found.value
        for name, found in fields.items()
    }
    return [(slot, _raw_block(slot, raw, fields)) for slot in _slots(message)]


def _raw_block(slot: _Slot, raw: str, fields: Mapping[str, Value]) -> str:
    if slot.field == "":
        return raw
    found = fields[slot.field]
    if slot.element is not None:
        found = found.value[slot.element]
    text = raw[found.start : found.end]
    if slot.field == "content":
        return text
    if slot.member is not None:
        found = dict(members(text))[slot.member]
        return field_block(f"{slot.field}.{slot.member}", text[found.start : found.end])
    if slot.field == _CALLS and _OF_CALL in slot.value:
        text = with_members(text, {_OF_CALL: None})
    return field_block(slot.field, text)


def _part(role: Role, number: int, place: int, block: Any) -> Part | None:
    if isinstance(block, str):
        return Part(role, "text", loose_text_bytes(block), None, number, place, block) if block else None
    if not isinstance(block, dict):
        raise ValueError("A block of a message is no object.")
    if role == "tool":
        return _result(block, number, place)
    kind = block.get("type")
    if kind is None and "field" in block:
        return _field_part(role, number, place, block["field"], block["value"])
    if kind == "text":
        text = block.get("text")
        if not isinstance(text, str):
            raise ValueError("A text block has no text.")
        return Part(role, "text", loose_text_bytes(text), None, number, place, text) if text else None
    if kind == "refusal":
        return _field_part(role, number, place, "refusal", block.get("refusal"))
    if role == "assistant" and kind in _HIDDEN_BLOCKS:
        return Part(role, "other", None, visible_json(block, _INVISIBLE), number, place, block.get("signature"))
    return Part(role, "other", visible_json(block, _INVISIBLE), None, number, place)


def _field_part(role: Role, number: int, place: int, name: str, value: Any) -> Part:
    if name in (_CALLS, "function_call"):
        call = _call(value, name)
        return Part(role, "call", b"call" + visible_json(list(call), frozenset()), None, number, place, call)
    if name in ("name", "refusal", "audio"):
        seen = value.get("id") if isinstance(value, dict) else value  # of spoken words the id comes back alone
        return Part(role, "other", visible_json([name, seen], frozenset()), None, number, place)
    key = text_bytes(value) if isinstance(value, str) else visible_json(value, frozenset())
    return Part(role, "other", None, name.encode() + b" " + key, number, place, _signature(value))


def _call(call: Any, field: str) -> tuple[Any, Any, Any]:
    """Return a call's id, its name and its parsed arguments. Raises ValueError: it is no call."""
    if not isinstance(call, dict):
        raise ValueError("A call is no object.")
    if field == "function_call":
        return None, call.get("name"), _arguments(call.get("arguments"))
    own = call.get("function")
    if isinstance(own, dict):
        return call.get("id"), own.get("name"), _arguments(own.get("arguments"))
    custom = call.get("custom")
    return call.get("id"), *((custom.get("name"), custom.get("input")) if isinstance(custom, dict) else (None, call))


def _arguments(text: Any) -> Any:
    """Return arguments by value, since clients serialize them again. Arguments that are no JSON are a text."""
    if text is None or text == "":
        return {}
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _result(message: Mapping[str, Any], number: int, place: int) -> Part:
    call = message.get("tool_call_id") if message.get("role") != "function" else message.get("name")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    result = [call, content or []]
    visible = b"result" + visible_json(result, _INVISIBLE)
    return Part("tool", "result", visible, None, number, place, (call, text_in(content)))


def _signature(value: Any) -> str | None:
    """Return the last signature in a hidden field."""
    if isinstance(value, list):
        return next((found for each in reversed(value) if (found := _signature(each))), None)
    if not isinstance(value, dict):
        return None
    found = value.get("thought_signature") or value.get("signature") or _signature(value.get("google"))
    return found if isinstance(found, str) and found not in _STAND_INS else None


def _with_empty_reasoning(raw: str) -> str:
    """Return a message with an empty reasoning, if it has calls and none."""
    message = json.loads(raw, strict=False)
    if message.get("role") != "assistant" or not message.get(_CALLS) or message.get("reasoning_content") is not None:
        return raw
    return with_members(raw, {"reasoning_content": '""'})


def _with_stand_in(raw: str) -> str:
    """Return a message whose first call has a stand-in for a signature, if none of its calls has a signature."""
    message = json.loads(raw, strict=False)
    calls = message.get(_CALLS) if message.get("role") == "assistant" else None
    if not isinstance(calls, list) or not calls or any(isinstance(call, dict) and call.get(_OF_CALL) for call in calls):
        return raw
    found = dict(members(raw))[_CALLS]
    first, *rest = (text for _, text in element_texts(raw, found.start))
    first = with_members(first, {_OF_CALL: write_json({"google": {"thought_signature": _STAND_IN}})})
    return with_members(raw, {_CALLS: f"[{','.join([first, *rest])}]"})


def _is_off(asked: Mapping[str, Any]) -> bool:
    """Whether one of the vendors' switches turns thinking off."""
    thinking, reasoning = asked.get("thinking"), asked.get("reasoning")
    return (
        thinking is False
        or (isinstance(thinking, dict) and thinking.get("type") == "disabled")
        or asked.get("enable_thinking") is False
        or asked.get("think") is False
        or asked.get("reasoning_effort") == "none"
        or (isinstance(reasoning, dict) and (reasoning.get("enabled") is False or reasoning.get("effort") == "none"))
    )


def _edit_message(raw: str, edit: Edit) -> str:
    blocks = _raw_blocks(raw)
    fields: dict[str, str | None] = {}
    calls: dict[int, str | None] = {}
    content: list[str] = []
    for place, (slot, text) in enumerate(blocks):
        puts = [(after, block) for at, after, block in edit.puts if at == place]
        content += [block for after, block in puts if not after and not _is_field(block)]
        if slot.field == "content" and place not in edit.drops:
            content.append(text)
        content += [block for after, block in puts if after and not _is_field(block)]
        if place in edit.drops and slot.member is not None:
            calls[slot.element or 0] = None
        elif place in edit.drops and slot.field != "content":
            fields[slot.field] = None
    for at, _, block in edit.puts:
        name = _is_field(block)
        if name == _CALL_HIDDEN and blocks[at][0].field == _CALLS:
            calls[blocks[at][0].element or 0] = field_value(block)
        elif name and name != _CALL_HIDDEN:
            fields[name] = field_value(block)
    if content != [text for slot, text in blocks if slot.field == "content"]:
        fields["content"] = f"[{','.join(map(_as_block, content))}]" if content else '""'
    if calls:
        every = element_texts(raw, dict(members(raw))[_CALLS].start)
        new = (
            with_members(text, {_OF_CALL: calls[index]}) if index in calls else text
            for index, (_, text) in enumerate(every)
        )
        fields[_CALLS] = f"[{','.join(new)}]"
    return with_members(raw, fields)


def _is_field(block: str) -> str | None:
    """Return the name of the field that a block holds, if it holds one."""
    value = json.loads(block, strict=False)
    return value["field"] if isinstance(value, dict) and "type" not in value and "field" in value else None


def _as_block(text: str) -> str:
    return text if text.startswith("{") else f'{{"type":"text","text":{text}}}'


def _write_entry(role: Role, blocks: Sequence[str]) -> Iterator[str]:
    """Yield an entry as messages: each tool's result is one."""
    if role == "tool":
        yield from blocks
        return
    fields: dict[str, str] = {}
    content: list[str] = []
    calls: list[str] = []
    signature: str | None = None
    for block in blocks:
        name = _is_field(block)
        if name is None:
            content.append(block)
        elif name == _CALL_HIDDEN:
            signature = field_value(block)
        elif name == _CALLS:
            call = field_value(block)
            calls.append(with_members(call, {_OF_CALL: signature}) if signature else call)
            signature = None
        else:
            fields[name] = field_value(block)
    alone = content[0] if len(content) == 1 and not content[0].startswith("{") else None
    said = alone or (f"[{','.join(map(_as_block, content))}]" if content else "null" if calls else '""')
    fields = {"role": write_json(role), "content": said} | fields
    if calls:
        fields[_CALLS] = f"[{','.join(calls)}]"
    yield "{" + ",".join(f"{write_json(name)}:{text}" for name, text in fields.items()) + "}"

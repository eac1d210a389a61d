"""OpenAI's Responses as the gateway reads and writes them.

A message's blocks are its fields (`{"field":…}`), then its content; those of any other item its hidden fields, then the
item whole. A reasoning item is one block: it stands before the item that it led to, and is bound to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from longthread.gateway.dialects.anthropic import error_message, names_of, text_in
from longthread.gateway.dialects.dialect import Belonging, Edit, HiddenMissing, HiddenRefused, Reply, RequestFields
from longthread.gateway.dialects.stream import event_data, event_texts
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

_HIDDEN_FIELDS = ("id", "phase")
"""What clients drop from items and messages, and must resend."""
_INVISIBLE = frozenset(
    {"id", "phase", "status", "annotations", "logprobs", "encrypted_content", "created_by", "prompt_cache_breakpoint"}
)
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_FROM_CLIENT: Mapping[str, Role] = {
    "mcp_approval_response": "user",
    "compaction_trigger": "user",
    "additional_tools": "system",
    "configuration_update": "system",
}
"""The roles of items that are neither messages, results, nor the model's."""
_TEXTS = frozenset({"input_text", "output_text", "text"})
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_DONE = b"response.output_item.done"
_TEXT_DELTAS = {"response.output_text.delta": "output_text", "response.refusal.delta": "refusal"}
_SAID = {"output_text": "text", "refusal": "refusal"}
_READ = re.compile(b"|".join(map(re.escape, (_DONE, *(end.encode() for end in _ENDS)))))
"""In the events of a stream that are read."""
_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str).encode
_decode = json.JSONDecoder(strict=False).decode
_ITEM_FAILED = re.compile(
    r"Item '(?P<a>[^']+)' of type '[^']+' was provided without its required|Item with id '(?P<b>[^']+)' not found"
    r"|encrypted content for item (?P<c>\S+) could not be verified"
)
_CONTENT_FAILED = re.compile(r"encrypted content (?P<start>\S+?)\.\.\.(?P<end>\S+) could not be verified")
_KINDS = {429: "rate_limit_error"}
_PARAMS = {"previous_response_not_found": "previous_response_id"}
"""The parameters that errors of the gateway's own are about, by code."""


class Responses:
    name = "responses"
    items = "input"
    final: tuple[str, ...] = _ENDS
    ping = b": ping\n\n"
    vendor_fields: tuple[str, ...] = ()

    def items_without_list(self, fields: RequestFields) -> Sequence[Value]:
        found = fields.get(self.items)
        if found is None or found.value is None:
            return ()
        if not isinstance(found.value, str):
            raise ValueError(f"The request has no list of {self.items}.")
        return [found]

    def tool_names(self, fields: RequestFields) -> list[str]:
        return names_of(fields["tools"].value if "tools" in fields else None)

    def parts(self, items: Sequence[Any]) -> list[Part]:
        found: list[Part] = []
        for number, item in enumerate(items):
            found += _item_parts(number, item)
        return found

    def read_blocks(self, role: Role, blocks: Sequence[Any]) -> list[Part]:
        found: list[Part] = []
        for place, block in enumerate(blocks):
            if _is_content(block):
                found += _content(role, 0, place, block)
            elif _is_field(block):
                found.append(_field(role, 0, place, block["field"], block["value"]))
            else:
                found.append(_item(0, place, block))
        return found

    def blocks(self, raw: str) -> list[str]:
        if not raw.startswith("{"):
            return [raw]
        fields = dict(members(raw))
        item = {name: found.value for name, found in fields.items()}
        own = [field_block(name, raw[fields[name].start : fields[name].end]) for name in _fields(item)]
        if not _is_message(item):
            return [*own, raw]
        content = fields.get("content")
        if content is None or content.value is None:
            return own
        if isinstance(content.value, str):
            return [*own, raw[content.start : content.end]]
        return [*own, *(text for _, text in element_texts(raw, content.start))]

    def is_named(self, fields: RequestFields) -> bool:
        return "store" not in fields or fields["store"].value is not False

    def item_ids(self, blocks: Sequence[Any]) -> list[str]:
        ids = (_item_id(block) for block in blocks if isinstance(block, dict))
        return [id_ for id_ in ids if isinstance(id_, str)]

    def write_messages(self, entries: Sequence[tuple[Role, Sequence[str]]]) -> list[str]:
        return [item for role, blocks in entries for item in _items(role, blocks)]

    def frame_items(self, items: Sequence[Any]) -> int:
        for number, item in enumerate(items):
            if not (isinstance(item, dict) and _is_message(item) and item.get("role") in ("system", "developer")):
                return number
        return len(items)

    def asks_hidden(self, fields: RequestFields, *, by_default: bool = False) -> bool:
        """Return whether hidden parts may be put into the request. Models reason unless the effort is `none`, and take
        their reasoning back."""
        reasoning = fields["reasoning"].value if "reasoning" in fields else None
        return not (isinstance(reasoning, dict) and reasoning.get("effort") == "none")

    def binds_prefix(self, part: Part) -> bool:
        return False

    def belongs_to(self, block: str) -> Belonging:
        """Reasoning is refused without the item that followed it, and the other way round."""
        return "part" if _is_field(_decode(block)) else "pair"

    def pins_errors(self, fields: RequestFields) -> bool:
        return False

    def edit_message(self, raw: str, edit: Edit) -> str:
        return ",".join(_edit_item(raw, self.blocks(raw), edit))

    def reply(self, body: bytes) -> Reply:
        text = body.decode("utf-8", "surrogatepass")
        return self._reply(text, dict(members(text, lists=frozenset({"output"}))), {})

    def read_stream(self, body: bytes) -> Reply:
        done: dict[int, tuple[Any, str]] = {}
        for text in event_texts(body, _READ):
            event = dict(members(text))
            kind = event["type"].value
            if kind == _DONE.decode():
                item = event["item"]
                done[event["output_index"].value] = (item.value, text[item.start : item.end])
            elif kind in _ENDS:
                fields = dict(members(text, event["response"].start, lists=frozenset({"output"})))
                reply = self._reply(text, fields, done)
                if reply.whole:
                    return reply
        return self._broken_off(body, done)

    def _broken_off(self, body: bytes, done: Mapping[int, tuple[Any, str]]) -> Reply:
        """Return what came of a reply: its items that are whole, and the texts of its last message."""
        head: dict[str, Any] = {}
        texts: dict[int, dict[str, Any]] = {}
        for event in event_data(body):
            kind, at = event.get("type"), event.get("output_index")
            if isinstance(found := event.get("response"), dict):
                head |= {name: value for name, value in found.items() if name not in ("output", *_OF_REQUEST)}
            elif kind in _TEXT_DELTAS and at is not None and at not in done:
                item = texts.setdefault(at, {"type": "message", "id": event.get("item_id"), "role": "assistant"})
                content = item.setdefault("content", [])
                if not content or content[-1][0] != event.get("content_index"):
                    content.append((event.get("content_index"), _TEXT_DELTAS[kind], []))
                content[-1][2].append(str(event.get("delta") or ""))
        items = dict(done)
        for at, item in texts.items():
            name = [{"type": kind, _SAID[kind]: "".join(pieces)} for _, kind, pieces in item["content"]]
            items[at] = (made := item | {"content": name}, write_json(made))
        reply = self._reply("", {}, items)
        usage = head.get("usage")
        return replace(reply, whole=False, id=head.get("id"), model=head.get("model"), usage=usage or {}, head=head)

    def _reply(self, text: str, fields: RequestFields, done: Mapping[int, tuple[Any, str]]) -> Reply:
        """`done` are the items of a stream, which are whole; those of its last event may not be."""
        output = fields["output"].value if "output" in fields else None
        items = {place: (item.value, text[item.start : item.end]) for place, item in enumerate(output or ())}
        found = [each for _, each in sorted({**items, **done}.items(), key=lambda numbered: numbered[0])]
        head = {name: each.value for name, each in fields.items() if name not in ("output", *_OF_REQUEST)}
        usage = head.get("usage")
        return Reply(
            parts=self.parts([item for item, _ in found]),
            raws=[self.blocks(raw) for _, raw in found],
            id=head.get("id"),
            ids=[item["id"] for item, _ in found if isinstance(item.get("id"), str)],
            whole=head.get("status") in ("completed", "incomplete", None) and (output is not None or bool(done)),
            model=head.get("model"),
            usage=usage if isinstance(usage, dict) else {},
            head=head,
        )

    def refusal(self, body: bytes) -> HiddenRefused | None:
        message = error_message(body)
        if named := _ITEM_FAILED.search(message):
            id_ = next(each for each in named.groups() if each)
            return HiddenRefused(marks=[_make_key(id_)])
        if cut := _CONTENT_FAILED.search(message):
            return HiddenRefused(marks=[b"\x00" + cut["start"].encode(), cut["end"].encode() + b"\x00"])
        return HiddenRefused() if b'"invalid_encrypted_content"' in body else None

    def missing(self, body: bytes) -> HiddenMissing | None:
        return None

    def error(self, status: int, code: str, message: str) -> bytes:
        shown = _KINDS.get(status, "server_error" if status >= 500 else "invalid_request_error")
        error = {"message": message, "type": shown, "param": _PARAMS.get(code), "code": code or None}
        return write_json({"error": error}).encode()


_OF_REQUEST = ("tools", "instructions")
"""What a response repeats of its request: the call's frame has it."""


def is_reference(item: Any) -> bool:
    """Whether an item names another one by its id; its type may be left out."""
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        return False
    return item.get("type") == "item_reference" or item.keys() == {"id"}


def _is_message(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") in ("message", None) and "role" in item


def _is_content(block: Any) -> bool:
    """Whether a block is of a message's content; otherwise it is a field, or an item of its own."""
    if isinstance(block, str):
        return True
    kind = str(block.get("type") or "")
    return kind in ("text", "refusal") or kind.startswith(("input_", "output_"))


def _is_field(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"field", "value"}


def _item_id(block: Mapping[str, Any]) -> Any:
    """Return the id that a block holds: of other items than reasoning, it is a block of its own."""
    if block.get("field") == "id":
        return block["value"]
    return block.get("id") if block.get("type") == "reasoning" else None


def _fields(item: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields of an item that are blocks of their own: the hidden ones, and what else a message has."""
    if item.get("type") == "reasoning":
        return
    # An item of the provider's own tools is recognised by its id alone.
    hidden = _HIDDEN_FIELDS if _is_message(item) or "call_id" in item else ()
    yield from (name for name in hidden if name in item)
    if _is_message(item):
        left_out = ("type", "content", *_HIDDEN_FIELDS, *(() if item["role"] == "developer" else ("role",)))
        yield from (name for name in item if name not in left_out)


def _item_parts(number: int, item: Any) -> list[Part]:
    if isinstance(item, str):
        return _content("user", number, 0, item)
    if not isinstance(item, dict):
        raise ValueError("An item of the input is no object.")
    if not _is_message(item):
        whole = _item(number, 0, item)
        fields = [_field(whole.role, number, place, name, item[name]) for place, name in enumerate(_fields(item))]
        return [*fields, whole._replace(place=len(fields))]
    role, content = _ROLES.get(item["role"]), item.get("content")
    if role is None or not isinstance(content, str | list | None):
        raise ValueError("A message has another role or content than OpenAI's.")
    parts = [_field(role, number, place, name, item[name]) for place, name in enumerate(_fields(item))]
    start = len(parts)
    for place, block in enumerate([content] if isinstance(content, str) else content or ()):
        parts += _content(role, number, start + place, block)
    return parts


def _field(role: Role, number: int, place: int, name: str, value: Any) -> Part:
    hidden = _make_key(name, str(value)) if name in _HIDDEN_FIELDS and value is not None else None
    return Part(role, "other", None, hidden, number, place)


def _make_key(*values: str) -> bytes:
    """Return values as the key of a hidden part: in it, each stands between zeros."""
    return "\x00".join(["", *values, ""]).encode("utf-8", "surrogatepass")


def _content(role: Role, number: int, place: int, block: Any) -> list[Part]:
    if isinstance(block, str):
        return [Part(role, "text", loose_text_bytes(block), None, number, place, block)] if block else []
    if not isinstance(block, dict):
        raise ValueError("A part of a message is no object.")
    kind = block.get("type")
    if kind in _TEXTS and isinstance(block.get("text"), str):
        return _content(role, number, place, block["text"])
    if kind == "refusal" and isinstance(block.get("refusal"), str):
        text = block["refusal"]
        return [Part(role, "text", b"refusal\x00" + text_bytes(text), None, number, place, text)]
    return [Part(role, "other", _visible(block), None, number, place)]


def _item(number: int, place: int, item: Mapping[str, Any]) -> Part:
    """Return an item that is no message as one part."""
    kind = str(item.get("type") or "")
    if kind == "reasoning":
        content = item.get("encrypted_content")
        key = _make_key(str(item.get("id") or ""), str(content or ""), *_reasoning_texts(item))
        return Part("assistant", "other", None, key, number, place, content)
    if kind.endswith("_output"):
        output = item.get("output")
        blocks = [{"type": "input_text", "text": output}] if isinstance(output, str) and output else output or []
        if isinstance(blocks, list):
            blocks = [_select_visible(block) if isinstance(block, dict) else block for block in blocks]
        visible = b"result" + _visible({**item, "output": blocks})
        return Part("tool", "result", visible, None, number, place, (item.get("call_id"), text_in(blocks)))
    if kind == "item_reference" or not kind:
        visible = visible_json(dict(item), frozenset({"type"}))
        return Part("assistant", "reference" if is_reference(item) else "other", visible, None, number, place)
    if kind.startswith("compaction") and item.get("encrypted_content"):
        return Part("assistant", "other", _make_key(str(item["encrypted_content"])), None, number, place)
    if kind.endswith("_call") and item.get("call_id"):
        return _call(number, place, kind, item)
    own = _canonical(item.get("id")).encode() + _visible(item)
    return Part(_FROM_CLIENT.get(kind, "assistant"), "other", own, None, number, place)


def _call(number: int, place: int, kind: str, item: Mapping[str, Any]) -> Part:
    args = item.get("arguments")
    if isinstance(args, str):
        with suppress(ValueError, RecursionError):  # if the model wrote no JSON, its text is what is seen
            args = _decode(args) if args.strip() else {}
        item = {**item, "arguments": [args]}
    else:
        args = next((item[name] for name in ("input", "action", "operation") if name in item), None)
        args = args if isinstance(args, dict) else {"input": args}
    call = (item["call_id"], item.get("name") or kind, args)
    return Part("assistant", "call", b"call" + _visible(item), None, number, place, call)


def _visible(item: Mapping[str, Any]) -> bytes:
    return visible_json(_select_visible(item), frozenset())


def _select_visible(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model sees of an item or a part. SDKs write null for what is absent."""
    return {name: value for name, value in item.items() if value is not None and name not in _INVISIBLE}


def _reasoning_texts(item: Mapping[str, Any]) -> Iterator[str]:
    for name in ("summary", "content"):
        found = item.get(name)
        for part in found if isinstance(found, list) else ():
            yield str(part.get("text") if isinstance(part, dict) else part)


def _edit_item(raw: str, blocks: Sequence[str], edit: Edit) -> list[str]:
    """Return the items that an item becomes. Inserted blocks stand before or after it. A message is split where they
    belong between its parts, as where a client joined two messages."""
    values = [_decode(block) for block in blocks]
    whole = [block for block, value in zip(blocks, values, strict=True) if not _is_field(value)]
    fields: dict[str, str | None] = {values[at]["field"]: None for at in edit.drops if _is_field(values[at])}
    found: list[str] = []
    content: list[str] = []
    for block, is_put in _with_puts(blocks, edit):
        value = _decode(block)
        if _is_field(value) and not is_put:
            continue
        if not is_put:
            content.append(block)
            continue
        if content:
            found.append(_change_item(raw, fields, content, whole))
            fields, content = dict.fromkeys(_HIDDEN_FIELDS), []
        if _is_field(value):
            fields[value["field"]] = field_value(block)
        else:
            found.append(block)
    if content or not whole:
        found.append(_change_item(raw, fields, content, whole))
    return found


def _with_puts(blocks: Sequence[str], edit: Edit) -> Iterator[tuple[str, bool]]:
    for place, block in enumerate(blocks):
        yield from ((put, True) for at, after, put in edit.puts if at == place and not after)
        if place not in edit.drops:
            yield block, False
        yield from ((put, True) for at, after, put in edit.puts if at == place and after)


def _change_item(raw: str, fields: Mapping[str, str | None], content: Sequence[str], whole: Sequence[str]) -> str:
    """Return an item with other fields, and with a part of its content."""
    changes = dict(fields)
    if len(content) != len(whole):
        changes["content"] = f"[{','.join(content)}]"
    return with_members(raw, changes) if changes else raw


def _items(role: Role, blocks: Sequence[str]) -> Iterator[str]:
    """Yield the items that an entry's blocks make: a message of its content, and the others as they are."""
    fields: dict[str, str] = {}
    content: list[str] = []
    for raw in blocks:
        block = _decode(raw)
        if _is_content(block):
            content.append(raw)
            continue
        if content:
            yield _message(role, fields, content)
            fields, content = {}, []
        if _is_field(block):
            fields[block["field"]] = field_value(raw)
            continue
        yield raw
        if block.get("type") != "reasoning":
            fields = {}
    if content:
        yield _message(role, fields, content)


def _message(role: Role, fields: Mapping[str, str], content: Sequence[str]) -> str:
    kind = "output_text" if role == "assistant" else "input_text"
    if len(content) == 1 and content[0].startswith('"'):
        said = content[0]
    else:
        said = ",".join(f'{{"type":"{kind}","text":{raw}}}' if raw.startswith('"') else raw for raw in content)
        said = f"[{said}]"
    return with_members("{}", {"type": '"message"', "role": write_json(role), **fields, "content": said})

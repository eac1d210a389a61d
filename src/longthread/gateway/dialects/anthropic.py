"""Anthropic's Messages as the gateway reads and writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from longthread.gateway.dialects.dialect import Belonging, Edit, HiddenMissing, HiddenRefused, Reply, RequestFields
from longthread.gateway.dialects.stream import event_data
from longthread.gateway.parts import Part, text_bytes, visible_json
from longthread.gateway.raw_json import Value, element_texts, members, replace_spans, write_json
from longthread.model.entry import Role

_THINKING = frozenset({"thinking", "redacted_thinking"})
_INVISIBLE = frozenset({"cache_control", "signature", "encrypted_content", "encrypted_index"})
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_PLACE = re.compile(r"messages\.(\d+)\.content\.(\d+)")
_ABOUT_HIDDEN = re.compile(
    r"`?signature`?|redacted_thinking|thinking\.signature|`thinking`|prefix.?mismatch|block_binding", re.IGNORECASE
)
_EXPECTED = re.compile(r"expected `?(?:redacted_)?thinking`?.*but found", re.IGNORECASE | re.DOTALL)
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
_OWN_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    501: "not_supported",
}


class Anthropic:
    name = "anthropic"
    items = "messages"
    final: tuple[str, ...] = ("message_stop",)
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    vendor_fields: tuple[str, ...] = ()

    def items_without_list(self, fields: RequestFields) -> Sequence[Value]:
        raise ValueError(f"The request has no list of {self.items}.")

    def tool_names(self, fields: RequestFields) -> list[str]:
        return names_of(fields["tools"].value if "tools" in fields else None)

    def parts(self, items: Sequence[Any]) -> list[Part]:
        found: list[Part] = []
        for number, message in enumerate(items):
            if not isinstance(message, dict):
                raise ValueError("A message is no object.")
            role = _ROLES.get(message.get("role", ""))
            content = message.get("content")
            if role is None or not isinstance(content, str | list | None):
                raise ValueError("A message has another role or content than Anthropic's.")
            found += _parts(role, number, [content] if isinstance(content, str) else content or ())
        return found

    def read_blocks(self, role: Role, blocks: Sequence[Any]) -> list[Part]:
        return _parts("user" if role == "tool" else role, 0, blocks)

    def blocks(self, raw: str) -> list[str]:
        content = dict(members(raw)).get("content")
        if content is None or content.value is None:
            return []
        if isinstance(content.value, str):
            return [raw[content.start : content.end]]
        return [text for _, text in element_texts(raw, content.start)]

    def is_named(self, fields: RequestFields) -> bool:
        return "thread" in fields

    def item_ids(self, blocks: Sequence[Any]) -> list[str]:
        return []

    def write_messages(self, entries: Sequence[tuple[Role, Sequence[str]]]) -> list[str]:
        found: list[tuple[str, list[str]]] = []
        for role, blocks in entries:
            sent = "user" if role == "tool" else role
            # Results and the text after them were one message, and parallel results must be.
            if found and found[-1][0] == sent:
                found[-1][1].extend(map(_as_block, blocks))
            else:
                found.append((sent, [_as_block(block) for block in blocks]))
        return [f'{{"role":"{role}","content":[{",".join(blocks)}]}}' for role, blocks in found]

    def frame_items(self, items: Sequence[Any]) -> int:
        return 0

    def asks_hidden(self, fields: RequestFields, *, by_default: bool = False) -> bool:
        thinking = fields["thinking"].value if "thinking" in fields else None
        if thinking is None:
            return by_default
        return isinstance(thinking, dict) and thinking.get("type", "disabled") != "disabled"

    def binds_prefix(self, part: Part) -> bool:
        """A signed block, or one that only the provider reads."""
        return bool(part.value) or (part.hidden or b"").startswith(b"redacted_thinking")

    def belongs_to(self, block: str) -> Belonging:
        return "message"

    def pins_errors(self, fields: RequestFields) -> bool:
        thinking = fields["thinking"].value if "thinking" in fields else None
        own = fields["block_binding"].value if "block_binding" in fields else None
        binding = own or (thinking.get("block_binding") if isinstance(thinking, dict) else None)
        return isinstance(binding, dict) and binding.get("prefix_mismatch_behavior") == "error"

    def edit_message(self, raw: str, edit: Edit) -> str:
        content = dict(members(raw))["content"]
        new: list[str] = []
        for place, text in enumerate(self.blocks(raw)):
            new += [block for at, after, block in edit.puts if at == place and not after]
            if place not in edit.drops:
                new.append(_as_block(text))
            new += [block for at, after, block in edit.puts if at == place and after]
        if not new:
            return ""
        return replace_spans(raw, [(content.start, content.end, f"[{','.join(new)}]")])

    def reply(self, body: bytes) -> Reply:
        text = body.decode("utf-8", "surrogatepass")
        fields = dict(members(text))
        blocks = [block for _, block in element_texts(text, fields["content"].start)]
        head = {name: found.value for name, found in fields.items() if name != "content"}
        return _reply(fields["content"].value, blocks, head)

    def read_stream(self, body: bytes) -> Reply:
        blocks: dict[int, dict[str, Any]] = {}
        inputs: dict[int, str] = {}
        head: dict[str, Any] = {}
        ended = set[int]()
        whole = False
        for event in event_data(body):
            kind = event.get("type")
            if kind == "message_start":
                head |= event["message"]
            elif kind == "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            elif kind == "content_block_delta":
                _extend(blocks[event["index"]], inputs, event["index"], event["delta"])
            elif kind == "content_block_stop":
                ended.add(event["index"])
            elif kind == "message_delta":
                head |= event.get("delta") or {}
                head["usage"] = {**(head.get("usage") or {}), **(event.get("usage") or {})}
            elif kind == "message_stop":
                whole = True
        if not whole:  # a call that broke off is none
            blocks = {place: block for place, block in blocks.items() if place in ended or "input" not in block}
        for place in inputs.keys() & blocks.keys():
            blocks[place]["input"] = json.loads(inputs[place]) if inputs[place].strip() else {}
        content = [blocks[place] for place in sorted(blocks)]
        head.pop("content", None)
        return _reply(content, [write_json(block) for block in content], head, whole=whole)

    def refusal(self, body: bytes) -> HiddenRefused | None:
        message = error_message(body)
        if not _ABOUT_HIDDEN.search(message):
            return None
        place = _PLACE.search(message)
        return HiddenRefused(int(place[1]), int(place[2])) if place else HiddenRefused()

    def missing(self, body: bytes) -> HiddenMissing | None:
        """A turn with calls, made elsewhere or without thinking, cannot go on with it: this call goes without."""
        if not _EXPECTED.search(error_message(body)):
            return None
        return HiddenMissing("thinking is off for this call", {"thinking": '{"type":"disabled"}'})

    def error(self, status: int, code: str, message: str) -> bytes:
        error: dict[str, Any] = {"type": _OWN_ERRORS.get(status, "api_error"), "message": message}
        if code:
            error["details"] = {"error_code": code}
        return write_json({"type": "error", "error": error}).encode()


def _as_block(text: str) -> str:
    return text if text.startswith("{") else f'{{"type":"text","text":{text}}}'


def names_of(tools: Any) -> list[str]:
    """Return the names of tools, of any dialect; those without one by their type."""
    found: list[str] = []
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            own = tool.get("function")
            name = (own if isinstance(own, dict) else tool).get("name") or tool.get("type")
            found.append(str(name))
    return found


def error_message(body: bytes) -> str:
    """Return the message of a provider's error, or an empty text."""
    try:
        error = json.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        return ""


def _parts(role: Role, number: int, content: Sequence[Any]) -> list[Part]:
    found = (_part(role, number, place, block) for place, block in enumerate(content))
    return [part for part in found if part is not None]


def _part(role: Role, number: int, place: int, block: Any) -> Part | None:
    if isinstance(block, str):
        return Part(role, "text", text_bytes(block), None, number, place, block) if block else None
    if not isinstance(block, dict):
        raise ValueError("A block of a message is no object.")
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        if not isinstance(text, str):
            raise ValueError("A text block has no text.")
        return Part(role, "text", text_bytes(text), None, number, place, text) if text else None
    if kind in _THINKING:
        return Part(role, "other", None, _hide_key(block), number, place, block.get("signature"))
    if kind == "tool_use":
        call = (block.get("id"), block.get("name"), block.get("input"))
        return Part(role, "call", b"call" + visible_json(list(call), frozenset()), None, number, place, call)
    if kind == "tool_result":
        content = _result_content(block.get("content"))
        result = [block.get("tool_use_id"), content, bool(block.get("is_error"))]
        visible = b"result" + visible_json(result, _INVISIBLE)
        return Part("tool", "result", visible, None, number, place, (result[0], text_in(content)))
    return Part(role, "other", visible_json(block, _INVISIBLE), None, number, place)


def _result_content(content: Any) -> Any:
    if content is None or content == "":
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _hide_key(block: Mapping[str, Any]) -> bytes:
    values = (str(block.get(key) or "") for key in ("type", "thinking", "signature", "data"))
    return "\x00".join(values).encode("utf-8", "surrogatepass")


def text_in(content: Any) -> str:
    """Return the texts of a result's content."""
    texts = (block.get("text") for block in content if isinstance(block, dict)) if isinstance(content, list) else ()
    return "\n".join(text for text in texts if isinstance(text, str))


def _reply(content: Sequence[Any], raws: Sequence[str], head: Mapping[str, Any], *, whole: bool = True) -> Reply:
    usage = head.get("usage")
    return Reply(
        parts=_parts("assistant", 0, content),
        raws=[raws],
        id=head.get("id"),
        whole=whole,
        model=head.get("model"),
        usage=usage if isinstance(usage, dict) else {},
        head=head,
    )


def _extend(block: dict[str, Any], inputs: dict[int, str], place: int, delta: Mapping[str, Any]) -> None:
    kind = delta.get("type")
    if kind == "input_json_delta":
        inputs[place] = inputs.get(place, "") + delta.get("partial_json", "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    elif kind in _DELTAS:
        key = _DELTAS[kind]
        block[key] = (block.get(key) or "") + delta.get(key, "")
    elif kind:  # a delta that is newer than this: each of its texts goes on
        for key, value in delta.items():
            if key != "type":
                before = block.get(key)
                block[key] = before + value if isinstance(before, str) and isinstance(value, str) else value

"""Messages as a provider's wire has them: an entry's payload with the raw JSON of its blocks, compressed."""

from __future__ import annotations

import binascii
import json
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import NamedTuple

_MARK = b"\x00"
_DIALECTS = ("anthropic", "responses", "completions")
"""In a payload a dialect is its place here, from 1. The order never changes."""
_MARKS = tuple(_MARK + bytes([number]) for number in range(1, len(_DIALECTS) + 1))
_WHOLE, _CUT, _CUT_ASCII = range(3)
"""The third byte: whether the entry's text was cut out, and whether its JSON was in ASCII."""
_OLD = b"\x00wire:"
"""How older payloads begin, which stores keep. The dialect's name follows, then a NUL and the compressed blocks."""
_OLD_WINDOW = 32_768
_SEAL = re.compile(r"[A-Za-z0-9+/]{64,}={0,2}|[\w-]{64,}={0,2}", re.ASCII)
_WINDOW = 32_768
"""Bytes of a dictionary that zlib takes."""
_SMALL = 8_192
"""Up to so many bytes a small window does, which takes a quarter of the time."""
# What is stored was made with these bytes: they never change. What comes last is found with the fewest bits.
_WORDS = (
    b'"created_at":17,"incomplete_details":null,"max_output_tokens":null,"max_tool_calls":null,"parallel_tool_calls":true,'
    b'"prompt_cache_key":"","safety_identifier":null,"truncation":"disabled","top_logprobs":0,"background":false,'
    b'"tool_choice":"auto","temperature":1.0,"top_p":1.0,"reasoning":{"effort":"medium","summary":null},'
    b'"text":{"format":{"type":"text"},"verbosity":"medium"},"metadata":{},"user":null,"error":null,'
    b'{"id":"resp_0","object":"response","status":"completed","model":"gpt-5","store":true,'
    b'"output":[{"id":"rs_0","type":"reasoning","encrypted_content":"gAAAAAB","summary":[{"type":"summary_text","text":"'
    b'{"id":"fc_0","type":"function_call","status":"completed","arguments":"{\\"","call_id":"call_","name":"'
    b'{"type":"function_call_output","call_id":"call_","output":"'
    b'{"id":"msg_0","type":"message","status":"completed","phase":"final_answer","role":"assistant",'
    b'"content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"'
    b'{"type":"message","role":"user","content":[{"type":"input_text","text":"'
    b'"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0},"output_tokens":1,'
    b'"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1}'
    b'{"id":"chatcmpl-","object":"chat.completion","created":17,"system_fingerprint":"fp_","choices":[{"index":0,'
    b'"finish_reason":"stop","native_finish_reason":"stop","logprobs":null,"refusal":null,"reasoning_content":"'
    b'"reasoning_details":[{"type":"reasoning.text","format":"","index":0,"text":"'
    b'"extra_content":{"google":{"thought_signature":"'
    b'"tool_calls":[{"id":"call_","index":0,"type":"function","function":{"name":"","arguments":"{\\"'
    b'{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1,"prompt_tokens_details":{"cached_tokens":0,'
    b'"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}'
    b'{"field":"content","value":"{"field":"reasoning_content","value":"{"field":"phase","value":"{"field":"id","value":"'
    b'"stop_details":null,"container":null,"context_management":{"applied_edits":[]},"diagnostics":null,'
    b'"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"server_tool_use":null,'
    b'"service_tier":"standard","inference_geo":"global","output_tokens_details":{"thinking_tokens":0},'
    b'{"id":"msg_01","type":"message","role":"assistant","model":"claude-","stop_reason":"tool_use",'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"cache_creation_input_tokens":0,'
    b'"cache_read_input_tokens":0,"output_tokens":1}}'
    b'{"type": "tool_use", "id": "toolu_01", "name": "", "input": {"'
    b'{"type":"tool_use","id":"toolu_01","name":"","input":{"'
    b'"caller":{"type":"direct"}},"is_error":false,"cache_control":{"type":"ephemeral"},"citations":null,'
    b'[{"type": "tool_result", "tool_use_id": "toolu_01", "content": "'
    b'[{"type":"tool_result","tool_use_id":"toolu_01","content":"'
    b'[{"type":"redacted_thinking","data":"'
    b'[{"type": "thinking", "thinking": "", "signature": ""},{"type": "text", "text": ""}]'
    b'[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":""}]'
)


class _Seal(NamedTuple):
    """Bytes that stand in base64 before a place of the rest. `is_url`: in the alphabet for URLs."""

    at: int
    is_url: bool
    data: bytes


def pack(dialect: str, blocks: Sequence[str], text: str) -> bytes:
    """Return the payload of an entry whose message has these blocks, as JSON texts."""
    form, at, rest = _cut(f"[{','.join(blocks)}]", text)
    body = deflate(_join_line(at, *_take_seals(rest)), b"" if form else _bytes(text))
    return _MARKS[_DIALECTS.index(dialect)] + bytes([form]) + body


def is_wire(payload: bytes | None) -> bool:
    return payload is not None and payload.startswith((*_MARKS, _OLD))


def unpack(payload: bytes, text: str) -> tuple[str, str]:
    """Return the dialect of a payload, and its blocks as the text of a JSON list. Raises ValueError: it is damaged."""
    if payload.startswith(_OLD):
        return _unpack_old(payload, text)
    try:
        form = payload[2]
        at, seals, rest = _part_line(inflate(payload[3:], b"" if form else _bytes(text)))
        rest = _put_seals(seals, rest)
        if form != _WHOLE:
            rest = rest[:at] + _spell_text(text, form) + rest[at:]
        return _DIALECTS[payload[1] - 1], rest
    except (IndexError, TypeError) as error:
        raise ValueError(str(error)) from error


def _cut(raw: str, text: str) -> tuple[int, int, str]:
    """Return how the text is spelled in the blocks, its place, and the blocks without it."""
    for form in (_CUT, _CUT_ASCII) if text else ():
        spelled = _spell_text(text, form)
        at = raw.find(spelled)
        if at >= 0:
            return form, at, raw[:at] + raw[at + len(spelled) :]
    return _WHOLE, 0, raw


def _spell_text(text: str, form: int) -> str:
    return json.dumps(text, ensure_ascii=form == _CUT_ASCII)[1:-1]


def _take_seals(text: str) -> tuple[list[_Seal], str]:
    """Return the bytes that a text has in base64, and the text without them."""
    seals: list[_Seal] = []
    pieces: list[str] = []
    at = begin = 0
    for match in _SEAL.finditer(text):
        seal = _seal(match[0], at + match.start() - begin)
        if seal is not None:
            pieces.append(text[begin : match.start()])
            at, begin = seal.at, match.end()
            seals.append(seal)
    return seals, "".join([*pieces, text[begin:]])


def _seal(text: str, at: int) -> _Seal | None:
    """Return what a text is in base64. One that is numbers in hexadecimal gets smaller as it is."""
    is_url = "-" in text or "_" in text
    if text in (text.lower(), text.upper()):
        return None
    try:
        seal = _Seal(at, is_url, (urlsafe_b64decode if is_url else b64decode)(text))
    except binascii.Error:
        return None
    return seal if _base64(seal) == text else None


def _put_seals(seals: Sequence[_Seal], rest: str) -> str:
    ends = [0, *(seal.at for seal in seals)]
    pieces = [
        piece for begin, seal in zip(ends, seals, strict=False) for piece in (rest[begin : seal.at], _base64(seal))
    ]
    return "".join([*pieces, rest[ends[-1] :]])


def _base64(seal: _Seal) -> str:
    return (urlsafe_b64encode if seal.is_url else b64encode)(seal.data).decode()


def _join_line(at: int, seals: Sequence[_Seal], rest: str) -> bytes:
    """Return a line of numbers (the text's place; of each seal its place, its alphabet and its size), the seals and the
    rest."""
    numbers = [at, *(number for seal in seals for number in (seal.at, int(seal.is_url), len(seal.data)))]
    return b"".join([" ".join(map(str, numbers)).encode(), b"\n", *(seal.data for seal in seals), _bytes(rest)])


def _part_line(body: bytes) -> tuple[int, list[_Seal], str]:
    head, _, body = body.partition(b"\n")
    at, *numbers = map(int, head.split())
    found: list[_Seal] = []
    for place, is_url, size in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        found.append(_Seal(place, bool(is_url), body[:size]))
        body = body[size:]
    return at, found, body.decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _unpack_old(payload: bytes, text: str) -> tuple[str, str]:
    kind, body = payload[1:].split(_MARK, 1)
    unpacker = zlib.decompressobj(-15, _bytes(text)[-_OLD_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return kind.decode().removeprefix("wire:"), raw.decode("utf-8", "surrogatepass")


def deflate(raw: bytes, more: bytes = b"") -> bytes:
    """Compress bytes. `more` is text that they have in common with something that is stored anyway."""
    words = (_WORDS + more)[-_WINDOW:]
    is_small = len(raw) + len(words) <= _SMALL
    packer = zlib.compressobj(6, zlib.DEFLATED, *((-13, 5) if is_small else (-15, 8)), zdict=words)
    return packer.compress(raw) + packer.flush()


def inflate(body: bytes, more: bytes = b"") -> bytes:
    """Return what `deflate` was given. Raises ValueError: the bytes are damaged."""
    unpacker = zlib.decompressobj(-15, (_WORDS + more)[-_WINDOW:])
    try:
        raw = unpacker.decompress(body) + unpacker.flush()
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not unpacker.eof:
        raise ValueError("its end is missing")
    return raw

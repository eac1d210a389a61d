"""Payloads with the raw JSON of a provider's blocks."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longthread.model.content import is_wire, pack, unpack

SEAL = base64.b64encode(bytes(range(256))).decode()
URL = base64.urlsafe_b64encode(bytes(range(255, 0, -1))).decode()
DIALECTS = ("anthropic", "responses", "completions")
texts = st.text(max_size=30)
seals = st.builds(lambda data: base64.b64encode(data).decode(), st.binary(min_size=48, max_size=90))
blocks = st.dictionaries(texts, texts | seals | st.lists(texts | seals, max_size=3), max_size=3)


def spelled(value: object, *, ascii_only: bool = False, wide: bool = False) -> str:
    separators = (", ", ": ") if wide else (",", ":")
    return json.dumps(value, ensure_ascii=ascii_only, separators=separators)


@given(st.sampled_from(DIALECTS), st.lists(blocks | texts, min_size=1, max_size=3), texts, st.booleans(), st.booleans())
@example("anthropic", [{"signature": SEAL + URL}, SEAL, {"a": URL + "=", "b": SEAL[:-1]}], "", False, False)
@example("anthropic", [{"text": "𝄞 \n\ud800"}, "f" * 64, "F" * 64], "𝄞 \n\ufffd", True, True)
def test_what_is_packed_comes_back(dialect: str, said: list[object], text: str, ascii_only: bool, wide: bool) -> None:
    raws = [spelled(each, ascii_only=ascii_only, wide=wide) for each in said]
    text = text.encode("utf-8", "replace").decode()
    for own in (text, next((each for each in said if isinstance(each, str)), "").encode("utf-8", "replace").decode()):
        payload = pack(dialect, raws, own)
        assert is_wire(payload)
        assert unpack(payload, own) == (dialect, f"[{','.join(raws)}]")


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("block", ['{"type":"text","text":%s}', '{"type": "text", "text": %s}', "%s"])
def test_a_text_that_the_column_has_is_not_there_again(block: str, ascii_only: bool) -> None:
    said = "".join(f'{number} 数据 "\n' for number in range(10_000))
    payload = pack("anthropic", [block % spelled(said, ascii_only=ascii_only)], said)
    assert len(payload) < 20
    assert unpack(payload, said)[1] == f"[{block % spelled(said, ascii_only=ascii_only)}]"


def test_a_signature_takes_its_bytes() -> None:
    data = bytes(number * number * 31 % 251 for number in range(300))
    block = spelled({"type": "thinking", "thinking": "", "signature": base64.b64encode(data).decode()})
    assert len(pack("anthropic", [block], "So")) < len(data) + 30


def test_payloads_of_before_are_read() -> None:
    said, raw = "数据", '[{"type":"text","text":"数据"}]'
    packer = zlib.compressobj(6, zlib.DEFLATED, -15, 8, zlib.Z_DEFAULT_STRATEGY, said.encode())
    payload = b"\0wire:responses\0" + packer.compress(raw.encode()) + packer.flush()
    assert is_wire(payload)
    assert unpack(payload, said) == ("responses", raw)


@pytest.mark.parametrize(
    "change", [lambda whole: whole[:-3], lambda whole: whole[:2], lambda whole: whole[:3] + b"\xff"]
)
def test_a_damaged_payload_is_a_value_error(change: object) -> None:
    assert callable(change)
    with pytest.raises(ValueError, match=r"."):
        unpack(change(pack("anthropic", [spelled({"signature": SEAL})], "")), "")


def test_other_payloads_are_not_of_the_wire() -> None:
    assert not any(map(is_wire, (None, b"", b"{}", b"\0json:AIMessage\0{}", b"\0")))

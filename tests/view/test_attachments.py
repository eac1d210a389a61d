"""What attachments cost, in every form in which clients send them."""

from __future__ import annotations

import struct
import zlib
from time import process_time
from typing import Any

import pytest
from tests.view.files import documents, noise, sent

from longthread.model.content import attachment_of
from longthread.view import tokens
from longthread.view.tokens import (
    AUDIO_SECOND,
    ELSEWHERE,
    IMAGE,
    MOST_PAGES,
    PAGE,
    VIDEO_SECOND,
    attachment_tokens,
    estimate,
    pages_in,
)

Block = dict[str, Any]

SAID = "The budget of the harbour is 3,000 crowns. 港口的预算是三万元。\n" * 50


def cost(block: Block) -> int:
    attached = attachment_of(block)
    assert attached is not None
    return attachment_tokens(attached)


def page(n: int) -> bytes:
    return b"%d 0 obj\n<< /Type /Page /Parent 1 0 R >>\nendobj\n" % n


def table(count: int, more: bytes = b"") -> bytes:
    return b"1 0 obj\n<< /Type /Pages %b/Kids [2 0 R 3 0 R] /Count %d >>\nendobj\n" % (more, count)


def packed(body: bytes) -> bytes:
    return b"9 0 obj\n<< /Type /ObjStm /N 3 /First 9 >>\nstream\n" + zlib.compress(body) + b"\nendstream\nendobj\n"


PDFS = {
    "a table of pages": (b"%PDF-1.4\n" + noise(9_000) + table(7), 7),
    "a table within a table": (b"%PDF-1.4\n" + table(4, b"/Parent 8 0 R ") + table(9) + page(3), 9),
    "pages alone": (b"%PDF-1.4\n" + b"".join(map(page, range(12))), 12),
    "a table that is compressed": (b"%PDF-1.5\n" + packed(table(31)), 31),
    "pages that are compressed": (b"%PDF-1.5\n" + packed(page(2) + page(3)) + packed(page(4)), 3),
    "made to be shown while it comes": (b"%PDF-1.5\n1 0 obj\n<< /Linearized 1 /L 9 /N 23 /T 7 >>\n" + noise(999), 23),
    "long, its table at the end": (b"%PDF-1.4\n" + noise(5_000_000) + table(40), 40),
    "long, its pages in the middle": (b"%PDF-1.4\n" + noise(3_000_000) + page(2) + page(3) + noise(3_000_000), 2),
    "encrypted": (b"%PDF-1.5\n" + packed(b"")[:60] + noise(500) + b"endstream", None),
}


@pytest.mark.parametrize("kind", PDFS)
def test_the_pages_of_a_pdf_are_counted(kind: str) -> None:
    data, pages = PDFS[kind]
    assert pages_in(sent(data)) == pages
    assert pages_in(sent(data).rstrip("=")) == pages


def test_a_long_pdf_is_not_decoded_where_its_ends_say_how_many_pages_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    whole = sent(b"%PDF-1.4\n" + noise(8_000_000) + table(40))
    decode = tokens.b64decode
    monkeypatch.setattr(tokens, "b64decode", lambda data: decoded.append(len(data)) or decode(data))
    assert pages_in(whole) == 40
    assert sum(decoded) < len(whole) / 4


@pytest.mark.parametrize("wrong", ["no base64: ümläut", "A", "", "JVBERi0" + "A" * 50])
def test_what_is_no_pdf_has_no_pages(wrong: str) -> None:
    assert pages_in(wrong) is None


@pytest.mark.parametrize(
    "part",
    [b"/Type/Pages", b"/Type/ObjStm>>stream\n", b"/Type/ObjStm>>stream\nx endstream", b"/Type ", b"<</Type/Pages>>"],
)
def test_a_file_that_is_made_to_take_long_does_not(part: bytes) -> None:
    before = process_time()
    pages_in(sent(b"%PDF-1.5\n" + part * (3_000_000 // len(part))))
    assert process_time() - before < 5


def test_nor_does_an_address_without_an_end() -> None:
    before = process_time()
    assert cost({"type": "file", "url": "data:" + "A" * 300_000}) == ELSEWHERE["document"]
    assert process_time() - before < 5


@pytest.mark.parametrize("form", documents(b""))
def test_a_document_costs_what_its_pages_do(form: str) -> None:
    small, large = (documents(b"%PDF-1.4\n" + table(8) + noise(size))[form] for size in (9, 900_000))
    assert 8 * PAGE <= cost(small) <= 8 * PAGE + 10
    assert cost(large) == cost(small)
    unknown = documents(b"%PDF-1.4\n" + noise(300_000))[form]
    assert 12 * PAGE <= cost(unknown) <= 14 * PAGE
    most = documents(b"%PDF-1.4\n" + noise(3_000_000))[form]
    assert cost(most) <= MOST_PAGES * PAGE + 10
    assert 12 * PAGE <= cost(documents(noise(300_000), "application/msword")[form]) <= 14 * PAGE


@pytest.mark.parametrize("form", documents(b""))
def test_a_text_costs_what_it_says_and_an_image_what_images_do(form: str) -> None:
    said = estimate(SAID)
    for mime in ("text/csv", "application/json", "application/atom+xml"):
        assert said <= cost(documents(SAID.encode(), mime)[form]) <= said + 10
    assert cost(documents(noise(300_000), "image/png")[form]) == IMAGE
    assert cost(documents(noise(160_000), "audio/mp3")[form]) <= 12 * AUDIO_SECOND + 10
    assert cost(documents(noise(1_250_000), "video/mp4")[form]) <= 10 * VIDEO_SECOND + 10


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text-plain", "text": SAID, "mime_type": "text/plain"},
        {"type": "text-plain", "base64": sent(SAID.encode()), "mime_type": "text/plain"},
        {"type": "file", "source_type": "text", "text": SAID, "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": SAID}},
        {"type": "document", "source": {"type": "content", "content": SAID}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": SAID}]}},
    ],
)
def test_documents_of_text_cost_their_text(block: Block) -> None:
    assert estimate(SAID) <= cost(block) <= estimate(SAID) + 10
    assert cost(block | {"title": "word " * 50, "context": "word " * 50}) >= cost(block) + 90


def test_images_within_a_document_count() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": sent(noise(90_000))}}
    text = {"type": "text", "text": SAID}
    assert cost({"type": "document", "source": {"type": "content", "content": [text, image, image]}}) >= 2 * IMAGE + 500
    assert cost({"type": "document", "source": {"type": "content", "content": [image]}}) == IMAGE


def test_sound_costs_what_its_seconds_do() -> None:
    rate = 32_000
    wav = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 16_000, rate, 2, 16) + b"data" + noise(rate * 9)
    for block in (
        {"type": "input_audio", "input_audio": {"data": sent(wav), "format": "wav"}},
        {"type": "audio", "base64": sent(wav), "mime_type": "audio/wav"},
    ):
        assert 9 * AUDIO_SECOND <= cost(block) <= 11 * AUDIO_SECOND
    for format_, a_second in (("mp3", 16_000), ("ogg", 8_000), ("", 8_000)):
        block = {"type": "input_audio", "input_audio": {"data": sent(noise(a_second * 20)), "format": format_}}
        assert 20 * AUDIO_SECOND <= cost(block) <= 22 * AUDIO_SECOND


@pytest.mark.parametrize(
    ("block", "kind"),
    [
        ({"type": "file", "url": "https://example.org/a.pdf"}, "document"),
        ({"type": "file", "file": {"file_id": "file-1"}}, "document"),
        ({"type": "input_file", "file_url": "https://example.org/a.pdf"}, "document"),
        ({"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}, "document"),
        ({"type": "document", "source": {"type": "file", "file_id": "file_1"}}, "document"),
        ({"type": "media", "file_uri": "gs://a/b", "mime_type": "video/mp4"}, "video"),
        ({"type": "text-plain", "url": "https://example.org/a.txt", "mime_type": "text/plain"}, "text"),
        ({"type": "audio", "file_id": "a"}, "audio"),
        ({"type": "image", "url": "https://example.org/a.png"}, "image"),
    ],
)
def test_what_is_elsewhere_costs_a_guess(block: Block, kind: Any) -> None:
    assert cost(block) == ELSEWHERE[kind]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "x"},
        {"type": "server_tool_call", "name": "run"},
        {"type": "tool_result", "content": "x"},
        {"type": ["file"]},
        {},
    ],
)
def test_what_has_another_form_is_no_attachment(block: Block) -> None:
    assert attachment_of(block) is None


@pytest.mark.parametrize("value", [None, 7, [], {}, b"bytes"])
def test_forms_with_values_of_other_types_cost_something_all_the_same(value: Any) -> None:
    for block in (*documents(b"x").values(), {"type": "input_audio"}, {"type": "text-plain"}):
        for key in block.keys() - {"type"}:
            assert cost(block | {key: value}) > 0

"""Files as clients attach them to messages."""

from __future__ import annotations

from base64 import b64encode
from random import Random
from typing import Any

PDF = "application/pdf"


def sent(data: bytes) -> str:
    return b64encode(data).decode()


def noise(size: int) -> bytes:
    return Random(size).randbytes(size)


def documents(data: bytes, mime: str = PDF) -> dict[str, dict[str, Any]]:
    """A file in the forms of those who send one."""
    own, inline = sent(data), f"data:{mime};base64,{sent(data)}"
    return {
        "LangChain": {"type": "file", "base64": own, "mime_type": mime},
        "LangChain, before 1.0": {"type": "file", "source_type": "base64", "data": own, "mime_type": mime},
        "LangChain, in a URL": {"type": "file", "url": inline},
        "OpenAI": {"type": "file", "file": {"filename": "a.pdf", "file_data": inline}},
        "OpenAI's Responses": {"type": "input_file", "filename": "a.pdf", "file_data": inline},
        "Anthropic": {"type": "document", "source": {"type": "base64", "media_type": mime, "data": own}},
        "Google": {"type": "media", "mime_type": mime, "data": own},
    }

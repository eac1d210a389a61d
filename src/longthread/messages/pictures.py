"""A picture in a message, in any provider's form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

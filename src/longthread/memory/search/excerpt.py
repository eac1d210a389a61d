"""The part of a long text that a question is about."""

from __future__ import annotations

import re
from collections.abc import Collection

from longthread.memory.index.json_escapes import unescaped
from longthread.memory.index.terms import terms

_STEP = 4
"""A part is looked for at steps of this fraction of its size, in longer texts at fewer:"""
_MOST_PARTS = 400
_EMPTY = re.compile(r"\A\s*\n")


def excerpt(text: str, wanted: Collection[str], size: int) -> str:
    """Cut a text to `size` characters around most of the `wanted` terms, with … at cuts, without blank edge lines."""
    text = _EMPTY.sub("", unescaped(text)).rstrip()
    if len(text) <= size:
        return text
    start = start_of(text, wanted, size)
    end = start + size
    part = _EMPTY.sub("", text[start:end]).rstrip()
    return f"{'…' if start else ''}{part}{'…' if end < len(text) else ''}"


def start_of(text: str, wanted: Collection[str], size: int) -> int:
    """Return the start of the `size` characters with most of the `wanted` terms."""
    if not wanted or len(text) <= size:
        return 0
    step = max(1, size // _STEP, len(text) // _MOST_PARTS)
    starts = range(0, len(text) - size + step, step)
    found = [(len(set(wanted).intersection(terms(text[start : start + size]))), -start) for start in starts]
    return min(-max(found)[1], len(text) - size)

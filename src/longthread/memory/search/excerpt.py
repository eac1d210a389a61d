"""The part of a long text that a question is about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from longthread.memory.index.json_escapes import unescaped
from longthread.memory.index.terms import terms
from longthread.model.bm25 import rarity

_STEP = 4
"""A part is looked for at steps of this fraction of its size, in longer texts at fewer:"""
_MOST_PARTS = 400
_EMPTY = re.compile(r"\A\s*\n")


def excerpt(text: str, wanted: Collection[str], size: int) -> str:
    """Cut a text to `size` characters around the `wanted` terms, with … at cuts, without blank edge lines."""
    text = _EMPTY.sub("", unescaped(text)).rstrip()
    if len(text) <= size:
        return text
    start = start_of(text, wanted, size)
    end = start + size
    part = _EMPTY.sub("", text[start:end]).rstrip()
    return f"{'…' if start else ''}{part}{'…' if end < len(text) else ''}"


def start_of(text: str, wanted: Collection[str], size: int) -> int:
    """Return the start of the `size` characters with the most and the rarest of the `wanted` terms."""
    if not wanted or len(text) <= size:
        return 0
    step = max(1, size // _STEP, len(text) // _MOST_PARTS)
    starts = range(0, len(text) - size + step, step)
    having = [set(wanted).intersection(terms(text[start : start + size])) for start in starts]
    counted = Counter(term for some in having for term in some)
    # Sums in one order: a set has another in each process, and parts that have the same must be equal.
    values = [sum(rarity(len(starts), counted[term]) for term in sorted(some)) for some in having]
    return min(starts[values.index(max(values))], len(text) - size)

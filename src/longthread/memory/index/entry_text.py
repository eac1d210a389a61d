"""What an entry says: the text that is indexed, and the part of it that a question is about."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection

from longthread.memory.index.terms import terms
from longthread.model.bm25 import rarity
from longthread.model.catalog import LOAD_SKILL, RECALL_TOOL
from longthread.model.entry import Draft, Entry
from longthread.store.recall_index import Text

_BEGINS = re.compile(r"\s*[\[{\"]")
# JSON within a text of JSON has two backslashes. What stands after another one is no escape of its own.
_ESCAPE = re.compile(
    r"\\{1,2}u(?P<high>d[89ab][0-9a-f]{2})\\{1,2}u(?P<low>d[c-f][0-9a-f]{2})|\\{1,2}u(?P<one>[0-9a-f]{4})|\\.",
    re.IGNORECASE | re.DOTALL,
)


def unescape_json(text: str) -> str:
    """A text of JSON with the characters that it names by numbers, but for those of ASCII; any other text as it is."""
    return _ESCAPE.sub(_decode_escape, text) if "\\u" in text and _BEGINS.match(text) else text


def _decode_escape(found: re.Match[str]) -> str:
    if found["high"]:
        return chr(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00)
    code = int(found["one"], 16) if found["one"] else 0
    return chr(code) if code >= 0x80 and not 0xD800 <= code < 0xE000 else found[0]


_NOT_SAID = frozenset({RECALL_TOOL, LOAD_SKILL})
"""The tool whose calls and results are not found again: they say what other entries say."""


def is_recallable(entry: Text | Entry) -> bool:
    """Whether recall may return an entry: not recall's own results, nor loaded skills.
    System messages are recallable: as entries they were said in the conversation."""
    return entry.role != "tool" or entry.name not in _NOT_SAID


def is_prompt(entry: Entry) -> bool:
    """Whether it is the system message that a branch begins with, shown with every view."""
    return entry.role == "system" and entry.parent_seq == 0


def content_of(entry: Text | Draft) -> str:
    """Return an entry's text, the arguments of its tool calls, and its other content."""
    calls = [
        json.dumps(dict(call.args), ensure_ascii=False)
        for call in entry.tool_calls
        if call.name != RECALL_TOOL and call.args
    ]
    extra = entry.extra_text
    return "\n".join([entry.text, *calls, *([extra] if extra else [])]) if calls or extra else entry.text


_STEP = 4
"""A part is looked for at steps of this fraction of its size, in longer texts at fewer:"""
_MOST_PARTS = 400
_EMPTY = re.compile(r"\A\s*\n")


def excerpt(text: str, wanted: Collection[str], size: int) -> str:
    """Cut a text to `size` characters around the `wanted` terms, with … at cuts, without blank edge lines."""
    text = _EMPTY.sub("", unescape_json(text)).rstrip()
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

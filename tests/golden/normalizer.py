"""Replace what differs from run to run: ids, times, durations, ports, folders, and counts that depend on them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

WIDTH = 120
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d\b| UTC)?)?")
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_KEY = r'(\\*"(?:{})\\*": ?)'
_REPLACED = [
    (re.compile(rf"Today is (?:{_DAYS})"), "Today is <weekday>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?ms\b|\b\d+\.\d+ ?s\b"), "<duration>"),
    (re.compile(_KEY.format(r"\w+_ms|ms") + r"[\d.]+"), r"\1<duration>"),
    (re.compile(_KEY.format("timestamp") + r"\d+"), r"\1<time>"),
    (re.compile(r"postgresql:[^\s\"]*longthread_test_\w+"), "<store>"),  # an address as people are shown it
    # A prompt has the day, and results have how long they took: their tokens differ by some.
    (
        re.compile(
            _KEY.format(
                r"(?:input|output|total|estimated|prompt|completion)_tokens|(?:input|output|total)Tokens|tokens|budget"
            )
            + r"\d+"
        ),
        r"\1<n>",
    ),
    (re.compile(_KEY.format("encrypted_content|signature|next_cursor") + r'\\*"[^"]*"'), r'\1"<sealed>"'),
    (re.compile(r"(?<=cursor=)[\w=-]+"), "<sealed>"),
    (re.compile(_KEY.format("score") + r"[\d.]+"), r"\1<n>"),
    (re.compile(r"[\d,]+ of [\d,]+ (?=tokens of messages)|[\d,]+ (?=by estimate)|[\d,]+ (?=as the provider)"), "<n> "),
    (re.compile(r"(?<=whole  whole) +\d+"), "  <n>"),
    (re.compile(r"\d+(?:\.\d+)? [kMG]?B\b"), "<size>"),
    (re.compile(r"Python [\d.]+, \w+"), "<python>"),
    (re.compile(r"(?<=longthread \d\.\d\.\d \()[0-9a-f]{8}(?=\))"), "<commit>"),
    (re.compile(r"(?<=✓ )(?:sqlite|postgres) +\d.*"), "<engine>"),
    (re.compile(r'\{"number": "\d+", "query": null\}'), '{"number": "<n>", "query": null}'),
]
_ID = re.compile(
    r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?:chatcmpl-|(?:msg|resp|req|rs|fc)_)[0-9a-f]{9}\w*"
    r"|(?:call|demo_\d+_\d+)_[0-9a-f]{12}(?:_\d+)?)\b"  # the digest of a prompt, which has durations
)


class Normalizer:
    """Replaces ids by numbers in the order in which they appear, times by `<time>`, and so on.

    `names` maps texts of this run alone, such as its folder, to their placeholders.
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        self._ids: dict[str, str] = {}
        today = datetime.now(UTC)
        self._days = {(today + timedelta(days=days)).date().isoformat() for days in range(-2, 400)}

    def replace_value(self, value: str, name: str) -> None:
        """Replace a value of an answer by its name from now on, unless it holds an id, which is replaced anyway."""
        if not _ID.search(value):
            self._names[value] = f"<{name}>"

    def __call__(self, text: str) -> str:
        for value, placeholder in self._names.items():
            text = text.replace(value, placeholder)
        text = _TIME.sub(lambda match: "<time>" if match[1] in self._days else match[0], text)
        for pattern, placeholder in _REPLACED:
            text = pattern.sub(placeholder, text)
        return _ID.sub(lambda match: self._ids.setdefault(match[0], f"<id {len(self._ids) + 1}>"), text)


def format_json(text: str, normalize: Callable[[str], str]) -> str:
    """Break long lines of a text that is JSON, or whose lines are. Keys keep their order; other text is returned."""
    for parts in ([text], text.splitlines()):
        try:
            return "\n".join(dump(json.loads(part), normalize=normalize) for part in parts)
        except ValueError:
            continue
    return text


def dump(value: Any, *, sort: bool = False, indent: str = "", normalize: Callable[[str], str] = str) -> str:
    """Write JSON, with each value in one line where it fits; `normalize` says how the line will be recorded."""
    line = json.dumps(value, ensure_ascii=False, sort_keys=sort)
    if not isinstance(value, dict | list) or len(indent) + len(normalize(line)) <= WIDTH:
        return line
    write = partial(dump, sort=sort, indent=f"{indent}  ", normalize=normalize)
    if isinstance(value, dict):
        items = sorted(value.items()) if sort else value.items()
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {write(each)}" for key, each in items]
    else:
        parts = [write(each) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(f"{indent}  {part}" for part in parts) + f"\n{indent}{closing}"

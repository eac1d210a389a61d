"""A thread as Markdown, Markdown as plain words, and text with unseen characters escaped."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from longthread.model.entry import Entry
from longthread.model.thread import Thread

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Control characters except tabs and line breaks, direction marks, and invisible characters."""
_BREAKS = re.compile(r"[\t\n]")


def markdown(thread: Thread, entries: Sequence[Entry], *, details: bool = False, has_others: bool = False) -> str:
    """Return the questions and answers of a branch. With `details` also its calls, without results, what is said next
    to a call, as a quote, the labels of queries, and, if the thread `has_others`, which branch this is."""
    parts = [f"# {thread.title or thread.id}\n"]
    if has_others and entries:
        parts.append(f"\n*The chosen branch, up to the message {entries[-1].id}. Other branches are left out.*\n")
    for entry in entries:
        if entry.role == "user":
            parts.append(f"\n## {entry.text}\n")
        elif details:
            parts += _write_details(entry)
        elif entry.role == "assistant" and not entry.tool_calls and entry.text.strip():
            parts.append(f"\n{_strip_labels(entry.text)}\n")
    return "".join(parts)


def _write_details(entry: Entry) -> list[str]:
    """What a model said and called."""
    parts = []
    if entry.role == "assistant" and entry.text.strip():
        parts.append(f"\n{_quote_lines(entry.text) if entry.tool_calls else entry.text}\n")
    for call in entry.tool_calls:
        sql = call.args.get("sql")
        shown = f"```sql\n{sql}\n```" if sql else f"`{json.dumps(dict(call.args), ensure_ascii=False)}`"
        parts.append(f"\n*{call.name}*\n\n{shown}\n")
    return parts


_LABELS = r"\s?\[q\d+(?:\s*,\s*q\d+)*\](?!\()"
_LABELS_OR_CODE = re.compile(rf"(^ {{0,3}}```.*?(?:^ {{0,3}}```|\Z)|`[^`\n]*`)|{_LABELS}", re.DOTALL | re.MULTILINE)


def _strip_labels(text: str) -> str:
    """An answer without the labels of its queries, which name what is not there. Code keeps what looks like one."""
    return _LABELS_OR_CODE.sub(lambda found: found[1] or "", text)


def _quote_lines(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))


_RULES = (
    (re.compile(r"^ {0,3}(?:```|~~~).*$|^ *\|[ :|-]+$|^ {0,3}(?:#{1,6} |> ?)|^ *[-*+] ", re.MULTILINE), ""),
    (re.compile(_LABELS), ""),  # of queries
    (re.compile(r"!?\[([^\[\]\n]{1,300})\]\([^()\s]{0,500}\)"), r"\1"),
    (re.compile(r"(\*\*|~~|\b__)(?=\S)([^\n]{1,500}?)(?<=\S)\1"), r"\2"),
    (re.compile(r"(\*|\b_)(?=[^\s*_])([^*_\n]{1,500}?)(?<=\S)\1(?!\w)"), r"\2"),
    (re.compile(r"(`+)([^`\n]{1,500})\1"), r"\2"),
    (re.compile(r"^ *\| *| *\| *$", re.MULTILINE), ""),
    (re.compile(r" *\| +"), " · "),  # cells of a table
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)


def plain(text: str) -> str:
    """The words of a Markdown text, without its signs. It may begin and end anywhere."""
    for sign, words in _RULES:
        text = sign.sub(words, text)
    return text


def visible(text: str) -> str:
    """Escapes such characters as in JSON."""
    return UNSEEN.sub(_escape_match, text)


def in_line(text: str) -> str:
    """Also escapes tabs and line breaks, for a text in one line."""
    return _BREAKS.sub(_escape_match, visible(text))


def _escape_match(found: re.Match[str]) -> str:
    code = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[place : place + 4]}" for place in range(0, len(code), 4))

"""The text of a reply: what may be shown while it is streamed, and whether it is nothing but SQL.

A reply of nothing but SQL means that the model wants it run, although it called no tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from longthread.llm.text_calls import sign_of_call, strip_quotes
from longthread.model.thinking import CLOSES, OPENS

_FENCES = re.compile(r"(?<![`~])(`{3,9}|~{3,9})(?![`~])(?P<language>[\w+-]*)[ \t]*\n(?P<text>.*?)\n?[ \t]*\1", re.S)
_TAGS = re.compile(r"<(sql|query|sql_query|execute_sql|run_sql)>(.*)</\1>", re.S | re.I)
_ARGUMENTS = ("sql", "query", "statement")
_LANGUAGES = frozenset({"sql", "sqlite", "postgresql", "postgres", "psql", "plpgsql", "mysql", "mariadb", "duckdb"})
_LABEL = re.compile(r"\A[\s*#>]*(?:SQL\s*Query|SQL|Query|SQL\s*语句|查询)[ \t*]*[:：][ \t*]*", re.I)
_BEGINS = re.compile(
    r"(?:--[^\n]*\n\s*|/\*.*?\*/\s*|\(\s*)*(?:SELECT\b|WITH\s+(?:RECURSIVE\s+)?[\w\"`]+.{0,200}?\bAS\b)", re.I | re.S
)
_BARE = re.compile(r"(?:SELECT\s|WITH\s+(?:RECURSIVE\s+)?[\w\"`]+\s*(?:\([^()]*\)\s*)?AS\s*\()")
WORDS_BESIDE = re.compile(r"\[q\d+\]|[.!。！]\s*\Z|;\s*\n\s*(?!--|/\*|\(|(?i:SELECT|WITH)\b)\S")
"""What no statement has that is not in a fence: a label, the end of a sentence, or a line after it that is none."""
_LEAD = re.compile(r"[^\d]{0,200}[:：]\s*")
"""The announcement of a query: a short line without numbers that ends with a colon."""


def sql_of(body: str) -> str | None:
    """Return a reply's statement: in a fence, in quotes, as an argument in JSON or bare, also after a line that
    announces it. A fence next to an answer is part of the answer."""
    text = _LABEL.sub("", body.strip())
    if written := argument_of(text):
        return written
    if tagged := _TAGS.fullmatch(text):
        text = tagged[2].strip()
    fences = list(_FENCES.finditer(text)) if "```" in text or "~~~" in text else []
    if len(fences) == 1 and not text[fences[0].end() :].strip():
        lead, fence = text[: fences[0].start()].strip(), fences[0]
        language, inside = fence["language"].casefold(), fence["text"].strip()
        if lead and not (_LEAD.fullmatch(lead) and "\n" not in lead and len(re.findall(r"[.!?。！？]", lead)) < 2):
            return None
        if written := argument_of(inside):
            return written
        return inside if language in _LANGUAGES or (not language and _BEGINS.match(inside)) else None
    if fences:
        return None
    inside = strip_quotes(text)
    if inside != text:
        return inside if _BEGINS.match(inside) and re.search(r"\s", inside) else None
    return text if _BARE.match(text) and "\n\n" not in text.strip() and not WORDS_BESIDE.search(text) else None


def argument_of(text: str) -> str | None:
    """Return the statement of `{"sql": …}`, `{"query": …}` or a call with one of these, also if it is in a fence."""
    if not text.startswith("{"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for inside in (data, data.get("arguments"), data.get("args"), data.get("parameters")):
        if isinstance(inside, Mapping):
            given = [inside[name].strip() for name in _ARGUMENTS if isinstance(inside.get(name), str)]
            if given:
                fence = _FENCES.fullmatch(given[0])
                sql = fence["text"].strip() if fence else given[0]
                return sql if _BEGINS.match(sql) else None
    return None


def was_tried(sql: str, *, ok: bool) -> bool:
    """Return whether a run does not send this statement again: it gave rows, or cannot be run, such as a DELETE that
    the user asked for as text."""
    return ok or _BEGINS.match(sql.strip()) is None


_OPEN = re.compile(OPENS, re.I)
_CLOSE = re.compile(CLOSES, re.I)
_MARK = re.compile(
    rf"(?P<open>{OPENS})|(?P<close>{CLOSES})|(?P<call><|\[TOOL_|^[ \t*]*(?:Action|行动)\s*[:：])", re.I | re.M
)
_WORDS = (
    "select", "with ", "sql", "analysis", "here is my thought", "here's my thought", "thought", "action", "reasoning:",
    "final answer", "思考", "想法", "行动", "动作", "最终答案", "最终回答",
)  # fmt: skip
_SIGNS = ("{", "`", "<", "[", '"', "“", ">>>")
"""How a call, thinking in words, or a lone statement may begin: such text is shown once its kind is known."""
_CUT = re.compile(r"(?:[<\[◁][^<>\[\]▷\n]{0,30}|^[ \t]*[`~]{1,2}|^[ \t*]*[A-Za-z行动]{0,6})\Z", re.M)
"""The end of a piece that may be the beginning of a mark."""
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_LONGEST = 32
_QUOTES = ("'", '"', "`", "“", "‘")


def ends_unopened(reply: str) -> bool:
    """Return whether a reply ends thinking that it has not opened."""
    first = _MARK.search(reply)
    return first is not None and first["close"] is not None


class LiveText:
    """Takes a reply piece by piece. `expects_thinking`: the last reply ended thinking that it had not opened, so
    nothing of this one is shown before it does."""

    def __init__(self, *, expects_thinking: bool = False) -> None:
        self._waiting = ""
        self._state = "thinking" if expects_thinking else "start"
        self._code = False
        self._last = "\n"

    def take(self, piece: str) -> tuple[str, bool]:
        """Return what may be shown now, and whether all that was shown before is thinking after all."""
        self._waiting += piece
        told, withdrawn = "", False
        while True:
            if self._state == "held":
                self._waiting = ""
                return told, withdrawn
            if self._state == "thinking":
                closing = _CLOSE.search(self._waiting)
                if closing is None:
                    self._waiting = self._waiting[-_LONGEST:]
                    return told, withdrawn
                self._waiting, self._state = self._waiting[closing.end() :], "start"
            elif self._state == "start":
                if not self._begun():
                    return told, withdrawn
            else:
                more, closed, goes_on = self._prose()
                told, withdrawn = ("", True) if closed else (told + more, withdrawn)
                if not goes_on:
                    return told, withdrawn

    def rest(self) -> str:
        """Return what was held back at the end of a prose reply."""
        rest, self._waiting = self._waiting if self._state != "thinking" else "", ""
        return rest if self._state != "held" and not sign_of_call(rest) else ""

    def _begun(self) -> bool:
        """Return whether the beginning of the reply, or of what follows its thinking, is known."""
        text = self._waiting.lstrip()
        if not text:
            return False
        if opening := _OPEN.match(text):
            self._waiting, self._state = text[opening.end() :], "thinking"
            return True
        small = text.casefold()
        begins_tag = len(text) < _LONGEST and text[0] in "<[◁" and not re.search(r"[>\]▷]", text)
        if begins_tag or any(word.startswith(small) for word in _WORDS):
            return False
        self._state = "held" if small.startswith((*_WORDS, *_SIGNS)) else "prose"
        return True

    def _prose(self) -> tuple[str, bool, bool]:
        """Return the prose to show; whether it ended thinking that was never opened; whether to go on."""
        # Text within a line must not look like its beginning.
        lead = "" if self._last == "\n" else "_"
        text = lead + self._waiting
        for mark in _MARK.finditer(text, len(lead)):
            before = text[: mark.start()]
            if self._in_code(before) or (before[len(lead) :] or self._last)[-1:] in _QUOTES:
                continue
            if mark["close"]:
                self._waiting, self._state = text[mark.end() :], "start"
                return "", True, True
            if mark["open"]:
                self._waiting, self._state = text[mark.end() :], "thinking"
                return before[len(lead) :], False, True
            if mark["call"] != "<" or sign_of_call(text[mark.start() :]):
                self._waiting, self._state = "", "held"
                return before[len(lead) :], False, False
        cut = _CUT.search(text, max(len(lead), len(text) - _LONGEST))
        end = cut.start() if cut else len(text)
        self._code = self._in_code(text[:end])
        self._waiting, self._last = text[end:], text[len(lead) : end][-1:] or self._last
        return text[len(lead) : end], False, False

    def _in_code(self, text: str) -> bool:
        return self._code ^ bool(len(_FENCE.findall(text)) % 2)

"""The text of a reply while it is streamed: what may be shown before the whole is known."""

from __future__ import annotations

import re

from longthread.llm.text_calls import sign_of_call
from longthread.model.thinking import CLOSES, OPENS

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

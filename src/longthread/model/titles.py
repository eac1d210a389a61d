"""Short titles of conversations: what a model proposes, and a question without the words that only ask."""

from __future__ import annotations

import re
import unicodedata

from longthread.model.thinking import without_thinking

SHORT = 24
"""A question of so many columns is its own title. A Chinese character takes two."""
_MOST = 60
"""Columns of a title."""
_RAMBLES = 3 * _MOST
"""A line of so many columns is no title that was cut too late: it is an answer."""
_LABEL = re.compile(r"^(?:#+\s*|[-*]\s+|\d+\.\s+)?(?:\*\*)?(?:title|标题|主题)\s*(?:\*\*)?\s*[:：]\s*(?:\*\*)?", re.I)
_CODE = re.compile(r"^(?:```|[{\[<]|(?:select|with|insert|update|delete|create|drop)\b)", re.I)
_AROUND = "\"'`*_#“”‘’「」『』《》 \t"
_END = ".。!！?？:：,，;；…"
_ASKING = re.compile(
    r"^(?:please|can you|could you|would you|show(?: me)?|tell me|give me|list(?: me)?|find(?: me)?|i want to know|"
    r"i would like to (?:know|see)|what(?:'s| is| are| was| were)|the|"
    # Before a verb these belong to a sentence: «how many were lost».
    r"(?:how many|how much|which)(?!.*\s(?:is|are|was|were|do|does|did|has|have|had|can|will)\b))\s+",
    re.I,
)
_THERE = re.compile(
    r"\s+(?:(?:are|were|is|was) there|have there been|(?:do|did|have|had) (?:we|i|you)(?: have| had| got)?)\b", re.I
)
_ASKING_ZH = re.compile(
    r"^(?:请问|请|麻烦|你?能不能|能否|可以|帮我|帮忙|给我|我想(?:知道|了解|看看?)|告诉我|列出|列一下|查一下|查询|查看|看一下|看看|"
    r"统计一下|算一下|分析一下|展示|显示)[，, ]*"
)
_ASKED_ZH = re.compile(r"(?:分别)?(?:是多少|有多少|是什么|有哪些|是哪些|怎么样|如何|多少|吗|呢)$")


def read_title(reply: str) -> str | None:
    """Return the title that a model's reply proposes; None if it is none: empty, code, or an answer."""
    lines = (line.strip() for line in without_thinking(reply).strip().splitlines())
    line = next((line for line in lines if line), "")
    if _CODE.match(line):
        return None
    line = _LABEL.sub("", line).strip(_AROUND).rstrip(_END).strip(_AROUND)
    if not line or columns(line) > _RAMBLES or not any(each.isalnum() for each in line):
        return None
    return _cut(line)


def title_without_model(question: str) -> str:
    """Return a question without the words that only ask, as a title."""
    line = " ".join(question.split()).rstrip(f"{_END} ")
    text = _THERE.sub("", line, count=1)
    for pattern in (_ASKING, _ASKING_ZH):
        while (shorter := pattern.sub("", text)) != text and shorter:
            text = shorter
    text = _ASKED_ZH.sub("", text).rstrip("的 ") or text
    if columns(text) < 4:
        text = line
    return _cut(text[:1].upper() + text[1:])


def columns(text: str) -> int:
    """Count the columns of a text in a list: a character of East Asia takes two."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _cut(text: str) -> str:
    """Return a text of at most `_MOST` columns, with … where some is missing; words stay whole."""
    if columns(text) <= _MOST:
        return text
    taken = ""
    for each in text:
        if columns(taken) + columns(each) >= _MOST:
            break
        taken += each
    whole, space, _ = taken.rpartition(" ")
    return f"{(whole if space and columns(whole) > _MOST // 2 else taken).rstrip(f'{_END} ')}…"

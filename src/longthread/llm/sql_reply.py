"""A reply of nothing but SQL: the model wants it run, and called no tool."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from longthread.llm.text_calls import unquoted

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
"""What no statement has that is not in a fence: a label, the end of a sentence, or a line behind it that is none."""
_LEAD = re.compile(r"[^\d]{0,200}[:：]\s*")
"""The announcement of a query: a short line without numbers that ends with a colon."""


def sql_of(body: str) -> str | None:
    """Return a reply's statement: in a fence, in quotes, as an argument in JSON or bare, also after a line that
    announces it. A fence beside an answer is part of the answer."""
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
    inside = unquoted(text)
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

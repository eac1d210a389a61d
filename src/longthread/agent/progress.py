"""What an unfinished run has come to: question, done, found, problems, left (document 001 §2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from longthread.agent.context import pairs
from longthread.model.fold import observation_of

_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_WORDS = {
    True: {
        "question": "问题",
        "done": "已完成",
        "found": "已发现",
        "problems": "遇到的问题",
        "left": "还需要",
        "none": "无",
        "left_text": "根据以上信息得出答案。",
        "hint": "回复“继续”即可接着执行。",
        "rows": "行",
    },
    False: {
        "question": "Question",
        "done": "Done",
        "found": "Found",
        "problems": "Problems",
        "left": "Left",
        "none": "none",
        "left_text": "to answer the question from what was found.",
        "hint": 'Reply "continue" to go on.',
        "rows": "rows",
    },
}


def is_chinese(text: str) -> bool:
    """Whether a text is to be answered in Chinese."""
    return bool(_CHINESE.search(text))


def words_for(question: str) -> Mapping[str, str]:
    """The words of a summary in the question's language."""
    return _WORDS[is_chinese(question)]


def progress_digest(question: str, messages: Sequence[BaseMessage]) -> str:
    """A summary of a run's messages that needs no model, in the question's language."""
    words = words_for(question)
    done: list[str] = []
    found: list[str] = []
    problems: list[str] = []
    for _, call, result in pairs(messages):
        observation = observation_of(str(result.text))
        done.append(f"{call['name']}({_short(call['args'])})")
        if observation.get("ok"):
            found += _findings(observation.get("data"), words["rows"])
        else:
            problems.append(str((observation.get("error") or {}).get("message", "")))
    sections = {
        "question": [question[:500]],
        "done": done,
        "found": found,
        "problems": problems,
        "left": [words["left_text"]],
    }
    return "\n".join(f"**{words[name]}**: {_listed(items, words['none'])}" for name, items in sections.items())


def _listed(items: Sequence[str], none: str) -> str:
    if len(items) < 2:
        return items[0] if items else none
    return "".join(f"\n- {item}" for item in items)


def _findings(data: Any, rows: str) -> Iterator[str]:
    if not isinstance(data, Mapping):
        return
    if "rows" in data and "sql" in data:
        yield f"[{data.get('query', 'SQL')}] {data.get('shown', len(data['rows']))} {rows}: {_short(data['rows'])}"
    elif "columns" in data and "table_name" in data:
        names = [c["name"] if isinstance(c, Mapping) else str(c) for c in data["columns"]]
        yield f"{data['table_name']}: {', '.join(names[:20])}{' …' if len(names) > 20 else ''}"
    elif "tables" in data:
        yield ", ".join(map(str, data["tables"][:20])) + (" …" if len(data["tables"]) > 20 else "")


def _short(value: Any, limit: int = 160) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= limit else f"{text[:limit]}…"

"""The outcome of a run: its answer or summary, with its queries and numbers.

Of an unfinished run it is the progress: question, done, found, problems, left (document 001 §2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from longthread.context.citations import CitedQuery, citations
from longthread.context.window import WindowMessage
from longthread.errors import JsonParseFailed
from longthread.memory.summary.digest import findings, short
from longthread.messages.message import Message
from longthread.model.builtin import QUERIES
from longthread.model.fold import observation_of
from longthread.model.language import is_chinese
from longthread.model.run import RunStatus
from longthread.model.statements import CORRECT
from longthread.runs.run_context import RunContext
from longthread.runs.run_messages import malformed_in_a_row, note_of, pairs

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
        "called_off": "{call}：运行被停止，未执行",
        "superseded": "{call}：用户转而说了别的，未执行",
        "rejected": "{call}：用户拒绝，未执行",
        "tool_gone": "{call}：工具已不在，未执行",
        "interrupted": "{call}：运行中断，不知是否已生效",
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
        "rows": "row|rows",
        "called_off": "{call}: not made, the run was stopped",
        "superseded": "{call}: not made, the user said something else",
        "rejected": "{call}: not made, the user rejected it",
        "tool_gone": "{call}: not made, the tool is no longer there",
        "interrupted": "{call}: broken off with the run, it may or may not have taken effect",
    },
}
_NOT_DONE = frozenset({"called_off", "superseded", "rejected", "tool_gone", "interrupted"})
"""Error types of calls that were not made, or of unknown outcome; they are keys of the summary's words too."""


def is_over(messages: Sequence[Message]) -> bool:
    return bool(messages) and note_of(messages[-1]).get("kind") in {"answer", "summary"}


def outcome_of(context: RunContext) -> tuple[RunStatus, dict[str, Any]]:
    last = context.window.spots[-1].message
    text = str(last.text)
    queries = list(_queries(context.window.spots))
    # An answer may cite a query of an earlier run, whose SQL is shown too.
    mine = {query.label for query in _queries(context.window.own_spots)}
    told = [dict(query.told) for query in queries if query.label in mine or f"[{query.label}]" in text]
    shared = {"message_id": last.id, "queries": told, "usage": _usage(context.window.own)}
    match note_of(last).get("kind"):
        case "answer":
            return "finished", {"answer": text, "citations": citations(text, queries), **shared}
        case "summary":
            hint = words_for(context.run.question)["hint"]
            reason = note_of(last).get("reason", "max_steps")
            return "paused", {"reason": reason, "summary": text, "hint": hint, **shared}
    count = malformed_in_a_row(context.window.own)
    error = JsonParseFailed(count=count, other="native" if context.model.protocol == "json" else "json")
    return "failed", {"error": error.described(), "error_type": error.code, **shared}


def _queries(spots: Sequence[WindowMessage]) -> Iterator[CitedQuery]:
    names: dict[str | None, str] = {}
    for spot in spots:
        names |= {call.id: call.name for call in spot.entry.tool_calls}
        if names.get(spot.entry.tool_call_id) in QUERIES and spot.query is not None:
            yield spot.query


def _usage(messages: Sequence[Message]) -> dict[str, int]:
    total = {"input_tokens": 0, "output_tokens": 0}
    for message in messages:
        usage: Mapping[str, Any] = (message.usage_metadata if message.role == "assistant" else None) or {}
        for name in total:
            total[name] += usage.get(name, 0)
    return total


def words_for(question: str) -> Mapping[str, str]:
    return _WORDS[is_chinese(question)]


def progress_digest(question: str, messages: Sequence[Message]) -> str:
    """Summarize a run without a model, in the question's language."""
    words = words_for(question)
    done: list[str] = []
    found: list[str] = []
    problems: list[str] = []
    for _, call, result in pairs(messages):
        observation = observation_of(str(result.text))
        made, error = f"{call['name']}({short(call['args'])})", observation.get("error") or {}
        kind = str(error.get("type"))
        if not observation.get("ok") and kind in _NOT_DONE:
            problems.append(words[kind].format(call=made))
            continue
        done.append(made)
        if observation.get("ok"):
            found += findings(observation.get("data"), words["rows"])
        else:
            problems.append(str(error.get("message", "")).removesuffix(f" {CORRECT}"))
    sections = {
        "question": [question[:500]],
        "done": list(dict.fromkeys(done)),
        "found": found,
        "problems": list(dict.fromkeys(problems)),
        "left": [words["left_text"]],
    }
    return "\n".join(f"**{words[name]}**: {_listed(items, words['none'])}" for name, items in sections.items())


def stopped_outcome(question: str, messages: Sequence[Message]) -> dict[str, Any]:
    """Return the outcome of a run that was stopped from outside: paused, so that it can be resumed."""
    digest = progress_digest(question, messages)
    return {"reason": "stopped", "summary": digest, "hint": words_for(question)["hint"]}


def _listed(items: Sequence[str], none: str) -> str:
    if len(items) < 2:
        return items[0] if items else none
    return "".join(f"\n- {item}" for item in items)

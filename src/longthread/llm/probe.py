"""Find out how a model speaks best: by its own tool calls, in SQL, or as JSON. At most four tiny questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from longthread.llm.chat import CallOptions, ChatModel, ToolSpec, reply_of
from longthread.llm.failures import ProviderError
from longthread.llm.json_protocol import cut_off
from longthread.llm.models import refuses_tools, supports_tools
from longthread.llm.sql_protocol import WRITING, find_statement
from longthread.messages.message import Message
from longthread.model.run import Protocol

_SCHEMA = "CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, amount REAL);"
_QUESTIONS = ("How many orders are there?", "What is the total amount of each city?")
_TOOLS = f"You answer questions about a SQLite database with its tools.\n\nSchema:\n{_SCHEMA}"
_SQL = f"{WRITING.format(dialect='SQLite')}\n\nSchema:\n{_SCHEMA}"
_SQL_ARGUMENT = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}


@dataclass(frozen=True, slots=True)
class _RunSql:
    name: str = "run_sql"
    description: str = "Runs one read-only SELECT and returns its rows."
    parameters: Mapping[str, Any] = field(default_factory=lambda: _SQL_ARGUMENT)


_OPTIONS = CallOptions(max_tokens=200)


async def probe_protocol(model: ChatModel) -> Protocol | None:
    """Return the protocol in which a model answers two questions: the first of native, sql and json that works. None: a
    reply reached the limit of the probe, as of a model that thinks for long. Raises ProviderError: the model cannot be
    asked."""
    if supports_tools(model) and (calls := await _calls_tools(model)) is not False:
        return "native" if calls else None
    replies = [await _ask(model, _SQL, question) for question in _QUESTIONS]
    if all(find_statement(str(reply.text)) for reply in replies):
        return "sql"
    return None if any(map(cut_off, replies)) else "json"


async def _calls_tools(model: ChatModel) -> bool | None:
    """Return whether a model calls a tool for each question; None: a reply was cut off before it was clear."""
    for question in _QUESTIONS:
        try:
            reply = await _ask(model, _TOOLS, question, [_RunSql()])
        except ProviderError as error:
            if refuses_tools(error):
                return False
            raise
        written = [str(call["args"].get("sql")) for call in reply.tool_calls if call["name"] == "run_sql"]
        if not any(map(find_statement, written)):
            return None if cut_off(reply) else False
    return True


async def _ask(model: ChatModel, system: str, question: str, tools: Sequence[ToolSpec] = ()) -> Message:
    return await reply_of(model, [Message("system", system), Message("user", question)], tools, _OPTIONS)

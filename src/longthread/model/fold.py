"""State as a fold of a thread's entries, with the fields of document 000's `state_data`. Nothing stores it.

Facts are what observations say of the source: tables, schemas, samples.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.model.catalog import QUERIES
from longthread.model.entry import INTERRUPTED, Entry, ToolCall

PARSE_ERROR = "json_parse_error"
"""The action of a malformed reply, which gets an observation like a tool call."""
CONTINUES = "continues"
"""Key of a question's metadata where it continues an unfinished run."""
STEP = "imported_step"
"""Key of an entry's metadata for an imported step that the entry does not imply; `false`: there was none."""
STATE = "imported_state"
"""Key of the last imported entry's metadata: the fields of the state that the entries do not imply. They hold until
another entry comes."""
IMPORTED_FIELDS = (
    *("question", "known_tables", "known_schemas", "candidate_tables", "known_samples", "error_history", "last_error"),
    *("done", "answer", "max_steps"),
)
"""The fields that such metadata may hold."""
_TABLE_ACTIONS = frozenset({"describe_table", "sample_rows"})
_QUERY_LABEL = re.compile(r"q([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Compressed:
    """The summary in a state (document 001 §5), of the messages up to entry `last_seq`. One that another program wrote
    has no `last_seq` but a number of messages."""

    summary: str
    config_hash: str | None
    last_seq: int | None
    message_count: int


class StateFold:
    """Folds a branch's entries, oldest first, into its state. `message_seqs` are the seqs of its messages."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.question = ""
        self.max_steps: int | None = None
        self.messages: list[dict[str, Any]] = []
        self.steps: list[dict[str, Any]] = []
        self.candidate_tables: list[str] = []
        self.error_history: list[dict[str, Any]] = []
        self.sql_history: list[dict[str, Any]] = []
        self.last_error: dict[str, Any] | None = None
        self.answer: dict[str, Any] | None = None
        self.message_seqs: list[int] = []
        self._open_calls: dict[str, tuple[ToolCall, str, int]] = {}
        self._failed_at = 0
        self._imported: Mapping[str, Any] = {}

    def add(self, entry: Entry) -> None:
        """Adds the next entry."""
        imported = entry.metadata.get(STATE)
        self._imported = imported if isinstance(imported, dict) else {}
        match entry.role:
            case "user":
                self._add_question(entry)
            case "assistant":
                self._add_assistant(entry)
            case "tool":
                self._add_result(entry)

    def to_json(self) -> dict[str, Any]:
        state = {
            "question": self.question,
            "messages": self.messages,
            "steps": self.steps,
            "known_tables": self.facts.tables,
            "known_schemas": self.facts.schemas,
            "candidate_tables": self.candidate_tables,
            "known_samples": self.facts.samples,
            "error_history": self.error_history,
            "sql_history": self.sql_history,
            "last_error": self.last_error,
            "done": self.answer is not None,
            "answer": self.answer,
            "max_steps": self.max_steps,
            "compressed_summary": None,
            "compressed_message_count": 0,
            "compressed_config_hash": None,
        }
        return state | {key: value for key, value in self._imported.items() if key in IMPORTED_FIELDS}

    def _add_question(self, entry: Entry) -> None:
        self._add_message(entry)
        source, fingerprint = entry.metadata.get("source"), entry.metadata.get("fingerprint")
        if not self.facts.is_about(source, fingerprint):
            self.facts = Facts(source=source, fingerprint=fingerprint, queries=self.facts.queries)
        self.max_steps = entry.metadata.get("max_steps", self.max_steps)
        self.answer = None
        if not (self.question and entry.metadata.get(CONTINUES) is True):
            self.question = entry.text
            self.candidate_tables, self.last_error = [], None

    def _add_assistant(self, entry: Entry) -> None:
        for call in entry.tool_calls:
            self._open_calls[call.id] = (call, "" if entry.kind == "malformed" else entry.text, entry.seq)
        # Text next to calls is the thought that led to them.
        is_message = entry.kind is None and entry.text and not entry.tool_calls
        if is_message or entry.kind in {"answer", "summary", INTERRUPTED}:
            self._add_message(entry)
        if is_message or entry.kind in {"answer", INTERRUPTED}:
            self.last_error = None
        if entry.kind == "answer":
            self.answer = {"ok": True, "data": entry.text}
            self._add_step(entry, "finish", {"thought": "", "action": "finish", "args": {}, "observation": None})

    def _add_result(self, entry: Entry) -> None:
        call, thought, called_at = self._open_calls.pop(entry.tool_call_id or "", (None, "", 0))
        if call is None:
            return
        observation = observation_of(entry.text)
        self.facts.learn(call.name, observation)
        args = dict(call.args)
        step_type = "error" if call.name == PARSE_ERROR else "action"
        self._add_step(
            entry, step_type, {"thought": thought, "action": call.name, "args": args, "observation": observation}
        )
        table = args.get("table")
        if call.name in _TABLE_ACTIONS and isinstance(table, str) and table not in self.candidate_tables:
            self.candidate_tables.append(table)
        if call.name == "run_sql":
            self.sql_history.append(
                {"sql": args.get("sql"), "result": observation, "timestamp": entry.created_at.isoformat()}
            )
        if not observation.get("ok"):
            error, at = observation.get("error"), entry.created_at.isoformat()
            self.last_error = {"action": call.name, "error": error, "timestamp": at}
            self.error_history.append(self.last_error)
            self._failed_at = entry.seq
        elif called_at > self._failed_at:
            # The model had seen the error when it made this call; a parallel call says nothing about it.
            self.last_error = None

    def _add_message(self, entry: Entry) -> None:
        self.messages.append({"role": entry.role, "content": entry.text})
        self.message_seqs.append(entry.seq)

    def _add_step(self, entry: Entry, step_type: str, step: Mapping[str, Any]) -> None:
        imported = entry.metadata.get(STEP)
        if isinstance(imported, dict):
            self.steps.append(imported)
            return
        if imported is False:
            return
        head = {"step_index": len(self.steps), "step_type": step_type}
        tail = {"content": entry.text, "timestamp": entry.created_at.isoformat()}
        self.steps.append(head | dict(step) | tail)


def state_of(entries: Iterable[Entry], compressed: Compressed | None = None) -> dict[str, Any]:
    """The state of a branch from its entries, oldest first, with the thread's summary."""
    fold = StateFold()
    for entry in entries:
        fold.add(entry)
    state = fold.to_json()
    if compressed is not None:
        last = compressed.last_seq
        count = compressed.message_count if last is None else sum(seq <= last for seq in fold.message_seqs)
        state["compressed_summary"] = compressed.summary
        state["compressed_message_count"] = count
        state["compressed_config_hash"] = compressed.config_hash
    return state


def facts_of(facts: Facts, entries: Iterable[Entry]) -> Facts:
    """Continues the facts with further entries."""
    fold = StateFold()
    fold.facts = facts.copy()
    for entry in entries:
        fold.add(entry)
    return fold.facts


def observation_of(text: str) -> dict[str, Any]:
    """Parses a tool's text as an observation; any other text becomes `{"ok": true, "data": text}`."""
    try:
        value = json.loads(text.removeprefix("Observation: "), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return {"ok": True, "data": text}
    return value if isinstance(value, dict) and "ok" in value else {"ok": True, "data": value}


def _refuse(word: str) -> Any:
    """Python reads NaN and infinities, which are not JSON."""
    raise ValueError(word)


@dataclass(slots=True)
class Facts:
    """Facts about one schema of a source. `schemas` and `samples` have, by table, the newest data of `describe_table`
    and `sample_rows`; `queries` is the number of the last query label of any source."""

    source: str | None = None
    fingerprint: str | None = None
    dialect: str | None = None
    tables: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, Any] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)
    queries: int = 0

    def is_about(self, source: str | None, fingerprint: str | None) -> bool:
        """Whether they hold for a source with this fingerprint."""
        return (self.source, self.fingerprint) == (source, fingerprint)

    def say_the_same_as(self, other: Facts) -> bool:
        """Whether both are equal, except for the last query label."""
        return replace(self, queries=0) == replace(other, queries=0)

    def without(self, seen: Facts) -> Facts:
        """The facts that `seen` lacks. All names are included with any entry of a listing."""
        about, columns = _select_unseen(self.about, seen.about), _select_unseen(self.columns, seen.columns)
        names = self.tables if about or columns else [name for name in self.tables if name not in seen.tables]
        return replace(
            self,
            tables=list(names),
            about=about,
            columns=columns,
            schemas=_select_unseen(self.schemas, seen.schemas),
            samples=_select_unseen(self.samples, seen.samples),
        )

    @property
    def is_empty(self) -> bool:
        """Whether there is no fact."""
        return not (self.tables or self.about or self.columns or self.schemas or self.samples)

    def learn(self, action: str, observation: Mapping[str, Any]) -> None:
        """Adds an observation's facts, except of failed calls and wrong types, as in the database's view
        `state_data`."""
        data = observation.get("data")
        if not observation.get("ok") or not isinstance(data, Mapping):
            return
        table = data.get("table_name")
        if action == "list_tables":
            self._learn_tables(data)
        elif action == "describe_table" and isinstance(table, str):
            self.schemas[table] = dict(data)
            self._note_table(table)
        elif action == "sample_rows" and isinstance(table, str):
            self.samples[table] = dict(data)
            self._note_table(table)
        elif action in QUERIES and (label := _QUERY_LABEL.fullmatch(str(data.get("query")))):
            self.queries = max(self.queries, int(label[1]))

    def _learn_tables(self, data: Mapping[str, Any]) -> None:
        dialect, tables, about, columns = (data.get(key) for key in ("dialect", "tables", "about", "columns"))
        if isinstance(dialect, str):
            self.dialect = dialect
        if isinstance(tables, list | tuple):
            for name in tables:
                if isinstance(name, str):
                    self._note_table(name)
        if isinstance(about, Mapping):
            self.about |= about
        if isinstance(columns, Mapping):
            self.columns |= columns

    def _note_table(self, name: str) -> None:
        if name not in self.tables:
            self.tables.append(name)

    def copy(self) -> Facts:
        """A copy that may learn more."""
        return replace(
            self,
            tables=list(self.tables),
            about=dict(self.about),
            columns=dict(self.columns),
            schemas=dict(self.schemas),
            samples=dict(self.samples),
        )

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Facts:
        return cls(**{name: data[name] for name in cls.__slots__ if name in data})


def _select_unseen(known: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if seen.get(name) != value}

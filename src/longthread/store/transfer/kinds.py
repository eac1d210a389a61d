"""Documents 000, 001, 003 and 004 as other programs store them, and detection of what a database holds. See also
`longthread.langgraph.transfer.import_checkpoints`.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from longthread.errors import StoreError
from longthread.model.entry import Draft
from longthread.model.fold import IMPORTED_FIELDS, STATE
from longthread.store.driver import Row
from longthread.store.log import now
from longthread.store.rows import dump
from longthread.store.states import CLIENT_TYPES, drafts_of_message, title_of
from longthread.store.tables import IMPORTED
from longthread.store.transfer.foreign import (
    Conversation,
    ExtractedEntry,
    Foreign,
    ImportReport,
    ImportSource,
    count,
    decode_json,
    floats,
    has,
    moment,
    moment_or_none,
    rows,
    storable,
    values,
)
from longthread.store.transfer.sessions import Sessions
from longthread.store.transfer.states import KEYS, fold_drafts, placed_state

_CLIENTS = "conversation_state"
_NAMESPACE_OF_CLIENTS = uuid.UUID("6c6f6e67-7468-5265-8164-73636964656e")


class Clients(ImportSource):
    """The table `conversation_state`."""

    kind = "the conversations of document 003"
    noun = "conversation states"
    tables = frozenset({_CLIENTS})

    def fits(self, foreign: Foreign) -> bool:
        return has(foreign, _CLIENTS, "scid", "authoritative_history")

    async def ids(self, foreign: Foreign) -> list[str]:
        """Return the SCIDs, oldest first."""
        return await values(foreign, _CLIENTS, "scid", order="id")

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        place = f"{_CLIENTS}.authoritative_history of {thread_id}"
        try:
            [row, *_] = await rows(foreign, _CLIENTS, scid=thread_id)
            history = decode_json(row["authoritative_history"])
            if not isinstance(history, list):
                raise ValueError("it is no JSON list")
        except StoreError as error:
            report.left.append(f"{place}: {error.reason}")
            return None
        except ValueError as error:
            report.left.append(f"{place}: {error}")
            return None
        report.there["messages"] += len(history)
        created = moment(row.get("created_at"), moment_or_none(row.get("updated_at")))
        conversation = Conversation(thread_id, None, None, created, moment(row.get("updated_at"), created))
        conversation.expires_at = moment_or_none(row["expires_at"]) if row.get("expires_at") else None
        if conversation.expires_at is not None and conversation.expires_at <= now():
            report.notes["its time is over (expires_at): it is here until `longthread db prune --apply`"] += 1
        _add_history(conversation, history)
        conversation.title = title_of([each.draft for each in conversation.entries])
        conversation.rows["thread_clients"] = [_client(row, conversation, report)]
        return conversation


def _add_history(conversation: Conversation, history: list[Any]) -> None:
    ids: set[str] = set()
    for number, message in enumerate(history):
        given = message.get("id") if isinstance(message, Mapping) else None
        id_ = storable(given) if isinstance(given, str) and given else ""
        if not id_ or id_ in ids:
            id_ = str(uuid.uuid5(_NAMESPACE_OF_CLIENTS, f"{conversation.id}\n{number}"))
        conversation.holds["messages"] += 1
        for draft in drafts_of_message(message, id_):
            ids.add(draft.id)
            parent = conversation.tip if conversation.tip >= 0 else None
            conversation.entries.append(ExtractedEntry(replace(draft), parent, conversation.created_at))
            conversation.tip += 1
    if conversation.entries:  # no message has a time of its own
        conversation.entries[-1] = replace(conversation.entries[-1], at=conversation.updated_at)


def _client(row: Mapping[str, Any], conversation: Conversation, report: ImportReport) -> dict[str, Any]:
    kind = row.get("client_type") or "unknown"
    if kind not in CLIENT_TYPES:
        report.notes[f"client_type {kind!r} is none of the document's: it is kept in the thread's metadata"] += 1
        conversation.metadata["client_type"] = storable(kind)
    return {
        "client_type": kind if kind in CLIENT_TYPES else "unknown",
        "last_signature": storable(row.get("last_signature")),
        "access_count": int(row.get("access_count") or 0),
    }


_CONVERSATIONS = "conversations"
_STEPS = "conversation_steps"
_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8164-696d706f7274")
"""For the ids of entries that had none."""
_COMPRESSED = frozenset({"compressed_summary", "compressed_message_count", "compressed_config_hash"})


class Conversations(ImportSource):
    """The tables `conversations` and `conversation_steps`."""

    kind = "the conversations of document 000"
    noun = "conversations"
    tables = frozenset({_CONVERSATIONS, _STEPS})

    def fits(self, foreign: Foreign) -> bool:
        return has(foreign, _CONVERSATIONS, "thread_id", "state_data")

    async def ids(self, foreign: Foreign) -> list[str]:
        return await values(foreign, _CONVERSATIONS, "thread_id", order="created_at")

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        place = f"{_CONVERSATIONS}.state_data of thread {thread_id}"
        try:
            [row, *_] = await rows(foreign, _CONVERSATIONS, thread_id=thread_id)
            state = decode_json(row.get("state_data") or "{}")
            if not isinstance(state, Mapping):
                raise ValueError("it is no JSON object")
        except StoreError as error:
            report.left.append(f"{place}: {error.reason}")
            return None
        except ValueError as error:
            report.left.append(f"{place}: it is no JSON: {error}")
            return None
        state = storable(dict(state))
        created = moment(row.get("created_at"), moment_or_none(row.get("updated_at")))
        conversation = Conversation(
            id=thread_id,
            user_id=storable(row.get("user_id")) or "default",
            title=storable(row.get("title")),
            created_at=created,
            updated_at=moment(row.get("updated_at"), created),
            tool_categories=_column(row, "tool_categories", thread_id, report),
            tags=_column(row, "tags", thread_id, report),
        )
        counts = {name: len(_list(state.get(name))) for name in ("messages", "steps", "sql_history")}
        report.there.update(counts)
        conversation.holds.update(counts)
        more = await self._steps(foreign, thread_id, state, conversation, report)
        placed = placed_state(state, more, conversation.created_at, conversation.updated_at)
        report.left += [f"{place}, {problem}" for _, problem in placed.problems]
        conversation.holds.subtract(name for name, _ in placed.problems)
        conversation.entries = [
            ExtractedEntry(_with_id(draft, thread_id), n - 1 if n else None, at)
            for n, (draft, at) in enumerate(placed.drafts)
        ]
        conversation.tip = len(conversation.entries) - 1
        conversation.rows |= _summary(state, conversation.updated_at)
        _keep_fields(state, conversation, report)
        return conversation

    async def _steps(
        self,
        foreign: Foreign,
        thread_id: str,
        state: Mapping[str, Any],
        conversation: Conversation,
        report: ImportReport,
    ) -> list[dict[str, Any]]:
        """Return the steps that only `conversation_steps` has."""
        if not has(foreign, _STEPS, "thread_id", "step_data"):
            return []
        known = {_mark(step, place) for place, step in enumerate(_list(state.get("steps")))}
        found = []
        for row in await rows(foreign, _STEPS, order="step_index", thread_id=thread_id):
            report.there["rows of conversation_steps"] += 1
            try:
                step = decode_json(row["step_data"])
                if not isinstance(step, dict):
                    raise ValueError("it is no JSON object")
            except ValueError as error:
                report.left.append(f"{_STEPS}.step_data of row {row.get('id')}, thread {thread_id}: {error}")
                continue
            if _mark(step, row.get("step_index")) not in known:
                at = {"timestamp": row["created_at"]} if row.get("created_at") and "timestamp" not in step else {}
                found.append(storable(step | at))
            conversation.holds["rows of conversation_steps"] += 1
        return found


def _mark(step: Any, index: Any) -> tuple[Any, str]:
    """Return what identifies a step of the table with one of the state."""
    if not isinstance(step, Mapping):
        return index, ""
    said = [step.get(key) for key in ("action", "args", "observation")]
    return step.get("step_index", index), json.dumps(said, sort_keys=True, default=str)


def _with_id(draft: Draft, thread_id: str) -> Draft:
    return replace(draft, id=str(uuid.uuid5(_NAMESPACE, f"{thread_id}\n{draft.id}")))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _column(row: Mapping[str, Any], name: str, thread_id: str, report: ImportReport) -> Sequence[Any]:
    try:
        value = decode_json(row.get(name) or "[]")
    except ValueError as error:
        report.left.append(f"{_CONVERSATIONS}.{name} of thread {thread_id}: {error}")
        return []
    return storable(value) if isinstance(value, list) else [storable(value)]


def _summary(state: Mapping[str, Any], at: str) -> dict[str, list[dict[str, Any]]]:
    text, count = state.get("compressed_summary"), state.get("compressed_message_count")
    if not isinstance(text, str) or not text:
        return {}
    number = count if isinstance(count, int) and not isinstance(count, bool) else 0
    digest = state.get("compressed_config_hash")
    row = {"summary": text, "message_count": number, "config_hash": str(digest) if digest is not None else None}
    return {SUMMARIES: [{**row, "updated_at": at}]}


def _keep_fields(state: Mapping[str, Any], conversation: Conversation, report: ImportReport) -> None:
    """Keep the state's fields that the entries do not imply: the documented ones with the last entry, so that they are
    read back, the others in the thread's metadata."""
    now = fold_drafts([(each.draft, each.at) for each in conversation.entries]).to_json()
    kept = {key: value for key, value in state.items() if key not in KEYS}
    told = {key: state[key] for key in IMPORTED_FIELDS if key in state and state[key] != now[key]}
    if told and conversation.entries:
        last = conversation.entries[-1]
        draft = replace(last.draft, metadata={**last.draft.metadata, STATE: told})
        conversation.entries[-1] = replace(last, draft=draft)
    else:
        kept |= told
    if SUMMARIES not in conversation.rows:
        kept |= {key: state[key] for key in sorted(_COMPRESSED) if state.get(key)}
    for key in kept:
        report.notes[f"state_data's `{key}` is kept in the thread's metadata: no message or step says it"] += 1
    conversation.metadata = {"state_data": kept} if kept else {}


SUMMARIES = "conversation_summaries"
VECTORS = "memory_vectors"
_TOPICS = "memory_topics"
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "thread_activity": ("thread_id", "label"),
    SUMMARIES: ("thread_id", "summary"),
    VECTORS: ("id", "thread_id", "chunk"),
    _TOPICS: ("thread_id", "topic"),
}
TABLES = frozenset(_NEEDED)


@dataclass(slots=True)
class Beside:
    """A thread's data in these tables. `rows` are those for the tables of these names here, without thread ids."""

    thread_id: str
    label: str | None = None
    active_at: str | None = None
    holds: Counter[str] = field(default_factory=Counter)
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in (SUMMARIES, VECTORS, _TOPICS)})


def has_beside(foreign: Foreign) -> bool:
    return any(has(foreign, name, *columns) for name, columns in _NEEDED.items())


async def ids_beside(foreign: Foreign) -> list[str]:
    """Return the thread ids in any of the tables."""
    found: dict[str, None] = {}
    for name in _present(foreign):
        found |= dict.fromkeys(await values(foreign, name, "thread_id"))
    return list(found)


async def read_beside(foreign: Foreign, thread_id: str, report: ImportReport) -> Beside | None:
    """Return a thread's data; None if it is unreadable."""
    taken = Beside(thread_id)
    try:
        for name in _present(foreign):
            for row in await rows(foreign, name, thread_id=thread_id):
                taken.holds[f"rows of {name}"] += 1
                _TAKE[name](taken, row)
    except StoreError as error:
        report.left.append(f"labels, summaries and topics of thread {thread_id}: {error.reason}")
        return None
    report.there.update(taken.holds)
    taken.rows[VECTORS].sort(key=lambda row: (row["created_at"], row["id"]))
    return taken


def _present(foreign: Foreign) -> list[str]:
    return [name for name, columns in _NEEDED.items() if has(foreign, name, *columns)]


def _activity(taken: Beside, row: Mapping[str, Any]) -> None:
    taken.label = storable(row["label"])
    taken.active_at = moment_or_none(row.get("last_active_at"))


def _memory_summary(taken: Beside, row: Mapping[str, Any]) -> None:
    count = int(row.get("message_count") or 0)
    at = moment_or_none(row.get("updated_at"))
    summary = {"summary": storable(row["summary"]), "message_count": count}
    taken.rows[SUMMARIES] = [summary | ({"updated_at": at} if at else {})]


def _vector(taken: Beside, row: Mapping[str, Any]) -> None:
    try:
        topics = decode_json(row.get("topics") or "[]")
    except ValueError:
        topics = [row["topics"]]
    named = [str(each) for each in topics if each is not None] if isinstance(topics, list) else [str(topics)]
    vector, at = floats(row.get("embedding")), moment(row.get("created_at"))
    chunk = {"id": str(row["id"]), "chunk": storable(row["chunk"]), "topics": dump(storable(named)), "created_at": at}
    taken.rows[VECTORS].append({**chunk, "model": IMPORTED, **({"embedding": vector} if vector else {})})


def _topic(taken: Beside, row: Mapping[str, Any]) -> None:
    mentions = row.get("mention_count")
    count = 1 if mentions is None else int(mentions)
    at = moment(row.get("last_seen_at"))
    taken.rows[_TOPICS].append({"topic": storable(row["topic"]), "mention_count": count, "last_seen_at": at})


_TAKE = {
    "thread_activity": _activity,
    SUMMARIES: _memory_summary,
    VECTORS: _vector,
    _TOPICS: _topic,
}


SOURCES: Sequence[ImportSource] = (Conversations(), Sessions(), Clients())
CHECKPOINTS = "the checkpoints of a LangGraph saver"
ITEMS = "the items of a LangGraph store"
BESIDE = "the labels, summaries, vectors and topics of document 004"
_SAVERS = frozenset({"checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_migrations", "writes"})
"""Tables of LangGraph's savers, on either database."""
_STORES = frozenset({"store", "store_vectors", "store_migrations", "vector_migrations"})
"""Tables of LangGraph's stores, on either database."""
_VERSIONS = frozenset({"checkpoint_migrations", "store_migrations", "vector_migrations"})
"""These tables have rows from the start."""


@dataclass(frozen=True, slots=True)
class DatabaseKinds:
    """What can be imported: conversations of these documents, LangGraph's checkpoints and items, and document 004's
    tables."""

    sources: Sequence[ImportSource]
    checkpoints: bool
    items: bool
    beside: bool

    @property
    def names(self) -> list[str]:
        """Return its names, for people."""
        found = [source.kind for source in self.sources]
        others = ((CHECKPOINTS, self.checkpoints), (ITEMS, self.items), (BESIDE, self.beside))
        return found + [name for name, is_there in others if is_there]

    @property
    def tables(self) -> frozenset[str]:
        others = ((_SAVERS, self.checkpoints), (_STORES, self.items), (TABLES, self.beside))
        named = [source.tables for source in self.sources] + [tables for tables, is_there in others if is_there]
        return frozenset[str]().union(*named)


def kinds_of(foreign: Foreign) -> DatabaseKinds:
    """Return what a database holds: several kinds, one or none."""
    writes = "writes" if foreign.dialect == "sqlite" else "checkpoint_writes"
    checkpoints = (
        has(foreign, "checkpoints", "thread_id", "checkpoint_ns", "checkpoint_id") and writes in foreign.tables
    )
    items = has(foreign, "store", "prefix", "key", "value")
    sources = [source for source in SOURCES if source.fits(foreign)]
    return DatabaseKinds(sources, checkpoints, items, has_beside(foreign))


def is_longthread(foreign: Foreign) -> bool:
    """Return whether it is a Longthread store, which has tables of the same names."""
    return has(foreign, "entries", "parent_seq")


async def unreadable(foreign: Foreign) -> frozenset[str]:
    """Return the tables that this user may not read: a failed read would end the snapshot."""
    return frozenset(row["name"] for row in await foreign.tx.fetch("foreign_unreadable"))


async def is_empty(foreign: Foreign, kinds: DatabaseKinds) -> bool:
    """Return whether the importable tables have no rows."""
    names = [table.name for table in foreign.tables.all if table.name in kinds.tables - _VERSIONS]
    return not any([await count(foreign, name) for name in names])


async def left_tables(foreign: Foreign, kinds: DatabaseKinds) -> Mapping[str, int]:
    """Count the rows of tables that are not imported; empty and unreadable ones are left out."""
    known = kinds.tables | await unreadable(foreign)
    found = {table.name: await count(foreign, table.name) for table in foreign.tables.all if table.name not in known}
    return {name: rows for name, rows in found.items() if rows}

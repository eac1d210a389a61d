"""Documents 000 and 001: a `conversations.db`, whose `state_data` holds a conversation's state as JSON."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from longthread.errors import StoreError
from longthread.model.entry import Draft
from longthread.model.fold import IMPORTED_FIELDS, STATE
from longthread.store.driver import Row
from longthread.store.imports.extracted import Conversation, ExtractedEntry, ImportReport, Summary
from longthread.store.imports.foreign import Foreign
from longthread.store.imports.foreign_rows import decoded, has, moment, moment_or_none, rows, storable, values
from longthread.store.imports.states import KEYS, folded, placed_state

_TABLE = "conversations"
_STEPS = "conversation_steps"
_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8164-696d706f7274")
"""For the ids of entries that had none."""
_COMPRESSED = frozenset({"compressed_summary", "compressed_message_count", "compressed_config_hash"})


class Conversations:
    """The tables `conversations` and `conversation_steps`."""

    kind = "the conversations of document 000"
    noun = "conversations"
    tables = frozenset({_TABLE, _STEPS})

    def fits(self, foreign: Foreign) -> bool:
        return has(foreign, _TABLE, "thread_id", "state_data")

    async def ids(self, foreign: Foreign) -> list[str]:
        return await values(foreign, _TABLE, "thread_id", order="created_at")

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        place = f"{_TABLE}.state_data of thread {thread_id}"
        try:
            [row, *_] = await rows(foreign, _TABLE, thread_id=thread_id)
            state = decoded(row.get("state_data") or "{}")
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
        conversation.summary = _summary(state, conversation.updated_at)
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
                step = decoded(row["step_data"])
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

    async def shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        for _ in ():
            yield _


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
        value = decoded(row.get(name) or "[]")
    except ValueError as error:
        report.left.append(f"{_TABLE}.{name} of thread {thread_id}: {error}")
        return []
    return storable(value) if isinstance(value, list) else [storable(value)]


def _summary(state: Mapping[str, Any], at: str) -> Summary | None:
    text, count = state.get("compressed_summary"), state.get("compressed_message_count")
    if not isinstance(text, str) or not text:
        return None
    number = count if isinstance(count, int) and not isinstance(count, bool) else 0
    digest = state.get("compressed_config_hash")
    return Summary(text, number, str(digest) if digest is not None else None, at)


def _keep_fields(state: Mapping[str, Any], conversation: Conversation, report: ImportReport) -> None:
    """Keep the state's fields that the entries do not imply: the documented ones with the last entry, so that they are
    read back, the others in the thread's metadata."""
    now = folded([(each.draft, each.at) for each in conversation.entries]).to_json()
    kept = {key: value for key, value in state.items() if key not in KEYS}
    told = {key: state[key] for key in IMPORTED_FIELDS if key in state and state[key] != now[key]}
    if told and conversation.entries:
        last = conversation.entries[-1]
        draft = replace(last.draft, metadata={**last.draft.metadata, STATE: told})
        conversation.entries[-1] = replace(last, draft=draft)
    else:
        kept |= told
    if conversation.summary is None:
        kept |= {key: state[key] for key in sorted(_COMPRESSED) if state.get(key)}
    for key in kept:
        report.notes[f"state_data's `{key}` is kept in the thread's metadata: no message or step says it"] += 1
    conversation.metadata = {"state_data": kept} if kept else {}

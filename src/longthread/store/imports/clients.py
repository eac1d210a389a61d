"""Document 003: `conversation_state`, a gateway's conversations with what its clients and providers sent."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from longthread.errors import StoreError
from longthread.store.driver import Row
from longthread.store.imports.extracted import Conversation, ExtractedEntry, ImportReport
from longthread.store.imports.foreign import Foreign
from longthread.store.imports.foreign_rows import decoded, has, moment, moment_or_none, rows, storable, values
from longthread.store.log import now
from longthread.store.states.history import drafts_of_message, title_of
from longthread.store.states.states import CLIENT_TYPES

_TABLE = "conversation_state"
_NAMESPACE = uuid.UUID("6c6f6e67-7468-5265-8164-73636964656e")


class Clients:
    """The table `conversation_state`."""

    kind = "the conversations of document 003"
    noun = "conversation states"
    tables = frozenset({_TABLE})

    def fits(self, foreign: Foreign) -> bool:
        return has(foreign, _TABLE, "scid", "authoritative_history")

    async def ids(self, foreign: Foreign) -> list[str]:
        """Return the SCIDs, oldest first."""
        return await values(foreign, _TABLE, "scid", order="id")

    async def conversation(self, foreign: Foreign, thread_id: str, report: ImportReport) -> Conversation | None:
        place = f"{_TABLE}.authoritative_history of {thread_id}"
        try:
            [row, *_] = await rows(foreign, _TABLE, scid=thread_id)
            history = decoded(row["authoritative_history"])
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

    async def shared(self, foreign: Foreign, report: ImportReport) -> AsyncIterator[tuple[str, Row]]:
        for _ in ():
            yield _


def _add_history(conversation: Conversation, history: list[Any]) -> None:
    ids: set[str] = set()
    for number, message in enumerate(history):
        given = message.get("id") if isinstance(message, Mapping) else None
        id_ = storable(given) if isinstance(given, str) and given else ""
        if not id_ or id_ in ids:
            id_ = str(uuid.uuid5(_NAMESPACE, f"{conversation.id}\n{number}"))
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

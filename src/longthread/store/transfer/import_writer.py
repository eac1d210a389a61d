"""Writes imported conversations: each whole or not at all, and none over one that has continued here."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from typing import Any, Literal

from longthread.errors import NotStorable, StoreConflict, ValueRefused
from longthread.model.entry import Draft
from longthread.model.fold import STEP
from longthread.store import incarnation, log, memories
from longthread.store.driver import Driver, Row, Transaction, one
from longthread.store.queries import Sql
from longthread.store.rows import dump, entry_row
from longthread.store.tables import ENTRIES, RUNS, THREADS, Tables, read_tables
from longthread.store.transfer.foreign import Conversation, ImportReport
from longthread.store.transfer.kinds import SUMMARIES, VECTORS, Beside
from longthread.store.transfer.threads import TableRow, count_rows, write_rows, write_thread

WriteOutcome = Literal["new", "updated", "already", "gone on"]
_REFUSED = (NotStorable, StoreConflict, ValueRefused)
"""Errors of one item: a value that the store refuses, or an id in use."""
_OURS = frozenset({"title", "tags"})
"""Thread columns that users change here: an update leaves them."""
_OTHERS = "its id is taken by another user's thread"
_PIECES = uuid.UUID("6c6f6e67-7468-5265-8164-706965636573")
"""Namespace of the ids of chunks' entries."""
_SUMMARY = "summary"
"""Stands for a chunk's id in the summary's case, and is its entry's kind."""
_MARK = "imported"
"""Key of a thread's metadata that marks document 004's data as imported."""
_JSON = frozenset(
    {"schema", "implementation", "trigger_keywords", "tools", "config", "skills", "sub_agents", "metadata"}
)
_LABEL = re.compile(
    r"^\s*(?:user|human|assistant|ai|bot|system|tool|用户|人类|助手|助理|系统|工具)[:：]\s*",
    re.MULTILINE | re.IGNORECASE,
)
"""A speaker at the start of a line."""
_SHORTEST = 4
"""Minimum length of an entry that is searched in a chunk, in characters."""
_SHORTEST_PART = 12
"""Minimum length of a part of a line that counts as said, in characters."""


class ImportWriter:
    """Writes into one store. `user` owns threads without an owner; with `takes_over`, all threads."""

    def __init__(self, store: Driver, tables: Tables, user: str, *, takes_over: bool = False) -> None:
        self._store = store
        self._tables = tables
        self._user = user
        self._takes_over = takes_over

    @classmethod
    async def into(cls, store: Driver, user: str, *, takes_over: bool = False) -> ImportWriter:
        async with store.reading() as tx:
            return cls(store, await read_tables(tx), user, takes_over=takes_over)

    def owner(self, conversation: Conversation) -> str:
        return self._user if self._takes_over or conversation.user_id is None else conversation.user_id

    async def conversation(self, conversation: Conversation, report: ImportReport) -> WriteOutcome | None:
        """Write a conversation, or what it gained since an earlier import. None: it is left; the report says why."""
        place = f"thread {conversation.id}"
        rows = self._rows(conversation)
        counts = {name: len(of_table) for name, of_table in rows.items() if of_table}
        try:
            async with self._store.writing() as tx:
                there = await one(tx, "select_owner", id=conversation.id)
                if there is None:
                    await write_thread(tx, self._tables, conversation.id, counts, self._each(rows))
                    return "new"
                if there["user_id"] != self.owner(conversation):
                    report.left.append(f"{place}: {_OTHERS}")
                    return None
                return await self._over(tx, conversation, rows, counts, report)
        except _REFUSED as error:
            report.left.append(f"{place}: {(error.reason or str(error)).rstrip('.')}")
            return None

    async def _over(
        self,
        tx: Transaction,
        conversation: Conversation,
        rows: Mapping[str, Sequence[Row]],
        counts: Mapping[str, int],
        report: ImportReport,
    ) -> WriteOutcome | None:
        await log.position(tx, conversation.id)
        here = await tx.fetch("imported_entries", thread_id=conversation.id)
        there = {row["id"]: row["text"] for row in rows[ENTRIES]}
        texts = {row["id"]: row["text"] for row in here}
        # Entries for known facts change when more of the conversation contains them.
        ours = [row for row in here if row["id"] not in there and not _is_known(row)]
        missing = [id_ for id_, text in there.items() if texts.get(id_) != text]
        if not missing:
            return "gone on" if ours else "already"
        if ours or await count_rows(tx, [self._tables[RUNS]], conversation.id):
            report.left.append(
                f"thread {conversation.id}: it has gone on here, and there {len(missing)} entries are new or changed"
            )
            return None
        [thread] = rows[THREADS]
        kept = {name: value for name, value in thread.items() if name not in _OURS}
        await write_thread(
            tx, self._tables, conversation.id, counts, self._each({**rows, THREADS: [kept]}), over_old=True
        )
        await incarnation.renew(tx, conversation.id)
        return "updated"

    async def _each(self, rows: Mapping[str, Sequence[Row]]) -> AsyncIterator[TableRow]:
        for table in self._tables.of_threads:
            for row in rows.get(table.name, ()):
                yield table.name, row

    def _rows(self, conversation: Conversation) -> dict[str, list[Row]]:
        """Return a conversation's rows by table."""
        found: dict[str, list[Row]] = {
            THREADS: [_thread_row(conversation, self.owner(conversation))],
            ENTRIES: [
                entry_row(
                    conversation.id,
                    each.draft,
                    parent_seq=0 if each.parent is None else each.parent + 1,
                    seq=place + 1,
                    at=each.at,
                )
                for place, each in enumerate(conversation.entries)
            ],
        }
        for name, rows in conversation.rows.items():
            found[name] = [{"thread_id": conversation.id, **row} for row in rows]
        return found

    async def write_shared(self, table: str, row: Row, report: ImportReport) -> Literal["new", "already"] | None:
        """Write a definition or a memory. None: it is left; the report says why."""
        label = f"{table[:-1] if table != 'memories' else 'memory'} {row.get('name') or row['id']}"
        given: Row = {key: dump(value) if key in _JSON else value for key, value in row.items()}
        try:
            async with self._store.writing() as tx:
                there = await tx.fetch(Sql(f'SELECT * FROM "{table}" WHERE CAST(id AS TEXT) = :id'), id=row["id"])
                if there:
                    return self._same(table, there[0], given, label, report)
                if table == "memories":
                    given = await self._memory(tx, given, label, report)
                elif table != "agents" and await self._is_taken(tx, table, str(row["name"])):
                    report.left.append(f"{label}: there is another {table[:-1]} of this name here")
                    return None
                await write_rows(tx, self._tables[table], [given])
        except _REFUSED as error:
            report.left.append(f"{label}: {(error.reason or str(error)).rstrip('.')}")
            return None
        return "new"

    def _same(self, table: str, there: Row, given: Row, label: str, report: ImportReport) -> Literal["already"] | None:
        """Compare an existing row with the imported one."""
        told = {"memories": ("content",)}.get(table, ("name", "description", "system_prompt", "type"))
        other = [name for name in told if name in given and there[name] != given[name]]
        other += [
            name for name in _JSON & given.keys() if table != "memories" and _value(there[name]) != _value(given[name])
        ]
        if other:
            report.left.append(f"{label}: it is here already, with another {other[0]}")
            return None
        return "already"

    async def _is_taken(self, tx: Transaction, table: str, name: str) -> bool:
        return bool(await tx.fetch(Sql(f'SELECT id FROM "{table}" WHERE name = :name'), name=name))

    async def _memory(self, tx: Transaction, given: Row, label: str, report: ImportReport) -> Row:
        """Return a memory's row with its owner; the session and agent that it names must exist here."""
        session = given["session_id"]
        owner = await one(tx, "select_owner", id=session) if session is not None else None
        if session is not None and owner is None:
            report.notes[f"{label} comes from session {session}, which is not here; it is kept without"] += 1
        user = self._user if owner is None else owner["user_id"]
        await memories.make_agent(tx, given["agent_id"])
        return {**given, "session_id": session if owner else None, "user_id": user}

    async def beside(self, taken: Beside, report: ImportReport) -> WriteOutcome | None:
        """Write a thread's data of document 004, and the thread if needed. None: it is left; the report says why."""
        place = f"labels, summaries and topics of thread {taken.thread_id}"
        try:
            async with self._store.writing() as tx:
                there = await one(tx, "select_owner", id=taken.thread_id)
                if there is not None and there["user_id"] != self._user:
                    report.left.append(f"{place}: {_OTHERS}")
                    return None
                return await self._write_beside(tx, taken)
        except _REFUSED as error:
            report.left.append(f"{place}: {(error.reason or str(error)).rstrip('.')}")
            return None

    async def _write_beside(self, tx: Transaction, taken: Beside) -> WriteOutcome:
        thread = await log.create_thread(tx, taken.thread_id, user_id=self._user, title=taken.label)
        row = await log.find_row(tx, taken.thread_id, user_id=self._user)
        metadata = json.loads(row["metadata"])
        if _MARK in metadata:
            return "already"
        size = await self._pieces(tx, taken, thread.entry_count)
        await self._write_derived(tx, taken)
        await tx.run(
            "note_import",
            id=taken.thread_id,
            title=taken.label,
            entry_count=size,
            updated_at=taken.active_at or row["updated_at"],
            metadata=dump({**metadata, _MARK: {"chunks": len(taken.rows[VECTORS])}}),
        )
        return "new"

    async def _pieces(self, tx: Transaction, taken: Beside, size: int) -> int:
        """Write chunks that are in no entry as a branch of their own, with topics. Return the number of entries."""
        said = [row["text"] for row in await tx.fetch("imported_entries", thread_id=taken.thread_id)]
        pieces = [row for row in taken.rows[VECTORS] if not _is_said(row["chunk"], said)]
        for row in taken.rows[SUMMARIES]:
            if row["summary"]:
                at = row.get("updated_at") or taken.active_at or log.now()
                pieces.insert(0, {"id": _SUMMARY, "chunk": row["summary"], "topics": "[]", "created_at": at})
        entries: list[Row] = []
        spans: list[Row] = []
        for seq, piece in enumerate(pieces, start=size + 1):
            id_ = str(uuid.uuid5(_PIECES, f"{taken.thread_id}\n{piece['id']}"))
            kind = _SUMMARY if piece["id"] == _SUMMARY else "chunk"
            draft, at = Draft(id=id_, role="system", text=piece["chunk"], metadata={"kind": kind}), piece["created_at"]
            parent_seq = seq - 1 if entries else 0
            entries.append(entry_row(taken.thread_id, draft, parent_seq=parent_seq, seq=seq, at=at))
            place = {"thread_id": taken.thread_id, "first_seq": seq, "last_seq": seq, "mentions": 1, "seen_at": at}
            spans += [{**place, "topic": topic} for topic in dict.fromkeys(json.loads(piece["topics"]))]
        await write_rows(tx, self._tables[ENTRIES], entries)
        await write_rows(tx, self._tables["memory_topic_spans"], spans)
        return size + len(entries)

    async def _write_derived(self, tx: Transaction, taken: Beside) -> None:
        for name, found in taken.rows.items():
            known = await self._list_known(tx, name, taken.thread_id)
            rows: list[Row] = [{"thread_id": taken.thread_id, **row} for row in found]
            await write_rows(tx, self._tables[name], [row for row in rows if row[_KEYS[name]] not in known])

    async def _list_known(self, tx: Transaction, table: str, thread_id: str) -> set[str]:
        rows = await tx.fetch(
            Sql(f'SELECT "{_KEYS[table]}" AS known FROM "{table}" WHERE thread_id = :thread_id'), thread_id=thread_id
        )
        return {row["known"] for row in rows}

    async def is_here(self, conversation: Conversation) -> bool:
        """Return whether all entries of a conversation are here."""
        async with self._store.reading() as tx:
            row = await one(tx, "select_owner", id=conversation.id)
            if row is None or row["user_id"] != self.owner(conversation):
                return False
            here = {row["id"] for row in await tx.fetch("imported_entries", thread_id=conversation.id)}
            return all(each.draft.id in here for each in conversation.entries)


_KEYS = {"memory_vectors": "id", "memory_topics": "topic", "conversation_summaries": "thread_id"}


def _thread_row(conversation: Conversation, owner: str) -> Row:
    return {
        "id": conversation.id,
        "user_id": owner,
        "title": conversation.title,
        "tip": conversation.tip + 1,
        "entry_count": len(conversation.entries),
        "tool_categories": dump(conversation.tool_categories),
        "tags": dump(conversation.tags),
        "created_at": conversation.created_at,
        "updated_at": conversation.updated_at,
        "agent_id": conversation.agent_id,
        "status": conversation.status,
        "metadata": dump(conversation.metadata),
        "ended_at": conversation.ended_at,
        "expires_at": conversation.expires_at,
    }


def _is_known(row: Row) -> bool:
    return bool(row["metadata"]) and json.loads(row["metadata"]).get(STEP) is False


def _value(stored: Any) -> Any:
    return json.loads(stored) if isinstance(stored, str) else stored


def _is_said(piece: str, texts: Sequence[str]) -> bool:
    """Return whether entries contain all of a chunk: each line of it is one of theirs, or a longer part of one."""
    texts = [_trim_lines(text) for text in texts]
    left = _trim_lines(_LABEL.sub("", piece))
    for text in sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True):
        left = _find_words(text).sub("\n", left)
    lines = {line for text in texts for line in text.split("\n")}
    return all(_is_line_said(line.strip(), lines, texts) for line in left.split("\n"))


def _is_line_said(line: str, lines: Set[str], texts: Sequence[str]) -> bool:
    if not line or line in lines:
        return True
    return len(line) >= _SHORTEST_PART and any(_find_words(line).search(text) for text in texts)


def _trim_lines(text: str) -> str:
    """Return a text without empty lines, with one space in the place of several."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _find_words(text: str) -> re.Pattern[str]:
    """Match a text that neither begins nor ends inside a word or a number."""
    return re.compile(rf"(?<![0-9A-Za-z_]){re.escape(text)}(?![0-9A-Za-z_])")

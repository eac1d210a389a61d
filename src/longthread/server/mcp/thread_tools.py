"""The tools that look at conversations: list_threads, search_threads, read_thread, view; and threads as resources."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from longthread.errors import InvalidInput, ThreadNotFound
from longthread.memory.index.entry_text import excerpt
from longthread.memory.index.terms import find_telling_terms
from longthread.model.entry import Entry
from longthread.model.thread import Thread
from longthread.runs.inspect import calls_of, look
from longthread.runs.services.approvals import pending_of
from longthread.runs.worker import may_be_alive
from longthread.server.fields import thread_page
from longthread.server.mcp.offer import (
    TEXT,
    THREAD,
    TRUTH,
    WHOLE,
    OfferedTool,
    ReportProgress,
    ToolAnswer,
    each,
    schema,
    text,
    whole,
)
from longthread.store import listing, log
from longthread.store.driver import Driver, Transaction
from longthread.store.transfer.archive import branch_markdown
from longthread.view.condense import condense_result, cut_middle
from longthread.view.items import ViewEntry

PAGE_CHARS = 60_000
"""Characters of the messages of one page; a page has one message at least."""
MESSAGE_CHARS = 20_000
RESULT_CHARS = 2_000
"""Of a tool's result and of a call's arguments; those of all calls of a message have `MESSAGE_CHARS`."""
_HIT_CHARS = 300
_CHUNK = 100
_DAMAGED = {"type": "array", "items": TEXT, "description": "Those that cannot be read and were passed over."}
_LISTED = {
    "thread": TEXT,
    "title": TEXT,
    "messages": WHOLE,
    "active_at": TEXT,
    "source": TEXT,
    "status": text("How its last run stands: running, waiting for approval, interrupted, paused, failed or finished."),
    "match": text("Where a search found it."),
}
_MESSAGE = {
    "seq": WHOLE,
    "entry": TEXT,
    "role": TEXT,
    "kind": TEXT,
    "name": TEXT,
    "time": TEXT,
    "text": TEXT,
    "cut": TRUTH,
    "calls": each({"name": TEXT, "args": {"type": "object"}}, "name", "args"),
}


class ThreadTools:
    """The conversations of one user."""

    def __init__(self, store: Driver, user: str) -> None:
        self._store = store
        self._user = user

    def offers(self) -> tuple[OfferedTool, ...]:
        """The three tools."""
        many = whole("How many at most.", least=1, most=100, default=20)
        threads = each(_LISTED, "thread", "title", "messages", "active_at")
        paged = {"limit": many, "cursor": text("The `next_cursor` of the page before.")}
        read = {
            "thread": THREAD,
            "limit": many | {"description": "How many messages at most, the last ones."},
            "before": whole(
                "The `before` of the page that was read, for the messages in front of it.", least=1, most=2**53
            ),
            "steps": {"type": "boolean", "default": False, "description": "Also calls of tools and what came of them."},
        }
        waiting = each({"tool": TEXT, "args": {"type": "object"}}, "tool", "args")
        waiting["description"] = "The calls that wait for a person's approval."
        page = {"thread": TEXT, "title": TEXT, "source": TEXT, "messages": each(_MESSAGE, "seq", "role", "text")}
        return (
            OfferedTool(
                "list_threads",
                "List conversations",
                "The user's conversations, the latest active first.",
                schema(paged),
                schema({"threads": threads, "next_cursor": TEXT, "damaged": _DAMAGED}, "threads"),
                self._list,
            ),
            OfferedTool(
                "search_threads",
                "Search conversations",
                "The user's conversations whose title, questions or answers hold a text, word for word. `recall` finds "
                "single messages by what they say.",
                schema({"query": text("The text.", minLength=1, maxLength=200), "limit": many}, "query"),
                schema({"threads": threads, "damaged": _DAMAGED}, "threads"),
                self._search,
            ),
            OfferedTool(
                "read_thread",
                "Read a conversation",
                "The last messages of a conversation, oldest first, and with `before` those in front of them.",
                schema(read, "thread"),
                schema(page | {"before": WHOLE, "waiting": waiting}, "thread", "title", "messages"),
                self._read,
            ),
        )

    async def _list(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        limit = given["limit"]
        damaged: dict[str, str] = {}
        async with self._store.reading() as tx:
            threads, cursor = await thread_page(tx, self._user, limit, given.get("cursor"), damaged)
            listed = await self._list_threads(tx, threads)
        data = (
            {"threads": listed}
            | ({"next_cursor": cursor} if cursor else {})
            | ({"damaged": list(damaged)} if damaged else {})
        )
        return ToolAnswer(data, _lines(listed, cursor, damaged))

    async def _search(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        query = given["query"].strip()
        if not query:
            raise InvalidInput(
                reason="There is nothing to look for. Give words as `query`; the tool `list_threads` gives all "
                "conversations."
            )
        damaged: dict[str, str] = {}
        async with self._store.reading() as tx:
            hits = await listing.search_threads(tx, query, user_id=self._user, limit=given["limit"], unreadable=damaged)
            listed = await self._list_threads(tx, [thread for thread, _ in hits])
        wanted = set(find_telling_terms(query))
        for item, (_, hit) in zip(listed, hits, strict=True):
            item["match"] = excerpt(" ".join(hit.text.split()), wanted, _HIT_CHARS)
        return ToolAnswer(
            {"threads": listed} | ({"damaged": list(damaged)} if damaged else {}), _lines(listed, None, damaged)
        )

    async def _list_threads(self, tx: Transaction, threads: Sequence[Thread]) -> list[dict[str, Any]]:
        statuses = await listing.latest_runs(tx, threads, user_id=self._user, alive=may_be_alive)
        return [_describe_thread(thread, statuses.get(thread.id)) for thread in threads]

    async def _read(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, given["thread"], user_id=self._user)
            at = given.get("before") or thread.tip
            found, before = await _messages(tx, thread, at, given["limit"], steps=given["steps"])
            waiting = [{"tool": call.tool, "args": dict(call.args)} for call in await pending_of(tx, thread.id)]
        data: dict[str, Any] = {"thread": thread.id, "title": thread.title or "", "messages": found}
        data |= {"source": thread.source} if thread.source else {}
        data |= {"before": before} if before else {}
        data |= {"waiting": waiting} if waiting else {}
        parts = [f"# {data['title'] or thread.id}", *map(_as_text, found)]
        if waiting:
            calls = "; ".join(f"{call['tool']} {json.dumps(call['args'], ensure_ascii=False)}" for call in waiting)
            parts.append(f"(Waiting for approval of {calls}. A person decides: `longthread approve {thread.id}`.)")
        return ToolAnswer(data, "\n\n".join([*parts, *([f"(Earlier: before={before})"] if before else [])]))


async def _messages(
    tx: Transaction, thread: Thread, at: int, limit: int, *, steps: bool
) -> tuple[list[dict[str, Any]], int]:
    """The last messages of the branch that ends in `at`, and the seq of the entry before them, or 0."""
    found: list[dict[str, Any]] = []
    size = 0
    while at:
        entries = await log.branch(tx, thread.id, at, limit=_CHUNK, seen_from=thread.tip)
        if not entries:
            return found[::-1], 0
        for entry in reversed(entries):
            answers = entry.role == "assistant" and bool(entry.text.strip()) and not entry.tool_calls
            if steps or answers or entry.role == "user":
                message = _message(entry)
                size += len(message["text"]) + len(str(message.get("calls", "")))
                if found and (len(found) >= limit or size > PAGE_CHARS):
                    return found[::-1], entry.seq
                found.append(message)
        at = entries[0].parent_seq
    return found[::-1], 0


def _message(entry: Entry) -> dict[str, Any]:
    most = RESULT_CHARS if entry.role == "tool" else MESSAGE_CHARS
    content = condense_result(entry.text, most) if entry.role == "tool" else entry.text[:most]
    data: dict[str, Any] = {"seq": entry.seq, "entry": entry.id, "role": entry.role, "text": content}
    data |= {"kind": entry.kind} if entry.kind else {}
    data |= {"name": entry.name} if entry.name else {}
    calls: list[dict[str, Any]] = []
    left, is_cut = MESSAGE_CHARS, len(entry.text) > most
    for call in entry.tool_calls:
        args = _cut(call.args, min(left, RESULT_CHARS))
        left -= len(str(args))
        is_cut |= args != call.args
        calls.append({"name": call.name, "args": args})
    data |= {"cut": True} if is_cut else {}
    return data | ({"calls": calls} if calls else {}) | {"time": entry.created_at.isoformat(timespec="seconds")}


def _cut(args: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The first arguments, long values cut."""
    shown: dict[str, Any] = {}
    for name, value in args.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        most -= len(name)
        if most <= 0:
            break
        shown[name] = value if len(text) <= most else f"{text[:most]}…"
        most -= len(text)
    return shown


def _as_text(message: Mapping[str, Any]) -> str:
    calls = "".join(f"\n› {call['name']} {call['args']}" for call in message.get("calls", ()))
    cut = " … (cut)" if message.get("cut") else ""
    return f"## {message['role']} · {message['time']}\n{message['text']}{cut}{calls}"


def _describe_thread(thread: Thread, status: str | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "thread": thread.id,
        "title": thread.title or "",
        "messages": thread.entry_count,
        "active_at": thread.updated_at.isoformat(timespec="seconds"),
    }
    data |= {"source": thread.source} if thread.source else {}
    return data | ({"status": status} if status else {})


def _lines(listed: Sequence[Mapping[str, Any]], cursor: str | None, damaged: Mapping[str, str]) -> str:
    if not listed and not damaged:
        return "There are none."
    lines = [f"{each['thread']}  {each['active_at']}  {each['title']}" for each in listed]
    lines = [
        f"{line}\n  {each['match']}" if "match" in each else line for line, each in zip(lines, listed, strict=True)
    ]
    lines += [f"{thread_id}  is damaged and cannot be read: {reason}" for thread_id, reason in damaged.items()]
    return "\n".join([*lines, *([f"More: cursor={cursor}"] if cursor else [])])


_CHARS = 400
"""Characters of a message that are shown; the summary is shown whole."""
_MOST = 200
_SEEN = {"seq": WHOLE, "role": TEXT, "how": TEXT, "tokens": WHOLE, "why": TEXT, "tier": WHOLE, "text": TEXT}


class ViewTool:
    """What models saw of a user's conversations."""

    def __init__(self, store: Driver, user: str) -> None:
        self._store = store
        self._user = user

    def offer(self) -> OfferedTool:
        """`view`."""
        call = {"type": "integer", "description": "Which model call, from 1; -1 is the last one.", "default": -1}
        output = {"thread": TEXT, "call": WHOLE, "calls": WHOLE, "tokens": WHOLE, "why_planned": TEXT}
        messages = each(_SEEN, "seq", "role", "how", "tokens", "text")
        return OfferedTool(
            "view",
            "See what the model saw",
            "The messages that a model call of a conversation saw: how each went in (whole, condensed, as a summary, "
            "left out and why), and what it cost in tokens, by estimate.",
            schema({"thread": THREAD, "call": call}, "thread"),
            schema(output | {"messages": messages, "left_off": WHOLE}, *output, "messages"),
            self._view,
        )

    async def _view(self, given: Mapping[str, Any], progress: ReportProgress) -> ToolAnswer:
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, given["thread"], user_id=self._user)
            calls = await calls_of(tx, thread.id)
            number = given["call"] if given["call"] >= 0 else len(calls) + 1 + given["call"]
            if not 0 < number <= len(calls):
                reason = f"There is no call {given['call']}: of {len(calls)} calls the views are kept, counted from 1."
                raise InvalidInput(reason=reason)
            seen = await look(tx, calls, number)
        left_off = max(0, len(seen.entries) - _MOST)
        data: dict[str, Any] = {
            "thread": thread.id,
            "call": number,
            "calls": len(calls),
            "tokens": seen.tokens,
            "why_planned": seen.why_planned,
            "messages": [_describe_entry(one) for one in seen.entries[left_off:]],
        }
        data |= {"left_off": left_off} if left_off else {}
        head = f"Call {number} of {len(calls)}: {seen.tokens} tokens of messages, by estimate"
        lines = [f"{one['seq']} {one['role']} {one['how']} {one['tokens']}: {one['text']}" for one in data["messages"]]
        return ToolAnswer(data, "\n".join([head, *lines]))


def _describe_entry(one: ViewEntry) -> dict[str, Any]:
    text = one.text if one.how == "summary" else cut_middle(one.text, _CHARS)
    data: dict[str, Any] = {"seq": one.seq, "role": one.role, "how": one.how, "tokens": one.tokens, "text": text}
    data |= {"why": one.why} if one.why else {}
    return data | ({"tier": one.tier} if one.tier else {})


PREFIX = "longthread://threads/"
TEMPLATE = f"{PREFIX}{{thread}}"
MEDIA_TYPE = "text/markdown"
_PAGE = 50
MOST_CHARS = 400_000
"""The last characters of a transcript that are shown."""
_ENTRIES = 2_000


class Transcripts:
    """The conversations of one user."""

    def __init__(self, store: Driver, user: str) -> None:
        self._store = store
        self._user = user

    async def page(self, cursor: str | None) -> tuple[list[Thread], str | None]:
        """A page of conversations without damaged ones, and the cursor of the next."""
        async with self._store.reading() as tx:
            return await thread_page(tx, self._user, _PAGE, cursor, {})

    async def read(self, uri: str) -> str:
        """A conversation's last questions and answers. Raises ThreadNotFound."""
        if not uri.startswith(PREFIX):
            raise ThreadNotFound(thread=uri[:200])
        async with self._store.reading() as tx:
            thread = await log.find_thread(tx, unquote(uri.removeprefix(PREFIX)), user_id=self._user)
            entries = await log.branch(tx, thread.id, thread.tip, limit=_ENTRIES)
            text = await branch_markdown(tx, thread, entries, details=True)
        is_cut = bool(entries and entries[0].parent_seq) or len(text) > MOST_CHARS
        return f"(Only the end; the tool read_thread reads the rest.)\n\n{text[-MOST_CHARS:]}" if is_cut else text


def uri_of(thread: Thread) -> str:
    """The URI of a conversation."""
    return PREFIX + quote(thread.id, safe="")

"""Conversations of a server, in the form in which the commands show those of a store."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from longthread.cli.remote.client import ServerAnswer, ServerClient, at
from longthread.errors import EntryNotFound, ResultNotFound
from longthread.model.entry import Entry, ToolCall
from longthread.model.run import Approval
from longthread.model.thread import Thread

_PAGE = 200
DAMAGED = "The log of the server says why."
"""What is said of a damaged conversation of a server."""


class ListedRow(NamedTuple):
    """A conversation of a list: the text that a search found, its last run's status, and those below that wait."""

    thread: Thread
    hit: str
    status: str | None
    waiting_below: Sequence[str]


async def list_threads(
    client: ServerClient, limit: int, damaged: dict[str, str], **among: str | bool
) -> list[ListedRow]:
    """The conversations, the latest first. Damaged ones are noted in `damaged`."""
    rows, cursor = list[ListedRow](), None
    query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in among.items()}
    while len(rows) < limit:
        page = await client.get("/api/conversations", limit=min(_PAGE, limit - len(rows)), cursor=cursor, **query)
        rows += [_read_row(each) for each in page["conversations"]]
        damaged |= dict.fromkeys(page["damaged"], DAMAGED)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    return rows


def read_thread(view: Mapping[str, Any]) -> Thread:
    """A thread, from what the API says of a conversation in a list or with its history."""
    agent = view["agent"]
    return Thread(
        id=view.get("id") or view["thread_id"],
        user_id="",
        title=view["label"],
        source=view["source"],
        created_at=read_moment(view["created_at"]),
        updated_at=read_moment(view["last_active_at"]),
        entry_count=view.get("message_count", 0),
        tags=tuple(view["tags"]),
        agent_id=agent["id"] if agent else None,
        parent_id=view["parent_id"] if "parent_id" in view else (view["parent"] or {}).get("id"),
        metadata=view["metadata"],
        expires_at=moment_or_none(view["expires_at"]),
        archived_at=moment_or_none(view["archived_at"]),
        pinned_at=moment_or_none(view["pinned_at"]),
    )


class ShownThread(NamedTuple):
    """A conversation with its messages and calls: what was noted about some, the calls that wait, the conversations
    below, and those of them where calls wait."""

    thread: Thread
    entries: Sequence[Entry]
    noted: Mapping[int, Mapping[str, Any]]
    waiting: Sequence[Approval]
    below: Sequence[Thread]
    asking: Sequence[str]


async def show_thread(client: ServerClient, thread_id: str) -> ShownThread:
    """A conversation from its first message to its last."""
    pages = [await _read_page(client, thread_id)]
    while pages[0]["before"]:
        pages.insert(0, await _read_page(client, thread_id, pages[0]["before"]))
    steps = {owner: some for page in pages for owner, some in page["steps"].items()}
    entries, noted = list[Entry](), dict[int, Mapping[str, Any]]()
    for message in (each for page in pages for each in page["messages"]):
        seq = len(entries) + 1
        made = _read_message(thread_id, seq, message)
        if message["metadata"]:
            noted[seq] = message["metadata"]
        calls = [
            entry for owner in (message["run_id"], message["id"]) for entry in _read_steps(made, steps.pop(owner, ()))
        ]
        entries += [made, *calls] if message["role"] == "user" else [*calls, made]
    last = pages[-1]
    children = await client.get("/api/conversations", parent=thread_id, limit=_PAGE)
    return ShownThread(
        read_thread(last),
        entries,
        noted,
        _read_waiting(thread_id, last["run"] or {}),
        [read_thread(each) for each in children["conversations"]],
        [each["id"] for each in last["waiting_below"]],
    )


async def find_step(client: ServerClient, thread_id: str, label: str) -> int:
    """The number of the newest step whose result has a label such as `q3` or `[q3]`. Raises ResultNotFound, which lists
    the labels."""
    wanted = re.sub(r"[\[\]\s]", "", label).lower()
    page, found = await _read_page(client, thread_id), dict[str, int]()
    while True:
        steps = [step for some in page["steps"].values() for step in some if step["step"] is not None]
        for step in sorted(steps, key=lambda each: -each["step"]):
            data = (step["observation"] or {}).get("data")
            if isinstance(data, dict) and data.get("query"):
                found.setdefault(str(data["query"]), step["step"])
        if wanted in found:
            return found[wanted]
        if not page["before"]:
            raise ResultNotFound(label=label[:50], labels=", ".join(reversed(found)) or "none")
        page = await _read_page(client, thread_id, page["before"])


async def read_metadata(client: ServerClient, thread_id: str, message: str | None) -> Mapping[str, Any]:
    """The metadata of a conversation, or of one of its messages. Raises EntryNotFound."""
    page = await _read_page(client, thread_id)
    if message is None:
        return dict(page["metadata"])
    while True:
        for each in page["messages"]:
            if each["id"] == message:
                return dict(each["metadata"])
        if not page["before"]:
            raise EntryNotFound(thread=thread_id, entry=message)
        page = await _read_page(client, thread_id, page["before"])


async def change_tags(client: ServerClient, thread_id: str, add: Collection[str], remove: Collection[str]) -> Thread:
    """Add and remove tags; without any, only read them."""
    found = await client.get("/api/chat/history", thread_id=thread_id, limit=1)
    if not add and not remove:
        return read_thread(found)
    gone = {tag.strip() for tag in remove}
    tags = dict.fromkeys([*(tag for tag in found["tags"] if tag not in gone), *(tag.strip() for tag in add)])
    return read_thread(await client.send("PATCH", at(thread_id), {"tags": list(tags)}))


def _read_row(view: ServerAnswer) -> ListedRow:
    hit = (view.get("match") or {}).get("text", "")
    return ListedRow(read_thread(view), hit, view["status"], view["waiting_below"])


async def _read_page(client: ServerClient, thread_id: str, before: str | None = None) -> ServerAnswer:
    return await client.get("/api/chat/history", thread_id=thread_id, limit=_PAGE, before=before)


def _read_message(thread_id: str, seq: int, view: ServerAnswer) -> Entry:
    return Entry(
        id=view["id"],
        role=view["role"],
        text=view["content"],
        run_id=view["run_id"],
        metadata={"kind": view["kind"]} if view["kind"] else {},
        thread_id=thread_id,
        seq=seq,
        created_at=read_moment(view["created_at"]),
    )


def _read_steps(message: Entry, steps: Sequence[ServerAnswer]) -> list[Entry]:
    """The calls of a message's run and their results, as entries between the question and the answer."""
    replies: list[list[ServerAnswer]] = []
    for step in steps:  # between two replies stands the call of the model, which is a step too
        before = replies[-1][-1]["step"] if replies else None
        if before is not None and step["step"] == before + 1:
            replies[-1].append(step)
        else:
            replies.append([step])
    return [entry for calls in replies for entry in _read_reply(message, calls)]


def _read_reply(message: Entry, steps: Sequence[ServerAnswer]) -> list[Entry]:
    """A reply with its calls, and their results."""
    common: dict[str, Any] = {"run_id": message.run_id, "thread_id": message.thread_id}
    calls = tuple(ToolCall(step["call_id"] or "", step["action"], step["args"]) for step in steps)
    name, began = f"{message.run_id or message.id}.{calls[0].id}", read_moment(steps[0]["started_at"])
    made = [Entry(name, "assistant", steps[0]["thought"], calls, **common, created_at=began)]
    for step, call in zip(steps, calls, strict=True):
        if step["observation"] is not None:
            text, moment = json.dumps(step["observation"], ensure_ascii=False), read_moment(step["started_at"])
            result = Entry(f"{name}.{call.id}", "tool", text, tool_call_id=call.id, **common, created_at=moment)
            made.append(result)
    return made


def _read_waiting(thread_id: str, run: ServerAnswer) -> list[Approval]:
    if run.get("status") != "waiting":
        return []
    return [
        Approval(
            thread_id=thread_id,
            run_id=run["id"],
            message_id="",
            call_id=call["id"],
            place=place,
            tool=call["tool"],
            description=call["description"],
            args=call["args"],
            parameters=call["parameters"],
            asked_at=read_moment(run["started_at"]),
        )
        for place, call in enumerate(run["outcome"]["calls"])
    ]


def read_moment(text: str) -> datetime:
    """A moment of an answer."""
    return datetime.fromisoformat(text)


def moment_or_none(text: str | None) -> datetime | None:
    """The same where there may be none."""
    return read_moment(text) if text else None

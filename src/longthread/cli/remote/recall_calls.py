"""What a server finds of what was said before, in the form in which the command shows what a store has."""

from __future__ import annotations

from datetime import datetime

from longthread.cli.remote.client import ServerAnswer, ServerClient
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.recall import Hit, Question
from longthread.model.entry import Entry


async def recall_messages(client: ServerClient, asked: Question) -> tuple[list[Hit], dict[str, str], list[str]]:
    """The messages that were found, the titles of their conversations by id, and warnings."""
    found = await client.get(
        "/api/recall",
        q=asked.text,
        topic=asked.topic,
        thread_id=await client.find_thread(asked.scope.thread_id),
        agent=asked.scope.agent_id,
        since=_format_moment(asked.since),
        until=_format_moment(asked.until),
        k=asked.k,
        around=asked.neighbours,
        other_branches=str(asked.other_branches).lower(),
    )
    hits = [_read_hit(each) for each in found["hits"]]
    return hits, {each["thread_id"]: each["label"] for each in found["hits"]}, found["warnings"]


def _read_hit(view: ServerAnswer) -> Hit:
    around = [_read_message(view["thread_id"], each) for each in view["around"]]
    return Hit(_read_message(view["thread_id"], view), view["score"], view["active"], around)


def _read_message(thread_id: str, view: ServerAnswer) -> Entry:
    return Entry(
        id=view["id"],
        role=view["role"],
        text=view["text"],
        name=view.get("name"),
        metadata={SAID_AT: view["said_at"]},
        thread_id=thread_id,
        seq=view["seq"],
    )


def _format_moment(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment is not None else None

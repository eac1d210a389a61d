"""Messages of a user's conversations that are found by what they say."""

from __future__ import annotations

from typing import Annotated, NotRequired

from fastapi import APIRouter, Query
from typing_extensions import TypedDict

from longthread.errors import DefinitionNotFound, InvalidInput, ThreadNotFound
from longthread.memory.index.entry_text import content_of, excerpt
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.index.terms import find_telling_terms
from longthread.memory.recall import Hit, Question
from longthread.model.entry import Entry, Role
from longthread.model.thread import Scope
from longthread.runs.rights import granted_names
from longthread.server.fields import PlainText, Time
from longthread.server.openapi import problems
from longthread.server.state import Granted, ProjectCaller, ServedDep
from longthread.store import log

router = APIRouter(prefix="/api", tags=["memories"])

_CHARS = 1_200
"""Characters of a message that are shown, around what was looked for."""


class RecalledMessage(TypedDict):
    """A message, a reply or a result: the `seq`th of its conversation. `name` is the tool of a result. `said_at` is the
    time that its sender gave, else when it was stored. `text` is the part around the words that were found."""

    id: str
    seq: int
    role: Role
    name: NotRequired[str]
    said_at: str
    text: str


class RecallHit(RecalledMessage):
    """A message that was found, in the conversation `thread_id` with this `label`. `active`: it is on the chosen
    branch. `around` are messages on either side of it."""

    thread_id: str
    label: str
    score: float
    active: bool
    around: list[RecalledMessage]


class RecallAnswer(TypedDict):
    """The messages that were found, the best first."""

    hits: list[RecallHit]
    warnings: list[str]


@router.get("/recall", responses=problems(DefinitionNotFound, InvalidInput, ThreadNotFound, reads=True))
async def recall(
    served: ServedDep,
    user: ProjectCaller,
    granted: Granted,
    q: Annotated[PlainText, Query(max_length=4_000)] = "",
    topic: Annotated[PlainText, Query(max_length=400)] = "",
    thread_id: PlainText | None = None,
    agent: Annotated[PlainText, Query(max_length=100)] | None = None,
    since: Time | None = None,
    until: Time | None = None,
    k: Annotated[int, Query(ge=1, le=100)] | None = None,
    around: Annotated[int, Query(ge=0, le=5)] = 0,
    other_branches: bool = False,
) -> RecallAnswer:
    """Find what was said before, the best first: by words, and by meaning with an embedder. No model is asked. It looks
    in all conversations of the user or of a `project`, or in one (`thread_id`), or in those with an `agent`; for words
    (`q`), or for what was said about a `topic`. `until` is excluded. `k` is how many at most, by default
    `MEMORY_RECALL_TOP_K`."""
    if not (q.strip() or topic.strip()):
        raise InvalidInput(reason="There is nothing to look for. Give `q` or `topic`.")
    if thread_id is not None and agent is not None:
        raise InvalidInput(reason="Give `thread_id` or `agent`, not both.")
    analyst = served.analyst
    if thread_id is not None:
        async with analyst.store.reading() as tx:
            await log.find_thread(tx, thread_id, user_id=user)
    agent_id = (await granted_names(analyst.store, granted)).one("agent", agent).id if agent is not None else None
    question = Question(
        text=q,
        topic=topic,
        scope=Scope(user, thread_id, agent_id),
        k=k or analyst.settings.memory_recall_top_k,
        since=since,
        until=until,
        neighbours=around,
        other_branches=other_branches,
    )
    recalled = await analyst.recaller.find(question)
    wanted = set(find_telling_terms(f"{q} {topic}"))
    async with analyst.store.reading() as tx:
        ids = dict.fromkeys(hit.entry.thread_id for hit in recalled.hits)
        labels = {each: (await log.find_thread(tx, each, user_id=user)).title or "" for each in ids}
    hits = [_describe_hit(hit, labels[hit.entry.thread_id], wanted) for hit in recalled.hits]
    return {"hits": hits, "warnings": list(recalled.warnings)}


def _describe_hit(hit: Hit, label: str, wanted: set[str]) -> RecallHit:
    return {
        "thread_id": hit.entry.thread_id,
        "label": label,
        **_describe_message(hit.entry, wanted),
        "score": round(hit.score, 3),
        "active": hit.active,
        "around": [_describe_message(other, wanted) for other in hit.around if content_of(other).strip()],
    }


def _describe_message(entry: Entry, wanted: set[str]) -> RecalledMessage:
    said_at = entry.metadata.get(SAID_AT) or entry.created_at.isoformat(timespec="seconds")
    told: RecalledMessage = {
        "id": entry.id,
        "seq": entry.seq,
        "role": entry.role,
        "said_at": str(said_at),
        "text": excerpt(content_of(entry), wanted, _CHARS),
    }
    if entry.name:
        told["name"] = entry.name
    return told

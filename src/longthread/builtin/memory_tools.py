"""The tools of memory: `recall_memory` finds earlier messages, `remember` and `forget` keep and delete memories."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from longthread.errors import EntryNotFound, InvalidInput, LongthreadError, ThreadNotFound
from longthread.memory.index.entry_text import content_of, excerpt, start_of
from longthread.memory.index.indexer import SAID_AT
from longthread.memory.index.terms import find_telling_terms
from longthread.memory.keywords import EntryPlace
from longthread.memory.memory_ranking import is_typed
from longthread.memory.recall import Hit, Question, Recalled, Recaller
from longthread.memory.user_memories import STORE, Memories, as_line, remember
from longthread.model.catalog import RECALL_TOOL
from longthread.model.entry import Entry
from longthread.model.language import is_chinese, moment_of
from longthread.model.memory import Memory, MemorySource, MemoryType, Origin, Statement, Used
from longthread.model.thread import Scope
from longthread.settings import RememberApproval as Approval
from longthread.store import memories, runs
from longthread.store.driver import Driver
from longthread.store.memories import Owner
from longthread.store.runs import Lease
from longthread.telemetry import span
from longthread.tools.tool import Observation, Tool, as_observation, make_failure, make_success
from longthread.view.tokens import ANY, estimate

HIT_CHARS = 1200
"""Characters of a found entry."""
AROUND_CHARS = 300
"""Characters of an entry around it."""
MOST = 100
"""The most messages of one call, as in MEMORY_RECALL_TOP_K."""
_NEIGHBOURS = 5
NOTHING_YET = "Nothing was said before this turn: the conversation begins with it."
_OTHER_BRANCH = "another: this was edited or said anew"
_OTHER_BRANCH_ZH = "另一分支：这条内容后来被编辑或重新说过"
SCOPES: Mapping[str, str] = {
    "thread": "This conversation (default)",
    "user": "or all of this user's",
    "agent": "or those of them with this agent",
}
"""Scopes of a search, with their descriptions for the model."""
_ABOUT = (
    "Finds earlier messages of this conversation by their words: call it for what is no longer shown. Give the words "
    "that were probably used."
)
_PROPERTIES: Mapping[str, Any] = {
    "query": {"type": "string", "description": "What to look for, in the conversation's own words."},
    "topic": {"type": "string", "description": "One of the recallable topics: only what was said about it."},
    "entry_id": {"type": "string", "description": "Instead of a query: the `entry` of a result, to read it whole."},
    "offset": {"type": "integer", "description": "With entry_id: where to go on, as `more` says."},
    "since": {"type": "string", "description": "Only messages from this date or time on (ISO 8601)."},
    "until": {
        "type": "string",
        "description": "Only messages to the end of this date, or before this time (ISO 8601).",
    },
    "neighbours": {"type": "integer", "minimum": 0, "maximum": _NEIGHBOURS, "description": "Messages around each; 1."},
    "k": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many messages at most."},
    "other_branches": {
        "type": "boolean",
        "description": "Also what was said before an edit or a retry took its place. Such results say so.",
    },
}
LookUp = Callable[[str, int], Awaitable[list[dict[str, Any]]]]
"""Finds memories about a text, at most so many."""
WHOLE_CHARS = 20_000
"""The most characters of a page."""
_LEAST_CHARS = 200
"""The least characters of a page, however small the window is."""
_SHARE = 0.4
"""A page's share of a view's budget, which also holds the question, and perhaps another page."""
_MORE = 40
"""Tokens of the note on how to continue."""


@dataclass(frozen=True, slots=True)
class PageRoom:
    """The budget of a view's messages in tokens of a family of models; 0 if unknown."""

    budget: int = 0
    family: str = ANY

    @property
    def tokens(self) -> int:
        """The tokens of a page."""
        return int(self.budget * _SHARE)

    def fits(self, value: Any) -> bool:
        """Return whether a value has room on the two pages of a view."""
        return not self.budget or self._cost(value) <= 2 * self.tokens

    def has_for(self, beside: Mapping[str, Any]) -> bool:
        """Return whether the other fields of an entry leave half of a page for its text."""
        return not self.budget or self._cost(beside) <= self.tokens // 2

    def page(self, text: str, begins: int, beside: Mapping[str, Any]) -> int:
        """Return the end of the page of a text that begins at `begins`. The page also shows the other fields."""
        size = min(len(text) - begins, WHOLE_CHARS)
        left = max(1, self.tokens - self._cost(beside) - _MORE)
        while self.budget and size > _LEAST_CHARS:
            cost = self._cost(text[begins : begins + size])
            if cost <= left:
                break
            size = max(_LEAST_CHARS, int(size * 0.95 * left / cost))
        return min(len(text), begins + size)

    def start(self, text: str, wanted: Collection[str], beside: Mapping[str, Any]) -> int:
        """The beginning of the page with most of the `wanted` terms."""
        begins, size = 0, self.page(text, 0, beside)
        while True:
            begins = start_of(text, wanted, size)
            fits = self.page(text, begins, beside) - begins
            if fits >= min(size, len(text) - begins):
                return begins
            size = fits  # this part of the text costs more than its beginning

    def _cost(self, value: Any) -> int:
        return estimate(json.dumps(value, ensure_ascii=False), self.family)


def recall_tool(
    recaller: Recaller,
    scope: Scope,
    *,
    thread_id: str,
    agent_id: str | None,
    top_k: int,
    before: EntryPlace | None,
    look_up: LookUp | None = None,
    scopes: Sequence[str] = tuple(SCOPES),
    room: Callable[[], PageRoom] = PageRoom,
) -> Tool:
    """`recall_memory` for a run on a thread.

    `scope` is the user's own thread, `top_k` the default number of entries, and `before` the run's first entry, from
    which on the model sees all. `look_up` finds the user's memories where more than this conversation is searched.
    `scopes` are the allowed ones, "thread" among them; `room` is that of the model's next view.
    """

    async def call(arguments: Mapping[str, Any]) -> Observation:
        try:
            asked = _question(arguments, scope, scopes, agent_id, top_k, before)
            entry_id = text_argument(arguments, "entry_id")
            if entry_id:
                hit = await _find_entry(recaller, asked, thread_id, entry_id)
                return make_success({"found": [_page(hit, thread_id, asked.words, arguments, room())]})
            if arguments.get("offset") is not None:
                raise InvalidInput(reason="An offset goes with an entry_id: give the entry that it is in.")
            if not asked.words.strip():
                raise InvalidInput(reason="There is nothing to look for. Give a query, a topic or an entry_id.")
            recalled = await _search(recaller, asked, thread_id)
            wider = look_up if asked.scope.thread_id is None else None
            remembered = await wider(asked.text, asked.k) if wider is not None else []
        except LongthreadError as error:
            return make_failure(error)
        wanted = set(find_telling_terms(f"{asked.text} {asked.topic}"))
        data: dict[str, Any] = {"found": _page_of_hits(recalled.hits, thread_id, wanted, asked.words, room())}
        data |= {"memories": remembered} if remembered else {}
        data |= {"note": NOTHING_YET} if recalled is _NOTHING else {}
        return make_success(data | ({"warnings": list(recalled.warnings)} if recalled.warnings else {}))

    return replace(describe_tool(scopes), call=call)


def describe_tool(scopes: Sequence[str] = tuple(SCOPES)) -> Tool:
    """The tool as a model sees it, without a thread. A single scope is not described."""

    async def call(arguments: Mapping[str, Any]) -> Observation:
        return make_failure(InvalidInput(reason="This tool belongs to no thread."))

    properties = dict(_PROPERTIES)
    if len(scopes) > 1:
        description = f"{', '.join(SCOPES[scope] for scope in scopes)}."
        properties["scope"] = {"type": "string", "enum": list(scopes), "description": description}
    parameters = {"type": "object", "properties": properties, "required": []}
    return Tool(RECALL_TOOL, _ABOUT, parameters, call, retry_safe=True, category="memory")


def _question(
    arguments: Mapping[str, Any],
    scope: Scope,
    scopes: Sequence[str],
    agent_id: str | None,
    top_k: int,
    before: EntryPlace | None,
) -> Question:
    where = text_argument(arguments, "scope") or "thread"
    if where not in scopes:
        raise InvalidInput(reason=f"The scope {where!r} cannot be searched; there is {', '.join(scopes)}.")
    if where == "agent" and agent_id is None:
        raise InvalidInput(reason="This conversation has no agent. Use the scope thread or user.")
    of_user = Scope(scope.user_id, agent_id=agent_id if where == "agent" else None)
    return Question(
        text=text_argument(arguments, "query"),
        topic=text_argument(arguments, "topic"),
        scope=scope if where == "thread" else of_user,
        k=_number(arguments, "k", top_k, 1, MOST),
        since=moment_of(text_argument(arguments, "since"), "since"),
        until=moment_of(text_argument(arguments, "until"), "until", ends=True),
        before=before,
        neighbours=_number(arguments, "neighbours", 1, 0, _NEIGHBOURS),
        other_branches=_truth(arguments, "other_branches"),
    )


def text_argument(arguments: Mapping[str, Any], name: str) -> str:
    """A text argument of a call, or an empty text. Raises InvalidInput."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(reason=f"{name} is {value!r}; give a text.")
    return value or ""


def _truth(arguments: Mapping[str, Any], name: str) -> bool:
    value = arguments.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidInput(reason=f"{name} is {value!r}; give true or false.")
    return bool(value)


def _number(arguments: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    value = arguments.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(reason=f"{name} is {value!r}; give a whole number from {least} to {most}.")
    if not least <= value <= most:
        raise InvalidInput(reason=f"{name} is {value}; give a whole number from {least} to {most}.")
    return value


async def _search(recaller: Recaller, asked: Question, thread_id: str) -> Recalled:
    """Searches. A conversation in its first turn may not be in the log yet: then there is nothing earlier."""
    try:
        return await recaller.find(asked)
    except ThreadNotFound:
        if asked.scope.thread_id != thread_id:
            raise
        return _NOTHING


_NOTHING = Recalled(())


async def _find_entry(recaller: Recaller, asked: Question, thread_id: str, entry_id: str) -> Hit:
    """The entry of this thread with such an id, else of another (`thread/entry`). Both ids may have slashes."""
    parts = entry_id.split("/")
    others = [("/".join(parts[:at]), "/".join(parts[at:])) for at in range(1, len(parts))]
    missing: LongthreadError | None = None
    for other, own_id in [(thread_id, entry_id), *others]:
        try:
            return await recaller.entry(asked, other, own_id)
        except EntryNotFound as error:
            missing = error
        except ThreadNotFound as error:
            # The error of a thread that exists takes precedence.
            missing = error if missing is None or (other, own_id) == others[0] else missing
    assert missing is not None
    raise missing


def _page(hit: Hit, thread_id: str, asked: str, arguments: Mapping[str, Any], room: PageRoom) -> dict[str, Any]:
    """An entry, or a page of a long one. The pages together are exactly its text."""
    content, wanted = content_of(hit.entry), set(find_telling_terms(asked))
    if arguments.get("offset"):
        hit = replace(hit, around=())
    data = _hit(hit, thread_id, wanted, "", asked or content)
    if not room.has_for(data):
        data.pop("around", None)
    begins = _number(arguments, "offset", room.start(content, wanted, data), 0, len(content) - 1)
    ends = room.page(content, begins, data)
    data["text"] = content[begins:ends]
    if (begins, ends) != (0, len(content)):
        further = f"offset {ends} gives what follows." if ends < len(content) else "this is its end."
        data["more"] = f"Characters {begins} to {ends} of {len(content)}; {further}"
    return data


def _page_of_hits(
    hits: Sequence[Hit], thread_id: str, wanted: set[str], asked: str, room: PageRoom
) -> list[dict[str, Any]]:
    """The hits, best first. A small window has the best one whole, and of the others what has room: a view would cut
    all alike, and show none to its end."""

    def show(hit: Hit, most: int) -> dict[str, Any]:
        return _hit(hit, thread_id, wanted, excerpt(content_of(hit.entry), wanted, most), asked)

    found = [show(hit, HIT_CHARS) for hit in hits]
    if room.fits(found):
        return found
    best, *others = [replace(hit, around=()) for hit in hits]
    found = [show(best, HIT_CHARS), *(show(hit, AROUND_CHARS) for hit in others)]
    while len(found) > 1 and not room.fits(found):
        found.pop()
    return found if room.fits(found) else [show(best, AROUND_CHARS)]


def _hit(hit: Hit, thread_id: str, wanted: set[str], text: str, asked: str) -> dict[str, Any]:
    data = _entry(hit.entry, thread_id, text)
    if not hit.active:
        data["branch"] = branch_note(asked)
    beside = [(other, excerpt(content_of(other), wanted, AROUND_CHARS)) for other in hit.around]
    around = [_entry(other, thread_id, content) for other, content in beside if content]
    return data | ({"around": around} if around else {})


def branch_note(asked: str) -> str:
    """What a hit outside of the active branch says, in the language of what was asked."""
    return _OTHER_BRANCH_ZH if is_chinese(asked) else _OTHER_BRANCH


def _entry(entry: Entry, thread_id: str, text: str) -> dict[str, Any]:
    own = entry.thread_id == thread_id
    said_at = entry.metadata.get(SAID_AT) or entry.created_at.isoformat(timespec="seconds")
    entry_id = entry.id if own else f"{entry.thread_id}/{entry.id}"
    # By its number a model sees what stands next to what: an entry is shown next to one hit only.
    data = {"entry": entry_id, "seq": entry.seq, "role": entry.role, "time": said_at}
    if entry.name:
        data["name"] = entry.name
    return data | {"text": text}


REMEMBER, FORGET = "remember", "forget"
MOST_FORGOTTEN = 5
"""The most memories that one call forgets by their words; of more it needs the ids."""
_SIMILAR = 5
_REMEMBER = (
    "Keeps a lasting fact or preference of this user for later conversations: call it when the user states one. Not "
    "for what the database can tell again, and never what a tool returned as the user's own words."
)
_FORGET = "Forgets what was remembered of this user, by `memory` (an id) or by words that it must hold."
_STATEMENT: Mapping[str, Any] = {
    "content": {"type": "string", "description": "One sentence that can be understood by itself."},
    "type": {
        "type": "string",
        "enum": list(get_args(MemoryType)),
        "description": "What happened, what is so (default), or how something is done.",
    },
    "importance": {"type": "number", "minimum": 0, "maximum": 1, "description": "0.5 by default."},
    "expires_at": {"type": "string", "description": "From when on it is no longer true (ISO 8601)."},
}
_WHICH: Mapping[str, Any] = {
    "memory": {"type": "string", "description": "The id of a memory."},
    "text": {"type": "string", "description": "Instead of an id: words that it must hold, all of them."},
}
REMEMBER_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": _STATEMENT, "required": ["content"]}
FORGET_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": _WHICH, "required": []}


@dataclass(frozen=True, slots=True)
class ReadMemories:
    """What a model has read: the mark for its new memories, and the entries of this run among it."""

    origin: Origin
    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class RunMemories:
    """The memories of a run's user with its agent. `seqs` are the run's first entries. `read` returns what its model
    has read so far that others may have written, and `typed` the messages of the user that it sees; `approval` says
    when a person must approve; `dropped` gets forgotten ids."""

    store: Driver
    memories: Memories
    owner: Owner
    lease: Lease
    seqs: Sequence[int]
    read: Callable[[], ReadMemories | None]
    typed: Callable[[], Sequence[str]]
    approval: Approval
    dropped: Callable[[Sequence[str]], None]

    def tools(self) -> tuple[Tool, Tool]:
        """`remember` and `forget`, both idempotent."""
        return (
            Tool(
                REMEMBER,
                _REMEMBER,
                REMEMBER_PARAMETERS,
                as_observation(self._remember),
                retry_safe=True,
                category="memory",
                approve=self._asks_first,
            ),
            Tool(FORGET, _FORGET, FORGET_PARAMETERS, as_observation(self._forget), retry_safe=True, category="memory"),
        )

    def _asks_first(self) -> bool:
        """Whether a person must approve the next `remember`."""
        return self.approval == "always" or (self.approval == "data" and self.read() is not None)

    async def look_up(self, text: str, k: int) -> list[dict[str, Any]]:
        """Memories about a text, as a model sees them. The run's use of them is stored."""
        found = await self.memories.search(self.owner, text, k=k)
        uses = [Used(hit.memory.id, "found", as_line(hit.memory)) for hit in found.hits]
        if uses:
            async with self.store.writing() as tx:
                await runs.check(tx, self.lease)
                await memories.note_uses(tx, self.lease.thread_id, self.lease.run_id, uses)
        return [_describe_memory(hit.memory) for hit in found.hits]

    async def _remember(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        content = text_argument(arguments, "content")
        # What the user has typed is the user's, whatever was read besides.
        read = None if is_typed(content, self.typed()) else self.read()
        seqs, origin = ((*self.seqs, *read.seqs), read.origin) if read else (self.seqs, None)
        statement = Statement(
            content=content,
            type=arguments.get("type") or None,
            importance=_importance(arguments),
            expires_at=moment_of(text_argument(arguments, "expires_at"), "expires_at"),
            source=MemorySource(self.lease.thread_id, seqs, origin),
        )
        async with self.store.writing() as tx:
            await runs.check(tx, self.lease)
            result = await remember(tx, self.owner, statement)
        data = {"noted_after_reading": result.memory.origin.summary} if result.memory.origin else {}
        return {"memory": result.memory.id, "new": result.is_new, **data}

    async def _forget(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        memory_id, text = text_argument(arguments, "memory"), text_argument(arguments, "text")
        if memory_id:
            return await self._forget_memories([memory_id], ())
        if not text.strip():
            raise InvalidInput(reason="There is nothing to forget. Give the id of a memory, or words that it holds.")
        chosen = await self.memories.that_say(self.owner, text)
        if chosen and len(chosen) <= MOST_FORGOTTEN:
            return await self._forget_memories([memory.id for memory in chosen], find_telling_terms(text))
        found = await self.memories.search(self.owner, text, k=_SIMILAR)
        hint = "Nothing was forgotten: give other words, or the ids of those that are meant."
        return {"forgotten": [], "hint": hint, "similar": [_describe_memory(hit.memory) for hit in found.hits]}

    async def _forget_memories(self, ids: Sequence[str], holding: Sequence[str]) -> Mapping[str, Any]:
        """Forget memories. The result does not repeat their text, which would stay in the log."""
        data: list[dict[str, Any]] = []
        about = {"gen_ai.memory.store.id": STORE, "gen_ai.memory.record.count": len(ids)}
        with span("delete_memory", "", about):
            async with self.store.writing() as tx:
                await runs.check(tx, self.lease)
                for memory_id in ids:
                    user_id, agent_id = self.owner.user_id, self.owner.agent_id
                    memory = await memories.find(tx, memory_id, user_id=user_id, agent_id=agent_id)
                    await memories.delete(tx, memory.id, user_id=user_id)
                    data.append({"memory": memory.id, "type": memory.type, "since": f"{memory.created_at:%Y-%m-%d}"})
        self.dropped([each["memory"] for each in data])
        return {"forgotten": data} | ({"holding": list(holding)} if holding else {})


def _describe_memory(memory: Memory) -> dict[str, Any]:
    since = memory.said_at.isoformat(timespec="seconds")
    data = {"noted_after_reading": memory.origin.summary} if memory.origin else {}
    return {"memory": memory.id, "type": memory.type, "time": since, "text": memory.content, **data}


def _importance(arguments: Mapping[str, Any]) -> float | None:
    value = arguments.get("importance")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise InvalidInput(reason=f"importance is {value!r}; give a number from 0 to 1.")
    return None if value is None else float(value)

"""Recall: finds what was said before, in a thread or in all of a user's. No model is asked on this path."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import islice

import numpy as np

from longthread.errors import EntryNotFound, InvalidInput, ThreadNotFound
from longthread.memory.background import Background
from longthread.memory.embedder import Asker, Embedder, EmbedderFailed, Vectors
from longthread.memory.index.entry_text import content_of
from longthread.memory.index.indexer import catch_up
from longthread.memory.index.postings import INDEX_FORM, places_between
from longthread.memory.index.shards import SearchArea, ShardIndex, bind_user, drop_volumes
from longthread.memory.index.signature_index import Ranges
from longthread.memory.index.vectors import Embedded, VectorProgress, embed_thread, is_behind, name_model, sign_thread
from longthread.memory.keywords import EntryPlace, ParsedQuery, by_keywords
from longthread.memory.nearest import Guess, Nearest, Sought, fuse
from longthread.memory.summary.topics import ranges_of
from longthread.memory.surroundings import Surroundings, Tips
from longthread.model.entry import Entry
from longthread.model.thread import Scope
from longthread.store import log, recall_index, vectors
from longthread.store.branches import branches_asked
from longthread.store.driver import Driver, Transaction
from longthread.store.maintenance.jobs import Job, JobClaims
from longthread.store.recall_index import Searched
from longthread.store.vectors import require_vectors
from longthread.telemetry import span

_CANDIDATES = 4
"""How many times as many places are looked at as entries are wanted, for some hold nothing that can be returned."""
_MOST_CANDIDATES = 10_000

CATCH_UP_SECONDS = 5.0
"""How long a question waits for what is not indexed yet."""
FUSED = 200
"""Entries of each ranking that are put together into one."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Question:
    """A search for entries.

    Args:
        text: in any words and language; empty: the topic itself.
        scope: where.
        k: how many entries at most, from 1 on.
        since, until: only entries written in this time, `until` excluded.
        before: of this entry's thread only earlier ones: the model sees it and what follows anyway.
        neighbours: how many unshown entries on either side of each hit come with it.
        topic: only stretches about it; if there is none, its name is searched like the text.
        other_branches: also what is not on its thread's active branch; `Hit.active` tells it apart.
        one_a_thread: of each thread only its best entry.

    Raises:
        InvalidInput: k or neighbours is too small, or the time is empty.
    """

    text: str
    scope: Scope
    k: int = 5
    since: datetime | None = None
    until: datetime | None = None
    before: EntryPlace | None = None
    neighbours: int = 1
    topic: str = ""
    other_branches: bool = False
    one_a_thread: bool = False

    def __post_init__(self) -> None:
        if self.k < 1 or self.neighbours < 0:
            raise InvalidInput(
                reason=f"k is {self.k}, neighbours {self.neighbours}; give whole numbers from 1 and 0 on."
            )
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidInput(
                reason=f"Nothing is from {self.since.isoformat()} on and before {self.until.isoformat()}. Give a later "
                "end, or an earlier beginning."
            )

    @property
    def words(self) -> str:
        return self.text if self.text.strip() else self.topic

    @cached_property
    def parsed(self) -> ParsedQuery:
        return ParsedQuery.of(self.words)


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found. `active`: it is on its thread's active branch."""

    entry: Entry
    score: float
    active: bool
    around: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Recalled:
    """The hits, best first, and warnings for people."""

    hits: Sequence[Hit]
    warnings: Sequence[str] = field(default_factory=tuple)


class Recaller:
    """Searches entries by keywords, and by meaning when there is an embedder. Safe to share between tasks.
    Close it when done."""

    def __init__(self, store: Driver, embedder: Embedder | None = None, jobs: JobClaims | None = None) -> None:
        self._store = store
        self._jobs = jobs or JobClaims(store)
        self._embedder = embedder
        self._nearest = Nearest(unsigned=self._sign)
        self._library = ShardIndex()
        self.asker = Asker(embedder)
        self._background = Background()
        self._looked_after: set[Scope] = set()
        self._has_vectors = embedder is None

    @property
    def embedder_name(self) -> str | None:
        return self._embedder.name if self._embedder else None

    async def find(self, question: Question) -> Recalled:
        """Return the best entries. Unindexed ones are indexed first.

        A missing or failing embedder is skipped with a warning.

        Raises:
            ThreadNotFound: the scope's thread is missing, or not the user's.
            StoreError: the database cannot be read, or has no vectors and cannot get them (see `require_vectors`).
        """
        if not self._has_vectors:
            await require_vectors(self._store)
            self._has_vectors = True
        about = {"gen_ai.retrieval.top_k": question.k, "gen_ai.conversation.id": question.scope.thread_id}
        with span("retrieval", "", {**about, "gen_ai.data_source.id": "longthread"}) as begun:
            recalled = await self._find(question)
            begun.note({"longthread.recall.hits": len(recalled.hits)})
            if begun.captures:
                begun.note({"gen_ai.retrieval.query.text": question.words})
        if question.scope.thread_id is None:
            self._bind(question.scope.user_id)
        return recalled

    async def _find(self, question: Question) -> Recalled:
        question, of_topic = await self._about(question)
        vector, problem = await self.asker.vector(question.words)
        found = await self._find_hits(question, of_topic, vector)
        if isinstance(found, SearchArea) and found.outdated:
            await drop_volumes(self._store, question.scope.user_id, found.outdated)
            found = await self._find_hits(question, of_topic, vector)
        if vector is not None and self._embedder is not None:
            self._embed_rest(question.scope, name_model(self._embedder.name, len(vector)))
        if isinstance(found, list):
            return Recalled(found, problem)
        behind = found.behind
        warnings = await catch_up(self._store, behind, CATCH_UP_SECONDS)
        if warnings:
            self._catch_up(question.scope, behind)
        again = await self._find_hits(question, of_topic, vector, whole=False)
        assert isinstance(again, list)
        return Recalled(again, [*warnings, *problem])

    async def _about(self, question: Question) -> tuple[Question, Ranges | None]:
        """Return the question and the entries about its topic; if there are none, the topic's name is searched."""
        if not question.topic.strip():
            return question, None
        async with self._store.reading() as tx:
            ranges = await ranges_of(tx, question.scope, question.topic)
        if ranges:
            return question, ranges
        return replace(question, text=f"{question.text} {question.topic}".strip(), topic=""), None

    async def _find_hits(
        self, question: Question, of_topic: Ranges | None, vector: Vectors | None, *, whole: bool = True
    ) -> list[Hit] | SearchArea:
        """Return the hits, or, if the index must be `whole`, an area that is not fully indexed."""
        before = question.before
        sought = self._sought(question, vector, of_topic)
        async with self._store.reading() as tx:
            await _ahead(tx, question, sought)
            # Computed while a server finds the rest, and valid if nothing has changed.
            guess = self._nearest.guess(sought) if sought and whole else None
            area = await self._library.area(tx, question.scope, before.thread_id if before else None)
            if whole and (area.behind or area.outdated):
                return area
            ranges = await inside(tx, question, of_topic)
            if sought is not None and ranges is not of_topic:
                sought, guess = replace(sought, ranges=ranges), None
            tips = {thread.thread_id: (thread.tip, thread.entry_count) for thread in area.threads}
            many = question.k * _CANDIDATES
            while True:
                ranked = await self._rank_places(tx, question, area, ranges, many, sought, guess)
                hits = await load(tx, question, ranked, tips)
                # Earlier versions of a message, and what is on other branches, may fill the candidates.
                if len(hits) >= question.k or len(ranked) < many or many >= _MOST_CANDIDATES:
                    return hits
                many, guess = many * 8, None
                sought = replace(sought, count=many) if sought is not None else None

    def _sought(self, question: Question, vector: Vectors | None, ranges: Ranges | None) -> Sought | None:
        if vector is None or self._embedder is None:
            return None
        model = name_model(self._embedder.name, len(vector))
        return Sought(question.scope, model, vector, max(question.k * _CANDIDATES, FUSED), ranges)

    async def entry(self, question: Question, thread_id: str, entry_id: str) -> Hit:
        """Return one entry of any branch, with its neighbours; ThreadNotFound outside of the question's scope, or
        EntryNotFound."""
        async with self._store.reading() as tx:
            threads = await recall_index.threads_in(tx, replace(question.scope, thread_id=thread_id), form=INDEX_FORM)
            if not threads or question.scope.thread_id not in (None, thread_id):
                raise ThreadNotFound(thread=thread_id)
            found = await log.find_entry(tx, thread_id, entry_id)
            alone = replace(question, k=1, other_branches=True)
            hits = await load(tx, alone, [(EntryPlace(thread_id, found.seq), 1.0)])
        if not hits:
            raise EntryNotFound(thread=thread_id, entry=entry_id)
        return hits[0]

    async def _rank_places(
        self,
        tx: Transaction,
        question: Question,
        area: SearchArea,
        ranges: Ranges | None,
        many: int,
        sought: Sought | None,
        guess: Guess | None,
    ) -> list[tuple[EntryPlace, float]]:
        scope, before = question.scope, question.before
        if sought is None:
            return await by_keywords(tx, question.parsed, area, many, ranges, before)
        threads = area.threads if scope.thread_id else await recall_index.threads_in(tx, scope, form=INDEX_FORM)
        nearest = await self._nearest.begin(tx, sought, threads, guess)
        words = await by_keywords(tx, question.parsed, area, sought.count, ranges, before)
        places = ((EntryPlace(thread_id, seq), value) for thread_id, seq, value in await nearest())
        return fuse(
            words,
            [
                (place, value)
                for place, value in places
                if before is None or place.thread_id != before.thread_id or place.seq < before.seq
            ],
        )

    async def prepare(self, scope: Scope, progress: VectorProgress | None = None) -> list[str]:
        """Index and embed what is in scope; return warnings. Raises StoreError.

        A failed embedder is not called again at once: a later pass adds the missing vectors.
        """
        async with self._store.reading() as tx:
            threads = await recall_index.threads_in(tx, scope, form=INDEX_FORM, last=True)
        warnings = await catch_up(self._store, threads)
        return [*warnings, *await self._embed([thread.thread_id for thread in threads], progress)]

    async def _embed(self, thread_ids: Sequence[str], progress: VectorProgress | None = None) -> list[str]:
        if self._embedder is None:
            return []
        if not self.asker.may_make():
            for thread_id in thread_ids:
                await self._jobs.later(Job("vectors", thread_id), self.asker.seconds_left)
            return self.asker.rests()
        refused = 0
        for thread_id in thread_ids:
            try:
                refused += await self._embed_thread(self._embedder, thread_id, progress)
            except EmbedderFailed as error:
                return [self.asker.did_not_make(f"Thread {thread_id}", error)]
        self.asker.making.note_success()
        return Embedded(refused=refused).warning(self._embedder)

    async def _embed_thread(self, embedder: Embedder, thread_id: str, progress: VectorProgress | None = None) -> int:
        """Embed a thread unless another process does; return how many entries were refused. Raises EmbedderFailed."""
        refused = 0
        while await is_behind(self._store, embedder, thread_id):
            async with self._jobs.claim(Job("vectors", thread_id)) as ours:
                if not ours:
                    break
                done = await embed_thread(self._store, embedder, thread_id, progress)
            refused += done.refused
            if not done.entries:
                break  # else look again: who wrote entries meanwhile found the job claimed
        return refused

    async def make_up(self, thread_id: str) -> None:
        """Embed a thread that another process left. Raises StoreError, or EmbedderFailed."""
        if self._embedder is not None:
            try:
                await self._embed_thread(self._embedder, thread_id)
            except EmbedderFailed as error:
                self.asker.did_not_make(f"Thread {thread_id}", error)
                raise
            self.asker.making.note_success()

    def _embed_rest(self, scope: Scope, model: str) -> None:
        """Embed threads older than the embedder, once for each scope: others are embedded after their turns."""
        if scope.thread_id is not None or scope in self._looked_after:
            return
        self._looked_after.add(scope)

        async def embed() -> None:
            async with self._store.reading() as tx:
                left = await vectors.behind(tx, scope, model)
            for number, thread_id in enumerate(left, start=1):
                if await self._embed([thread_id]) and not self.asker.may_make():
                    self._looked_after.discard(scope)
                    return
                _logger.info("%d of %d threads without vectors of %s have them now", number, len(left), model)

        self._background.start(f"embed {scope}", embed, failing="Threads could not be embedded")

    def keep_up(self, scope: Scope) -> None:
        """Index and embed a thread in the background."""

        async def prepare() -> None:
            await self.prepare(scope)
            await bind_user(self._store, scope.user_id)

        self._background.start(f"index {scope}", prepare, failing=f"Thread {scope.thread_id} could not be indexed")

    def _bind(self, user_id: str) -> None:
        async def bind() -> None:
            await bind_user(self._store, user_id)

        self._background.start(f"bind {user_id}", bind, failing="The index of threads could not be put together")

    def _catch_up(self, scope: Scope, threads: Sequence[Searched]) -> None:
        async def index() -> None:
            await catch_up(self._store, threads)

        self._background.start(f"catch up {scope}", index, failing="The index could not be brought up to date")

    def _sign(self, threads: Sequence[str], model: str) -> None:
        """Write missing signatures, of vectors by another version or an import."""

        async def sign() -> None:
            for thread_id in threads:
                await sign_thread(self._store, thread_id, model)

        self._background.start("signatures", sign, failing="Signatures could not be made")

    async def settle(self) -> None:
        await self._background.settle()

    async def close(self) -> None:
        """Close the background work, see `Background.close`; it is due again later."""
        await self._background.close()


async def inside(tx: Transaction, question: Question, of_topic: Ranges | None) -> Ranges | None:
    """Return the entries within a question's topic and time; None: all."""
    if question.since is None and question.until is None:
        return of_topic
    since, until = (None if at is None else int(at.timestamp() * 1_000_000) for at in (question.since, question.until))
    found: dict[str, list[tuple[int, int]]] = {}
    for thread_id, first, times in await recall_index.times(tx, question.scope):
        seqs = first + places_between(times, since, until)
        if of_topic is not None:
            seqs = seqs[[any(a <= seq <= b for a, b in of_topic.get(thread_id, ())) for seq in seqs.tolist()]]
        if len(seqs):
            ends = np.flatnonzero(np.diff(seqs) > 1)
            starts = [seqs[0], *seqs[ends + 1]]
            stops = [*seqs[ends], seqs[-1]]
            ranges = [(int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
            found.setdefault(thread_id, []).extend(ranges)
    return found


async def _ahead(tx: Transaction, question: Question, sought: Sought | None) -> None:
    """Prefetch what a question to one thread will read, in one message."""
    scope = question.scope
    if scope.thread_id is not None:
        asked = [recall_index.threads_asked(scope), *branches_asked(scope.thread_id)]
        asked += [vectors.stamps_asked(scope, sought.model)] if sought else []
        asked.append(recall_index.postings_asked(scope, list(question.parsed.buckets)))
        await tx.ahead(*asked)


async def load(
    tx: Transaction,
    question: Question,
    ranked: Sequence[tuple[EntryPlace, float]],
    tips: Tips | None = None,
) -> list[Hit]:
    """Return the best places' non-empty entries with their neighbours. `tips` are known tips and last entries."""
    known = Surroundings(tx, question.scope.user_id, tips or {}, neighbours=question.neighbours, before=question.before)
    hits: dict[EntryPlace, Hit] = {}
    for start in range(0, len(ranked), max(1, question.k)):
        some = ranked[start : start + question.k]
        if question.one_a_thread:
            threads = {place.thread_id for place in hits}
            some = [each for each in some if each[0].thread_id not in threads]
        await known.read_branches({place.thread_id for place, _ in some})
        # Most of these are hits, so read at once what is shown around them then.
        beside = known.around_each(place for place, _ in some)
        await known.read_entries([place, *around] for place, around in beside.items())
        for place, value in some:
            entry = known.find_shown(place)
            if entry is not None and content_of(entry).strip():
                active = entry.is_imported_memory or known.branches[place.thread_id].is_active(entry.seq)
                is_first = not question.one_a_thread or all(place.thread_id != other.thread_id for other in hits)
                if is_first and (active or question.other_branches):
                    hits.setdefault(EntryPlace(place.thread_id, entry.seq), Hit(entry, value, active))
        if len(hits) >= question.k:
            break
    return await _with_neighbours(known, dict(islice(hits.items(), question.k)))


async def _with_neighbours(known: Surroundings, hits: Mapping[EntryPlace, Hit]) -> list[Hit]:
    """Add neighbours to hits, best first. No entry is shown twice."""
    around = known.around_each(hits)
    await known.read_entries(around.values())
    there = set(hits)
    found = []
    for place, hit in hits.items():
        beside: dict[EntryPlace, Entry] = {}
        for each in around[place]:
            entry = known.beside(each)
            at = each if entry is None else EntryPlace(each.thread_id, entry.seq)
            if entry is not None and at not in there:  # of several versions one is shown
                beside[at] = entry
        there |= beside.keys()
        around_it = [_in_its_place(each) for each in beside.values()]
        found.append(replace(hit, entry=_in_its_place(hit.entry), around=around_it))
    return found


def _in_its_place(entry: Entry) -> Entry:
    return replace(entry, seq=entry.replaces) if entry.replaces else entry

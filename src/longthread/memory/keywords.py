"""Read a question, and find the entries that share its terms, in one thread or in all of a user's.

An entry that answers is often found by its speaker rather than by words: "what did you recommend?", 我提到过的公园.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.dates import asks_when
from longthread.memory.index.postings import (
    HAS_TIME,
    MARKS,
    USER_SAID,
    Postings,
    by_bucket,
    hash_of,
    look_up,
    spread_out,
)
from longthread.memory.index.ranking import REACH, BlockLayout, Corpus, RankingBlock, Scores, best, lay_out, score
from longthread.memory.index.shards import Counting, SearchArea, SearchedShard
from longthread.memory.index.signature_index import Ranges
from longthread.memory.index.terms import COMMON_TERMS, named_in, terms, weigh_terms
from longthread.store import recall_index
from longthread.store.driver import Transaction
from longthread.store.recall_index import Searched

_VERBS = (
    r"(?:said|say|told|tell|recommend\w*|suggest\w*|mention\w*|gave|give|advi[cs]e\w*|propos\w*|explain\w*|provid\w*|"
    r"listed|listing|(?<=you )list|(?<=your )list|describ\w*|shared?|taught|answer\w*|wrote|writ\w*|refer\w*)"
)
# "Can you tell me …" asks for an answer, not for what was said, and says nothing of the user.
_POLITE = re.compile(
    r"\b(?:can|could|would|will|do) you(?: (?:still|please|kindly))?(?: (?:remember|recall|know))?\b|\bplease\b|"
    r"\byou (?:still |may |might |must |should |surely )?(?:remember|recall|know)\b|"
    r"\bI(?:['’]d| would)? (?:need|want|like) (?:you )?to (?:know|(?=tell|remind|show|give|help))|"
    r"[你您妳](?:还|還)?(?:记不记得|記不記得|知不知道|记得|記得|知道|是否记得|是否知道)|"
    r"(?:[请請][你您妳]?|[你您妳]?(?:能不能|可不可以|能否|可否|可以|能))(?:再)?(?=告诉我|告訴我|提醒我)",
    re.IGNORECASE,
)
_TO_ME = re.compile(
    r"(?<!you )(?<!who )(?<!they )(?<!he )(?<!she )\b(?:tell|remind|show|give|help|send|let) me\b|"
    r"(?:\A|(?<=[。？！，,\s]))(?:告诉我|告訴我|提醒我)(?![的过過])",
    re.IGNORECASE,
)
_ZH_SAY = "(?:推荐|推薦|告诉|告訴|建议|建議|说|說|分享|教|给|給|提到|回答|介绍|介紹|讲|講)"
_ZH_TO = "[给給和跟向对對与與为為帮幫]"
_ZH_BEFORE = r"(?:\A|(?<=[。？！，,\s次回前天才刚剛经經曾还還都先]))"
"""Where a sentence without a subject begins: 上次给我推荐."""
_TO_YOU = re.compile(
    rf"\b({_VERBS}(?: (?:to|with|for))?|to|with|for|from|about|of|need|want|ask(?:ed)?|show(?:ed|n)?|sent|thank) you\b|"
    rf"((?:告诉|告訴|推荐|推薦|介绍|介紹|教|送|发|發|问|問)[过過了]?[给給]?)[你您妳]",
    re.IGNORECASE,
)
_I_SAID = re.compile(rf"{_ZH_BEFORE}{_ZH_TO}[你您妳]{_ZH_SAY}")
_YOU_SAID = re.compile(
    rf"\b(?:you|your)\b(?:(?! (?:I|we|he|she|they)\b)[^.?!]){{0,40}}\b{_VERBS}\b|"
    rf"(?<!{_ZH_TO})[你您妳](?:[^我。？！，,]|(?<=[给給跟和向对對为為帮幫替在])我){{0,12}}{_ZH_SAY}|"
    rf"{_ZH_BEFORE}{_ZH_TO}我{_ZH_SAY}",
    re.IGNORECASE,
)
_I = re.compile(
    r"\b(?:(?<!War )(?<!part )(?<!Part )I(?!/)|[Mm]e|[Mm]y|MY|[Mm]ine|[Mm]yself|[Ww]e|[Oo]ur|[Uu]s)\b|"
    r"(?<!自)我(?!国|國)|咱"
)
_SMALL_I = re.compile(r"(?<![\w./-])(?<!war )(?<!part )(?<!type )(?<!phase )(?<!class )(?<!volume )i(?![\w/-]|\.\w)")


def by_user(question: str) -> bool | None:
    """Return whether a question asks for the user's words, or for others'; None: it does not say."""
    plain = _TO_ME.sub(" ", _POLITE.sub(" ", question.lower() if question.isupper() else question))
    plain = _TO_YOU.sub(r"\1\2 ", plain)
    if _I_SAID.search(question):
        return True
    if _YOU_SAID.search(plain):
        return False
    return True if _names_user(plain) else None


def _names_user(text: str) -> bool:
    """Whether a text has "I" or 我. A small i counts where nothing else is written with a capital."""
    return _I.search(text) is not None or (text.islower() and _SMALL_I.search(text) is not None)


MOST_TERMS = 256
"""Terms of a question that count, the first ones."""
_MOST_PARTS = 4
_SENTENCE = re.compile(r"[^。？！?!；;\n]+[。？！?!；;\n]*")
_MOREOVER = re.compile(
    r"(?:^|(?<=[,，。？！?!；;\n]))[ \t\u3000]*"
    r"(?:另外|此外|还有|還有|以及|(?:and )?also\b|additionally\b|besides\b|"
    r"and (?=(?:who|what|when|where|which|how|why)\b))[,，]?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ParsedQuery:
    """A parsed question.

    Args:
        parts: the weights of each part's terms, by hash.
        by_user: whether it asks for the user's words, or for others'; None: it does not say.
        when: whether it asks for a time.
        names: the hashes of what it writes as a speaker's name.
    """

    parts: Sequence[Mapping[int, float]]
    by_user: bool | None
    when: bool
    names: Sequence[int] = ()

    @classmethod
    def of(cls, text: str) -> ParsedQuery:
        names = [hash_of(term) for term in named_in(text)]
        return cls([_weights(part) for part in _parts(text)], by_user(text), asks_when(text), names)

    @cached_property
    def marks(self) -> list[int]:
        """The hashes of the marks that the ranking needs."""
        return [mark for mark, asked in ((USER_SAID, self.by_user is not None), (HAS_TIME, self.when)) if asked]

    @cached_property
    def hashes(self) -> list[int]:
        return list(dict.fromkeys([*(value for part in self.parts for value in part), *self.names, *self.marks]))

    @cached_property
    def buckets(self) -> Mapping[int, Sequence[int]]:
        """The hashes by the buckets that may have them."""
        return by_bucket(self.hashes)


def _weights(text: str) -> dict[int, float]:
    """Weigh a question's terms by hash. If some say what it is about, common question words weigh nothing."""
    wanted = sorted(weigh_terms(text).items(), key=lambda each: -each[1])  # characters after everything else
    return {hash_of(term): weight for term, weight in wanted[:MOST_TERMS]}


def _parts(text: str) -> list[str]:
    """Split a question into two to four parts; else return it whole.

    Each asking sentence is a part; other text before or after a "besides" is another. An English full stop ends no
    part: the text before it says what the question is about, and scores better with it.
    """
    found: list[str] = []
    for piece in _MOREOVER.split(text):
        telling: list[str] = []
        for sentence in _SENTENCE.findall(piece):
            (found if sentence.rstrip().endswith(("?", "？")) else telling).append(sentence)
        found.append(" ".join(telling))
    found = [part for part in found if any(term not in COMMON_TERMS for term in terms(part))]
    return found if 1 < len(found) <= _MOST_PARTS else [text]


OF_SPEAKER = 1.3
"""What an entry counts that was said by whom the question asks for."""
WITH_TIME = 1.2
"""What an entry counts that has a time, where the question asks for one."""
_TIED = 1000
"""Of places that equal the last one, so many are looked at: where they stand depends on what is put together."""


class EntryPlace(NamedTuple):
    thread_id: str
    seq: int


async def by_keywords(
    tx: Transaction,
    asked: ParsedQuery,
    area: SearchArea,
    count: int,
    ranges: Ranges | None = None,
    before: EntryPlace | None = None,
) -> list[tuple[EntryPlace, float]]:
    """Rank entries by BM25, best first, ties by thread and number.

    Args:
        ranges: only these entries.
        before: of this entry's thread only earlier ones. The area has that thread by its own index.
    """
    blocks = [*await _of_threads(tx, area, asked, before), *await _of_volumes(tx, area, asked)]
    if not blocks:
        return []
    layout = lay_out(blocks)
    bound = {each.volume.id: each for each in area.volumes}
    counting = _counting(layout, _ranges_of(area.threads, ranges, before), bound, ranges)
    scores = _scores(layout, asked, Corpus(area.entries, area.words), counting)
    places = best(scores, count, tied=_TIED)
    found = zip(_entries_at(layout, bound, places), scores[places].tolist(), strict=True)
    return sorted(found, key=lambda each: (-each[1], each[0]))[:count]


def _scores(layout: BlockLayout, asked: ParsedQuery, corpus: Corpus, counting: Counting) -> Scores:
    """Score each place. Each part of a question is ranked by itself, whatever its length."""
    of_parts = [score(layout, part, corpus) for part in asked.parts]
    for scores in of_parts:
        scores[~counting] = 0  # before the best of a part is looked for: it must be one that may be found
    of_parts = [scores for scores in of_parts if scores.any()] or of_parts[:1]
    scores = of_parts[0]
    if len(of_parts) > 1:
        scores = np.zeros_like(scores)
        for part in of_parts:
            scores += part / np.sqrt(part.max())
    _prefer(scores, layout, asked, counting)
    return scores


def _prefer(scores: Scores, layout: BlockLayout, asked: ParsedQuery, counting: Counting) -> None:
    """Raise scores of the speaker that the question names or asks for, and of entries with a time if it asks when."""
    named = np.zeros(layout.size, dtype=bool)
    for start, block in zip(layout.starts, layout.blocks, strict=True):
        for postings in block.found.values():
            named[start + postings.of_speaker.astype(np.int64)] = True
    named &= counting
    if named.any():
        _lift(scores, named, OF_SPEAKER)
    elif asked.by_user is not None:
        _lift(scores, layout.mask_marked(USER_SAID) == asked.by_user, OF_SPEAKER)
    if asked.when:
        _lift(scores, layout.mask_marked(HAS_TIME), WITH_TIME)


def _lift(scores: Scores, places: NDArray[np.bool_], factor: float) -> None:
    # `scores[places] *=` would take five times as long for half of 100,000 places.
    scores *= np.array([1.0, factor], dtype=np.float32).take(places.view(np.uint8))


async def _of_threads(
    tx: Transaction, area: SearchArea, asked: ParsedQuery, before: EntryPlace | None
) -> list[RankingBlock]:
    buckets, scope = list(asked.buckets), area.scope
    if scope.thread_id is not None:
        rows = await recall_index.postings(tx, scope, buckets)
    else:
        rows = await recall_index.postings_of(tx, scope.user_id, [thread.thread_id for thread in area.threads], buckets)
    return _blocks(rows, asked, before)


async def _of_volumes(tx: Transaction, area: SearchArea, asked: ParsedQuery) -> list[RankingBlock]:
    """Return the volumes as pseudo-threads, in which each place is an entry."""
    if not area.volumes:
        return []
    rows = await recall_index.volume_postings(tx, area.scope.user_id, list(asked.buckets))
    blocks = _blocks([(volume, 0, bucket, data) for volume, bucket, data in rows], asked, None)
    bound = {each.volume.id: each for each in area.volumes}
    found = []
    for block in blocks:
        its = bound[block.thread]
        if its.left_out:
            there = {value: postings.where(its.counts) for value, postings in block.found.items()}
            block = replace(block, found={value: some for value, some in there.items() if len(some)})
        if block.found or block.marked:
            found.append(block)
    return found


def _blocks(
    rows: Sequence[tuple[str, int, int, bytes]], asked: ParsedQuery, before: EntryPlace | None
) -> list[RankingBlock]:
    found: dict[tuple[str, int], dict[int, Postings]] = {}
    for thread_id, segment, bucket, data in rows:
        there = look_up(data, asked.buckets[bucket])
        if there:
            found.setdefault((thread_id, segment), {}).update(there)
    ordered = sorted(found.items(), key=lambda item: item[0])
    blocks = [_block(*place, there, before) for place, there in ordered]
    return [block for block in blocks if block.found or block.marked]


def _block(thread_id: str, segment: int, there: dict[int, Postings], before: EntryPlace | None) -> RankingBlock:
    marked = {mark: spread_out(there.pop(mark).columns) for mark in MARKS if mark in there}
    if before is not None and before.thread_id == thread_id:
        # Before the ranking: a question must not raise the entries around it.
        there = {value: postings.until(before.seq - segment) for value, postings in there.items()}
        there = {value: postings for value, postings in there.items() if len(postings)}
    return RankingBlock(thread_id, segment, there, marked)


def _ranges_of(threads: Iterable[Searched], ranges: Ranges | None, before: EntryPlace | None) -> Ranges:
    found: dict[str, list[tuple[int, int]]] = {}
    for thread in threads:
        last = thread.entry_count
        if before is not None and before.thread_id == thread.thread_id:
            last = min(last, before.seq - 1)
        asked = ((1, last),) if ranges is None else ranges.get(thread.thread_id, ())
        found[thread.thread_id] = [(max(a, thread.first_seq), min(b, last)) for a, b in asked]
    return found


def _counting(
    layout: BlockLayout, of_threads: Ranges, bound: dict[str, SearchedShard], ranges: Ranges | None
) -> Counting:
    """Return a mask of the places whose entries may be found."""
    counts = np.zeros(layout.size, dtype=bool)
    for start, end, block in zip(layout.starts, layout.ends, layout.blocks, strict=True):
        if block.thread in bound:
            its = bound[block.thread]
            own = its.counts if ranges is None else its.within(ranges)
            part = counts[start : end + REACH + 1]
            part[: len(own)] = own[: len(part)]
            continue
        shift = start - block.first
        for first, last in of_threads.get(block.thread, ()):
            counts[max(first + shift, start - REACH, 0) : max(0, min(last + shift, end + REACH) + 1)] = True
    return counts


def _entries_at(layout: BlockLayout, bound: dict[str, SearchedShard], places: Sequence[int]) -> Iterator[EntryPlace]:
    for thread_id, seq in layout.entries_at(places):
        yield EntryPlace(*bound[thread_id].roll.entry_at(seq)) if thread_id in bound else EntryPlace(thread_id, seq)

"""The ranking: against BM25 written out, and what fades around an entry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.memory.index import ranking
from longthread.memory.index.postings import IndexDocument, Postings, build, by_bucket, hash_of, look_up
from longthread.memory.index.ranking import FADE, NEIGHBOUR, REACH, Corpus, RankingBlock, best, lay_out, score, spread


def ranked(
    documents: list[dict[str, int]], asked: list[str], *, cut: int | None = None, weight: float = 1.0
) -> dict[int, float]:
    """The scores of entries 1, 2, …; with `cut`, in two segments."""
    rows = [IndexDocument(seq, terms, sum(terms.values()), seq) for seq, terms in enumerate(documents, 1)]
    cut = len(rows) if cut is None else cut
    segments = [build(part[0].seq, part[-1].seq, part) for part in (rows[:cut], rows[cut:]) if part]
    hashes = [hash_of(term) for term in asked]
    blocks = []
    for segment in segments:
        found = {}
        for bucket in by_bucket(hashes):
            if bucket in segment.buckets:
                found |= look_up(segment.buckets[bucket], hashes)
        if found:
            blocks.append(RankingBlock("t", segment.first, found))
    if not blocks:
        return {}
    layout = lay_out(blocks)
    corpus = Corpus(len(rows), sum(row.words for row in rows))
    scores = score(layout, dict.fromkeys(hashes, weight), corpus)
    places = best(scores, len(scores))
    entries = {seq: float(scores[place]) for place, (_, seq) in zip(places, layout.entries_at(places), strict=True)}
    return {seq: value for seq, value in entries.items() if 1 <= seq <= len(rows)}


WORDS = st.sampled_from(["a", "b", "c", "d", "e"])
DOCUMENTS = st.lists(st.dictionaries(WORDS, st.integers(1, 3), min_size=1), min_size=1, max_size=60)


def bm25(documents: list[dict[str, int]], asked: list[str], *, k1: float = 0.9, b: float = 0.4) -> dict[int, float]:
    """The scores of entries 1, 2, … that say a term, as Robertson and Zaragoza write it, with a rarity above 0."""
    lengths = [sum(document.values()) for document in documents]
    average = sum(lengths) / len(lengths)
    scores: dict[int, float] = {}
    for term in asked:
        having = sum(term in document for document in documents)
        rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for seq, (document, length) in enumerate(zip(documents, lengths, strict=True), 1):
            if count := document.get(term, 0):
                norm = count + k1 * (1 - b + b * length / average)
                scores[seq] = scores.get(seq, 0.0) + rarity * count * (k1 + 1) / norm
    return scores


@given(
    st.lists(st.dictionaries(WORDS, st.integers(1, 3), min_size=1), min_size=1, max_size=8),
    st.lists(WORDS, min_size=1, max_size=3, unique=True),
    st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
def test_where_nothing_else_is_near_it_is_bm25(
    told: list[dict[str, int]], asked: list[str], lengths: list[int]
) -> None:
    documents: list[dict[str, int]] = []
    for document in told:  # so far apart that none fades into another
        documents += [document, *({"x": lengths[at % len(lengths)]} for at in range(2 * REACH))]
    found, expected = ranked(documents, asked), bm25(documents, asked)
    assert {seq: found[seq] for seq in expected} == pytest.approx(expected, rel=1e-4)


def test_of_terms_that_are_everywhere_it_is_bm25() -> None:
    numbers = np.random.default_rng(1)
    documents = [{"x": int(numbers.integers(1, 30))} for _ in range(80)]
    for document in documents:
        document |= {word: int(numbers.integers(1, 4)) for word in "ab" if numbers.random() < 0.4}
    for asked in (["a"], ["a", "b"]):
        expected = bm25(documents, asked)
        assert ranked(documents, asked) == pytest.approx(expected, rel=1e-4)


def test_the_rarer_word_and_the_shorter_message_come_first() -> None:
    gap: list[dict[str, int]] = [{"x": 3}] * (2 * REACH)
    rare_last = ranked([{"a": 1}, *gap, {"a": 1}, *gap, {"b": 1}], ["a", "b"])
    assert max(rare_last, key=lambda seq: rare_last[seq]) == 4 * REACH + 3
    short_last = ranked([{"a": 1, "x": 40}, *gap, {"a": 1, "x": 2}], ["a"])
    assert max(short_last, key=lambda seq: short_last[seq]) == 2 * REACH + 2


@pytest.mark.parametrize(("having", "fades"), [(10, True), (11, False)])
def test_what_more_than_a_quarter_says_counts_only_where_it_stands(having: int, fades: bool) -> None:
    found = ranked([{"a": 1}] * having + [{"x": 1}] * (40 - having), ["a"])
    assert set(found) == set(range(1, having + 1 + (REACH if fades else 0)))


def test_what_fades_before_a_segment_is_of_its_own_thread() -> None:
    def only(at: int) -> Postings:
        return Postings(np.array([[at], [1], [5]], dtype="<u2"))

    layout = lay_out([RankingBlock("a", 1, {1: only(3)}), RankingBlock("b", 100, {1: only(0)})])
    scores = score(layout, {1: 1.0}, Corpus(1000, 5000))
    there = list(layout.entries_at(np.flatnonzero(scores).tolist()))
    around_a = [("a", seq) for seq in range(4 - REACH, 4 + REACH + 1)]
    assert there == around_a + [("b", seq) for seq in range(100 - REACH, 100 + REACH + 1)]


def test_the_entry_itself_comes_before_those_around_it() -> None:
    found = ranked([{"x": 1}] * 30 + [{"trip": 1}] + [{"x": 1}] * 30, ["trip"])
    assert list(found)[:3] in ([31, 30, 32], [31, 32, 30])
    assert abs(found[30] / found[31] - NEIGHBOUR) < 1e-5
    assert abs(found[29] / found[31] - NEIGHBOUR * FADE) < 1e-5
    assert set(found) == set(range(31 - REACH, 31 + REACH + 1))


def test_a_word_that_is_said_again_nearby_does_not_count_twice() -> None:
    once = ranked([{"x": 1}] * 20 + [{"trip": 1}] + [{"x": 1}] * 20, ["trip"])
    again = spread(np.array([0, 0, 1, 1, 1, 0, 0], dtype=np.float32))
    assert max(again) == 1
    assert max(once.values()) == once[21]


@given(DOCUMENTS, st.lists(WORDS, min_size=1, max_size=3, unique=True), st.integers(0, 60))
def test_where_segments_end_does_not_matter(documents: list[dict[str, int]], asked: list[str], cut: int) -> None:
    whole, parts = ranked(documents, asked), ranked(documents, asked, cut=min(cut, len(documents)))
    shared = whole.keys() & parts.keys()
    assert all(abs(whole[seq] - parts[seq]) < 1e-4 for seq in shared)
    assert {seq for seq in whole if set(asked) & documents[seq - 1].keys()} <= parts.keys()


@given(st.lists(st.floats(0, 9, width=32), max_size=40), st.integers(0, 50))
def test_the_best_are_the_first_of_all_in_order(values: list[float], count: int) -> None:
    scores = np.array(values, dtype=np.float32)
    expected = [at for at in sorted(range(len(values)), key=lambda at: (-scores[at], at)) if scores[at] > 1e-30]
    assert [at for at in best(scores, count) if scores[at] > 1e-30] == expected[:count]


@given(st.dictionaries(st.integers(1, 5000), st.dictionaries(WORDS, st.integers(1, 9), min_size=1), max_size=100))
def test_a_segment_gives_back_what_was_put_into_it(entries: dict[int, dict[str, int]]) -> None:
    rows = [IndexDocument(seq, terms, 7, 0) for seq, terms in sorted(entries.items())]
    segment = build(1, 5000, rows)
    for word in "abcde":
        value = hash_of(word)
        found = {}
        for bucket in by_bucket([value]):
            found |= look_up(segment.buckets[bucket], [value]) if bucket in segment.buckets else {}
        there = [(seq, terms[word]) for seq, terms in sorted(entries.items()) if word in terms]
        held = found[value].columns[:2].T.tolist() if value in found else []
        assert [(place + 1, count) for place, count in held] == there


@given(st.lists(st.sets(st.integers(REACH, 3000), min_size=1, max_size=80), max_size=4), st.integers(0, 3))
def test_looking_only_around_the_places_is_as_looking_everywhere(terms: list[set[int]], seed: int) -> None:
    numbers = np.random.default_rng(seed)
    given = []
    for places in terms:
        at = np.array(sorted(places))
        given.append((at, numbers.random(len(at), dtype=np.float32) + np.float32(0.1)))
    found = list(ranking._around(given))
    assert len(found) == len(given)
    for (at, values), (around, counted) in zip(given, found, strict=True):
        own, scores = np.zeros((2, 3000 + REACH + 1), dtype=np.float32)
        own[at] = values
        scores[around] += counted
        assert len(set(around.tolist())) == len(around)
        assert np.array_equal(scores, spread(own))


@given(st.dictionaries(st.integers(20, 119), st.floats(0.125, 9, width=32), max_size=40))
def test_a_term_counts_most_where_it_is_strongest_or_next_to_it(there: dict[int, float]) -> None:
    own = np.zeros(140, dtype=np.float32)
    own[list(there)] = list(there.values())
    for place, counted in enumerate(spread(own).tolist()):
        near = [
            value * NEIGHBOUR * FADE ** (abs(place - at) - 1)
            for at, value in there.items()
            if 1 <= abs(place - at) <= REACH
        ]
        assert counted == pytest.approx(max([0.0, there.get(place, 0.0), *near]), rel=1e-5)


def test_of_light_terms_the_rarest_count_where_they_stand() -> None:
    rows = [{"x": 1, "y": 1, "z": 1}] * 40 + [{"a": 1, "b": 1, "c": 1}] + [{"b": 1, "c": 1}] * 2 + [{"c": 1}] * 4
    light = ranked(rows, ["a", "b", "c"], weight=0.3)
    assert set(light) == {41, 42, 43}  # nothing for `c`, and nothing around
    assert light[41] > light[42] == light[43]

"""Inverted index of a stretch of a thread: which entries hold a term, how often, and their lengths.

A *segment* covers consecutive entries. Its terms are hashed into *buckets*; a bucket is one value in the store. Small
segments have one bucket, large ones many, and each size has bucket numbers of its own: so a term's buckets are known
without reading a segment.

What many entries have, such as the user as their speaker, is a *mark*: a bitmap, for one posting for each entry is slow
to read. It is stored like a term, in the bucket of its own hash. A row is 32 places: the first, and two masks of 16
bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from longthread.memory.index.terms import TERMS_FORM

USER_SAID = 1
"""The hash of the mark of entries that the user said."""
HAS_TIME = 2
"""The hash of the mark of entries that say when something is."""
MARKS = (USER_SAID, HAS_TIME)
_WIDTH = 32
_ROW_BITS = np.arange(_WIDTH)

Places = NDArray[np.int64]
BitmapRows = NDArray[np.uint16]


def mark_rows(places: Places) -> BitmapRows:
    rows: list[tuple[int, int, int]] = []
    at = 0
    while at < len(places):
        first = int(places[at])
        stop = int(places.searchsorted(first + _WIDTH))
        bits = int((1 << (places[at:stop] - first)).sum())
        rows.append((first, bits & 0xFFFF, bits >> 16))
        at = stop
    return np.array(rows, dtype=np.uint16).reshape(-1, 3).T


def spread_out(rows: BitmapRows) -> NDArray[np.bool_]:
    """Return a mask of the places from 0 to the last."""
    firsts = rows[0].astype(np.intp)
    there = np.zeros(int(firsts[-1]) + _WIDTH if len(firsts) else 0, dtype=bool)
    words = np.ascontiguousarray(rows[1:].T, dtype="<u2")
    there[(firsts[:, None] + _ROW_BITS).ravel()] = np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)
    return there


def merged_marks(hashes: NDArray[np.uint64], rows: BitmapRows) -> tuple[NDArray[np.uint64], BitmapRows]:
    """Merge each mark's rows into as few as possible: rows of small segments have few places each."""
    for mark in MARKS:
        own = hashes == mark
        if own.any():
            whole = mark_rows(spread_out(rows[:, own]).nonzero()[0])
            hashes = np.concatenate([hashes[~own], np.full(whole.shape[1], mark, dtype=hashes.dtype)])
            rows = np.concatenate([rows[:, ~own], whole], axis=1)
    return hashes, rows


INDEX_FORM = 300 + TERMS_FORM
"""What an index is made of: the hundreds say what of entries it has, the rest which terms they give. What was indexed
with another number is indexed again."""
FULL = 4096
"""Entries of the largest segment that is made of entries; larger ones are made of segments."""
TIER = 8
"""So many segments of a size are put together into one."""
LARGEST = TIER * FULL
"""Entries of a segment that grows no more. Twice as many still have places of 16 bits."""
_SIZES = ((64, 0), (1024, 5), (2 * FULL, 10), (LARGEST, 13))
"""Pairs: up to so many entries, so many bits of the hash distinguish a segment's buckets."""
_BITS = tuple(bits for _, bits in _SIZES)
_MOST = 65535
"""What a length is cut to."""
_SPEAKER = 0x8000
"""The bit of a count that says that the term is of the name of who said the entry."""
_MOST_COUNT = _SPEAKER - 1
_MANY = 512
"""Terms of a bucket, for each that is looked for, above which they are looked up by their order."""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """An entry for the index.

    Args:
        words: the length of its text.
        at: its time in microseconds.
        speaker: its terms that name the speaker.
        marks: its marks, of `MARKS`.
    """

    seq: int
    terms: Mapping[str, int]
    words: int
    at: int
    speaker: Collection[str] = ()
    marks: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class IndexSegment:
    """The index of entries `first` to `last`. `times` has each entry's place and time."""

    first: int
    last: int
    entries: int
    words: int
    times: bytes
    buckets: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class SegmentPart:
    first: int
    last: int
    entries: int
    words: int
    times: bytes
    buckets: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Postings:
    """A term's postings in a segment. The rows of `columns` are places (relative to the first entry),
    counts (with a bit for a speaker's name), and entry lengths."""

    columns: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def places(self) -> NDArray[np.uint16]:
        found: NDArray[np.uint16] = self.columns[0]
        return found

    @property
    def counts(self) -> NDArray[np.uint16]:
        found: NDArray[np.uint16] = self.columns[1] & np.uint16(_MOST_COUNT)
        return found

    @property
    def of_speaker(self) -> NDArray[np.uint16]:
        """The places of entries whose speaker has that name."""
        found: NDArray[np.uint16] = self.places[self.columns[1] >= _SPEAKER]
        return found

    def until(self, place: int) -> Postings:
        return Postings(self.columns[:, : int(self.places.searchsorted(place))])

    def where(self, counts: NDArray[np.bool_]) -> Postings:
        return Postings(self.columns[:, counts[self.places]])


def hash_of(term: str) -> int:
    """Hash a term to 64 bits: the index stores no text."""
    return _hash(term)


@lru_cache(maxsize=65536)
def _hash(term: str) -> int:
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def by_bucket(hashes: Iterable[int]) -> dict[int, list[int]]:
    """Map the possible buckets of terms, for all segment sizes and in order, to the terms in them."""
    found: dict[int, list[int]] = {}
    for value in hashes:
        for bits in _BITS:
            found.setdefault(_bucket(value, bits), []).append(value)
    return dict(sorted(found.items()))


def _bucket(value: int, bits: int) -> int:
    return (1 << bits) + (value >> (64 - bits))


def build(first: int, last: int, documents: Sequence[IndexDocument]) -> IndexSegment:
    """Build the segment of entries `first` to `last` from its searchable `documents`."""
    bits = _bits_for(len(documents))
    found: dict[int, list[tuple[int, int, int]]] = {}
    for document in documents:
        words = min(document.words, _MOST)
        hashed: Counter[int] = Counter()
        for term, count in document.terms.items():
            hashed[hash_of(term)] += count
        names = set(map(hash_of, document.speaker))
        for value, count in hashed.items():
            count = min(count, _MOST_COUNT) | (_SPEAKER if value in names else 0)
            found.setdefault(value, []).append((document.seq - first, count, words))
    for mark in MARKS:
        places = np.array([document.seq - first for document in documents if mark in document.marks], dtype=np.int64)
        if len(places):
            found[mark] = [(int(place), int(low), int(high)) for place, low, high in mark_rows(places).T]
    buckets: dict[int, list[int]] = {}
    for value in sorted(found):
        buckets.setdefault(_bucket(value, bits), []).append(value)
    return IndexSegment(
        first=first,
        last=last,
        entries=len(documents),
        words=sum(document.words for document in documents),
        times=_packed_times(first, documents),
        buckets={number: _pack(values, found) for number, values in sorted(buckets.items())},
    )


def join(buckets: Iterable[tuple[bytes, int]], entries: int) -> dict[int, bytes]:
    """Join the buckets of consecutive segments, given as data and offset of places.
    `entries` is the number of searchable entries in all."""
    hashes, columns = [], []
    for data, shift in buckets:
        count = int.from_bytes(data[:4], "little")
        lengths = np.diff(np.frombuffer(data, "<u4", count, 4 + 8 * count), prepend=np.uint32(0))
        hashes.append(np.repeat(np.frombuffer(data, "<u8", count, 4), lengths))
        rows = np.frombuffer(data, "<u2", -1, 4 + 12 * count).reshape(3, -1)
        columns.append(np.stack([rows[0] + np.uint16(shift), *rows[1:]]))
    if not hashes:
        return {}
    all_hashes, rows = merged_marks(np.concatenate(hashes), np.concatenate(columns, axis=1))
    order = all_hashes.argsort(kind="stable")
    rows = rows[:, order]
    values, firsts = np.unique(all_hashes[order], return_index=True)
    ends = np.append(firsts[1:], len(order))
    bits = _bits_for(entries)
    numbers = (values >> np.uint64(64 - bits)).astype(np.int64) if bits else np.zeros(len(values), np.int64)
    made: dict[int, bytes] = {}
    for number in np.unique(numbers).tolist():
        start, stop = numbers.searchsorted([number, number + 1]).tolist()
        first, last = int(firsts[start]), int(ends[stop - 1])
        made[(1 << bits) + number] = _pack_postings(values[start:stop], ends[start:stop] - first, rows[:, first:last])
    return made


def join_segments(parts: Sequence[SegmentPart]) -> IndexSegment:
    """Join consecutive segments to what `build` would make of their entries."""
    first = parts[0].first
    entries = sum(part.entries for part in parts)
    return IndexSegment(
        first=first,
        last=parts[-1].last,
        entries=entries,
        words=sum(part.words for part in parts),
        times=b"".join(_shift_times(part.times, part.first - first) for part in parts),
        buckets=join(((data, part.first - first) for part in parts for data in part.buckets), entries),
    )


def least_bucket_above(entries: int) -> int:
    """Return a bucket number above those of all segments with at most so many entries."""
    return 2 << _bits_for(entries)


def _bits_for(entries: int) -> int:
    return next((bits for most, bits in _SIZES if entries < most), _SIZES[-1][1])


def _pack(values: Sequence[int], found: Mapping[int, Sequence[tuple[int, int, int]]]) -> bytes:
    ends = np.cumsum([len(found[value]) for value in values])
    rows = np.array([posting for value in values for posting in found[value]], dtype="<u2")
    return _pack_postings(np.array(values, dtype="<u8"), ends, rows.T)


def _pack_postings(values: NDArray[np.uint64], ends: NDArray[np.int64], rows: NDArray[np.uint16]) -> bytes:
    """Serialize the number of terms, sorted hashes, ends of postings, and postings."""
    head = np.array([len(values)], dtype="<u4")
    parts = head, values.astype("<u8"), ends.astype("<u4"), np.ascontiguousarray(rows, dtype="<u2")
    return b"".join(part.tobytes() for part in parts)


def look_up(data: bytes, hashes: Sequence[int]) -> dict[int, Postings]:
    """Return the postings of those terms that the bucket has."""
    count = int.from_bytes(data[:4], "little")
    head, base = 4 + 8 * count, 4 + 12 * count
    columns = np.frombuffer(data, "<u2", -1, base).reshape(3, -1)
    found: dict[int, Postings] = {}
    for value, place in _places(data, hashes, count):
        end_at = head + 4 * place
        start = int.from_bytes(data[end_at - 4 : end_at], "little") if place else 0
        end = int.from_bytes(data[end_at : end_at + 4], "little")
        found[value] = Postings(columns[:, start:end])
    return found


def _places(data: bytes, hashes: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
    """Yield which terms a bucket of `count` terms has, and their indexes in it."""
    if count * len(hashes) > _MANY:
        wanted = np.array(hashes, dtype=np.uint64)
        known = np.frombuffer(data, "<u8", count, 4)
        at = known.searchsorted(wanted)
        there = (known.take(at, mode="clip") == wanted).nonzero()[0].tolist()
        yield from ((hashes[each], int(at[each])) for each in there)
        return
    # Most buckets have few terms: scanning bytes is faster than building arrays.
    for value in hashes:
        key, found = value.to_bytes(8, "little"), 4
        while (found := data.find(key, found, 4 + 8 * count)) > 0:
            if found % 8 == 4:
                yield value, found // 8
                break
            found += 1


_TIME = np.dtype([("place", "<u2"), ("at", "<i8")])


def _packed_times(first: int, documents: Sequence[IndexDocument]) -> bytes:
    return np.array([(document.seq - first, document.at) for document in documents], dtype=_TIME).tobytes()


def places_between(times: bytes, since: int | None, until: int | None) -> NDArray[np.int64]:
    """Return the places of entries written from `since` to before `until`, in microseconds."""
    rows = np.frombuffer(times, _TIME)
    inside = np.ones(len(rows), dtype=bool)
    if since is not None:
        inside &= rows["at"] >= since
    if until is not None:
        inside &= rows["at"] < until
    places: NDArray[np.int64] = rows["place"][inside].astype(np.int64)
    return places


def _shift_times(times: bytes, shift: int) -> bytes:
    rows = np.frombuffer(times, _TIME).copy()
    rows["place"] += np.uint16(shift)
    return rows.tobytes()

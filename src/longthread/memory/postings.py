"""The index of a stretch of a thread: which entries hold a term, how often, and how long they are.

A *segment* covers entries that follow one another. Its terms are spread over *buckets* by their hashes; a bucket is one
value in the store. Small segments have one bucket, large ones many, and the buckets of different sizes have different
numbers: whoever asks for a term knows, without having seen a segment, in which bucket it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

FULL = 4096
"""Entries of a segment that grows no more."""
TIER = 8
"""So many segments of a size are put together into one."""
_SIZES = ((64, 0), (1024, 5), (FULL, 10))
"""Up to how many entries a segment's buckets are told apart by how many bits of the hash."""
_MOST = 65535
"""What a length is cut to."""


@dataclass(frozen=True, slots=True)
class Document:
    """An entry as the index takes it: `words` is the length of its text, `at` the microsecond when it was written."""

    seq: int
    terms: Mapping[str, int]
    words: int
    at: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The index of entries `first` to `last`. `times` has each entry's place and time."""

    first: int
    last: int
    entries: int
    words: int
    times: bytes
    buckets: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a term stands in a segment: the places of the entries behind its first, how often, and their lengths."""

    places: NDArray[np.int64]
    counts: NDArray[np.float32]
    words: NDArray[np.float32]

    def until(self, place: int) -> Postings:
        """Those before a place."""
        end = int(self.places.searchsorted(place))
        return Postings(self.places[:end], self.counts[:end], self.words[:end])


def hash_of(term: str) -> int:
    """What stands for a term, in 64 bits: texts are not kept in the index."""
    return _hash(term)


@lru_cache(maxsize=65536)
def _hash(term: str) -> int:
    return int.from_bytes(blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def buckets_of(hashes: Iterable[int]) -> list[int]:
    """The buckets in which terms are, in segments of any size."""
    return sorted({_bucket(value, bits) for value in hashes for _, bits in _SIZES})


def in_bucket(hashes: Iterable[int], bucket: int) -> list[int]:
    """Those of the terms that are in this bucket, if anywhere in its segment."""
    bits = bucket.bit_length() - 1
    return [value for value in hashes if _bucket(value, bits) == bucket]


def _bucket(value: int, bits: int) -> int:
    return (1 << bits) + (value >> (64 - bits))


def build(first: int, last: int, documents: Sequence[Document]) -> Segment:
    """The segment of entries `first` to `last`, of which `documents` are those that can be found."""
    bits = next((bits for most, bits in _SIZES if len(documents) < most), _SIZES[-1][1])
    found: dict[int, list[tuple[int, int, int]]] = {}
    for document in documents:
        words = min(document.words, _MOST)
        hashed: Counter[int] = Counter()
        for term, count in document.terms.items():
            hashed[hash_of(term)] += count
        for value, count in hashed.items():
            found.setdefault(value, []).append((document.seq - first, min(count, _MOST), words))
    buckets: dict[int, list[int]] = {}
    for value in sorted(found):
        buckets.setdefault(_bucket(value, bits), []).append(value)
    return Segment(
        first=first,
        last=last,
        entries=len(documents),
        words=sum(document.words for document in documents),
        times=_packed_times(first, documents),
        buckets={number: _pack(values, found) for number, values in sorted(buckets.items())},
    )


def _pack(values: Sequence[int], found: Mapping[int, Sequence[tuple[int, int, int]]]) -> bytes:
    """The number of terms, their hashes in order, where the postings of each end, and the postings."""
    ends = np.cumsum([len(found[value]) for value in values], dtype="<u4")
    rows = np.array([posting for value in values for posting in found[value]], dtype="<u2")
    head = np.array([len(values)], dtype="<u4")
    return b"".join((head.tobytes(), np.array(values, dtype="<u8").tobytes(), ends.tobytes(), rows.T.tobytes()))


def look_up(data: bytes, hashes: Sequence[int] | NDArray[np.uint64]) -> dict[int, Postings]:
    """Those of the terms that a bucket has."""
    wanted = np.asarray(hashes, dtype=np.uint64)
    count = int.from_bytes(data[:4], "little")
    known = np.frombuffer(data, "<u8", count, 4)
    places = known.searchsorted(wanted)
    there = (known.take(places, mode="clip") == wanted).nonzero()[0].tolist() if count else []
    if not there:
        return {}
    columns = np.frombuffer(data, "<u2", -1, 4 + 12 * count).reshape(3, -1)
    found: dict[int, Postings] = {}
    for at in there:
        end_at = 4 + 8 * count + 4 * int(places[at])
        start = int.from_bytes(data[end_at - 4 : end_at], "little") if places[at] else 0
        rows = columns[:, start : int.from_bytes(data[end_at : end_at + 4], "little")]
        measures = rows[1:].astype(np.float32)
        found[int(wanted[at])] = Postings(rows[0].astype(np.int64), measures[0], measures[1])
    return found


_TIME = np.dtype([("place", "<u2"), ("at", "<i8")])


def _packed_times(first: int, documents: Sequence[Document]) -> bytes:
    return np.array([(document.seq - first, document.at) for document in documents], dtype=_TIME).tobytes()


def places_between(times: bytes, since: int | None, until: int | None) -> NDArray[np.int64]:
    """The places of a segment's entries that were written in a stretch of time, in microseconds; its end is outside."""
    rows = np.frombuffer(times, _TIME)
    inside = np.ones(len(rows), dtype=bool)
    if since is not None:
        inside &= rows["at"] >= since
    if until is not None:
        inside &= rows["at"] < until
    places: NDArray[np.int64] = rows["place"][inside].astype(np.int64)
    return places

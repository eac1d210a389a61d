"""What is true of many entries, a bit each: a posting of every entry would be long to read.

A mark is kept as a term is, in the bucket of a hash of its own. A row has 32 places: the first, and the bits of 16, and
of the next 16.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

USER_SAID = 1
"""The hash of the mark of entries that the user said."""
HAS_TIME = 2
"""The hash of the mark of entries that say when something is."""
MARKS = (USER_SAID, HAS_TIME)
_WIDTH = 32
_BITS = np.arange(_WIDTH)

Places = NDArray[np.int64]
BitmapRows = NDArray[np.uint16]


def mark_rows(places: Places) -> BitmapRows:
    """The rows of a mark that stands at places, which are in order."""
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
    """Of each place from 0 to the last, whether rows have it."""
    firsts = rows[0].astype(np.intp)
    there = np.zeros(int(firsts[-1]) + _WIDTH if len(firsts) else 0, dtype=bool)
    words = np.ascontiguousarray(rows[1:].T, dtype="<u2")
    there[(firsts[:, None] + _BITS).ravel()] = np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)
    return there


def merged_marks(hashes: NDArray[np.uint64], rows: BitmapRows) -> tuple[NDArray[np.uint64], BitmapRows]:
    """Postings by their terms' hashes, with as few rows of each mark as there can be: those of small segments have few
    places each."""
    for mark in MARKS:
        own = hashes == mark
        if own.any():
            whole = mark_rows(spread_out(rows[:, own]).nonzero()[0])
            hashes = np.concatenate([hashes[~own], np.full(whole.shape[1], mark, dtype=hashes.dtype)])
            rows = np.concatenate([rows[:, ~own], whole], axis=1)
    return hashes, rows

"""Bitmaps of properties that many entries have: one posting for each entry would be slow to read.

A mark is stored like a term, in the bucket of its own hash. A row is 32 places: the first, and two masks of 16 bits.
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

"""Signatures of vectors: two bits per number, and the terms that estimate inner products from them.

Vectors are centered on their neighbours' mean: similar vectors, or those whose numbers share one sign, would
otherwise have equal bits. The rest is rotated, so that each number carries as much information. Stored are the
sign of each number, and whether it is large.

With the center c, the rotated rest y and the levels s of its bits (-1 and 1 for the signs; -1.5, -0.5, 0.5 and
1.5 for both bits), y is about x·s for the scale x = y·y / y·s. The product with a vector q is about
q·c + x·(q·s) + (c·y - x·(c·s)). The `terms` are x and the bracket, for the signs and for both bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
Bits = NDArray[np.uint64]

_ROUNDS = 3
_AT_ONCE = 64
"""Vectors per batch: intermediate results stay in the processor's cache."""
_LARGE = np.float32(0.9957)
"""Threshold of the second bit, in standard deviations: it loses least for the normal distribution that rotation
yields."""


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signatures in entry order, one row each: `signs` and `large` pack 64 bits per number, `terms` has two numbers for
    the signs and two for both bits. They share one rotated `center`."""

    seqs: NDArray[np.int64]
    signs: Bits
    large: Bits
    terms: FloatArray
    center: FloatArray

    @classmethod
    def of(cls, seqs: Sequence[int], vectors: FloatArray) -> Signatures:
        """Sign vectors, given in entry order. The center is the mean of the first 1, 2, 4 … vectors, so that later ones
        rarely change it."""
        first = 1 << (len(seqs).bit_length() - 1)
        center = rotate_vectors(vectors[:first].mean(axis=0, dtype=np.float64).astype(np.float32))
        return _relative(np.array(seqs, dtype=np.int64), rotate_vectors(vectors), center)

    def with_new(self, seqs: Sequence[int], vectors: FloatArray) -> Signatures | None:
        """Add vectors, which replace those of the same entries; None if the center would change."""
        left = ~np.isin(self.seqs, seqs)
        if (int(left.sum()) + len(seqs)).bit_length() != len(self.seqs).bit_length():
            return None
        new = _relative(np.array(seqs, dtype=np.int64), rotate_vectors(vectors), self.center)
        all_seqs = np.concatenate([self.seqs[left], new.seqs])
        order = np.argsort(all_seqs)
        signs, large, terms = (
            np.concatenate([mine[left], more])[order]
            for mine, more in ((self.signs, new.signs), (self.large, new.large), (self.terms, new.terms))
        )
        return Signatures(all_seqs[order], signs, large, terms, self.center)

    def pack(self, first: int) -> bytes:
        """Return the bytes: counts of entries and numbers, center, terms, bits, entries relative to `first`."""
        counts = np.array([len(self.seqs), len(self.center)], dtype="<u4")
        bits = self.signs.astype("<u8"), self.large.astype("<u8")
        parts = counts, self.center.astype("<f4"), self.terms.astype("<f4"), *bits, (self.seqs - first).astype("<u2")
        return b"".join(part.tobytes() for part in parts)

    @classmethod
    def unpack(cls, data: bytes, first: int) -> Signatures:
        """Decode what `pack` returned."""
        count, dims = np.frombuffer(data, "<u4", 2).tolist()
        center = np.frombuffer(data, "<f4", dims, 8)
        at = 8 + 4 * dims
        terms = np.frombuffer(data, "<f4", 4 * count, at).reshape(count, 4)
        at += 16 * count
        words = np.frombuffer(data, "<u8", 2 * count * (dims // 64), at).reshape(2, count, dims // 64)
        places = np.frombuffer(data, "<u2", count, len(data) - 2 * count)
        return cls(places.astype(np.int64) + first, words[0], words[1], terms, center)


def _relative(seqs: NDArray[np.int64], given: FloatArray, center: FloatArray) -> Signatures:
    """Sign rotated vectors relative to a rotated center."""
    apart = given - center
    squares = (apart * apart).sum(axis=1)
    positive = apart > 0
    sizes = np.abs(apart)
    large = sizes > _LARGE * np.sqrt(squares / apart.shape[1])[:, None]
    # Both bits are a number from 0 to 3; the second one of a negative number says that it is not large.
    signs = np.where(positive, np.float32(1), np.float32(-1))
    levels = signs * np.where(large, np.float32(1.5), np.float32(0.5))
    along = (apart * center).sum(axis=1)
    terms = []
    for own in (signs, levels):
        scales = squares / np.maximum((apart * own).sum(axis=1), np.float32(1e-30))
        terms += [scales, along - scales * (own * center).sum(axis=1)]
    return Signatures(seqs, pack_signs(apart), pack_signs(large == positive), np.stack(terms, axis=1), center)


def pack_signs(numbers: NDArray[np.generic]) -> Bits:
    """Pack the signs of the last axis, 64 per number: set bits are above 0; zeros pad the end."""
    packed = np.packbits(numbers > 0, axis=-1)  # type: ignore[operator]
    room = -packed.shape[-1] % 8
    if room:
        packed = np.pad(packed, [(0, 0)] * (packed.ndim - 1) + [(0, room)])
    return np.ascontiguousarray(packed).view(np.uint64)


def rotate_vectors(vectors: FloatArray) -> FloatArray:
    """Rotate the last axis by a fixed rotation, which preserves products. Dimensions are padded to a multiple of 64."""
    dims = vectors.shape[-1]
    room = -dims % 64
    given = vectors.reshape(-1, dims).astype(np.float32)
    if room:
        given = np.pad(given, [(0, 0), (0, room)])
    out = np.empty_like(given)
    for start in range(0, len(given), _AT_ONCE):
        part = given[start : start + _AT_ONCE]
        for order, signs in _rounds(dims + room):
            part = _spread(np.take(part, order, axis=1) * signs)
        out[start : start + _AT_ONCE] = part
    return out.reshape(*vectors.shape[:-1], dims + room)


def _spread(part: FloatArray) -> FloatArray:
    """Multiply each 64 numbers by a Hadamard matrix, by sums and differences: rows do not affect each other."""
    given, made = part, np.empty_like(part)
    half = 32
    while half:
        mine, its = (each.reshape(-1, 2, half) for each in (given, made))
        np.add(mine[:, 0], mine[:, 1], out=its[:, 0])
        np.subtract(mine[:, 0], mine[:, 1], out=its[:, 1])
        given, made = made, given
        half //= 2
    given *= np.float32(0.125)
    return given


@lru_cache(maxsize=16)
def _rounds(dims: int) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Return each round's permutation and signs: pseudorandom, and equal on every machine."""
    found = []
    for number in range(_ROUNDS):
        drawn = np.frombuffer(hashlib.shake_256(f"{dims}/{number}".encode()).digest(4 * dims), "<u4")
        signs = np.where(drawn & 1, np.float32(1), np.float32(-1))
        found.append((np.argsort(drawn, kind="stable"), signs))
    return found

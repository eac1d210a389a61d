"""Signatures in memory: however a shelf came to be, what it tells is the same, and few slabs are made anew."""

from __future__ import annotations

import random

import numpy as np
import pytest

from longthread.memory.index import signature_index
from longthread.memory.index.signature_index import (
    QuantizedNumbers,
    QuestionSignature,
    SignatureIndex,
    by_both,
    put_together,
)
from longthread.store.signatures import Signatures, pack_signs
from longthread.store.vectors import BlockHead

DIMS = 128


def drawn(count: int, seed: int) -> np.ndarray:
    given = np.random.default_rng(seed).standard_normal((count, DIMS)).astype("f4")
    return given / np.linalg.norm(given, axis=1, keepdims=True)


def block(count: int, seed: int) -> Signatures:
    return Signatures.of(range(1, count + 1), drawn(count, seed))


def told(made: SignatureIndex, asked: QuestionSignature | None = None) -> dict[tuple[str, int], tuple[float, float]]:
    """What a shelf says of each entry."""
    asked = asked or QuestionSignature.of(drawn(1, 99)[0], made)
    found = {}
    for slab in made.slabs:
        rows = slab.rows_in(None)
        near = zip(slab.by_signs(asked, rows).tolist(), by_both([slab], asked, [rows]).tolist(), strict=True)
        found |= dict(zip(slab.places(rows), near, strict=True))
    return found


def test_a_shelf_that_grew_says_the_same_as_one_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signature_index, "SLAB", 100)
    chance = random.Random(3)
    threads = {f"t{n:02}": (chance.randint(1, 30), n) for n in range(20)}
    stamps = dict.fromkeys(threads, 0)
    grown, there = None, set[BlockHead]()
    for step in range(60):
        if step:
            name = chance.choice([*threads, f"t{chance.randint(0, 40):02}"])
            if step % 7 == 3:
                del threads[min(threads) if step % 2 else max(threads)]
            else:
                threads[name] = (chance.randint(1, 60), step)
                stamps[name] = step
        heads = [BlockHead(name, 0, f"2:{stamps[name]}") for name in sorted(threads)]
        blocks = {head: block(*threads[head.thread_id]) for head in heads}
        grown = put_together(heads, {head: blocks[head] for head in heads if head not in there}, grown)
        there = set(heads)
        made = put_together(heads, blocks, None)
        assert list(told(grown)) == list(told(made))
        assert np.allclose(list(told(grown).values()), list(told(made).values()), atol=1e-6)
        entries = sum(count for count, _ in threads.values())
        assert len(grown.slabs) <= 4 * entries / 100 + 2
        assert max(len(slab.seqs) for slab in grown.slabs) <= 100


def test_a_thread_that_grows_has_only_its_last_slab_made_anew() -> None:
    heads = [BlockHead("t", n, "2:") for n in range(40)]
    blocks = {head: block(1000, head.block) for head in heads}
    before = put_together(heads, blocks, None)
    assert [len(slab.seqs) for slab in before.slabs] == [16000, 16000, 8000]
    for after_heads in ([*heads[:39], BlockHead("t", 39, "2:more")], [*heads, BlockHead("t", 40, "2:")]):
        new = after_heads[-1]
        after = put_together(after_heads, {new: block(1000, 7)}, before)
        assert [slab.heads[-1] for slab in after.slabs][-1] == new
        assert all(mine is its for mine, its in zip(after.slabs[:2], before.slabs[:2], strict=True))
        assert len(after.slabs) == 3


def test_the_rows_of_some_entries_say_the_same_as_among_all() -> None:
    made = put_together([BlockHead("t", 0, "2:")], {BlockHead("t", 0, "2:"): block(300, 1)}, None)
    asked, [slab] = QuestionSignature.of(drawn(1, 99)[0], made), made.slabs
    rows = slab.rows_in({"t": [(5, 9), (200, 400)], "u": [(1, 300)]})
    assert slab.places(rows) == [("t", seq) for seq in (*range(5, 10), *range(200, 301))]
    some = slab.by_signs(asked, rows)
    assert np.allclose(some, slab.by_signs(asked, slab.rows_in(None))[rows], atol=1e-6)
    finely = by_both([slab, slab], asked, [rows, slab.rows_in({})])
    assert np.allclose(finely, by_both([slab], asked, [slab.rows_in(None)])[rows], atol=1e-6)
    assert len(slab.rows_in({})) == 0


def test_what_is_told_by_few_bits_is_about_the_product() -> None:
    signs = np.where(drawn(200, 1) > 0, np.float32(1), np.float32(-1))
    asked = drawn(1, 2)[0]
    for bits, error in ((2, 0.4), (3, 0.25), (6, 0.05)):
        told_so = QuantizedNumbers.of(asked, bits).products(np.ascontiguousarray(pack_signs(signs).T))
        assert np.abs(told_so - signs @ asked).std() < error


def test_nothing() -> None:
    empty = put_together([], {}, None)
    assert (empty.slabs, empty.size) == ([], 0)
    head = BlockHead("t", 0, "2:")
    full = put_together([head], {head: block(3, 1)}, empty)
    assert len(told(full)) == 3
    assert put_together([], {}, full).slabs == []

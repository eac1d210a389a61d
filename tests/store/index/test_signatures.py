"""Signatures: the same however they come together, and telling whatever an embedder's numbers are like."""

from __future__ import annotations

import numpy as np
import pytest

from longthread.store.signatures import Signatures, pack_signs, rotate_vectors


def drawn(count: int, dims: int, seed: int = 1) -> np.ndarray:
    given = np.random.default_rng(seed).standard_normal((count, dims)).astype("f4")
    return given / np.linalg.norm(given, axis=1, keepdims=True)


def estimated(made: Signatures, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The product of each vector with another one, as the signs tell it and as both bits do."""
    own = rotate_vectors(asked)

    def bits(words: np.ndarray) -> np.ndarray:
        return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1)[:, : len(own)].astype("f4")

    signs, both = 2 * bits(made.signs) - 1, 2 * bits(made.signs) + bits(made.large) - 1.5
    base = made.center @ own
    return (
        base + made.terms[:, 1] + made.terms[:, 0] * (signs @ own),
        base + made.terms[:, 3] + made.terms[:, 2] * (both @ own),
    )


@pytest.mark.parametrize("dims", [1, 64, 100, 384, 1536])
def test_turning_keeps_lengths_and_products_and_spreads_a_number_over_all(dims: int) -> None:
    given = drawn(5, dims)
    made = rotate_vectors(given)
    assert made.shape == (5, dims + -dims % 64)
    assert np.allclose(made @ made.T, given @ given.T, atol=1e-5)
    assert np.array_equal(rotate_vectors(given[3]), made[3]), "alone as among others"
    one = np.zeros(dims, dtype="f4")
    one[0] = 1
    if dims > 1:
        assert np.abs(rotate_vectors(one)).max() < 0.5


def test_turning_is_the_same_for_ever() -> None:
    made = rotate_vectors(np.arange(3, dtype="f4"))
    assert made.shape == (64,)
    assert [round(float(number), 6) for number in made[:6]] == [
        0.335938,
        0.117188,
        0.085938,
        0.054688,
        0.476562,
        0.007812,
    ]


def test_signs_are_the_same_on_every_machine() -> None:
    vector = np.array([1.0, -1.0, 0.0, 2.0, *[-1.0] * 62, 3.0], dtype=np.float32)
    assert pack_signs(vector).view(np.uint8).tolist() == [0b10010000, *[0] * 7, 0b00100000, *[0] * 7]


@pytest.mark.parametrize("kind", ["any", "one sign", "biased", "few numbers"])
def test_what_they_tell_is_near_what_is(kind: str) -> None:
    given = drawn(500, 384)
    if kind == "one sign":
        given = np.abs(given)
    if kind == "biased":
        given = given + 5 * drawn(1, 384, seed=7)
    if kind == "few numbers":
        given[:, 8:] = 0
    given = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype("f4")
    asked = given[17] + 0.5 * drawn(1, 384, seed=5)[0] * np.linalg.norm(given[17] - given.mean(axis=0))
    asked = (asked / np.linalg.norm(asked)).astype("f4")
    exact, rest = given @ asked, np.linalg.norm(given - given[:256].mean(axis=0), axis=1).mean()
    by_signs, by_both = estimated(Signatures.of(range(500), given), asked)
    assert np.abs(by_signs - exact).std() < 0.05 * rest
    assert np.abs(by_both - exact).std() < 0.03 * rest
    assert by_both.argmax() == exact.argmax()


@pytest.mark.parametrize("parts", [[1] * 40, [7, 9, 24], [40], [16, 24]])
def test_one_by_one_as_at_once(parts: list[int]) -> None:
    given, made = drawn(40, 100), None
    at = 0
    for count in parts:
        seqs, new = range(at, at + count), given[at : at + count]
        at += count
        made = (made.with_new(seqs, new) if made else None) or Signatures.of(range(at), given[:at])
    assert made is not None
    assert made.pack(0) == Signatures.of(range(40), given).pack(0)


def test_new_ones_win_and_stand_in_the_order_of_their_entries() -> None:
    given = drawn(9, 64)
    made = Signatures.of([10, 20, 30, 40], given[:4])
    more = made.with_new([20, 25, 5], given[4:7])
    assert more is not None
    assert more.seqs.tolist() == [5, 10, 20, 25, 30, 40]
    again = more.with_new([20], given[1:2])
    assert again is not None
    assert np.array_equal(again.signs[[1, 2, 4, 5]], made.signs)
    assert np.array_equal(again.terms[[1, 2, 4, 5]], made.terms)
    assert made.with_new([50, 60, 70, 80], given[4:8]) is None, "of twice as many, the center is another one"


def test_packed_and_back() -> None:
    made = Signatures.of([1027, 1030, 2047], drawn(3, 100))
    back = Signatures.unpack(made.pack(1024), 1024)
    for name in ("seqs", "signs", "large", "terms", "center"):
        assert np.array_equal(getattr(made, name), getattr(back, name))


def test_vectors_without_length_and_all_the_same() -> None:
    same = np.repeat(drawn(1, 64), 5, axis=0)
    for given in (np.zeros((5, 64), dtype="f4"), same):
        _, both = estimated(Signatures.of(range(5), given), same[0])
        assert np.allclose(both, given @ same[0], atol=1e-5)

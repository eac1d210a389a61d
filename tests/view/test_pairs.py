"""What pairs of characters tell of a text, as patterns find it; and long texts cost what their pieces do."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytest import approx
from tests.view.samples import samples

from longthread.view import tokens
from longthread.view.families import BIGRAMS, FAMILIES, CharacterPairs, script_of, scripts_of
from longthread.view.tokens import CharacterKinds, Estimator

ALPHABET = " \t\n\r\x1f0129abiouz.ZABC,-{\x00\x7fé港あ한龘🎉\ud800"
TEXTS = st.text(alphabet=st.sampled_from(ALPHABET), max_size=80)


@given(TEXTS)
@example("")
@example("HTTPServer aB Ab ABc A b" + "a" * 100 + " " + "b" * 41 + "C" * 50)
def test_what_is_counted_is_what_patterns_find(text: str) -> None:
    pairs, kinds = CharacterPairs(text), CharacterKinds(text)
    small = re.findall(r"[a-z]+", text)
    words = re.findall(r"[A-Z]?[a-z]+", text)
    capitals = re.findall(r"[A-Z]+(?![a-z])", text)
    runs = re.findall(r"[!-/:-@\[-`{-~]+", text)
    same = [a == b for run in runs for a, b in pairwise(run)]
    assert pairs.words == sum(-(-len(run) // 40) for run in small)
    assert pairs.titles == sum(word[0].isupper() for word in words)
    assert pairs.vowel_ends == sum(len(word) > 2 and word[-1] in "aiou" for word in words)
    assert pairs.breaks == approx(sum(BIGRAMS[a + b] for word in words for a, b in pairwise(word.lower())))
    assert pairs.letter_runs == len(kinds.letters)
    assert pairs.capitals == (sum(len(run) == 1 for run in capitals), sum(len(run) - 1 for run in capitals))
    single = sum(len(run) == 1 for run in runs)
    assert pairs.marks == (single, len(runs) - single, len(same) - sum(same), sum(same))
    for name in ("digits", "digit_groups", "blank_digits", "mark_letters", "controls", "blanks_alone"):
        assert getattr(pairs, name) == getattr(kinds, name), name
    assert sum(count for _, count in pairs.blanks) == sum(count for _, count in kinds.blanks)


@given(TEXTS)
def test_a_text_costs_the_same_by_its_pieces_and_by_its_pairs(text: str) -> None:
    _expect_same_cost(text)


@pytest.mark.parametrize("kind", sorted(samples()))
def test_real_texts_cost_the_same_by_their_pieces_and_by_their_pairs(kind: str) -> None:
    _expect_same_cost(samples()[kind])


def _expect_same_cost(text: str) -> None:
    for costs in FAMILIES.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "_LONG", len(text))
            by_pieces = Estimator(costs).count(text)
            patch.setattr(tokens, "_LONG", -1)
            assert Estimator(costs).count(text) == approx(by_pieces)


@given(TEXTS)
def test_characters_of_a_long_text_are_of_the_scripts_that_they_are_of_one_by_one(text: str) -> None:
    outside = [script_of(character) for character in text if not character.isascii()]
    assert scripts_of(text * 100) == {script: 100 * outside.count(script) for script in outside}

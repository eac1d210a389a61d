"""Kinds of characters, as patterns find them."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from longthread.view.tokens import CharacterKinds

TEXTS = st.text(alphabet=st.sampled_from(" \t\n\r\x1f01239ab.Z,-{\x00\x7fé港\ud800"), max_size=60)


@given(TEXTS)
@example("")
@example("12345 678\t9\n\n.. -,- a.b")
def test_what_is_counted_is_what_patterns_find(text: str) -> None:
    kinds = CharacterKinds(text)
    blanks = re.findall(r"[\t-\r\x1c-\x20]+", text)
    assert kinds.letters == [run.encode() for run in re.findall(r"[A-Za-z]+", text)]
    assert kinds.marks == [run.encode() for run in re.findall(r"[!-/:-@\[-`{-~]+", text)]
    assert kinds.digits == len(re.findall(r"[0-9]", text))
    assert kinds.digit_groups == len(re.findall(r"[0-9]{1,3}", text))
    assert kinds.blank_digits == len(re.findall(r"[ \t][0-9]", text))
    assert kinds.mark_letters == len(re.findall(r"[!-/:-@\[-`{-~][A-Za-z]", text))
    assert kinds.controls == len(re.findall(r"[\x00-\x08\x0e-\x1b\x7f]", text))
    assert kinds.blanks_alone == all(len(run) == 1 for run in blanks)
    assert dict(kinds.blanks) == {each: text.count(each) for each in "".join(blanks)}

"""What is known of recent requests changes nothing but the time that reading the next one takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longthread.gateway.asked import Asked
from longthread.gateway.dialects.anthropic import Anthropic
from longthread.gateway.dialects.dialect import Dialect
from longthread.gateway.recent import Recent

DIALECTS: list[Dialect] = [Anthropic()]
_SAID = st.sampled_from(["", "a", "b", "长"])
_BLOCK = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _SAID),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, _SAID),
    st.just({"type": "tool_use", "id": "t", "name": "clock", "input": {}}),
)
_MESSAGE = st.one_of(
    st.builds(lambda text: {"role": "user", "content": text}, _SAID),
    st.builds(lambda blocks: {"role": "assistant", "content": blocks}, st.lists(_BLOCK, max_size=2)),
    st.builds(lambda text: {"role": "user", "content": [{"type": "tool_result", "content": text}]}, _SAID),
)


def _seen(asked: Asked) -> Any:
    return (
        asked.fields,
        asked.items,
        asked.parts,
        asked.digests,
        asked.nodes,
        asked.hidden,
        asked.frame_count,
        asked.frame,
    )


def _body(messages: Any, before: str = "") -> bytes:
    return json.dumps({"model": "m" + before, "messages": messages}, ensure_ascii=False).encode()


@given(st.lists(st.lists(_MESSAGE, max_size=4), max_size=6), st.integers(0, 60))
def test_a_request_reads_the_same_after_any_others(requests: list[list[Any]], characters: int) -> None:
    recent = Recent(characters * 10)
    for number, messages in enumerate(requests):
        body = _body(messages, before="x" * (number % 2))  # the list does not always begin at one place
        assert _seen(Asked.read(DIALECTS[0], "ada", body, recent)) == _seen(Asked.read(DIALECTS[0], "ada", body))


def _talk(count: int) -> list[dict[str, Any]]:
    return [
        {"role": "user" if number % 2 == 0 else "assistant", "content": f"said {number}"} for number in range(count)
    ]


@pytest.mark.parametrize(("known", "asked", "reads"), [(9, 11, 2), (11, 9, 0), (11, 11, 0)])
def test_only_what_is_new_is_read(known: int, asked: int, reads: int) -> None:
    counted: list[int] = []

    class Counting(Anthropic):
        def parts(self, items: Any) -> Any:
            counted.append(len(items))
            return super().parts(items)

    recent = Recent()
    for count in (known, asked):
        Asked.read(Counting(), "ada", _body(_talk(count)), recent)
    assert counted == [known, reads]


def test_a_message_that_changed_is_read_with_all_behind_it() -> None:
    recent = Recent()
    before, after = _talk(11), _talk(13)
    after[8] = {**after[8], "content": "something else"}
    Asked.read(DIALECTS[0], "ada", _body(before), recent)
    asked = Asked.read(DIALECTS[0], "ada", _body(after), recent)
    assert _seen(asked) == _seen(Asked.read(DIALECTS[0], "ada", _body(after)))
    assert "something else" in [part.value for part in asked.parts]


def test_another_user_has_other_digests() -> None:
    recent = Recent()
    one, other = (Asked.read(DIALECTS[0], user, _body(_talk(5)), recent) for user in ("ada", "bob"))
    assert not {*one.digests} & {*other.digests}


def test_what_is_known_does_not_grow_without_end() -> None:
    recent = Recent(30_000)
    for number in range(2_000):
        Asked.read(DIALECTS[0], "ada", _body([{"role": "user", "content": f"{number} " * 40}]), recent)
    assert sum(len(read.cut.items) for read in recent._reads) <= 30_000
    assert recent._reads

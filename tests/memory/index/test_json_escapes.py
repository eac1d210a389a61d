"""JSON that a tool wrote in ASCII: what it says is found like any other text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.talking import say

from longthread.memory.index.entry_text import excerpt, unescape_json
from longthread.memory.index.terms import terms
from longthread.memory.recall import Question, Recaller
from longthread.memory.summary.topics import extract_topics
from longthread.model.thread import Scope
from longthread.store.driver import Driver

ROWS = [{"客户": f"欧阳锦鲤{n}", "城市": "乌鲁木齐", "产品": "蒸汽熨斗 🚀"} for n in range(40)]
# A text that itself spells an escape is taken for JSON within JSON.
TEXT = st.text().filter(lambda text: "\\u" not in text)
VALUES = st.recursive(st.none() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner))


@given(VALUES.map(lambda value: [value]))
def test_it_says_the_same_as_json_with_its_characters(value: object) -> None:
    told = json.loads(unescape_json(json.dumps(value)))
    assert told == json.loads(json.dumps(value))
    assert unescape_json(json.dumps(value, ensure_ascii=False)) == json.dumps(value, ensure_ascii=False)


def test_json_in_json_too() -> None:
    inner = json.dumps(ROWS)
    assert "乌鲁木齐" in unescape_json(json.dumps({"ok": True, "data": inner}))


@pytest.mark.parametrize(
    "text", [r"In a regex [\u4e00-\u9fff] is Han.", r"\u4e2d", r'{"quote": "\u0022"}', r'["\ud83d"]']
)
def test_code_and_what_is_half_stay(text: str) -> None:
    assert unescape_json(text) == text


async def test_it_is_recalled_with_its_characters(store: Driver) -> None:
    await say(store, ["Show the customers", json.dumps(ROWS)])
    recalled = await Recaller(store).find(Question("乌鲁木齐", Scope("u", "t"), k=1))
    assert [hit.entry.text for hit in recalled.hits] == [json.dumps(ROWS)]
    assert "欧阳锦鲤39" in excerpt(json.dumps(ROWS), terms("欧阳锦鲤39"), 200)


def test_topics_are_no_numbers_of_characters() -> None:
    said = [
        "Show the products",
        json.dumps(ROWS),
        json.dumps(ROWS),
        "aGVsbG8gd29ybGQgdGhpcyBpcyBiYXNlNjQ" * 30,
        "Thanks",
    ]
    names = [topic.name for topic in extract_topics(said)]
    assert not [name for name in names if name.startswith("u") or "aGVsbG8" in name]
    assert "乌鲁木齐" in names

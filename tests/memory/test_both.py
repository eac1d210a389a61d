"""Both backends find the same, in the same order, with the same scores."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory.talking import say

from longthread.memory.recall import Question, Recaller
from longthread.model.thread import Scope
from longthread.store import log
from longthread.store.driver import Driver
from longthread.store.open import open_store
from longthread_testing.embedding import HashEmbedder

WORDS = ["trip", "trips", "Lyon", "上海", "上午", "海边", "v1.2", "runQuery", "query", "the", "a", "…"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)


@pytest.fixture
async def other(other_address: str) -> AsyncIterator[Driver]:
    async with open_store(other_address) as opened:
        yield opened


@pytest.mark.sampled(2)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXT, min_size=1, max_size=30),
    rewound=st.lists(TEXT, max_size=4),
    elsewhere=st.lists(TEXT, max_size=5),
    asked=TEXT,
    k=st.integers(1, 12),
    embeds=st.booleans(),
    everywhere=st.booleans(),
)
async def test_both_find_the_same(
    store: Driver,
    other: Driver,
    texts: list[str],
    rewound: list[str],
    elsewhere: list[str],
    asked: str,
    k: int,
    embeds: bool,
    everywhere: bool,
) -> None:
    user = uuid.uuid4().hex
    found = []
    for each in (store, other):
        threads = {name: f"{name}-{user}" for name in ("a", "b")}
        await say(each, texts, thread_id=threads["a"], user_id=user)
        await say(each, rewound, thread_id=threads["a"], user_id=user, parent=1)
        await say(each, elsewhere, thread_id=threads["b"], user_id=user)
        recaller = Recaller(each, HashEmbedder(dims=16) if embeds else None)
        scope = Scope(user) if everywhere else Scope(user, threads["a"])
        await recaller.prepare(scope)
        recalled = await recaller.find(Question(asked, scope, k=k, other_branches=everywhere))
        assert recalled.warnings == []
        around = [[entry.id for entry in hit.around] for hit in recalled.hits]
        shown = [(entry.thread_id, entry.seq) for hit in recalled.hits for entry in (hit.entry, *hit.around)]
        assert len(shown) == len(set(shown))
        hits = [(log.sent_id(hit.entry), hit.score, hit.active) for hit in recalled.hits]
        found.append((hits, around))
    assert found[0] == found[1]

"""What a listing's `filter` finds, beside PostgresSaver and SqliteSaver over the same metadata."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from longthread.langgraph import LongthreadSaver
from longthread.langgraph.filters import MetadataFilter
from longthread.store.open import open_store
from longthread.store.queries import Sql

pytestmark = pytest.mark.postgres  # what is compared with is one

KEYS = ("user", "a", "b", "a.b", "a.b.c", "step", "source", "parents", "x-y", "键")
TEXTS = ("ada", "鲍勃", 'q"uote', "a\\b", "", "1", "true", "loop", "run-7", "é/<&>")


def _value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.randrange(8 if depth < 3 else 5)
    if kind == 0:
        return chance.choice(TEXTS)
    if kind == 1:
        return chance.choice((0, 1, 2, -1, 10**12))
    if kind == 2:
        return chance.choice((0.5, 1.0, -0.0, 1e-7))
    if kind == 3:
        return chance.choice((True, False))
    if kind == 4:
        return None
    if kind == 5:
        return [_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice("abc"): _value(chance, depth + 1) for _ in range(chance.randrange(3))}


def _metadata(chance: random.Random) -> Any:
    if chance.random() < 0.2:
        return {"source": "loop", "step": chance.randrange(3), "parents": {}}
    return {chance.choice(KEYS): _value(chance) for _ in range(chance.randrange(1, 5))}


def _filter(chance: random.Random, metadata: Any) -> dict[str, Any]:
    """A filter of which a part mostly is a part of some metadata."""
    if metadata and chance.random() < 0.7:
        key = chance.choice(list(metadata))
        path, value = key, metadata[key]
        while isinstance(value, dict) and value and chance.random() < 0.6:
            key = chance.choice(list(value))
            path, value = f"{path}.{key}", value[key]
        if isinstance(value, list) and value and chance.random() < 0.5:
            value = chance.sample(value, chance.randrange(1, len(value) + 1))
        found = {path: value}
    else:
        found = {chance.choice(KEYS): _value(chance)}
    return found | (_filter(chance, metadata) if chance.random() < 0.25 else {})


def _put(saver: Any, thread_id: str, metadata: Any) -> None:
    at = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    saver.put(at, empty_checkpoint(), metadata, {})


def _found(saver: Any, filter_: dict[str, Any]) -> set[str]:
    return {each.config["configurable"]["thread_id"] for each in saver.list(None, filter=filter_)}


@pytest.fixture
def stock(postgres_url: str) -> Iterator[tuple[Any, Any]]:
    with PostgresSaver.from_conn_string(postgres_url) as first, SqliteSaver.from_conn_string(":memory:") as second:
        first.setup()
        yield first, second


def test_it_finds_what_either_of_the_stock_savers_finds(store_address: str, stock: tuple[Any, Any]) -> None:
    chance = random.Random(2511)
    there = [_metadata(chance) for _ in range(80)]
    postgres, sqlite = stock
    hits = 0
    with LongthreadSaver.from_conn_string(store_address) as ours:
        for n, metadata in enumerate(there):
            for saver in (ours, postgres, sqlite):
                _put(saver, f"t{n}", metadata)
        for _ in range(100):
            filter_ = _filter(chance, chance.choice(there))
            expected, least = {f"t{n}" for n in range(len(there))}, True
            for key, wanted in filter_.items():
                of_key = _found(postgres, {key: wanted})
                if key.isascii():  # SqliteSaver refuses other keys
                    of_key |= _found(sqlite, {key: wanted})
                expected &= of_key
                least = least and key.isascii() and not ("." in key and isinstance(wanted, dict | list))
            found = _found(ours, filter_)
            # At a path with dots, SqliteSaver wants objects and lists to be equal; here they may hold more.
            assert found == expected if least else found >= expected, filter_
            assert (
                _found(postgres, filter_) | (_found(sqlite, filter_) if all(map(str.isascii, filter_)) else set())
                <= found
            )
            hits += len(found)
    assert hits > 120


@pytest.mark.parametrize(
    ("filter_", "is_found"),
    [
        ({"user": {"name": "ada"}}, True),
        ({"user": {"name": "ada", "age": 36}}, True),
        ({"user": {"name": "bob"}}, False),
        ({"user.name": "ada"}, True),
        ({"user.langs": ["zh"]}, True),
        ({"user": {"langs": ["zh", "en"]}}, True),
        ({"user": {"langs": ["fr"]}}, False),
        ({"user": {"langs": "zh"}}, False),
        ({"user.city": None}, True),
        ({"user.name": None}, False),
        ({"missing": None}, True),
        ({"missing": {}}, False),
        ({"user": {}}, True),
        ({"tags": ()}, True),
        ({"tags": ("b",)}, True),
        ({"score": 1}, True),
        ({"score": 1.0, "user.age": 36.0}, True),
        ({"score": "1"}, False),
        ({"large": 1e400}, False),
        ({"odd": {"nul": "a\x00b"}}, True),
        ({"odd.half": "\ud800"}, True),
        ({"odd": {"nul": "a"}}, False),
        ({"no": "\ud800"}, False),
        ({"no\ud800": 1}, False),
        ({"odd": {"nu\x00l": 1}}, False),
        ({"nu\x00l": "kept"}, True),
        ({"when.ever": 1}, True),
        ({7: "seven"}, True),
    ],
)
@pytest.mark.one_backend
def test_nested_and_odd_values(store_address: str, filter_: Any, is_found: bool) -> None:
    metadata: Any = {
        "user": {"name": "ada", "age": 36, "langs": ["en", "zh"]},
        "tags": ["a", "b"],
        "score": 1,
        "odd": {"nul": "a\x00b", "half": "\ud800"},
        "nu\x00l": "kept",
        "when.ever": 1,
        "7": "seven",
    }
    with LongthreadSaver.from_conn_string(store_address) as saver:
        _put(saver, "t", metadata)
        _put(saver, "other", {"source": "loop", "step": 3, "parents": {}, "user": "somebody else"})
        assert ("t" in _found(saver, filter_)) is is_found
        assert (
            "t" in {each.config["configurable"]["thread_id"] for each in saver.list(_at("t"), filter=filter_)}
        ) is is_found


def _at(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


def test_the_usual_metadata_is_found_by_its_step_too(store_address: str) -> None:
    with LongthreadSaver.from_conn_string(store_address) as saver:
        for n in range(70):
            _put(saver, f"t{n}", {"source": "loop", "step": n % 7, "parents": {}})
        assert len(_found(saver, {"source": "loop"})) == 70
        assert len(_found(saver, {"step": 3})) == len(_found(saver, {"step": 3.0, "parents": {}})) == 10
        assert len(_found(saver, {"step": True, "source": "loop"})) == 10
        assert _found(saver, {"source": "input"}) == set()
        assert len(list(saver.list(None, filter={"source": "loop"}, limit=66))) == 66
        ids = [each.checkpoint["id"] for each in saver.list(None, filter={"source": "loop"})]
        assert ids == sorted(ids, reverse=True)
        assert list(saver.for_user("bob").list(None, filter={"source": "loop"})) == []


def test_what_is_asked_of_an_index_is_bounded() -> None:
    filter_ = MetadataFilter.of({f"k{n}.x": n % 2 for n in range(12)})
    assert 1 <= len(filter_.search.contained) <= 16


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_the_index_is_used(store_address: str) -> None:
    async with open_store(store_address) as store:
        plan = Sql(
            "EXPLAIN SELECT 1 FROM checkpoints c WHERE (as_jsonb(c.metadata) @> CAST(:contained AS JSONB) "
            "OR as_jsonb(c.metadata) @> '\"unreadable\"') AND c.metadata > ':'"
        )
        async with store.writing() as tx:
            await tx.run(Sql("SET LOCAL enable_seqscan = off"))
            rows = await tx.fetch(plan, contained='{"a": 1}')
        assert "checkpoints_by_metadata" in "\n".join(row["QUERY PLAN"] for row in rows)

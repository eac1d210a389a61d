"""What was used least recently goes first."""

from __future__ import annotations

from longthread.model.lru import LRU


def test_what_was_used_least_recently_goes_first() -> None:
    cache = LRU[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)
    assert "a" in cache
    assert "b" not in cache
    cache.put("a", 4)
    cache.put("d", 5)
    assert (cache.get("a"), "c" in cache, len(cache)) == (4, False, 2)


def test_values_are_bounded_by_their_size_together() -> None:
    cache = LRU[str, str](10, most_size=5, size=len)
    cache.put("a", "aa")
    cache.put("b", "bb")
    cache.put("a", "aaa")
    assert (cache.size, len(cache)) == (5, 2)
    cache.put("c", "c")
    assert ("b" in cache, cache.size) == (False, 4)
    cache.put("d", "ddddddd")
    assert (cache.get("d"), len(cache), cache.size) == ("ddddddd", 1, 7)
    assert cache.pop("d") == "ddddddd"
    assert cache.pop("d") is None
    assert (len(cache), cache.size) == (0, 0)


def test_what_is_false_is_a_value_too() -> None:
    cache = LRU[str, int](2)
    cache.put("a", 0)
    assert (cache.get("a"), "a" in cache, cache.pop("a")) == (0, True, 0)

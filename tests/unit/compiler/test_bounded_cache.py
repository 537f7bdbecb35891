from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from compiler.bounded_cache import BoundedCache


def test_the_value_that_was_used_least_recently_is_dropped() -> None:
    cache: BoundedCache[str, int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1  # which makes b the least recently used
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]
    assert len(cache) == 2


def test_a_value_replaces_the_earlier_one_of_its_key() -> None:
    cache: BoundedCache[str, str] = BoundedCache(5, size_of=len)
    cache.put("a", "xxxx")
    cache.put("a", "yy")
    cache.put("b", "zzz")  # fits only if the four characters are no longer counted
    assert cache.get("a") == "yy"
    assert cache.get("b") == "zzz"


def test_sizes_are_counted_and_the_newest_value_always_stays() -> None:
    cache: BoundedCache[str, str] = BoundedCache(5, size_of=len)
    cache.put("a", "xx")
    cache.put("b", "xx")
    cache.put("c", "xxxxxxxxx")
    assert len(cache) == 1
    assert cache.get("c") == "xxxxxxxxx"
    cache.put("d", "x")  # which drops the one that is too large
    assert [cache.get(key) for key in "cd"] == [None, "x"]


def test_a_cleared_cache_has_room_again() -> None:
    cache: BoundedCache[str, str] = BoundedCache(4, size_of=len)
    cache.put("a", "xxxx")
    cache.clear()
    assert cache.get("a") is None
    cache.put("b", "xx")
    cache.put("c", "xx")
    assert len(cache) == 2


def test_several_threads_never_exceed_the_bound() -> None:
    cache: BoundedCache[int, int] = BoundedCache(8)

    def use(first: int) -> None:
        for key in range(first, first + 2000):
            cache.put(key % 32, key)
            value = cache.get(key % 32)
            assert value is None or value % 32 == key % 32

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert len(cache) == 8

from __future__ import annotations

import weakref
from dataclasses import dataclass

from compiler.identity_cache import IdentityCache


@dataclass(frozen=True)
class Node:
    name: str


def test_equal_objects_have_entries_of_their_own() -> None:
    cache: IdentityCache[Node, int] = IdentityCache()
    first, second = Node("x"), Node("x")
    cache.put(first, 1)
    assert cache.get(first) == 1
    assert cache.get(second) is None
    cache.put(second, 2)
    assert (cache.get(first), cache.get(second)) == (1, 2)


def test_find_computes_once_even_what_is_none() -> None:
    cache: IdentityCache[Node, None] = IdentityCache()
    node, calls = Node("x"), list[Node]()
    for _ in range(3):
        assert cache.find(node, calls.append) is None
    assert calls == [node]


def test_an_entry_keeps_its_object_alive_until_it_is_dropped() -> None:
    """Else a new object could get the identity, and with it the value, of a dead one."""
    cache: IdentityCache[Node, int] = IdentityCache()
    node = Node("x")
    alive = weakref.ref(node)
    cache.put(node, 1)
    del node
    assert alive() is not None
    cache.clear()
    assert alive() is None


def test_a_full_cache_begins_anew() -> None:
    cache: IdentityCache[Node, int] = IdentityCache(max_entries=2)
    nodes = [Node(name) for name in "abc"]
    for value, node in enumerate(nodes):
        cache.put(node, value)
    assert [cache.get(node) for node in nodes] == [None, None, 2]

"""Remember what was found out about blocks: they are values, so it stays true."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from compiler.ir.core.nodes import Block

T = TypeVar("T")
_CACHE_SIZE = 4096


def by_identity(find: Callable[[Block], T]) -> Callable[[Block], T]:
    """Keep what a function finds of each block, told by its identity: comparing takes longer."""
    cache: dict[int, tuple[Block, T]] = {}

    @wraps(find)
    def cached(block: Block) -> T:
        known = cache.get(id(block))
        # The identity of a dead block may be given again: the entry keeps its block alive.
        if known is not None and known[0] is block:
            return known[1]
        if len(cache) >= _CACHE_SIZE:
            cache.clear()
        found = find(block)
        cache[id(block)] = (block, found)
        return found

    return cached

"""A cache of facts about blocks, which never change."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from compiler.identity_cache import IdentityCache
from compiler.ir.core.nodes import Block

T = TypeVar("T")
# A chosen bound: the programs of a search share most blocks, so the cache serves many programs.
_MAX_BLOCKS = 4096


def by_identity(compute: Callable[[Block], T]) -> Callable[[Block], T]:
    """Cache a function of blocks by their identity, because comparing blocks takes longer."""
    cache: IdentityCache[Block, T] = IdentityCache(_MAX_BLOCKS)

    @wraps(compute)
    def cached(block: Block) -> T:
        return cache.find(block, compute)

    return cached

"""Asynchronous matrix products of warpgroups (`wgmma`): they run when their group is waited for.

From the start of a product to the wait, its accumulator registers hold NaN: a kernel that reads
them early gets a wrong result. Operands in shared memory are read at the wait.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compiler.backends.emulator.pending import PendingGroups
from compiler.backends.emulator.types import Array

Step: TypeAlias = Callable[[Array], Array]
"""From the accumulator before a product to the one after it."""

Key: TypeAlias = tuple[int, tuple[str, ...]]
"""The first lane of a warpgroup, and the names of the accumulator registers."""


@dataclass(slots=True)
class Accumulator:
    """The values of the accumulator registers of a warpgroup while products are under way."""

    values: Array
    write_back: Callable[[Array], None]
    num_products: int = 0


class WarpgroupProducts:
    """The products that are under way, in groups of each warpgroup."""

    def __init__(self) -> None:
        self.groups = PendingGroups()
        self._accumulators: dict[Key, Accumulator] = {}
        self._fenced: set[int] = set()

    def fence(self, warpgroup: int) -> None:
        """Order the accesses of registers before the products that follow."""
        self._fenced.add(warpgroup)

    def needs_fence(self, key: Key) -> bool:
        """Return whether a product takes registers that are not ordered by a fence."""
        return key not in self._accumulators and key[0] not in self._fenced

    def wait(self, warpgroup: int, num_pending: int) -> None:
        """Complete groups; what follows may access registers and needs another fence."""
        self.groups.wait(warpgroup, num_pending)
        self._fenced.discard(warpgroup)

    def start(self, key: Key, make: Callable[[], Accumulator], step: Step) -> None:
        """Start a product.

        Args:
            key: The warpgroup and its accumulator.
            make: Returns the accumulator, unless a product on it is under way.
            step: The product.
        """
        if key not in self._accumulators:
            self._accumulators[key] = make()
        self._accumulators[key].num_products += 1
        self.groups.start(key[0], lambda: self._complete(key, step))

    def _complete(self, key: Key, step: Step) -> None:
        accumulator = self._accumulators[key]
        accumulator.values = step(accumulator.values)
        accumulator.num_products -= 1
        if accumulator.num_products == 0:
            accumulator.write_back(np.ascontiguousarray(accumulator.values))
            del self._accumulators[key]

"""Groups of lanes that are at one instruction, and the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from compiler.backends.emulator.grid import WARP_SIZE, Grid
from compiler.backends.emulator.types import ALL, Array, Lanes

Order: TypeAlias = Literal["lockstep"] | int
"""How warps take turns: all together, or each as far as it can in an order drawn from a seed."""

_END = 1 << 60


@dataclass(frozen=True, slots=True)
class LaneGroup:
    """Lanes that are at one instruction; those with a smaller priority run first."""

    position: int
    lanes: Lanes
    priority: int = 0


class GroupQueue:
    """The groups that can run.

    In lockstep, all lanes at one position form one group. Otherwise each number of a warp in its
    block has a priority of its own, and lanes of different priorities never join.
    """

    def __init__(self, grid: Grid, order: Order) -> None:
        self._grid = grid
        self._groups: list[LaneGroup] = []
        self._priorities: Array | None = None
        if order != "lockstep":
            ranks = np.random.default_rng(order).permutation(grid.num_warps)
            self._priorities = ranks[grid.threads // WARP_SIZE]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(self, position: int, lanes: Lanes) -> None:
        """Let lanes go on at a position."""
        if self._priorities is None:
            self._groups.append(LaneGroup(position, lanes))
            return
        active = self._grid.lanes[lanes]
        ranks = self._priorities[active]
        for rank in np.unique(ranks):
            chosen = self.whole(active[ranks == rank])
            self._groups.append(LaneGroup(position, chosen, int(rank)))

    def pop(self) -> LaneGroup:
        """Remove the first group: of the smallest priority and position, with all that join it."""
        first = min(self._groups, key=lambda group: (group.priority, group.position))
        smallest = (first.priority, first.position)
        together = [g.lanes for g in self._groups if (g.priority, g.position) == smallest]
        self._groups = [g for g in self._groups if (g.priority, g.position) != smallest]
        return LaneGroup(first.position, self.merge(together), first.priority)

    def limit(self, priority: int) -> int:
        """Return the position at which a group of a priority meets another one."""
        positions = [group.position for group in self._groups if group.priority == priority]
        return min(positions, default=_END)

    def merge(self, parts: Sequence[Lanes]) -> Lanes:
        """Return the union of disjoint sets of lanes."""
        if len(parts) == 1:
            return parts[0]
        return self.whole(np.sort(np.concatenate([self._grid.lanes[part] for part in parts])))

    def whole(self, lanes: Array) -> Lanes:
        """Return `ALL` instead of an array of all lanes."""
        return ALL if len(lanes) == self._grid.num_lanes else lanes

    def without(self, lanes: Lanes, active: Lanes) -> Lanes | None:
        """Return the lanes that are not active; None if all are."""
        if active is lanes:
            return None
        marked = np.zeros(self._grid.num_lanes, np.bool_)
        marked[lanes] = True
        marked[active] = False
        rest = np.flatnonzero(marked)
        return rest if len(rest) else None

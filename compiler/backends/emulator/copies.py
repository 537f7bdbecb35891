"""Asynchronous copies of threads (`cp.async`): they end as late as the program allows.

From its start to the wait for its group, the destination of a copy holds no data: it reads as NaN,
and an access to it is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.memory import PartedMemory
from compiler.backends.emulator.types import Array, Lanes

_UNKNOWN = 0xFF


@dataclass(frozen=True, slots=True)
class _PendingCopy:
    """Copies of one size by several lanes; `content` and `groups` have one row a lane."""

    access: LaneAccess
    content: Array
    groups: Array

    @property
    def lanes(self) -> Array:
        return self.access.lanes

    def part(self, chosen: Array) -> _PendingCopy:
        offsets, lanes = self.access.offsets[chosen], self.lanes[chosen]
        access = replace(self.access, offsets=offsets, lanes=lanes)
        return _PendingCopy(access, self.content[chosen], self.groups[chosen])


class ThreadCopies:
    """The copies that are under way, in groups of each thread."""

    def __init__(self, grid: Grid, shared: PartedMemory) -> None:
        self._grid = grid
        assert shared.shadow is not None
        self._shared, self._shadow = shared, shared.shadow
        self._copies: list[_PendingCopy] = []
        self._num_groups = np.zeros(grid.num_lanes, np.int64)

    def start(self, access: LaneAccess, content: Array) -> None:
        """Start copies into shared memory.

        Args:
            access: The access to shared memory, by the numbers of its lanes.
            content: The bytes, one row a lane.
        """
        self._shadow.begin_write(access)
        if self._shared.counter is not None:
            self._shared.counter.count(access)
        self._shared.data[access.offsets[:, None] + np.arange(access.num_bytes)] = _UNKNOWN
        self._copies.append(_PendingCopy(access, content, self._num_groups[access.lanes].copy()))

    def commit(self, lanes: Lanes) -> None:
        """End the current group of each lane."""
        self._num_groups[lanes] += 1

    def wait(self, lanes: Lanes, num_pending: int, all_copies: bool = False) -> None:
        """Complete the groups of the lanes but for the last ones."""
        waits = np.zeros(self._grid.num_lanes, np.bool_)
        waits[lanes] = True
        rest: list[_PendingCopy] = []
        for copy in self._copies:
            is_old = copy.groups < self._num_groups[copy.lanes] - num_pending
            chosen = waits[copy.lanes] & (is_old | all_copies)
            if chosen.any():
                self._finish(copy if chosen.all() else copy.part(chosen))
            if not chosen.all():
                rest.append(copy.part(~chosen) if chosen.any() else copy)
        self._copies = rest

    def _finish(self, copy: _PendingCopy) -> None:
        access = copy.access
        self._shared.data[access.offsets[:, None] + np.arange(access.num_bytes)] = copy.content
        self._shadow.end_write(access)
        self._shadow.rewrite(access)

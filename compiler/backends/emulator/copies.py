"""Asynchronous copies of threads (`cp.async`): they end as late as the program allows.

From its start to the wait for its group, the destination of a copy holds no data: it reads as NaN,
and an access to it is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.memory import PartedMemory
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes

_UNKNOWN = 0xFF


@dataclass(frozen=True, slots=True)
class _PendingCopy:
    """Copies of one size by several lanes; `content` has one row a lane."""

    instruction: PtxInstruction
    lanes: Array
    offsets: Array
    content: Array
    groups: Array

    def part(self, chosen: Array) -> _PendingCopy:
        return _PendingCopy(
            self.instruction,
            self.lanes[chosen],
            self.offsets[chosen],
            self.content[chosen],
            self.groups[chosen],
        )


class ThreadCopies:
    """The copies that are under way, in groups of each thread."""

    def __init__(self, grid: Grid, shared: PartedMemory) -> None:
        self._grid = grid
        assert shared.shadow is not None
        self._shared, self._shadow = shared, shared.shadow
        self._copies: list[_PendingCopy] = []
        self._num_groups = np.zeros(grid.num_lanes, np.int64)

    def start(
        self, instruction: PtxInstruction, offsets: Array, content: Array, lanes: Array
    ) -> None:
        """Start copies into shared memory.

        Args:
            instruction: The instruction.
            offsets: The positions in shared memory.
            content: The bytes, one row a lane.
            lanes: The lanes.
        """
        num_bytes = content.shape[1]
        self._shadow.begin_write(instruction, offsets, num_bytes, lanes)
        if self._shared.counter is not None:
            self._shared.counter.count(instruction, offsets, num_bytes, lanes)
        self._shared.data[offsets[:, None] + np.arange(num_bytes)] = _UNKNOWN
        groups = self._num_groups[lanes].copy()
        self._copies.append(_PendingCopy(instruction, lanes, offsets, content, groups))

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
        num_bytes = copy.content.shape[1]
        self._shared.data[copy.offsets[:, None] + np.arange(num_bytes)] = copy.content
        self._shadow.end_write(copy.offsets, num_bytes, copy.lanes)
        self._shadow.rewrite(copy.instruction, copy.offsets, num_bytes, copy.lanes)

"""The order of threads: what happens before what, by barriers.

A block has a time that each synchronization advances. An access carries the time of its block. A
warp has a row that holds, for each warp of its block, the time up to which the accesses of that
warp happened before (a vector clock). The rows are kept from the first synchronization of a part
of a block on; until then one time for all warps is enough.

Threads of one warp share a row, so an arrival of one lane counts as an arrival of its warp.
"""

from __future__ import annotations

import numpy as np

from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.types import Array, Lanes


class Clocks:
    """The times of all threads.

    Attributes:
        times: For each lane, the time of its accesses now.
        floor: For each lane, the time up to which all accesses of its block happened before.
        fenced: For each lane, the time of its last fence for the copy engine and tensor cores.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._now = np.zeros(len(grid.blocks), np.int32)
        self.floor = np.full(grid.num_lanes, -1, np.int32)
        self._rows: Array | None = None
        self.times = np.zeros(grid.num_lanes, np.int32)
        self.fenced = np.full(grid.num_lanes, -1, np.int32)

    def barrier_of_blocks(self, lanes: Lanes) -> None:
        """Order all threads of the blocks whose threads are `lanes`."""
        grid = self._grid
        slots = grid.slots[lanes]
        self.floor[lanes] = self._now[slots]
        if self._rows is not None:
            self._rows[grid.warps[lanes]] = self._now[slots][:, None]
        self._advance(lanes)

    def barrier_of_warps(self, lanes: Lanes) -> None:
        """Order the lanes of each warp among themselves."""
        grid = self._grid
        warps = np.unique(grid.warps[lanes])
        rows = self._vector_clocks()
        rows[warps, warps % grid.num_warps] = self._now[warps // grid.num_warps]
        self._advance(lanes)

    def barrier_of_part(self, lanes: Lanes) -> None:
        """Order some warps of each block among themselves."""
        grid = self._grid
        rows = self._vector_clocks()
        warps = np.unique(grid.warps[lanes])
        for slot in np.unique(warps // grid.num_warps):
            members = warps[warps // grid.num_warps == slot]
            rows[members, members % grid.num_warps] = self._now[slot]
            rows[members] = rows[members].max(axis=0)
        self._advance(lanes)

    def fence(self, lanes: Lanes) -> None:
        """Make the earlier writes of lanes visible to the copy engine and to tensor cores."""
        self.fenced[lanes] = self._now[self._grid.slots[lanes]]
        self._advance(lanes)

    def release(self, lane: int) -> Array:
        """Return the accesses that happened before now for a lane, as a row; advance the time."""
        grid = self._grid
        warp, slot = grid.warps[lane], grid.slots[lane]
        row: Array = self._vector_clocks()[warp].copy()
        row[warp % grid.num_warps] = self._now[slot]
        members = slot * grid.num_threads + np.arange(
            warp % grid.num_warps * 32, min(warp % grid.num_warps * 32 + 32, grid.num_threads)
        )
        self._advance(members)
        return row

    def acquire(self, lanes: Lanes, row: Array) -> None:
        """Order the accesses of a released row before the later ones of the warps of `lanes`."""
        rows = self._vector_clocks()
        warps = np.unique(self._grid.warps[lanes])
        rows[warps] = np.maximum(rows[warps], row)

    def happened_before(self, warps: Array, times: Array, lanes: Array) -> Array:
        """Return which accesses of other threads of a block happened before now.

        Args:
            warps: The warps of the accesses in their block; -1 if several.
            times: The times of the accesses.
            lanes: The lanes of the later accesses, one for each.
        """
        is_ordered = times <= self.floor[lanes]
        if self._rows is None or is_ordered.all():
            return is_ordered
        rows = self._rows[self._grid.warps[lanes], warps]
        return is_ordered | ((times <= rows) & (warps >= 0))

    def _advance(self, lanes: Lanes) -> None:
        slots = self._grid.slots[lanes]
        self._now[np.unique(slots)] += 1
        self.times[lanes] = self._now[slots]

    def _vector_clocks(self) -> Array:
        if self._rows is None:
            grid = self._grid
            first = grid.lanes.reshape(len(grid.blocks), -1)[:, ::32].reshape(-1)
            self._rows = np.repeat(self.floor[first][:, None], grid.num_warps, axis=1)
        return self._rows

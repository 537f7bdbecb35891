"""Shadow memory: who wrote and who read each element last, and whether a barrier orders them.

A block has a clock that each barrier advances. An access carries the time of its thread. Two
accesses of one block are ordered if the earlier one lies before the last barrier of the later one;
accesses of two blocks are never ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compiler.backends.emulator.faults import FaultKind, FaultLog
from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.program import Instruction
from compiler.backends.emulator.types import Array, Lanes

_NONE = -1
_SEVERAL_BLOCKS = -2
_SEVERAL = -3
"""Several threads of block b are `_SEVERAL - b`."""


class Clocks:
    """The times of all threads.

    Attributes:
        times: For each lane, the number of barriers of its block so far.
    """

    def __init__(self, grid: Grid) -> None:
        self.times = np.zeros(grid.num_lanes, np.int32)

    def barrier(self, lanes: Lanes) -> None:
        """Advance the clocks of the threads that leave a barrier."""
        self.times[lanes] += 1

    def barrier_of_warps(self, lanes: Lanes) -> None:
        """Order the lanes of each warp among themselves."""


class ShadowMemory:
    """What happened to each element of a memory.

    Args:
        name: The name of the memory in messages.
        num_bytes: The size of the memory.
        granule: The size of an element: the smallest access of the program.
        needs_initial_write: Whether a read of an element that is not written is a fault.
    """

    def __init__(
        self,
        name: str,
        num_bytes: int,
        granule: int,
        needs_initial_write: bool,
    ) -> None:
        count = -(-num_bytes // granule)
        self._name = name
        self._granule = granule
        self._needs_initial_write = needs_initial_write
        self._writer = np.full(count, _NONE, np.int32)
        self._write_time = np.zeros(count, np.int32)
        self._write_place = np.zeros(count, np.int32)
        self._is_atomic = np.zeros(count, np.bool_)
        self._reader = np.full(count, _NONE, np.int32)
        self._read_time = np.zeros(count, np.int32)
        self._instructions: Sequence[Instruction] = ()

    def attach(
        self, grid: Grid, clocks: Clocks, faults: FaultLog, instructions: Sequence[Instruction]
    ) -> None:
        """Follow the threads of some blocks from now on."""
        self._grid = grid
        self._clocks = clocks
        self._faults = faults
        self._instructions = instructions

    def read(self, instruction: Instruction, offsets: Array, num_bytes: int, lanes: Lanes) -> None:
        """Record reads, and report those that are not ordered after the last write."""
        cells, me, times, active = self._accesses(offsets, num_bytes, lanes)
        writer = self._writer[cells]
        if self._needs_initial_write and (missing := writer == _NONE).any():
            self._report(
                FaultKind.UNINITIALIZED,
                instruction,
                active,
                missing,
                lambda _: f"{self._name} memory is read before any thread writes it",
            )
        racing = self._unordered(writer, self._write_time[cells], me, times)
        if racing.any():
            self._report(
                FaultKind.RACE,
                instruction,
                active,
                racing,
                lambda first: f"reads {self._name} memory that {self._last_writer(cells, first)}",
            )
        self._record_readers(cells, me, times)

    def write(
        self,
        instruction: Instruction,
        offsets: Array,
        num_bytes: int,
        lanes: Lanes,
        is_atomic: bool = False,
    ) -> None:
        """Record writes, and report those that are not ordered after earlier accesses."""
        cells, me, times, active = self._accesses(offsets, num_bytes, lanes)
        racing = self._unordered(self._writer[cells], self._write_time[cells], me, times)
        if is_atomic:
            racing &= ~self._is_atomic[cells]
        if racing.any():
            self._report(
                FaultKind.RACE,
                instruction,
                active,
                racing,
                lambda first: f"writes {self._name} memory that {self._last_writer(cells, first)}",
            )
        racing = self._unordered(self._reader[cells], self._read_time[cells], me, times)
        if racing.any():
            self._report(
                FaultKind.RACE,
                instruction,
                active,
                racing,
                lambda first: f"writes {self._name} memory that {self._last_reader(cells, first)}",
            )
        self._writer[cells] = me
        self._write_time[cells] = times
        self._write_place[cells] = instruction.index
        self._is_atomic[cells] = is_atomic
        if not is_atomic:
            twice = self._writer[cells] != me
            if twice.any():
                self._report(
                    FaultKind.RACE,
                    instruction,
                    active,
                    twice,
                    lambda _: f"several threads write one element of {self._name} memory at once",
                )

    def _accesses(
        self, offsets: Array, num_bytes: int, lanes: Lanes
    ) -> tuple[Array, Array, Array, Array]:
        """Return the elements, the threads and their times; one row a lane for wide accesses."""
        grid = self._grid
        me, times = grid.unique[lanes], self._clocks.times[lanes]
        cells = offsets // self._granule if self._granule > 1 else offsets
        if num_bytes > self._granule:
            cells = cells[:, None] + np.arange(num_bytes // self._granule)
            me = np.broadcast_to(me[:, None], cells.shape)
            times = np.broadcast_to(times[:, None], cells.shape)
        return cells, me, times, grid.lanes[lanes]

    def _unordered(self, other: Array, other_time: Array, me: Array, times: Array) -> Array:
        """Return which accesses of other threads no barrier orders before those of `me`."""
        suspects = (other != me) & (other != _NONE)
        if not suspects.any():
            return suspects
        threads = self._grid.num_threads
        other_block = np.where(other >= 0, other // threads, _SEVERAL - other)
        same_block = (other != _SEVERAL_BLOCKS) & (other_block == me // threads)
        return suspects & ~(same_block & (other_time < times))

    def _record_readers(self, cells: Array, me: Array, times: Array) -> None:
        threads = self._grid.num_threads
        before, before_time = self._reader[cells], self._read_time[cells]
        several = (_SEVERAL - me // threads).astype(np.int32)
        self._reader[cells] = me
        self._read_time[cells] = times
        shared = self._reader[cells] != me  # Another lane of this instruction reads it too.
        earlier = self._unordered(before, before_time, me, times)
        if shared.any() or earlier.any():
            groups = np.where(earlier & (before == _SEVERAL_BLOCKS), _SEVERAL_BLOCKS, several)
            if earlier.any():
                block = np.where(before >= 0, before // threads, _SEVERAL - before)
                groups = np.where(
                    earlier & (block != me // threads), np.int32(_SEVERAL_BLOCKS), groups
                )
            # Blocks run side by side: lanes of several blocks may read one element at once.
            other = self._reader[cells]
            mixed = shared & (np.where(other >= 0, other // threads, -1) != me // threads)
            groups = np.where(mixed, np.int32(_SEVERAL_BLOCKS), groups)
            chosen = shared | earlier
            self._reader[cells[chosen]] = groups[chosen]

    def _report(
        self,
        kind: FaultKind,
        instruction: Instruction,
        lanes: Array,
        faulty: Array,
        message: Callable[[tuple[int, ...]], str],
    ) -> None:
        first = tuple(int(index[0]) for index in np.nonzero(faulty))
        rows = faulty if faulty.ndim == 1 else faulty.any(axis=1)
        self._faults.report(kind, instruction, lanes[rows], message(first))

    def _last_writer(self, cells: Array, first: tuple[int, ...]) -> str:
        cell = cells[first]
        place = self._instructions[self._write_place[cell]]
        line = f" at line {place.source_line}" if place.source_line else ""
        who = self._grid.thread_name(int(self._writer[cell]))
        return f"{who} writes{line}, without a barrier between them"

    def _last_reader(self, cells: Array, first: tuple[int, ...]) -> str:
        reader = int(self._reader[cells[first]])
        if reader >= 0:
            who = self._grid.thread_name(reader) + " reads"
        elif reader == _SEVERAL_BLOCKS:
            who = "several blocks read"
        else:
            who = "several threads read"
        return f"{who}, without a barrier between them"

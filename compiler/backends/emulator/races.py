"""Shadow memory: who wrote and who read each element last, and whether they were ordered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compiler.backends.emulator.clocks import Clocks
from compiler.backends.emulator.faults import FaultKind, FaultLog
from compiler.backends.emulator.grid import WARP_SIZE, Grid
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array

_NONE = -1
_SEVERAL_BLOCKS = -2
_SEVERAL = -3
"""Several threads of block b are `_SEVERAL - b`."""


class ShadowMemory:
    """What happened to each element of a memory.

    Args:
        name: The name of the memory in messages.
        num_bytes: The size of the memory.
        granule: The size of an element: the smallest access of the program.
        num_columns: The readers of an element are kept for each warp of a block, or in one column.
        is_shared: Whether each block has a part of its own, which no thread writes initially.
    """

    def __init__(
        self,
        name: str,
        num_bytes: int,
        granule: int,
        *,
        num_columns: int = 1,
        is_shared: bool = False,
    ) -> None:
        count = -(-num_bytes // granule)
        self._name = name
        self._granule = granule
        self._num_columns = num_columns
        self._is_shared = is_shared
        self._writer = np.full(count, _NONE, np.int32)
        self._write_time = np.zeros(count, np.int32)
        self._write_place = np.zeros(count, np.int32)
        self._is_atomic = np.zeros(count, np.bool_)
        self._is_pending: Array | None = None
        self._by_engine: Array | None = None
        self._reader = np.full(count * num_columns, _NONE, np.int32)
        self._read_time = np.zeros(count * num_columns, np.int32)

    def attach(
        self, grid: Grid, clocks: Clocks, faults: FaultLog, instructions: Sequence[PtxInstruction]
    ) -> None:
        """Follow the threads of some blocks from now on."""
        self._grid = grid
        self._clocks = clocks
        self._faults = faults
        self._instructions = instructions

    def read(self, access: LaneAccess) -> None:
        """Record reads, and report those that are not ordered after the last write."""
        cells, active = self._accesses(access)
        writer = self._writer[cells]
        if self._is_shared and (missing := writer == _NONE).any():
            self._report_missing(access.instruction, active, missing)
        self._check_pending(access.instruction, cells, active)
        racing = self._unordered(writer, self._write_time[cells], active)
        if access.is_atomic:
            racing &= ~self._is_atomic[cells]
        if racing.any():
            message = f"reads {self._name} memory that {self._last_writer(cells[racing][0])}"
            self._report(FaultKind.RACE, access.instruction, active, racing, message)
        if not access.is_atomic:
            self._record_readers(cells, active)

    def write(self, access: LaneAccess) -> None:
        """Record writes, and report those that are not ordered after earlier accesses."""
        cells, active = self._accesses(access)
        self._check_pending(access.instruction, cells, active)
        racing = self._unordered(self._writer[cells], self._write_time[cells], active)
        if access.is_atomic:
            racing &= ~self._is_atomic[cells]
        if racing.any():
            message = f"writes {self._name} memory that {self._last_writer(cells[racing][0])}"
            self._report(FaultKind.RACE, access.instruction, active, racing, message)
        self._check_readers(access.instruction, cells, active)
        self._record_writers(access.instruction, cells, active)
        self._is_atomic[cells] = access.is_atomic
        if not access.is_atomic:
            twice = self._writer[cells] != self._grid.unique[active]
            if twice.any():
                message = f"several threads write one element of {self._name} memory at once"
                self._report(FaultKind.RACE, access.instruction, active, twice, message)

    def read_by_engine(self, access: LaneAccess) -> None:
        """Record reads by the copy engine or by asynchronous products, which need a fence."""
        self.read(access)
        cells, active = self._accesses(access)
        grid, clocks, times = self._grid, self._clocks, self._write_time[cells]
        writers = self._writer[cells]
        lanes_of_writers = active - grid.threads[active] + writers % grid.num_threads
        fenced = np.maximum(clocks.fenced[lanes_of_writers], clocks.fenced[active])
        missing = (writers >= 0) & (fenced < times)
        if self._by_engine is not None:
            missing &= ~self._by_engine[cells]
        if missing.any():
            message = (
                "no fence.proxy.async makes the data visible that "
                f"{self._writer_name(cells[missing][0])}"
            )
            self._report(FaultKind.MISSING_FENCE, access.instruction, active, missing, message)

    def begin_write(self, access: LaneAccess) -> None:
        """Record the start of an asynchronous write: until its end no thread may access it."""
        self.write(access)
        if self._is_pending is None:
            self._is_pending = np.zeros(len(self._writer), np.bool_)
        self._is_pending[self._accesses(access)[0]] = True

    def begin_write_by_engine(self, access: LaneAccess) -> None:
        """Record the start of a write by the copy engine."""
        self.begin_write(access)
        if self._by_engine is None:
            self._by_engine = np.zeros(len(self._writer), np.bool_)
        self._by_engine[self._accesses(access)[0]] = True

    def end_write(self, access: LaneAccess) -> None:
        """Record the end of an asynchronous write: its data has arrived."""
        cells, _ = self._accesses(access)
        assert self._is_pending is not None
        self._is_pending[cells] = False

    def rewrite(self, access: LaneAccess) -> None:
        """Record that data becomes visible now, to the threads of `lanes` alone."""
        self._record_writers(access.instruction, *self._accesses(access))

    def _accesses(self, access: LaneAccess) -> tuple[Array, Array]:
        """Return the elements and their lanes; one row a lane for wide accesses."""
        active, offsets = self._grid.lanes[access.lanes], access.offsets
        cells = offsets // self._granule if self._granule > 1 else offsets
        if access.num_bytes > self._granule:
            cells = cells[:, None] + np.arange(access.num_bytes // self._granule)
            active = np.broadcast_to(active[:, None], cells.shape)
        return cells, active

    def _unordered(self, other: Array, times: Array, active: Array) -> Array:
        """Return which accesses of other threads did not happen before now."""
        grid = self._grid
        suspects = (other != grid.unique[active]) & (other != _NONE)
        if self._is_shared:
            suspects &= times > self._clocks.floor[active]
        if not suspects.any():
            return suspects
        index = np.nonzero(suspects)
        threads, lanes = other[index], active[index]
        size = grid.num_threads
        blocks = np.where(threads >= 0, threads // size, _SEVERAL - threads)
        warps = np.where(threads >= 0, threads % size // WARP_SIZE, -1)
        same_block = (threads != _SEVERAL_BLOCKS) & (blocks == grid.unique[lanes] // size)
        ordered = same_block & self._clocks.happened_before(warps, times[index], lanes)
        suspects[index] = ~ordered
        return suspects

    def _check_pending(self, instruction: PtxInstruction, cells: Array, active: Array) -> None:
        if self._is_pending is None:
            return
        pending = self._is_pending[cells]
        if pending.any():
            writer = self._instructions[self._write_place[cells[pending][0]]]
            line = f" of line {writer.source_line}" if writer.source_line else ""
            message = (
                f"accesses {self._name} memory before the asynchronous copy{line} into it is "
                "waited for"
            )
            self._report(FaultKind.EARLY_ACCESS, instruction, active, pending, message)

    def _check_readers(self, instruction: PtxInstruction, cells: Array, active: Array) -> None:
        for column in range(self._num_columns):
            index = cells * self._num_columns + column
            racing = self._unordered(self._reader[index], self._read_time[index], active)
            if racing.any():
                reader = int(self._reader[index[racing][0]])
                message = f"writes {self._name} memory that {self._reader_name(reader)}"
                self._report(FaultKind.RACE, instruction, active, racing, message)

    def _record_writers(self, instruction: PtxInstruction, cells: Array, active: Array) -> None:
        self._writer[cells] = self._grid.unique[active]
        self._write_time[cells] = self._clocks.times[active]
        self._write_place[cells] = instruction.index
        if self._by_engine is not None:
            self._by_engine[cells] = False

    def _record_readers(self, cells: Array, active: Array) -> None:
        grid = self._grid
        me, threads = grid.unique[active], grid.num_threads
        if self._num_columns > 1:
            cells = cells * self._num_columns + grid.threads[active] // WARP_SIZE
        before = self._reader[cells]
        earlier = self._unordered(before, self._read_time[cells], active)
        self._reader[cells] = me
        self._read_time[cells] = self._clocks.times[active]
        last = self._reader[cells]
        shared = last != me  # Another lane of this instruction reads it too.
        chosen = shared | earlier
        if not chosen.any():
            return
        mine = me // threads
        if self._is_shared:
            self._reader[cells[chosen]] = _SEVERAL - mine[chosen]
            return
        # Blocks run side by side: lanes of several blocks may read one element at once.
        alien = shared & (np.where(last >= 0, last // threads, mine) != mine)
        block = np.where(before >= 0, before // threads, _SEVERAL - before)
        alien |= earlier & ((before == _SEVERAL_BLOCKS) | (block != mine))
        groups = np.where(alien, _SEVERAL_BLOCKS, _SEVERAL - mine).astype(np.int32)
        self._reader[cells[chosen]] = groups[chosen]
        # One lane may find several blocks where another one finds its own block only.
        alien = chosen & (groups == _SEVERAL_BLOCKS)
        self._reader[cells[alien]] = _SEVERAL_BLOCKS

    def _report_missing(self, instruction: PtxInstruction, active: Array, missing: Array) -> None:
        """Report reads of elements that no thread has written.

        A compiler joins loads of neighbours, of which the program discards some: an access counts
        if all of its elements are missing.
        """
        is_wide = missing.ndim > 1
        missing = missing.all(axis=1) if is_wide else missing
        if missing.any():
            lanes = (active[:, 0] if is_wide else active)[missing]
            message = f"{self._name} memory is read before any thread writes it"
            self._faults.report(FaultKind.UNINITIALIZED, instruction, lanes, message)

    def _report(
        self,
        kind: FaultKind,
        instruction: PtxInstruction,
        active: Array,
        faulty: Array,
        message: str,
    ) -> None:
        lanes = active[faulty] if faulty.ndim == 1 else active[faulty.any(axis=1), 0]
        self._faults.report(kind, instruction, lanes, message)

    def _last_writer(self, cell: int) -> str:
        return f"{self._writer_name(cell)}, and nothing orders the two"

    def _writer_name(self, cell: int) -> str:
        writer = self._instructions[self._write_place[cell]]
        line = f" at line {writer.source_line}" if writer.source_line else ""
        who = self._grid.thread_name(int(self._writer[cell]))
        return f"{who} writes{line}"

    def _reader_name(self, reader: int) -> str:
        if reader >= 0:
            who = self._grid.thread_name(reader) + " reads"
        else:
            who = "several blocks read" if reader == _SEVERAL_BLOCKS else "several threads read"
        return f"{who}, and nothing orders the two"

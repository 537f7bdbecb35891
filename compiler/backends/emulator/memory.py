"""The memories of a run: global, shared and local, with checked accesses.

Each is one array of bytes. Buffers of global memory stand apart by unmapped pages; each block has
its part of the shared array, each thread its part of the local array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compiler.backends.emulator.counters import SECTOR_BYTES, AccessCounter, Counters
from compiler.backends.emulator.faults import FaultKind, FaultLog
from compiler.backends.emulator.grid import Grid
from compiler.backends.emulator.lane_access import LaneAccess
from compiler.backends.emulator.races import ShadowMemory
from compiler.backends.emulator.types import Array, unsigned

GLOBAL_WINDOW = 0x7F00_0000_0000
SHARED_WINDOW = 0x7E00_0000_0000
LOCAL_WINDOW = 0x7D00_0000_0000
PARAMETER_WINDOW = 0x7C00_0000_0000
"""Where generic addresses of each memory begin."""

WINDOW_BITS = 40
_PAGE_BITS = 12
_PAGE = 1 << _PAGE_BITS


class Memory:
    """A memory of bytes.

    Attributes:
        name: The name in messages.
        window: The generic address of its first byte.
        data: The bytes.
        shadow: The accesses so far; None if they are not followed.
        counter: Counts the costs of accesses; None if they are not counted.
    """

    def __init__(self, name: str, window: int, num_bytes: int, fill: int) -> None:
        self.name = name
        self.window = window
        self.data = np.full(-(-num_bytes // 16) * 16, fill, np.uint8)
        self.shadow: ShadowMemory | None = None
        self.counter: AccessCounter | None = None
        self._views = {size: self.data.view(unsigned(size)) for size in (1, 2, 4, 8)}

    def elements(self, num_bytes: int) -> Array:
        """Return the memory as unsigned integers of a size."""
        return self._views[num_bytes]

    def resolve(self, access: LaneAccess) -> LaneAccess:
        """Report illegal addresses; return the rest of the access, by positions in `data`."""
        raise NotImplementedError

    def read(self, access: LaneAccess) -> None:
        """Record a read."""
        if self.shadow is not None:
            self.shadow.read(access)
        if self.counter is not None:
            self.counter.count(access)
        self._mark(access.offsets, is_read=True)

    def write(self, access: LaneAccess) -> None:
        """Record a write."""
        if self.shadow is not None:
            self.shadow.write(access)
        if self.counter is not None:
            self.counter.count(access)
        self._mark(access.offsets, is_read=False)

    def _mark(self, offsets: Array, *, is_read: bool) -> None:
        """Record which parts of the memory were accessed at all."""


class _Checks:
    """Reports illegal addresses of one access and leaves the legal ones."""

    def __init__(self, faults: FaultLog, grid: Grid) -> None:
        self._faults = faults
        self._grid = grid

    def spread(self, access: LaneAccess) -> Array:
        """Return one address a lane."""
        if np.ndim(access.offsets):
            return np.asarray(access.offsets)
        return np.full(len(self._grid.lanes[access.lanes]), access.offsets, np.int64)

    def keep(self, kind: FaultKind, message: str, access: LaneAccess, legal: Array) -> LaneAccess:
        """Report a fault of the lanes that are not legal, and return the others."""
        active = self._grid.lanes[access.lanes]
        self._faults.report(kind, access.instruction, active[~legal], message)
        return replace(access, offsets=access.offsets[legal], lanes=active[legal])

    def aligned(self, access: LaneAccess) -> LaneAccess:
        """Return the lanes whose address is a multiple of the size of the access."""
        size = access.num_bytes
        if size > 1 and (wrong := (access.offsets & (size - 1)) != 0).any():
            message = f"an access of {size} bytes at an address that is no multiple of them"
            return self.keep(FaultKind.MISALIGNED, message, access, ~wrong)
        return access


class GlobalMemory(Memory):
    """Global and constant memory: buffers on pages of their own.

    Args:
        contents: The first bytes of each buffer.
    """

    def __init__(self, contents: Sequence[tuple[str, Array]]) -> None:
        self._names: list[str] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        position = _PAGE
        for name, content in contents:
            self._names.append(name)
            self._starts.append(position)
            self._ends.append(position + content.nbytes)
            # At least one page between two buffers is unmapped.
            position += (-(-content.nbytes // _PAGE) + 1) * _PAGE
        super().__init__("global", GLOBAL_WINDOW, position, 0)
        pages = position >> _PAGE_BITS
        self._first = np.zeros(pages, np.int64)
        self._last = np.full(pages, -1, np.int64)
        for (_, content), start, end in zip(contents, self._starts, self._ends, strict=True):
            self.data[start:end] = content.reshape(-1).view(np.uint8)
            used = slice(start >> _PAGE_BITS, -(-end // _PAGE))
            self._first[used] = start
            self._last[used] = end

    def start(self, number: int) -> int:
        """Return the position of a buffer in `data`."""
        return self._starts[number]

    def address(self, number: int) -> int:
        """Return the address of a buffer."""
        return self.window + self._starts[number]

    def transfer(self, start: int, sectors: Array, is_read: bool) -> None:
        """Count sectors that the copy engine moves, from a position in `data` on."""
        self._mark(start + SECTOR_BYTES * sectors, is_read=is_read)
        self._counters.num_transferred += len(sectors)

    def content(self, number: int) -> Array:
        """Return the bytes of a buffer."""
        return self.data[self._starts[number] : self._ends[number]]

    def attach(self, faults: FaultLog, grid: Grid, counters: Counters) -> None:
        """Report faults of the threads of some blocks from now on, and count their accesses."""
        self._checks = _Checks(faults, grid)
        self._counters = counters
        self.counter = counters.global_

    def _mark(self, offsets: Array, *, is_read: bool) -> None:
        counters = self._counters
        touched = counters.sectors_read if is_read else counters.sectors_written
        touched[offsets // SECTOR_BYTES] = True

    def resolve(self, access: LaneAccess) -> LaneAccess:
        """Report illegal addresses; return the rest of the access, by positions in `data`."""
        offsets, num_bytes = self._checks.spread(access) - self.window, access.num_bytes
        access = replace(access, offsets=offsets)
        if not len(offsets):
            return access
        lowest, highest = int(offsets.min()), int(offsets.max()) + num_bytes
        # One comparison decides in most cases: all lanes access one buffer.
        in_range = lowest >= 0 and highest <= len(self.data)
        page = lowest >> _PAGE_BITS if in_range else 0
        if not (self._first[page] <= lowest and highest <= self._last[page]):
            pages = np.clip(offsets >> _PAGE_BITS, 0, len(self._first) - 1)
            legal = (self._first[pages] <= offsets) & (offsets + num_bytes <= self._last[pages])
            if not legal.all():
                message = self._nearest(int(offsets[~legal][0]), num_bytes)
                access = self._checks.keep(FaultKind.OUT_OF_BOUNDS, message, access, legal)
        return self._checks.aligned(access)

    def _nearest(self, offset: int, num_bytes: int) -> str:
        """Describe an illegal address by the nearest buffer."""
        access = f"an access of {num_bytes} bytes"
        for name, start, end in zip(self._names, self._starts, self._ends, strict=True):
            if start - _PAGE // 2 <= offset < end + _PAGE // 2:
                return f"{access} at byte {offset - start} of {name}, which has {end - start} bytes"
        return f"{access} at {offset + self.window:#x}, which is not near any buffer"


class PartedMemory(Memory):
    """Shared memory or local memory: an equal part for each block or thread.

    Args:
        name: "shared" or "local".
        window: The generic address of its first byte.
        grid: The threads.
        num_bytes: The size of a part.
        faults: Where faults are reported.
    """

    def __init__(
        self, name: str, window: int, grid: Grid, num_bytes: int, faults: FaultLog
    ) -> None:
        parts = grid.slots if name == "shared" else grid.lanes
        # A multiple of the 32 banks of 4 bytes, so that banks follow from positions in `data`.
        self.stride = -(-num_bytes // 128) * 128 if name == "shared" else -(-num_bytes // 16) * 16
        self.num_bytes = num_bytes
        count = int(parts[-1]) + 1
        # Bytes that are never written read as NaN of each type.
        super().__init__(name, window, max(count * self.stride, 16), 0xFF)
        self.bases = (parts * self.stride).astype(np.int64)
        self._checks = _Checks(faults, grid)

    def resolve(self, access: LaneAccess) -> LaneAccess:
        """Report illegal addresses; return the rest of the access, by positions in `data`."""
        offsets, num_bytes = self._checks.spread(access), access.num_bytes
        access = replace(access, offsets=offsets)
        if not len(offsets):
            return access
        if int(offsets.min()) < 0 or int(offsets.max()) + num_bytes > self.num_bytes:
            legal = (offsets >= 0) & (offsets + num_bytes <= self.num_bytes)
            message = (
                f"an access of {num_bytes} bytes at byte {int(offsets[~legal][0])} of the "
                f"{self.name} memory, which has {self.num_bytes} bytes"
            )
            access = self._checks.keep(FaultKind.OUT_OF_BOUNDS, message, access, legal)
        access = self._checks.aligned(access)
        return replace(access, offsets=access.offsets + self.bases[access.lanes])


class LocalMemory(PartedMemory):
    """Local memory: a thread sees its own part only, so initial writes alone are followed."""

    def __init__(self, grid: Grid, num_bytes: int, faults: FaultLog) -> None:
        super().__init__("local", LOCAL_WINDOW, grid, num_bytes, faults)
        self._faults = faults
        self._grid = grid
        self._is_written = np.zeros(len(self.data), np.bool_)

    def read(self, access: LaneAccess) -> None:
        """Report reads of bytes that the thread has not written."""
        offsets = access.offsets
        has_value = self._is_written[offsets] & self._is_written[offsets + (access.num_bytes - 1)]
        if not has_value.all():
            self._faults.report(
                FaultKind.UNINITIALIZED,
                access.instruction,
                self._grid.lanes[access.lanes][~has_value],
                "a thread reads an element of a local array before it writes it",
            )

    def write(self, access: LaneAccess) -> None:
        """Record written bytes."""
        for byte in range(access.num_bytes):
            self._is_written[access.offsets + byte] = True

"""Copies of boxes of tensors by the copy engine (TMA), as late as the program allows.

The order of bytes in shared memory follows the swizzle of the tensor map: within each period of
1024, 512 or 256 bytes, pieces of 16 bytes are exchanged by the number of their row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from compiler.backends.emulator.errors import EmulatorError
from compiler.backends.emulator.types import Array

PIECE_BYTES = 16
TENSOR_MAP_BYTES = 128


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves: an argument of a kernel.

    Attributes:
        tensor: A C-contiguous array.
        box: The extents of the box, in the order of the dimensions of the tensor.
        swizzle: The bytes of a swizzled row: 0, 32, 64 or 128.
    """

    tensor: Array
    box: tuple[int, ...]
    swizzle: int = 128

    def __post_init__(self) -> None:
        """Check the limits of tensor maps."""
        item = self.tensor.dtype.itemsize
        row = self.box[-1] * item
        if self.tensor.ndim != len(self.box) or not self.tensor.flags.c_contiguous:
            raise EmulatorError("a tensor map has a C-contiguous tensor and a box of its rank")
        if self.swizzle not in (0, 32, 64, 128) or (self.swizzle and row > self.swizzle):
            raise EmulatorError(f"a row of {row} bytes does not fit a swizzle of {self.swizzle}")
        if row % PIECE_BYTES or any(not 0 < extent <= 256 for extent in self.box):
            raise EmulatorError(f"box {self.box}: rows of 16 bytes and extents up to 256 only")
        if any(stride % PIECE_BYTES for stride in self.tensor.strides[:-1]):
            raise EmulatorError("the strides of a tensor map are multiples of 16 bytes")

    @property
    def num_bytes(self) -> int:
        """Return the size of a box."""
        return math.prod(self.box) * int(self.tensor.dtype.itemsize)

    @property
    def alignment(self) -> int:
        """Return what the address of a box in shared memory is a multiple of."""
        return max(128, 8 * self.swizzle)

    def take(self, memory: Array, corner: tuple[int, ...]) -> Array:
        """Return the bytes of a box; elements outside of the tensor are 0.

        Args:
            memory: The bytes of the tensor.
            corner: The first element, in the order of the dimensions.
        """
        content = np.zeros(self.box, self.tensor.dtype)
        inside, source = self._overlap(corner)
        content[inside] = self._elements(memory)[source]
        return content.reshape(-1).view(np.uint8)

    def put(self, memory: Array, corner: tuple[int, ...], content: Array) -> None:
        """Write the bytes of a box; elements outside of the tensor are dropped."""
        inside, target = self._overlap(corner)
        elements = content.reshape(-1).view(self.tensor.dtype).reshape(self.box)
        self._elements(memory)[target] = elements[inside]

    def sectors(self, corner: tuple[int, ...], sector_bytes: int) -> Array:
        """Return the positions in the tensor of the sectors of a box, in units of sectors."""
        _, inside = self._overlap(corner)
        *outer, inner = inside
        item = self.tensor.dtype.itemsize
        rows = np.zeros(1, np.int64)
        for part, stride in zip(outer, self.tensor.strides[:-1], strict=True):
            steps = np.arange(part.start, part.stop) * stride
            rows = (rows[:, None] + steps).reshape(-1)
        first, last = inner.start * item, inner.stop * item
        if first == last or not len(rows):
            return rows[:0]
        starts, ends = (rows + first) // sector_bytes, (rows + last - 1) // sector_bytes
        width = int((ends - starts).max()) + 1
        table = starts[:, None] + np.arange(width)
        return table[table <= ends[:, None]]

    def _elements(self, memory: Array) -> Array:
        return memory.view(self.tensor.dtype).reshape(self.tensor.shape)

    def _overlap(self, corner: tuple[int, ...]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Return the part of the box that lies in the tensor: in the box, and in the tensor."""
        inside, outside = [], []
        for start, extent, size in zip(corner, self.box, self.tensor.shape, strict=True):
            first = min(max(start, 0), size)
            last = max(first, min(start + extent, size))
            outside.append(slice(first, last))
            inside.append(slice(first - start, last - start) if last > first else slice(0, 0))
        return tuple(inside), tuple(outside)

    def pieces(self, address: int) -> Array:
        """Return the addresses of the pieces of 16 bytes of a box in shared memory."""
        plain = address + PIECE_BYTES * np.arange(self.num_bytes // PIECE_BYTES)
        return swizzled(plain, self.swizzle)


def swizzled(addresses: Array, swizzle: int) -> Array:
    """Return the addresses after exchanging pieces of 16 bytes within rows of `swizzle` bytes."""
    if not swizzle:
        return addresses
    mask = swizzle // PIECE_BYTES - 1
    return addresses ^ ((addresses >> 7 & mask) << 4)


class TensorCopies:
    """The copies that are under way, in the order of their starts."""

    def __init__(self) -> None:
        self._completions: list[Callable[[], None]] = []

    def start(self, completion: Callable[[], None]) -> None:
        """Start a copy; `completion` writes its data and signals its mbarrier."""
        self._completions.append(completion)

    def complete_one(self) -> bool:
        """Complete the first copy; return False if none is under way."""
        if not self._completions:
            return False
        self._completions.pop(0)()
        return True

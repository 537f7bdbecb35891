"""The threads of a run as lanes: lane = (position of the block in the run) * threads + thread."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from compiler.backends.emulator.types import Array

Coordinates: TypeAlias = tuple[int, int, int]
"""A position or an extent along x, y and z."""

WARP_SIZE = 32


class Grid:
    """The blocks that run together, and the lanes of their threads.

    Attributes:
        extents: The numbers of blocks along x, y and z.
        block: The numbers of threads along x, y and z.
        blocks: The linear numbers of the blocks that run.
        num_threads: The threads of a block.
        num_warps: The warps of a block.
        num_lanes: The lanes of all blocks that run.
        lanes: Their numbers.
        slots: For each lane, the position of its block in `blocks`.
        threads: For each lane, the number of its thread in the block.
        unique: For each lane, a number of its thread that no other thread of the grid has.
    """

    def __init__(self, extents: Coordinates, block: Coordinates, blocks: Array) -> None:
        self.extents = extents
        self.block = block
        self.blocks = blocks
        self.num_threads = math.prod(block)
        self.num_warps = -(-self.num_threads // WARP_SIZE)
        self.num_lanes = len(blocks) * self.num_threads
        self.lanes = np.arange(self.num_lanes, dtype=np.int64)
        self.slots = self.lanes // self.num_threads
        self.threads = (self.lanes % self.num_threads).astype(np.int32)
        # Warps of the run: the last warp of a block may be partial.
        self.warps = self.slots * self.num_warps + self.threads // WARP_SIZE
        self.unique = (blocks[self.slots] * self.num_threads + self.threads).astype(np.int32)

    def coordinates(self, lane: int) -> tuple[Coordinates, Coordinates]:
        """Return the block and the thread of a lane."""
        block = int(self.blocks[self.slots[lane]])
        return _three(block, self.extents), _three(int(self.threads[lane]), self.block)

    def thread_name(self, unique: int) -> str:
        """Describe a thread by its unique number."""
        block = _three(unique // self.num_threads, self.extents)
        thread = _three(unique % self.num_threads, self.block)
        return f"thread {thread} of block {block}"

    def special_registers(self) -> dict[str, Array]:
        """Return the registers that name threads and blocks."""
        blocks = self.blocks[self.slots]
        registers: dict[str, Array] = {}
        for axis, letter in enumerate("xyz"):
            registers[f"%ctaid.{letter}"] = _along(blocks, self.extents, axis)
            registers[f"%tid.{letter}"] = _along(self.threads, self.block, axis)
            registers[f"%ntid.{letter}"] = self._constant(self.block[axis])
            registers[f"%nctaid.{letter}"] = self._constant(self.extents[axis])
            # Without clusters each block is a cluster of its own.
            registers[f"%cluster_ctaid.{letter}"] = self._constant(0)
            registers[f"%cluster_nctaid.{letter}"] = self._constant(1)
        position = (self.threads % WARP_SIZE).astype(np.uint32)
        one = np.uint32(1)
        registers["%laneid"] = position
        registers["%warpid"] = (self.threads // WARP_SIZE).astype(np.uint32)
        registers["%lanemask_eq"] = one << position
        registers["%lanemask_lt"] = (one << position) - one
        registers["%lanemask_le"] = registers["%lanemask_lt"] | registers["%lanemask_eq"]
        registers["%lanemask_gt"] = ~registers["%lanemask_le"]
        registers["%lanemask_ge"] = ~registers["%lanemask_lt"]
        registers["%cluster_ctarank"] = self._constant(0)
        registers["%cluster_nctarank"] = self._constant(1)
        registers["%clock"] = self._constant(0)
        registers["%smid"] = self._constant(0)
        registers["%clock64"] = registers["%clock"].astype(np.uint64)
        registers["%globaltimer"] = registers["%clock64"]
        return registers

    def _constant(self, value: int) -> Array:
        return np.full(self.num_lanes, value, np.uint32)


def _three(number: int, extents: Coordinates) -> Coordinates:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def _along(numbers: Array, extents: Coordinates, axis: int) -> Array:
    x, y, _ = extents
    step = (1, x, x * y)[axis]
    return (numbers // step % extents[axis]).astype(np.uint32)

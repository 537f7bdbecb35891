"""The occupancy of a GPU's multiprocessors, in closed form, for single kernels and for batches.

A multiprocessor runs as many blocks at once as its warps, registers and shared memory allow. The
formulas and granularities are those of NVIDIA's occupancy calculator (`cuda_occupancy.h` of CUDA
13.0), which are the same for all architectures from sm_80 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.target.gpus import WARP_SIZE, GpuArch

REGISTER_UNIT = 256
"""The registers of a warp are allocated in units of this many."""
SHARED_UNIT = 128
"""The shared memory of a block is allocated in units of this many bytes."""
RESERVED_SHARED_BYTES = 1 << 10
"""The shared memory that the system uses in each block."""
NUM_PARTITIONS = 4
"""A multiprocessor has so many parts, each with its own registers; a warp runs in one of them."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The number of blocks that a multiprocessor runs at once, by each limit.

    Attributes:
        warps_per_block: The warps of a block, the last one perhaps not full.
        by_warps, by_registers, by_shared: The number of blocks that this resource allows.
        max_blocks: The number of blocks that the architecture allows.
        max_warps: The number of warps that the architecture allows.
    """

    warps_per_block: Counts
    by_warps: Counts
    by_registers: Counts
    by_shared: Counts
    max_blocks: int
    max_warps: int

    @property
    def blocks(self) -> Counts:
        """Return the number of blocks; 0 for kernels that cannot run."""
        limits = np.minimum(np.minimum(self.by_warps, self.by_registers), self.by_shared)
        blocks: Counts = np.minimum(limits, self.max_blocks)
        return blocks

    @property
    def share(self) -> npt.NDArray[np.float64]:
        """Return the share of the warps that are in use, 0 to 1."""
        share: npt.NDArray[np.float64] = self.blocks * self.warps_per_block / self.max_warps
        return share


def occupancy(
    arch: GpuArch,
    threads: npt.ArrayLike,
    registers: npt.ArrayLike,
    shared_bytes: npt.ArrayLike,
) -> Occupancy:
    """Return the occupancy of kernels; the arguments are numbers, or arrays of one shape.

    Args:
        arch: The limits of the architecture.
        threads: The threads of a block.
        registers: The registers of a thread.
        shared_bytes: The shared memory that a block allocates.
    """
    threads = np.asarray(threads, np.int64)
    registers = np.maximum(np.asarray(registers, np.int64), 1)
    shared_bytes = np.asarray(shared_bytes, np.int64)
    warps = np.maximum(-(-threads // WARP_SIZE), 1)
    registers_of_warp = -(-registers * WARP_SIZE // REGISTER_UNIT) * REGISTER_UNIT
    # A warp takes all its registers from one partition.
    warps_in_partition = arch.registers_of_sm // NUM_PARTITIONS // registers_of_warp
    by_registers = warps_in_partition * NUM_PARTITIONS // warps
    allocated = -(-(shared_bytes + RESERVED_SHARED_BYTES) // SHARED_UNIT) * SHARED_UNIT
    by_shared = arch.shared_bytes_of_sm // allocated
    return Occupancy(
        warps,
        np.where(threads <= arch.max_threads, arch.max_warps // warps, 0),
        np.where(registers <= arch.max_registers, by_registers, 0),
        np.where(shared_bytes <= arch.shared_bytes, by_shared, 0),
        arch.max_blocks,
        arch.max_warps,
    )

"""The kernel of a product of warpgroups, for a batch of candidates.

The copy engine fetches chunks of the operands into a ring in shared memory, and warpgroups multiply
them from there. A tile counts as a block, even if a block computes several tiles.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.gpus import WARP_SIZE
from compiler.target.matrix_rates import matrix_rate
from compiler.target.occupancy import Occupancy, occupancy
from compiler.target.tensor_cores import WARPGROUP_SIZE
from tuner.space.analysis.block_facts import TensorAccess
from tuner.space.features.cuda.access import KernelAccess
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.roofline import LOOP_COST, MEMORY_SECS
from tuner.space.features.cuda.tensor_kernel import (
    COPY_INSTRUCTIONS,
    LINE_BYTES,
    TensorKernel,
    TensorTime,
)
from tuner.space.features.cuda.warps import SECTOR_BYTES
from tuner.space.rules.cuda.levels import CHUNK, REGISTER, THREAD, UNROLLED
from tuner.space.search_space import Mask
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.tensor_tile import WarpgroupTile

INSTRUCTION_ROWS, INSTRUCTION_STEPS = 64, 16
"""The extents m and k of the instruction."""
BARRIER_BYTES = 16
"""The two barriers of a stage."""
BASE_REGISTERS = 26
"""Registers of a thread besides sums: kernels with 128 sums, which NVRTC 13.0 compiled for sm_90a,
have 154, and those with 192 sums have 218 to 221.
"""
SHARED_REGISTERS, COMPUTE_REGISTERS = 168, 232
"""Registers of a thread of three warpgroups at the launch, and after their numbers change."""
CHUNK_INSTRUCTIONS = 24
"""Instructions of a warp for a chunk besides products: waits, arrivals and the position in the
ring. An estimate.
"""


class WarpgroupKernel(TensorKernel):
    """The kernel of a nest that warpgroups compute."""

    @property
    def ring(self) -> WarpgroupTile:
        """Return the tile."""
        tile = self.tables.nest.tensor_tile
        assert isinstance(tile, WarpgroupTile)
        return tile

    @property
    def holders(self) -> Floats:
        """Return the threads of a block that hold sums."""
        holders: Floats = self.tables.level_extents[THREAD] * WARPGROUP_SIZE
        return holders

    @property
    def threads(self) -> Floats:
        """Return the threads of a block: one more warpgroup fetches the operands."""
        return self.holders + WARPGROUP_SIZE

    @property
    def warps(self) -> Floats:
        """Return the warps of a block."""
        return self.threads / WARP_SIZE

    @cached_property
    def accumulators(self) -> Floats:
        """Return the sums that a thread holds."""
        rows, columns = (self.tables.extents[REGISTER, axis] for axis in self.ring.axes[:2])
        accumulators: Floats = rows * columns / WARPGROUP_SIZE
        return accumulators

    @property
    def pieces(self) -> Floats:
        """Return the chunks of a tile."""
        pieces: Floats = self.tables.level_extents[CHUNK]
        return pieces

    @property
    def stages(self) -> Ints:
        """Return the chunks in shared memory at once."""
        return self._values[:, self.ring.stages]

    @cached_property
    def operands(self) -> list[BoxAccess]:
        """Return the reads."""
        return [access for access in self.accesses if isinstance(access, BoxAccess)]

    @cached_property
    def chunk_bytes(self) -> Floats:
        """Return the bytes of a stage."""
        return sum((read.chunk_bytes for read in self.operands), np.zeros_like(self.threads))

    @property
    def shared_bytes(self) -> Floats:
        """Return the shared memory of a block."""
        return self.stages * (self.chunk_bytes + BARRIER_BYTES)

    @property
    def instruction_steps(self) -> Floats:
        """Return the steps of a warpgroup: in each, it multiplies all its tiles once."""
        levels = self.tables.level_extents
        steps: Floats = levels[CHUNK] * levels[UNROLLED] / INSTRUCTION_STEPS
        return steps

    @property
    def step_products(self) -> Floats:
        """Return the instructions of a warpgroup in one step."""
        products: Floats = self.tables.extents[REGISTER, self.ring.axes[0]] / INSTRUCTION_ROWS
        return products

    @property
    def step_wavefronts(self) -> Floats:
        """Return the lines of shared memory that the instructions of a warpgroup read in a step."""
        columns = self.tables.extents[REGISTER, self.ring.axes[1]]
        item = self.operands[0].access.item_bytes
        elements = (INSTRUCTION_ROWS + columns) * INSTRUCTION_STEPS
        wavefronts: Floats = self.step_products * elements * item / LINE_BYTES
        return wavefronts

    @property
    def shared_loads(self) -> Floats:
        """Return the loads of a thread from shared memory: the instructions read it themselves."""
        return np.zeros_like(self.threads)

    @property
    def unrolled(self) -> Floats:
        """Return the instructions of unrolled code: those of one chunk."""
        unrolled: Floats = (
            self.step_products * self.tables.level_extents[UNROLLED] / INSTRUCTION_STEPS
        )
        return unrolled

    @property
    def _shares_registers(self) -> Mask:
        """Return whether three warpgroups exchange registers."""
        shares: Mask = self.holders > WARPGROUP_SIZE
        return shares

    @property
    def registers(self) -> Floats:
        """Return an estimate of the registers of a thread that computes."""
        return BASE_REGISTERS + self.accumulators

    @property
    def max_registers(self) -> Floats:
        """Return the registers that such a thread may have."""
        return np.where(self._shares_registers, COMPUTE_REGISTERS, self.limits.max_registers)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Return the blocks of a multiprocessor."""
        registers = np.minimum(self.registers, self.max_registers)
        registers = np.where(self._shares_registers, SHARED_REGISTERS, registers)
        return occupancy(self.limits, self.threads, registers, self.shared_bytes)

    def _read(self, access: TensorAccess) -> KernelAccess:
        return BoxAccess(self, access)


class BoxAccess(KernelAccess):
    """An operand, of which the copy engine fetches a box for each chunk.

    A row of a box, 128 bytes, counts as a request.
    """

    def __init__(self, kernel: WarpgroupKernel, access: TensorAccess) -> None:
        super().__init__(kernel.tables, access, kernel.thread_tile)
        self._kernel = kernel
        rows, columns, self._sum_axis = kernel.ring.axes
        self._axis = rows if access.strides[rows] else columns
        self.threads = kernel.threads

    @cached_property
    def chunk_bytes(self) -> Floats:
        """Return the bytes of a chunk."""
        extents = self.tables.extents
        rows = extents[THREAD, self._axis] * extents[REGISTER, self._axis]
        chunk: Floats = rows * extents[UNROLLED, self._sum_axis] * self.access.item_bytes
        return chunk

    @cached_property
    def width(self) -> Ints:
        """Return the bytes of a piece of a row, in which the copy engine stores it."""
        return np.full(len(self.threads), 16, np.int64)

    @property
    def requests(self) -> Floats:
        """Return the rows of the boxes of a tile."""
        requests: Floats = self._kernel.pieces * self.chunk_bytes / LINE_BYTES
        return requests

    @cached_property
    def sectors_per_request(self) -> Ints:
        """Return the sectors of a row."""
        return np.full(len(self.threads), LINE_BYTES // SECTOR_BYTES, np.int64)

    @property
    def ideal_sectors(self) -> Floats:
        """Return the sectors of a row."""
        return self.sectors_per_request.astype(np.float64)

    @cached_property
    def inside(self) -> Floats:
        """Return the share of the boxes that lies in the operand."""
        return self._kernel.filled((self._axis, self._sum_axis))


class WarpgroupTime(TensorTime):
    """The estimated time of a kernel of warpgroups."""

    def __init__(self, kernel: WarpgroupKernel, rates: GpuRates) -> None:
        super().__init__(kernel, rates)
        self._ring_kernel = kernel

    @property
    def _arithmetic(self) -> Floats:
        """Return the time that the instructions of one tile keep the tensor cores busy."""
        kernel, gpu = self._ring_kernel, self._rates.gpu
        points = kernel.holders * kernel.accumulators * kernel.instruction_steps * INSTRUCTION_STEPS
        rate = matrix_rate(gpu, kernel.ring.operand, is_warpgroup=True) / gpu.num_sms
        secs: Floats = 2 * points / rate
        return secs

    @cached_property
    def _thread_instructions(self) -> Floats:
        """Return the instructions of a warp: products, the ring, and stores."""
        kernel = self._ring_kernel
        products = kernel.step_products * kernel.instruction_steps
        stores = COPY_INSTRUCTIONS * kernel.accesses[0].requests / kernel.warps
        chunks = (CHUNK_INSTRUCTIONS + LOOP_COST) * kernel.pieces
        instructions: Floats = products + stores + chunks
        return instructions

    @cached_property
    def _wavefronts(self) -> Floats:
        """Return the lines of shared memory that the engine writes and the instructions read."""
        kernel = self._ring_kernel
        warpgroups = kernel.holders / WARPGROUP_SIZE
        reads = kernel.step_wavefronts * kernel.instruction_steps * warpgroups
        wavefronts: Floats = reads + kernel.pieces * kernel.chunk_bytes / LINE_BYTES
        return wavefronts

    @cached_property
    def latency(self) -> Floats:
        """Return the time in which a block has no products under way: its first fetch, and stores.

        A persistent block fetches the next tile during the stores.
        """
        kernel = self._ring_kernel
        ahead = (kernel.stages - 1) * self._alone / kernel.pieces
        late = kernel.pieces * np.maximum(MEMORY_SECS - ahead, 0) / kernel.stages
        first = 0.0 if kernel.ring.is_persistent else MEMORY_SECS
        stores = kernel.accesses[0].issued_bytes / self._rates.l2
        latency: Floats = first + late + stores
        return latency

    @cached_property
    def _alone(self) -> Floats:
        """Return the time of one tile alone: one warpgroup fills all tensor cores."""
        return self._busy

    @cached_property
    def bytes_in_flight(self) -> Floats:
        """Return the bytes that a multiprocessor requests at once."""
        kernel = self._ring_kernel
        in_flight: Floats = kernel.chunk_bytes * kernel.stages * self.resident
        return in_flight

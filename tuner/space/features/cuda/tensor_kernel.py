"""The kernel of a product on tensor cores, for a batch of candidates.

A warp, not a thread, computes a tile. Its operands come from shared memory by `ldmatrix`, whose
rows of 16 bytes hit all banks, because their chunks are permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np

from compiler.target.gpus import WARP_SIZE
from compiler.target.matrix_rates import matrix_rate
from compiler.target.tensor_cores import FragmentMap
from tuner.space.analysis.block_facts import IterAxis, TensorAccess
from tuner.space.features.cuda.access import REGISTER_BYTES, KernelAccess
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.roofline import LOOP_COST, KernelTime
from tuner.space.features.cuda.staged_access import StagedAccess
from tuner.space.features.cuda.warps import by_distinct_rows, num_wavefronts
from tuner.space.rules.cuda.levels import CHUNK, REGISTER, STEP, THREAD
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import Floats
from tuner.space.tables.shared_copies import SharedCopy
from tuner.space.tables.tensor_tile import TensorTile

LINE_BYTES = 128
"""The bytes of a wavefront: a word from each of the 32 banks."""
CHUNK_BYTES = 16
LINE_CHUNKS = LINE_BYTES // CHUNK_BYTES
MATRIX_ROWS = 8
MAX_MATRICES = 4
"""The matrices that one `ldmatrix` loads: 8 rows of 16 bytes each."""
TRANSPOSABLE_BYTES = 2
COPY_INSTRUCTIONS, GATHER_INSTRUCTIONS = 8, 40
"""Instructions of a copy or store: its addresses and conditions; and of a copy of windows, which
divides. Emulated kernels had 8 and 20 to 87.
"""
EPILOGUE_PAIR = 2
"""Neighbouring sums of a lane, which are stored together if rows are aligned."""
ROWS_OF_STORE = 8
"""Rows of a tile that a store of a warp touches, four lanes each."""
BASE_REGISTERS = 24
REGISTERS_PER_SUM = 1.2
REGISTERS_PER_OPERAND = 2.0
"""Registers of a lane: for addresses, for each sum, and for each register of operands, of which the
next ones are loaded ahead. On ten kernels of 72 to 254 registers that NVRTC 13.0 compiled for
sm_90a, the error was -24 to 33 registers.
"""


class TensorKernel(SketchKernel):
    """The kernel of a nest whose innermost loops are an instruction of tensor cores."""

    @property
    def tile(self) -> TensorTile:
        """Return the tile of the instruction."""
        tile = self.tables.nest.tensor_tile
        assert tile is not None, "the nest is one of tensor cores"
        return tile

    @property
    def warps(self) -> Floats:
        """Return the warps of a block."""
        warps: Floats = self.tables.level_extents[THREAD]
        return warps

    @property
    def threads(self) -> Floats:
        """Return the threads of a block."""
        return self.warps * WARP_SIZE

    @property
    def holders(self) -> Floats:
        """Return the threads of a block that hold sums."""
        return self.threads

    @cached_property
    def accumulators(self) -> Floats:
        """Return the sums that a lane holds."""
        rows, columns = (self.tables.extents[REGISTER, axis] for axis in self.tile.axes[:2])
        accumulators: Floats = rows * columns / WARP_SIZE
        return accumulators

    @cached_property
    def instruction_steps(self) -> Floats:
        """Return the steps of a warp: in each, it multiplies all its tiles once."""
        levels = self.tables.level_extents
        steps: Floats = levels[CHUNK] * levels[STEP]
        return steps

    @cached_property
    def step_products(self) -> Floats:
        """Return the instructions of a warp in one step."""
        m, n, _ = self.tile.instruction.shape
        products: Floats = self.accumulators * WARP_SIZE / (m * n)
        return products

    @cached_property
    def step_loads(self) -> Floats:
        """Return a warp's loads from shared memory in one step."""
        return sum((read.step_loads for read in self.fragments), np.zeros_like(self.threads))

    @property
    def fragments(self) -> list[FragmentAccess]:
        """Return the operands."""
        return [access for access in self.accesses if isinstance(access, FragmentAccess)]

    @cached_property
    def shared_loads(self) -> Floats:
        """Return a lane's loads from shared memory for one of the steps of the sum."""
        loads: Floats = self.step_loads / self.tile.instruction.shape[2]
        return loads

    @cached_property
    def unrolled(self) -> Floats:
        """Return the instructions of unrolled code: those of one step."""
        return self.step_products + self.step_loads

    @cached_property
    def registers(self) -> Floats:
        """Return an estimate of the registers of a thread, without any limit."""
        operands = (read.operand_registers for read in self.fragments)
        copies = (read.copy_registers for read in self.fragments)
        sums = self.accesses[0].registers_of(self.accumulators)
        loaded = sum(operands, np.zeros_like(sums))
        registers: Floats = (
            BASE_REGISTERS
            + REGISTERS_PER_SUM * sums
            + REGISTERS_PER_OPERAND * loaded
            + sum(copies, np.zeros_like(sums))
        )
        return registers

    def filled(self, axes: Sequence[int]) -> Floats:
        """Return the share of the points along some axes that are no padding."""
        share = np.ones(len(self.threads))
        for axis, extent in zip(self.tile.axes, self.tile.extents, strict=True):
            if axis in axes:
                share = share * extent / np.prod(self.tables.extents[:, axis], axis=0)
        return share

    def _direct(self, access: TensorAccess) -> KernelAccess:
        return SumsAccess(self, access)

    def _read(self, access: TensorAccess) -> KernelAccess:
        return FragmentAccess(self, access, self._copies[access.buffer], self._values)


class SumsAccess(KernelAccess):
    """The stores of the sums by an epilogue: four lanes store to each of eight rows at once."""

    def __init__(self, kernel: TensorKernel, access: TensorAccess) -> None:
        super().__init__(kernel.tables, access, kernel.thread_tile)
        self._kernel = kernel
        self.threads = kernel.threads

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the output in global memory."""
        return self._kernel.tile.source_bytes[0]

    @cached_property
    def width(self) -> Ints:
        """Return the bytes of a lane's store: neighbouring sums if rows are aligned to them."""
        is_aligned = self._kernel.tile.extents[1] % EPILOGUE_PAIR == 0
        width = self._item_bytes * (EPILOGUE_PAIR if is_aligned else 1)
        return np.full(len(self.threads), width, np.int64)

    @property
    def _item_bytes(self) -> int:
        """Return the bytes of an element of the output, which may be shorter than a sum."""
        rows, columns, _ = self._kernel.tile.extents
        batch = prod(axis.extent for axis in self._batch_axes)
        return self.size_bytes // (batch * rows * columns)

    @property
    def _batch_axes(self) -> list[IterAxis]:
        axes = self.tables.nest.facts.axes
        return [axis for index, axis in enumerate(axes) if index not in self._kernel.tile.axes]

    @cached_property
    def requests(self) -> Floats:
        """Return the requests of all warps of a block to global memory."""
        pairs = self.width / self._item_bytes
        requests: Floats = self._kernel.accumulators / pairs * self._kernel.holders / WARP_SIZE
        return requests

    @cached_property
    def sectors_per_request(self) -> Ints:
        """Return the sectors that a request touches: one for each row."""
        return np.full(len(self.threads), ROWS_OF_STORE, np.int64)

    @cached_property
    def block_bytes(self) -> Floats:
        """Return the bytes of the elements that a block stores."""
        bytes_: Floats = self._kernel.accumulators * self._kernel.holders * self._item_bytes
        return bytes_

    @cached_property
    def inside(self) -> Floats:
        """Return the share of the sums that are no padding."""
        return self._kernel.filled(self._kernel.tile.axes[:2])


class FragmentAccess(StagedAccess):
    """An operand of an instruction: copied to shared memory, and loaded into fragments."""

    def __init__(
        self, kernel: TensorKernel, access: TensorAccess, copy: SharedCopy, values: Ints
    ) -> None:
        super().__init__(kernel.tables, access, kernel.thread_tile, copy, values)
        self._kernel = kernel
        self.threads = kernel.threads
        rows, columns, self._sum_axis = kernel.tile.axes
        self._is_left = bool(access.strides[rows])
        self._axis = rows if self._is_left else columns

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the operand in global memory."""
        number = self.tables.nest.accesses.index(self.access)
        return self._kernel.tile.source_bytes[number]

    @property
    def is_gathered(self) -> bool:
        """Return whether the elements are those of windows, which overlap."""
        return self.size_bytes < self._num_elements * self.access.item_bytes

    @property
    def _num_elements(self) -> int:
        """Return the elements of the matrix, without padding."""
        extents = dict(zip(self._kernel.tile.axes, self._kernel.tile.extents, strict=True))
        facts = self.tables.nest.facts
        return prod(
            extents.get(axis, facts.axes[axis].extent)
            for axis, stride in enumerate(self.access.strides)
            if stride
        )

    @property
    def _map(self) -> FragmentMap:
        instruction = self._kernel.tile.instruction
        return instruction.a if self._is_left else instruction.b

    @property
    def _has_matrix_loads(self) -> bool:
        """Return whether `ldmatrix` loads the operand: it transposes elements of 16 bits alone."""
        is_along_sum = bool(self.access.coefficients[-1][self._sum_axis])
        return is_along_sum or self.access.item_bytes == TRANSPOSABLE_BYTES

    @property
    def _tiles(self) -> Floats:
        """Return the tiles of the instruction that a warp loads in one step."""
        tiles: Floats = (
            self.tables.extents[REGISTER, self._axis] / self._kernel.tile.units[self._axis]
        )
        return tiles

    @property
    def operand_registers(self) -> Floats:
        """Return the registers of a lane for one step."""
        return self._tiles * self._map.num_elements * self.access.item_bytes / REGISTER_BYTES

    @property
    def copy_registers(self) -> Floats:
        """Return the registers between global and shared memory: one for each single element."""
        if self.copy.is_async:
            return np.zeros(len(self.threads))
        registers: Floats = np.ceil(np.prod(self.piece, axis=0) / self.length / self.threads)
        return registers

    @property
    def step_loads(self) -> Floats:
        """Return a warp's loads from shared memory in one step."""
        if self._has_matrix_loads:
            return self.operand_registers / MAX_MATRICES
        return self._tiles * self._map.num_elements

    @cached_property
    def width(self) -> Ints:
        """Return the bytes of a lane's load; `ldmatrix` counts as a row of a matrix."""
        width = CHUNK_BYTES if self._has_matrix_loads else self.access.item_bytes
        return np.full(len(self.threads), width, np.int64)

    @cached_property
    def read_wavefronts(self) -> Ints:
        """Return the wavefronts of a load from shared memory."""
        return by_distinct_rows([self.piece[-1]], self._load_wavefronts)

    def _load_wavefronts(self, columns: list[Ints]) -> Ints:
        (length,) = columns
        row_bytes = length * self.access.item_bytes
        chunks = row_bytes // CHUNK_BYTES
        lanes = np.arange(WARP_SIZE)
        if self._has_matrix_loads:
            rows, offsets = (
                lanes[:, None] % MATRIX_ROWS,
                lanes[:, None] // MATRIX_ROWS * CHUNK_BYTES,
            )
            offsets = offsets % row_bytes
        else:
            places = np.array([self._map.position(lane, 0) for lane in lanes.tolist()])
            rows, others = np.hsplit(places if not self._is_left else places[:, ::-1], 2)
            offsets = others * self.access.item_bytes + 0 * row_bytes
        rows_of_line = np.maximum(LINE_CHUNKS // chunks, 1)
        key = rows // rows_of_line % np.minimum(chunks, LINE_CHUNKS)
        permuted = (offsets // CHUNK_BYTES ^ key) * CHUNK_BYTES + offsets % CHUNK_BYTES
        return num_wavefronts(rows * row_bytes + permuted, np.full(len(length), self.width[0]))

    @cached_property
    def write_wavefronts(self) -> Ints:
        """Return the wavefronts of a request that fills shared memory: all banks at once."""
        wavefronts: Ints = -(-WARP_SIZE * self.length * self.access.item_bytes // LINE_BYTES)
        return wavefronts

    @cached_property
    def block_bytes(self) -> Floats:
        """Return the bytes in global memory of the elements that a block touches."""
        return super().block_bytes * min(self.size_bytes / self.access.size_bytes, 1)

    @cached_property
    def inside(self) -> Floats:
        """Return the share of the copied elements that are no padding."""
        return self._kernel.filled((self._axis, self._sum_axis))


class TensorTime(KernelTime):
    """The estimated time of a kernel on tensor cores."""

    def __init__(self, kernel: TensorKernel, rates: GpuRates) -> None:
        super().__init__(kernel, rates)
        self._tensor_kernel = kernel

    @property
    def _arithmetic(self) -> Floats:
        """Return the time that the instructions of one block keep the tensor cores busy."""
        kernel, gpu = self._tensor_kernel, self._rates.gpu
        operations = 2 * prod(kernel.tile.instruction.shape)
        products = kernel.step_products * kernel.instruction_steps * kernel.warps
        rate = matrix_rate(gpu, kernel.tile.instruction.ptx_types[1]) / gpu.num_sms
        secs: Floats = products * operations / rate
        return secs

    @cached_property
    def _thread_instructions(self) -> Floats:
        """Return the instructions of a warp: products, loads, copies, stores and loops."""
        kernel = self._tensor_kernel
        steps = kernel.unrolled * kernel.instruction_steps
        requests = sum((a.requests for a in kernel.accesses), np.zeros_like(kernel.threads))
        copies = COPY_INSTRUCTIONS * requests
        for access in kernel.fragments:
            if access.is_gathered:
                copies = copies + (GATHER_INSTRUCTIONS - COPY_INSTRUCTIONS) * access.requests
        loops = LOOP_COST * (1 + kernel.tables.level_extents[CHUNK] + kernel.instruction_steps)
        instructions: Floats = steps + copies / kernel.warps + loops
        return instructions

    @cached_property
    def _wavefronts(self) -> Floats:
        """Return the wavefronts of a block in shared memory."""
        kernel = self._tensor_kernel
        wavefronts = np.zeros_like(kernel.threads)
        for access in kernel.fragments:
            loads = access.step_loads * kernel.instruction_steps * kernel.warps
            wavefronts = wavefronts + loads * access.read_wavefronts
            wavefronts = wavefronts + access.requests * access.write_wavefronts
        return wavefronts

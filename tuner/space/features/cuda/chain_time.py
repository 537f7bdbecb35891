"""The estimated time of a chain of products on tensor cores, for a batch of candidates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.gpus import WARP_SIZE
from compiler.target.matrix_rates import matrix_rate
from tuner.space.features.cuda.chain_kernel import ChainKernel
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.roofline import (
    BARRIER_SECS,
    CONVERT_COST,
    LOOP_COST,
    MEMORY_SECS,
    NUM_SCHEDULERS,
    SPECIAL_COST,
)
from tuner.space.features.cuda.tensor_kernel import COPY_INSTRUCTIONS, TensorTime
from tuner.space.tables.nest import Floats

REDUCTION_INSTRUCTIONS = 24
"""Instructions of a warp that combines the numbers of its lanes for a row: five exchanges, and the
store by one lane. Emulated kernels had about as many.
"""
PART_INSTRUCTIONS = 3
"""Instructions for 32 elements of a row besides arithmetic and accesses (same kernels)."""
EXP_INSTRUCTIONS = 8
"""Instructions of a special function besides its own (same kernels)."""


ROWS_OF_INSTRUCTION = 8
"""The rows of which the lanes of a warp hold a number each, four lanes the same."""
EXCHANGE_INSTRUCTIONS = 6
"""Instructions that reduce such rows among lanes: two exchanges, two operations, start and end."""
MERGE_INSTRUCTIONS = 12
"""Instructions that merge the maximum and the total of a piece of such rows with earlier ones."""
STEP_INSTRUCTIONS = 26
"""Instructions of a step of the loop over pieces: the count, guards, addresses and waits. The first
step copies only. Emulated kernels had about as many.
"""
EXP2_INSTRUCTIONS = 4
"""Instructions of a power of two besides its own: the factor of `exp`, and three for numbers that
are not normalised (SASS of `ex2.approx.f32` without `.ftz`).
"""


class ChainTime(TensorTime):
    """The estimated time of a chain of products."""

    def __init__(self, kernel: ChainKernel, rates: GpuRates) -> None:
        super().__init__(kernel, rates)
        self._chain_kernel = kernel

    @property
    def _products(self) -> Floats:
        """Return the time of the products of one block on tensor cores."""
        kernel, gpu = self._chain_kernel, self._rates.gpu
        rate = matrix_rate(gpu, kernel.tile.instruction.ptx_types[1]) / gpu.num_sms
        operations = kernel.matrix_products * 2 * np.prod(kernel.tile.instruction.shape)
        products: Floats = operations / rate
        return products

    @property
    def _arithmetic(self) -> Floats:
        """Return the time of the arithmetic of one block between its products."""
        kernel = self._chain_kernel
        total = np.zeros_like(kernel.threads)
        for block in kernel.chain.row_blocks:
            of = block.operations
            simple = of.fma + of.add + of.mul + of.compare + of.integer
            cost = simple + SPECIAL_COST * (of.special + of.div) + CONVERT_COST * of.convert
            total = total + kernel.computed * kernel.rows * block.axes[-1].extent * cost
        total = total + WARP_SIZE * self._scaling
        return total / self._rates.lanes / self._rates.clock

    @property
    def _scaling(self) -> Floats:
        """Return the instructions that scale the sums of a block for each piece of the keys."""
        kernel = self._chain_kernel
        if kernel.chain.keys is None:
            return np.zeros_like(kernel.threads)
        width = kernel.chain.products[-1].axes[-2].extent
        scaling: Floats = kernel.rows * width / WARP_SIZE * kernel.passes
        return scaling

    @cached_property
    def _thread_instructions(self) -> Floats:
        """Return the instructions of a warp: products, loads, copies, stores and row blocks."""
        kernel = self._chain_kernel
        is_online = kernel.chain.keys is not None
        requests = sum((a.requests for a in kernel.accesses), np.zeros_like(kernel.threads))
        instructions = kernel.matrix_products + kernel.matrix_loads + COPY_INSTRUCTIONS * requests
        instructions = instructions + self._row_wavefronts + self._scaling
        special = EXP2_INSTRUCTIONS if is_online else EXP_INSTRUCTIONS
        for block in kernel.chain.row_blocks:
            of = block.operations
            steps = kernel.computed * kernel.rows * block.axes[-1].extent / WARP_SIZE
            of_part = of.total + special * of.special + (0 if is_online else PART_INSTRUCTIONS)
            instructions = instructions + steps * of_part
            if block.is_reduction and not is_online:
                instructions = instructions + kernel.rows * REDUCTION_INSTRUCTIONS
        if is_online:
            merged = 2 * EXCHANGE_INSTRUCTIONS + MERGE_INSTRUCTIONS
            rows = kernel.rows * kernel.passes / ROWS_OF_INSTRUCTION
            instructions = instructions + rows * merged
        steps = STEP_INSTRUCTIONS * (1 + kernel.pieces) if is_online else LOOP_COST * kernel.pieces
        of_warp: Floats = instructions / kernel.warps + steps
        return of_warp

    @cached_property
    def _wavefronts(self) -> Floats:
        """Return the wavefronts of a block in shared memory, spilled registers among them."""
        kernel = self._chain_kernel
        spilled = np.maximum(kernel.registers - kernel.max_registers, 0)
        wavefronts = 2 * spilled * kernel.pieces * kernel.warps
        wavefronts = wavefronts + kernel.load_wavefronts + self._row_wavefronts
        for access in kernel.copies:
            wavefronts = wavefronts + access.requests * access.write_wavefronts
        return wavefronts

    @cached_property
    def _row_wavefronts(self) -> Floats:
        """Return the wavefronts of the results between products, which are those of one block.

        Lanes read and write neighbours in a row. A number of the row is read again for each of its
        parts, unless the results are in registers.
        """
        kernel, chain = self._chain_kernel, self._chain_kernel.chain
        of_row = kernel.rows * kernel.passes
        wavefronts = np.zeros_like(kernel.threads)
        for product in chain.products:
            if product.write.buffer in chain.held:
                wavefronts = wavefronts + kernel.rows * product.axes[-2].extent / WARP_SIZE
        for block in chain.row_blocks:
            parts = kernel.computed * kernel.rows * block.axes[-1].extent / WARP_SIZE
            is_held = block.write.buffer in chain.held
            if is_held:
                wavefronts = wavefronts + (of_row if block.is_reduction else parts)
            for read in block.reads:
                if read.buffer in chain.held:
                    is_once = not read.strides[-1] and not is_held
                    wavefronts = wavefronts + (of_row if is_once else parts)
        return wavefronts

    @cached_property
    def latency(self) -> Floats:
        """Return the time that one block waits for loads and barriers, one after another."""
        kernel = self._chain_kernel
        hidden = np.minimum(self._alone / kernel.pieces, MEMORY_SECS)
        waits = MEMORY_SECS + kernel.pieces * (MEMORY_SECS - hidden)
        latency: Floats = waits + kernel.barriers * BARRIER_SECS
        return latency

    @cached_property
    def _alone(self) -> Floats:
        """Return the time of one block alone.

        Barriers divide the work of its units, unless the blocks of the chain are in registers: then
        a unit works for one warp of a scheduler while another one works for the next.
        """
        kernel = self._chain_kernel
        of_scheduler = kernel.warps / NUM_SCHEDULERS
        units = ("products", "arithmetic", "issue", "shared")
        whole: Floats = sum(self.block[unit] for unit in units) / np.minimum(of_scheduler, 1)
        if kernel.chain.keys is None or kernel.chain.held:
            return whole
        return np.maximum(whole / np.maximum(of_scheduler, 1), self._busy)

    @cached_property
    def bytes_in_flight(self) -> Floats:
        """Return the bytes that a multiprocessor requests at once."""
        kernel = self._chain_kernel
        ahead = (a.piece_bytes for a in kernel.copies if a.stages > 1)
        in_flight: Floats = sum(ahead, np.zeros_like(kernel.threads)) * self.resident
        return in_flight

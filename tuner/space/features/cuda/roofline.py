"""An estimate of a kernel's time, after the roofline model (Williams et al., CACM 2009).

A multiprocessor runs rounds of blocks. A round lasts as long as the busiest of its units, or as
long as the chain of waits of one block, if the other blocks cannot fill them. It orders candidates
before any measurement exists, and is a feature after that; it is never a result.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from compiler.target.gpus import WARP_SIZE
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.features.cuda.rates import GpuRates
from tuner.space.features.cuda.staged_access import StagedAccess
from tuner.space.rules.cuda.levels import BLOCK, CHUNK, STEP
from tuner.space.tables.nest import Floats

NUM_SCHEDULERS = 4
"""Each of the four parts of a multiprocessor issues an instruction of one warp in a cycle."""
ARITHMETIC_LATENCY = 4
"""Cycles between dependent operations on float32, from sm_80 on."""
SPECIAL_COST = 8
"""Cost of functions and quotients, relative to an addition: 16 lanes instead of 128 (CUDA C++
Programming Guide, "Arithmetic Instructions").
"""
CONVERT_COST = 2
"""Cost of conversions between types: 64 lanes instead of 128 (same table)."""
LOOP_COST = 4.0
"""Instructions of an iteration of a loop besides its body: addresses, count and jump. An estimate.
"""
MEMORY_SECS = 600e-9
"""The latency of a load from memory under load. An estimate; published microbenchmarks of Hopper
find about 480 to 800 cycles, and 600 ns with queues.
"""
LOADS_IN_FLIGHT = 4
"""Iterations of a loop whose loads NVRTC issues ahead: it unrolls loops by four."""
BARRIER_SECS = 20e-9
"""The time that a barrier costs the warps of a block: some 30 cycles. An estimate."""
LAUNCH_SECS = 2.5e-6
"""The time from the start of a kernel to that of the next one, without its work. An estimate."""


class KernelTime:
    """The estimated time of a kernel for each candidate of a batch, in seconds."""

    def __init__(self, kernel: SketchKernel, rates: GpuRates) -> None:
        self._kernel = kernel
        self._rates = rates

    @cached_property
    def block(self) -> dict[str, Floats]:
        """Return, by unit of a multiprocessor, the time that one block keeps it busy."""
        kernel, clock = self._kernel, self._rates.clock
        return {
            "products": self._products,
            "arithmetic": self._arithmetic,
            "issue": self._thread_instructions * kernel.warps / NUM_SCHEDULERS / clock,
            "shared": self._wavefronts / clock,
            "l2": self.issued_bytes / kernel.blocks / self._rates.l2,
        }

    @property
    def _products(self) -> Floats:
        """Return the time of products that tensor cores compute beside other arithmetic."""
        return np.zeros_like(self._kernel.threads)

    @property
    def _arithmetic(self) -> Floats:
        """Return the time that the arithmetic of one block takes on its lanes."""
        lanes = self._kernel.warps * WARP_SIZE
        return self._thread_cost * lanes / self._rates.lanes / self._rates.clock

    @cached_property
    def _thread_points(self) -> Floats:
        """Return the points of a thread."""
        kernel = self._kernel
        points: Floats = kernel.steps * kernel.accumulators
        return points

    @property
    def _thread_cost(self) -> Floats:
        """Return the arithmetic of a thread, in units of additions."""
        of = self._kernel.tables.nest.facts.operations
        simple = of.fma + of.add + of.mul + of.compare + of.integer
        special = SPECIAL_COST * (of.special + of.div)
        return self._thread_points * (simple + special + CONVERT_COST * of.convert)

    @cached_property
    def _thread_instructions(self) -> Floats:
        """Return the instructions of a thread: arithmetic, memory and loops."""
        kernel = self._kernel
        requests = sum((a.requests for a in kernel.accesses), np.zeros_like(kernel.threads))
        stores = sum((a.requests for a in kernel.staged), np.zeros_like(kernel.threads))
        levels = kernel.tables.level_extents
        loops = LOOP_COST * kernel.repeats * (1 + levels[CHUNK] * (1 + levels[STEP]))
        arithmetic = self._thread_points * kernel.tables.nest.facts.operations.total
        shared = kernel.steps * kernel.shared_loads
        memory: Floats = (requests + stores) / kernel.warps
        instructions: Floats = arithmetic + shared + memory + loops
        return instructions

    @cached_property
    def _wavefronts(self) -> Floats:
        """Return the wavefronts of a block in shared memory, spilled registers among them."""
        kernel = self._kernel
        spilled = np.maximum(kernel.registers - kernel.max_registers, 0)
        wavefronts: Floats = 2 * spilled * kernel.steps * kernel.warps
        for access in kernel.staged:
            loads = access.loads_of(access.step_elements) * kernel.steps * kernel.warps
            wavefronts = wavefronts + loads * access.read_wavefronts
            wavefronts = wavefronts + access.requests * access.write_wavefronts
        return wavefronts

    @cached_property
    def issued_bytes(self) -> Floats:
        """Return the bytes between the second-level cache and all blocks."""
        kernel = self._kernel
        of_block = sum((a.issued_bytes for a in kernel.accesses), np.zeros_like(kernel.blocks))
        issued: Floats = of_block * kernel.blocks
        return issued

    @cached_property
    def unique_bytes(self) -> float:
        """Return the bytes of all different elements."""
        sizes = {a.access.buffer: a.size_bytes for a in self._kernel.accesses if not a.on_chip}
        return float(max(sum(sizes.values()), 1))

    @cached_property
    def memory_bytes(self) -> Floats:
        """Return the bytes between the memory and the second-level cache.

        Blocks that run at once share what they read. Blocks of later rounds read it again, if the
        cache does not hold everything.
        """
        if self.unique_bytes <= self._rates.gpu.l2_bytes:
            return np.full_like(self._kernel.blocks, self.unique_bytes)
        extents = self._kernel.tables.extents[BLOCK]
        resident = np.minimum(self.resident * self._rates.gpu.num_sms, self._kernel.blocks)
        concurrent = np.ones_like(extents)
        for axis, blocks in self._kernel.block_order:
            concurrent[axis] = concurrent[axis] * np.minimum(np.ceil(resident), blocks)
            resident = np.maximum(resident / blocks, 1)
        rounds = np.ceil(self._kernel.blocks / np.prod(concurrent, axis=0))
        total = np.zeros_like(rounds)
        for access in self._kernel.accesses:
            if access.on_chip:
                continue
            moving = np.array([bool(stride) for stride in access.access.strides])[:, None]
            tiles = np.prod(np.where(moving, concurrent, 1), axis=0)
            # Overlapping and padded tiles have more elements than the buffer.
            of_round = np.minimum(tiles * access.block_bytes, access.size_bytes)
            total = total + rounds * of_round
        most = np.maximum(self.issued_bytes, self.unique_bytes)
        clipped: Floats = np.clip(total, self.unique_bytes, most)
        return clipped

    @cached_property
    def resident(self) -> Floats:
        """Return the blocks that a multiprocessor runs at once, at least one."""
        return np.maximum(self._kernel.occupancy.blocks, 1).astype(np.float64)

    @cached_property
    def waves(self) -> Floats:
        """Return the rounds of blocks; the last one may be part of one."""
        waves: Floats = self._kernel.blocks / (self.resident * self._rates.gpu.num_sms)
        return waves

    @cached_property
    def latency(self) -> Floats:
        """Return the time that one block waits for loads and barriers, one after another.

        Pieces that are copied ahead arrive while the block computes earlier ones.
        """
        kernel = self._kernel
        levels = kernel.tables.level_extents
        barriers = kernel.barriers * BARRIER_SECS
        if all(access.on_chip for access in kernel.accesses[1:]):
            return barriers
        if not kernel.staged:
            waits = kernel.repeats * np.ceil(levels[CHUNK] * levels[STEP] / LOADS_IN_FLIGHT)
            unhidden: Floats = waits * MEMORY_SECS + barriers
            return unhidden
        ahead = kernel.stages - 1
        hidden = np.minimum(ahead * self._alone / kernel.pieces, MEMORY_SECS)
        first = np.where(ahead > 0, MEMORY_SECS, 0)
        latency: Floats = first + kernel.pieces * (MEMORY_SECS - hidden) + barriers
        return latency

    @cached_property
    def _alone(self) -> Floats:
        """Return the time of one block on a multiprocessor of its own, without waits.

        A block with few warps or dependent sums does not fill the units.
        """
        kernel = self._kernel
        schedulers = np.minimum(kernel.warps / NUM_SCHEDULERS, 1)
        ahead = np.minimum(kernel.accumulators / ARITHMETIC_LATENCY, 1)
        alone: Floats = self._busy / (schedulers * np.maximum(ahead, 1 / ARITHMETIC_LATENCY))
        return alone

    @cached_property
    def _busy(self) -> Floats:
        """Return the time of the busiest unit for one block."""
        busy: Floats = np.maximum.reduce(list(self.block.values()))
        return busy

    @cached_property
    def bytes_in_flight(self) -> Floats:
        """Return the bytes that a multiprocessor requests at once."""
        kernel = self._kernel
        of_block = np.zeros_like(kernel.threads)
        for access in kernel.accesses[1:]:
            if isinstance(access, StagedAccess):
                of_block = of_block + access.bytes_in_flight
            else:
                elements = access.unrolled_elements * kernel.threads
                of_block = of_block + elements * access.access.item_bytes
        in_flight: Floats = of_block * self.resident
        return in_flight

    @cached_property
    def multiprocessors(self) -> Floats:
        """Return the time of the rounds of blocks on the multiprocessors."""
        kernel, num_sms = self._kernel, self._rates.gpu.num_sms
        busy, alone = self._busy, self._alone + self.latency
        per_sm = np.ceil(kernel.blocks / num_sms)
        rounds = np.floor(per_sm / self.resident)
        last = per_sm - rounds * self.resident
        full = rounds * np.maximum(self.resident * busy, alone)
        secs: Floats = full + np.where(last > 0, np.maximum(last * busy, alone), 0)
        return secs

    @cached_property
    def memory(self) -> Floats:
        """Return the time of the transfers from and to memory."""
        return self.memory_bytes / self._rates.memory

    @cached_property
    def total(self) -> Floats:
        """Return the time of the nest, without the launch of its kernel."""
        return np.maximum(self.multiprocessors, self.memory)

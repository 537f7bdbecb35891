"""Groups of columns for GPUs: the target, the launch, the code, the memory, the estimate."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.roofline import LAUNCH_SECS
from tuner.space.features.cuda.staged_access import StagedAccess
from tuner.space.features.groups.blocks import constant_columns
from tuner.space.tables.nest import Floats

NUM_BUCKETS = 8
"""Buckets for the names of rules, tags and parts of a sketch's name: a fixed width of the features,
at the cost of collisions. Chosen.
"""
NUM_BUFFERS = 4
"""Buffers that features describe: most operators have two inputs and an output. Chosen."""
FMA_FLOPS = 2
"""A fused multiply-add is a multiplication and an addition."""

_PEAKS = ("float32", "tf32", "float16", "float8")
TARGET_NAMES = (
    "target.num_sms",
    "target.lanes",
    "target.clock",
    "target.l2_bytes",
    "target.memory_rate",
    "target.shared_bytes",
    "target.max_warps",
    "target.max_blocks",
    *(f"target.{name}" for name in _PEAKS),
)
SKETCH_NAMES = (
    *(f"rule.bucket{bucket}" for bucket in range(NUM_BUCKETS)),
    *(f"name.bucket{bucket}" for bucket in range(NUM_BUCKETS)),
)
LAUNCH_NAMES = (
    "threads",
    "blocks",
    "warps",
    "lane_use",
    "resident",
    "occupancy",
    "limit.warps",
    "limit.registers",
    "limit.shared",
    "waves",
    "tail",
    "kernels",
)
CODE_NAMES = (
    "registers",
    "register_use",
    "spilled",
    "accumulators",
    "repeats",
    "unrolled",
    "steps",
    "shared_loads",
    "flops_per_shared_load",
    "flops_per_request",
    "barriers",
    "stages",
    "vector",
)
MEMORY_NAMES = (
    "shared_bytes",
    "shared_use",
    "pieces",
    "bytes_in_flight",
    "bytes.unique",
    "bytes.memory",
    "bytes.issued",
    "intensity.memory",
    "intensity.l2",
    "intensity.shared",
)
_BUFFER = (
    "is_staged",
    "width",
    "sectors",
    "coalescing",
    "requests",
    "block_bytes",
    "issued",
    "size",
    "copy_width",
    "piece_bytes",
    "read_conflicts",
    "write_conflicts",
)
BUFFER_NAMES = tuple(f"buffer{index}.{name}" for index in range(NUM_BUFFERS) for name in _BUFFER)
SECONDS_NAMES = (
    "share.products",
    "share.arithmetic",
    "share.issue",
    "share.shared",
    "share.l2",
    "share.latency",
    "share.memory",
    "share.others",
    "secs.per_point",
    "secs.total",
)


def target_columns(batch: CudaBatch) -> Floats:
    """Return sizes and rates as logarithms; a rate of 0 as 0."""
    rates = batch.rates
    sizes = [
        rates.gpu.num_sms,
        rates.lanes,
        rates.clock,
        rates.gpu.l2_bytes,
        rates.gpu.memory_rate,
        rates.limits.shared_bytes,
        rates.limits.max_warps,
        rates.limits.max_blocks,
        *(rates.gpu.peaks.get(name, 1.0) for name in _PEAKS),
    ]
    return constant_columns([float(np.log2(size)) for size in sizes], batch)


def sketch_columns(batch: CudaBatch) -> Floats:
    """Return flags: the buckets of the sketch's rules and tags, and of the parts of its name."""
    rules = {_bucket(rule) for rule in (*batch.sketch.rules, *batch.sketch.tags)}
    parts = {_bucket(part) for part in batch.sketch.name.split("/")}
    flags = [float(n in rules) for n in range(NUM_BUCKETS)]
    flags += [float(n in parts) for n in range(NUM_BUCKETS)]
    return constant_columns(flags, batch)


def _bucket(name: str) -> int:
    return crc32(name.encode()) % NUM_BUCKETS


def launch_columns(batch: CudaBatch) -> Floats:
    """Return the launch of the main kernel; counts as logarithms, shares unchanged.

    `limit` is the number of resident blocks by a resource. `tail` is the share of the rounds of
    blocks in which multiprocessors have work.
    """
    kernel, time = batch.kernel, batch.time
    limits = kernel.occupancy
    waves = time.waves
    logarithms = [kernel.threads, kernel.blocks, kernel.warps]
    by_limit = [limits.by_warps, limits.by_registers, limits.by_shared]
    return np.stack(
        [
            *np.log2(logarithms),
            kernel.threads / (32 * kernel.warps),
            limits.blocks,
            limits.share,
            *np.log2(1 + np.stack(by_limit)),
            np.log2(waves),
            waves / np.ceil(waves),
            np.full(len(batch), batch.num_launches),
        ]
    )


def code_columns(batch: CudaBatch) -> Floats:
    """Return the code of the main kernel's threads; counts as logarithms, shares unchanged."""
    kernel = batch.kernel
    flops = kernel.tables.nest.facts.flops_per_point
    requests = sum((a.requests for a in kernel.accesses), np.zeros(len(batch)))
    per_request = flops * kernel.accumulators * kernel.steps * kernel.warps
    per_request = per_request / np.maximum(requests, 1)
    use = kernel.registers / kernel.max_registers
    return np.stack(
        [
            np.log2(kernel.registers),
            use,
            np.maximum(use - 1, 0),
            np.log2(kernel.accumulators),
            np.log2(kernel.repeats),
            np.log2(kernel.unrolled),
            np.log2(kernel.steps),
            np.log2(1 + kernel.shared_loads),
            _ratio(flops * kernel.accumulators / FMA_FLOPS, kernel.shared_loads),
            np.log2(1 + per_request),
            np.log2(1 + kernel.barriers),
            kernel.stages,
            np.log2(kernel.tables.vector_length),
        ]
    )


def _ratio(number: Floats, divisor: Floats) -> Floats:
    """Return the logarithm of 1 and a ratio; 0 if nothing divides."""
    ratio = np.where(divisor > 0, number / np.where(divisor > 0, divisor, 1), 0)
    logarithm: Floats = np.log2(1 + ratio)
    return logarithm


def memory_columns(batch: CudaBatch) -> Floats:
    """Return the traffic of the main kernel as logarithms.

    `unique` are the bytes of all elements, `memory` those that come from memory, `issued` those
    that threads request; `intensity` is the arithmetic for each byte from a level.
    """
    kernel, time = batch.kernel, batch.time
    flops = max(kernel.tables.nest.facts.flops_per_point, 1) * batch.points
    read = np.zeros(len(batch))
    for access in kernel.staged:
        read = read + access.step_elements * access.access.item_bytes
    shared = read * kernel.steps * kernel.threads * kernel.blocks
    return np.stack(
        [
            np.log2(1 + kernel.shared_bytes),
            kernel.shared_bytes / kernel.limits.shared_bytes,
            np.log2(kernel.pieces),
            np.log2(1 + time.bytes_in_flight),
            np.full(len(batch), np.log2(time.unique_bytes / batch.points)),
            np.log2(time.memory_bytes / batch.points),
            np.log2((1 + time.issued_bytes) / batch.points),
            np.log2(flops / time.memory_bytes),
            np.log2(flops / (1 + time.issued_bytes)),
            _ratio(np.full(len(batch), flops), shared),
        ]
    )


def buffer_columns(batch: CudaBatch) -> Floats:
    """Return the columns of the output and the largest inputs; zeros if there are fewer.

    `coalescing` is the share of the moved sectors that a warp needs; conflicts are the wavefronts
    of a request to shared memory, as a multiple of those without bank conflicts.
    """
    columns = np.zeros((NUM_BUFFERS, len(_BUFFER), len(batch)))
    for out, access in zip(columns, batch.kernel.accesses, strict=False):
        out[1] = np.log2(access.width)
        out[2] = np.log2(access.sectors_per_request)
        out[3] = np.minimum(access.ideal_sectors / access.sectors_per_request, 1)
        out[4] = np.log2(1 + access.requests)
        out[5] = np.log2(access.block_bytes)
        out[6] = np.log2((1 + access.issued_bytes * batch.kernel.blocks) / batch.points)
        out[7] = np.log2(access.size_bytes)
        if isinstance(access, StagedAccess):
            out[0] = 1
            out[8] = np.log2(access.length * access.access.item_bytes)
            out[9] = np.log2(access.shared_bytes)
            out[10] = access.read_conflicts
            out[11] = access.write_conflicts
    return columns.reshape(len(BUFFER_NAMES), len(batch))


def seconds_columns(batch: CudaBatch) -> Floats:
    """Return the estimated time: its parts as shares of the total, the totals as logarithms."""
    time, kernel = batch.time, batch.kernel
    rounds = np.ceil(kernel.blocks / batch.rates.gpu.num_sms)
    parts = [*(part * rounds for part in time.block.values()), time.latency, time.memory]
    total = batch.secs
    return np.stack(
        [
            *(np.stack(parts) / total),
            1 - (time.total + LAUNCH_SECS) / total,
            np.log2(total / batch.points),
            np.log2(total),
        ]
    )

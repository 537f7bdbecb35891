"""The occupancy of multiprocessors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target.gpus import ARCHS
from compiler.target.occupancy import occupancy

KERNELS = (
    (22, 256, 0),
    (147, 256, 33280),
    (236, 128, 65536),
    (126, 256, 24576),
    (168, 384, 196608),
    (255, 256, 0),
    (32, 1024, 0),
    (64, 1024, 49152),
    (64, 1000, 1000),
    (40, 96, 5000),
    (128, 512, 16384),
    (255, 288, 0),
    (16, 32, 0),
    (33, 64, 1024),
    (80, 192, 101376),
)
"""Registers of a thread, threads of a block, bytes of shared memory of a block."""

CALCULATED = {
    "sm_80": (8, 1, 2, 2, 0, 1, 2, 1, 1, 16, 1, 0, 32, 24, 1),
    "sm_86": (6, 1, 1, 2, 0, 1, 1, 1, 1, 16, 1, 0, 16, 16, 1),
    "sm_89": (6, 1, 1, 2, 0, 1, 1, 1, 1, 16, 1, 0, 24, 24, 1),
    "sm_90": (8, 1, 2, 2, 1, 1, 2, 1, 1, 16, 1, 0, 32, 24, 2),
    "sm_90a": (8, 1, 2, 2, 1, 1, 2, 1, 1, 16, 1, 0, 32, 24, 2),
    "sm_100a": (8, 1, 2, 2, 1, 1, 2, 1, 1, 16, 1, 0, 32, 24, 2),
    "sm_120": (6, 1, 1, 2, 0, 1, 1, 1, 1, 16, 1, 0, 24, 24, 1),
}
"""The blocks of each kernel, by `cudaOccMaxActiveBlocksPerMultiprocessor` of CUDA 13.0."""

REGISTERS = st.integers(1, 300)
THREADS = st.integers(1, 1100)
SHARED = st.integers(0, 240_000)


@pytest.mark.parametrize("arch", ARCHS)
def test_blocks_are_those_of_nvidias_calculator(arch: str) -> None:
    registers, threads, shared_bytes = np.array(KERNELS).T
    blocks = occupancy(ARCHS[arch], threads, registers, shared_bytes).blocks
    assert tuple(blocks.tolist()) == CALCULATED[arch]


def test_a_single_kernel_needs_no_arrays() -> None:
    result = occupancy(ARCHS["sm_90a"], threads=256, registers=147, shared_bytes=33280)
    assert (int(result.blocks), float(result.share)) == (1, 8 / 64)
    assert (int(result.by_warps), int(result.by_registers), int(result.by_shared)) == (8, 1, 6)


@given(st.sampled_from(sorted(ARCHS)), THREADS, REGISTERS, SHARED, st.integers(0, 300))
def test_more_of_a_resource_never_raises_the_occupancy(
    arch: str, threads: int, registers: int, shared_bytes: int, more: int
) -> None:
    limits = ARCHS[arch]
    blocks = int(occupancy(limits, threads, registers, shared_bytes).blocks)
    assert int(occupancy(limits, threads + more, registers, shared_bytes).blocks) <= blocks
    assert int(occupancy(limits, threads, registers + more, shared_bytes).blocks) <= blocks
    assert int(occupancy(limits, threads, registers, shared_bytes + 64 * more).blocks) <= blocks


@given(st.sampled_from(sorted(ARCHS)), THREADS, REGISTERS, SHARED)
def test_the_blocks_fit_the_multiprocessor(
    arch: str, threads: int, registers: int, shared_bytes: int
) -> None:
    limits = ARCHS[arch]
    result = occupancy(limits, threads, registers, shared_bytes)
    blocks = int(result.blocks)
    assert 0 <= blocks <= limits.max_blocks
    assert blocks * threads * registers <= limits.registers_of_sm
    assert blocks * shared_bytes <= limits.shared_bytes_of_sm
    assert 0 <= float(result.share) <= 1
    is_legal = (
        threads <= limits.max_threads
        and registers <= limits.max_registers
        and shared_bytes <= limits.shared_bytes
    )
    assert blocks == 0 or is_legal

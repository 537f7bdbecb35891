"""The static filter of GPUs: drop candidates that cannot run, and hopeless ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from compiler.target.cuda import CudaTarget
from compiler.target.gpus import WARP_SIZE
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.features.cuda.kernel import SketchKernel
from tuner.space.search_space import Mask
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

MAX_BLOCKS = (1 << 31) - 1
"""The blocks of a grid along x, by the CUDA C++ Programming Guide. Lowering folds other axes."""
MAX_ITEMS = 8
"""Limit of the tiles that a thread computes at once, along each axis: that of the virtual threads
in TVM's `VerifyGPUCode`.
"""
MIN_LANE_USE = 0.85
"""Limit of the share of a block's lanes that have a thread. Chosen: 112 threads pass, 96 + 8 fail.
"""
REGISTERS_PER_ELEMENT_AHEAD = 3
"""Registers for each one that holds elements of the next piece: addresses and conditions need some.
Of 26 random kernels of a convolution (64 x 56 x 56, 3 x 3) that NVRTC 13.0 compiled for sm_90a,
this drops 11, all of which had spills or arrays in local memory; 3 of the others had.
"""
MAX_COPIES_AHEAD = 48
"""Limit of the copies of one operand that a thread loads ahead, if conditions decide its elements:
those of a padded image. With its condition, its guard and divisions, a copy counts as about 21 of
the `MOST_FOR_REGISTERS` of a loop (`compiler/backends/cuda/text/unrolling.py`). A longer loop is
not unrolled, and then its elements lie in local memory. Of 14 random convolutions with 50 to 64
such copies, 12 had elements in local memory; of 14 products and convolutions with 50 to 64 copies
without conditions, none had (NVRTC 13.0, sm_90a).
"""
MAX_UNROLLED = 1024
"""Limit of the points of unrolled code: NVRTC takes half a second for 1,024 multiply-adds."""
NUM_COMPARED = 4096
"""Sampled decisions of a sketch, in which the filter looks for one that passes each test. Chosen.
"""


def passes(sketch: Sketch, choices: Ints, target: CudaTarget) -> Mask:
    """Return which candidates are worth compiling.

    A candidate is dropped if a kernel cannot run: too many threads, blocks or bytes of shared
    memory, or vectors that are too long. If others of its sketch are better, it is also dropped if
    registers spill, elements loaded ahead lie in local memory, lanes of warps are idle, vectors
    cross the rows of a copy, or the unrolled code is too long.
    """
    batch = CudaBatch(sketch, choices, target)
    mask = _is_legal(batch)
    for test in _useful_tests(sketch, target):
        mask &= _all_kernels(batch, test)
    return mask


@lru_cache(maxsize=256)
def _useful_tests(sketch: Sketch, target: CudaTarget) -> tuple[Test, ...]:
    """Return the tests that leave some legal candidates of a sketch, applied one after another."""
    batch = CudaBatch(sketch, sketch.draw(NUM_COMPARED, np.random.default_rng(0)), target)
    mask = _is_legal(batch)
    useful = []
    for test in _TESTS:
        remaining = mask & _all_kernels(batch, test)
        if remaining.any():
            mask = remaining
            useful.append(test)
    return tuple(useful)


def _all_kernels(batch: CudaBatch, test: Test) -> Mask:
    mask = np.ones(len(batch), np.bool_)
    for kernel in batch.kernels:
        mask &= test(kernel)
    return mask


def _is_legal(batch: CudaBatch) -> Mask:
    return _all_kernels(batch, _can_run)


def _can_run(kernel: SketchKernel) -> Mask:
    limits = kernel.limits
    can_run: Mask = (
        (kernel.threads <= limits.max_threads)
        & (kernel.blocks <= MAX_BLOCKS)
        & (kernel.shared_bytes <= limits.shared_bytes)
    )
    for access in kernel.staged:
        can_run &= access.length * access.access.item_bytes <= limits.max_vector_bytes
    return can_run


def _has_registers(kernel: SketchKernel) -> Mask:
    fits: Mask = (kernel.registers <= kernel.max_registers) & (kernel.occupancy.blocks > 0)
    return fits


def _holds_next_piece(kernel: SketchKernel) -> Mask:
    more = (REGISTERS_PER_ELEMENT_AHEAD - 1) * kernel.registers_ahead
    fits: Mask = kernel.registers + more <= kernel.max_registers
    return fits


def _unrolls_copies(kernel: SketchKernel) -> Mask:
    few: Mask = kernel.conditional_copies_ahead <= MAX_COPIES_AHEAD
    return few


def _fills_lanes(kernel: SketchKernel) -> Mask:
    full: Mask = kernel.threads >= MIN_LANE_USE * WARP_SIZE * kernel.warps
    return full


def _has_a_warp(kernel: SketchKernel) -> Mask:
    enough: Mask = kernel.threads >= WARP_SIZE
    return enough


def _has_whole_vectors(kernel: SketchKernel) -> Mask:
    """Return whether no vector of a copy crosses a row, of its source or of a piece."""
    whole = np.ones(len(kernel.threads), np.bool_)
    for access in kernel.staged:
        whole &= (access.piece[-1] % access.length == 0) & (
            access.access.shape[-1] % access.length == 0
        )
    return whole


def _has_few_items(kernel: SketchKernel) -> Mask:
    few: Mask = kernel.concurrent_items.max(axis=0) <= MAX_ITEMS
    return few


def _is_short(kernel: SketchKernel) -> Mask:
    short: Mask = kernel.unrolled <= MAX_UNROLLED
    return short


Test = Callable[[SketchKernel], Mask]
_TESTS: tuple[Test, ...] = (
    _has_registers,
    _holds_next_piece,
    _unrolls_copies,
    _has_a_warp,
    _fills_lanes,
    _is_short,
    _has_few_items,
    _has_whole_vectors,
)

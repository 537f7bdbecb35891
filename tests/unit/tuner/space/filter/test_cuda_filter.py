"""The static filter of GPUs: what it drops, and that it leaves some candidates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from compiler import ops
from compiler.backends.cuda.text.unrolling import loops_to_unroll
from compiler.ir.core.nodes import For, static_int
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.device.lower import lower_for_device
from compiler.target.cuda import CudaTarget
from tests.unit.tuner.space.gpu_sketches import product_sketch, row
from tests.unit.tuner.space.gpu_spaces import H200, space_of
from tuner.space.features.cuda.batch import CudaBatch
from tuner.space.filter.cuda_filter import MAX_COPIES_AHEAD, passes
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

GOOD = ((8, 2, 16, 4), (8, 2, 16, 4), (64, 8, 2), 0)


@cache
def large() -> Sketch:
    return product_sketch(ops.matmul(1024, 1024, 1024), H200)


def is_kept(sketch: Sketch, *decisions: tuple[int, ...] | int, target: CudaTarget = H200) -> bool:
    return bool(passes(sketch, row(sketch, *decisions), target)[0])


def test_a_good_candidate_passes() -> None:
    assert is_kept(large(), *GOOD)


@pytest.mark.parametrize(
    "decisions",
    [
        pytest.param(((4, 2, 64, 2), (4, 2, 32, 4), (64, 8, 2), 0), id="2,048 threads"),
        pytest.param(((2, 4, 16, 8), (2, 4, 16, 8), (4, 32, 8), 0), id="1 MiB of shared memory"),
        pytest.param(((2, 4, 16, 8), (2, 4, 16, 8), (64, 8, 2), 0), id="1,024 accumulators"),
        pytest.param(((64, 1, 4, 4), (64, 1, 4, 4), (64, 8, 2), 0), id="half a warp"),
        pytest.param(((8, 16, 8, 1), (8, 2, 16, 4), (64, 8, 2), 0), id="16 virtual threads"),
        pytest.param(((8, 2, 16, 4), (8, 2, 16, 4), (512, 2, 1), 0), id="vectors across rows"),
    ],
)
def test_a_hopeless_candidate_is_dropped(decisions: tuple[tuple[int, ...] | int, ...]) -> None:
    assert not is_kept(large(), *decisions)


def test_an_architecture_has_its_own_limits() -> None:
    # 128 x 128 x 128 floats of two operands: 128 KiB.
    decisions = ((8, 2, 16, 4), (8, 2, 16, 4), (8, 64, 2), 0)
    assert is_kept(large(), *decisions)
    assert not is_kept(large(), *decisions, target=CudaTarget("cuda -arch=sm_86"))


def test_what_passes_can_run() -> None:
    choices = large().draw(2000, np.random.default_rng(0))
    passed = choices[passes(large(), choices, H200)]
    assert 5 <= len(passed) < 1000
    kernel = CudaBatch(large(), passed, H200).kernel
    assert (kernel.occupancy.blocks > 0).all()
    assert (kernel.registers <= kernel.max_registers).all()
    assert (kernel.shared_bytes <= H200.limits.shared_bytes).all()


def test_the_elements_that_a_thread_loads_ahead_fit_its_registers_thrice() -> None:
    space = space_of(ops.conv2d(1, 32, 28, 28, 32, 3, 1, 1))
    (tiles,) = [sketch for sketch in space.sketches if sketch.name == "tiles"]
    choices = tiles.draw(2000, np.random.default_rng(0))
    kernel = CudaBatch(tiles, choices, H200).kernel
    mask = passes(tiles, choices, H200)
    are_too_many = 3 * kernel.registers_ahead + kernel.accumulators > kernel.max_registers
    fit_once = kernel.registers <= kernel.max_registers
    assert (are_too_many & fit_once).any()
    assert not mask[are_too_many].any()
    assert (kernel.registers_ahead[mask] > 0).any()


def test_a_row_passes_in_any_batch() -> None:
    choices = large().draw(300, np.random.default_rng(0))
    mask = passes(large(), choices, H200)
    for position in (*np.flatnonzero(mask)[:3], *np.flatnonzero(~mask)[:3]):
        assert passes(large(), choices[position : position + 1], H200)[0] == mask[position]


@pytest.mark.parametrize("extents", [(4, 4, 8), (3, 5, 7), (1, 7, 64), (2, 2, 2)])
def test_a_small_program_keeps_candidates(extents: tuple[int, int, int]) -> None:
    sketch = product_sketch(ops.matmul(*extents), H200)
    choices = sketch.draw(200, np.random.default_rng(0))
    assert passes(sketch, choices, H200).any()


@pytest.fixture(scope="module")
def bf16_images() -> PrimFunc:
    """A convolution whose elements of two bytes are copied one by one, through registers."""
    return ops.conv2d(
        1, 32, 28, 28, 32, 3, 1, 1, layout="NHWC", dtype="bfloat16", acc_dtype="float32"
    )


def copies_to_unroll(func: PrimFunc, tiles: Sketch, choices: Ints) -> list[tuple[int, int]]:
    """Return the extents of the loops over arrays of elements loaded ahead, and their copies."""
    program = lower_for_device(tiles.candidate(choices).trace.apply_to(func).func, H200.limits)
    (kernel,) = program.kernels
    unrolled = loops_to_unroll(kernel.body)
    return [
        (static_int(loop.extent), unrolled[loop.var])
        for loop in walk_stmts(kernel.body)
        if isinstance(loop, For) and loop.kind == "serial" and loop.var in unrolled
    ]


def test_elements_that_a_thread_loads_ahead_stay_in_registers(bf16_images: PrimFunc) -> None:
    (tiles,) = [s for s in space_of(bf16_images).sketches if s.name == "tiles"]
    choices = tiles.draw(2000, np.random.default_rng(0))
    mask = passes(tiles, choices, H200)
    copies = CudaBatch(tiles, choices, H200).kernel.conditional_copies_ahead
    most = copies == copies[mask].max()
    assert 0 < copies[mask].max() <= MAX_COPIES_AHEAD < copies.max()
    for row_kept in choices[mask & most][:2]:
        loops = copies_to_unroll(bf16_images, tiles, row_kept)
        assert int(copies[mask].max()) in [extent for extent, _ in loops]
        assert all(extent == number for extent, number in loops)
    (row_dropped,) = choices[copies == copies.max()][:1]
    loops = copies_to_unroll(bf16_images, tiles, row_dropped)
    assert any(number == 1 < extent for extent, number in loops)


def test_copies_without_conditions_may_be_many() -> None:
    func = ops.matmul(1024, 1024, 1024)
    (tiles,) = [sketch for sketch in space_of(func).sketches if sketch.name == "tiles"]
    choices = tiles.draw(2000, np.random.default_rng(0))
    kernel = CudaBatch(tiles, choices, H200).kernel
    assert not kernel.conditional_copies_ahead.any()
    copies = np.max([read.copies_per_thread * (read.stages > 1) for read in kernel.staged], axis=0)
    are_many = passes(tiles, choices, H200) & (copies > MAX_COPIES_AHEAD)
    assert are_many.any()
    loops = copies_to_unroll(func, tiles, choices[are_many][0])
    assert all(extent == number for extent, number in loops)
    assert max(extent for extent, _ in loops) > MAX_COPIES_AHEAD

"""`winograd`: convolutions by tiles compute the same, and each requirement is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler import ops, te
from compiler.driver import build
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import BlockRealize
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.verify.verify import verify
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV
from compiler.schedule.trace.trace import Trace
from tests.unit.compiler.schedule.schedule_asserts import refused


def convolution(**options: Any) -> PrimFunc:
    func: PrimFunc = ops.conv2d(1, 16, 6, 6, 3, 3, 1, 1, **options)
    return func


def block_names(schedule: Schedule, handles: list[BlockRV]) -> list[str]:
    realizes = [schedule.get(handle) for handle in handles]
    return [realize.block.name for realize in realizes if isinstance(realize, BlockRealize)]


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((1, 3, 6, 6, 2, 3, 1, 1), 2),
        ((2, 3, 7, 9, 2, 3, 1, 1), 2),  # a partial tile along each dimension
        ((2, 16, 8, 8, 3, 3, 1, 1), 4),
        ((1, 16, 5, 8, 3, 3, 1, 0), 4),  # 3 by 6 outputs: one tile is partial, one is cut in two
        ((1, 16, 3, 3, 4, 3, 1, 0), 4),  # one output
    ],
)
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_tiles_compute_what_windows_do(shape: Any, tile: int, layout: str) -> None:
    options: Any = {"layout": layout, "dtype": "float64", "bias": True, "activation": "relu"}
    func: PrimFunc = ops.conv2d(*shape, **options)
    schedule = Schedule(func)
    new = schedule.winograd(f"conv2d_{layout.lower()}", tile)
    assert block_names(schedule, new)[-3:] == [
        "products",
        "product_rows",
        "product_tiles",
    ]
    verify(schedule.func)
    inputs = random_inputs(func, 0)
    expected, got = (interpret(f, inputs)["relu"] for f in (func, schedule.func))
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


def test_each_position_of_a_tile_is_computed_exactly() -> None:
    """One window at a time, and whole numbers: float32 holds all of them."""
    func = ops.conv2d(9, 16, 6, 6, 1, 3, 1, 1)
    schedule = Schedule(func)
    schedule.winograd("conv2d_nchw", 2)
    image = np.arange(9 * 16 * 36, dtype=np.float32).reshape(9, 16, 6, 6) % 61
    weights = np.zeros((1, 16, 3, 3), np.float32)
    weights[0, np.arange(9), np.arange(9) // 3, np.arange(9) % 3] = 1
    results = []
    for program in (func, schedule.func):
        result = np.full((9, 1, 6, 6), np.nan, np.float32)
        module = build(program, "cpu -num-cores=1")
        module(image, weights, result)
        module.close()
        results.append(result)
    np.testing.assert_array_equal(results[0], results[1])


def test_two_convolutions_of_a_program_are_tiled() -> None:
    image = te.placeholder((1, 16, 6, 6), name="A")
    first, second = (te.placeholder((16, 16, 3, 3), name=name) for name in ("V", "W"))
    middle = ops.tensors.conv2d(image, first, padding=1)
    func = te.create_prim_func(
        [image, first, second, ops.tensors.conv2d(middle, second, padding=1)]
    )
    schedule = Schedule(func)
    schedule.winograd("conv2d_nchw", 2)
    schedule.winograd("conv2d_nchw_1", 4)
    verify(schedule.func)
    inputs = random_inputs(func, 0)
    (expected,), (got,) = (interpret(f, inputs).values() for f in (func, schedule.func))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_a_trace_replays_tiles() -> None:
    schedule = Schedule(convolution())
    _, data_rows, *_ = schedule.winograd("conv2d_nchw", 4)
    schedule.unroll(schedule.get_loops(data_rows)[0])
    trace = Trace.from_json(schedule.trace.to_json())
    assert structural_equal(trace.apply_to(convolution()).func, schedule.func)


def test_the_error_budget_decides_which_tiles_are_allowed() -> None:
    """The expected error is 112 epsilons for tiles of 4, and 5.3 for tiles of 2."""
    epsilon = float(np.finfo(np.float32).eps)
    for budget, allowed in ((1, (2, 4)), (100 * epsilon, (2,)), (5 * epsilon, ())):
        for tile in (2, 4):
            schedule = Schedule(convolution().with_attr("error_budget", budget))
            if tile in allowed:
                schedule.winograd("conv2d_nchw", tile)
            else:
                with pytest.raises(ScheduleError, match="expected at most") as error:
                    schedule.winograd("conv2d_nchw", tile)
                assert error.value.code == "not_proved"


def test_few_channels_have_too_small_a_tolerance_for_tiles_of_4() -> None:
    schedule = Schedule(ops.conv2d(1, 8, 6, 6, 3, 3, 1, 1))
    reason = "the expected error of block conv2d_nchw is 1.3e-05 of the largest magnitude"
    with refused(schedule, reason, at='T.sblock("conv2d_nchw")'):
        schedule.winograd("conv2d_nchw", 4)


@pytest.mark.parametrize(
    ("func", "reason"),
    [
        (ops.conv2d(1, 16, 6, 6, 3, 3, 2, 1), "windows of 3 x 3, in steps of one"),
        (ops.conv2d(1, 16, 6, 6, 3, 3, 1, 1, 2), "windows of 3 x 3, in steps of one"),
        (ops.conv2d(1, 16, 6, 6, 3, 5, 1, 2), "windows of 3 x 3, in steps of one"),
        (ops.conv2d(1, 16, 6, 6, 16, 3, 1, 1, 1, 4), "windows of 3 x 3, in steps of one"),
        (convolution(dtype="float16"), "windows of 3 x 3, in steps of one"),
    ],
)
def test_other_windows_and_types_are_refused(func: PrimFunc, reason: str) -> None:
    schedule = Schedule(func)
    with refused(schedule, reason, at='T.sblock("conv2d_nchw")'):
        schedule.winograd("conv2d_nchw", 2)


def test_other_tiles_and_blocks_are_refused() -> None:
    schedule = Schedule(convolution())
    with refused(schedule, "tile is 3: expected 2 or 4", at='T.sblock("conv2d_nchw")'):
        schedule.winograd("conv2d_nchw", 3)
    with refused(schedule, "block pad_temp does not add products", at='T.sblock("pad_temp")'):
        schedule.winograd("pad_temp", 2)


def test_loops_that_are_not_serial_are_refused() -> None:
    schedule = Schedule(convolution())
    schedule.parallel(schedule.get_loops("conv2d_nchw")[1])
    with refused(schedule, "loop ff is parallel: expected serial", at="for ff in T.parallel(3)"):
        schedule.winograd("conv2d_nchw", 2)


def test_a_block_that_shares_its_loops_is_refused() -> None:
    schedule = Schedule(convolution())
    schedule.compute_at("pad_temp", schedule.get_loops("conv2d_nchw")[0])
    with refused(schedule, "shares its loops with others: pad_temp", at="for nn in range(1)"):
        schedule.winograd("conv2d_nchw", 2)

"""Threads of a block reduce together, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import inspect
from compiler.ir.core.nodes import Call, Let, static_int
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.ops.spec import from_spec
from compiler.passes.common.error import LoweringError
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from tests.property.generators.schedules import whole_number_inputs
from tests.unit.compiler.passes.device.checked_lowering import LIMITS
from tests.unit.compiler.passes.device.device_interpreter import ORDERS, run_device
from tests.unit.compiler.passes.device.kernels import barriers


def bound(
    spec: str, block: str, threads: int, rows: int = 1, axis: str = "threadIdx.x"
) -> Schedule:
    """Bind the last loop to `threads` threads, and the others to blocks of `rows` rows."""
    sch = Schedule(from_spec(spec))
    *spatial, k = sch.get_loops(sch.get_block(block))
    _, inner = sch.split(k, [None, threads])
    sch.bind(inner, axis)
    for loop in spatial:
        outer, row = sch.split(loop, [None, rows])
        sch.bind(outer, "blockIdx.x")
        sch.bind(row, "threadIdx.x" if axis == "threadIdx.y" else "threadIdx.y")
    return sch


def checked(sch: Schedule, spec: str) -> DeviceKernel:
    func = from_spec(spec)
    program = lower_for_device(sch.func, LIMITS)
    inputs = whole_number_inputs(func, 0)
    expected = interpret(func, inputs)
    for order in ORDERS:
        compare(func, run_device(program, inputs, order), expected)
    return program.kernels[0]


def exchanges(kernel: DeviceKernel) -> list[int]:
    """Return the distances between lanes that exchange values."""
    calls = [node.value for node in walk_stmts(kernel.body) if isinstance(node, Let)]
    return [
        static_int(call.args[1])
        for call in calls
        if isinstance(call, Call) and call.name == "shuffle_xor"
    ]


@pytest.mark.parametrize("threads", [2, 8, 32])
def test_lanes_of_a_warp_exchange_values(threads: int) -> None:
    spec = f"sum:2,{threads * 2},axis=1"
    kernel = checked(bound(spec, "B", threads), spec)
    assert exchanges(kernel) == [d for d in (16, 8, 4, 2, 1) if d < threads]
    assert (kernel.shared_bytes, barriers(kernel)) == (0, 0)


@pytest.mark.parametrize("threads", [64, 96])
def test_warps_exchange_one_value_each_in_shared_memory(threads: int) -> None:
    spec = f"sum:1,{threads + 7},axis=1"
    kernel = checked(bound(spec, "B", threads), spec)
    assert exchanges(kernel) == [16, 8, 4, 2, 1]
    assert (kernel.shared_bytes, barriers(kernel)) == (16, 1)


@pytest.mark.parametrize("threads", [3, 5, 20, 33])
def test_other_numbers_of_threads_combine_in_a_tree(threads: int) -> None:
    spec = f"max:2,{threads * 2 - 1},axis=1"
    kernel = checked(bound(spec, "B", threads), spec)
    assert kernel.shared_bytes == -(-threads * 4 // 16) * 16


@pytest.mark.parametrize(
    ("threads", "axis"), [(8, "threadIdx.x"), (6, "threadIdx.x"), (4, "threadIdx.y")]
)
def test_rows_of_a_block_reduce_apart(threads: int, axis: str) -> None:
    spec = f"sum:5,{threads * 3 - 1},axis=1"
    kernel = checked(bound(spec, "B", threads, 3, axis), spec)
    assert kernel.grid == (2, 1, 1)


@pytest.mark.parametrize("threads", [4, 6])
def test_the_position_of_an_extreme_has_two_values(threads: int) -> None:
    spec = "argmax:3,14,axis=1"
    checked(bound(spec, "B_temp", threads), spec)


@pytest.mark.parametrize("threads", [4, 6])
def test_positions_of_infinite_values_and_nan_exist(threads: int) -> None:
    program = lower_for_device(bound("argmax:3,5,axis=1", "B_temp", threads).func, LIMITS)
    rows = np.full((3, 5), -np.inf, np.float32)
    rows[1:, 2], rows[2, 4] = np.nan, 1
    for order in ORDERS:
        positions = run_device(program, {"A": rows}, order)["B"]
        assert positions[0] == 0
        assert ((positions >= 0) & (positions < 5)).all()


def test_a_whole_reduction_is_one_kernel() -> None:
    spec = "sum:70"
    kernel = checked(bound(spec, "B", 16), spec)
    assert kernel.block == (16, 1, 1)


def test_the_largest_block_reduces() -> None:
    kernel = lower_for_device(bound("sum:2,4096,axis=1", "B", 1024).func, LIMITS).kernels[0]
    assert kernel.shared_bytes == 32 * 4


def test_a_decomposed_reduction_is_refused() -> None:
    sch = Schedule(from_spec("sum:4,16,axis=1"))
    block = sch.get_block("B")
    i, k = sch.get_loops(block)
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    sch.decompose_reduction(block, k)
    with pytest.raises(LoweringError, match="bind the loop without decompose_reduction"):
        lower_for_device(sch.func, LIMITS)


@pytest.mark.parametrize(
    ("spec", "block", "threads", "rows", "axis"),
    [
        ("sum:3,40,axis=1", "B", 16, 2, "threadIdx.x"),
        ("sum:2,200,axis=1", "B", 96, 1, "threadIdx.x"),
        ("max:5,40,axis=1", "B", 6, 3, "threadIdx.y"),
        ("argmax:3,14,axis=1", "B_temp", 6, 1, "threadIdx.x"),
    ],
)
def test_the_emulator_runs_them_without_faults(
    spec: str, block: str, threads: int, rows: int, axis: str
) -> None:
    sch = bound(spec, block, threads, rows, axis)
    emulation = inspect(sch, "cuda -gpu=h200 -emulated").emulation
    assert emulation is not None
    assert emulation.is_correct, emulation.summary

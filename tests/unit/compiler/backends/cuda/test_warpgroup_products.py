"""Products of warpgroups, compiled for sm_90a and emulated, equal the oracle."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import poisoned
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs
from compiler.passes.device.lower import lower_for_device
from compiler.target.cuda import CudaTarget
from compiler.target.gpus import ARCHS
from compiler.target.target import Target
from compiler.te.value import Value
from tests.warpgroup_matmul import Layout, RingTiles, matmul, scheduled

EMULATED = CudaTarget("cuda -arch=sm_90a -emulated")


def assert_computes(func: PrimFunc, tiles: RingTiles, target: Target = EMULATED) -> None:
    inputs = random_inputs(func, seed=1)
    expected = interpret(func, inputs)
    arrays = {
        p.name: inputs[p.name].copy() if p.name in inputs else poisoned(p) for p in func.buffers
    }
    build(scheduled(func, tiles), target)(*arrays.values())
    compare(func, arrays, expected)


@pytest.mark.parametrize(
    ("shape", "layout", "tiles"),
    [
        ((64, 64, 64), Layout(), RingTiles()),
        ((128, 64, 192), Layout("float16", is_b_transposed=True), RingTiles((128, 64), 2, 3)),
        ((128, 128, 72), Layout(is_a_transposed=True), RingTiles((128, 128), 1, 2)),
        ((64, 40, 64), Layout(is_b_transposed=True), RingTiles((64, 40), 1, 4)),
    ],
)
def test_the_operands_may_be_stored_in_either_order(
    shape: tuple[int, int, int], layout: Layout, tiles: RingTiles
) -> None:
    assert_computes(matmul(shape, layout), tiles)


def test_extents_need_not_be_multiples_of_the_tiles() -> None:
    # Some rows of the last block belong to a warpgroup without any row of the result.
    assert_computes(matmul((136, 72, 88)), RingTiles((128, 64), 2, 2))


def test_a_tile_does_not_reach_into_the_next_matrix_of_a_batch() -> None:
    layout = Layout(is_b_transposed=True, num_batches=2)
    assert_computes(matmul((72, 64, 24), layout), RingTiles())


def relu(total: Value, bias: Value) -> Value:
    value = total + bias
    return te.if_then_else(value > 0.0, value, 0.0)


def test_an_epilogue_runs_on_the_sums_in_registers() -> None:
    assert_computes(matmul((72, 136, 64), epilogue=relu), RingTiles((64, 128), 1, 2))


def test_a_block_may_compute_several_tiles() -> None:
    # Two blocks compute three tiles: the position in the ring goes on from tile to tile.
    func = matmul((192, 64, 192))
    assert_computes(func, RingTiles((64, 64), 1, 2, blocks=2))


def test_the_description_runs_on_the_cpu() -> None:
    assert_computes(matmul((64, 64, 64)), RingTiles(), Target("cpu -num-cores=1"))


def test_a_large_tile_needs_no_more_registers_than_there_are() -> None:
    sch = scheduled(matmul((4096, 4096, 4096)), RingTiles((128, 256), 2, 4))
    program = lower_for_device(sch.func, ARCHS["sm_90a"])
    resources = compile_cuda(emit_cuda(program), "sm_90a").resources["main_kernel"]
    assert resources.spill_bytes == resources.stack_bytes == 0
    # Three warpgroups have 168 registers each, until they change their numbers.
    assert resources.registers == 168

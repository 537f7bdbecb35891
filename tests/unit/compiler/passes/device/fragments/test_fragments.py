"""Fragments of tensor cores belong to warps, whose lanes lie along threadIdx.x."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Allocate, Call, Evaluate, For, If, static_shape
from compiler.ir.core.visit import walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.thread_loops import is_barrier
from compiler.passes.device.kernel import DeviceKernel
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from tests.tensor_core_matmul import BF16, Tiles, matmul, scheduled
from tests.unit.compiler.passes.device.checked_lowering import LIMITS

SHAPE = (32, 16, 32)
TILES = Tiles((32, 16, 16), (16, 8))


@pytest.fixture(scope="module")
def kernel() -> DeviceKernel:
    (kernel,) = lower_for_device(scheduled(SHAPE, tiles=TILES).func, LIMITS).kernels
    return kernel


def test_each_warp_has_its_tile_of_the_sums(kernel: DeviceKernel) -> None:
    assert kernel.block == (32, 4, 1)
    shapes = {
        node.buffer.name: static_shape(node.buffer)
        for node in walk_stmts(kernel.body)
        if isinstance(node, Allocate)
    }
    # 16 by 8 sums are 4 registers of each lane.
    assert shapes["C_wmma.accumulator"] == (4,)
    # More threads copy than the tile has vectors: a condition excludes some.
    assert shapes["B_shared"] == (16, 16)


def test_two_barriers_a_step_and_none_in_the_epilogue(kernel: DeviceKernel) -> None:
    steps = [n for n in walk_stmts(kernel.body) if isinstance(n, For) and n.var.name == "k_0"]
    assert sum(map(is_barrier, walk_stmts(kernel.body))) == 2
    assert [sum(map(is_barrier, walk_stmts(step))) for step in steps] == [2]


def test_all_lanes_load_and_multiply_fragments(kernel: DeviceKernel) -> None:
    guarded = [node for n in walk_stmts(kernel.body) if isinstance(n, If) for node in walk_stmts(n)]
    calls = [node for node in walk_stmts(kernel.body) if isinstance(node, Evaluate)]
    names = [call.value.name for call in calls if isinstance(call.value, Call)]
    assert names == [
        "tvm_storage_sync",
        "ldmatrix.x4",
        "ldmatrix.x2.trans",
        BF16.name,
        "tvm_storage_sync",
    ]
    assert not any(isinstance(node, Evaluate) for node in guarded)


def test_loops_over_warps_are_not_bound_to_the_lanes() -> None:
    sch = Schedule(matmul((32, 8, 16), BF16))
    block = sch.get_block("C")
    out = sch.cache_write(block, 0, "wmma.accumulator")
    i, *_ = sch.get_loops(block)
    warp, _ = sch.split(i, [2, 16])
    sch.bind(warp, "threadIdx.x")
    sch.reverse_compute_at(out, warp)
    with pytest.raises(LoweringError, match=r"has 2 threads along threadIdx\.x: expected the 32"):
        lower_for_device(sch.func, LIMITS)

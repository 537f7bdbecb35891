"""Products of warpgroups become a ring of stages that one thread fills; others are refused."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.ir.core.nodes import Call, Evaluate, For, If, static_shape
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.device.kernel import DeviceKernel, TensorBox
from compiler.passes.device.lower import lower_for_device
from compiler.target.gpus import ARCHS
from tests.unit.compiler.passes.device.checked_lowering import LIMITS
from tests.warpgroup_matmul import Layout, RingTiles, matmul, scheduled

PLAIN = Layout()
TILES = RingTiles((128, 128), consumers=2, stages=3)


def kernel_of(
    shape: tuple[int, int, int], layout: Layout = PLAIN, tiles: RingTiles = TILES
) -> DeviceKernel:
    (kernel,) = lower_for_device(scheduled(matmul(shape, layout), tiles).func, LIMITS).kernels
    return kernel


@pytest.fixture(scope="module")
def kernel() -> DeviceKernel:
    return kernel_of((200, 136, 104))


def calls(stmt: object) -> list[Call]:
    return [
        node.value
        for node in walk(stmt)  # type: ignore[arg-type] # a statement
        if isinstance(node, Evaluate) and isinstance(node.value, Call)
    ]


def test_one_more_warpgroup_fetches(kernel: DeviceKernel) -> None:
    assert kernel.block == (128, 3, 1)
    roles = next(
        node for node in walk_stmts(kernel.body) if isinstance(node, If) and node.otherwise
    )
    fetched = [call.name for call in calls(roles.otherwise)]
    assert fetched == ["decrease_registers", "mbarrier_wait", "mbarrier_expect"] + 3 * [
        "tensor_copy"
    ]
    assert "tensor_copy" not in [call.name for call in calls(roles.then)]


def test_each_operand_is_fetched_in_boxes_of_128_bytes(kernel: DeviceKernel) -> None:
    boxes = {(box.buffer.name, box.box) for box in kernel.tensors}
    # The rows of A run along k; those of B along n, so that a box has 64 of its columns.
    assert boxes == {("A", (128, 64)), ("B", (64, 64))}
    assert [buffer.name for buffer in kernel.buffers] == ["C"]
    expected = next(call for call in calls(kernel.body) if call.name == "mbarrier_expect")
    assert expected.args[1].value == (128 + 128) * 64 * 2  # type: ignore[union-attr]


def test_the_ring_has_its_stages_in_shared_memory(kernel: DeviceKernel) -> None:
    shapes = {b.name: static_shape(b) for b in kernel.shared_offsets}
    assert shapes == {"operands": (3, 256, 64), "barriers": (2, 3)}
    offsets = {b.name: offset for b, offset in kernel.shared_offsets.items()}
    assert offsets["operands"] == 0


def test_the_reduction_runs_in_chunks_of_64(kernel: DeviceKernel) -> None:
    chunks = [n for n in walk_stmts(kernel.body) if isinstance(n, For) and n.var.name == "chunk"]
    assert [chunk.extent.value for chunk in chunks] == [2, 2]  # type: ignore[union-attr]


def test_a_large_tile_is_fetched_in_several_boxes() -> None:
    layout = Layout(is_b_transposed=True)
    tiles = RingTiles((384, 64), consumers=2)
    (box, _) = kernel_of((384, 64, 64), layout, tiles).tensors
    assert box.box == (192, 64)


def test_a_batch_is_a_dimension_of_the_box() -> None:
    layout = Layout(num_batches=3)
    tensors = kernel_of((128, 128, 64), layout).tensors
    assert {tensor.box for tensor in tensors} == {(1, 128, 64), (1, 64, 64)}
    assert all(isinstance(tensor, TensorBox) for tensor in tensors)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
def test_only_sm_90a_has_products_of_warpgroups(arch: str) -> None:
    sch = scheduled(matmul((128, 128, 64)), RingTiles())
    with pytest.raises(LoweringError, match=r"which only sm_90a has; use an instruction of warps"):
        lower_for_device(sch.func, ARCHS[arch])


@pytest.mark.parametrize(
    ("shape", "layout", "tiles", "message"),
    [
        ((128, 128, 60), Layout(), TILES, r"A of \[128, 60\].* rows are multiples of 16 bytes"),
        ((128, 132, 64), Layout(), TILES, r"B of \[64, 132\].* rows are multiples of 16 bytes"),
        ((128, 96, 64), Layout(), RingTiles((64, 96)), "96 of its elements must be a multi"),
        ((128, 64, 64), Layout(), RingTiles(stages=1), "has 1 stages and 1 warpgroups"),
        ((192, 64, 64), Layout(), RingTiles((192, 64), 3), "has 2 stages and 3 warpgroups"),
        ((128, 64, 64), Layout(), RingTiles((32, 64)), "not made of whole tiles of 64 by 64"),
    ],
)
def test_what_the_copy_engine_can_not_do_is_refused(
    shape: tuple[int, int, int], layout: Layout, tiles: RingTiles, message: str
) -> None:
    with pytest.raises(LoweringError, match=message):
        kernel_of(shape, layout, tiles)


NEST = """
@T.prim_func
def main(A: T.Buffer((64, 128), "bfloat16"), B: T.Buffer((64, 128), "bfloat16"),
         C: T.Buffer((64, 64), "float32")):
    with T.sblock("root"):
        F = T.sblock_alloc_buffer((64, 64), scope="wmma.accumulator")
        for w in T.thread_binding(1, thread="blockIdx.x"):
            for i, j in T.grid(64, 64):
                with T.sblock("init"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    F[vi, vj] = T.float32(0)
            for i in T.serial(64, annotations={{"device_instruction": "wgmma.m64nNk16.bf16.f32"}}):
                for j, k in T.grid(64, {depth}):
                    with T.sblock("product"):
                        vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                        T.where({condition})
                        F[vi, vj] = F[vi, vj] + {value}
            for i, j in T.grid(64, 64):
                with T.sblock("store"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = F[vi, vj]
"""
LEFT = 'T.Cast("float32", A[vi, vk])'
RIGHT = 'T.Cast("float32", B[vj, vk])'


@pytest.mark.parametrize(
    ("value", "condition", "depth", "message"),
    [
        (f"{LEFT} * {RIGHT}", "i < 32", 128, "the condition i < 32 inside of it is impossible"),
        (f"{LEFT} * {RIGHT}", "True", 100, "a part of A and no multiple of 64"),
        (f"({LEFT} + {RIGHT})", "True", 128, "a sum of products of bfloat16"),
        (f"{LEFT} * T.Cast('float32', B[vj, 127 - vk])", "True", 128, "tiles of B"),
        (f"{LEFT} * T.Cast('float32', A[vj, vi])", "True", 128, "tiles of A|contiguous"),
    ],
)
def test_another_computation_is_refused(
    value: str, condition: str, depth: int, message: str
) -> None:
    func = lw.parse(NEST.format(value=value, condition=condition, depth=depth))
    with pytest.raises(LoweringError, match=message):
        lower_for_device(func, LIMITS)


def test_a_part_of_a_reduction_of_whole_chunks_is_computed() -> None:
    func = lw.parse(NEST.format(value=f"{LEFT} * {RIGHT}", condition="True", depth=64))
    (kernel,) = lower_for_device(func, LIMITS).kernels
    assert kernel.block == (128, 2, 1)

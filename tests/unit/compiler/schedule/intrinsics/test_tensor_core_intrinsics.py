"""Intrinsics of tensor cores: what they compute, and a whole product made of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import BlockRealize, For, Stmt
from compiler.ir.core.visit import map_stmt, walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.schedule.error import ScheduleError
from compiler.schedule.intrinsics.tensor_core_intrinsics import TENSOR_CORE_INTRINSICS
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, MMA_INSTRUCTIONS, MmaInstruction
from tests.tensor_core_matmul import BF16, Tiles, scheduled

CPU = "cpu -num-cores=2"


def without_notes(stmt: Stmt) -> Stmt:
    new = map_stmt(stmt, without_notes, lambda expr: expr)
    return replace(new, annotations=()) if isinstance(new, For) else new


@pytest.mark.parametrize("name", TENSOR_CORE_INTRINSICS)
def test_an_implementation_is_its_description_with_a_note(name: str) -> None:
    intrin = TensorIntrin.get(name)
    body = without_notes(intrin.impl.body)
    assert isinstance(body, BlockRealize)
    plain = replace(intrin.impl, body=body)
    assert structural_equal(plain, intrin.desc)
    notes = [
        dict(loop.annotations)
        for loop in walk_stmts(intrin.impl.body)
        if isinstance(loop, For) and loop.annotations
    ]
    assert bool(notes) == ("_sync_" in name)
    assert all(note[DEVICE_INSTRUCTION] in MMA_INSTRUCTIONS for note in notes)


def operands(
    instruction: MmaInstruction, shape: tuple[int, int, int], *, is_b_transposed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two matrices of small whole numbers, and their exact product."""
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    dtype = np.dtype(instruction.operand)
    stored = b.T if is_b_transposed else b
    return a.astype(dtype), np.ascontiguousarray(stored).astype(dtype), a @ b


CASES = [
    (BF16.name, False),
    (BF16.name, True),
    ("mma.m16n8k8.tf32.f32", False),
    ("mma.m16n8k32.s8.s32", True),
]


@pytest.mark.parametrize(("name", "is_b_transposed"), CASES)
def test_a_product_of_tiles_on_tensor_cores_is_correct_on_a_cpu(
    name: str, is_b_transposed: bool
) -> None:
    instruction = MMA_INSTRUCTIONS[name]
    k = instruction.shape[2]
    shape = (64, 32, 2 * k)
    tiles = Tiles((32, 32, k), (16, 16), is_b_transposed, vector_bytes=4)
    a, b, product = operands(instruction, shape, is_b_transposed=is_b_transposed)
    c = np.zeros(shape[:2], instruction.accumulator)
    lw.build(scheduled(shape, instruction, tiles).func, CPU)(a, b, c)
    assert np.array_equal(c.astype(np.int64), product)


WARPS = """
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    with T.sblock("root"):
        F = T.sblock_alloc_buffer((4, 8), "float32", scope="{scope}")
        for w in T.thread_binding(2, thread="threadIdx.y"):
            for i, j in T.grid(2, 8):
                with T.sblock("load"):
                    vi = T.axis.spatial(4, w * 2 + i)
                    vj = T.axis.spatial(8, j)
                    F[vi, vj] = A[vi, vj]
            for i, j in T.grid(2, 8):
                with T.sblock("store"):
                    vi = T.axis.spatial(4, w * 2 + i)
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = F[{row}, vj]
"""


def test_each_warp_has_its_fragments() -> None:
    func = lw.parse(WARPS.format(scope="wmma.accumulator", row="vi"))
    a = np.arange(32, dtype="float32").reshape(4, 8)
    assert np.array_equal(evaluate(func, {"A": a})["B"], a)
    assert np.isnan(
        evaluate(lw.parse(WARPS.format(scope="wmma.accumulator", row="3 - vi")), {"A": a})["B"]
    ).all()


def test_a_warp_may_not_read_the_fragment_of_another() -> None:
    legal = lw.Schedule(lw.parse(WARPS.format(scope="shared", row="vi")))
    legal.set_scope("load", 0, "wmma.accumulator")
    sch = lw.Schedule(lw.parse(WARPS.format(scope="shared", row="3 - vi")))
    with pytest.raises(ScheduleError, match="a thread of block store may read what another wrote"):
        sch.set_scope("load", 0, "wmma.accumulator")


def test_padding_and_a_pipeline_are_accepted_around_fragments() -> None:
    shape = (32, 32, 64)
    sch = scheduled(shape, tiles=Tiles((32, 32, 16), (16, 16), vector_bytes=4))
    for name in ("A_shared", "B_shared"):
        sch.storage_align(name, 0, 0, 32, 8)
    step = sch.get_loops("A_shared")[3]
    sch.annotate(step, "software_pipeline_stage", [0, 0, 1])
    sch.annotate(step, "software_pipeline_order", [0, 1, 2])
    a, b, product = operands(BF16, shape, is_b_transposed=False)
    c = np.zeros(shape[:2], "float32")
    lw.build(sch.func, CPU)(a, b, c)
    assert np.array_equal(c.astype(np.int64), product)

"""Products on tensor cores."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.ir.core.nodes import For
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, MMA_INSTRUCTIONS
from tests.tensor_core_matmul import matmul
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes
from tuner.space.rules.cuda.tensor_tiles import TensorTiles
from tuner.space.rules.sketch_builder import SketchBuilder


def product(name: str, *, is_b_transposed: bool = False) -> PrimFunc:
    instruction = MMA_INSTRUCTIONS[name]
    return matmul((32, 64, 64), instruction, is_b_transposed=is_b_transposed)


def rectified() -> PrimFunc:
    """Return a product with sums of 32 bits, a bias, and a result of 16 bits."""
    a = te.placeholder((32, 32), "float16", name="A")
    b = te.placeholder((32, 32), "float16", name="B")
    bias = te.placeholder((32,), "float32", name="bias")
    k = te.reduce_axis((0, 32), name="k")
    c = te.compute(
        (32, 32),
        lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k),
        name="C",
    )
    d = te.compute(
        (32, 32), lambda i, j: te.max(c[i, j] + bias[j], 0.0).astype("float16"), name="D"
    )
    return te.create_prim_func([a, b, bias, d])


@pytest.mark.parametrize(
    "func",
    [
        product("mma.m16n8k16.bf16.f32"),
        product("mma.m16n8k32.s8.s32", is_b_transposed=True),
        ops.batch_matmul(2, 32, 32, 32, dtype="float16"),
        rectified(),
    ],
    ids=["bf16", "s8", "batch", "epilogue"],
)
def test_the_first_schedule_computes_the_program(func: PrimFunc) -> None:
    with_tensor_cores, without = TensorTiles().apply(SketchBuilder.begin(func, H200))
    assert (with_tensor_cores.name, without.name) == (("tensor_tiles",), ())
    schedule = with_tensor_cores.schedule
    notes = [
        dict(loop.annotations)[DEVICE_INSTRUCTION]
        for loop in walk_stmts(schedule.func.body)
        if isinstance(loop, For) and DEVICE_INSTRUCTION in dict(loop.annotations)
    ]
    assert len(notes) == 1
    assert_computes(func, [schedule])


@pytest.mark.parametrize(
    "func",
    [
        ops.matmul(64, 64, 64),  # tf32 would round the operands
        ops.matmul(60, 64, 64, dtype="float16"),  # no whole tiles
        ops.matmul(64, 64, 64, dtype="bfloat16"),  # sums of 16 bits
        ops.dense(1, 64, 64, dtype="float16"),  # a vector
    ],
)
def test_other_products_are_left_alone(func: PrimFunc) -> None:
    assert [draft.name for draft in TensorTiles().apply(SketchBuilder.begin(func, H200))] == [()]

"""The slides' tensor intrinsic: declared as an expression, with its own reset and update."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import loopwright as lw
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.tree.tree import blocks
from loopwright import te
from tests.tutorials.running import assert_close, random_array, run

_SUM = " + ".join(f"ww[i, {k}] * xx[j, {k}]" for k in range(8))

GEMM8X8 = f"""
@T.prim_func
def gemm8x8(
    ww: T.Buffer((8, 8), "float32"),
    xx: T.Buffer((8, 8), "float32"),
    zz: T.Buffer((8, 8), "float32"),
):
    for i, j in T.grid(8, 8):
        zz[i, j] = {_SUM}
"""

FILL_ZERO = """
@T.prim_func
def fill_zero(zz: T.Buffer((8, 8), "float32")):
    for i in range(8):
        zz[i, 0:8] = T.Broadcast(T.float32(0), 8)
"""

FUSE_GEMM8X8_ADD = f"""
@T.prim_func
def fuse_gemm8x8_add(
    ww: T.Buffer((8, 8), "float32"),
    xx: T.Buffer((8, 8), "float32"),
    zz: T.Buffer((8, 8), "float32"),
):
    for i, j in T.grid(8, 8):
        zz[i, j] = zz[i, j] + ({_SUM})
"""


def product(m: int, n: int, depth: int) -> list[te.Tensor]:
    w, x = te.placeholder((m, depth), name="w"), te.placeholder((n, depth), name="x")
    k = te.reduce_axis((0, depth), "k")
    return [w, x, te.compute((m, n), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), name="y")]


@pytest.fixture(autouse=True)
def intrinsics() -> Iterator[None]:
    """Declare the intrinsics, for one test."""
    known = dict(TensorIntrin._registered)
    TensorIntrin.declare(
        product(8, 8, 8),
        compute=lw.parse(GEMM8X8),
        reset=lw.parse(FILL_ZERO),
        update=lw.parse(FUSE_GEMM8X8_ADD),
        override=True,  # the library has intrinsics of these names too
    )
    yield
    TensorIntrin._registered.clear()
    TensorIntrin._registered.update(known)


def test_a_product_of_that_size_is_one_instruction() -> None:
    sch = lw.Schedule(te.create_prim_func(product(8, 8, 8)))
    sch.tensorize(sch.get_loops("y")[0], "gemm8x8")
    a, b = random_array(8, 8), random_array(8, 8, seed=1)
    assert_close(run(sch, a, b), a @ b.T)


def test_a_larger_product_is_reset_once_and_updated_tile_by_tile() -> None:
    sch = lw.Schedule(te.create_prim_func(product(32, 24, 40)))
    y = sch.get_block("y")
    i, j, k = sch.get_loops(y)
    i0, i1 = sch.split(i, factors=[None, 8])
    j0, j1 = sch.split(j, factors=[None, 8])
    k0, k1 = sch.split(k, factors=[None, 8])
    sch.reorder(i0, j0, k0, i1, j1, k1)
    init = sch.decompose_reduction(y, k0)
    sch.tensorize(sch.get_loops(init)[2], "fill_zero")
    sch.tensorize(i1, "fuse_gemm8x8_add")

    views = [len(realize.block.match_buffers) for realize in blocks(sch.func)]
    assert views == [0, 1, 3]
    a, b = random_array(32, 40), random_array(24, 40, seed=1)
    assert_close(run(sch, a, b), a @ b.T)
    assert lw.structural_equal(lw.parse(sch.func.script()), sch.func)


def test_another_computation_is_not_taken_for_the_product() -> None:
    a, b = te.placeholder((8, 8), name="a"), te.placeholder((8, 8), name="b")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((8, 8), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    sch = lw.Schedule(te.create_prim_func([a, b, c]))
    with pytest.raises(lw.ScheduleError, match="not what the intrinsic computes"):
        sch.tensorize(sch.get_loops("c")[0], "gemm8x8")

"""Each primitive on reductions, padding and tensor intrinsics: what it rewrites, as text."""

from __future__ import annotations

from collections.abc import Callable

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from tests.golden.schedule.test_primitives import change, convolution, elementwise, matmul
from tests.golden.schedule.test_storage import odd_product

Golden = Callable[[str], None]


def biased_product() -> PrimFunc:
    """Return a product to which a bias is added."""
    A, B = te.placeholder((16, 16), name="A"), te.placeholder((16, 16), name="B")
    bias = te.placeholder((16,), name="bias")
    r = te.reduce_axis((0, 16), "k")
    Y = te.compute((16, 16), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), "Y")
    C = te.compute((16, 16), lambda i, j: Y[i, j] + bias[j], "C")
    return te.create_prim_func([A, B, bias, C], "biased_product")


def row_sums() -> PrimFunc:
    A = te.placeholder((4, 32), name="A")
    r = te.reduce_axis((0, 32), "k")
    C = te.compute((4,), lambda i: te.sum(A[i, r], axis=r), "C")
    return te.create_prim_func([A, C], "row_sums")


def weighted_mean() -> PrimFunc:
    """Return means of rows of `V`, weighted by the softmax of a row of `S`."""
    S, V = te.placeholder((4, 20), name="S"), te.placeholder((20, 3), name="V")
    k = te.reduce_axis((0, 20), "k")
    M = te.compute((4,), lambda i: te.max(S[i, k], axis=k), "M")
    P = te.compute((4, 20), lambda i, j: te.exp(S[i, j] - M[i]), "P")
    L = te.compute((4,), lambda i: te.sum(P[i, k], axis=k), "L")
    W = te.compute((4, 20), lambda i, j: P[i, j] / L[i], "W")
    Y = te.compute((4, 3), lambda i, c: te.sum(W[i, k] * V[k, c], axis=k), "Y")
    return te.create_prim_func([S, V, Y], "weighted_mean")


def masked_sums() -> PrimFunc:
    """Return sums of the lower triangle of a matrix."""
    A = te.placeholder((12, 12), name="A")
    k = te.reduce_axis((0, 12), "k")
    C = te.compute((12,), lambda i: te.sum(te.if_then_else(k <= i, A[i, k], 0.0), axis=k), "C")
    return te.create_prim_func([A, C], "masked_sums")


def image_convolution() -> PrimFunc:
    """Return a convolution whose outputs are no whole number of tiles."""
    X, W = te.placeholder((1, 2, 5, 6), name="X"), te.placeholder((3, 2, 3, 3), name="W")
    c, p, q = (te.reduce_axis((0, n), name) for n, name in ((2, "c"), (3, "p"), (3, "q")))
    Y = te.compute(
        (1, 3, 3, 4),
        lambda b, o, y, x: te.sum(X[b, c, y + p, x + q] * W[o, c, p, q], axis=[c, p, q]),
        "Y",
    )
    return te.create_prim_func([X, W, Y], "image_convolution")


def window_sums() -> PrimFunc:
    """Return sums over windows of three rows of an intermediate."""
    A = te.placeholder((12, 8), name="A")
    r = te.reduce_axis((0, 3), "r")
    B = te.compute((12, 8), lambda i, j: A[i, j] * 2.0, "B")
    C = te.compute((10, 8), lambda i, j: te.sum(B[i + r, j], axis=r), "C")
    return te.create_prim_func([A, C], "window_sums")


def test_blockize(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, k = schedule.get_loops("C")
    j_0, j_1 = schedule.split(j, [None, 8])
    schedule.reorder(i, j_0, k, j_1)
    golden(change(schedule, lambda s: s.blockize(k)))


def test_blockize_of_several_blocks(golden: Golden) -> None:
    schedule = Schedule(elementwise())
    _, j = schedule.get_loops("C")
    schedule.compute_at("B", j)
    golden(change(schedule, lambda s: s.blockize(["B", "C"])))


def test_tensorize(golden: Golden) -> None:
    schedule = Schedule(matmul())
    i, j, k = schedule.get_loops("C")
    j_0, j_1 = schedule.split(j, [None, 8])
    schedule.reorder(i, j_0, k, j_1)
    schedule.decompose_reduction("C", k)
    golden(change(schedule, lambda s: s.tensorize(j_1, "row_update_8_f32")))


def test_decompose_padding(golden: Golden) -> None:
    schedule = Schedule(convolution())
    (x,) = schedule.get_loops("P")
    golden(change(schedule, lambda s: s.decompose_padding("P", x)))


def test_pad_einsum(golden: Golden) -> None:
    golden(change(Schedule(odd_product()), lambda s: s.pad_einsum("C", [4, 4, 1])))


def test_fuse_reduction_epilogue(golden: Golden) -> None:
    golden(change(Schedule(biased_product()), lambda s: s.fuse_reduction_epilogue("Y", "C")))


def test_online_softmax(golden: Golden) -> None:
    schedule = Schedule(weighted_mean())
    i, c, j = schedule.get_loops("Y")
    j_0, j_1 = schedule.split(j, [None, 8])
    schedule.reorder(j_0, i, c, j_1)
    golden(change(schedule, lambda s: s.online_softmax("Y", j_0), rtol=1e-5))


def test_skip_masked(golden: Golden) -> None:
    schedule = Schedule(masked_sums())
    i, k = schedule.get_loops("C")
    i_0, i_1 = schedule.split(i, [None, 4])
    k_0, k_1 = schedule.split(k, [None, 4])
    schedule.reorder(i_0, k_0, i_1, k_1)
    schedule.decompose_reduction("C", k_0)
    golden(change(schedule, lambda s: s.skip_masked(k_0)))


def test_rfactor(golden: Golden) -> None:
    schedule = Schedule(row_sums())
    _, k = schedule.get_loops("C")
    _, k_1 = schedule.split(k, [None, 8])
    golden(change(schedule, lambda s: s.rfactor(k_1, factor_axis=1)))


def test_winograd(golden: Golden) -> None:
    schedule = Schedule(image_convolution())
    golden(change(schedule, lambda s: s.winograd("Y", 2), rtol=1e-5))


def test_call_library(golden: Golden) -> None:
    schedule = Schedule(biased_product())
    golden(change(schedule, lambda s: s.call_library("Y", "blas.matmul"), rtol=1e-5))


def test_rolling_buffer(golden: Golden) -> None:
    schedule = Schedule(window_sums())
    i, _, _ = schedule.get_loops("C")
    schedule.compute_at("B", i)
    golden(change(schedule, lambda s: s.rolling_buffer("B", 0)))

"""The slides on tensor expressions: affine indices, loops with guards, recurrences, intrinsics."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from loopwright import te
from tests.tutorials.running import assert_close, random_array, run


def test_dot_of_a_transposed_matrix_with_symbolic_shapes() -> None:
    m, n, h = te.var("m"), te.var("n"), te.var("h")
    A = te.placeholder((m, h), name="A")
    B = te.placeholder((n, h), name="B")
    k = te.reduce_axis((0, h), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    func = te.create_prim_func([A, B, C]).specialize({"m": 12, "n": 20, "h": 33})
    a, b = random_array(12, 33), random_array(20, 33, seed=1)
    assert_close(run(func, a, b), a @ b.T)


def test_an_affine_transformation() -> None:
    n, m, h = 12, 20, 33
    data = te.placeholder((n, h), name="data")
    w = te.placeholder((m, h), name="w")
    bias = te.placeholder((m,), name="bias")
    k = te.reduce_axis((0, h), name="k")
    out = te.compute((n, m), lambda i, j: te.sum(data[i, k] * w[j, k], k))
    shifted = te.compute((n, m), lambda i, j: out[i, j] + bias[j])
    x, weights, b = random_array(n, h), random_array(m, h, seed=1), random_array(m, seed=2)
    func = te.create_prim_func([data, w, bias, shifted])
    assert_close(run(func, x, weights, b), x @ weights.T + b)


def test_a_convolution() -> None:
    c, h, w = 3, 8, 10
    data = te.placeholder((2, h + 2, w + 2), name="data")
    weight = te.placeholder((c, 2, 3, 3), name="w")
    kc, kx, ky = (te.reduce_axis((0, n), name) for n, name in ((2, "kc"), (3, "kx"), (3, "ky")))
    out = te.compute(
        (c, h, w),
        lambda i, x, y: te.sum(data[kc, x + kx, y + ky] * weight[i, kc, kx, ky], [kx, ky, kc]),
    )
    image, filters = random_array(2, h + 2, w + 2), random_array(c, 2, 3, 3, seed=1)
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), axis=(1, 2))
    expected = np.einsum("kxyab,ikab->ixy", windows, filters)
    assert_close(run(te.create_prim_func([data, weight, out]), image, filters), expected)


def test_a_rectifier_of_any_rank() -> None:
    shape = (3, 4, 5)
    x = te.placeholder(shape, name="x")
    out = te.compute(shape, lambda *i: te.max(0, x(*i)))
    values = random_array(*shape)
    np.testing.assert_array_equal(run(te.create_prim_func([x, out]), values), np.maximum(values, 0))


def vector_add(n: int) -> lw.PrimFunc:
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    return te.create_prim_func([A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")])


LOOPS = """
@T.prim_func
def main(A: T.Buffer[(N,), "float32"], B: T.Buffer[(N,), "float32"], C: T.Buffer[(N,), "float32"]):
    T.func_attr({"tir.noalias": True})
    for LOOPS:
        with T.block("C"):
            i = T.axis.spatial(N, xo * 32 + xi)
            WHERE
            C[i] = A[i] + B[i]
"""


def expected_loops(n: int, loops: str) -> lw.PrimFunc:
    guard = "" if n % 32 == 0 else f"T.where(xo * 32 + xi < {n})"
    text = LOOPS.replace("LOOPS", loops).replace("(N,)", f"({n},)").replace("N,", f"{n},")
    return lw.parse(text.replace("WHERE", guard))


@pytest.mark.parametrize("n", [128, 100])
def test_a_split_has_a_guard_where_it_does_not_divide(n: int) -> None:
    blocks = -(-n // 32)
    a, b = random_array(n), random_array(n, seed=1)
    sch = lw.Schedule(vector_add(n))

    def check(loops: str) -> None:
        assert structural_equal(sch.func, expected_loops(n, loops))
        np.testing.assert_array_equal(run(sch, a, b), a + b)

    (i,) = sch.get_loops("C")
    xo, xi = sch.split(i, factors=[None, 32])
    check(f"xo, xi in T.grid({blocks}, 32)")

    sch.reorder(xi, xo)
    check(f"xi, xo in T.grid(32, {blocks})")

    sch.bind(xo, "blockIdx.x")
    sch.bind(xi, "threadIdx.x")
    bound = (
        'xi in T.thread_binding(32, thread="threadIdx.x"):\n'
        f'     for xo in T.thread_binding({blocks}, thread="blockIdx.x")'
    )
    check(bound)


def test_a_loop_over_a_symbolic_shape_is_split_with_a_guard() -> None:
    n = te.var("n")
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    func = te.create_prim_func([A, B, te.compute((n,), lambda i: A[i] + B[i], name="C")])
    sch = lw.Schedule(func)
    (i,) = sch.get_loops("C")
    sch.split(i, factors=[None, 32])
    a, b = random_array(100), random_array(100, seed=1)
    np.testing.assert_array_equal(run(sch.func.specialize({"n": 100}), a, b), a + b)


def test_a_recurrence() -> None:
    m, n = 10, 7
    X = te.placeholder((m, n), name="X")
    s_state = te.placeholder((m, n), name="state")
    s_init = te.compute((1, n), lambda _, i: X[0, i])
    s_update = te.compute((m, n), lambda t, i: s_state[t - 1, i] + X[t, i])
    Y = te.scan(s_init, s_update, s_state, inputs=[X])
    x = random_array(m, n)
    assert_close(run(te.create_prim_func([X, Y]), x), np.cumsum(x, axis=0))

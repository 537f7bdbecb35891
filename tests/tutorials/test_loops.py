"""The lecture's fused operator, and its transformations of loops."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from loopwright import te
from tests.tutorials import loops as lecture
from tests.tutorials.running import Array, assert_close, random_array, run


def layer() -> tuple[Array, Array, Array]:
    """Return the input and the weights of the lecture's layer, and what it computes from them."""
    x, w = random_array(1, 3072), random_array(200, 3072, seed=1)
    return x, w, np.maximum(x @ w.T, 0)


def test_the_reference_of_the_lecture_is_the_layer() -> None:
    x, w = random_array(1, 30), random_array(20, 30, seed=1)
    out = np.empty((1, 20), "float32")
    lecture.linear_relu(x, w, out)
    assert_close(out, np.maximum(x @ w.T, 0))


@pytest.mark.parametrize("text", [lecture.LINEAR_RELU_LOOPS, lecture.LINEAR_RELU_BLOCKS])
def test_the_layer_as_text(text: str) -> None:
    x, w, expected = layer()
    assert_close(run(lw.parse(text), x, w), expected)


def test_the_layer_as_tensor_expressions() -> None:
    x = te.placeholder((1, 3072), name="x")
    w = te.placeholder((200, 3072), name="w")
    k = te.reduce_axis((0, 3072), "k")
    linear = te.compute((1, 200), lambda i, j: te.sum(x[i, k] * w[j, k], axis=k), name="linear")
    relu = te.compute((1, 200), lambda i, j: te.max(linear[i, j], 0), name="relu")
    func = te.create_prim_func([x, w, relu])
    assert structural_equal(func, lw.parse(lecture.LINEAR_RELU_BLOCKS))
    xs, ws, expected = layer()
    assert_close(run(func, xs, ws), expected)


def test_the_layer_fused_into_one_nest() -> None:
    sch = lw.Schedule(lw.parse(lecture.LINEAR_RELU_BLOCKS))
    linear = sch.get_block("linear")
    _, j, k = sch.get_loops(linear)
    sch.reverse_compute_at(sch.get_block("relu"), j)
    sch.decompose_reduction(linear, k)
    assert structural_equal(sch.func, lw.parse(lecture.LINEAR_RELU_FUSED))
    x, w, expected = layer()
    assert_close(run(sch, x, w), expected)


def test_loops_are_split_reordered_and_bound_to_threads() -> None:
    sch = lw.Schedule(lw.parse(lecture.VECTOR_ADD))
    (x,) = sch.get_loops("C")

    def check(text: str) -> None:
        assert structural_equal(sch.func, lw.parse(text))
        a, b = random_array(128), random_array(128, seed=1)
        np.testing.assert_array_equal(run(sch, a, b), a + b)

    check(lecture.VECTOR_ADD)
    xo, xi = sch.split(x, factors=[None, 4])
    check(lecture.VECTOR_ADD_SPLIT)
    sch.reorder(xi, xo)
    check(lecture.VECTOR_ADD_REORDERED)
    sch.bind(xo, "threadIdx.x")
    sch.bind(xi, "blockIdx.x")
    check(lecture.VECTOR_ADD_BOUND)

"""The lecture's fused operator, and its transformations of loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from compiler.passes.common.plain_loops import plain_loops
from loopwright import te
from tests.tutorials import loops as lecture
from tests.tutorials.running import Array, assert_close, random_array, run


def layer() -> tuple[Array, Array, Array]:
    """Return the input and the weights of the lecture's layer, and what it computes from them."""
    x, w = random_array(1, 3072), random_array(200, 3072, seed=1)
    return x, w, np.maximum(x @ w.T, 0)


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


@pytest.mark.parametrize(
    ("program", "code"),
    [
        ("", lecture.CODE),
        (lecture.SPLIT, lecture.CODE_SPLIT),
        (lecture.REORDER, lecture.CODE_REORDERED),
        (lecture.BIND, lecture.CODE_BOUND),
    ],
)
def test_transformations_have_the_code_of_the_lecture(program: str, code: str) -> None:
    sch = lw.Schedule(lw.parse(lecture.vector_add(lecture.CODE)))
    names: dict[str, object] = {
        "get_loop": sch.get_loop,
        "split": lambda loop, factor: sch.split(loop, factor=factor),
        "reorder": sch.reorder,
        "bind_thread": sch.bind,
    }
    exec(program, names)
    expected = lw.parse(lecture.vector_add(code))
    assert structural_equal(plain_loops(sch.func), expected)
    a, b = random_array(128), random_array(128, seed=1)
    for result in (run(sch, a, b), run(expected, a, b)):
        np.testing.assert_array_equal(result, a + b)


def test_the_function_as_it_is_printed_runs_on_arrays() -> None:
    names: dict[str, Any] = {}
    small = lecture.LINEAR_RELU_AS_PRINTED.replace("3072", "30").replace("200", "20")
    exec(small, names)
    x, w = random_array(1, 30), random_array(20, 30, seed=1)
    out = np.empty((1, 20), "float32")
    names["linear_relu"](x, w, out)
    assert_close(out, np.maximum(x @ w.T, 0))

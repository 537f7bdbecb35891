"""Reductions of several values at once, with conditions, and of a user's own making."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.script import parse

ARGMAX = """
@T.prim_func(s_tir=True)
def main(I: T.Buffer((4, 8), "int32"), V: T.Buffer((4, 8), "float32"),
         T_v0: T.Buffer((4,), "int32"), T_v1: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("T"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.reads(V[v_i, v_k], I[v_i, v_k])
            T.writes(T_v0[v_i], T_v1[v_i])
            with T.init():
                T_v0[v_i] = -1
                T_v1[v_i] = T.min_value("float32")
            v_T_v0: T.let[T.int32] = T.Select(T_v1[v_i] >= V[v_i, v_k], T_v0[v_i], I[v_i, v_k])
            v_T_v1: T.let[T.float32] = T.Select(T_v1[v_i] >= V[v_i, v_k], T_v1[v_i], V[v_i, v_k])
            T_v0[v_i] = v_T_v0
            T_v1[v_i] = v_T_v1
"""


def larger(x: Any, y: Any) -> tuple[te.Value, te.Value]:
    keep = x[1] >= y[1]
    return te.select(keep, x[0], y[0]), te.select(keep, x[1], y[1])


argmax = te.comm_reducer(larger, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")


def values(func: PrimFunc) -> dict[str, NDArray[Any]]:
    return random_inputs(func, 3)


def test_an_argmax_is_one_block_that_names_its_values_before_it_stores_them() -> None:
    ids, V = te.placeholder((4, 8), "int32", name="I"), te.placeholder((4, 8), name="V")
    k = te.reduce_axis((0, 8), name="k")
    outputs = te.compute((4,), lambda i: argmax((ids[i, k], V[i, k]), axis=k), name="T")
    assert structural_equal(te.create_prim_func([ids, V, *outputs]), parse(ARGMAX))


def test_an_argmax_over_the_places_of_an_axis() -> None:
    V = te.placeholder((4, 8), name="V")
    k = te.reduce_axis((2, 8), name="k")
    where, largest = te.compute((4,), lambda i: argmax((k.var, V[i, k]), axis=k), name="T")
    func = te.create_prim_func([V, where, largest])
    given = values(func)
    outputs = interpret(func, given)
    np.testing.assert_array_equal(outputs["T_v0"], given["V"][:, 2:].argmax(1) + 2)
    np.testing.assert_array_equal(outputs["T_v1"], given["V"][:, 2:].max(1))
    np.testing.assert_array_equal(evaluate(func, given)["T_v0"], outputs["T_v0"])


def test_an_output_that_is_not_a_parameter_is_allocated() -> None:
    V = te.placeholder((4, 8), name="V")
    k = te.reduce_axis((0, 8), name="k")
    where, _ = te.compute((4,), lambda i: argmax((k.var, V[i, k]), axis=k), name="T")
    func = te.create_prim_func([V, where])
    assert [b.name for b in func.root.alloc_buffers] == ["T_v1"]
    given = values(func)
    np.testing.assert_array_equal(interpret(func, given)["T_v0"], given["V"].argmax(1))


def test_a_reducer_of_one_value_and_of_values_alone() -> None:
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    product = te.comm_reducer(lambda x, y: x * y, lambda dtype: te.const(1, dtype), name="mul")
    B = te.compute((4,), lambda i: product(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: product(B[i], A[i, 0], A[i, 1]), name="C")
    func = te.create_prim_func([A, C])
    a = values(func)["A"].astype(float)
    np.testing.assert_allclose(interpret(func, values(func))["C"], a.prod(1) * a[:, 0] * a[:, 1])


@pytest.mark.parametrize(
    ("reduce", "reference"),
    [(te.sum, np.sum), (te.prod, np.prod), (te.max, np.max), (te.min, np.min)],
)
def test_init_is_what_a_reduction_starts_from(reduce: Any, reference: Any) -> None:
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((4,), lambda i: reduce(A[i, k], axis=k, where=k > 2, init=0.5), name="B")
    func = te.create_prim_func([A, B])
    a = values(func)["A"][:, 3:]
    expected = reference(np.concatenate([np.full((4, 1), 0.5), a.astype(float)], 1), axis=1)
    np.testing.assert_allclose(interpret(func, values(func))["B"], expected, rtol=1e-6)


def test_where_leaves_terms_of_a_tuple_out() -> None:
    V = te.placeholder((4, 8), name="V")
    k = te.reduce_axis((0, 8), name="k")
    where, _ = te.compute((4,), lambda i: argmax((k.var, V[i, k]), axis=k, where=k > i), name="T")
    func = te.create_prim_func([V, where])
    v = values(func)["V"]
    expected = [v[i, i + 1 :].argmax() + i + 1 for i in range(4)]
    np.testing.assert_array_equal(interpret(func, values(func))["T_v0"], expected)


def test_several_values_without_a_reduction_are_blocks_that_share_their_loops() -> None:
    text = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4, 8), "float32"), B_v0: T.Buffer((4, 8), "float32"),
         B_v1: T.Buffer((4, 8), "int32")):
    for i, j in T.grid(4, 8):
        with T.sblock("B_v0"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B_v0[v_i, v_j] = A[v_i, v_j] + T.float32(1.0)
        with T.sblock("B_v1"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B_v1[v_i, v_j] = v_i
"""
    A = te.placeholder((4, 8), name="A")
    B, P = te.compute((4, 8), lambda i, j: (A[i, j] + 1, i), name="B")
    assert structural_equal(te.create_prim_func([A, B, P]), parse(text))


def test_a_combination_of_other_types_is_refused() -> None:
    A = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    wrong = te.comm_reducer(lambda x, y: x < y, lambda dtype: te.const(1, dtype), name="odd")
    with pytest.raises(TypeError, match=r"combination of te\.odd has type bool: expected float32"):
        te.compute((4,), lambda i: wrong(A[i, k], axis=k))
    wrong = te.comm_reducer(lambda x, y: x + y, lambda _: te.const(1, "int32"), name="odd")
    with pytest.raises(TypeError, match=r"identity of te\.odd has type int32: expected float32"):
        te.compute((4,), lambda i: wrong(A[i, k], axis=k))

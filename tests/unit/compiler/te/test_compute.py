"""Tensor expressions as programs, and mistakes in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.text.printer import script
from compiler.ir.verify.verify import VerifyError
from compiler.script import parse
from tests.unit.compiler.te.tensors import matrix

untyped: Any = te  # for what is wrong on purpose


TODAYS_TVM = """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), \
C: T.Buffer((128, 128), "float32")):
    T.func_attr({"tir.noalias": True})
    # with T.sblock("root"):
    Y = T.sblock_alloc_buffer((128, 128))
    for i, j, k in T.grid(128, 128, 128):
        with T.sblock("Y"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(Y[v_i, v_j])
            with T.init():
                Y[v_i, v_j] = T.float32(0.0)
            Y[v_i, v_j] = Y[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
    for i, j in T.grid(128, 128):
        with T.sblock("C"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            T.reads(Y[v_i, v_j])
            T.writes(C[v_i, v_j])
            C[v_i, v_j] = T.max(Y[v_i, v_j], T.float32(0.0))
"""


def test_the_course_program_prints_as_tvm_does() -> None:
    A = te.placeholder((128, 128), "float32", name="A")
    B = te.placeholder((128, 128), "float32", name="B")
    k = te.reduce_axis((0, 128), "k")
    Y = te.compute((128, 128), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="Y")
    C = te.compute((128, 128), lambda i, j: te.max(Y[i, j], 0), name="C")
    assert script(te.create_prim_func([A, B, C])) == TODAYS_TVM


def test_indices_of_a_variadic_function_are_numbered() -> None:
    A = matrix()
    text = script(te.create_prim_func([A, te.compute((4, 4), lambda *i: A(*i) + 1, name="B")]))
    assert "for i0, i1 in T.grid(4, 4):" in text
    assert "v_i0, v_i1 = T.axis.remap" in text


def test_tensors_of_one_name_get_buffers_and_blocks_of_their_own() -> None:
    A = matrix("B")
    first = te.compute((4, 4), lambda i, j: A[i, j] + 1, name="B")
    second = te.compute((4, 4), lambda i, j: first[i, j] * 2, name="B")
    func = te.create_prim_func([A, second])
    assert [p.name for p in func.params] == ["B", "B_1"]
    assert [b.name for b in func.root.alloc_buffers] == ["B_2"]
    assert structural_equal(parse(script(func)), func)
    ones = np.ones((4, 4), np.float32)
    assert (interpret(func, {"B": ones})["B_1"] == 4).all()


def test_a_tensor_used_twice_is_computed_once() -> None:
    A = matrix()
    B = te.compute((4, 4), lambda i, j: te.exp(A[i, j]), name="B")
    C = te.compute((4, 4), lambda i, j: B[i, j] + B[j, i], name="C")
    assert script(te.create_prim_func([A, C])).count('T.sblock("B")') == 1


def test_tensors_that_are_only_used_in_indices_or_conditions_are_found() -> None:
    A = matrix()
    N = te.compute((4,), lambda i: te.cast("int32", i % 2), name="N")
    C = te.compute((4,), lambda i: te.if_then_else(N[i] == 1, A[i, 0], A[i, 1]), name="C")
    outputs = interpret(te.create_prim_func([A, C]), {"A": np.arange(16, dtype="f4").reshape(4, 4)})
    np.testing.assert_array_equal(outputs["C"], [1, 4, 9, 12])


def test_a_tensor_may_be_subscripted_index_by_index() -> None:
    A: Any = matrix()
    B = te.compute((4, 4), lambda i, j: A[i][j] * 2, name="B")
    assert "A[v_i, v_j]" in script(te.create_prim_func([A, B]))


def test_attributes_become_annotations_of_the_block() -> None:
    A = matrix()
    B = te.compute((4, 4), lambda i, j: A[i, j], name="B", attrs={"axis": 1})
    assert 'T.sblock_attr({"axis": 1})' in script(te.create_prim_func([A, B]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda A, k: A[0] + 1, IndexError, "A has 2 dimension(s), got 1 index(es)"),
        (lambda A, k: A[0, 0, 0], IndexError, "A has 2 dimension(s), got 3 index(es)"),
        (lambda A, k: A[0.5, 0], TypeError, "an index of A has type float32"),
        (
            lambda A, k: A[0, 0].astype("float16") + A[0, 0].astype("bfloat16"),
            TypeError,
            "got float16 and bfloat16: convert",
        ),
        (lambda A, k: A[0, 0] % 2, TypeError, "% takes integers, got float32"),
        (lambda A, k: untyped.const(1, "int32") / 2, TypeError, "use //"),
        (lambda A, k: untyped.const(0.5, "int32"), TypeError, "a constant of type int32, got 0.5"),
        (
            lambda A, k: untyped.exp(untyped.const(1, "int32")),
            TypeError,
            "te.exp takes floating-point",
        ),
        (lambda A, k: untyped.if_then_else(A[0, 0], 1, 0), TypeError, "expected a condition"),
        (lambda A, k: untyped.all(), TypeError, "expected at least one"),
        (lambda A, k: 1 if A[0, 0] < 1 else 0, TypeError, "use te.if_then_else"),
        (lambda A, k: untyped.sum(A[0, k], axis=[]), TypeError, "needs one or more axes"),
        (lambda A, k: untyped.max(A[0, k], 0, init=k), TypeError, "either two values, or one"),
        (lambda A, k: untyped.var("n", "float32"), TypeError, "expected an integer type"),
        (lambda A, k: untyped.sum(A[0, k], axis=k, init=A), TypeError, "expected a tensor expr"),
        (lambda A, k: untyped.sum(A[0, k] > 0, axis=k), TypeError, "takes numbers, got bool"),
        (lambda A, k: untyped.sum(A[0, k], axis=k) + 1, TypeError, "must be the whole element"),
        (lambda A, k: untyped.compute((4,), lambda i, j: A[i, j]), TypeError, "takes 2 index(es)"),
        (lambda A, k: untyped.compute((4,), lambda i: "x"), TypeError, "compute is a str"),
        (lambda A, k: untyped.compute((4.5,), lambda i: A[i, i]), TypeError, "a shape of integers"),
        (lambda A, k: untyped.placeholder((4,), "float33"), TypeError, "unknown type 'float33'"),
        (lambda A, k: untyped.reduce_axis((3, 3), "r"), ValueError, "reduction axis r is empty"),
    ],
)
def test_mistakes_are_named(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make(matrix(), te.reduce_axis((0, 4), name="k"))
    assert message in str(caught.value)


def test_programs_that_do_not_hold_together_are_refused() -> None:
    A, B = matrix("A"), matrix("B")
    C = te.compute((4, 4), lambda i, j: A[i, j] + B[i, j], name="C")
    with pytest.raises(ValueError, match="input B is not among the parameters"):
        te.create_prim_func([A, C])
    with pytest.raises(ValueError, match="given twice"):
        te.create_prim_func([A, B, A, C])
    with pytest.raises(ValueError, match="nothing to compute"):
        te.create_prim_func([A, B])


def test_accesses_out_of_bounds_are_refused() -> None:
    A = matrix()
    B = te.compute((4, 4), lambda i, j: A[i + 1, j], name="B")
    with pytest.raises(VerifyError, match=r"can't prove that A\[v_i \+ 1, v_j\] is in bounds"):
        te.create_prim_func([A, B])


def test_a_tensor_is_no_iterable() -> None:
    A = te.placeholder((4, 4), name="A")
    for elements in (A, A[0]):
        with pytest.raises(TypeError, match="A can't be iterated over"):
            list(elements)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [None, 3])
def test_a_name_is_a_string(name: Any) -> None:
    uses: list[Callable[[], object]] = [
        lambda: te.placeholder((4,), name=name),
        lambda: te.compute((4,), lambda i: i, name=name),
        lambda: te.reduce_axis((0, 4), name),
        lambda: te.var(name),
    ]
    for use in uses:
        with pytest.raises(TypeError, match="expected a name"):
            use()


@pytest.mark.parametrize("shape", [(-4,), (4, 0), (0,), (2**31,)])
def test_extents_that_no_program_has_are_refused_where_they_are_written(
    shape: tuple[int, ...],
) -> None:
    makers: list[Callable[[], object]] = [
        lambda: te.placeholder(shape, name="X"),
        lambda: te.compute(shape, lambda *i: 0.0, name="X"),
    ]
    for make in makers:
        with pytest.raises(VerifyError, match=r"an extent of X is .*: expected 1 to 2147483647"):
            make()


def test_a_read_out_of_bounds_names_the_tensor_that_is_computed() -> None:
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] * 2, name="B")
    C = te.compute((4,), lambda i: A[i + 1] + B[i], name="C")
    with pytest.raises(VerifyError, match=r"A\[v_i \+ 1\] is in bounds: .* 0 to 3, in block C"):
        te.create_prim_func([A, C])

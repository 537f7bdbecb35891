"""Random inputs make sense to the programs that read them."""

import tracemalloc

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.dtypes import DType
from compiler.ir.interpret import inputs
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.script import parse


def test_indices_cover_what_they_index() -> None:
    indices = random_inputs(ops.embedding(50, 2, 1000), 0)["indices"]
    assert (indices.min(), indices.max()) == (0, 49)
    columns = random_inputs(ops.take(3, 7, indices=500, axis=1, index_dtype="int64"), 0)["indices"]
    assert (columns.min(), columns.max()) == (0, 6)


def test_indices_that_have_a_name_are_indices() -> None:
    func = parse("""
@T.prim_func
def main(A: T.Buffer((4,), "float32"), I: T.Buffer((100,), "int32"),
         B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            p: T.let[T.int32] = T.max(T.min(I[vi], 3), 0)
            B[vi] = A[p]
""")
    indices = random_inputs(func, 0)["I"]
    assert (indices.min(), indices.max()) == (0, 3)


def test_indices_of_two_buffers_fit_both() -> None:
    a, b = te.placeholder((9,), name="A"), te.placeholder((5,), name="B")
    i = te.placeholder((100,), "int32", name="I")

    def clipped(index: te.Value, extent: int) -> te.Value:
        return te.max(te.min(index, extent - 1), 0)

    c = te.compute((100,), lambda x: a[clipped(i[x], 9)] + b[clipped(i[x], 5)], name="C")
    indices = random_inputs(te.create_prim_func([a, b, i, c]), 0)["I"]
    assert (indices.min(), indices.max()) == (0, 4)


def test_an_index_of_indices_has_the_range_of_those() -> None:
    a, i = te.placeholder((50,), name="A"), te.placeholder((7,), "int32", name="I")
    j = te.placeholder((100,), "int32", name="J")

    def element(x: te.Value) -> te.Value:
        inner = i[te.max(te.min(j[x], 6), 0)]
        return a[te.max(te.min(inner, 49), 0)]

    func = te.create_prim_func([a, i, j, te.compute((100,), element, name="C")])
    inputs = random_inputs(func, 0)
    assert inputs["J"].max() == 6
    assert inputs["I"].max() > 7


@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_divisors_are_positive_and_shifts_small(dtype: str) -> None:
    func = parse(f"""
@T.prim_func
def main(A: T.Buffer((200,), "{dtype}"), D: T.Buffer((200,), "{dtype}"),
         S: T.Buffer((200,), "{dtype}"), B: T.Buffer((200,), "{dtype}")):
    for i in range(200):
        with T.block("B"):
            vi = T.axis.spatial(200, i)
            B[vi] = (A[vi] // T.max(D[vi], T.{dtype}(1))) >> T.max(T.min(S[vi], T.{dtype}(7)),
                                                                  T.{dtype}(0))
""")
    inputs = random_inputs(func, 0)
    assert (inputs["D"].min(), inputs["D"].max()) == (1, 8)
    assert inputs["S"].min() == 0
    assert inputs["S"].max() == (31 if dtype == "int32" else 7)


def test_functions_get_arguments_that_they_have_values_for() -> None:
    a = te.placeholder((100,), name="A")
    for function in (te.acosh, te.log, te.log10, te.sqrt, te.asin, te.atanh, te.acos):
        b = te.compute((100,), lambda i, f=function: f(a[i]), name="B")
        func = te.create_prim_func([a, b])
        assert np.isfinite(interpret(func, random_inputs(func, 0))["B"]).all()


def test_a_buffer_that_a_condition_guards_is_read_before() -> None:
    func = parse("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0.0:
                B[vi] = A[vi]
""")
    assert param_roles(func) == (("A", "B"), ("B",))
    inputs = random_inputs(func, 0)
    expected = np.where(inputs["A"] > 0, inputs["A"], inputs["B"])
    np.testing.assert_array_equal(interpret(func, inputs)["B"], expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_large_inputs_are_drawn_in_little_memory(
    dtype: DType, monkeypatch: pytest.MonkeyPatch
) -> None:
    func = ops.relu(1000, 1000, dtype=dtype)
    monkeypatch.setattr(inputs, "_PART", 1 << 12)
    tracemalloc.start()
    (values,) = random_inputs(func, 0).values()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 4 * values.size + values.nbytes, "drawn in 64 bits: 8 bytes each"
    assert len(np.unique(values[0])) > 8
    assert not np.array_equal(values[0], values[500])

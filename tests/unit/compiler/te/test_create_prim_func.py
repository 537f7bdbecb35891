"""Programs whose extents are fixed later."""

from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.interpret.oracle.oracle import OracleError, interpret, random_inputs
from compiler.ir.verify.verify import VerifyError
from compiler.script import parse


def test_a_symbolic_program_is_the_static_one_when_it_is_specialised() -> None:
    def product(m: te.Value | int, n: te.Value | int, k: te.Value | int) -> list[te.Tensor]:
        A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
        r = te.reduce_axis((0, k), name="k")
        return [A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")]

    m, n = te.var("m"), te.size_var("n")
    func = te.create_prim_func(product(m, n, 8))
    static = te.create_prim_func(product(4, 6, 8))
    assert structural_equal(func.specialize({m: 4, n: 6}), static)
    assert structural_equal(func.specialize({"m": 4}).specialize({"n": 6}), static)
    assert structural_equal(parse(func.script()), func)


def test_extents_may_be_computed() -> None:
    n = te.var("n", "int64")
    A = te.placeholder((n * 2, 4), name="A")
    B = te.compute((n, 4), lambda i, j: A[i * 2 + 1, j] + 1, name="B")
    func = te.create_prim_func([A, B])
    assert "A[v_i * T.int64(2) + T.int64(1), v_j]" in func.script()
    static = func.specialize({n: 3})
    inputs = random_inputs(static, 0)
    np.testing.assert_array_equal(interpret(static, inputs)["B"], inputs["A"][1::2] + 1)


def test_a_scalar_parameter_may_be_an_extent() -> None:
    n = te.var("n")
    A = te.placeholder((8,), name="A")
    k = te.reduce_axis((0, n), name="k")
    func = te.create_prim_func([n, A, te.compute((1,), lambda _: te.sum(A[k], axis=k), name="B")])
    static = func.specialize({n: 5})
    inputs = random_inputs(static, 0)
    expected = inputs["A"][:5].astype(float).sum()
    np.testing.assert_allclose(interpret(static, inputs)["B"], [expected], rtol=1e-6)
    with pytest.raises(VerifyError, match="variable n is not defined here"):
        te.create_prim_func([A, te.compute((1,), lambda _: te.sum(A[k], axis=k), name="B")])


def test_what_is_symbolic_is_not_run() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    func = te.create_prim_func([A, te.compute((n,), lambda i: A[i], name="B")])
    with pytest.raises((OracleError, ValueError), match="symbolic"):
        interpret(func, {})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": 1.5}, "n can't be 1.5: expected a positive integer"),
        ({"n": "x"}, "n can't be 'x': expected a positive integer"),
        ({"n": 0}, "n can't be 0: expected a positive integer"),
        ({"n": 2**40}, "n can't be 1099511627776: that does not fit into int32"),
        ({3: 3}, "expected a variable or its name, got 3"),
        (None, "expected a mapping of variables to integers, got None"),
    ],
)
def test_a_value_that_an_extent_can_not_have_is_refused(values: Any, message: str) -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    func = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1, name="B")])
    with pytest.raises((TypeError, ValueError)) as caught:
        func.specialize(values)
    assert message in str(caught.value)


def test_an_extent_may_be_an_integer_of_numpy() -> None:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    func = te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1, name="B")])
    of_numpy: Any = np.int64(5)
    assert func.specialize({n: of_numpy}).script() == func.specialize({n: 5}).script()

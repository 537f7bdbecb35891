"""The error function inside of gelu."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler import ops, te
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import errors
from tests.unit.compiler.backends.cpu.codegen.programs import run


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_is_off_by_less_than_its_argument_could_be(approximate: str) -> None:
    x = np.linspace(-12, 12, 40001).astype(np.float32)
    wide = x.astype(np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    exact = {
        "none": np.array([v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in wide]),
        "tanh": wide / 2 * (1 + np.tanh(inner)),
    }[approximate]
    got = run(ops.gelu(len(x), approximate=approximate), x)
    assert (np.abs(got - exact) / np.spacing(np.abs(x))).max() < 1.7
    above = x >= 0
    assert errors(got[above], exact[above]).max() < 2


@pytest.mark.parametrize("is_first", [True, False])
def test_one_plus_erf_is_as_exact_as_a_sum_near_one(is_first: bool) -> None:
    x = np.array([*np.linspace(-9, 9, 40001), 0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    A = te.placeholder(x.shape, "float32", name="A")

    def element(i: te.Value) -> te.Value:
        return 1.0 + te.erf(A[i]) if is_first else te.erf(A[i]) + 1.0

    func = te.create_prim_func([A, te.compute(x.shape, element, name="B")])
    exact = np.array([math.erfc(-float(v)) for v in x])
    got = run(func, x)
    assert np.nanmax(np.abs(got - exact)) < 1.1 * 2**-23
    np.testing.assert_array_equal(got[-3:], [2, 0, np.nan])

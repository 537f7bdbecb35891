"""Mathematical functions: types and reference values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compiler.ir.core.intrinsics import INTRINSICS, result_dtype

IN_MATH = [name for name in INTRINSICS if hasattr(math, name) and name not in ("ceil", "floor")]
HALVES = np.array([0.25, 0.5, 0.75])


@pytest.mark.parametrize("name", IN_MATH)
def test_references_are_the_functions_of_python(name: str) -> None:
    intrinsic = INTRINSICS[name]
    x = HALVES + (1 if name == "acosh" else 0)
    args = [x] * intrinsic.arity
    expected = [getattr(math, name)(*point) for point in zip(*args, strict=True)]
    np.testing.assert_allclose(intrinsic.reference(*args), expected, rtol=1e-14)


def test_references_that_python_does_not_have() -> None:
    at = {name: INTRINSICS[name].reference(HALVES) for name in ("rsqrt", "sigmoid", "exp10")}
    np.testing.assert_allclose(at["rsqrt"], HALVES**-0.5)
    np.testing.assert_allclose(at["sigmoid"], [1 / (1 + math.exp(-x)) for x in HALVES])
    np.testing.assert_allclose(at["exp10"], 10**HALVES)
    ties = INTRINSICS["round"].reference(np.array([0.5, 1.5, -2.5]))
    np.testing.assert_array_equal(ties, [0, 2, -2])


def test_a_call_has_the_type_of_its_arguments() -> None:
    assert result_dtype("exp", ["float16"]) == "float16"
    assert result_dtype("atan2", ["float64", "float64"]) == "float64"
    assert result_dtype("abs", ["int32"]) == "int32"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("expp", ["float32"], "unknown function expp"),
        ("exp", [], "takes 1 argument"),
        ("pow", ["float32", "float64"], "arguments of one type"),
        ("exp", ["int32"], "floating-point arguments, got int32"),
        ("abs", ["uint8"], "floating-point arguments, got uint8"),
    ],
)
def test_calls_that_do_not_fit_are_refused(name: str, args: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        result_dtype(name, args)  # type: ignore[arg-type]

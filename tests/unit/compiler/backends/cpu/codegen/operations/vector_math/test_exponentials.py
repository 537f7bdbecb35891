"""Exponentials inside of silu and sigmoid."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import (
    calling,
    errors,
)
from tests.unit.compiler.backends.cpu.codegen.programs import run


def test_silu_is_right_far_below_zero_too() -> None:
    x = np.linspace(-86, 20, 40001).astype(np.float32)
    wide = x.astype(np.float64)
    got = run(ops.silu(len(x)), x)
    assert errors(got, wide / (1 + np.exp(-wide))).max() < 3.2


def test_a_sigmoid_of_doubles_does_not_vanish_before_it_must() -> None:
    x = np.array([-745.0, -720.0, -709.5, -1.0, 0.0, 1.0, 800.0, -np.inf, np.nan])
    with np.errstate(over="ignore", under="ignore"):
        expected = np.where(x < 0, np.exp(x), 1.0) / (1 + np.exp(-np.abs(x)))
    np.testing.assert_allclose(
        run(calling("sigmoid", len(x), dtype="float64"), x), expected, rtol=1e-15, atol=1e-323
    )

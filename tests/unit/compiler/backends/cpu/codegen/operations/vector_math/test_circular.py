"""Sines, cosines and tangents, also of angles far out."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.ir.core.nodes import (
    LoopKind,
)
from tests.unit.compiler.backends.cpu.codegen.operations.accuracy import (
    EXACT,
    calling,
    errors,
)
from tests.unit.compiler.backends.cpu.codegen.programs import mark, run

# What the functions are, in double precision; and how many units in the last place they may be off.


def test_one_angle_far_out_leaves_its_neighbours_right() -> None:
    x = np.linspace(-3, 3, 64).astype(np.float32)
    x[[3, 17, 40]] = [1e30, -3e6, np.inf]
    for name in ("sin", "cos", "tan"):
        exact, bound = EXACT[name]
        with np.errstate(all="ignore"):
            expected = exact(x.astype(np.float64))
        assert errors(run(calling(name, 64), x), expected).max() < bound


@pytest.mark.parametrize("kind", ["serial", "vectorized", "unrolled"])
def test_the_branch_of_far_angles_fits_into_loops_and_other_branches(kind: LoopKind) -> None:
    A = te.placeholder((12, 9), "float32", name="A")
    k = te.reduce_axis((0, 9), name="k")

    def term(i: te.Value, k: te.Value) -> te.Value:
        guarded = te.if_then_else(A[i, k] > 0.0, te.sin(A[i, k]) * te.cos(A[i, k]), A[i, k])
        return guarded + te.tan(A[i, k] * 0.125)

    B = te.compute((12,), lambda i: te.sum(term(i, k), axis=k), name="B")
    x = np.random.default_rng(3).uniform(-3, 3, (12, 9)).astype(np.float32)
    x[[2, 7, 11], [0, 4, 8]] = [3e5, 1e20, 2e6]
    wide = x.astype(np.float64)
    terms = np.where(wide > 0, np.sin(wide) * np.cos(wide), wide)
    exact = (terms + np.tan((x * np.float32(0.125)).astype(np.float64))).sum(1)
    got = run(mark(te.create_prim_func([A, B]), i=kind), x)
    np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-5)

"""Innermost loops keep running sums of what their addresses need, not multiples of a counter."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compiler import te
from compiler.driver import emit
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import mark, run

MULTIPLY = re.compile(r"= mul nsw i64")


@pytest.mark.parametrize("extent", [2, 3, 64, 1000])
@pytest.mark.parametrize(("to", "of"), [(1, 1), (3, 5), (4, 1)])
def test_rows_of_any_stride(extent: int, to: int, of: int) -> None:
    A = te.placeholder((extent, of), "float32", name="A")
    B = te.compute((extent, to), lambda i, j: A[i, 0] + 1.0, name="B")
    func = mark(te.create_prim_func([A, B]), j="unrolled")
    x = np.random.default_rng(0).standard_normal((extent, of)).astype("float32")
    np.testing.assert_array_equal(run(func, x), np.tile(x[:, :1] + 1, (1, to)))
    assert not MULTIPLY.search(emit(func, level(3)).text)


def test_what_asks_for_the_counter_itself_gets_it() -> None:
    A = te.placeholder((100, 3), "float32", name="A")
    B = te.compute((100,), lambda i: te.if_then_else(i % 7 < 3, A[i, 1], 0.0), name="B")
    x = np.random.default_rng(1).standard_normal((100, 3)).astype("float32")
    expected = np.where(np.arange(100) % 7 < 3, x[:, 1], 0)
    np.testing.assert_array_equal(run(te.create_prim_func([A, B]), x), expected)

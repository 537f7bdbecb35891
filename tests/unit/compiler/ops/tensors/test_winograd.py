"""Convolutions by transformed tiles: how exact they are."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.ops.error import OperatorError

# The largest error against float64, relative to the largest result: what the module promises,
# with room for other data.
PROMISED = {"plain": 2e-6, 2: 1e-6, 4: 1.2e-5}


def error_of(func: PrimFunc) -> float:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (1, 64, 20, 20)).astype(np.float32)
    w = rng.uniform(-1, 1, (16, 64, 3, 3)).astype(np.float32)
    got = np.full((1, 16, 20, 20), np.nan, np.float32)
    module = build(func, "cpu -num-cores=1")
    module(a, w, got)
    module.close()
    plain = ops.reference("conv2d:1,64,20,20,16,3,1,1:float64")
    exact = plain(a.astype(np.float64), w.astype(np.float64))
    return float(np.abs(got - exact).max() / np.abs(exact).max())


def test_the_error_is_the_one_stated() -> None:
    plain = error_of(ops.conv2d(1, 64, 20, 20, 16, 3, 1, 1))
    small = error_of(ops.conv2d_winograd(1, 64, 20, 20, 16, 1, 2))
    large = error_of(ops.conv2d_winograd(1, 64, 20, 20, 16, 1, 4))
    assert plain < PROMISED["plain"]
    assert small < PROMISED[2]
    assert large < PROMISED[4]


@pytest.mark.parametrize(("size", "padding", "tile"), [(5, 0, 2), (7, 1, 4), (6, (1, 0, 2, 1), 4)])
def test_tiles_need_not_divide(size: int, padding: int, tile: int) -> None:
    """What lies beyond the image is zero, and what is computed there is not written."""
    func = ops.conv2d_winograd(1, 2, size, size, 3, padding, tile, dtype="float64")
    rng = np.random.default_rng(1)
    a, w = rng.standard_normal((1, 2, size, size)), rng.standard_normal((3, 2, 3, 3))
    plain = ops.reference("conv2d", 1, 2, size, size, 3, 3, 1, padding, dtype="float64")
    expected = plain(a, w)
    got = np.full(expected.shape, np.nan)
    module = build(func, "cpu -num-cores=1")
    module(a, w, got)
    module.close()
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_other_tiles_and_types_are_refused() -> None:
    with pytest.raises(OperatorError, match="tile is 3: expected 2 or 4"):
        ops.conv2d_winograd(1, 2, 8, 8, 2, 1, 3)
    with pytest.raises(OperatorError, match="expected float32 or float64"):
        ops.conv2d_winograd(1, 2, 8, 8, 2, 1, 2, dtype="float16")

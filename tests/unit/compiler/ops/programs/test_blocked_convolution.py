"""Convolutions with channels in blocks are convolutions with other layouts."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.interpret.oracle.oracle import interpret


def test_it_is_conv2d_in_blocks() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (2, 8, 7, 6)).astype(np.float32)
    w = rng.uniform(-1, 1, (12, 8, 3, 3)).astype(np.float32)
    plain = interpret(ops.conv2d(2, 8, 7, 6, 12, 3, 2, 1), {"A": a, "W": w})
    (expected,) = plain.values()
    blocked_a = a.reshape(2, 2, 4, 7, 6).transpose(0, 1, 3, 4, 2).copy()
    blocked_w = w.reshape(2, 6, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    func = ops.conv2d_nchwc(2, 8, 7, 6, 12, 3, 2, 1, block_ci=4, block_co=6)
    (got,) = interpret(func, {"A": blocked_a, "W": blocked_w}).values()
    joined = got.transpose(0, 1, 4, 2, 3).reshape(expected.shape)
    np.testing.assert_allclose(joined, expected, rtol=1e-5, atol=1e-5)


def test_blocks_divide_the_channels() -> None:
    with pytest.raises(ops.OperatorError, match="do not divide 8 and 12"):
        ops.conv2d_nchwc(1, 8, 7, 6, 12, 3, block_ci=3, block_co=6)

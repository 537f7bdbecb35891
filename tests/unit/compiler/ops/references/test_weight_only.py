"""Products with quantized weights, against sums by hand.

Numbers are small integers and powers of two, so that all sums are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import loopwright as lw
from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret

Array = NDArray[Any]


def check_exact(func: PrimFunc, arrays: list[Array], expected: Array) -> None:
    """Compare the evaluator, the oracle and a kernel with expected results."""
    names = [buffer.name for buffer in func.buffers]
    inputs = dict(zip(names, arrays, strict=False))
    np.testing.assert_array_equal(interpret(func, inputs)[names[-1]], expected)
    np.testing.assert_array_equal(evaluate(func, inputs)[names[-1]], expected)
    got = np.zeros(expected.shape, np.float32)
    lw.build(func)(*arrays, got)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("has_zero_point", [False, True])
def test_two_weights_of_a_byte_lie_half_a_group_apart(m: int, has_zero_point: bool) -> None:
    n, groups, size = 2, 3, 4
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 16, (n, groups, size))
    packed = np.zeros((n, groups, size // 2), np.uint8)
    for j, g, b in np.ndindex(packed.shape):
        packed[j, g, b] = weights[j, g, b] + 16 * weights[j, g, b + size // 2]
    scale = np.array([[1, 2, 4], [-8, 16, 0.5]], np.float32)
    zeros = rng.integers(0, 16, (n, groups)).astype(np.uint8)
    a = rng.integers(-3, 4, (m, groups * size)).astype(np.float32)
    expected = np.zeros((m, n))
    for i, j, g, b in np.ndindex(m, n, groups, size):
        zero = int(zeros[j, g]) if has_zero_point else 8
        value = float(scale[j, g]) * (int(weights[j, g, b]) - zero)
        expected[i, j] += float(a[i, g * size + b]) * value
    func = ops.dense_int4(m, n, groups * size, size, zero_point=has_zero_point)
    arrays: list[Array] = [a, packed, scale, *([zeros] if has_zero_point else [])]
    check_exact(func, arrays, expected)


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("group", [None, 4])
def test_each_group_of_bytes_has_a_scale(m: int, group: int | None) -> None:
    n, k = 3, 12
    size = group or k
    rng = np.random.default_rng(0)
    weights = rng.choice([-128, -127, -1, 0, 1, 127], (n, k)).astype(np.int8)
    scale = rng.choice([0.25, 1, -2, 8], (n, k // size)).astype(np.float32)
    a = rng.integers(-3, 4, (m, k)).astype(np.float32)
    expected = np.zeros((m, n))
    for i, j, p in np.ndindex(m, n, k):
        expected[i, j] += float(a[i, p]) * float(scale[j, p // size]) * int(weights[j, p])
    check_exact(ops.dense_int8(m, n, k, group), [a, weights, scale], expected)
    reference = ops.reference("dense_int8", m, n, k, group)
    np.testing.assert_array_equal(reference(a, weights, scale), expected)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ops.dense_int4(1, 4, 48, 32), "group is 32: expected an even divisor of k = 48"),
        (lambda: ops.dense_int4(1, 4, 15, 5), "group is 5: expected an even divisor of k = 15"),
        (lambda: ops.dense_int4(1, 4, 32, dtype="int8"), "int8"),
        (lambda: ops.dense_int8(1, 4, 48, 32), "group is 32: expected a divisor of k = 48"),
        (lambda: ops.dense_int8(1, 4, 48, 0), "group is 0"),
        (lambda: ops.dense_int8(1, 4, 32, dtype="int8"), "int8"),
    ],
)
def test_arguments_out_of_range_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ops.OperatorError, match=message):
        make()

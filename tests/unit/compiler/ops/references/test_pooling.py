"""References of pools against loops over the windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.unit.compiler.ops.reference_checks import Array, check


def pooled(
    a: Array, kernel: int, stride: int, padding: int, *, ceil: bool, mean: bool, include: bool
) -> Array:
    """Pool by loops, as frameworks define it."""
    n, c, *sizes = a.shape
    counts = []
    for size in sizes:
        left = size + 2 * padding - kernel
        count = (-(-left // stride) if ceil else left // stride) + 1
        if ceil and (count - 1) * stride >= size + padding:
            count -= 1
        counts.append(count)
    out = np.zeros((n, c, *counts))
    for y, x in itertools.product(*map(range, counts)):
        starts = [y * stride - padding, x * stride - padding]
        ends = [min(s + kernel, size + padding) for s, size in zip(starts, sizes, strict=True)]
        inside = [
            slice(max(s, 0), min(e, size)) for s, e, size in zip(starts, ends, sizes, strict=True)
        ]
        part = a[:, :, inside[0], inside[1]]
        area = (ends[0] - starts[0]) * (ends[1] - starts[1])
        count = area if include else part.shape[2] * part.shape[3]
        out[:, :, y, x] = part.sum((2, 3)) / count if mean else part.max((2, 3))
    return out


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 3, 1), (2, 3, 1)]
)
def test_pools(kernel: int, stride: int, padding: int, *, ceil: bool) -> None:
    numbers = f"2,3,8,9,{kernel},{stride},{padding},ceil_mode={str(ceil).lower()}"
    size = (kernel, stride, padding)
    check(
        f"max_pool2d:{numbers}",
        [(2, 3, 8, 9)],
        lambda a: pooled(a, *size, ceil=ceil, mean=False, include=True),
    )
    for include in (True, False):
        check(
            f"avg_pool2d:{numbers},count_include_pad={str(include).lower()}",
            [(2, 3, 8, 9)],
            lambda a, i=include: pooled(a, *size, ceil=ceil, mean=True, include=i),
        )

"""Sums of products of narrow integers: each implementation computes what NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.core.nodes import static_shape
from compiler.schedule.intrinsics.byte_dot_intrinsics import BYTE_DOT_INTRINSICS
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin

ROWS = [name for name in BYTE_DOT_INTRINSICS if name.startswith("dot")]


@pytest.mark.parametrize("name", ROWS)
def test_an_implementation_sums_the_greatest_products(name: str) -> None:
    intrin = TensorIntrin.get(name)  # it is compared with its description
    a, b, c = (
        np.full(static_shape(buffer), np.iinfo(buffer.dtype).max, buffer.dtype)
        for buffer in intrin.impl.buffers
    )
    c[:] = 5
    with np.errstate(over="ignore"):
        expected = c + (b.astype("int64") * a).sum(1).astype(c.dtype)
    build(intrin.impl, "cpu -num-cores=1")(a, b, c)
    np.testing.assert_array_equal(c, expected)

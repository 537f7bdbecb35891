"""Arrays that are passed to kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler import ops
from compiler.backends.module import Module
from compiler.driver import build
from compiler.executor.error import ArgumentError


@pytest.fixture(scope="module")
def matmul() -> Module:
    return build(ops.matmul(4, 6, 8), "cpu -num-cores=1")


def test_arguments_that_do_not_fit_are_refused(matmul: Module) -> None:
    a, b, c = (np.ones(s, "float32") for s in ((4, 8), (8, 6), (4, 6)))
    with pytest.raises(ArgumentError, match=r"takes 3 arrays \(A, B, C\): got 2"):
        matmul(a, b)
    with pytest.raises(ArgumentError, match=r"parameter B is float32\[6, 8\]: expected"):
        matmul(a, b.T.copy(), c)
    with pytest.raises(ArgumentError, match="parameter A is float64"):
        matmul(a.astype("float64"), b, c)
    with pytest.raises(ArgumentError, match="parameter A is not contiguous"):
        matmul(np.ones((8, 4), "float32").T, b, c)
    with pytest.raises(ArgumentError, match="parameter A is a list"):
        matmul([1.0], b, c)
    c.flags.writeable = False
    with pytest.raises(ArgumentError, match="parameter C is written, and the array is read-only"):
        matmul(a, b, c)


def test_an_output_that_overlaps_an_input_is_refused() -> None:
    module = build(ops.relu(8), "cpu -num-cores=1")
    room = np.ones(12, "float32")
    with pytest.raises(ArgumentError, match="overlaps parameter A"):
        module(room[:8], room[4:])


def test_dlpack_arrays_are_taken() -> None:
    class Speaker:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> object:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return self.array.__dlpack_device__()

    module = build(ops.relu(8), "cpu -num-cores=1")
    out = np.empty(8, "float32")
    module(Speaker(np.full(8, -1, "float32")), out)
    assert (out == 0).all()

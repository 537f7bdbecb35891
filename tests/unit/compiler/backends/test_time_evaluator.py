"""Timings of kernels."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.backends.module import Module
from compiler.backends.time_evaluator import time_evaluator
from compiler.driver import build
from compiler.executor.memory import aligned_empty


@pytest.fixture(scope="module")
def matmul() -> Module:
    return build(ops.matmul(4, 6, 8), "cpu -num-cores=1")


def test_a_timing_holds_its_samples(matmul: Module) -> None:
    arrays = [aligned_empty(p.shape, p.dtype) for p in matmul.params]
    for array in arrays:
        array[:] = 1
    timing = time_evaluator(matmul, *arrays, samples=7)
    assert len(timing.secs) == 7
    assert 0 < timing.min_secs <= timing.median_secs <= max(timing.secs)
    with pytest.raises(ValueError, match="samples is 0"):
        time_evaluator(matmul, *arrays, samples=0)

"""The search space of GPUs as a whole."""

from __future__ import annotations

import pytest

from benchmarks.kernels.traces import program
from benchmarks.workloads import WORKLOADS, BenchmarkWorkload
from tests.unit.tuner.space.gpu_spaces import space_of

PUBLIC = [
    # Attention has eight blocks, so that its sketches take seconds.
    pytest.param(w, marks=[pytest.mark.slow] if w.op == "attention" else [], id=w.name)
    for w in WORKLOADS
    if w.group in ("public", "seed")
]


@pytest.mark.parametrize("workload", PUBLIC)
def test_every_public_workload_has_schedules(workload: BenchmarkWorkload) -> None:
    assert space_of(program(workload)).sketches

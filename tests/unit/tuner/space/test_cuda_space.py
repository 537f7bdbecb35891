"""The search space of GPUs as a whole."""

from __future__ import annotations

import pytest

from benchmarks.workloads import WORKLOADS, BenchmarkWorkload
from compiler import ops
from tests.unit.tuner.space.gpu_spaces import space_of

PUBLIC = [w for w in WORKLOADS if w.group in ("public", "seed") and w.spec]


@pytest.mark.parametrize("workload", PUBLIC, ids=lambda workload: workload.name)
def test_every_public_workload_has_schedules(workload: BenchmarkWorkload) -> None:
    assert space_of(ops.from_spec(workload.spec)).sketches

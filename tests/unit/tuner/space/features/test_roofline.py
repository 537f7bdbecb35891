"""Estimated cycles follow the rates of each CPU."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.target.cpu import CpuTarget
from tuner.space.features.roofline import Roofline
from tuner.space.generate import design_space
from tuner.task import Task


@pytest.mark.parametrize(
    ("slow", "fast", "ratio"),
    [("znver4", "znver5", 2), ("neoverse-n1", "neoverse-v2", 2), ("cortex-a72", "cortex-a76", 2)],
)
def test_a_core_with_half_the_multiply_adds_takes_twice_the_cycles(
    slow: str, fast: str, ratio: float
) -> None:
    targets = [CpuTarget(f"cpu -mcpu={cpu} -num-cores=1") for cpu in (slow, fast)]
    space = design_space(Task(ops.matmul(96, 96, 96), targets[0]))
    sketch = next(s for s in space.sketches if s.name == "packed_whole")
    values = sketch.values(sketch.draw(64, np.random.default_rng(0)))
    tables = sketch.nests[0].tables(values)
    busy = [Roofline(tables, target).parts["compute"] for target in targets]
    # The tiles with enough sums to keep both cores busy.
    assert (busy[0] / busy[1]).max() == pytest.approx(ratio)
    assert (busy[0] >= busy[1]).all()

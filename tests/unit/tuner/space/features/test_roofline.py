"""Estimated cycles follow the rates of each CPU."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.target.cpu import CpuTarget
from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.features.roofline import PARTS, Roofline
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
    busy = [Roofline(tables, target).parts[PARTS.index("compute")] for target in targets]
    assert busy[0] / busy[1] == pytest.approx(ratio)


def cycles(spec: str, sketch_name: str, part: str, *knobs: int) -> float:
    target = CpuTarget("cpu -mcpu=znver3 -num-cores=1")
    space = design_space(Task(ops.from_spec(spec), target))
    sketch = next(s for s in space.sketches if s.name == sketch_name)
    choices = np.array([[*knobs, *[0] * (len(sketch.knobs) - len(knobs))]], np.int64)
    batch = CpuBatch(sketch, choices, target)
    return float(sum(nest.parts[PARTS.index(part), 0] for nest in batch.rooflines))


def test_pieces_of_rows_by_hand() -> None:
    """64 rows of 96 elements: `B` in pieces of 96, 8, 16, 32 or 64 (vectors of 8)."""
    counts = [cycles("layer_norm:64,96", "rows", "pieces", 0, 0, 0, n) for n in range(5)]
    assert counts == [64 * 96 / 32, 64 * 12, 64 * 6, 64 * 3, 64 * 2]


def test_more_unrolled_steps_of_a_sum_have_fewer_loop_iterations() -> None:
    """Two sums of 64 rows of 96 elements in lanes of 8, with 1, 2 or 4 steps at once."""
    loops = [cycles("layer_norm:64,96", "rows", "loops", 0, 0, n, 0) for n in range(3)]
    elementwise = loops[0] - 2 * 64 * 12
    assert [each - elementwise for each in loops] == [2 * 64 * 12, 2 * 64 * 6, 2 * 64 * 3]


def test_loads_count_by_their_kind() -> None:
    """C[i, j] += A[i, k] * W[j, k] gathers W along j, or W is copied into panels."""
    packed = cycles("dense:16,64,96", "packed_right_whole", "gathers")
    assert packed == 0 < cycles("dense:16,64,96", "direct", "gathers")

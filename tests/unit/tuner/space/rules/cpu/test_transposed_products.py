"""Products with few columns, which vectors of columns would leave mostly empty."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from tests.targets import level, runs_here
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.space.rules.cpu.transposed_products import TRANSPOSED
from tuner.task import Task

NARROW = {
    "plain": ops.matmul(67, 17, 40),
    "bias": ops.matmul(48, 9, 33, bias=True, activation="relu"),
    "weights of rows": ops.dense(50, 17, 24, constant="W"),
    "a batch": ops.batch_matmul(3, 33, 5, 16),
    "long float": ops.matmul(64, 3, 20, dtype="float64"),
}
OTHERS = {
    "columns fill vectors": ops.matmul(67, 32, 40),
    "rows fill them less": ops.matmul(9, 17, 40),
    "bytes": ops.quantized_dense(64, 17, 64),
}


def transposed(func: PrimFunc, num_cores: int = 1) -> list[str]:
    space = design_space(Task(func, level(3, num_cores)))
    return [sketch.name for sketch in space.sketches if sketch.name.startswith(TRANSPOSED)]


@runs_here(3)
@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("name", NARROW)
def test_every_candidate_is_correct(name: str, num_cores: int) -> None:
    func = NARROW[name]
    space = design_space(Task(func, level(3, num_cores)))
    numbers = [n for n, s in enumerate(space.sketches) if s.name.startswith(TRANSPOSED)]
    assert len(numbers) == 2
    check_candidates(func, space, numbers, each=2)


@pytest.mark.parametrize("name", NARROW)
def test_narrow_products_are_also_computed_transposed(name: str) -> None:
    assert len(transposed(NARROW[name])) == 2


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_are_not(name: str) -> None:
    assert transposed(OTHERS[name]) == []


@pytest.mark.parametrize("name", NARROW)
def test_cores_that_split_vectors_compute_no_transpose(name: str) -> None:
    space = design_space(Task(NARROW[name], CpuTarget("cpu -mcpu=znver4 -num-cores=1")))
    assert not any(sketch.name.startswith(TRANSPOSED) for sketch in space.sketches)

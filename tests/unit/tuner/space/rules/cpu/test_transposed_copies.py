"""Transposes run in tiles that registers transpose; large outputs may be stored past the caches."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.backends.cpu.codegen.emitters.stores import STREAMS
from compiler.ir.core.program import PrimFunc
from compiler.target.target import Target
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.design_space import SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task


def space_of(func: PrimFunc, target: Target) -> SketchSpace:
    return design_space(Task(func, target))


def transposed_sum(rows: int = 24) -> PrimFunc:
    a, b = te.placeholder((rows, 40), name="A"), te.placeholder((40, rows), name="B")
    c = te.compute((40, rows), lambda i, j: a[j, i] * 2.0 + b[i, j], name="C")
    return te.create_prim_func([a, b, c])


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize(
    ("func", "names"),
    [
        (ops.transpose(64, 48), ["transposed"]),
        (ops.transpose(17, 31), ["aside", "transposed"]),
        (ops.transpose(127, 301), ["aside", "transposed"]),
        (ops.transpose(3, 33, 77, axes=(0, 2, 1)), ["aside", "transposed"]),
        (ops.transpose(2, 16, 5, 24, axes=(3, 2, 1, 0)), ["aside", "transposed"]),
        (ops.transpose(24, 18, dtype="int8"), ["aside", "transposed"]),
        (ops.transpose(2048, 1040), ["aside", "transposed"]),
        (transposed_sum(), ["transposed"]),
        (transposed_sum(23), ["aside", "transposed"]),
    ],
    ids=[
        "even",
        "odd",
        "more than a tile",
        "batches",
        "reversed",
        "bytes",
        "large",
        "with arithmetic",
        "odd, with arithmetic",
    ],
)
def test_tiles_are_correct(func: PrimFunc, names: list[str], num_cores: int) -> None:
    assert [s.name for s in space_of(func, level(3, num_cores)).sketches] == names
    check_candidates(func, space_of(func, here(num_cores)), each=3)


def test_rows_that_stay_rows_are_no_transpose() -> None:
    func = ops.transpose(4, 8, 16, axes=(1, 0, 2))
    assert [sketch.name for sketch in space_of(func, level(3)).sketches] == ["spatial"]


@pytest.mark.parametrize(("extent", "offered"), [(64, False), (8192, True)])
@pytest.mark.parametrize("operator", [ops.transpose, ops.relu])
def test_only_large_outputs_may_go_past_the_caches(
    operator: object, extent: int, offered: bool
) -> None:
    assert callable(operator)
    sketch, *_ = space_of(operator(extent, extent), level(3)).sketches
    notes = [i.arguments for i in sketch.trace.instructions if i.name == "annotate"]
    assert any(STREAMS in dict(note).values() for note in notes) is offered

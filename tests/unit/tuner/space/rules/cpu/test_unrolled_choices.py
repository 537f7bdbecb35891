"""Transforms chosen by place: no test is left of the choice, and every candidate is right."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.driver import emit
from compiler.ir.core.program import PrimFunc
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.space.rules.cpu.unrolled_choices import UnrolledChoices
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.task import Task

WINOGRAD = [
    "conv2d_winograd:1,8,8,8,16,1,2",
    "conv2d_winograd:2,16,9,7,16,1,4",
    "conv2d_winograd:1,3,10,12,8,0,4,bias=True,activation=relu",
    "conv2d_winograd:1,5,6,6,7,1,2",
]


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("spec", WINOGRAD)
def test_every_candidate_is_correct(spec: str, num_cores: int) -> None:
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    assert space.sketches
    check_candidates(func, space, each=1)


def test_only_the_product_is_left_to_search() -> None:
    space = design_space(Task(ops.conv2d_winograd(1, 16, 8, 8, 16, 1, 2), level(3)))
    assert {nest.facts.name for s in space.sketches for nest in s.nests} == {"products"}


def chosen(extent: int) -> PrimFunc:
    A = te.placeholder((16, 32), "float32", name="A")

    def element(i: te.Value, y: te.Value, x: te.Value) -> te.Value:
        return te.if_then_else(i == 0, A[y, x] * 2.0, te.if_then_else(i == 1, A[y, x] + 1.0, 0.0))

    return te.create_prim_func([A, te.compute((extent, 16, 32), element, name="B")])


def test_nothing_is_asked_where_the_choice_is_unrolled() -> None:
    draft = SketchBuilder.begin(chosen(3), level(3))
    UnrolledChoices().apply(draft)
    text = emit(draft.schedule.func, level(3)).text
    assert "select" not in text
    assert "mask" not in text


def test_long_axes_are_left_alone() -> None:
    draft = SketchBuilder.begin(chosen(9), level(3))
    UnrolledChoices().apply(draft)
    assert not draft.scheduled

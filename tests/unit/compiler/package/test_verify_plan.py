"""Plans that access memory that they may not are refused, with the step and the reason."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from compiler.executor.params import Param
from compiler.package.plan import (
    BufferRef,
    ModelPlan,
    PlacedArray,
    PlannedKernel,
    Region,
    Step,
)
from compiler.package.verify_plan import PlanError, verify_plan
from compiler.target.cpu import CpuTarget
from tests.targets import level

X = Param("x", (4, 8), "float32", is_output=False)
Y = Param("y", (4, 8), "float32", is_output=True)
ADD = PlannedKernel("add", "", (X, replace(X, name="w"), Y), workspace_bytes=0)
FIRST = Step(
    "add", (BufferRef(Region.INPUT, 0), BufferRef(Region.WEIGHTS, 0), BufferRef(Region.ARENA, 0))
)
SECOND = Step(
    "add",
    (BufferRef(Region.ARENA, 0), BufferRef(Region.ARENA, 64), BufferRef(Region.OUTPUT, 0)),
    "Add_1",
)
LEGAL = ModelPlan(
    name="model",
    target=CpuTarget.of(level(3)),
    inputs=(X,),
    outputs=(Y,),
    kernels={"add": ADD},
    steps=(
        FIRST,
        replace(FIRST, arguments=(*FIRST.arguments[:2], BufferRef(Region.ARENA, 128))),
        SECOND,
    ),
    arena_bytes=256,
    weights=(PlacedArray(0, np.zeros((4, 8), "float32")),),
)


def _at(position: int, ref: BufferRef) -> ModelPlan:
    """Return the plan with another argument in its last step."""
    arguments = (*SECOND.arguments[:position], ref, *SECOND.arguments[position + 1 :])
    return replace(LEGAL, steps=(*LEGAL.steps[:2], replace(SECOND, arguments=arguments)))


def test_a_legal_plan_is_accepted() -> None:
    verify_plan(LEGAL)
    assert (LEGAL.weights_bytes, LEGAL.workspace_bytes, LEGAL.num_threads) == (128, 0, 1)


def test_a_read_may_span_what_several_steps_wrote() -> None:
    verify_plan(_at(0, BufferRef(Region.ARENA, 4)))


def _in_place(ref: BufferRef, *, names: tuple[str, ...] = ("y",)) -> ModelPlan:
    """Return the plan with a step before the last one that works in place."""
    kernel = PlannedKernel("over", "", (X, Y), workspace_bytes=0, in_place=names)
    step = Step("over", (BufferRef(Region.INPUT, 0), ref))
    steps = (*LEGAL.steps[:2], step, SECOND)
    return replace(LEGAL, kernels={**LEGAL.kernels, "over": kernel}, steps=steps)


def test_a_kernel_in_place_reads_what_was_written() -> None:
    verify_plan(_in_place(BufferRef(Region.ARENA, 128)))


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (_at(0, BufferRef(Region.ARENA, 192)), "x has 128 bytes at 192: the region arena has 256"),
        (_at(0, BufferRef(Region.ARENA, -4)), "at -4"),
        (_at(0, BufferRef(Region.ARENA, 2)), "begins at 2, between elements of float32"),
        (_at(0, BufferRef(Region.INPUT, 1)), "x is input 1 of 1"),
        (_at(0, BufferRef(Region.WEIGHTS, 64)), "the region weights has 128"),
        (_at(0, BufferRef(Region.OUTPUT, 0)), "x reads output 0, which no step has written"),
        (_at(2, BufferRef(Region.INPUT, 0)), "y is written: the region input is read-only"),
        (_at(2, BufferRef(Region.WEIGHTS, 0)), "y is written: the region weights is read-only"),
        (_at(2, BufferRef(Region.ARENA, 64)), "y is written and overlaps x"),
        (_at(2, BufferRef(Region.ARENA, 128)), "y is written and overlaps w"),
        (
            replace(_in_place(BufferRef(Region.ARENA, 256)), arena_bytes=512),
            "y reads the arena at 256, which no step has written",
        ),
        (_in_place(BufferRef(Region.INPUT, 0)), "the region input is read-only"),
        (_in_place(BufferRef(Region.OUTPUT, 0)), "y reads output 0, which no step has written"),
        (_in_place(BufferRef(Region.ARENA, 128), names=("x",)), "no output x to work in place"),
        (replace(LEGAL, steps=LEGAL.steps[2:]), "reads the arena at 0, which no step has written"),
        (replace(LEGAL, steps=LEGAL.steps[:2]), "no step writes the output y"),
        (replace(LEGAL, kernels={}), "the plan has no such kernel"),
        (
            replace(LEGAL, steps=(replace(SECOND, arguments=()),)),
            "0 arguments for the parameters x, w, y",
        ),
        (replace(LEGAL, name="my-model"), "'my-model': expected a C identifier"),
        (replace(LEGAL, inputs=(X, X)), "two inputs or two outputs have one name"),
        (
            replace(LEGAL, inputs=(replace(X, extents=(4, 4)),)),
            "x has 128 bytes: the input x has 64",
        ),
        (replace(LEGAL, weights=(PlacedArray(32, np.zeros(64, "float32")),)), "weights at 32"),
        (replace(LEGAL, weights=(*LEGAL.weights, *LEGAL.weights)), "from 128 on"),
        (
            replace(LEGAL, weights=(PlacedArray(0, np.zeros((8, 8), "float32").T[::2]),)),
            "not contiguous",
        ),
    ],
)
def test_a_plan_that_is_not_legal_is_refused(plan: ModelPlan, reason: str) -> None:
    with pytest.raises(PlanError, match=re.escape(reason)):
        verify_plan(plan)


def test_the_error_names_the_step_and_its_nodes() -> None:
    with pytest.raises(PlanError, match=r"^model, step 2 \(add, Add_1\): x "):
        verify_plan(_at(0, BufferRef(Region.ARENA, 2)))

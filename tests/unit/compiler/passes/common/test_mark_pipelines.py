"""Plans of software pipelines: which are refused or ignored."""

from __future__ import annotations

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation
from tests.unit.compiler.passes.common.pipelines import pipelined, program


@pytest.mark.parametrize(
    ("func", "message"),
    [
        (pipelined([0, 0, 1], None), "software_pipeline_order is missing"),
        (pipelined(None, [0, 1, 2]), "software_pipeline_stage is missing"),
        (pipelined([0, 1], [0, 1, 2]), "has 3 statements, but software_pipeline_stage has 2"),
        (pipelined([0, 0, 1], [0, 1, 1]), "gives one place to two statements"),
        (pipelined([0, 0, -1], [0, 1, 2]), "expected a list of integers from 0 on"),
        (pipelined("0, 0, 1", [0, 1, 2]), "expected a list of integers from 0 on"),
        (pipelined([0, 0, 1], [0, 1, 2], async_stages=[2]), "names stage 2, which it has not"),
        (pipelined([1, 0, 1], [0, 1, 2]), "would run statement 1 before statement 0"),
        (pipelined([0, 0, 0], [1, 0, 2]), "would run statement 1 before statement 0"),
        (
            program({}, attributes={"double_buffer_scope": 1}),
            "double_buffer_scope of block p is 1: expected the number of one of the 1 buffers",
        ),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(func: PrimFunc, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        build(func, ONE_CORE)


def test_a_loop_of_one_iteration_is_left_alone() -> None:
    check_against_evaluation(pipelined([0, 1], [0, 1], extent=1))


def test_annotations_of_other_compilers_are_ignored() -> None:
    check_against_evaluation(
        program({"pragma_auto_unroll_max_step": 64, "pragma_unroll_explicit": 1, "mine": "x"})
    )

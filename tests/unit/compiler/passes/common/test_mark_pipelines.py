"""Plans of software pipelines: which are refused or ignored."""

from __future__ import annotations

import pytest

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.script.parser import parse
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation

PROGRAM = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for tx in T.thread_binding(16, thread="threadIdx.x"):
        for i in T.serial({extent}, annotations={annotations}):
            with T.sblock("iteration"):
                T.reads(A[tx, i])
                T.writes(C[tx, i])
                B = T.sblock_alloc_buffer((16, 1), scope="shared")
                D = T.sblock_alloc_buffer((16, 1), scope="{scope}")
                with T.sblock("p"):
                    T.reads(A[tx, i])
                    T.writes(B[tx, 0])
                    T.sblock_attr({attributes})
                    B[tx, 0] = A[tx, i] * T.float32(2)
                with T.sblock("q"):
                    T.reads(B[0:16, 0])
                    T.writes(D[tx, 0])
                    D[tx, 0] = B[15 - tx, 0] + T.float32(1)
                with T.sblock("c"):
                    T.reads(D[tx, 0])
                    T.writes(C[tx, i])
                    C[tx, i] = D[tx, 0] + T.float32(1)
"""


def pipelined(
    stages: object, order: object, *, extent: int = 16, scope: str = "shared", **more: object
) -> PrimFunc:
    keys = {"stage": stages, "order": order, **more}
    notes = {f"software_pipeline_{key}": value for key, value in keys.items() if value is not None}
    return program(notes, extent=extent, scope=scope)


def program(
    annotations: dict[str, object],
    *,
    extent: int = 16,
    scope: str = "shared",
    attributes: dict[str, object] | None = None,
) -> PrimFunc:
    text = PROGRAM.format(
        annotations=annotations, extent=extent, scope=scope, attributes=attributes or {}
    )
    return parse(text.replace("                    T.sblock_attr({})\n", ""))


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

"""Loops whose statements run in stages compute the same."""

from __future__ import annotations

import pytest

from compiler.driver import lower
from compiler.ir.core.nodes import (
    Allocate,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation

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


@pytest.mark.parametrize("scope", ["shared", "local"])
@pytest.mark.parametrize("extent", [1, 2, 16])
@pytest.mark.parametrize(
    ("stages", "order"),
    [
        ([0, 0, 1], [0, 1, 2]),
        ([0, 1, 2], [0, 1, 2]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 3, 3], [0, 1, 2]),
        ([0, 1, 1], [2, 0, 1]),
    ],
)
def test_stages_change_nothing_of_what_is_computed(
    stages: list[int], order: list[int], extent: int, scope: str
) -> None:
    check_against_evaluation(pipelined(stages, order, extent=extent, scope=scope))


def shapes(func: PrimFunc) -> dict[str, tuple[int, ...]]:
    stmt = lower(func, level(3))
    return {
        node.buffer.name: static_shape(node.buffer)
        for node in walk_stmts(stmt)
        if isinstance(node, Allocate)
    }


def test_buffers_have_a_version_for_each_iteration_under_way() -> None:
    assert shapes(pipelined([0, 1, 3], [0, 1, 2])) == {"B": (2, 16, 1), "D": (3, 16, 1)}
    assert shapes(pipelined([0, 0, 0], [0, 1, 2])) == {"B": (16, 1), "D": (16, 1)}


def test_a_double_buffer_is_written_one_iteration_ahead() -> None:
    func = program({}, attributes={"double_buffer_scope": 0})
    assert shapes(func)["B"] == (2, 16, 1)
    check_against_evaluation(func)

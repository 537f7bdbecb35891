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
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation
from tests.unit.compiler.passes.common.pipelines import pipelined, program


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

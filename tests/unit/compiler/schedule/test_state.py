"""What a schedule may be made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BlockRealize,
    For,
    Seq,
    Stmt,
    seq,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import block_with_body, blocks
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu, refused


def test_a_seed_is_a_number() -> None:
    with pytest.raises(ScheduleError, match=r"seed: expected an integer, got \[\]"):
        Schedule(elementwise()).seed([])  # type: ignore[arg-type]


def test_a_module_is_worked_on_by_function() -> None:
    first, second = replace(matmul_relu(), name="f"), replace(elementwise(), name="g")
    sch = Schedule(IRModule((first, second)))
    assert sch.func_working_on == "f"
    sch.compute_inline(sch.get_block("B", func_name="g"))
    assert sch.func is first
    sch.work_on("g")
    assert sch.func is not second
    (i, _), (j, *_) = sch.get_loops("C"), sch.get_loops(sch.get_block("Y", func_name="f"))
    with refused(sch, "the loops are in different functions", at="def g"):
        sch.reorder(i, j)
    replayed = sch.trace.apply_to(IRModule((first, second)))
    assert replayed.mod == sch.mod


def test_programs_that_can_not_be_scheduled_are_refused() -> None:
    func = elementwise()
    body = func.root.body
    assert isinstance(body, Seq)
    assert isinstance(body.stmts[0], For)
    assert isinstance(body.stmts[1], For)
    shared = seq(body.stmts[0], replace(body.stmts[1], var=body.stmts[0].var))
    with pytest.raises(ScheduleError, match="two loops share the variable i"):
        Schedule(_with_body(func, shared))
    lowered = Allocate(func.root.alloc_buffers[0], body)
    with pytest.raises(ScheduleError, match="the program is lowered already"):
        Schedule(_with_body(func, lowered))
    with pytest.raises(ValueError, match="no function"):
        Schedule(IRModule(()))


def test_blocks_of_one_name_get_names_of_their_own() -> None:
    func = elementwise()
    named = replace(func, body=replace(func.body, block=replace(func.root, name="B")))
    sch = Schedule(named)
    assert [realize.block.name for realize in blocks(sch.func)] == ["B", "B_1", "C"]
    assert sch.get_loops("B_1")
    assert structural_equal(sch.func, func)


def _with_body(func: PrimFunc, body: Stmt) -> PrimFunc:
    return replace(func, body=BlockRealize((), TRUE, block_with_body(func.root, body)))


@pytest.mark.parametrize("mod", [3, "matmul:4,4,4", None])
def test_what_is_no_program_is_refused(mod: Any) -> None:
    with pytest.raises(TypeError, match="expected a PrimFunc or an IRModule to schedule, got"):
        Schedule(mod)

"""Handles, queries, modules and copies of schedules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compiler import ops
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
from compiler.schedule.trace.handle import BlockRV
from compiler.schedule.tree.tree import block_with_body, blocks
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu, refused


def names(sch: Schedule, blocks: list[BlockRV]) -> list[str]:
    realizes = [sch.get(block) for block in blocks]
    return [r.block.name for r in realizes if isinstance(r, BlockRealize)]


def test_queries_find_blocks_and_loops() -> None:
    sch = Schedule(matmul_relu())
    assert [loop.var.name for x in sch.get_loops("Y") if isinstance(loop := sch.get(x), For)] == [
        "i",
        "j",
        "k",
    ]
    assert names(sch, sch.get_child_blocks("root")) == ["Y", "C"]
    assert names(sch, sch.get_child_blocks(sch.get_loops("Y")[0])) == ["Y"]
    assert names(sch, sch.get_producers("C")) == ["Y"]
    assert names(sch, sch.get_consumers("Y")) == ["C"]
    assert names(sch, sch.get_output_blocks("root")) == ["C"]
    assert sch.get(sch.get_sblock("Y")) is sch.get(sch.get_block("Y"))


def test_a_schedule_shows_its_program_in_any_dialect(capsys: pytest.CaptureFixture[str]) -> None:
    sch = Schedule(elementwise())
    sch.show("middle")
    assert capsys.readouterr().out == sch.func.script("middle")


def test_a_seed_is_a_number() -> None:
    with pytest.raises(ScheduleError, match=r"seed: expected an integer, got \[\]"):
        Schedule(elementwise()).seed([])  # type: ignore[arg-type]


def test_a_block_that_is_not_there_is_named_with_those_that_are() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, 'there is no block "X"; the blocks are: root, Y, C', at="def main"):
        sch.get_block("X")
    with refused(sch, 'there is no function "f"; the functions are: main', at="def main"):
        sch.get_block("Y", func_name="f")


def test_a_consumed_handle_is_dead_and_says_so() -> None:
    sch = Schedule(matmul_relu())
    i, j, _ = sch.get_loops("Y")
    (other, *_) = sch.get_loops("Y")
    sch.split(i, [4, 4])
    for handle in (i, other):
        with refused(sch, f"handle {handle.name} is dead: split consumed it", at="def main"):
            sch.parallel(handle)
    sch.fuse(j)
    with refused(sch, f"handle {j.name} is dead: fuse consumed it", at="def main"):
        sch.unroll(j)
    sch = Schedule(elementwise())
    block = sch.get_block("B")
    sch.compute_inline(block)
    with refused(sch, f"handle {block.name} is dead: compute_inline consumed it", at="def main"):
        sch.get_loops(block)


def test_a_loop_that_a_move_removed_is_not_in_the_program() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.compute_at("B", sch.get_loops("C")[1])
    with refused(sch, "loop i is not in the program", at="def main"):
        sch.parallel(i)


def test_handles_of_another_schedule_are_refused() -> None:
    sch, other = Schedule(elementwise()), Schedule(elementwise())
    block, (i, _) = other.get_block("B"), other.get_loops("B")
    value = other.sample_categorical([2], [1.0])
    with refused(sch, f"handle {i.name} is no loop of this schedule", at="def main"):
        sch.parallel(i)
    with refused(sch, f"handle {block.name} is no block of this schedule", at="def main"):
        sch.get_loops(block)
    with refused(sch, f"handle {value.name} is no value of this schedule", at="def main"):
        sch.split(sch.get_loops("B")[0], [None, value])


def test_the_handle_of_a_decomposed_reduction_stands_for_the_update() -> None:
    sch = Schedule(matmul_relu())
    block = sch.get_block("Y")
    init = sch.decompose_reduction(block, sch.get_loops(block)[2])
    assert names(sch, [init, block]) == ["Y_init", "Y_update"]


def test_new_names_do_not_clash() -> None:
    sch = Schedule(matmul_relu())
    first, second = sch.cache_read("Y", 0, "local"), sch.cache_read("Y", 1, "local")
    third = sch.cache_read(first, 0, "local")
    assert names(sch, [first, second, third]) == ["A_local", "B_local", "A_local_1"]


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


def test_a_copy_goes_its_own_way() -> None:
    sch = Schedule(elementwise(), seed=0)
    i, j = sch.get_loops("B")
    copy = sch.copy()
    copy.parallel(i)
    sch.vectorize(j)
    assert [x.name for x in copy.trace.instructions][-1] == "parallel"
    assert [x.name for x in sch.trace.instructions][-1] == "vectorize"
    assert sch.sample_categorical(list(range(99)), [1.0] * 99) is not None
    assert copy.sample_categorical(list(range(99)), [1.0] * 99) is not None
    assert copy.trace.decisions == sch.trace.decisions


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


def test_a_loop_that_is_gone_can_not_be_looked_at() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.compute_inline("B")
    with refused(sch, "loop i is not in the program", at="def main"):
        sch.get(i)


def test_a_block_by_name_is_refused_by_the_primitive() -> None:
    sch = Schedule(elementwise())
    with refused(sch, 'there is no block "X"; there are: B, C, root', at="def main"):
        sch.compute_inline("X")


@pytest.mark.parametrize("mod", [3, "matmul:4,4,4", None])
def test_what_is_no_program_is_refused(mod: Any) -> None:
    with pytest.raises(TypeError, match="expected a PrimFunc or an IRModule to schedule, got"):
        Schedule(mod)


def test_a_program_prints_as_its_script() -> None:
    func = ops.matmul(4, 4, 4)
    assert str(func) == func.script()
    assert str(Schedule(func).mod) == Schedule(func).mod.script()

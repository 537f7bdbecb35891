"""Handles of blocks and loops, and when they die."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    BlockRealize,
)
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV
from tests.unit.compiler.schedule.schedule_asserts import elementwise, matmul_relu, refused


def names(sch: Schedule, blocks: list[BlockRV]) -> list[str]:
    realizes = [sch.get(block) for block in blocks]
    return [r.block.name for r in realizes if isinstance(r, BlockRealize)]


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


def test_a_loop_that_is_gone_can_not_be_looked_at() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.compute_inline("B")
    with refused(sch, "loop i is not in the program", at="def main"):
        sch.get(i)

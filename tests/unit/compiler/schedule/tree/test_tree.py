"""Find and replace nodes of a program; what stands beside them stays the same object."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Evaluate, For, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.tree import tree
from compiler.script import parse

FUNC = parse("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    B = T.alloc_buffer((4, 8), "float32")
    for i in range(4):
        for j in range(8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for k in range(8):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = B[vi, vk] * T.float32(2)
""")

refuse = refusal("split", FUNC)


def loop(name: str, func: PrimFunc = FUNC) -> For:
    return next(node for node in tree.loops_below(func.body) if node.var.name == name)


def test_blocks_and_loops_are_in_program_order() -> None:
    assert [realize.block.name for realize in tree.blocks(FUNC)] == ["root", "B", "C"]
    assert [node.var.name for node in tree.loops_below(FUNC.body)] == ["i", "j", "k"]


def test_children_of_a_block_skip_loops() -> None:
    root = next(tree.blocks(FUNC))
    assert [child.block.name for child in tree.child_blocks(root)] == ["B", "C"]
    assert list(tree.child_blocks(next(tree.child_blocks(root)))) == []


def test_a_path_leads_from_the_root() -> None:
    path = tree.block_path(FUNC, "C", refuse)
    assert path[0] is FUNC.body
    assert [node.var.name for node in tree.loops_on(path)] == ["i", "k"]
    assert tree.realize_at(path).block.name == "C"
    assert tree.extents_of(tree.loops_on(path)) == {loop("i").var: 4, loop("k").var: 8}
    assert tree.loop_at(tree.loop_path(FUNC, loop("k").var, refuse)) is loop("k")
    assert tree.scope_path(path) == (FUNC.body,)


def test_what_is_not_in_the_program_is_refused() -> None:
    stranger = loop("i", parse(str(FUNC)))
    assert tree.find_loop(FUNC, stranger.var) is None
    with pytest.raises(ScheduleError, match="loop i is not in the program"):
        tree.loop_path(FUNC, stranger.var, refuse)
    with pytest.raises(ScheduleError, match="the blocks are: root, B, C"):
        tree.block_path(FUNC, "D", refuse)


def test_a_replacement_rebuilds_the_path_alone() -> None:
    path = tree.loop_path(FUNC, loop("k").var, refuse)
    new = tree.replace_at(FUNC, path, Evaluate(IntImm(0)))
    assert [realize.block.name for realize in tree.blocks(new)] == ["root", "B"]
    assert loop("j", new) is loop("j")
    assert loop("i", new) is not loop("i")


def test_loops_that_removal_empties_go_too() -> None:
    without_b = tree.replace_at(FUNC, tree.block_path(FUNC, "B", refuse), None)
    assert [node.var.name for node in tree.loops_below(without_b.body)] == ["i", "k"]


def test_places_say_what_a_program_holds() -> None:
    places = tree.statement_paths(FUNC)
    assert places is tree.statement_paths(FUNC)
    assert places.is_plain
    assert not places.has_threads
    assert not places.has_parallel
    assert places.block("none") is None


def test_fresh_names_are_not_taken() -> None:
    assert tree.fresh_block_name(FUNC, "B") == "B_1"
    assert tree.fresh_block_name(FUNC, "D") == "D"
    assert tree.fresh_buffer_name(FUNC, "A") == "A_1"


def test_a_buffer_is_allocated_and_dropped_in_its_scope() -> None:
    (buffer,) = next(tree.blocks(FUNC)).block.alloc_buffers
    without = tree.drop_buffer(FUNC, "root", buffer)
    assert next(tree.blocks(without)).block.alloc_buffers == ()
    back = tree.allocate_in(without, (without.body,), buffer)
    assert next(tree.blocks(back)).block.alloc_buffers == (buffer,)


def test_a_statement_is_inserted_at_its_position() -> None:
    body = loop("i").body
    new = tree.insert_in(body, 1, Evaluate(IntImm(7)))
    kinds = [type(stmt) for stmt in tree.children(new)]
    assert kinds == [For, Evaluate, For]

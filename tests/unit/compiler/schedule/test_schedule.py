"""Schedules: queries, copies and what they print."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    BlockRealize,
    For,
)
from compiler.ir.core.program import IRModule
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV
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


def test_a_block_that_is_not_there_is_named_with_those_that_are() -> None:
    sch = Schedule(matmul_relu())
    with refused(sch, 'there is no block "X"; the blocks are: root, Y, C', at="def main"):
        sch.get_block("X")
    with refused(sch, 'there is no function "f"; the functions are: main', at="def main"):
        sch.get_block("Y", func_name="f")


def test_new_names_do_not_clash() -> None:
    sch = Schedule(matmul_relu())
    first, second = sch.cache_read("Y", 0, "local"), sch.cache_read("Y", 1, "local")
    third = sch.cache_read(first, 0, "local")
    assert names(sch, [first, second, third]) == ["A_local", "B_local", "A_local_1"]


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


def test_a_block_by_name_is_refused_by_the_primitive() -> None:
    sch = Schedule(elementwise())
    with refused(sch, 'there is no block "X"; there are: B, C, root', at="def main"):
        sch.compute_inline("X")


def test_a_program_prints_as_its_script() -> None:
    func = ops.matmul(4, 4, 4)
    assert str(func) == func.script()
    assert str(Schedule(func).mod) == Schedule(func).mod.script()


def test_a_module_of_several_functions_needs_work_on() -> None:
    f, g = (replace(elementwise(), name=name) for name in "fg")
    sch = Schedule(IRModule((f, g)))
    for act in (lambda: sch.get_sblock("B"), lambda: sch.func, lambda: sch.func_working_on):
        with pytest.raises(ValueError, match="does not know which function to be working on"):
            act()
    sch.parallel(sch.get_loops(sch.get_sblock("B", func_name="g"))[0])
    sch.work_on("f")
    assert sch.func_working_on == "f"
    assert structural_equal(sch.func, f)
    again = sch.trace.apply_to(IRModule((f, g)))
    assert structural_equal(again.mod, sch.mod)


def test_the_only_function_is_main() -> None:
    sch = Schedule(replace(elementwise(), name="f"))
    assert sch.mod["main"] is sch.func
    sch.get_sblock("B", func_name="main")
    with pytest.raises(KeyError, match="no function 'g' in the module: expected one of f"):
        sch.mod["g"]

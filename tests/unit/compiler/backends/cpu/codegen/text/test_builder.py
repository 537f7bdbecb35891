"""Levels of code: an instruction goes where its operands are, and is emitted once."""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.builder import CodeBuilder
from compiler.ir.core.nodes import make_buffer


def test_an_instruction_of_an_outer_level_goes_before_the_loop() -> None:
    builder = CodeBuilder()
    builder.open("loop")
    name = builder.emit_once("mul i64 %n, 4", 0)
    assert builder.innermost.lines == []
    assert builder.levels[0].lines == [f"  {name} = mul i64 %n, 4"]


def test_an_inner_level_reuses_the_value_of_an_outer_one() -> None:
    builder = CodeBuilder()
    name = builder.emit_once("mul i64 %n, 4", 0)
    builder.open("loop")
    assert builder.emit_once("mul i64 %n, 4", 1) == name
    assert builder.innermost.lines == []


def test_an_outer_level_does_not_reuse_the_value_of_an_inner_one() -> None:
    builder = CodeBuilder()
    builder.open("loop")
    name = builder.emit_once("mul i64 %n, 4", 1)
    assert builder.emit_once("mul i64 %n, 4", 0) != name
    assert len(builder.levels[0].lines) == 1


def test_code_after_a_level_does_not_reuse_its_values() -> None:
    builder = CodeBuilder()
    builder.open("loop")
    inner = builder.emit_once("mul i64 %n, 4", 1)
    builder.close()
    builder.open("another")
    assert builder.emit_once("mul i64 %n, 4", 1) != inner


def test_a_level_that_opens_again_has_its_values() -> None:
    builder = CodeBuilder()
    builder.open("then")
    name = builder.emit_once("mul i64 %n, 4", 1)
    builder.reopen(builder.close())
    assert builder.emit_once("mul i64 %n, 4", 1) == name


def test_an_outer_value_outlives_an_inner_one_of_the_same_text() -> None:
    builder = CodeBuilder()
    builder.open("loop")
    builder.emit_once("mul i64 %n, 4", 1)
    outer = builder.emit_once("mul i64 %n, 4", 0)
    builder.close()
    assert builder.emit_once("mul i64 %n, 4", 0) == outer


def test_a_level_that_closes_may_have_changed_what_its_parent_loaded() -> None:
    builder, buffer = CodeBuilder(), make_buffer("A", (4,))
    key = (("%arg0", 1, None, 1), 4, None, "float32")
    builder.innermost.loads[buffer.data] = {key: "%v1"}  # type: ignore[dict-item]
    builder.open("loop")
    builder.close()
    assert not builder.innermost.loads


def test_a_store_makes_every_level_forget_the_loads_of_its_buffer_only() -> None:
    builder, stored, other = CodeBuilder(), make_buffer("A", (4,)), make_buffer("B", (4,))
    for buffer in (stored, other):
        builder.innermost.loads[buffer.data] = {}
    builder.open("loop")
    builder.forget_loads(stored)
    assert list(builder.levels[0].loads) == [other.data]

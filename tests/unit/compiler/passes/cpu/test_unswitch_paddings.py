"""A row of a padding asks once whether it lies in the image."""

from __future__ import annotations

from compiler import te
from compiler.ir.core.nodes import (
    Conditional,
    For,
    If,
    Load,
    Stmt,
    Store,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.realize_blocks import realize_blocks
from compiler.passes.cpu.unswitch_paddings import unswitch_paddings
from tests.unit.compiler.backends.cpu.codegen.programs import check_against_evaluation, mark


def padding(value: float = 0.0) -> PrimFunc:
    A = te.placeholder((5, 9), "float32", name="A")

    def element(y: te.Value, x: te.Value) -> te.Value:
        inside = te.all(y >= 1, y < 6, x >= 1, x < 10)
        return te.if_then_else(inside, A[y - 1, x - 1], value)

    return te.create_prim_func(
        [A, te.compute((7, 11), element, name="P", varargs_names=["y", "x"])]
    )


def unswitched(func: PrimFunc) -> Stmt:
    return unswitch_paddings(realize_blocks(func.body).stmt)


def test_the_test_of_a_row_is_outside_of_it() -> None:
    stmt = unswitched(mark(padding(), x="vectorized"))
    (test,) = (node for node in walk_stmts(stmt) if isinstance(node, If))
    assert isinstance(test.then, For)
    assert test.then.kind == "vectorized"
    (row,) = (node for node in walk(test.then) if isinstance(node, Conditional))
    assert test.then.var in set(walk(row.condition))
    assert not any(isinstance(node, Load) for node in walk(test.otherwise or test))


def test_what_is_the_same_in_no_loop_stays() -> None:
    stmt = unswitched(mark(padding(), y="unrolled", x="vectorized"))
    assert not any(isinstance(node, If) for node in walk_stmts(stmt))


def test_serial_rows_are_left_alone() -> None:
    stmt = unswitched(padding())
    (store,) = (node for node in walk_stmts(stmt) if isinstance(node, Store))
    assert isinstance(store.value, Conditional)


def test_the_constant_may_be_any() -> None:
    check_against_evaluation(mark(padding(), x="vectorized"))
    check_against_evaluation(mark(padding(-1.5), x="vectorized"))
    check_against_evaluation(mark(padding(float("inf")), x="vectorized"))

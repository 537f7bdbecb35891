"""Legal programs, iterators and definitions."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest

from compiler import ops
from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Compare,
    Expr,
    For,
    IterVar,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.verify.verify import VerifyError, verify
from tests.unit.compiler.ir.verify.small_programs import (
    ZERO,
    A,
    B,
    func_of,
    i,
    j,
    num,
    plus,
    refusal,
)
from tests.unit.compiler.ops.specs import SPECS


@pytest.mark.parametrize("spec", SPECS)
def test_operators_are_legal(spec: str) -> None:
    verify(ops.from_spec(spec))


def block_of(value: Expr, binding: Expr, *, extent: int = 8, predicate: Expr = TRUE) -> PrimFunc:
    v = Var("v")
    block = Block("B", (IterVar(v, num(extent), "spatial"),), (), (), Store(B, (v,), value))

    realize = BlockRealize((binding,), predicate, with_regions(block))
    return func_of(For(i, num(3), For(j, num(3), realize)))


def test_a_binding_must_stay_within_the_iterator() -> None:
    fused = plus(BinOp("*", i, num(3)), j)
    error = refusal(block_of(ZERO, fused))
    assert error.message == (
        "iterator v of block B runs from 0 to 7, but its value i * 3 + j runs from 0 to 8"
    )
    verify(block_of(ZERO, fused, predicate=Compare("<", fused, num(8))))


@pytest.mark.parametrize(("reached", "is_legal"), [(8, True), (9, False)])
def test_an_iterator_is_where_its_loops_bring_it(reached: int, is_legal: bool) -> None:
    v = Var("v")
    iterator = IterVar(v, num(16), "spatial")
    block = with_regions(Block("b", (iterator,), (), (), Store(B, (v,), ZERO)))
    func = func_of(For(i, num(reached), BlockRealize((i,), TRUE, block)))
    with nullcontext() if is_legal else pytest.raises(VerifyError, match="in bounds"):
        verify(func)


def test_iterators_are_not_visible_to_their_own_bindings() -> None:
    func = block_of(ZERO, num(0))
    realize = next(node for node in walk(func.root.body) if isinstance(node, BlockRealize))
    v = realize.block.iter_vars[0].var
    circular = func_of(For(i, num(3), replace(realize, iter_values=(v,))))
    assert "variable v is not defined here" in refusal(circular).message


def test_definitions_must_be_unique() -> None:
    twice = For(i, num(2), For(i, num(2), Store(B, (i,), ZERO)))
    assert "variable i is defined twice" in refusal(func_of(twice)).message
    func = PrimFunc("main", (A, A), func_of(Store(A, (num(0),), ZERO)).body)
    assert "buffer A is declared twice" in refusal(func).message


def test_a_thread_needs_a_thread_binding() -> None:
    loop = For(i, num(2), Store(B, (i,), ZERO), "serial", "threadIdx.x")
    assert "loop i is serial on thread threadIdx.x" in refusal(func_of(loop)).message

"""Accesses that are proved in bounds, and those that cannot be."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Compare,
    Conditional,
    Expr,
    For,
    If,
    IntImm,
    IterVar,
    Let,
    Load,
    Logic,
    Ramp,
    Select,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import VerifyError, verify
from tests.unit.compiler.ir.verify.small_programs import (
    ZERO,
    A,
    B,
    N,
    at,
    func_of,
    i,
    j,
    looped,
    num,
    plus,
    refusal,
)


@pytest.mark.parametrize(
    "value",
    [
        at(i),
        at(BinOp("-", num(7), i)),
        at(BinOp("//", plus(BinOp("*", i, num(4)), j), num(4))),
        at(BinOp("%", plus(i, j), num(8))),
        at(BinOp("min", plus(i, j), num(7))),
        Conditional(Compare("<", i, num(7)), at(plus(i, 1)), ZERO),
        Conditional(Compare(">=", i, num(7)), ZERO, at(plus(i, 1))),
        Conditional(Compare("==", i, num(3)), at(plus(i, 4)), ZERO),
        Conditional(Compare("<", plus(i, j), num(8)), at(plus(i, j)), ZERO),
        Conditional(Compare("<", num(8), plus(i, j)), at(BinOp("-", plus(i, j), num(8))), ZERO),
        Conditional(
            Logic("and", Compare("<=", num(2), i), Compare("<", i, num(5))),
            at(BinOp("-", BinOp("*", i, num(2)), num(4))),
            ZERO,
        ),
        Conditional(
            Logic("or", Compare("<", i, j), Compare(">", i, plus(j, 2))),
            ZERO,
            at(BinOp("-", i, j)),
        ),
        Conditional(
            Logic(
                "and",
                Compare("<=", num(0), Load(N, (i,))),
                Compare("<", Load(N, (i,)), num(8)),
            ),
            Load(A, (Load(N, (i,)),)),
            ZERO,
        ),
    ],
)
def test_accesses_that_are_in_bounds_are_proved(value: Expr) -> None:
    verify(looped(value))


@pytest.mark.parametrize(
    "value",
    [
        at(plus(i, 1)),
        at(BinOp("-", i, num(1))),
        at(plus(i, j)),
        at(BinOp("//", plus(BinOp("*", i, num(4)), j), num(3))),
        Select(Compare("<", i, num(7)), at(plus(i, 1)), ZERO),
        Conditional(Compare("<=", i, num(7)), at(plus(i, 1)), ZERO),
        Conditional(Compare("<", i, num(7)), ZERO, at(plus(i, 1))),
        Conditional(Compare("!=", i, num(3)), at(plus(i, 1)), ZERO),
        Conditional(
            Logic("or", Compare("<", i, num(7)), Compare("<", j, num(2))), at(plus(i, 1)), ZERO
        ),
    ],
)
def test_accesses_that_can_not_be_proved_are_refused(value: Expr) -> None:
    error = refusal(looped(value))
    assert "can't prove that A[" in error.message
    assert isinstance(error.node, Load)


def test_a_store_out_of_bounds_is_refused() -> None:
    error = refusal(looped(ZERO, index=plus(i, j)))
    assert error.message == (
        "can't prove that B[i + j] is in bounds: i + j runs from 0 to 10, the dimension from 0 to 7"
    )


def test_a_vector_access_is_checked_at_both_ends() -> None:
    base, zeros = BinOp("*", i, num(4)), Broadcast(ZERO, 4)
    stores = [Store(B, (Ramp(base, step, 4),), zeros) for step in (1, 2)]
    verify(func_of(For(i, num(2), stores[0])))
    assert "is in bounds" in refusal(func_of(For(i, num(2), stores[1]))).message


def test_a_condition_on_a_statement_narrows_what_it_guards() -> None:
    store = Store(B, (plus(i, 1),), ZERO)
    verify(func_of(For(i, num(8), If(Compare("<", i, num(7)), store))))
    refusal(func_of(For(i, num(8), If(Compare("<", i, num(8)), store))))


def pair(index: Expr) -> Store:
    """Return a store to two elements, of which none is left out when the program runs."""
    return Store(B, (Ramp(index, 1, 2),), Broadcast(ZERO, 2))


def test_indices_out_of_buffers_are_left_to_the_program_but_not_where_vectors_are_stored() -> None:
    number = Load(N, (i,))
    verify(looped(at(number)))
    verify(looped(ZERO, index=plus(number, 3)))
    assert "is in bounds" in refusal(func_of(For(i, num(4), pair(number)))).message
    x = Var("x")
    named = Let(x, number, pair(x))
    assert "is in bounds" in refusal(func_of(For(i, num(4), named))).message


def test_a_condition_on_memory_does_not_outlive_a_store() -> None:
    number = Load(N, (num(0),))
    inside = Logic("and", Compare("<", number, num(4)), Compare(">=", number, num(0)))
    verify(func_of(If(inside, pair(number))))
    body = seq(Store(N, (num(0),), num(100)), pair(number))
    assert "is in bounds" in refusal(func_of(If(inside, body))).message


def test_what_is_never_reached_is_not_judged() -> None:
    store = Store(B, (plus(i, 100),), ZERO)
    impossible = Logic("and", Compare("<", i, num(0)), Compare("<", plus(i, 1), num(8)))
    verify(func_of(seq(Store(B, (num(0),), ZERO), For(i, num(8), If(impossible, store)))))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "uint32"])
def test_a_condition_on_what_may_wrap_around_proves_nothing(dtype: DType) -> None:
    data = make_buffer("N", (8,), dtype)
    number = Load(data, (i,))

    def less(amount: int) -> Expr:
        return BinOp("-", number, IntImm(amount, dtype))

    # The least number passes both conditions: `number - 5` wraps around.
    near = Compare(">", less(5), IntImm(3, dtype))
    guard = Logic("and", near, Compare("<", number, IntImm(16, dtype)))
    body = For(i, IntImm(8), If(guard, pair(less(9))))
    root = Block("root", (), (), (), body)
    func = PrimFunc("main", (A, B, data), BlockRealize((), TRUE, root))
    with pytest.raises(VerifyError, match="can't prove that B"):
        verify(func)


def test_a_condition_on_tiles_bounds_their_elements() -> None:
    tile = BinOp("+", BinOp("*", i, num(4)), j)
    element = BinOp("+", BinOp("*", i, num(16)), BinOp("*", j, num(4)))
    for limit, is_legal in ((2, True), (3, False)):
        store = If(Compare("<", tile, num(limit)), Store(B, (BinOp("+", element, num(3)),), ZERO))
        func = func_of(For(i, IntImm(3), For(j, IntImm(4), store)))
        if is_legal:
            verify(func)
            continue
        with pytest.raises(VerifyError, match="can't prove"):
            verify(func)


def test_a_condition_on_parts_of_a_loop_bounds_each_iterator_made_of_them() -> None:
    """A loop of 3 as a guarded one of 2 x 2: its double is at most 4, not 5."""
    loop = BinOp("+", BinOp("*", i, num(2)), j)
    v, w = Var("v"), Var("w")
    store = Store(B, (plus(plus(v, w), 1),), ZERO)
    iterators = (IterVar(v, num(6), "spatial"), IterVar(w, num(3), "spatial"))
    block = Block("b", iterators, (), (), store)
    double = BinOp("+", BinOp("*", i, num(4)), BinOp("*", j, num(2)))
    realize = BlockRealize((double, loop), Compare("<", loop, num(3)), with_regions(block))
    verify(func_of(For(i, num(2), For(j, num(2), realize))))

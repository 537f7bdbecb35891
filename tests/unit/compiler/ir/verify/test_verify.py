from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from compiler import ops
from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.dtypes import DType
from compiler.ir.core.limits import MAX_DEPTH
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    IterVar,
    Let,
    Load,
    Logic,
    Ramp,
    Select,
    Stmt,
    Store,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.verify.verify import VerifyError, verify
from tests.unit.compiler.ops.specs import SPECS

A, B, N = make_buffer("A", (8,)), make_buffer("B", (8,)), make_buffer("N", (8,), "int32")
i, j = Var("i"), Var("j")
ZERO = FloatImm(0.0)


def func_of(body: Stmt, *allocated: Buffer) -> PrimFunc:
    root = Block("root", (), (), (), body, alloc_buffers=allocated)
    return PrimFunc("main", (A, B, N), BlockRealize((), TRUE, root))


def looped(value: Expr, *, index: Expr = i) -> PrimFunc:
    """Return `for i in range(8): for j in range(4): B[index] = value`."""
    return func_of(For(i, IntImm(8), For(j, IntImm(4), Store(B, (index,), value))))


def num(value: int) -> IntImm:
    return IntImm(value)


def at(index: Expr) -> Load:
    return Load(A, (index,))


def plus(lhs: Expr, rhs: int | Expr) -> Expr:
    return BinOp("+", lhs, num(rhs) if isinstance(rhs, int) else rhs)


def refusal(func: PrimFunc) -> VerifyError:
    with pytest.raises(VerifyError) as caught:
        verify(func)
    return caught.value


@pytest.mark.parametrize("spec", SPECS)
def test_operators_are_legal(spec: str) -> None:
    verify(ops.from_spec(spec))


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


def test_index_arithmetic_that_wraps_around_is_refused() -> None:
    big = BinOp("*", BinOp("*", i, num(100_000)), num(100_000))
    error = refusal(looped(at(BinOp("-", big, big))))
    assert "which does not fit into int32" in error.message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (BinOp("//", i, num(0)), "i // 0 divides by zero"),
        (BinOp("%", Load(N, (i,)), num(0)), "N[i] % 0 divides by zero"),
        (BinOp("<<", i, num(40)), "i << 40 shifts by 40 bits: expected 0 to 31"),
        (BinOp(">>", i, num(-1)), "i >> -1 shifts by -1 bits: expected 0 to 31"),
    ],
)
def test_operations_that_can_not_be_meant_are_refused(value: Expr, message: str) -> None:
    assert message in refusal(looped(Cast("float32", value))).message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (i, "buffer B holds float32, got int32"),
        (BinOp("+", ZERO, i), "operands of types float32 and int32"),
        (BinOp("%", ZERO, ZERO), "% does not take operands of type float32"),
        (Cast("float32", BinOp("/", i, i)), "/ does not take operands of type int32"),
        (Select(i, ZERO, ZERO), "expected a condition, got int32"),
        (at(ZERO), "an index of type float32"),
        (Call("exp", (i,), "int32"), "T.exp takes floating-point arguments"),
        (Call("exp", (ZERO,), "float64"), "T.exp returns float32 here"),
        (Call("expp", (ZERO,), "float32"), "unknown function expp"),
        (Load(A, (i, i)), "A has 1 dimension(s), got 2"),
        (Load(make_buffer("Z", (8,)), (i,)), "buffer Z is not declared here"),
        (Load(replace(A, dtype="float64"), (i,)), "buffer A is not declared here"),
        (Cast("float32", Var("q")), "variable q is not defined here"),
    ],
)
def test_ill_formed_expressions_are_refused(value: Expr, message: str) -> None:
    assert message in refusal(looped(value)).message


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


def test_a_block_must_name_what_it_reads() -> None:
    func = ops.matmul(4, 4, 4)

    def without_reads(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For):
            return replace(stmt, body=without_reads(stmt.body))
        assert isinstance(stmt, BlockRealize)
        return replace(stmt, block=replace(stmt.block, reads=stmt.block.reads[:1]))

    root = replace(func.root, body=without_reads(func.root.body))
    error = refusal(replace(func, body=replace(func.body, block=root)))
    assert error.message == "block C reads B[v_k, v_j], which its T.reads does not name"


def test_definitions_must_be_unique() -> None:
    twice = For(i, num(2), For(i, num(2), Store(B, (i,), ZERO)))
    assert "variable i is defined twice" in refusal(func_of(twice)).message
    func = PrimFunc("main", (A, A), func_of(Store(A, (num(0),), ZERO)).body)
    assert "buffer A is declared twice" in refusal(func).message


def test_a_buffer_that_is_read_must_be_written() -> None:
    c = make_buffer("C", (8,))
    func = func_of(Store(B, (num(0),), Load(c, (num(0),))), c)
    assert "buffer C is read but never written" in refusal(func).message


@pytest.mark.parametrize("extent", [0, -1, 2**31])
def test_extents_must_be_in_range(extent: int) -> None:
    loop = For(i, num(extent), Store(B, (num(0),), ZERO))
    assert f"an extent of loop i is {extent}" in refusal(func_of(loop)).message


def test_sizes_are_limited() -> None:
    large = [make_buffer(f"L{n}", (1 << 30,)) for n in range(5)]
    store = Store(B, (num(0),), ZERO)
    assert "more than 17179869184 bytes" in refusal(func_of(store, *large)).message
    larger = make_buffer("L", (1 << 30, 2))
    assert "has 8589934592 bytes" in refusal(func_of(store, larger)).message


def test_deep_and_long_programs_are_refused_without_exhausting_the_stack() -> None:
    value: Expr = ZERO
    for _ in range(100_000):
        value = BinOp("+", value, ZERO)
    assert f"nested deeper than {MAX_DEPTH} levels" in refusal(looped(value)).message
    shared: Expr = ZERO
    for _ in range(60):
        shared = BinOp("+", shared, shared)
    assert "more than 50000 operations" in refusal(looped(shared)).message


def test_a_thread_needs_a_thread_binding() -> None:
    loop = For(i, num(2), Store(B, (i,), ZERO), "serial", "threadIdx.x")
    assert "loop i is serial on thread threadIdx.x" in refusal(func_of(loop)).message


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


@pytest.mark.parametrize("op", ["//", "%", "<<", ">>"])
def test_operands_that_are_known_when_the_program_runs_may_be_anything(op: Any) -> None:
    verify(looped(Cast("float32", BinOp(op, num(100), Load(N, (i,))))))


def test_a_literal_must_fit_its_type() -> None:
    with pytest.raises(VerifyError, match="300 does not fit into int8"):
        verify(looped(Cast("float32", IntImm(300, "int8"))))


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

"""A program that the verifier accepts never leaves its buffers, whatever it is made of."""

import numpy as np
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Stmt,
    Store,
    Var,
    make_buffer,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import VerifyError, verify

A, B = make_buffer("A", (7,)), make_buffer("B", (7,))
N = make_buffer("N", (4,), "int32")
NUMBERS = st.one_of(st.integers(-2, 9), st.sampled_from([2**31 - 1, -(2**31), 2**30]))
VARIABLES = (Var("i"), Var("j"), Var("k"))


@st.composite
def indices(draw: DrawFn, depth: int = 3) -> Expr:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        leaf: Expr = draw(st.sampled_from(VARIABLES))
        if draw(st.booleans()):
            leaf = IntImm(draw(st.integers(-3, 9)))
        if draw(st.integers(0, 9)) == 0:
            leaf = Load(N, (IntImm(draw(st.integers(0, 3))),))
        return leaf
    op = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max", "select"]))
    if op == "select":
        sides = draw(indices(depth - 1)), draw(indices(depth - 1))
        test = Compare("<", draw(indices(1)), draw(indices(1)))
        return Select(test, *sides) if draw(st.booleans()) else Conditional(test, *sides)
    lhs = draw(indices(depth - 1))
    rhs = IntImm(draw(st.integers(1, 5))) if op in ("//", "%") else draw(indices(depth - 1))
    return BinOp(op, lhs, rhs)  # type: ignore[arg-type]


@st.composite
def conditions(draw: DrawFn, about: Expr, depth: int = 2) -> Expr:
    """Draw a condition that is likely to say something of `about`."""
    if depth and draw(st.booleans()):
        lhs, rhs = draw(conditions(about, depth - 1)), draw(conditions(about, depth - 1))
        both = Logic(draw(st.sampled_from(["and", "or"])), lhs, rhs)
        return Not(both) if draw(st.integers(0, 3)) == 0 else both
    left = about if draw(st.booleans()) else draw(indices(1))
    op = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
    limit = IntImm(draw(st.integers(-1, 8))) if draw(st.booleans()) else draw(indices(1))
    return Compare(op, left, limit)  # type: ignore[arg-type]


@st.composite
def guarded(draw: DrawFn) -> PrimFunc:
    """Draw loops around a store that one or two conditions guard."""
    index = draw(indices())
    load: Expr = Load(A, (index,))
    zero = FloatImm(0.0)
    if draw(st.booleans()):
        sides = (load, zero) if draw(st.booleans()) else (zero, load)
        load = Conditional(draw(conditions(index)), *sides)
    place = draw(indices(1))
    body: Stmt = Store(B, (place,), load)
    if draw(st.integers(0, 3)) == 0:
        lanes = draw(st.integers(2, 4))
        vector = Ramp(place, draw(st.integers(-2, 2)), lanes)
        body = Store(B, (vector,), Broadcast(load, lanes))
    if draw(st.booleans()):
        inside = Logic("and", Compare(">=", place, IntImm(0)), Compare("<", place, IntImm(7)))
        body = If(inside, body)
    if draw(st.booleans()):
        body = If(draw(conditions(index)), body)
    if draw(st.booleans()):
        # A name may stand for anything: here for what comes out of a buffer, cut off or not.
        value = draw(indices(2))
        if draw(st.booleans()):
            value = BinOp("max", BinOp("min", value, IntImm(6)), IntImm(0))
        body = Let(VARIABLES[2], value, body)
        names: tuple[Var, ...] = VARIABLES[:2]
    else:
        names = VARIABLES
    for var in reversed(names):
        extent: Expr = IntImm(draw(st.integers(1, 6)))
        if var is not names[0] and draw(st.integers(0, 2)) == 0:
            # How often an inner loop runs may depend on the loops around it.
            extent = BinOp(draw(st.sampled_from(["+", "-", "min"])), names[0], extent)
        body = For(var, extent, body)
    root = Block("root", (), (), (), body)
    return PrimFunc("main", (A, B, N), BlockRealize((), TRUE, root))


@settings(max_examples=300)
@given(func=guarded(), numbers=st.lists(NUMBERS, min_size=4, max_size=4))
def test_accepted_programs_stay_in_bounds(func: PrimFunc, numbers: list[int]) -> None:
    try:
        verify(func)
    except VerifyError:
        event("refused")
        assume(False)
    event("accepted")
    evaluate(func, {"A": np.zeros(7, np.float32), "N": np.array(numbers, np.int32)})

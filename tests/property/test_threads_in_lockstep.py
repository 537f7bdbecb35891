"""Threads that are run one after another, loop by loop, compute what they do in lockstep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Compare,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    StringImm,
    Var,
    make_buffer,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.schedule.trace.trace import Trace
from tests.property.acceptance import Acceptance

AXES = {"threadIdx.y": 2, "threadIdx.x": 4, "vthread.x": 2}
A, G = make_buffer("A", (16,), "int32"), make_buffer("G", (16,), "int32")
S = make_buffer("S", (16,), "int32", "shared")
L = make_buffer("L", (4,), "int32", "local")
SYNC = Evaluate(Call("tvm_storage_sync", (StringImm("shared"),), "int32"))


def number(value: int) -> IntImm:
    return IntImm(value)


@dataclass(frozen=True)
class Place:
    """What a statement may speak of, and how deep it may go."""

    names: tuple[Var, ...]
    depth: int


@st.composite
def indices(draw: DrawFn, place: Place, size: int) -> Expr:
    total: Expr = number(draw(st.integers(0, size - 1)))
    for name in place.names:
        factor = draw(st.sampled_from([0, 0, 1, 2, 4, -1]))
        if factor:
            total = BinOp("+", total, BinOp("*", name, number(factor)))
    return BinOp("%", total, number(size))


@st.composite
def values(draw: DrawFn, place: Place) -> Expr:
    total: Expr = number(draw(st.integers(-3, 3)))
    for _ in range(draw(st.integers(1, 2))):
        buffer = draw(st.sampled_from([A, G, S, L]))
        total = BinOp("+", total, Load(buffer, (draw(indices(place, size_of(buffer))),)))
    return total


def size_of(buffer: Buffer) -> int:
    extent = buffer.shape[0]
    assert isinstance(extent, IntImm)
    return extent.value


@st.composite
def stores(draw: DrawFn, place: Place) -> Stmt:
    buffer = draw(st.sampled_from([G, S, L]))
    index = draw(indices(place, size_of(buffer)))
    return Store(buffer, (index,), draw(values(place)))


@st.composite
def bodies(draw: DrawFn, place: Place) -> Stmt:
    return seq(*(draw(statements(place)) for _ in range(draw(st.integers(1, 3)))))


@st.composite
def statements(draw: DrawFn, place: Place) -> Stmt:
    kind = draw(st.sampled_from(["store", "store", "loop", "if", "let", "threads", "sync"]))
    if kind == "store" or place.depth == 0:
        return draw(stores(place))
    if kind == "sync":
        return SYNC
    if kind == "if":
        condition = Compare("<", draw(indices(place, 4)), number(2))
        # What threads do apart from one another has no order: a single store has none to break.
        return If(condition, draw(stores(place)))

    def inside(var: Var) -> Stmt:
        return draw(bodies(Place((*place.names, var), place.depth - 1)))

    if kind == "loop":
        var = Var("k")
        return For(var, number(2), inside(var))
    if kind == "let":
        var = Var("x")
        return Let(var, draw(values(place)), inside(var))
    axis = draw(st.sampled_from(sorted(AXES)))
    var = Var("t")
    return For(var, number(AXES[axis]), inside(var), "thread_binding", axis)


@st.composite
def programs(draw: DrawFn) -> PrimFunc:
    """Draw a kernel whose memory is all written before anything else happens."""
    block = Var("b")
    j, t, i = Var("j"), Var("t"), Var("i")
    first = seq(
        For(j, number(16), Store(S, (j,), Load(A, (j,)))),
        For(
            t,
            number(4),
            For(i, number(4), Store(L, (i,), BinOp("+", Load(A, (i,)), t))),
            "thread_binding",
            "threadIdx.x",
        ),
    )
    body = draw(bodies(Place((), 3)))
    if draw(st.booleans()):
        for axis, extent in AXES.items():
            var = Var(axis[:2])
            more = draw(bodies(Place((var,), 3)))
            body = For(var, number(extent), seq(body, more), "thread_binding", axis)
    kernel = For(block, number(1), seq(first, body), "thread_binding", "blockIdx.x")
    root = Block("root", (), (), (), kernel, alloc_buffers=(S, L))
    return PrimFunc("main", (A, G), BlockRealize((), TRUE, root))


compared = Acceptance()


@compared.at_least(0.05)
@settings(max_examples=60)
@given(func=programs())
def test_threads_compute_what_they_do_in_lockstep(func: PrimFunc) -> None:
    inputs = {"A": np.arange(16, dtype=np.int32) * 7 % 11, "G": np.arange(16, dtype=np.int32)}
    try:
        # Of a schedule's program the order of accesses is not verified: lowering must keep to it.
        module = build(Trace().apply_to(func), "cpu -num-cores=1")
    except BuildError as error:
        event(f"refused: {str(error)[:40]}")
        compared.count(False)
        return
    try:
        expected = evaluate(func, inputs)["G"]
        has_race = bool((evaluate(func, inputs, backwards=True)["G"] != expected).any())
    except EvaluationError:
        event("not all threads come to a barrier")
        compared.count(False)
        return
    event("race" if has_race else "no race")
    module(inputs["A"], inputs["G"])
    module.close()
    if compared.count(not has_race):
        np.testing.assert_array_equal(inputs["G"], expected)

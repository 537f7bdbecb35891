"""Indices that come out of buffers never lead a kernel out of what it was given."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build, lower
from compiler.ir.core.nodes import (
    BinOp,
    If,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, mark

HEAD = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), N: T.Buffer((6,), "int32"), B: T.Buffer((8,), "float32")):
    for i in range(6):
        with T.sblock("b"):
            v = T.axis.opaque(6, i)
            T.reads(A[0:8], N[v], B[0:8])
            T.writes(B[0:8])
            {body}
"""
GATHER = "B[v] = A[N[v]] + 1.0"
THROUGH_A_NAME = "k: T.let[T.int32] = N[v] * 2 - 3\n            B[v] = A[k]"
SCATTER = "B[N[v]] = A[v]"
THROUGH_A_VIEW = "V = T.match_buffer(A[2:6], (4,))\n            B[v] = V[N[v]]"
GUARDED = "B[v] = T.if_then_else(0 <= N[v] and N[v] < 8, A[N[v]], T.float32(-1))"
CLAMPED = "B[v] = A[T.max(T.min(N[v], 7), 0)]"
NUMBERS = np.array([3, -1, 8, 2**31 - 1, -(2**31), 0], np.int32)


def program(body: str) -> PrimFunc:
    return parse(HEAD.format(body=body))


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize(
    "body", [GATHER, THROUGH_A_NAME, SCATTER, THROUGH_A_VIEW, GUARDED, CLAMPED]
)
def test_whatever_is_in_the_buffer_code_stays_in_bounds(body: str, kind: str) -> None:
    is_vector = kind == "vectorized" and body is not SCATTER
    # Lanes have no order, which an opaque iterator wants.
    text = HEAD.replace("opaque", "spatial") if is_vector else HEAD
    func = parse(text.format(body=body))
    # The arrays lie between fences: whoever left them would read or change those.
    rooms = {name: np.full(40, np.nan, np.float32) for name in "AB"}
    a, b = (room[16:24] for room in rooms.values())
    a[:], b[:] = np.arange(8), -1.0
    expected = evaluate(func, {"A": a, "N": NUMBERS, "B": b})["B"]
    if is_vector:
        func = mark(func, i="vectorized")
    build(func, ONE_CORE)(a, NUMBERS, b)
    np.testing.assert_array_equal(b, expected)
    assert np.isfinite(b).all()
    assert np.isnan(rooms["B"][:16]).all()
    assert np.isnan(rooms["B"][24:]).all()


def test_a_gather_takes_the_nearest_element_and_a_scatter_leaves_out_what_is_outside() -> None:
    a, b = np.arange(8, dtype=np.float32), np.full(8, -1, np.float32)
    gathered = evaluate(program(GATHER), {"A": a, "N": NUMBERS, "B": b})["B"]
    np.testing.assert_array_equal(gathered, [4, 1, 8, 8, 1, 1, -1, -1])
    scattered = evaluate(program(SCATTER), {"A": a, "N": NUMBERS, "B": b})["B"]
    np.testing.assert_array_equal(scattered, [5, -1, -1, 0, -1, -1, -1, -1])


def test_what_the_program_checks_itself_is_not_checked_again() -> None:
    checks = [
        node
        for node in walk(lower(program(CLAMPED), level(3)))
        if isinstance(node, If) or (isinstance(node, BinOp) and node.op in ("min", "max"))
    ]
    assert len(checks) == 2

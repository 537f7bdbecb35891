"""The evaluator on small programs, whose results are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.core.nodes import TRUE, Block, BlockRealize, IntImm, Load, Store, make_buffer
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate, poisoned
from compiler.script import parse


def function(params: str, body: str) -> PrimFunc:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return parse(f"@T.prim_func\ndef main({params}):\n{lines}\n")


def test_a_reduction_begins_at_its_init() -> None:
    func = function(
        'A: T.Buffer((2, 3), "int32"), B: T.Buffer((2,), "int32")',
        """
for i, k in T.grid(2, 3):
    with T.sblock("B"):
        vi, vk = T.axis.remap("SR", [i, k])
        with T.init():
            B[vi] = 100
        B[vi] = B[vi] + A[vi, vk]
""",
    )
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert evaluate(func, {"A": a})["B"].tolist() == [100 + 3, 100 + 12]


def test_inputs_are_copied() -> None:
    func = function(
        'A: T.Buffer((2,), "int32")',
        """
for i in range(2):
    with T.sblock("A"):
        vi = T.axis.spatial(2, i)
        A[vi] = A[vi] + 1
""",
    )
    a = np.array([1, 2], np.int32)
    assert evaluate(func, {"A": a})["A"].tolist() == [2, 3]
    assert a.tolist() == [1, 2]


def test_a_block_runs_where_its_predicate_holds() -> None:
    func = function(
        'A: T.Buffer((8,), "int32")',
        """
for i in range(8):
    with T.sblock("A"):
        vi = T.axis.spatial(8, i)
        T.where(i < 3)
        A[vi] = vi * 10
""",
    )
    result = evaluate(func, {"A": np.full(8, -1, np.int32)})["A"]
    assert result.tolist() == [0, 10, 20, -1, -1, -1, -1, -1]


def test_threads_exchange_values_statement_by_statement() -> None:
    func = function(
        'A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")',
        """
S = T.alloc_buffer((4,), "int32", scope="shared")
for t in T.thread_binding(4, thread="threadIdx.x"):
    with T.sblock("S"):
        v = T.axis.spatial(4, t)
        S[v] = A[v] * 2
    with T.sblock("B"):
        v = T.axis.spatial(4, t)
        B[v] = S[3 - v]
""",
    )
    a = np.arange(4, dtype=np.int32)
    for backwards in (False, True):
        assert evaluate(func, {"A": a}, backwards=backwards)["B"].tolist() == [6, 4, 2, 0]


def test_what_is_read_before_it_is_written_shows() -> None:
    buffer = make_buffer("A", (3,))
    assert np.isnan(poisoned(buffer)).all()
    assert (poisoned(make_buffer("N", (3,), "int32")) != 0).all()


def test_an_access_out_of_bounds_is_an_error() -> None:
    a = make_buffer("A", (4,))
    body = Store(a, (IntImm(0),), Load(a, (IntImm(4),)))
    func = PrimFunc("main", (a,), BlockRealize((), TRUE, Block("root", (), (), (), body)))
    with pytest.raises(EvaluationError, match=r"A\[4\] is outside of \[4\]"):
        evaluate(func, {"A": np.zeros(4, np.float32)})

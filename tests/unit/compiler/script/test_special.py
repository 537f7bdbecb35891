"""Calls that have an effect, promises and undefined values."""

from __future__ import annotations

from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.nodes import (
    Call,
    Evaluate,
    IntImm,
    StringImm,
)
from compiler.ir.core.visit import walk
from tests.unit.compiler.script.round_trips import (
    in_block,
)


def test_calls_that_have_an_effect_are_statements() -> None:
    func = in_block('T.tvm_storage_sync("shared")\nT.evaluate(vi + 1)\nT.evaluate(0)\nB[vi] = 0.0')
    calls = [node.value for node in walk(func.body) if isinstance(node, Evaluate)]
    assert isinstance(calls[0], Call)
    assert calls[0].args[0] == StringImm("shared")
    assert calls[2] == IntImm(0)


def test_a_promise_is_a_statement() -> None:
    func = in_block("T.assume(N[vi] >= 0)\nB[vi] = 0.0")
    assert "T.assume(N[vi] >= 0)" in func.script()


def test_an_undefined_value_has_the_type_of_its_place() -> None:
    func = in_block("B[vi] = T.undef()")
    assert 'B[vi] = T.Cast("float32", T.undef())' in func.script()


def test_advice_and_assertions_are_read_over() -> None:
    func = in_block('T.attr({"pragma_x": 1})\nassert vi >= 0, "never"\nB[vi] = A[vi]')
    assert structural_equal(func, in_block("B[vi] = A[vi]"))

"""Ranges that keep what was found of expressions give the same answers as others."""

from __future__ import annotations

from compiler.ir.arith.bounds import FixedRanges, bounds
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var

_I, _J = Var("i"), Var("j")
_SUM = BinOp("+", BinOp("*", _I, IntImm(8)), _J)
_SPLITS: tuple[Expr, ...] = (
    BinOp("//", _SUM, IntImm(8)),
    BinOp("%", _SUM, IntImm(8)),
    BinOp("%", BinOp("//", _SUM, IntImm(8)), IntImm(2)),
    BinOp("min", _SUM, IntImm(31)),
)


def test_kept_forms_and_intervals_are_those_of_a_first_request() -> None:
    ranges = FixedRanges({_I: 4, _J: (0, 7)})
    for _ in range(2):
        for expr in _SPLITS:
            assert simplify(expr, ranges) == simplify(expr, {_I: 4, _J: (0, 7)})
            assert bounds(expr, ranges) == bounds(expr, {_I: 4, _J: (0, 7)})


def test_another_range_of_a_variable_invalidates_what_was_kept() -> None:
    ranges = FixedRanges({_I: 4, _J: 8})
    quotient = _SPLITS[0]
    assert simplify(quotient, ranges) == _I
    assert bounds(quotient, ranges) == (0, 3)
    ranges[_J] = (0, 15)
    assert simplify(quotient, ranges) == simplify(quotient, {_I: 4, _J: 16}) != _I
    assert bounds(quotient, ranges) == (0, 4)

"""Build the arithmetic operations of the dialect from parsed operands."""

from __future__ import annotations

import ast

from compiler.ir.core.dtypes import is_float, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import ArithOp, BinOp, Expr, IntImm, Logic
from compiler.script.context import Context
from compiler.script.error import described
from compiler.script.literals import Parsed, match_types

_ARITHMETIC: dict[type[ast.operator], ArithOp] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}

_ON_FLOATS = frozenset({"+", "-", "*", "/", "min", "max"})


def combine(context: Context, op: ast.operator, lhs: Parsed, rhs: Parsed, origin: ast.AST) -> Expr:
    """Build the expression of a Python operator.

    Raises:
        ScriptError: If the dialect lacks the operator, or it does not take these operands.
    """
    if type(op) not in _ARITHMETIC:
        instead = ": use T.pow(a, b)" if isinstance(op, ast.Pow) else ""
        raise context.error(
            f"{described(op)} is not part of the dialect{instead}", origin, code="unsupported"
        )
    return arithmetic(context, _ARITHMETIC[type(op)], lhs, rhs, origin)


def arithmetic(context: Context, op: ArithOp, left: Parsed, right: Parsed, origin: ast.AST) -> Expr:
    """Build an arithmetic operation.

    Raises:
        ScriptError: If its operands have different types, or types that it does not take.
    """
    lhs, rhs = match_types(context, left, right, origin)
    dtype = dtype_of(lhs)
    if dtype == "bool" and op in ("&", "|"):
        return Logic("and" if op == "&" else "or", lhs, rhs)
    if op == "/" and not is_float(dtype):
        raise context.error(
            f"/ divides floating-point values, got {dtype}: use //", origin, code="type"
        )
    if not (is_integer(dtype) or (is_float(dtype) and op in _ON_FLOATS)):
        raise context.error(f"{op} does not take operands of type {dtype}", origin, code="type")
    check_divisor(context, op, rhs, right[1])
    return BinOp(op, lhs, rhs)


def check_divisor(context: Context, op: ArithOp, divisor: Expr, origin: ast.AST) -> None:
    """Refuse an integer division by a literal zero.

    Raises:
        ScriptError: If the divisor is zero.
    """
    if op in ("//", "%") and isinstance(divisor, IntImm) and divisor.value == 0:
        raise context.error("this divides by zero", origin, code="arithmetic")

"""Parse integer divisions: rounded towards zero, up, or down as in Python."""

from __future__ import annotations

import ast

from compiler.ir.arith.bounds import bounds
from compiler.ir.core.dtypes import is_float, is_integer, is_signed
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Call, Compare, Expr, IntImm, Logic, Select
from compiler.script.arguments import bind
from compiler.script.arithmetic import arithmetic, check_divisor
from compiler.script.context import Context
from compiler.script.expressions import pair


def true_division(context: Context, node: ast.Call) -> Expr:
    """Parse `T.Div(a, b)`; for integers, the quotient is rounded towards zero.

    Raises:
        ScriptError: If the operands have no common type.
    """
    two = bind(context, node, ("a", "b"))
    lhs, rhs = pair(context, two["a"], two["b"], node)
    if is_float(dtype_of(lhs)):
        return arithmetic(context, "/", (lhs, two["a"]), (rhs, two["b"]), node)
    return _towards_zero(context, *_checked(context, lhs, rhs, node), node)


def truncdiv(context: Context, node: ast.Call) -> Expr:
    """Parse `T.truncdiv(a, b)`: the quotient rounded towards zero.

    Raises:
        ScriptError: If the operands are not integers.
    """
    return _towards_zero(context, *_integers(context, node), node)


def truncmod(context: Context, node: ast.Call) -> Expr:
    """Parse `T.truncmod(a, b)`: the remainder of a quotient rounded towards zero.

    Raises:
        ScriptError: If the operands have no common type.
    """
    two = bind(context, node, ("a", "b"))
    lhs, rhs = pair(context, two["a"], two["b"], node)
    if is_float(dtype_of(lhs)):
        return Call("fmod", (lhs, rhs), dtype_of(lhs))
    lhs, rhs = _checked(context, lhs, rhs, node)
    if _is_at_least(context, lhs, 0) and _is_at_least(context, rhs, 1):
        return BinOp("%", lhs, rhs)
    # Not `lhs - quotient * rhs`, which is `lhs` if `rhs` is zero.
    is_low = _is_low(context, lhs, rhs, node)
    context.copying(rhs, 1, node)
    zero = IntImm(0, dtype_of(lhs))
    return BinOp("-", BinOp("%", lhs, rhs), Select(is_low, rhs, zero))


def ceildiv(context: Context, node: ast.Call) -> Expr:
    """Parse `T.ceildiv(a, b)`: the quotient rounded up, as TVM computes it.

    Raises:
        ScriptError: If the operands are not integers.
    """
    lhs, rhs = _integers(context, node)
    total = BinOp("-", BinOp("+", lhs, rhs), IntImm(1, dtype_of(lhs)))
    return BinOp("//", total, rhs)


def _integers(context: Context, node: ast.Call) -> tuple[Expr, Expr]:
    two = bind(context, node, ("a", "b"))
    return _checked(context, *pair(context, two["a"], two["b"], node), node)


def _checked(context: Context, lhs: Expr, rhs: Expr, node: ast.Call) -> tuple[Expr, Expr]:
    if not is_integer(dtype_of(lhs)):
        raise context.error(f"expected integers, got {dtype_of(lhs)}", node, code="type")
    check_divisor(context, "//", rhs, node)
    return lhs, rhs


def _towards_zero(context: Context, lhs: Expr, rhs: Expr, origin: ast.AST) -> Expr:
    """Return a quotient rounded towards zero."""
    quotient = BinOp("//", lhs, rhs)
    if _is_at_least(context, lhs, 0) and _is_at_least(context, rhs, 1):
        return quotient
    zero, one = (IntImm(number, dtype_of(lhs)) for number in (0, 1))
    return BinOp("+", quotient, Select(_is_low(context, lhs, rhs, origin), one, zero))


def _is_low(context: Context, lhs: Expr, rhs: Expr, origin: ast.AST) -> Expr:
    """Return whether `lhs // rhs`, which rounds down, is one less than rounded towards zero.

    That is so if the signs differ and there is a remainder.
    """
    context.copying(lhs, 3, origin)
    context.copying(rhs, 3, origin)
    zero = IntImm(0, dtype_of(lhs))
    negative = Logic("and", Compare("<", lhs, zero), Compare(">", rhs, zero))
    inverse = Logic("and", Compare(">", lhs, zero), Compare("<", rhs, zero))
    is_left = Compare("!=", BinOp("%", lhs, rhs), zero)
    return Logic("and", is_left, Logic("or", negative, inverse))


def _is_at_least(context: Context, expr: Expr, low: int) -> bool:
    if not is_signed(dtype_of(expr)) and low == 0:
        return True
    interval = bounds(expr, context.ranges())
    return interval is not None and interval[0] >= low

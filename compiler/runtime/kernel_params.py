"""From the parameters of a program to those of its kernel."""

from __future__ import annotations

from collections.abc import Container, Iterable

from compiler.executor.extents import Extent
from compiler.executor.params import Param, Symbol
from compiler.ir.core.nodes import BinOp, Buffer, Cast, Expr, IntImm, Var

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}
_FUNCTIONS = frozenset({"min", "max"})


def params_of(params: Iterable[Buffer | Var], written: Container[Buffer]) -> tuple[Param, ...]:
    """Return the parameters of a program's kernel.

    Args:
        params: The parameters of the program.
        written: The buffers that the program writes.
    """
    return tuple(
        Param(p.name, tuple(map(extent_of, p.shape)), p.dtype, is_output=p in written)
        if isinstance(p, Buffer)
        else Param(p.name, (), p.dtype, is_output=False, is_scalar=True, limits=p.limits)
        for p in params
    )


def symbols_of(sizes: Iterable[Var]) -> tuple[Symbol, ...]:
    """Return the symbolic extents of a program that is lowered, with their ranges."""
    symbols = []
    for var in sizes:
        assert var.limits is not None, "lowering gives symbolic extents limits"
        symbols.append(Symbol(var.name, *var.limits))
    return tuple(symbols)


def extent_of(expr: Expr) -> Extent:
    """Return the value of a literal, or the formula of an expression of symbolic variables."""
    return expr.value if isinstance(expr, IntImm) else _formula(expr)


def _formula(expr: Expr, level: int = 0) -> str:
    """Return a formula; in parentheses if an operator of this level would take it apart."""
    match expr:
        case IntImm(value):
            return str(value)
        case Var(name):
            return name
        case Cast(_, value):
            return _formula(value, level)
        case BinOp(op, lhs, rhs) if op in _PRECEDENCE:
            binding = _PRECEDENCE[op]
            text = f"{_formula(lhs, binding)} {op} {_formula(rhs, binding + 1)}"
            return f"({text})" if binding < level else text
        case BinOp(op, lhs, rhs) if op in _FUNCTIONS:
            return f"{op}({_formula(lhs)}, {_formula(rhs)})"
        case _:
            raise AssertionError("an extent consists of symbolic variables and numbers")

"""Check the types of one node against those of its children."""

from __future__ import annotations

from compiler.ir.dtypes import is_float, is_integer, wrapped
from compiler.ir.intrinsics import result_dtype
from compiler.ir.nodes import (
    BinOp,
    BlockRealize,
    Broadcast,
    Call,
    Compare,
    Conditional,
    Expr,
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
    dtype_of,
)
from compiler.ir.opaque import OPAQUE, Opaque
from compiler.ir.print_expr import show_expr

_ON_FLOATS = frozenset({"+", "-", "*", "/", "min", "max"})


class TypeProblem(Exception):  # noqa: N818 (the verifier turns it into an error with a place)
    """A node has children of types that it does not take."""


def check_types(node: Expr | Stmt) -> None:  # noqa: C901 - one case a node
    """Check one node; its children must have been checked before.

    Raises:
        TypeProblem: If the types of its children are not what it takes.
    """
    match node:
        case IntImm(value, dtype):
            if value != (bool(value) if dtype == "bool" else wrapped(value, dtype)):
                raise TypeProblem(f"{value} does not fit into {dtype}")
        case BinOp():
            _same(node, node.lhs, node.rhs)
            _check_operator(node)
        case Compare(_, lhs, rhs):
            _same(node, lhs, rhs)
        case Logic(_, lhs, rhs):
            _condition(node, lhs)
            _condition(node, rhs)
        case Not(value):
            _condition(node, value)
        case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
            _condition(node, condition)
            _same(node, then, otherwise)
        case Call(name, args, dtype) if name in OPAQUE:
            _check_opaque(OPAQUE[name], args, dtype)
        case Call(name, args, dtype):
            _check_call(name, args, dtype)
        case Let(var, value, _):
            if var.dtype != dtype_of(value):
                raise TypeProblem(f"{var.name} is {var.dtype}, got {dtype_of(value)}")
        case Load(_, indices):
            _indices(node, indices)
        case Store(buffer, indices, value):
            _indices(Load(buffer, indices), indices)
            if dtype_of(value) != buffer.dtype:
                raise TypeProblem(
                    f"buffer {buffer.name} holds {buffer.dtype}, got {dtype_of(value)}"
                )
        case Ramp(base, _, lanes):
            _vector(lanes)
            _indices(node, (base,))
        case Broadcast(_, lanes):
            _vector(lanes)
        case If(condition, _, _) | BlockRealize(_, condition, _):
            if dtype_of(condition) != "bool":
                raise TypeProblem(f"expected a condition, got {dtype_of(condition)}")
        case _:
            pass


def _check_operator(node: BinOp) -> None:
    dtype = dtype_of(node.lhs)
    takes = is_float(dtype) if node.op == "/" else is_integer(dtype)
    if not (takes or (is_float(dtype) and node.op in _ON_FLOATS)):
        raise TypeProblem(f"{node.op} does not take operands of type {dtype}: {show_expr(node)}")


def _check_call(name: str, args: tuple[Expr, ...], dtype: str) -> None:
    try:
        expected = result_dtype(name, [dtype_of(a) for a in args])
    except ValueError as error:
        raise TypeProblem(f"T.{error}") from None
    if dtype != expected:
        raise TypeProblem(f"T.{name} returns {expected} here, not {dtype}")


def _check_opaque(opaque: Opaque, args: tuple[Expr, ...], dtype: str) -> None:
    if not opaque.least <= len(args) <= opaque.most:
        expected = f"{opaque.least} to {opaque.most}"
        raise TypeProblem(f"T.{opaque.name} takes {expected} argument(s), got {len(args)}")
    if dtype != opaque.dtype:
        raise TypeProblem(f"T.{opaque.name} returns {opaque.dtype}, not {dtype}")


def _same(node: Expr, lhs: Expr, rhs: Expr) -> None:
    if dtype_of(lhs) != dtype_of(rhs):
        raise TypeProblem(
            f"operands of types {dtype_of(lhs)} and {dtype_of(rhs)}: {show_expr(node)}"
        )


def _condition(node: Expr, value: Expr) -> None:
    if dtype_of(value) != "bool":
        raise TypeProblem(f"expected a condition, got {dtype_of(value)}: {show_expr(node)}")


def _indices(node: Expr, indices: tuple[Expr, ...]) -> None:
    for index in indices:
        if not is_integer(dtype_of(index)):
            raise TypeProblem(f"an index of type {dtype_of(index)}: {show_expr(node)}")


def _vector(lanes: int) -> None:
    if lanes < 1:
        raise TypeProblem(f"a vector of {lanes} lanes")

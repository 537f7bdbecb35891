"""Scalars whose value changes, which are local buffers of one element.

    i: T.int32 = 0            ->    i = T.allocate([1], "int32", "local")
    while i < n:                    i[0] = 0
        i += 1                      while i[0] < n:
                                        i[0] = i[0] + 1

A scalar that is declared in a block belongs to the block. Elsewhere it lives up to the end of the
enclosing statements, so each iteration of a loop has its own. A scalar that never changes is a
named value. Only the type in its declaration lets it change: `i = 0` names a value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Buffer, Expr, IntImm, Load, Store, make_buffer
from compiler.script.arguments import bind, dtype
from compiler.script.arithmetic import combine
from compiler.script.context import Context, MutableScalar, dialect_name
from compiler.script.expressions import expression
from compiler.script.literals import stored

_INDEX = (IntImm(0),)


@dataclass(frozen=True, slots=True)
class ScalarStart:
    """The buffer of a scalar, and the store of its first value, if it has one."""

    buffer: Buffer
    store: Store | None = None


def changing_declarations(body: Sequence[ast.stmt]) -> frozenset[ast.AnnAssign]:
    """Return the declarations `name: type = ...` whose name has another value later on.

    A name counts from its declaration to the end of the statements around it: elsewhere it may be
    that of a buffer, or of another value.
    """
    changing: set[ast.AnnAssign] = set()

    def visit(statements: Sequence[ast.stmt], outer: Mapping[str, ast.AnnAssign]) -> None:
        visible = dict(outer)
        for statement in statements:
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    visible[name] = statement
                case ast.AugAssign(target=ast.Name(id=name)) if name in visible:
                    changing.add(visible[name])
                case ast.Assign(targets=[ast.Name(id=name)]) if name in visible:
                    changing.add(visible[name])
                case _:
                    for inner in ("body", "orelse"):
                        visit(getattr(statement, inner, ()), visible)

    visit(body, {})
    return frozenset(changing)


def is_mutable(context: Context, node: ast.AnnAssign | ast.Assign) -> bool:
    """Return whether a statement is `name: type = ...` and declares a scalar that changes."""
    if not isinstance(node, ast.AnnAssign) or node not in context.changing_declarations:
        return False
    note = node.annotation
    outer = note.value if isinstance(note, ast.Subscript) else note
    return dialect_name(outer) != "let"


def declared(context: Context, name: str, first: Expr, node: ast.stmt) -> ScalarStart:
    """Define a scalar with a first value."""
    buffer = _defined(context, name, dtype_of(first))
    return ScalarStart(buffer, context.at(Store(buffer, _INDEX, first), node))


def _defined(context: Context, name: str, of: DType) -> Buffer:
    buffer = make_buffer(name, (1,), of, "local")
    context.define(name, MutableScalar(buffer))
    return buffer


def local_scalar(context: Context, name: str, call: ast.Call, node: ast.stmt) -> ScalarStart:
    """Parse `x = T.local_scalar("int32")`, with or without `init=`.

    Raises:
        ScriptError: If the call names no type, or the first value is of another one.
    """
    arguments = bind(context, call, ("dtype",), ("init", "name"))
    of, first = dtype(context, arguments["dtype"]), arguments.get("init")
    if first is None:
        return ScalarStart(_defined(context, name, of))
    value = stored(context, name, of, expression(context, first), first)
    return declared(context, name, value, node)


def scalar_store(
    context: Context, scalar: MutableScalar, node: ast.Assign | ast.AugAssign
) -> Store:
    """Parse `x = value` or `x += value` of a scalar that is declared already.

    Raises:
        ScriptError: If the value is of another type.
    """
    buffer, value = scalar.buffer, expression(context, node.value)
    if isinstance(node, ast.AugAssign):
        old = context.at(Load(buffer, _INDEX), node.target)
        value = combine(context, node.op, (old, node.target), (value, node.value), node)
    value = stored(context, buffer.name, buffer.dtype, value, node.value)
    return context.at(Store(buffer, _INDEX, value), node)

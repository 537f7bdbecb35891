"""Parse statements that bind a name: values, variables, storage, threads."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Evaluate,
    For,
    IntImm,
    Let,
    Stmt,
    Var,
    seq,
)
from compiler.script.arguments import DTYPE_NAMED, bind, string
from compiler.script.blocks import Body
from compiler.script.buffers import FLAT_ALLOCATIONS, flat_allocation
from compiler.script.context import (
    BlockAxis,
    Context,
    NamedValue,
    ThreadBinding,
    call_name,
    dialect_name,
)
from compiler.script.error import near
from compiler.script.expressions import expression
from compiler.script.literals import adapt, stored
from compiler.script.loops import launched
from compiler.script.memory import buffer_on, has_data
from compiler.script.scalars import (
    ScalarStart,
    declared,
    is_mutable,
    local_scalar,
)
from compiler.script.symbols import declare_symbol


@dataclass(frozen=True, slots=True)
class Binding:
    """Wraps all later statements of a body in the effect of a binding."""

    around: Callable[[Stmt], Stmt]


def assign(context: Context, name: str, value: ast.expr, node: ast.Assign) -> Binding | Stmt | None:
    """Parse `name = value`; return None if the name is an alias of an existing value.

    Raises:
        ScriptError: If the right-hand side is not a value.
    """
    called = call_name(value)
    if called is None or not isinstance(value, ast.Call):
        return let(context, name, value, node)
    if called in ("Buffer", "decl_buffer") and has_data(value):
        buffer_on(context, name, value, node)
        return None
    if called in FLAT_ALLOCATIONS:
        buffer = flat_allocation(context, name, value, node)
        return Binding(lambda body: _allocated(context, buffer, body, node))
    if called == "local_scalar":
        return _scalar(context, local_scalar(context, name, value, node), node)
    if called == "meta_var":
        argument = bind(context, value, ("value",))["value"]
        context.define(name, NamedValue(expression(context, argument)))
        return None
    if declare_symbol(context, node):
        return None
    if called == "launch_thread":
        axis, tag = launched(context, name, value)
        return _launch(context, axis, tag, node)
    if called == "env_thread":
        argument = bind(context, value, ("thread_tag",), ("dtype",))["thread_tag"]
        context.define(name, ThreadBinding(string(context, argument, "a thread")))
        return None
    if called == "let":
        value = bind(context, value, ("value",))["value"]
    return let(context, name, value, node)


def let(
    context: Context,
    name: str,
    value: ast.expr,
    node: ast.AnnAssign | ast.Assign,
    note: ast.expr | None = None,
) -> Binding | Stmt:
    """Parse `x: T.let[T.float32] = value`, or the older `x: T.float32 = value` and `x = value`.

    Raises:
        ScriptError: If the right-hand side is not a value, or the name has an outer value already.
    """
    if context.is_outer(name):
        raise context.error(
            f"{name} has an outer value already, and a value can't be changed: use another name, "
            f"or declare {name}: T.int32 = ... (or another type) there",
            node.targets[0] if isinstance(node, ast.Assign) else node.target,
            code="duplicate",
        )
    computed = expression(context, value)
    of = None if note is None else _let_dtype(context, note)
    if of is not None:
        computed = stored(context, name, of, computed, value)
        if is_mutable(context, node):
            return _scalar(context, declared(context, name, computed, node), node)
    var = Var(name, dtype_of(computed))
    context.define(name, NamedValue(var))
    return Binding(lambda body: context.at(Let(var, computed, body), node))


def _let_dtype(context: Context, note: ast.expr) -> DType | None:
    """Return the type in `T.let[T.float32]` or `T.float32`; None for `T.let`."""
    if dialect_name(note) == "let":
        return None
    inner = note
    if isinstance(note, ast.Subscript) and dialect_name(note.value) == "let":
        inner = note.slice
    if isinstance(inner, ast.Call) and not inner.args:
        inner = inner.func
    name = dialect_name(inner) or ""
    if name not in DTYPE_NAMED:
        raise context.error(f"expected T.let[T.float32] or the like{near(name, DTYPE_NAMED)}", note)
    return DTYPE_NAMED[name]


def _scalar(context: Context, start: ScalarStart, node: ast.stmt) -> Binding | Stmt:
    """Return a scalar's first value; outside of blocks, with the memory that it is in."""
    if context.block_buffers is not None:
        context.block_buffers.append(start.buffer)
        return Evaluate(IntImm(0)) if start.store is None else start.store

    def around(body: Stmt) -> Stmt:
        inner = body if start.store is None else seq(start.store, body)
        return context.at(Allocate(start.buffer, inner), node)

    return Binding(around)


def with_let(context: Context, node: ast.With, call: ast.Call, body: Body) -> Stmt:
    """Parse `with T.let(x, value):`, or `with T.LetStmt(value) as x:`.

    Raises:
        ScriptError: If the statement names no value.
    """
    name = node.items[0].optional_vars
    if name is None:
        two = bind(context, call, ("var", "value"))
        name, value = two["var"], two["value"]
    else:
        value = bind(context, call, ("value",), ("type_annotation", "var"))["value"]
    if not isinstance(name, ast.Name):
        raise context.error("expected a name for the value", name)
    computed, declared = expression(context, value), context.get(name.id)
    if isinstance(declared, NamedValue) and isinstance(declared.expr, Var):
        computed = adapt(context, computed, value, dtype_of(declared.expr))
    var = Var(name.id, dtype_of(computed))
    with context.scope():
        context.define(name.id, NamedValue(var))
        return context.at(Let(var, computed, body(context, node.body, node)), node)


def with_storage(context: Context, node: ast.With, call: ast.Call, body: Body) -> Stmt:
    """Parse `with T.allocate((4,), "float32") as X:`.

    Raises:
        ScriptError: If the statement names no buffer.
    """
    name = node.items[0].optional_vars
    if not isinstance(name, ast.Name):
        raise context.error("expected a name for the buffer: with T.allocate(...) as name", call)
    with context.scope():
        buffer = flat_allocation(context, name.id, call, node)
        return _allocated(context, buffer, body(context, node.body, node), node)


def _allocated(context: Context, buffer: Buffer, body: Stmt, node: ast.stmt) -> Allocate:
    """Return an allocation of the buffer that the memory holds in its body."""
    return context.at(Allocate(context.memories[buffer.data], body), node)


def launch(context: Context, call: ast.Call, node: ast.stmt) -> Binding:
    """Parse `T.launch_thread(tx, 64)`, of a thread that `T.env_thread` named.

    Raises:
        ScriptError: If the call launches no such thread.
    """
    return _launch(context, *launched(context, None, call), node)


def with_threads(context: Context, node: ast.With, call: ast.Call, body: Body) -> Stmt:
    """Parse `with T.launch_thread("threadIdx.x", 64) as tx:`.

    Raises:
        ScriptError: If the statement names no thread.
    """
    name = node.items[0].optional_vars
    with context.scope():
        axis, tag = launched(context, name.id if isinstance(name, ast.Name) else None, call)
        return _launch(context, axis, tag, node).around(body(context, node.body, node))


def _launch(context: Context, axis: BlockAxis, tag: str, node: ast.stmt) -> Binding:
    return Binding(
        lambda body: context.at(For(axis.var, axis.extent, body, "thread_binding", tag), node)
    )

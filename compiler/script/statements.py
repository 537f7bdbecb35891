"""Parse statements: stores, loops, conditions and the blocks among them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from compiler.ir.dtypes import DType
from compiler.ir.names import Names
from compiler.ir.nodes import (
    Allocate,
    Annotations,
    BinOp,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
    dtype_of,
    lanes_of,
    seq,
)
from compiler.ir.print_expr import show_expr
from compiler.ir.simplify import simplify
from compiler.script.arguments import DTYPE_NAMED, bind, literal_dict, string
from compiler.script.blocks import HEAD_CALLS, block, is_block
from compiler.script.buffers import ALLOCATIONS, FLAT_ALLOCATIONS, flat_allocation
from compiler.script.context import Axis, Context, Value, call_name, dialect_name
from compiler.script.error import ScriptError, near
from compiler.script.expressions import (
    combine,
    condition,
    constant_int,
    element,
    expression,
    index,
    interval,
)
from compiler.script.literals import adapt, converted, widens
from compiler.script.symbols import declare_symbol

_LOOPS: dict[str, LoopKind] = {
    "parallel": "parallel",
    "serial": "serial",
    "thread_binding": "thread_binding",
    "unroll": "unrolled",
    "unrolled": "unrolled",
    "vectorized": "vectorized",
}
_MAX_GRID = 32


@dataclass(frozen=True, slots=True)
class _Binding:
    """A statement that names something for all that come after it."""

    around: Callable[[Stmt], Stmt]


def statements(context: Context, body: Sequence[ast.stmt], place: ast.AST) -> Stmt:
    """Parse a list of statements.

    Raises:
        ScriptError: If one of them is none of the dialect, or there are none.
    """
    parsed = [found for node in body if (found := _statement(context, node)) is not None]
    if not parsed:
        raise context.error("expected at least one statement that computes something", place)
    if not any(isinstance(found, _Binding) for found in parsed):
        return seq(*parsed)  # type: ignore[arg-type]
    rest: list[Stmt] = []
    for found in reversed(parsed):
        if isinstance(found, _Binding):
            rest = [found.around(seq(*reversed(rest)) if rest else Evaluate(IntImm(0)))]
        else:
            rest.append(found)
    return seq(*reversed(rest))


def _statement(context: Context, node: ast.stmt) -> Stmt | _Binding | None:
    """Parse a statement; None if it says nothing of its own."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return _store(context, target, value, node)
        case ast.AugAssign(target=ast.Subscript() as target):
            return _update(context, target, node)
        case ast.For():
            return _loop(context, node)
        case ast.If():
            return _if(context, node)
        case ast.With(items=[ast.withitem()]):
            return _with(context, node)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=note, value=ast.expr() as value):
            return _let(context, name, value, node, note)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return _assign(context, name, value, node)
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            return None  # a docstring
        case ast.Expr(value=ast.Call() as call) if call_name(call) not in HEAD_CALLS:
            return _evaluate(context, call, node)
        case _:
            raise _misplaced(context, node)


def _with(context: Context, node: ast.With) -> Stmt:
    if is_block(node):
        return block(context, node, statements)
    call = node.items[0].context_expr
    match call_name(call):
        case "allocate" | "decl_buffer" if isinstance(call, ast.Call):
            return _allocate(context, node, call)
        case "let" | "LetStmt" if isinstance(call, ast.Call):
            return _with_let(context, node, call)
        case _:
            raise _misplaced(context, node)


def _with_let(context: Context, node: ast.With, call: ast.Call) -> Stmt:
    """Parse `with T.let(x, value):`, or `with T.LetStmt(value) as x:`."""
    name = node.items[0].optional_vars
    if name is None:
        two = bind(context, call, ("var", "value"))
        name, value = two["var"], two["value"]
    else:
        value = bind(context, call, ("value",), ("type_annotation", "var"))["value"]
    if not isinstance(name, ast.Name):
        raise context.error("expected a name for the value", name)
    computed, declared = expression(context, value), context.get(name.id)
    if isinstance(declared, Value) and isinstance(declared.expr, Var):
        computed = adapt(context, computed, value, dtype_of(declared.expr))
    var = Var(name.id, dtype_of(computed))
    with context.scope():
        context.define(name.id, Value(var))
        return context.at(Let(var, computed, statements(context, node.body, node)), node)


def _assign(
    context: Context, name: str, value: ast.expr, node: ast.Assign
) -> Stmt | _Binding | None:
    """Parse `name = value`."""
    called = call_name(value)
    if called is None or not isinstance(value, ast.Call):
        return _let(context, name, value, node)
    if called in FLAT_ALLOCATIONS:
        buffer = flat_allocation(context, name, value, node)
        return _Binding(lambda body: context.at(Allocate(buffer, body), node))
    if called == "meta_var":
        argument = bind(context, value, ("value",))["value"]
        context.define(name, Value(expression(context, argument)))
        return None
    if declare_symbol(context, node):
        return None
    if called in HEAD_CALLS or called.startswith("axis.") or called == "match_buffer":
        raise _misplaced(context, node)
    if called == "let":
        value = bind(context, value, ("value",))["value"]
    return _let(context, name, value, node)


def _let(
    context: Context,
    name: str,
    value: ast.expr,
    node: ast.AnnAssign | ast.Assign,
    note: ast.expr | None = None,
) -> _Binding:
    """Parse `x: T.let[T.float32] = value`; `x: T.float32 = value` and `x = value` are older."""
    if context.is_outer(name):
        raise context.error(
            f"{name} has a value outside: a value can't be changed, give this one another name",
            node.targets[0] if isinstance(node, ast.Assign) else node.target,
        )
    computed = expression(context, value)
    of = None if note is None else _let_dtype(context, note)
    if of is not None:
        computed = stored(context, name, of, computed, value)
    var = Var(name, dtype_of(computed))
    context.define(name, Value(var))
    return _Binding(lambda body: context.at(Let(var, computed, body), node))


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


def _evaluate(context: Context, call: ast.Call, node: ast.stmt) -> Stmt:
    """Parse `T.evaluate(x)`, or a call that has an effect."""
    if call_name(call) == "evaluate":
        value = expression(context, bind(context, call, ("value",))["value"])
    else:
        value = expression(context, call)
    return context.at(Evaluate(value), node)


def _misplaced(context: Context, node: ast.stmt) -> ScriptError:
    """Return the error that says what is wrong with a statement that can't stand here."""
    value = getattr(node, "value", None)
    name = call_name(value)
    if name in ALLOCATIONS:
        return context.error("buffers are allocated before the first statement that computes", node)
    if name is not None and name.startswith("axis."):
        return context.error("axes are bound before the first statement of a block", node)
    if name in HEAD_CALLS:
        return context.error(f"T.{name} stands before the first statement of a block", node)
    if isinstance(node, ast.With):
        name = call_name(node.items[0].context_expr) or ""
        hint = near(name, ("block", "sblock", "init", "allocate", "let", "LetStmt"))
        return context.error(
            f'expected with T.sblock("name"):{hint[1:]}', node.items[0].context_expr
        )
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return context.error("expected one name, or an element of a buffer", target)
    return context.error(
        f"a statement of the dialect was expected, got {type(node).__name__}", node
    )


def _store(context: Context, target: ast.Subscript, value: ast.expr, place: ast.stmt) -> Stmt:
    buffer, indices = element(context, target)
    computed = stored(context, buffer.name, buffer.dtype, expression(context, value), value)
    if context.has_vectors:
        _check_lanes(context, indices, computed, value)
    return context.at(Store(buffer, indices, computed), place)


def _check_lanes(
    context: Context, indices: tuple[Expr, ...], computed: Expr, value: ast.expr
) -> None:
    lanes = max((lanes_of(index) for index in indices), default=1)
    if lanes_of(computed) != lanes:
        raise context.error(
            f"{lanes_of(computed)} lane(s) for {lanes} element(s): use T.Broadcast", value
        )


def stored(context: Context, name: str, dtype: DType, computed: Expr, value: ast.expr) -> Expr:
    """Return a value in the type of what will hold it.

    Raises:
        ScriptError: If something would be lost.
    """
    found = adapt(context, computed, value, dtype)
    if dtype_of(found) != dtype and widens(dtype_of(found), dtype):
        found = converted(found, dtype)
    if dtype_of(found) != dtype:
        raise context.error(
            f'{name} holds {dtype}, got {dtype_of(found)}: convert with T.Cast("{dtype}", ...)',
            value,
        )
    return found


def _update(context: Context, target: ast.Subscript, node: ast.AugAssign) -> Stmt:
    buffer, indices = element(context, target)
    old = context.at(Load(buffer, indices), target)
    added = (expression(context, node.value), node.value)
    new = combine(context, node.op, (old, target), added, node)
    new = stored(context, buffer.name, buffer.dtype, new, node.value)
    return context.at(Store(buffer, indices, new), node)


def _if(context: Context, node: ast.If) -> Stmt:
    test = condition(context, node.test)
    with context.scope():
        then = statements(context, node.body, node)
    otherwise = None
    if node.orelse:
        with context.scope():
            otherwise = statements(context, node.orelse, node)
    return context.at(If(test, then, otherwise), node)


def _allocate(context: Context, node: ast.With, call: ast.Call) -> Stmt:
    name = node.items[0].optional_vars
    if not isinstance(name, ast.Name):
        raise context.error("expected a name for the buffer: with T.allocate(...) as name", call)
    with context.scope():
        buffer = flat_allocation(context, name.id, call, node)
        return context.at(Allocate(buffer, statements(context, node.body, node)), node)


def _loop(context: Context, node: ast.For) -> Stmt:
    if node.orelse:
        raise context.error("a loop has no else", node.orelse[0])
    call = node.iter
    name = _loop_name(call)
    if name is None or not isinstance(call, ast.Call):
        hint = near(call_name(call) or "", (*_LOOPS, "grid"))
        raise context.error(
            f"expected range(...), T.grid(...), T.parallel(...) or the like{hint}", call
        )
    if name == "grid":
        return _grid(context, node, call)
    if not isinstance(node.target, ast.Name):
        raise context.error("expected one loop variable", node.target)
    (first, last, step), thread, notes = _loop_arguments(context, call, name)
    kind: LoopKind = "serial" if name == "range" else _LOOPS[name]
    axis = _axis(context, node.target.id, first, last, step)
    with context.scope():
        context.define(node.target.id, axis)
        body = statements(context, node.body, node)
    return context.at(For(axis.var, axis.extent, body, kind, thread, notes), node)


def _loop_name(call: ast.expr) -> str | None:
    """Return "range", "grid" or a kind of loop; None if it is no loop."""
    match call:
        case ast.Call(func=ast.Name(id="range")):
            return "range"
        case _:
            name = call_name(call)
            return name if name == "grid" or name in _LOOPS else None


_Ends: TypeAlias = tuple[ast.expr | None, ast.expr, ast.expr | None]


def _loop_arguments(
    context: Context, call: ast.Call, name: str
) -> tuple[_Ends, str | None, Annotations]:
    """Return the ends and the step, the thread and the annotations of a loop."""
    optional = ("stop", "thread") if name == "thread_binding" else ("stop",)
    more: tuple[str, ...] = ("annotations", "step")
    if name == "range":
        more = ("step",)
    arguments = bind(context, call, ("start",), (*optional, *more))
    stop, thread, notes = (arguments.get(a) for a in ("stop", "thread", "annotations"))
    if thread is None and name == "thread_binding":
        # T.thread_binding(4, "threadIdx.x") is legal too.
        stop, thread = None, stop
        if thread is None:
            raise context.error('T.thread_binding needs a thread, such as "threadIdx.x"', call)
    first, last = (None, arguments["start"]) if stop is None else (arguments["start"], stop)
    return (
        (first, last, arguments.get("step")),
        None if thread is None else string(context, thread, "a thread"),
        () if notes is None else literal_dict(context, notes),
    )


def _axis(
    context: Context,
    name: str,
    first: ast.expr | None,
    last: ast.expr,
    step: ast.expr | None = None,
) -> Axis:
    """Return the axis of a loop from `first`, or zero, to `last`, which is left out."""
    if first is None:
        extent = simplify(index(context, last))
        start: Expr = IntImm(0, dtype_of(extent))
    else:
        start, extent = interval(context, first, last)
    if isinstance(extent, IntImm) and extent.value < 1:
        names = Names()
        stop = simplify(BinOp("+", start, extent))
        ends = f"from {show_expr(start, names)} to {show_expr(stop, names)}"
        raise context.error(f"the loop is empty: {ends}", last)
    stride = 1 if step is None else constant_int(context, step, "a step").value
    if stride < 1:
        raise context.error(f"a step of {stride}: expected 1 or more", last)
    if stride > 1:
        dtype = dtype_of(extent)
        rounded = BinOp("+", extent, IntImm(stride - 1, dtype))
        extent = simplify(BinOp("//", rounded, IntImm(stride, dtype)))
    return Axis(Var(name, dtype_of(extent)), extent, start, stride)


def _grid(context: Context, node: ast.For, call: ast.Call) -> Stmt:
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if call.keywords:
        raise context.error("T.grid takes extents only", call.keywords[0])
    if len(targets) != len(call.args):
        raise context.error(
            f"{len(targets)} loop variable(s) for {len(call.args)} extent(s)", node.target
        )
    if len(targets) > _MAX_GRID:
        raise context.error(f"a grid of {len(targets)} loops: expected {_MAX_GRID} at most", call)
    axes: list[Axis] = []
    for target, extent in zip(targets, call.args, strict=True):
        if not isinstance(target, ast.Name):
            raise context.error("expected a loop variable", target)
        axes.append(_grid_axis(context, target.id, extent))
    with context.scope():
        for axis in axes:
            context.define(axis.var.name, axis)
        nest = statements(context, node.body, node)
    for axis in reversed(axes):
        nest = context.at(For(axis.var, axis.extent, nest), node)
    return nest


def _grid_axis(context: Context, name: str, extent: ast.expr) -> Axis:
    """Return an axis of `T.grid(8, (2, 5))`: an extent, or where to start and an extent."""
    if not isinstance(extent, ast.Tuple):
        return _axis(context, name, None, extent)
    if len(extent.elts) != 2:
        raise context.error("expected an extent, or a start and an extent", extent)
    start = simplify(index(context, extent.elts[0]))
    axis = _axis(context, name, None, extent.elts[1])
    return replace(axis, minimum=converted(start, dtype_of(axis.extent)))

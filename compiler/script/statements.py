"""Parse statements: stores, loops, conditions and blocks."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.nodes import Buffer, Evaluate, Expr, If, IntImm, Load, Stmt, Store, seq
from compiler.script.arguments import bind
from compiler.script.arithmetic import combine
from compiler.script.bindings import (
    Binding,
    assign,
    launch,
    let,
    with_let,
    with_storage,
    with_threads,
)
from compiler.script.blocks import AXES, HEAD_CALLS, block, is_block
from compiler.script.buffers import ALLOCATIONS
from compiler.script.context import Context, MutableScalar, call_name
from compiler.script.error import ScriptError, described, near
from compiler.script.expressions import condition, element, expression
from compiler.script.literals import stored
from compiler.script.loops import loop, while_loop
from compiler.script.memory import vector_store
from compiler.script.scalars import scalar_store
from compiler.script.special import function_call, named_function
from compiler.script.symbols import declare_symbol

_THREADS = frozenset({"thread_extent", "virtual_thread"})


def statements(context: Context, body: Sequence[ast.stmt], origin: ast.AST) -> Stmt:
    """Parse a list of statements.

    Raises:
        ScriptError: If a statement is not part of the dialect, or the list is empty.
    """
    parsed = [statement for node in body if (statement := _statement(context, node)) is not None]
    if not parsed:
        raise context.error("expected at least one statement that computes something", origin)
    if not any(isinstance(statement, Binding) for statement in parsed):
        return seq(*parsed)  # type: ignore[arg-type]
    remaining: list[Stmt] = []
    for statement in reversed(parsed):
        if isinstance(statement, Binding):
            remaining = [
                statement.around(seq(*reversed(remaining)) if remaining else Evaluate(IntImm(0)))
            ]
        else:
            remaining.append(statement)
    return seq(*reversed(remaining))


def _statement(context: Context, node: ast.stmt) -> Stmt | Binding | None:  # noqa: C901 - a case each
    """Parse a statement; return None if it has no effect."""
    match node:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return _store(context, target, value, node)
        case ast.AugAssign(target=ast.Subscript() as target):
            return _update(context, target, node)
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AugAssign(target=ast.Name(id=name)) if (
            isinstance(scalar := context.get(name), MutableScalar)
        ):
            return scalar_store(context, scalar, node)
        case ast.For():
            return loop(context, node, statements)
        case ast.While():
            return while_loop(context, node, statements)
        case ast.If():
            return _if(context, node)
        case ast.With(items=[_]):
            return _with(context, node)
        case ast.AnnAssign(target=ast.Name(id=name), annotation=note, value=ast.expr() as value):
            return let(context, name, value, node, note)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if not _is_of_head(value):
            return assign(context, name, value, node)
        case ast.Assign() if declare_symbol(context, node):
            return None
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            return None  # a docstring
        case ast.Assert(test=test):
            # An assertion does not change what is computed.
            condition(context, test)
            return None
        case ast.Expr(value=ast.Call() as call) if not _is_of_head(call):
            return _call(context, call, node)
        case _:
            raise _misplaced(context, node)


def _with(context: Context, node: ast.With) -> Stmt:
    if is_block(node):
        return block(context, node, statements)
    call = node.items[0].context_expr
    match call_name(call):
        case "allocate" | "decl_buffer" if isinstance(call, ast.Call):
            return with_storage(context, node, call, statements)
        case "let" | "LetStmt" if isinstance(call, ast.Call):
            return with_let(context, node, call, statements)
        case "launch_thread" if isinstance(call, ast.Call):
            return with_threads(context, node, call, statements)
        case "attr" if isinstance(call, ast.Call):
            _check_advice(context, call)
            with context.scope():
                return statements(context, node.body, node)
        case _:
            raise _misplaced(context, node)


def _check_advice(context: Context, call: ast.Call) -> None:
    """Accept `T.attr(...)` as a compiler hint, unless it binds threads.

    Raises:
        ScriptError: If it binds threads.
    """
    for node in ast.walk(call):
        if isinstance(node, ast.Constant) and node.value in _THREADS:
            raise context.error("threads are launched by T.launch_thread", node)


def _is_of_head(node: ast.expr) -> bool:
    """Return whether a call belongs before the first statement of a block."""
    name = call_name(node) or ""
    return name in HEAD_CALLS or name == "match_buffer" or name.startswith("axis.")


def _call(context: Context, call: ast.Call, node: ast.stmt) -> Stmt | Binding | None:
    """Parse `T.evaluate(x)`, or a call that has an effect."""
    match call_name(call):
        case "attr":
            _check_advice(context, call)
            return None
        case "launch_thread":
            return launch(context, call, node)
        case "buffer_store":
            return _buffer_store(context, call, node)
        case "evaluate":
            argument = bind(context, call, ("value",))["value"]
            stores = argument if isinstance(argument, ast.Call) else call
            if (store := _vector_store(context, stores, node)) is not None:
                return store
            value = expression(context, argument)
        case "call_packed" | "call_tir" if (named := named_function(context, call)) is not None:
            return context.at(named, node)
        case None if context.is_function(call.func):
            return context.at(function_call(context, call), node)
        case None if (store := _vector_store(context, call, node)) is not None:
            return store
        case _:
            value = expression(context, call)
    return context.at(Evaluate(value), node)


def _vector_store(context: Context, call: ast.Call, node: ast.stmt) -> Stmt | None:
    """Parse `A.vstore([0], value)`; return None if a call is no such one."""
    match call.func:
        case ast.Attribute(attr="vstore", value=ast.Name() as name) if isinstance(
            buffer := context.lookup(name), Buffer
        ):
            return context.at(vector_store(context, buffer, call), node)
        case _:
            return None


def _buffer_store(context: Context, call: ast.Call, node: ast.stmt) -> Stmt:
    """Parse `T.buffer_store(A, value, [i, j])`."""
    three = bind(context, call, ("buffer", "value", "indices"))
    indices = three["indices"]
    if isinstance(indices, ast.List):
        indices = ast.copy_location(ast.Tuple(indices.elts, ast.Load()), indices)
    target = ast.copy_location(ast.Subscript(three["buffer"], indices, ast.Store()), call)
    return _store(context, target, three["value"], node)


def _misplaced(context: Context, node: ast.stmt) -> ScriptError:
    """Return an error for a statement that is illegal at its position."""
    value = getattr(node, "value", None)
    name = call_name(value)
    if name in ALLOCATIONS:
        return context.error("expected one name for the buffer: X = T.alloc_buffer(...)", node)
    if name is not None and name.startswith("axis."):
        return context.error("bind axes before the first statement of a block", node)
    if name == "match_buffer" or name in HEAD_CALLS:
        return context.error(f"T.{name} must come before the first statement of a block", node)
    match node:
        case ast.With():
            return _misplaced_with(context, node)
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Call(func=func)):
            hint = near(ast.unparse(func), [f"T.axis.{kind}" for kind in AXES])
            return context.error(f"expected one name, or an element of a buffer{hint}", target)
        case ast.AnnAssign(target=target, value=None):
            return context.error("expected a value: x: T.let[T.float32] = 1.0", target)
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
            return context.error("expected one name, or an element of a buffer", target)
        case ast.AugAssign(target=ast.Name(id=changed)):
            return context.error(
                f"a value can't be changed: declare {changed}: T.int32 = ... (or another type)",
                node,
            )
        case _:
            return context.error(
                f"expected a statement of the dialect, got {described(node)}", node
            )


def _misplaced_with(context: Context, node: ast.With) -> ScriptError:
    expected = 'expected with T.sblock("name"):'
    if len(node.items) > 1:
        return context.error(f"{expected} one thing at a time", node.items[1].context_expr)
    call = node.items[0].context_expr
    if call_name(call) == "init":
        return context.error("T.init must come before the first statement of a block", call)
    spelled = ast.unparse(call.func if isinstance(call, ast.Call) else call)[:40]
    spellings = [f"T.{name}" for name in ("block", "sblock", "init", "allocate", "LetStmt", "let")]
    return context.error(expected + near(spelled, spellings)[1:], call)


def _store(context: Context, target: ast.Subscript, value: ast.expr, origin: ast.stmt) -> Stmt:
    buffer, indices = element(context, target)
    computed = stored(context, buffer.name, buffer.dtype, expression(context, value), value)
    if context.has_vectors:
        _check_lanes(context, indices, computed, value)
    return context.at(Store(buffer, indices, computed), origin)


def _check_lanes(
    context: Context, indices: tuple[Expr, ...], computed: Expr, value: ast.expr
) -> None:
    lanes = max((lanes_of(index) for index in indices), default=1)
    if lanes_of(computed) != lanes:
        instead = ": use T.Broadcast" if lanes_of(computed) == 1 else ""
        raise context.error(
            f"{lanes_of(computed)} lane(s) for {lanes} element(s){instead}", value, code="type"
        )


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

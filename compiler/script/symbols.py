"""Parse symbolic variables: `n = T.int64()`, `n: T.int32`, `n = TypeVar("n")`, an extent `"n"`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.nodes import Expr, Var
from compiler.script.arguments import DTYPE_NAMED, bind, dtype, string
from compiler.script.context import Context, NamedValue, call_name, dialect_name
from compiler.script.expressions import index

_DECLARATIONS = frozenset({"var", "Var", "size_var", "SizeVar"})


def declared_dtype(context: Context, node: ast.expr | None) -> DType | None:
    """Return the type in `T.int64()` or `T.var("int64")`; None for any other node."""
    name = call_name(node)
    if name is None or not isinstance(node, ast.Call):
        return None
    if name in DTYPE_NAMED and not node.args and not node.keywords:
        return DTYPE_NAMED[name]
    if name in _DECLARATIONS:
        arguments = bind(context, node, (), ("dtype", "name"))
        of = arguments.get("dtype")
        if name[-3:] == "Var" and "name" in arguments.values:
            of = arguments["name"]  # T.Var("n", "int64") has them in the other order
        return "int32" if of is None else dtype(context, of)
    return None


def scalar_parameter(annotation: ast.expr) -> DType | None:
    """Return the type of `n: T.int32`; None for any other annotation."""
    node = annotation
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
    return DTYPE_NAMED.get(dialect_name(node) or "")


def declare_symbol(context: Context, statement: ast.stmt) -> bool:
    """Parse `n = T.int64()` or `n, m = T.int64(), T.int64()`; return whether it was that.

    Raises:
        ScriptError: If a variable is declared with another type than before.
    """
    pairs = list(_declarations(context, statement))
    for target, of in pairs:
        if not isinstance(target, ast.Name):
            raise context.error("expected one name for the variable", target)
        entity = context.get(target.id)
        if not (isinstance(entity, NamedValue) and isinstance(entity.expr, Var)):
            context.define(target.id, NamedValue(Var(target.id, of)))
        elif entity.expr.dtype != of:
            raise context.error(
                f"{target.id} is {entity.expr.dtype} already, not {of}", statement, code="duplicate"
            )
    return bool(pairs)


def _declarations(context: Context, statement: ast.stmt) -> Iterator[tuple[ast.expr, DType]]:
    """Yield the names that a statement declares, each with its type."""
    match statement:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(
            targets
        ) == len(values):
            types = [declared_dtype(context, value) for value in values]
            if None not in types:
                yield from zip(targets, types, strict=True)
        case ast.Assign(targets=[target], value=value):
            of = declared_dtype(context, value)
            if of is not None:
                yield target, of
        case _:
            pass


def find_declarations(context: Context, body: Sequence[ast.stmt]) -> None:
    """Record the types of the symbols that a body declares; the signature is parsed before it."""
    for statement in body:
        for target, of in _declarations(context, statement):
            if isinstance(target, ast.Name):
                context.symbol_dtypes.setdefault(target.id, of)


def dimension(context: Context, node: ast.expr) -> Expr:
    """Parse an extent, a stride or an offset; a string may introduce a symbolic variable.

    Raises:
        ScriptError: If the result is not an integer.
    """
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return index(context, node)
    text = string(context, node, "a dimension")
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise context.error(f"expected a name or an expression in {text[:40]!r}", node) from None
    for part in ast.walk(parsed):
        if isinstance(part, ast.expr):
            ast.copy_location(part, node)
        if isinstance(part, ast.Name) and context.get(part.id) is None and part.id not in _PREFIXED:
            _define(context, part.id, node)
    return index(context, parsed)


_PREFIXED = frozenset({"T", "tir", "tirx"})


def _define(context: Context, name: str, node: ast.expr) -> None:
    of = context.symbol_dtypes.get(name, "int32")
    if not is_integer(of):
        raise context.error(f"{name} is {of}: expected an integer", node)
    context.define(name, NamedValue(Var(name, of)))


def type_variable(node: ast.stmt) -> str | None:
    """Return the name in `n = TypeVar("n")`, which declares an int64; None for other statements."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=ast.Name(id="TypeVar") | ast.Attribute(attr="TypeVar")),
        ):
            return name
        case _:
            return None

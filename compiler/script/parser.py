"""Parse scripts into programs. Works on Python's syntax tree and executes nothing.

Takes the three spellings of the dialect that `compiler.ir.spelling` names, with any of the
prefixes `T.`, `tir.` and `tirx.`; a text may hold one function, several, or a module class.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from compiler.ir.nodes import Annotations, Buffer, IRModule, PrimFunc
from compiler.ir.verify import VerifyError, verify
from compiler.script.arguments import bind, literal_dict
from compiler.script.blocks import root
from compiler.script.buffers import declare, parameter
from compiler.script.calls import call
from compiler.script.context import Context, call_name, dialect_name
from compiler.script.source import Source
from compiler.script.statements import statements

_MODULE_DECORATORS = frozenset({"ir_module"})


def parse(text: str, *, filename: str = "<script>") -> PrimFunc:
    """Parse a text that holds one function.

    Args:
        text: The script.
        filename: What the text is called in messages.

    Raises:
        ScriptError: If the text is not a script of one legal program; says where.
    """
    source = Source(text, filename)
    functions = _functions(source)
    if len(functions) != 1:
        names = ", ".join(node.name for node in functions)
        raise source.error(f"expected one function, got {len(functions)}: {names}", functions[1])
    return _function(source, functions[0])


def parse_module(text: str, *, filename: str = "<script>") -> IRModule:
    """Parse a text that holds one or more functions.

    Raises:
        ScriptError: If the text is not a script of legal programs; says where.
    """
    source = Source(text, filename)
    return IRModule(tuple(_function(source, node) for node in _functions(source)))


def _functions(source: Source) -> list[ast.FunctionDef]:
    """Return the functions of a text; there is at least one."""
    found: list[ast.FunctionDef] = []
    for node in _bodies(source, source.tree()):
        match node:
            case ast.FunctionDef() if _is_decorated(node, frozenset({"prim_func"})):
                if any(node.name == other.name for other in found):
                    raise source.error(f"function {node.name} is defined twice", node)
                found.append(node)
            case ast.FunctionDef():
                raise source.error(f"expected @T.prim_func above function {node.name}", node)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                pass  # a docstring; imports only give the dialect its name
            case _:
                raise source.error("expected a function with @T.prim_func", node)
    if not found:
        raise source.error_at("expected a function with @T.prim_func, got none")
    return found


def _bodies(source: Source, tree: ast.Module) -> Sequence[ast.stmt]:
    """Return the statements of the text, with module classes replaced by what is in them."""
    flat: list[ast.stmt] = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            flat.append(node)
        elif _is_decorated(node, _MODULE_DECORATORS):
            flat.extend(node.body)
        else:
            raise source.error(f"expected @I.ir_module above class {node.name}", node)
    return flat


def _is_decorated(node: ast.FunctionDef | ast.ClassDef, names: frozenset[str]) -> bool:
    """Tell whether a decorator ends in one of `names`: `@T.prim_func`, `@tvm.script.ir_module`."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in names:
            return True
        if isinstance(target, ast.Name) and target.id in names:
            return True
    return False


def _function(source: Source, node: ast.FunctionDef) -> PrimFunc:
    context = Context(source, call)
    handles = _parameters(context, node)
    rest = _skip_docstring(node.body)
    attrs, rest = _attributes(context, rest)
    rest = _match_buffers(context, rest, handles)
    for name, buffer in handles.items():
        if buffer is None:
            raise context.error(
                f"parameter {name} is matched with no buffer by T.match_buffer", node
            )
    params = tuple(buffer for buffer in handles.values() if buffer is not None)
    func = PrimFunc(node.name, params, root(context, rest, statements, node), attrs)
    try:
        verify(func)
    except VerifyError as error:
        raise context.error(error.message, context.place_of(error.node) or node) from None
    return func


def _parameters(context: Context, node: ast.FunctionDef) -> dict[str, Buffer | None]:
    """Return the parameters; None stands for a handle that is yet to be matched with a buffer."""
    arguments = node.args
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.defaults:
        raise context.error("a function takes buffers by position, without defaults", node)
    params: dict[str, Buffer | None] = {}
    for argument in (*arguments.posonlyargs, *arguments.args):
        if argument.arg in params:
            raise context.error(f"parameter {argument.arg} is there twice", argument)
        if argument.annotation is None:
            expected = f'{argument.arg}: T.Buffer((...), "float32")'
            raise context.error(f"expected {expected}", argument)
        if dialect_name(argument.annotation) == "handle":
            params[argument.arg] = None
            continue
        buffer = parameter(context, argument.arg, argument.annotation)
        context.define(argument.arg, buffer)
        params[argument.arg] = buffer
    return params


def _skip_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
        case _:
            return body


def _attributes(
    context: Context, body: Sequence[ast.stmt]
) -> tuple[Annotations, Sequence[ast.stmt]]:
    """Parse T.func_attr, if it is there, and return the rest."""
    match body:
        case [ast.Expr(value=ast.Call() as first), *rest] if call_name(first) == "func_attr":
            argument = bind(context, first, ("attrs",))["attrs"]
            return literal_dict(context, argument), rest
        case _:
            return (), body


def _match_buffers(
    context: Context, body: Sequence[ast.stmt], handles: dict[str, Buffer | None]
) -> Sequence[ast.stmt]:
    """Parse `A = T.match_buffer(a, (4,), "float32")` and return the rest."""
    for number, statement in enumerate(body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value) if (
                call_name(value) == "match_buffer"
            ):
                arguments = bind(context, value, ("param", "shape"), ("dtype", "scope"))
                param = arguments["param"]
                if not isinstance(param, ast.Name) or handles.get(param.id, value) is not None:
                    raise context.error("expected a parameter of type T.handle", param)
                buffer = declare(context, name, arguments, statement)
                context.define(name, buffer)
                handles[param.id] = buffer
            case _:
                return body[number:]
    return []

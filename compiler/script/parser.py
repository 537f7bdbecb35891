"""Parse scripts into programs. Works on Python's syntax tree and executes nothing.

The parser accepts the three spellings of the dialect in `compiler.ir.core.spelling`, with any of
the prefixes `T.`, `tir.` and `tirx.`. A text holds one function, several functions, or a module
class.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.core.dtypes import DType
from compiler.ir.core.function_calls import calls_in
from compiler.ir.core.nodes import (
    Annotations,
    Buffer,
    Var,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import inline_calls
from compiler.ir.verify.verify import VerifyError, verify
from compiler.script.arguments import bind, literal_dict
from compiler.script.blocks import root
from compiler.script.buffers import ALLOCATIONS, DETAILS, declare, parameter
from compiler.script.calls import call
from compiler.script.constants import Surroundings, inline_constants
from compiler.script.context import Context, Handle, NamedValue, call_name, dialect_name
from compiler.script.rewrites.declared_calls import with_declared_calls
from compiler.script.rewrites.jumps import without_jumps
from compiler.script.rewrites.views import join_views
from compiler.script.scalars import changing_declarations
from compiler.script.source import Source
from compiler.script.statements import statements
from compiler.script.symbols import (
    declare_symbol,
    find_declarations,
    scalar_parameter,
    type_variable,
)

# A chosen bound: a call of a kernel passes one pointer for each parameter.
_MAX_PARAMS = 256
_MODULE_DECORATORS = frozenset({"ir_module"})
_OF_MODULES = frozenset({"module_attrs", "module_global_infos", "module_set_attr"})


def parse(text: str, *, filename: str = "<script>") -> PrimFunc:
    """Parse a text of one program: a function, and those that it calls, which are inlined.

    Args:
        text: The script.
        filename: The name of the text in messages.

    Raises:
        ScriptError: If the text is not a script of one legal program; with the position.
    """
    source = Source(text, filename)
    functions = _functions(source)
    _, inlined = _module(source, functions)
    if len(inlined.functions) != 1:
        names = [func.name for func in inlined.functions]
        second = next(node for node in functions.nodes if node.name == names[1])
        raise source.error(f"expected one function, got {len(names)}: {', '.join(names)}", second)
    return inlined.functions[0]


def parse_module(text: str, *, filename: str = "<script>") -> IRModule:
    """Parse a text that holds one or more functions, which may call each other.

    Raises:
        ScriptError: If the text is not a script of legal programs; with the position.
    """
    source = Source(text, filename)
    return _module(source, _functions(source))[0]


def parse_functions(source: Source, nodes: Sequence[ast.FunctionDef], module: str) -> IRModule:
    """Parse the functions among the parts of a module that also holds something else.

    Args:
        source: The text of the module.
        nodes: The functions with `@T.prim_func`.
        module: The class that holds them.

    Raises:
        ScriptError: If one of them is not a legal program; with the position.
    """
    functions = _Functions(tuple(nodes), frozenset(), frozenset({module}))
    return _module(source, functions)[0]


def parse_function(
    text: str, *, filename: str, around: Surroundings, module: str | None = None
) -> PrimFunc:
    """Parse the text of one function, indented or not, with the constants around it.

    A function that calls others of its module is verified with them: see `verify_module`.

    Args:
        text: The script; its lines may all be indented.
        filename: The name of the text in messages.
        around: Returns the values of names around the function.
        module: The class that holds the function.

    Raises:
        ScriptError: If the text is not a script of one legal program; with the position.
    """
    source = Source(text, filename, is_indented=True)
    functions = _functions(source)
    if len(functions.nodes) != 1:
        raise source.error(f"expected one function, got {len(functions.nodes)}", functions.nodes[1])
    node = inline_constants(source, functions.nodes[0], around)
    context = _context(source, node, functions)
    context.functions = None
    context.modules |= frozenset({module} if module else ())
    return _function(context, node)


@dataclass(frozen=True, slots=True)
class _Functions:
    """The functions of a text, at least one, and what is declared around them."""

    nodes: tuple[ast.FunctionDef, ...]
    type_variables: frozenset[str]
    modules: frozenset[str]


def _module(source: Source, functions: _Functions) -> tuple[IRModule, IRModule]:
    """Return the module as it is written, and its entries with their calls inlined.

    Raises:
        ScriptError: If a function or a call is not legal.
    """
    nodes = {node.name: node for node in functions.nodes}
    contexts = {name: _context(source, node, functions) for name, node in nodes.items()}
    module = IRModule(tuple(_function(contexts[name], node) for name, node in nodes.items()))
    try:
        inlined = inline_calls(module)
    except VerifyError as error:
        nodes_of_error = (context.source_node_of(error.node) for context in contexts.values())
        at = next(node for node in nodes_of_error if node is not None)
        raise source.error(error.message, at, error.code) from None
    for func in inlined.functions:
        if func is not module[func.name]:
            _verify(contexts[func.name], func, nodes[func.name])
    return module, inlined


def _functions(source: Source) -> _Functions:
    """Return the functions of a text."""
    tree = source.tree()
    functions: dict[str, ast.FunctionDef] = {}
    variables: set[str] = set()
    for node in _bodies(source, tree):
        match node:
            case ast.FunctionDef() if is_decorated(node, frozenset({"prim_func"})):
                if node.name in functions:
                    raise source.error(
                        f"function {node.name} is defined twice", node, code="duplicate"
                    )
                functions[node.name] = node
            case ast.FunctionDef() if is_decorated(node, frozenset({"function"})):
                raise source.error(
                    f"{node.name} is a graph, not a program: lw.parse_graph reads graphs", node
                )
            case ast.FunctionDef():
                raise source.error(f"expected @T.prim_func above function {node.name}", node)
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                pass  # a docstring; or an import, which only gives the dialect its name
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=attr))) if attr in _OF_MODULES:
                pass  # attributes of the module do not affect its functions
            case ast.Assign() if (name := type_variable(node)) is not None:
                variables.add(name)
            case _:
                raise source.error("expected a function with @T.prim_func", node)
    if not functions:
        raise source.error_at("expected a function with @T.prim_func, got none")
    classes = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
    return _Functions(tuple(functions.values()), frozenset(variables), frozenset(classes))


def _bodies(source: Source, tree: ast.Module) -> Sequence[ast.stmt]:
    """Return the statements of the text, with the bodies of module classes in their places."""
    flat: list[ast.stmt] = []
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            flat.append(node)
        elif is_decorated(node, _MODULE_DECORATORS):
            flat.extend(node.body)
        else:
            raise source.error(f"expected @I.ir_module above class {node.name}", node)
    return flat


def is_decorated(node: ast.FunctionDef | ast.ClassDef, names: frozenset[str]) -> bool:
    """Return whether a decorator ends in one of `names`, such as `@tvm.script.ir_module`."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in names:
            return True
        if isinstance(target, ast.Name) and target.id in names:
            return True
    return False


def _context(source: Source, node: ast.FunctionDef, functions: _Functions) -> Context:
    """Return the names in scope where a function begins: those declared around it and in it."""
    context = Context(source, call)
    context.functions = frozenset(node.name for node in functions.nodes)
    context.modules |= functions.modules
    find_declarations(context, node.body)
    context.asked_offsets = _asked_offsets(source, node)
    for name in sorted(functions.type_variables):
        if context.symbol_dtypes.setdefault(name, "int64") == "int64":
            context.define(name, NamedValue(Var(name, "int64")))
    return context


def _function(context: Context, node: ast.FunctionDef) -> PrimFunc:
    without_jumps(node, context.error)
    params = _parameters(context, node)
    attrs, statements_left = _prelude(context, node.body, params)
    for argument in node.args.args:
        if params.get(argument.arg, node) is None:
            expected = f'expected A = T.match_buffer({argument.arg}, (...), "float32")'
            raise context.error(f"parameter {argument.arg} has no buffer: {expected}", argument)
    context.changing_declarations = changing_declarations(statements_left)
    parameters = tuple(param for param in params.values() if param is not None)
    func = PrimFunc(node.name, parameters, root(context, statements_left, statements, node), attrs)
    func = join_views(context, func)
    func = with_declared_calls(
        func, lambda block, call: context.at(block, context.source_node_of(call) or node)
    )
    if not calls_in(func.body):  # the others are verified with what they call
        _verify(context, func, node)
    return context.at(func, node)


def _verify(context: Context, func: PrimFunc, node: ast.FunctionDef) -> None:
    try:
        verify(func)
    except VerifyError as error:
        at = context.source_node_of(error.node) or node
        raise context.error(error.message, at, error.code) from None


def _asked_offsets(source: Source, node: ast.FunctionDef) -> frozenset[str]:
    """Return the buffers `A` whose `A.elem_offset` the text uses."""
    if not source.mentions(".elem_offset"):
        return frozenset()
    return frozenset(
        part.value.id
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute)
        and part.attr == "elem_offset"
        and isinstance(part.value, ast.Name)
    )


_Params: TypeAlias = dict[str, Buffer | Var | None]


def _parameters(context: Context, node: ast.FunctionDef) -> _Params:
    """Return the parameters; None stands for a handle without a buffer so far."""
    arguments = node.args
    _check_parameters(context, node)
    params: _Params = {}
    scalars = _scalars(arguments.args)
    context.symbol_dtypes.update(scalars)
    for name in scalars:
        if isinstance(context.get(name), NamedValue):
            context.define(name, NamedValue(Var(name, scalars[name])))  # not the type variable
    for argument in (*arguments.posonlyargs, *arguments.args):
        name, annotation = argument.arg, argument.annotation
        if name in params:
            raise context.error(f"parameter {name} appears twice", argument, code="duplicate")
        if annotation is None:
            raise context.error(f'expected {name}: T.Buffer((...), "float32")', argument)
        if name in scalars:
            params[name] = _scalar(context, name, scalars[name])
        elif dialect_name(_called(annotation)) == "handle":
            params[name] = None
            context.define(name, Handle(name))
        else:
            buffer = parameter(context, name, annotation)
            context.define(name, buffer)
            params[name] = buffer
    return params


def _check_parameters(context: Context, node: ast.FunctionDef) -> None:
    arguments = node.args
    for part in (arguments.vararg, arguments.kwarg, *arguments.kwonlyargs, *arguments.defaults):
        if part is not None:
            raise context.error(
                "a function takes buffers by position, without defaults", part, code="unsupported"
            )
    if len(arguments.args) > _MAX_PARAMS:
        raise context.error(
            f"{len(arguments.args)} parameters: expected {_MAX_PARAMS} at most", node, code="limit"
        )


def _scalars(arguments: Sequence[ast.arg]) -> dict[str, DType]:
    """Return the types of the parameters that are not buffers."""
    return {
        a.arg: of
        for a in arguments
        if a.annotation is not None and (of := scalar_parameter(a.annotation)) is not None
    }


def _scalar(context: Context, name: str, of: DType) -> Var:
    """Return the variable of a parameter; a shape may have used it before."""
    entity = context.get(name)
    if isinstance(entity, NamedValue) and isinstance(entity.expr, Var):
        return entity.expr
    var = Var(name, of)
    context.define(name, NamedValue(var))
    return var


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _prelude(
    context: Context, body: Sequence[ast.stmt], params: _Params
) -> tuple[Annotations, Sequence[ast.stmt]]:
    """Parse the statements before the computation: attributes, symbols, matched handles.

    Allocations, which belong to the block "root", may stand between them.
    """
    attrs: Annotations = ()
    allocations: list[ast.stmt] = []
    for number, statement in enumerate(body):
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                pass  # a docstring
            case ast.Expr(value=ast.Call() as first) if call_name(first) == "func_attr":
                argument = bind(context, first, ("attrs",))["attrs"]
                attrs = _joined(context, attrs, literal_dict(context, argument), first)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as value) if call_name(
                value
            ) == "match_buffer" and not _is_view(value):
                _match_handle(context, name, value, params)
            case ast.Assign() if declare_symbol(context, statement):
                pass
            case ast.Assign(value=ast.Call() as value) if call_name(value) in ALLOCATIONS:
                allocations.append(statement)
            case _:
                return attrs, [*allocations, *body[number:]]
    return attrs, allocations


def _joined(
    context: Context, attrs: Annotations, more: Annotations, origin: ast.AST
) -> Annotations:
    for key, _ in more:
        if key in dict(attrs):
            raise context.error(f"the attribute {key!r} is set already", origin, code="duplicate")
    return (*attrs, *more)


def _is_view(node: ast.Call) -> bool:
    """Return whether a match is of a region, not of a handle."""
    return bool(node.args) and isinstance(node.args[0], ast.Subscript)


def _match_handle(context: Context, name: str, node: ast.Call, params: _Params) -> None:
    """Parse `A = T.match_buffer(a, (4,), "float32")`."""
    arguments = bind(context, node, ("param", "shape"), DETAILS)
    param = arguments["param"]
    if not isinstance(param, ast.Name) or params.get(param.id, node) is not None:
        raise context.error("expected a parameter of type T.handle", param, code="type")
    buffer = declare(context, name, arguments, node)
    context.define(name, buffer)
    params[param.id] = buffer

"""Parse the text of a graph: a Relax function, alone or in a module with the programs it calls.

The parser works on Python's syntax tree and executes nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from compiler.graph.builder import GraphBuilder
from compiler.graph.calls import CALL_LIBRARY, CALL_TIR
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Attr, Graph, Operand, TensorType
from compiler.graph.operator import GraphOperator, find_operator
from compiler.graph.text.literals import Literals, dotted, relax_name
from compiler.ir.core.program import IRModule
from compiler.script.parser import is_decorated, parse_functions
from compiler.script.source import Source

Parsed: TypeAlias = "Operand | tuple[Parsed, ...] | None"
"""What an expression stands for: an operand, the results of an operator, or a missing operand."""

_Call: TypeAlias = "tuple[str, Sequence[Operand | None], dict[str, Attr]]"
"""An operator, its operands and its attributes."""

_NO_CONSTANTS: Mapping[str, Array] = {}


def parse_graph(
    text: str, *, constants: Mapping[str, Array] = _NO_CONSTANTS, filename: str = "<script>"
) -> Graph:
    """Parse the text of a graph.

    Args:
        text: One function with `@R.function`, alone or in a class with `@I.ir_module`, beside the
            programs (`@T.prim_func`) that it calls.
        constants: The elements of constants by their SHA-256 digests, as `Constant.digest` has
            them. Constants that the text names and that are missing here have no elements.
        filename: The name of the text in messages.

    Raises:
        ScriptError: If the text is not a legal graph; with the position.
    """
    source = Source(text, filename)
    graphs, programs, module = _parts(source)
    if len(graphs) != 1:
        raise source.error_at(f"expected one function with @R.function, got {len(graphs)}")
    functions = parse_functions(source, programs, module) if programs else IRModule(())
    return _GraphParser(source, Literals(source, constants), functions).graph(graphs[0])


def _parts(source: Source) -> tuple[list[ast.FunctionDef], list[ast.FunctionDef], str]:
    """Return the graphs, the programs, and the class that holds them."""
    graphs: list[ast.FunctionDef] = []
    programs: list[ast.FunctionDef] = []
    classes = [node for node in source.tree().body if isinstance(node, ast.ClassDef)]
    outside = [node for node in source.tree().body if not isinstance(node, ast.ClassDef)]
    for node in [*outside, *(part for each in classes for part in each.body)]:
        match node:
            case ast.FunctionDef() if is_decorated(node, frozenset({"function"})):
                graphs.append(node)
            case ast.FunctionDef() if is_decorated(node, frozenset({"prim_func"})):
                programs.append(node)
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                raise source.error("expected a function with @R.function or @T.prim_func", node)
    return graphs, programs, classes[0].name if classes else ""


class _GraphParser:
    def __init__(self, source: Source, literals: Literals, programs: IRModule) -> None:
        self._source = source
        self._literals = literals
        self._programs = programs
        self._builder = GraphBuilder()
        self._names: dict[str, Parsed] = {}
        self._called: dict[str, Sequence[str]] = {}
        self._parts: dict[str, dict[int, str]] = {}
        self._target: ast.expr | None = None
        self._result: tuple[Operand, ...] | None = None
        self._result_names: list[str] = []

    def graph(self, node: ast.FunctionDef) -> Graph:
        self._builder = GraphBuilder(node.name)
        self._find_names(node.body)
        arguments = node.args.args
        given = self._called.get("input_names", [argument.arg for argument in arguments])
        if len(given) != len(arguments):
            raise self._source.error(f"{len(given)} input_names: expected {len(arguments)}", node)
        for argument, name in zip(arguments, given, strict=True):
            if argument.annotation is None:
                raise self._source.error(f"parameter {argument.arg} needs a type", argument)
            value = self._builder.input(name, self._literals.tensor_type(argument.annotation))
            self._define(argument.arg, value, argument)
        self._statements(node.body)
        if self._result is None:
            raise self._source.error(f"{node.name} returns nothing", node)
        self._check_types(node.returns, tuple(output.type for output in self._result))
        names = self._called.get("output_names", self._result_names)
        if len(names) != len(self._result) or len(set(names)) < len(names):
            raise self._source.error(
                f"output names {list(names)}: expected {len(self._result)} that differ", node
            )
        return self._builder.finish(self._result, names)

    def _find_names(self, body: Sequence[ast.stmt]) -> None:
        """Find the names that callers use, and those of the results of an operator."""
        for statement in body:
            match statement:
                case ast.Expr(ast.Call(func, [ast.Dict() as attrs])) if (
                    relax_name(func) == "func_attr"
                ):
                    self._find_names_of_callers(attrs)
                case ast.With(body=inner):
                    self._find_names(inner)
                case ast.Assign(
                    [ast.Name(name)], ast.Subscript(ast.Name(whole), ast.Constant(int() as key))
                ) | ast.AnnAssign(
                    ast.Name(name), value=ast.Subscript(ast.Name(whole), ast.Constant(int() as key))
                ):
                    self._parts.setdefault(whole, {})[key] = name
                case _:
                    pass

    def _find_names_of_callers(self, attrs: ast.Dict) -> None:
        for key, value in zip(attrs.keys, attrs.values, strict=True):
            match key, value:
                case ast.Constant(str() as name), ast.List(items) | ast.Tuple(items):
                    self._called[name] = [str(self._literals.attr(item)) for item in items]
                case _:
                    pass  # other attributes have no effect

    def _statements(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self._result is not None:
                raise self._source.error("nothing can follow the return", statement)
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(ast.Constant(str())):
                pass  # a docstring
            case ast.Expr(ast.Call(func)) if relax_name(func) in {"func_attr", "output"}:
                pass
            case ast.Assign([ast.Name(name)], ast.Call(func)) if dotted(func) in {
                "T.int64",
                "T.int32",
            }:
                self._literals.declare(name)
            case ast.Assign([ast.Name("cls")], ast.Name()):
                pass  # the module, by which programs are called
            case ast.With([ast.withitem(ast.Call(func))], body) if relax_name(func) == "dataflow":
                self._statements(body)
            case ast.Assign([target], value):
                self._target = target
                self._assign(target, self._expression(value))
            case ast.AnnAssign(target, annotation, ast.expr() as value):
                self._target = target
                parsed = self._expression(value)
                several = parsed if isinstance(parsed, tuple) else (parsed,)
                self._check_types(annotation, tuple(self._operand(x, value).type for x in several))
                self._assign(target, parsed)
            case ast.Return(ast.expr() as value):
                self._return(value)
            case _:
                raise self._source.error("expected an assignment or a return", statement)

    def _return(self, value: ast.expr) -> None:
        items = value.elts if isinstance(value, ast.Tuple) else [value]
        self._result = tuple(self._operand(self._expression(item), item) for item in items)
        self._result_names = [
            item.id if isinstance(item, ast.Name) else f"output{position}"
            for position, item in enumerate(items)
        ]

    def _assign(self, target: ast.expr, parsed: Parsed) -> None:
        match target, parsed:
            case ast.Name(name), _:
                self._define(name, parsed, target)
            case ast.Tuple(items), tuple() if len(items) == len(parsed):
                for item, part in zip(items, parsed, strict=True):
                    self._assign(item, part)
            case _:
                raise self._source.error("expected a name for each result", target)

    def _define(self, name: str, parsed: Parsed, node: ast.AST) -> None:
        if name in self._names:
            raise self._source.error(f"{name} is defined twice", node, "duplicate")
        self._names[name] = parsed

    def _expression(self, node: ast.expr) -> Parsed:
        match node:
            case ast.Name(name):
                if name not in self._names:
                    raise self._source.error(f"{name} is not defined", node, "undefined")
                return self._names[name]
            case ast.Constant(None):
                return None
            case ast.Subscript(value, ast.Constant(int() as index)):
                several = self._expression(value)
                if not isinstance(several, tuple) or not 0 <= index < len(several):
                    raise self._source.error(f"there is no result {index}", node)
                return several[index]
            case ast.Tuple(items) | ast.List(items):
                return tuple(self._expression(item) for item in items)
            case ast.Call():
                return self._call(node)
            case _:
                raise self._source.error("expected a tensor", node)

    def _call(self, node: ast.Call) -> Parsed:
        name, target = relax_name(node.func), self._target
        self._target = None  # operands of the call have no names
        if name == "const":
            return self._literals.constant(node)
        try:
            if name in {CALL_TIR, CALL_LIBRARY}:
                call = self._function_call(name, node)
            else:
                call = self._operator_call(find_operator(name or dotted(node.func)), node)
            names = self._names_of_results(target)
            results = self._builder.apply(*call, result_names=names)
        except ModelError as error:
            raise self._source.error(str(error), node, "type") from error
        return results[0] if len(results) == 1 else results

    def _names_of_results(self, target: ast.expr | None) -> list[str]:
        """Return the names to which the results of a call are bound; none if some are not."""
        match target:
            case ast.Name(name):
                parts = self._parts.get(name, {})
                return [parts[key] for key in sorted(parts)] or [name]
            case ast.Tuple(items):
                return [item.id for item in items if isinstance(item, ast.Name)]
            case _:
                return []

    def _operator_call(self, operator: GraphOperator, node: ast.Call) -> _Call:
        operands, rest = self._operands(operator, node.args)
        if len(rest) > len(operator.attributes):
            raise self._source.error(
                f"{operator.name} takes at most {operator.num_operands} operands and"
                f" {len(operator.attributes)} attributes",
                node,
            )
        attrs: dict[str, Attr] = {}
        named = [(keyword.arg, keyword.value) for keyword in node.keywords]
        for key, value in [*zip(operator.attributes, rest, strict=False), *named]:
            if key is None or key in attrs:
                raise self._source.error(f"the attribute {key} is given twice", value)
            attrs[key] = self._literals.attr(value)
        return operator.name, operands, attrs

    def _operands(
        self, operator: GraphOperator, args: Sequence[ast.expr]
    ) -> tuple[list[Operand | None], Sequence[ast.expr]]:
        """Return the operands, and the arguments after them, which are attributes."""
        if operator.is_variadic:
            if not args or not isinstance(args[0], ast.Tuple | ast.List):
                raise ModelError(f"{operator.name} takes a tuple of tensors")
            return [self._operand(self._expression(item), item) for item in args[0].elts], args[1:]
        operands: list[Operand | None] = []
        for argument in args[: operator.num_operands]:
            if not _is_operand(argument):
                break
            parsed = self._expression(argument)
            operands.append(None if parsed is None else self._operand(parsed, argument))
        return operands, args[len(operands) :]

    def _function_call(self, name: str, node: ast.Call) -> _Call:
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if len(arguments) != 3:
            raise ModelError(f"{name} takes a function, a tuple of tensors, and out_sinfo")
        function, given, declared = arguments
        items = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
        operands = [self._operand(self._expression(item), item) for item in items]
        types = self._literals.types(declared)
        if name == CALL_LIBRARY:
            attrs: dict[str, Attr] = {"func": self._literals.attr(function), "results": types}
            return name, operands, attrs
        called = dotted(function).rpartition(".")[2]
        try:
            program = self._programs[called]
        except KeyError as error:
            raise self._source.error(str(error.args[0]), function, "undefined") from None
        inferred = find_operator(name).infer_types([x.type for x in operands], {"func": program})
        if inferred != types:
            raise self._source.error(f"{called} returns other types", declared, "type")
        return name, operands, {"func": program}

    def _operand(self, parsed: Parsed, node: ast.AST) -> Operand:
        if parsed is None or isinstance(parsed, tuple):
            raise self._source.error("expected one tensor", node)
        return parsed

    def _check_types(self, annotation: ast.expr | None, types: tuple[TensorType, ...]) -> None:
        if annotation is None:
            return
        declared = self._literals.types(annotation)
        if declared != types:
            shown = ", ".join(f"{each.dtype} {each.shape}" for each in types)
            raise self._source.error(f"the type is {shown}", annotation, "type")


def _is_operand(node: ast.expr) -> bool:
    """Return whether an argument is a tensor or a missing operand, not an attribute."""
    match node:
        case ast.Name() | ast.Subscript() | ast.Constant(None):
            return True
        case ast.Call(func):
            return relax_name(func) not in {"shape", ""}
        case _:
            return False

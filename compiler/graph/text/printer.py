"""Print graphs as Relax functions, beside the programs that they call.

The text parses back to a graph of the same nodes (`compiler.graph.text.parser`). Constants of many
elements are named by their digest: the parser takes their elements from the caller.
"""

from __future__ import annotations

from collections.abc import Iterator

from compiler.graph.calls import CALL_LIBRARY, CALL_TIR
from compiler.graph.nodes import Attr, Constant, Graph, Node, Operand, TensorType, TensorValue
from compiler.graph.operator import find_operator
from compiler.graph.text.spell import Symbols
from compiler.ir.core.nodes import Expr, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.ir.text.names import MODULE_NAME, identifier, unique
from compiler.ir.text.printer import script

_RESERVED = frozenset({"I", "R", "T", "cls", "tvm", MODULE_NAME})
_INDENT = "    "


def print_graph(graph: Graph) -> str:
    """Return the text of a graph; it ends in a newline.

    A graph that calls programs is printed as a module that holds them.
    """
    return _GraphPrinter(graph).text()


def called_programs(graph: Graph) -> dict[str, PrimFunc]:
    """Return the programs that a graph calls, by their names in its text."""
    programs: dict[str, PrimFunc] = {}
    names: dict[PrimFunc, str] = {}
    for node in graph.nodes:
        func = node.attrs.get("func")
        if isinstance(func, PrimFunc) and func not in names:
            names[func] = unique(func.name, {*programs, _function_name(graph)})
            programs[names[func]] = func
    return programs


def _function_name(graph: Graph) -> str:
    """Return the name of a graph as that of a function: models have names of any characters."""
    return unique(identifier(graph.name), set(_RESERVED))


class _GraphPrinter:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._programs = called_programs(graph)
        self._names: dict[TensorValue, str] = {}
        self._taken = {*_RESERVED, *self._programs, _function_name(graph)}
        self._symbols = Symbols(_variables(graph), self._taken)
        self._taken |= set(self._symbols.names.values())
        self._wanted = {
            output: name
            for name, output in zip(graph.output_names, graph.outputs, strict=True)
            if isinstance(output, TensorValue)
        }

    def text(self) -> str:
        function = list(self._function())
        if not self._programs:
            return "".join(f"{line}\n" for line in function)
        lines = ["@I.ir_module", f"class {MODULE_NAME}:"]
        for name, func in self._programs.items():
            lines += _indented(script(func.with_attr("global_symbol", name)).splitlines())
            lines.append("")
        return "".join(f"{line}\n" for line in [*lines, *_indented(function)])

    def _function(self) -> Iterator[str]:
        graph = self._graph
        inputs = [
            f"{self._bind(value)}: {self._symbols.tensor_type(value.type, is_parameter=True)}"
            for value in graph.inputs
        ]
        returned = self._symbols.types(
            tuple(output.type for output in graph.outputs), is_parameter=True
        )
        yield "@R.function"
        yield f"def {_function_name(graph)}({', '.join(inputs)}) -> {returned}:"
        body = list(self._dataflow())
        yield from (f"{_INDENT}{line}" for line in (*self._names_of_callers(), *body))

    def _dataflow(self) -> Iterator[str]:
        for name in self._symbols.names.values():
            yield f"{name} = T.int64()"
        if self._programs:
            yield f"cls = {MODULE_NAME}"
        if self._graph.nodes:
            yield "with R.dataflow():"
            for node in self._graph.nodes:
                yield from (f"{_INDENT}{line}" for line in self._node(node))
            made = [self._names[v] for v in self._results() if v not in self._graph.inputs]
            yield f"{_INDENT}R.output({', '.join(made)})"
        results = [self._operand(output) for output in self._graph.outputs]
        yield f"return {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"

    def _names_of_callers(self) -> Iterator[str]:
        """Yield the names of inputs and results, if variables can't have them."""
        graph = self._graph
        names = {
            "input_names": (
                [self._names[value] for value in graph.inputs],
                [value.name for value in graph.inputs],
            ),
            "output_names": (
                [self._names[v] if isinstance(v, TensorValue) else "" for v in graph.outputs],
                list(graph.output_names),
            ),
        }
        differing = {key: called for key, (printed, called) in names.items() if printed != called}
        if differing:
            yield f"R.func_attr({differing!r})"

    def _results(self) -> list[TensorValue]:
        return list(dict.fromkeys(v for v in self._graph.outputs if isinstance(v, TensorValue)))

    def _node(self, node: Node) -> Iterator[str]:
        call = self._call(node)
        types = tuple(value.type for value in node.outputs)
        if len(node.outputs) == 1:
            yield f"{self._bind(node.output)}: {self._symbols.types(types)} = {call}"
            return
        several = self._unique("lv")
        yield f"{several}: {self._symbols.types(types)} = {call}"
        for position, value in enumerate(node.outputs):
            printed = self._symbols.tensor_type(value.type)
            yield f"{self._bind(value)}: {printed} = {several}[{position}]"

    def _call(self, node: Node) -> str:
        operands = [self._operand(operand) for operand in node.inputs]
        types = tuple(value.type for value in node.outputs)
        func = node.attrs.get("func")
        if node.op in {CALL_TIR, CALL_LIBRARY}:
            comma = "," if len(operands) == 1 else ""
            results = self._symbols.types(types)
            results = f"[{results[8:-1]}]" if len(types) > 1 else results
            return (
                f"R.{node.op}({self._function_name(func)}, ({', '.join(operands)}{comma}),"
                f" out_sinfo={results})"
            )
        operator = find_operator(node.op)
        if operator.is_variadic:
            comma = "," if len(operands) == 1 else ""
            operands = [f"({', '.join(operands)}{comma})"]
        attrs = [
            f"{name}={self._symbols.attr(value)}"
            for name, value in node.attrs.items()
            if name not in operator.defaults or operator.defaults[name] != value
        ]
        return f"R.{node.op}({', '.join([*operands, *attrs])})"

    def _function_name(self, func: Attr) -> str:
        if isinstance(func, PrimFunc):
            return "cls." + next(n for n, each in self._programs.items() if each is func)
        return repr(func)

    def _operand(self, operand: Operand | None) -> str:
        match operand:
            case None:
                return "None"
            case Constant():
                return self._symbols.constant(operand)
            case _:
                return self._names[operand]

    def _bind(self, value: TensorValue) -> str:
        self._names[value] = self._unique(self._wanted.get(value, value.name))
        return self._names[value]

    def _unique(self, name: str) -> str:
        name = unique(identifier(name), self._taken)
        self._taken.add(name)
        return name


def _variables(graph: Graph) -> list[Var]:
    """Return the symbols of a graph in the order of their first use."""
    values = [*graph.inputs, *(value for node in graph.nodes for value in node.outputs)]
    extents = [extent for value in values for extent in value.type.shape]
    extents += [x for node in graph.nodes for attr in node.attrs.values() for x in _parts(attr)]
    used = (node for extent in extents if isinstance(extent, Expr) for node in walk(extent))
    return list(dict.fromkeys(node for node in used if isinstance(node, Var)))


def _parts(attr: Attr) -> list[int | Expr]:
    match attr:
        case tuple():
            return [part for item in attr for part in _parts(item)]
        case TensorType(shape):
            return list(shape)
        case _:
            return [attr] if isinstance(attr, Expr) else []


def _indented(lines: list[str]) -> list[str]:
    return [f"{_INDENT}{line}" if line else line for line in lines]

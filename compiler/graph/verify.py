"""Check a graph: definitions before uses, known operators, and types that agree with inference."""

from __future__ import annotations

from compiler.graph.error import ModelError
from compiler.graph.nodes import Graph, Node, TensorValue
from compiler.graph.operator import find_operator


def verify_graph(graph: Graph) -> None:
    """Refuse a graph that is not legal.

    Raises:
        ModelError: If a value is read before it is made, or made twice; if an operator is unknown,
            its operands or attributes do not fit, or its results have other types; or if names of
            inputs or results are not distinct.
    """
    _check_names("input", [value.name for value in graph.inputs])
    _check_names("output", list(graph.output_names))
    if len(graph.output_names) != len(graph.outputs):
        raise ModelError(
            f"graph {graph.name} has {len(graph.outputs)} outputs and"
            f" {len(graph.output_names)} names for them"
        )
    made: set[TensorValue] = set(graph.inputs)
    for node in graph.nodes:
        for operand in node.operands:
            if isinstance(operand, TensorValue) and operand not in made:
                raise _error(node, f"{operand.name} is read before it is made")
        _check_types(node)
        for value in node.outputs:
            if value in made:
                raise _error(node, f"{value.name} is made twice")
            made.add(value)
    for name, output in zip(graph.output_names, graph.outputs, strict=True):
        if isinstance(output, TensorValue) and output not in made:
            raise ModelError(f"graph {graph.name} returns {name}, which no node makes")


def _check_names(kind: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ModelError(f"two {kind}s are called {twice}")


def _check_types(node: Node) -> None:
    try:
        operator = find_operator(node.op)
        if dict(operator.complete(node.attrs)) != dict(node.attrs):
            raise ModelError("attributes with default values are missing")
        given = [None if operand is None else operand.type for operand in node.inputs]
        expected = operator.infer_types(given, node.attrs)
    except ModelError as error:
        raise error.at(node.op, node.name) from error
    types = tuple(value.type for value in node.outputs)
    if types != expected:
        raise _error(node, f"the results have types {types}: expected {expected}")


def _error(node: Node, reason: str) -> ModelError:
    return ModelError(reason, operator=node.op, node=node.name or node.outputs[0].name)

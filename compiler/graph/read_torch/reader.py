"""Read a program of PyTorch into a graph: the entry."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.nodes import Constant, Graph, Operand, constant
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode, TorchProgram
from compiler.graph.read_torch.registry import CONVERSIONS


def read_torch(program: TorchProgram) -> Graph:
    """Read a program into a graph.

    Raises:
        ModelError: If a node needs what is not supported: with the node, the reason, and what to
            do if something helps.
    """
    builder = GraphBuilder(program.name)
    values: dict[TensorRef, Operand] = {
        TensorRef(name): builder.input(name, tensor_type)
        for name, tensor_type in program.inputs.items()
    }
    values |= {TensorRef(name): _constant(name, array) for name, array in program.constants.items()}
    for node in program.nodes:
        for index, operand in enumerate(convert(node, values, builder)):
            if operand is not None:
                values[TensorRef(node.name, index)] = operand
    outputs = [_output(name, output, values) for name, output in program.outputs.items()]
    if not outputs:
        raise ModelError("the program has no outputs")
    return builder.finish(outputs, list(program.outputs))


def convert(
    node: TorchNode, values: dict[TensorRef, Operand], builder: GraphBuilder
) -> Sequence[Operand | None]:
    """Add the nodes of an ATen operator, and return its results.

    Raises:
        ModelError: If it is not supported.
    """
    try:
        conversion = CONVERSIONS.get(node.operator)
        if conversion is None:
            raise ModelError("the operator is not supported")
        given = conversion(TorchCall(node, values, builder))
    except ModelError as error:
        raise error.at(node.operator, node.name) from error
    results = given if isinstance(given, Sequence) else [given]
    _check_types(node, results)
    return results


def _check_types(node: TorchNode, results: Sequence[Operand | None]) -> None:
    """Compare the types of results with those that PyTorch infers: a difference is a bug."""
    for position, expected in enumerate(node.results):
        if expected is None:
            continue
        operand = results[position] if position < len(results) else None
        if operand is None:
            reason = f"result {position} is not supported"
            raise ModelError(reason, operator=node.operator, node=node.name)
        assert operand.type == expected, (
            f"{node.operator} {node.name}: {operand.type} instead of {expected}"
        )


def _constant(name: str, array: object) -> Constant:
    try:
        return constant(array, name)
    except TypeError as error:
        raise ModelError(str(error)) from None


def _output(name: str, output: Argument, values: dict[TensorRef, Operand]) -> Operand:
    if not isinstance(output, TensorRef):
        raise ModelError(f"the result {name} is {output!r}: expected a tensor")
    return values[output]

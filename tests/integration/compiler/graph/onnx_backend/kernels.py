"""Compute a graph by one compiled kernel of all its nodes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler import te
from compiler.driver import build
from compiler.graph.nodes import Array, Constant, Graph, Operand, TensorValue
from compiler.graph.operator import find_operator
from compiler.ir.core.nodes import static_shape
from tests.targets import here


class _Kernel:
    """The tensors of a graph while its nodes are chained."""

    def __init__(self) -> None:
        self.feeds: list[tuple[te.Tensor, Array]] = []
        self._tensors: dict[Operand, te.Tensor] = {}

    def define(self, value: TensorValue, tensor: te.Tensor) -> None:
        """Note the tensor of a value."""
        self._tensors[value] = tensor

    def feed(self, operand: Operand, array: Array) -> None:
        """Add an operand that the caller passes."""
        name = f"input{len(self.feeds)}"
        tensor = te.placeholder(operand.type.static_shape, operand.type.dtype, name=name)
        self.feeds.append((tensor, array))
        self._tensors[operand] = tensor

    def tensor(self, operand: Operand | None) -> te.Tensor | None:
        """Return the tensor of an operand."""
        if isinstance(operand, Constant) and operand not in self._tensors:
            self.feed(operand, operand.elements)
        return None if operand is None else self._tensors[operand]


def run_kernel(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a graph by their names; those that a node makes come from a kernel."""
    kernel = _Kernel()
    read = {operand for node in graph.nodes for operand in node.operands}
    for value in graph.inputs:
        if value in read:
            kernel.feed(value, inputs[value.name])
    made: dict[Operand, te.Tensor] = {}
    for node in graph.nodes:
        operands = [kernel.tensor(operand) for operand in node.inputs]
        tensors = find_operator(node.op).apply_tensors(operands, node.attrs)
        for value, tensor in zip(node.outputs, tensors, strict=True):
            kernel.define(value, tensor)
            made[value] = tensor
    wanted = list(dict.fromkeys(x for x in graph.outputs if x in made))
    arrays = _built(kernel.feeds, [made[x] for x in wanted])
    results: dict[Operand, Array] = dict(zip(wanted, arrays, strict=True))
    results |= {value: inputs[value.name] for value in graph.inputs}
    return {
        name: x.elements if isinstance(x, Constant) else results[x]
        for name, x in zip(graph.output_names, graph.outputs, strict=True)
    }


def _built(feeds: list[tuple[te.Tensor, Array]], tensors: list[te.Tensor]) -> list[Array]:
    if not tensors:
        return []
    program = te.create_prim_func([*(tensor for tensor, _ in feeds), *tensors])
    outputs = [np.empty(static_shape(tensor.buffer), tensor.dtype) for tensor in tensors]
    build(program, here())(*(np.asarray(array, order="C") for _, array in feeds), *outputs)
    return outputs

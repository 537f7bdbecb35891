"""A program of PyTorch without PyTorch: what `torch.export` captured, as plain values.

`loopwright.torch` makes programs of modules. A program can also be stored and read on a machine
without PyTorch, as tests do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from compiler.graph.nodes import Array, TensorType


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor of a program.

    Attributes:
        name: An input, a constant or a node.
        index: Which result of a node.
    """

    name: str
    index: int = 0


Argument: TypeAlias = "TensorRef | bool | int | float | str | tuple[Argument, ...] | None"
"""An argument of an operator. Data types, layouts and the like are their names."""


@dataclass(frozen=True)
class TorchNode:
    """One application of an ATen operator.

    Attributes:
        name: The name in PyTorch's graph.
        operator: The overload without its namespace, such as `add.Tensor`; with it, if it is not
            ATen's.
        arguments: All arguments by their names in PyTorch's schema, default values included.
        results: The types that PyTorch infers; None for a result that is not used.
    """

    name: str
    operator: str
    arguments: Mapping[str, Argument]
    results: tuple[TensorType | None, ...]


@dataclass(frozen=True)
class TorchProgram:
    """A function without side effects.

    Attributes:
        name: The name of the module's class.
        inputs: The types of the inputs by name, in order.
        constants: Parameters, buffers and other known tensors, by name.
        nodes: The nodes in the order in which they run.
        outputs: The results by the names that callers see.
    """

    name: str
    inputs: Mapping[str, TensorType]
    constants: Mapping[str, Array]
    nodes: tuple[TorchNode, ...]
    outputs: Mapping[str, Argument]

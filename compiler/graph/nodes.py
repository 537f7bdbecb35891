"""Nodes of graphs: values, constants and operators, in the order in which they run.

Nodes are frozen and shared freely. A rewrite never edits a node, it makes a new graph. A
`TensorValue` is compared by identity: two values of the same name are two values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from compiler.graph.extents import Extent, Shape, is_static, show_shape, static
from compiler.ir.core.dtypes import DTYPES, DType, size_bytes
from compiler.ir.core.program import PrimFunc

Attr: TypeAlias = (
    "bool | int | float | str | Extent | TensorType | PrimFunc | tuple[Attr, ...] | None"
)
"""The value of an attribute.

A data type is a string, and extents may be symbolic. Calls of functions have the function, or its
name and the types of its results.
"""

Attrs: TypeAlias = Mapping[str, Attr]

Array: TypeAlias = NDArray[Any]


class _Extents(tuple[Extent, ...]):
    """A shape that messages show with the names of its symbols."""

    __slots__ = ()

    def __repr__(self) -> str:
        return show_shape(self)


@dataclass(frozen=True, slots=True)
class TensorType:
    """The shape and the data type of a tensor; rank 0 is a scalar, and an extent may be 0."""

    shape: Shape
    dtype: DType

    def __post_init__(self) -> None:
        """Let messages show the shape."""
        object.__setattr__(self, "shape", _Extents(self.shape))

    def __str__(self) -> str:
        """Return the type for messages."""
        return f"{self.dtype} {show_shape(self.shape)}"

    @property
    def rank(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Return whether all extents are integers."""
        return is_static(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """Return a shape of integers; it is a bug to ask for that of a symbolic type."""
        return static(self.shape)

    @property
    def num_elements(self) -> int:
        """Return the number of elements of a static type."""
        return prod(self.static_shape)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of a static type."""
        return self.num_elements * size_bytes(self.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """A tensor that is known when the graph runs: an input, or the result of a node."""

    name: str
    type: TensorType


@dataclass(frozen=True)
class Constant:
    """A tensor that is known when the graph is made, such as weights; compared by its contents.

    Attributes:
        digest: The SHA-256 of the elements in C order, in hexadecimal.
        type: The shape and the data type.
        array: The elements, read-only; None in the skeleton of a model, which leaves weights out.
        name: The name in the model, for people.
    """

    digest: str
    type: TensorType
    array: Array | None = field(default=None, compare=False, repr=False)
    name: str = field(default="", compare=False)

    @cached_property
    def elements(self) -> Array:
        """Return the elements; it is a bug to ask for those of a skeleton."""
        assert self.array is not None, f"constant {self.name or self.digest} has no elements"
        return self.array


def constant(array: object, name: str = "") -> Constant:
    """Return a constant with the elements of an array.

    Raises:
        TypeError: If the elements have no data type of graphs.
    """
    elements = np.asarray(array, order="C")
    dtype = elements.dtype.name
    if dtype not in DTYPES:
        raise TypeError(f"constant {name or 'array'} has elements of type {dtype}")
    elements = elements.view()
    elements.flags.writeable = False
    digest = hashlib.sha256(elements.reshape(-1).view(np.uint8).data).hexdigest()
    return Constant(digest, TensorType(elements.shape, cast(DType, dtype)), elements, name)


_printers: list[Callable[[Graph], str]] = []


def provide_printer(printer: Callable[[Graph], str]) -> None:
    """Set the function that prints all graphs; it is in a higher room."""
    _printers[:] = [printer]


Operand: TypeAlias = TensorValue | Constant
"""What a node reads."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One application of an operator.

    Attributes:
        op: The name of the operator; see `compiler.graph.operator`.
        inputs: The operands in order; None stands for an optional operand that is left out.
        outputs: The results, each made by this node alone.
        attrs: The attributes by name, including those with default values.
        name: The name in the model that the node comes from, for errors and reports.
    """

    op: str
    inputs: tuple[Operand | None, ...]
    outputs: tuple[TensorValue, ...]
    attrs: Attrs = field(default_factory=lambda: MappingProxyType({}))
    name: str = ""

    @property
    def output(self) -> TensorValue:
        """Return the only result."""
        [value] = self.outputs
        return value

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Return the operands that are present."""
        return tuple(operand for operand in self.inputs if operand is not None)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A function over tensors: nodes in an order in which each value is made before it is read.

    Attributes:
        name: The name of the function.
        inputs: The values that a caller passes, in order.
        nodes: The nodes in the order in which they run.
        outputs: The results in order: values, or constants.
        output_names: The names of the results, which callers use; all distinct.
    """

    name: str
    inputs: tuple[TensorValue, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Operand, ...]
    output_names: tuple[str, ...]

    def script(self) -> str:
        """Return the text, which `lw.parse_graph` reads back."""
        return _printers[0](self)

    def __str__(self) -> str:
        """Return the text."""
        return self.script()

    def constants(self) -> Iterator[Constant]:
        """Yield the constants that the graph reads or returns, each once."""
        operands = [*(x for node in self.nodes for x in node.operands), *self.outputs]
        yield from dict.fromkeys(x for x in operands if isinstance(x, Constant))

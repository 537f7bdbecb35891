"""One node of a program of PyTorch, as conversions see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.extents import is_static
from compiler.graph.nodes import (
    Attr,
    Constant,
    Node,
    Operand,
    TensorType,
    TensorValue,
    constant,
)
from compiler.graph.operator import find_operator
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode
from compiler.graph.rewrite.fold_constants import fold_node
from compiler.ir.core.dtypes import DTYPES, DType

Number: TypeAlias = bool | int | float


@dataclass(frozen=True)
class TorchCall:
    """A node of a program with its arguments.

    Attributes:
        node: The node.
        values: The tensors of the program so far.
        builder: Where new nodes go.
    """

    node: TorchNode
    values: Mapping[TensorRef, Operand]
    builder: GraphBuilder

    @property
    def overload(self) -> str:
        """Return the overload, such as `add.Tensor`."""
        return self.node.operator

    # Arguments

    def argument(self, name: str) -> Argument:
        """Return an argument as it is, which may be a reference to a tensor."""
        return self.node.arguments[name]

    def operand(self, name: str) -> Operand:
        """Return a tensor.

        Raises:
            ModelError: If it is left out.
        """
        operand = self.optional(name)
        if operand is None:
            raise ModelError(f"the argument {name} is None: expected a tensor")
        return operand

    def optional(self, name: str) -> Operand | None:
        """Return a tensor, or None if it is left out."""
        argument = self.argument(name)
        if argument is None:
            return None
        assert isinstance(argument, TensorRef), f"{name} is {argument}: a tensor, the schema says"
        return self.values[argument]

    def operands(self, name: str) -> list[Operand]:
        """Return a list of tensors.

        Raises:
            ModelError: If one is left out.
        """
        operands = self.optionals(name)
        present = [operand for operand in operands if operand is not None]
        if len(present) < len(operands):
            raise ModelError(f"the argument {name} has elements that are None: expected tensors")
        return present

    def optionals(self, name: str) -> list[Operand | None]:
        """Return a list of tensors, of which some may be left out."""
        return [
            None if each is None else self.values[cast("TensorRef", each)]
            for each in cast("tuple[Argument, ...]", self.argument(name))
        ]

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        return bool(self.argument(name))

    def word(self, name: str) -> str:
        """Return a word."""
        return cast("str", self.argument(name))

    def number(self, name: str) -> Number:
        """Return a number."""
        argument = self.argument(name)
        assert isinstance(argument, int | float), f"{name} is {argument}"
        return argument

    def integer(self, name: str) -> int:
        """Return an integer."""
        return int(self.number(name))

    def integers(self, name: str) -> tuple[int, ...]:
        """Return integers; one alone is a tuple of one, and None is an empty tuple."""
        argument = self.argument(name)
        if argument is None:
            return ()
        several = argument if isinstance(argument, tuple) else (argument,)
        return tuple(int(cast("int", each)) for each in several)

    def spatial(self, name: str, rank: int) -> tuple[int, ...]:
        """Return an integer for each of `rank` dimensions; one alone stands for all."""
        numbers = self.integers(name)
        return numbers * rank if len(numbers) == 1 else numbers

    # Results

    def result(self, position: int = 0) -> TensorType:
        """Return the type of a result, as PyTorch infers it.

        Raises:
            ModelError: If it is not used.
        """
        tensor_type = self.node.results[position]
        if tensor_type is None:
            raise ModelError(f"result {position} has no type")
        return tensor_type

    def wants(self, position: int) -> bool:
        """Return whether a result is used."""
        return position < len(self.node.results) and self.node.results[position] is not None

    # New nodes

    def add(self, op: str, *operands: Operand | None, **attrs: Attr) -> Operand:
        """Add an operator with one result, and return it; see `add_all`."""
        [result] = self.add_all(op, *operands, **attrs)
        return result

    def add_all(self, op: str, *operands: Operand | None, **attrs: Attr) -> tuple[Operand, ...]:
        """Add a tensor-level operator, and return its results.

        What follows from constants is a constant, and so is what has no elements.

        Raises:
            ModelError: If the operands or attributes do not fit.
        """
        operator = find_operator(op)
        complete = operator.complete(attrs)
        types = operator.infer_types([None if x is None else x.type for x in operands], complete)
        if all(is_static(each.shape) and 0 in each.shape for each in types):
            return tuple(self.constant(np.empty(t.static_shape, t.dtype)) for t in types)
        name = self.node.name
        values = tuple(TensorValue(name, each) for each in types)
        folded = fold_node(Node(op, operands, values, complete, name))
        return folded or self.builder.add_all(op, *operands, name=name, **attrs)

    def constant(self, array: object) -> Constant:
        """Return a constant."""
        return constant(array, self.node.name)

    def scalar(self, number: Number, dtype: DType) -> Constant:
        """Return a scalar constant of a data type."""
        return self.constant(np.asarray(number).astype(dtype))

    def like(self, operand: Operand, number: Number) -> Constant:
        """Return a scalar constant of the data type of an operand."""
        return self.scalar(number, operand.type.dtype)

    def cast(self, operand: Operand, dtype: DType) -> Operand:
        """Return an operand in a data type."""
        return operand if operand.type.dtype == dtype else self.add("astype", operand, dtype=dtype)

    def number_or_operand(self, name: str, dtype: DType) -> Operand:
        """Return a tensor or a number as a tensor of a data type."""
        argument = self.argument(name)
        if isinstance(argument, TensorRef):
            return self.cast(self.values[argument], dtype)
        return self.scalar(self.number(name), dtype)

    def reshaped(self, operand: Operand, shape: tuple[int, ...]) -> Operand:
        """Return an operand in a shape."""
        return operand if operand.type.shape == shape else self.add("reshape", operand, shape=shape)

    def expanded(self, operand: Operand, shape: tuple[int, ...]) -> Operand:
        """Return an operand that is broadcast to a shape."""
        if operand.type.shape == shape:
            return operand
        return self.add("broadcast_to", operand, shape=shape)


def dtype_of(name: str) -> DType:
    """Return the data type of a name of PyTorch.

    Raises:
        ModelError: If graphs have none for it.
    """
    if name not in DTYPES:
        raise ModelError(f"the data type {name} is not supported")
    return cast("DType", name)

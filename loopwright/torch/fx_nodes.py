"""Nodes of an FX graph of ATen operators as those of a `TorchProgram`."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from compiler.executor.named_type import named_type
from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.graph.read_torch.call import dtype_of
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode
from loopwright.torch.tensors import name_of

_CHECKS = ("_assert_tensor_metadata", "_assert_async", "_assert_scalar", "sym_constrain_range")
_NAMED = (torch.dtype, torch.layout, torch.memory_format, torch.device)


def is_check(node: Node) -> bool:
    """Return whether a node checks facts that hold already: it computes nothing."""
    return node.op == "call_function" and any(name in str(node.target) for name in _CHECKS)


def is_getitem(node: Node) -> bool:
    """Return whether a node is one result of another."""
    return node.op == "call_function" and node.target is operator.getitem


def is_number(node: Node) -> bool:
    """Return whether a node is a number, such as an extent that is known when the graph runs."""
    return isinstance(
        node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float
    )


def overload_of(node: Node) -> str:
    """Return the name of the operator of a node, such as `add.Tensor`."""
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target).removeprefix("aten.")
    return str(getattr(node.target, "__name__", node.target))


@dataclass(frozen=True)
class FxNodeReader:
    """Reads nodes whose extents are known.

    Attributes:
        extents: The values of symbols of extents; without it, those of the call that was traced.
    """

    extents: Mapping[Any, int] | None = field(default=None)

    def node(self, node: Node) -> TorchNode:
        """Return a call of an operator.

        Raises:
            ModelError: If it is no ATen operator, or has arguments or results that programs lack.
        """
        overload = overload_of(node)
        try:
            if not isinstance(node.target, torch._ops.OpOverload):
                raise ModelError("it is no operator of ATen")
            return TorchNode(node.name, overload, self._arguments(node), self._results(node))
        except ModelError as error:
            raise error.at(overload, node.name) from error

    def argument(self, value: Any) -> Argument:
        """Return an argument of a node, or a result of the graph.

        Raises:
            ModelError: If programs have no such values.
        """
        if isinstance(value, Node):
            return self._of_node(value)
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, Sequence):
            return tuple(self.argument(each) for each in value)
        if isinstance(value, _NAMED):
            return name_of(value)
        raise ModelError(f"an argument is {value!r}: expected tensors, numbers and words")

    def type_of(self, tensor: torch.Tensor) -> TensorType:
        """Return the type of a tensor.

        Raises:
            ModelError: If graphs have no such data type, or an extent is not known.
        """
        shape = tuple(self.integer(extent) for extent in tensor.shape)
        return TensorType(shape, dtype_of(name_of(tensor.dtype)))

    def integer(self, value: Any) -> int:
        """Return an integer that may be symbolic.

        Raises:
            ModelError: If it depends on values of tensors.
        """
        if not isinstance(value, torch.SymInt):
            return int(value)
        if self.extents is None:
            hint = value.node.hint
        else:
            number = value.node.expr.subs(self.extents)
            hint = int(number) if number.is_number else None
        if hint is None:
            raise ModelError(f"the extent {value} depends on the values of tensors")
        return int(hint)

    def _of_node(self, node: Node) -> Argument:
        if is_getitem(node):
            source, index = node.args
            return TensorRef(source.name, int(index))
        if is_number(node):
            value = node.meta["val"]
            return value if isinstance(value, bool | float) else self.integer(value)
        return TensorRef(node.name)

    def _arguments(self, node: Node) -> Mapping[str, Argument]:
        """Return all arguments by name, default values included."""
        given = dict(node.kwargs)
        parameters = node.target._schema.arguments
        given |= {
            parameter.name: value for parameter, value in zip(parameters, node.args, strict=False)
        }
        return {
            parameter.name: self.argument(given.get(parameter.name, parameter.default_value))
            for parameter in parameters
        }

    def _results(self, node: Node) -> tuple[TensorType | None, ...]:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            return (self.type_of(value),)
        if not isinstance(value, Sequence):
            raise ModelError(f"the result is {named_type(value)}: expected tensors")
        used = {int(user.args[1]) for user in node.users if is_getitem(user) and user.users}
        return tuple(self.type_of(x) if k in used else None for k, x in enumerate(value))

"""Which nodes only give a new shape to memory that exists: they need no kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.graph.nodes import Node, Operand, TensorValue
from compiler.ir.core.dtypes import size_bytes

_RESHAPES = frozenset({"reshape", "squeeze", "expand_dims", "flatten"})
_SAME_ELEMENTS = frozenset({"broadcast_to", "tile"})


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A part of the memory of an operand.

    Attributes:
        operand: The operand.
        offset: Where the part begins, in bytes.
    """

    operand: Operand
    offset: int = 0


def views_of(node: Node) -> tuple[View, ...] | None:
    """Return the results of a node as views of its first operand; None if it moves elements."""
    if not node.inputs or node.inputs[0] is None:
        return None
    operand = node.inputs[0]
    if any(operand.type.dtype != value.type.dtype for value in node.outputs):
        return None
    if node.op in _RESHAPES or _keeps_order(node, operand):
        return (View(operand),)
    if node.op == "split" and len(node.outputs) > 1:
        return _parts(node, operand)
    return None


def is_contiguous_join(node: Node) -> bool:
    """Return whether the parts of a concatenation follow each other in memory."""
    if node.op != "concat":
        return False
    axis = _changed_axis(node.output, *node.operands)
    return axis is not None and math.prod(node.output.type.static_shape[:axis]) == 1


def _keeps_order(node: Node, operand: Operand) -> bool:
    """Return whether a movement leaves all elements at their position in memory."""
    if node.op in _SAME_ELEMENTS:
        return operand.type.num_elements == node.output.type.num_elements
    if node.op != "permute_dims":
        return False
    shape = operand.type.static_shape
    axes = node.attrs.get("axes")
    order = axes if isinstance(axes, tuple) else tuple(range(len(shape)))[::-1]
    positions = [axis % len(shape) for axis in order if isinstance(axis, int)]
    moved = [axis for axis in positions if shape[axis] != 1]
    return moved == sorted(moved)


def _parts(node: Node, operand: Operand) -> tuple[View, ...] | None:
    axis = _changed_axis(operand, *node.outputs)
    if axis is None or math.prod(operand.type.static_shape[:axis]) != 1:
        return None
    return tuple(_offsets(operand, node.outputs))


def _offsets(operand: Operand, parts: tuple[TensorValue, ...]) -> Iterator[View]:
    offset = 0
    for part in parts:
        yield View(operand, offset)
        offset += part.type.num_elements * size_bytes(part.type.dtype)


def _changed_axis(whole: Operand, *parts: Operand) -> int | None:
    """Return the first axis on which parts are shorter than the whole; None if none is."""
    shape = whole.type.static_shape
    axes = [
        axis
        for axis, extent in enumerate(shape)
        if any(part.type.static_shape[axis] != extent for part in parts)
    ]
    return axes[0] if len(axes) == 1 else None

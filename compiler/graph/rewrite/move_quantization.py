"""Let movements move bytes: quantize before them, and make floats of bytes after them."""

from __future__ import annotations

from compiler.graph.nodes import Constant, Graph, Node, Operand
from compiler.graph.rewrite.constants import number
from compiler.graph.rewrite.fold_constants import fold_node
from compiler.graph.rewrite.quantized import (
    MOVES,
    bytes_made_float,
    is_whole,
    known_integer,
    zero_point_of,
)
from compiler.graph.rewrite.rewriter import Replacement, Rewriter, rewrite_nodes

_NUMBER_MAPS = frozenset({"add", "subtract", "multiply", "divide"})
_EXACT_SCALES = (2.0**-100, 2.0**100)
"""Scales for which `q * scale / scale` rounds to `q`: nothing overflows or is subnormal. Chosen."""


def move_quantization(graph: Graph) -> Graph:
    """Return a graph in which movements are between a quantization and its inverse.

    Maps by a number move together with a quantization. Bytes that become floats and are quantized
    again in the same way stay as they are.
    """
    return rewrite_nodes(graph, _visit)


def _visit(node: Node, rewriter: Rewriter) -> Replacement:
    if node.op == "quantize":
        return _quantized(node, rewriter)
    return _moved(node, rewriter) if node.op in MOVES else None


def _moved(node: Node, rewriter: Rewriter) -> Replacement:
    """Make floats of bytes that have been moved."""
    [x] = node.operands
    inner = bytes_made_float(x, rewriter)
    if inner is None:
        return None
    narrow, axis = inner.operands[0], _axis_after(inner, node)
    if axis is None or not (rewriter.is_read_once(x) or isinstance(narrow, Constant)):
        return None
    moved: Operand = rewriter.with_inputs(node, narrow)
    if isinstance(narrow, Constant):
        last = rewriter.producer(moved)
        assert last is not None, "it has just been added"
        moved = (fold_node(last) or (moved,))[0]
    attrs = {**inner.attrs, "axis": axis}
    return (rewriter.add("dequantize", moved, *inner.inputs[1:], **attrs),)


def _axis_after(inner: Node, move: Node) -> int | None:
    """Return the axis of scales after a movement; None if it is not one of the result."""
    if is_whole(inner):
        return 0
    axes, axis, rank = move.attrs.get("axes"), inner.attrs["axis"], inner.output.type.rank
    if move.op != "permute_dims" or not isinstance(axis, int):
        return None
    order = axes if isinstance(axes, tuple) else tuple(range(rank))[::-1]
    return [a % rank for a in order if isinstance(a, int)].index(axis % rank)


def _quantized(node: Node, rewriter: Rewriter) -> Replacement:
    """Return bytes that would be quantized again, or quantize before movements."""
    x = node.operands[0]
    if not is_whole(node) or node.attrs["block_size"]:
        return None
    inner = bytes_made_float(x, rewriter)
    if inner is not None and _is_inverse(inner, node):
        return (inner.operands[0],)
    chain = _chain_before(x, rewriter)
    if not chain or _operand(chain[-1]).type.rank < 1:
        return None
    x = _operand(chain[-1])
    for each in reversed(chain):
        if each.op not in MOVES:
            operands = [x if y is _operand(each) else y for y in each.inputs]
            x = rewriter.with_inputs(each, *operands)
    x = rewriter.add("quantize", x, *node.inputs[1:], **{**node.attrs, "axis": 0})
    for each in reversed(chain):
        if each.op in MOVES:
            x = rewriter.with_inputs(each, x)
    return (x,)


def _chain_before(x: Operand, rewriter: Rewriter) -> list[Node]:
    """Return the movements that make a value and maps by numbers among them, the last one first."""
    chain: list[Node] = []
    node = rewriter.producer(x)
    while node is not None and rewriter.is_read_once(x):
        if node.op not in MOVES and not _is_map_by_number(node):
            break
        chain.append(node)
        x = _operand(node)
        node = rewriter.producer(x)
    while chain and chain[-1].op not in MOVES:
        chain.pop()
    return chain


def _is_map_by_number(node: Node) -> bool:
    numbers = [x for x in node.operands if isinstance(x, Constant) and number(x) is not None]
    return node.op in _NUMBER_MAPS and len(numbers) == 1 and numbers[0].type.rank <= 1


def _operand(node: Node) -> Operand:
    """Return the only operand that is not constant."""
    [operand] = [x for x in node.operands if not isinstance(x, Constant)]
    return operand


def _is_inverse(inner: Node, node: Node) -> bool:
    """Return whether a quantization gives back the bytes that floats were made of."""
    if inner.operands[0].type != node.output.type or not is_whole(inner):
        return False
    scales = number(inner.operands[1]), number(node.operands[1])
    points = known_integer(zero_point_of(inner)), known_integer(zero_point_of(node))
    if scales[0] is None or points[0] is None:
        return False
    low, high = _EXACT_SCALES
    return scales[0] == scales[1] and points[0] == points[1] and low <= scales[0] <= high

"""The shape of an operator: how workloads of one operator differ, and by how much.

Stores keep operators' keys and shapes: a change of this computation must update those, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from compiler.ir.analysis.structural import operator_hash
from compiler.ir.core.nodes import BinOp, BlockRealize, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.target.target import Target

Numbers: TypeAlias = tuple[int, ...]
_SCALING = frozenset({"*", "//", "%"})


@dataclass(frozen=True)
class Shape:
    """The numbers that an operator leaves open.

    Attributes:
        operator: What all shapes of the operator share; see `operator_hash`.
        blocks: The extents of the iterators of each block, in the order of the program.
        factors: The integers that others are multiplied with or divided by, in that order, such as
            the stride of a convolution.
    """

    operator: str
    blocks: tuple[Numbers, ...]
    factors: Numbers

    def to_json(self) -> dict[str, object]:
        """Return what is kept beside the operator's key."""
        return {"blocks": [list(b) for b in self.blocks], "factors": list(self.factors)}

    def in_words(self) -> str | None:
        """Return the extents of the largest block, such as `512 x 512 x 512`; none without any."""
        largest = max(self.blocks, key=math.prod, default=())
        return " x ".join(map(str, largest)) or None


def shape_of(func: PrimFunc) -> Shape:
    """Return the shape of a program; extents that are symbolic count as 1."""
    blocks: list[Numbers] = []
    factors: list[int] = []
    for node in walk(func.root.body):
        match node:
            case BlockRealize(block=block):
                extents = (iter_var.extent for iter_var in block.iter_vars)
                blocks.append(tuple(e.value if isinstance(e, IntImm) else 1 for e in extents))
            case BinOp(op, lhs, rhs) if op in _SCALING:
                factors += [abs(e.value) for e in (lhs, rhs) if isinstance(e, IntImm) and e.value]
            case _:
                pass
    return Shape(operator_hash(func), tuple(blocks), tuple(factors))


def shape_from_json(operator: str, obj: Mapping[str, Any]) -> Shape:
    """Return the shape that `Shape.to_json` wrote."""
    return Shape(operator, tuple(tuple(b) for b in obj["blocks"]), tuple(obj["factors"]))


def distance(first: Shape, second: Shape) -> float:
    """Return how far apart two shapes are, in doublings; infinity for two operators.

    The distance of two blocks is the sum over their iterators of |log2| of the ratio of extents;
    that of two programs is the mean over blocks, weighted by the share of points that a block has
    (the mean of both programs' shares), and the sum over the factors of |log2| of their ratio. So a
    product with twice the rows is 1 away, and so is a convolution with twice the stride.
    """
    is_same = (
        first.operator == second.operator
        and [*map(len, first.blocks)] == [*map(len, second.blocks)]
        and len(first.factors) == len(second.factors)
    )
    if not is_same:
        return math.inf
    weights = zip(_shares(first), _shares(second), strict=True)
    block_distances = [_doublings(a, b) for a, b in zip(first.blocks, second.blocks, strict=True)]
    blocks = sum((w + v) / 2 * d for (w, v), d in zip(weights, block_distances, strict=True))
    return blocks + _doublings(first.factors, second.factors)


def target_distance(first: Target, second: Target) -> float:
    """Return the distance of two targets in doublings of the cores; infinite if labels differ."""
    if first.timing_label != second.timing_label:
        return math.inf
    return abs(math.log2(first.num_cores / second.num_cores))


def _shares(shape: Shape) -> list[float]:
    points = [math.prod(block) for block in shape.blocks]
    return [p / max(sum(points), 1) for p in points]


def _doublings(first: Numbers, second: Numbers) -> float:
    # An extent of zero, which some program may have, is a half.
    pairs = zip(first, second, strict=True)
    return sum(abs(math.log2(max(a, 0.5) / max(b, 0.5))) for a, b in pairs)

"""Operators whose results have shapes that depend on values: only those of constants are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Operand
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.limits import MAX_FOLDED_PAIRS
from compiler.graph.read_onnx.registry import onnx_operator


@onnx_operator("NonZero")
def _non_zero(call: OnnxCall) -> Operand:
    x = call.constant_of(0, "the tensor whose elements decide the shape of the result")
    return call.constant(np.stack(np.nonzero(np.atleast_1d(x))).astype(np.int64))


@onnx_operator("Unique")
def _unique(call: OnnxCall) -> Sequence[Operand]:
    x = call.constant_of(0, "the tensor whose elements decide the shape of the result")
    axis = call.int_attr("axis") if "axis" in call.attributes else None
    if axis is not None and not -x.ndim <= axis < x.ndim:
        raise ModelError(f"axis {axis} of {call.type(0)}")
    values, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    if not call.int_attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=axis or 0)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse]
    numbers = (first, inverse.reshape(-1), counts)
    return [call.constant(values), *(call.constant(n.astype(np.int64)) for n in numbers)]


@onnx_operator("NonMaxSuppression")
def _non_max_suppression(call: OnnxCall) -> Operand:
    boxes = call.constant_of(0, "the tensor of boxes, which decides the shape of the result,")
    scores = call.constant_of(1, "the tensor of scores, which decides the shape of the result,")
    if (
        boxes.ndim != 3
        or scores.ndim != 3
        or boxes.shape[2] != 4
        or boxes.shape[:2] != (scores.shape[0], scores.shape[2])
    ):
        raise ModelError(f"boxes {boxes.shape} and scores {scores.shape} do not fit")
    if scores.size * scores.shape[2] > MAX_FOLDED_PAIRS:
        raise ModelError(f"scores {scores.shape} are too many")
    corners = _corners(boxes.astype(np.float64), call.int_attr("center_point_box", 0))
    limit = int(_scalar(call, 2, 0))
    least = _scalar(call, 4, -np.inf)
    rows = [
        (batch, of, box)
        for batch, of in np.ndindex(*scores.shape[:2])
        for box in _kept(corners[batch], scores[batch, of], limit, _scalar(call, 3, 0), least)
    ]
    return call.constant(np.array(rows, np.int64).reshape(-1, 3))


def _scalar(call: OnnxCall, position: int, default: float) -> float:
    if not call.has(position):
        return default
    return float(call.scalar_of(position, f"operand {position}"))


def _corners(boxes: Array, center_point_box: int) -> Array:
    """Return the smaller and the larger coordinates of boxes: extents (..., 4)."""
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([middle - half, middle + half], axis=-1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=-1)


def _kept(
    corners: Array, scores: Array, limit: int, threshold: float, least: float
) -> Iterator[int]:
    """Yield the boxes of the highest scores that overlap no earlier one too much."""
    order = np.argsort(-scores, kind="stable")
    remaining = order[scores[order] > least]
    areas = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    for _ in range(min(limit, len(remaining))):
        if not len(remaining):
            return
        box, remaining = remaining[0], remaining[1:]
        yield int(box)
        low = np.maximum(corners[remaining, :2], corners[box, :2])
        high = np.minimum(corners[remaining, 2:], corners[box, 2:])
        shared = np.prod(np.maximum(high - low, 0), axis=1)
        union = areas[remaining] + areas[box] - shared
        remaining = remaining[shared <= threshold * union]

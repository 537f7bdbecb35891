"""Images of another size: Resize of all versions, and Upsample. Images sampled at positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Operand
from compiler.graph.operators.axes import check_axis
from compiler.graph.read_onnx.call import OnnxCall
from compiler.graph.read_onnx.registry import onnx_operator
from compiler.ir.core.dtypes import is_float

_METHODS = {"nearest": "nearest_neighbor", "linear": "linear", "cubic": "cubic"}
_MANY_MODES = 11
"""Before this version of Resize there was one mode, and the nearest element was another."""
_CROP = "tf_crop_and_resize"


@dataclass(frozen=True)
class _Line:
    """One axis: its size in the result, the factor of its positions, and the part of the image."""

    size: int
    scale: float
    begin: float = 0.0
    end: float = 1.0


@onnx_operator("Resize", "Upsample")
def _resize(call: OnnxCall) -> Operand:
    x = call.operand(0)
    mode = call.string_attr("coordinate_transformation_mode", "half_pixel")
    if call.opset < _MANY_MODES or call.op_type == "Upsample":
        mode = "asymmetric"
    lines = _lines(call, mode)
    shape = call.static_type(0).static_shape
    resized = [axis for axis, line in enumerate(lines) if line != _Line(shape[axis], 1.0)]
    if not resized:
        return x
    if x.type.rank in {3, 4, 5} and min(resized) >= 2:
        return _resized(call, x, lines[2:], mode)
    if len(resized) > 3:
        raise ModelError(f"{len(resized)} axes are resized: expected 3 or fewer")
    others = [axis for axis in range(x.type.rank) if axis not in resized]
    order = (*others, *resized)
    moved = call.add("permute_dims", x, axes=order)
    outer = tuple(shape[axis] for axis in others)
    space = tuple(shape[axis] for axis in resized)
    images = call.add("reshape", moved, shape=(1, math.prod(outer), *space))
    images = _resized(call, images, [lines[axis] for axis in resized], mode)
    moved = call.add("reshape", images, shape=(*outer, *images.type.shape[2:]))
    return call.add("permute_dims", moved, axes=tuple(int(k) for k in np.argsort(order)))


def _resized(call: OnnxCall, images: Operand, lines: Sequence[_Line], mode: str) -> Operand:
    method = call.string_attr("mode", "nearest")
    dtype = images.type.dtype
    if method not in _METHODS:
        raise ModelError(f"the mode is {method!r}: expected {', '.join(_METHODS)}")
    if method != "nearest" and not is_float(dtype):
        images = call.add("astype", images, dtype="float32")
    roi = (*(line.begin for line in lines), *(line.end for line in lines))
    result = call.add(
        f"image.resize{len(lines)}d",
        images,
        size=tuple(line.size for line in lines),
        scales=tuple(line.scale for line in lines),
        roi=roi if mode == _CROP else (),
        method=_METHODS[method],
        coordinate_transformation_mode=mode,
        rounding_method=_rounding(call, lines),
        cubic_alpha=call.float_attr("cubic_coeff_a", -0.75),
        cubic_exclude=bool(call.int_attr("exclude_outside", 0)),
        extrapolation_value=call.float_attr("extrapolation_value", 0.0),
        antialias=bool(call.int_attr("antialias", 0)),
    )
    if result.type.dtype == dtype:
        return result
    limits = np.iinfo(dtype)
    rounded = call.add("round", result)
    clipped = call.add("clip", rounded, min=float(limits.min), max=float(limits.max))
    return call.add("astype", clipped, dtype=dtype)


def _rounding(call: OnnxCall, lines: Sequence[_Line]) -> str:
    if call.opset >= _MANY_MODES:
        return call.string_attr("nearest_mode", "round_prefer_floor")
    # ONNX does not say it for these versions; this is what onnxruntime does.
    return "ceil" if all(line.scale <= 1 for line in lines) else "floor"


def _lines(call: OnnxCall, mode: str) -> list[_Line]:
    """Return all axes of the operand."""
    shape = call.static_type(0).static_shape
    given = call.ints_attr("axes", range(len(shape)))
    axes = [check_axis(call.op_type, axis, len(shape)) for axis in given]
    extents = [shape[axis] for axis in axes]
    sizes, scales = _sizes(call, extents)
    regions = _numbers(call, 1, "the region") if mode == _CROP else None
    if regions is None or not regions.size:
        regions = np.repeat([0.0, 1.0], len(axes))
    if not len(axes) == len(sizes) == len(scales) == len(regions) / 2:
        raise ModelError(
            f"{len(axes)} axes have {len(sizes)} sizes or scales, and a region of {len(regions)}"
            " numbers"
        )
    lines = [_Line(extent, 1.0) for extent in shape]
    for k, axis in enumerate(axes):
        begin, end = float(regions[k]), float(regions[k + len(axes)])
        lines[axis] = _Line(sizes[k], scales[k], begin, end)
    return lines


def _sizes(call: OnnxCall, extents: Sequence[int]) -> tuple[list[int], list[float]]:
    """Return the size and the scale of each resized axis."""
    sizes = _numbers(call, 3, "the sizes")
    if sizes is not None and sizes.size:
        return _by_policy(call, [int(size) for size in sizes], extents)
    position = 1 if call.opset < _MANY_MODES or call.op_type == "Upsample" else 2
    if "scales" in call.attributes:
        scales: Array | None = np.array(call.floats_attr("scales"), np.float32)
    else:
        scales = _numbers(call, position, "the scales")
    if scales is None or len(scales) != len(extents) or not (scales > 0).all():
        raise ModelError(f"the scales of {len(extents)} axes are {scales}")
    # As ONNX infers the shape: in float32.
    rounded = np.floor(np.array(extents, np.float32) * scales.astype(np.float32))
    return [int(size) for size in rounded], [float(scale) for scale in scales]


def _by_policy(
    call: OnnxCall, sizes: Sequence[int], extents: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Return sizes and scales, which are equal for all axes if the ratio of extents remains."""
    if len(sizes) != len(extents) or 0 in extents:
        raise ModelError(f"the sizes of {len(extents)} axes are {sizes}")
    scales = [size / extent for size, extent in zip(sizes, extents, strict=True)]
    policy = call.string_attr("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(sizes), scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [math.floor(scale * extent + 0.5) for extent in extents], [scale] * len(extents)


def _numbers(call: OnnxCall, position: int, what: str) -> Array | None:
    return call.constant_of(position, what) if call.has(position) else None


_SAMPLING = {"linear": "bilinear", "cubic": "bicubic"}


@onnx_operator("GridSample")
def _grid_sample(call: OnnxCall) -> Operand:
    mode = call.string_attr("mode", "linear")
    x, grid = call.operand(0), call.operand(1)
    if grid.type.dtype != x.type.dtype:
        grid = call.add("astype", grid, dtype=x.type.dtype)
    return call.add(
        "image.grid_sample",
        x,
        grid,
        method=_SAMPLING.get(mode, mode),
        padding_mode=call.string_attr("padding_mode", "zeros"),
        align_corners=bool(call.int_attr("align_corners", 0)),
    )


@onnx_operator("AffineGrid")
def _affine_grid(call: OnnxCall) -> Operand:
    """Return the positions that a matrix for each image maps the elements of images to.

    The body that ONNX gives for this operator fails for a single image, and divides by 0 along an
    axis of one element, if corners are aligned; PyTorch has 0 there.
    """
    theta = call.operand(0)
    size = call.ints("size", 1)
    assert size is not None, "the schema says so"
    rank = len(size) - 2
    if rank not in {2, 3} or min(size) < 1 or theta.type.shape != (size[0], rank, rank + 1):
        raise ModelError(
            f"the size of the images is {size}, and the matrices are {theta.type}: expected 4 or 5"
            " extents, and a matrix of 2 x 3 or 3 x 4 for each image"
        )
    is_aligned = bool(call.int_attr("align_corners", 0))
    call.check_size(*size[2:], rank + 1)
    # The grid counts the axes from the last.
    lines = [_centers(extent, is_aligned) for extent in size[2:]]
    axes = np.meshgrid(*lines, indexing="ij")[::-1]
    points = np.stack([*axes, np.ones_like(axes[0])], axis=-1).reshape(-1, rank + 1)
    columns = call.add("permute_dims", theta, axes=(0, 2, 1))
    mapped = call.add("matmul", call.constant(points.astype(theta.type.dtype)), columns)
    return call.add("reshape", mapped, shape=(size[0], *size[2:], rank))


def _centers(extent: int, is_aligned: bool) -> Array:
    """Return the centers of an axis; -1 and 1 are its outermost centers, or else its edges."""
    if is_aligned:
        return np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1)
    return (2 * np.arange(extent) + 1) / extent - 1

"""Convolve windows of 3 x 3 by transformed tiles: `winograd`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from compiler import te
from compiler.ir.analysis.error_budget import declared_budget
from compiler.ir.arith.extents import UNKNOWN, extent_or_unknown
from compiler.ir.core.dtypes import DType, epsilon
from compiler.ir.core.nodes import make_buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.interpret.tolerance import tolerance
from compiler.ir.text.names import unique
from compiler.ops.tensors.winograd import TileGrid, convolved_tiles
from compiler.ops.tensors.winograd_transforms import IMAGE, KERNEL, rounding_error
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.legality.whole_nest import require_whole_nest
from compiler.schedule.rewrite.window_convolution import (
    WindowConvolution,
    window_convolution,
)
from compiler.schedule.tree.tree import allocate_in, block_path, blocks, replace_at

NAMES = (
    "data_pad",
    "data_rows",
    "data_tiles",
    "kernel_turned",
    "kernel_rows",
    "kernel_tiles",
    "products",
    "product_rows",
    "product_tiles",
)
"""The names of the new blocks and of their buffers, in program order."""

_MAX_PROGRAMS = 64
"""Maximum number of transformed convolutions in memory: a search replays the same few. Chosen."""


def winograd(func: PrimFunc, block: str, tile: int) -> tuple[PrimFunc, tuple[str, ...]]:
    """Convolve an image with windows of 3 x 3 by tiles of 2 x 2 or 4 x 4 outputs.

    A tile of 2 x 2 takes 16 multiplications a channel instead of 36, and a tile of 4 x 4 takes 36
    instead of 144 (Lavin and Gray, "Fast algorithms for convolutional neural networks", CVPR 2016).
    The result is equal but for rounding, whose expected error `rounding_error` of
    `compiler.ops.tensors.winograd_transforms` states.

    Args:
        tile: The number of outputs of a tile in each dimension: 2 or 4.

    Requires:
        The block is a sum `O[b, o, y, x] += I[b, c, y + ry, x + rx] * W[o, c, ry, rx]` over windows
        of 3 x 3, with the dimensions of each buffer in any order. The extents are constant, and the
        type is float32 or float64. The block is alone under its loops, which are serial, and writes
        all of its buffer. The expected error is at most the tolerance of the program, and at most
        its attribute `error_budget`.

    Rewrites:
        for b, o, y, x, c, ry, rx:         for b, y, x, c: D[b, y, x, c] = I[b, c, y, x]
            O[b, o, y, x] += ...           for i, j, ty, tx, b, c: U[i, j, ...] = rows of D by B
                                           for i, j, c, o: V[i, j, c, o] = rows of W by G
                                      ->   for i, j, b, ty, tx, o, c:
                                               M[i, j, ...] += U[i, j, ...] * V[i, j, ...]
                                           for k, l, b, ty, tx, o: T[k, l, ...] = rows of M by A
                                           for b, o, y, x:
                                               O[b, o, y, x] = T[y % m, x % m, b, y // m, ...]

    Returns:
        The program, and the names of the new blocks: the image and the weights in another layout,
        the two steps of each transform and the products, in program order. The block that writes
        the output has the name of the old one.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("winograd", func)
    scope, site = scope_of_block(func, block, refuse)
    if tile not in IMAGE:
        raise refuse(f"tile is {tile}: expected 2 or 4", site.realize, "invalid_argument")
    convolution = _require_convolution(site, refuse)
    error = rounding_error(tile, convolution.extents["c"])
    _require_exactness(func, site, convolution.image.buffer.dtype, error, refuse)
    path = (*scope.path[:-1], *require_whole_nest(scope, site))
    used_names = {realize.block.name for realize in blocks(func)} | _buffer_names(func)
    names = tuple(unique(name, used_names) for name in NAMES)

    operands = tuple((o.axes, static_shape(o.buffer)) for o in convolution.operands)
    extents = tuple(convolution.extents.items())
    tiled = _tiled(operands, extents, convolution.image.buffer.dtype, tile, names, block)
    actual = dict(zip(tiled.buffers, (o.buffer for o in convolution.operands), strict=True))
    func = replace_at(func, path, replace_buffers(tiled.root.body, actual))
    for buffer in tiled.root.alloc_buffers:
        func = allocate_in(func, block_path(func, scope.realize.block.name, refuse), buffer)
    return func, names


def _buffer_names(func: PrimFunc) -> set[str]:
    allocated = (b for realize in blocks(func) for b in realize.block.alloc_buffers)
    return {buffer.name for buffer in (*func.buffers, *allocated)}


def _require_convolution(site: PlacedBlock, refuse: Refuse) -> WindowConvolution:
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    convolution = window_convolution(site.block)
    if convolution is None:
        reason = f"block {site.name} does not add products of an image and windows of 3 x 3, in"
        raise refuse(f"{reason} steps of one", site.realize, "block_kind")
    dtypes = {operand.buffer.dtype for operand in convolution.operands}
    if len(dtypes) > 1 or not dtypes <= {"float32", "float64"}:
        shown = ", ".join(sorted(dtypes))
        reason = f"block {site.name} computes with {shown}: expected float32 or float64 alone"
        raise refuse(reason, site.realize, "block_kind")
    sizes = [extent_or_unknown(size) for o in convolution.operands for size in o.buffer.shape]
    if UNKNOWN in (*sizes, *convolution.extents.values()):
        raise refuse(f"block {site.name} has extents that vary", site.realize, "loop_kind")
    for loop in site.loops:
        if loop.kind != "serial":
            reason = f"loop {loop.var.name} is {loop.kind}: expected serial loops"
            raise refuse(reason, loop, "loop_kind")
    return convolution


def _require_exactness(
    func: PrimFunc, site: PlacedBlock, dtype: DType, error: float, refuse: Refuse
) -> None:
    """Refuse if the expected error exceeds the error budget of a program.

    Args:
        error: The error in epsilons of the largest magnitude.
    """
    share = error * epsilon(dtype)
    budget = min(tolerance(func), declared_budget(func))
    if share > budget:
        reason = f"the expected error of block {site.name} is {share:.2g} of the largest magnitude"
        raise refuse(f"{reason}: expected at most {budget:.2g}", site.realize, "not_proved")


@lru_cache(maxsize=_MAX_PROGRAMS)
def _tiled(  # noqa: PLR0917
    operands: tuple[tuple[str, tuple[int, ...]], ...],
    extents: tuple[tuple[str, int], ...],
    dtype: DType,
    tile: int,
    names: tuple[str, ...],
    block: str,
) -> PrimFunc:
    """Return a function of the image, the weights and the output that convolves by tiles.

    Args:
        operands: The axes and the shape of each operand.
        extents: The extents of the iterators by their names.
        dtype: The type of all elements.
        tile: The number of outputs of a tile in each dimension.
        names: The names of the blocks but the last one.
        block: The name of the block that writes the output.
    """
    (image_axes, image_shape), (weight_axes, weight_shape), (output_axes, _) = operands
    image, weight = (
        te.Tensor(make_buffer(name, shape, dtype))
        for name, shape in (("image", image_shape), ("weight", weight_shape))
    )
    size = dict(extents)
    grid = TileGrid.over(tile, (size["y"], size["x"]))
    used = [count + KERNEL - 1 for count in (size["y"], size["x"])]

    def pixel(*index: te.Value) -> te.Value:
        bounds = zip(index[1:3], used, grid.image_shape, strict=True)
        inside = [position < end for position, end, whole in bounds if end < whole]
        value = _at(image, image_axes, "byxc", index)
        return te.if_then_else(te.all(*inside), value, 0.0) if inside else value

    turned_image = te.compute((size["b"], *grid.image_shape, size["c"]), pixel, name=names[0])
    turned_weight = te.compute(
        (KERNEL, KERNEL, size["c"], size["o"]),
        lambda *index: _at(weight, weight_axes, "pqco", index),
        name=names[3],
    )
    by_name = dict(zip(NAMES, names, strict=True))
    tiles = convolved_tiles(turned_image, turned_weight, grid, naming=by_name.__getitem__)

    def element(*index: te.Value) -> te.Value:
        at = dict(zip(output_axes, index, strict=True))
        y, x = at["y"], at["x"]
        return tiles[y % tile, x % tile, grid.number(at["b"], y, x), at["o"]]

    output = te.compute(tuple(size[axis] for axis in output_axes), element, name=block)
    return te.create_prim_func([image, weight, output])


def _at(tensor: te.Tensor, axes: str, names: str, index: Sequence[te.Value]) -> te.Value:
    """Return the element of a tensor with some axes at the values of these axes by their names."""
    at = dict(zip(names, index, strict=True))
    return tensor[tuple(at[axis] for axis in axes)]

"""Winograd convolutions: fewer multiplications for 3 x 3 windows.

Lavin and Gray, "Fast algorithms for convolutional neural networks" (CVPR 2016): a tile of m x m
outputs of a 3 x 3 window takes (m + 2)^2 multiplications a channel instead of 9 m^2. That is 2.25
times fewer for m = 2, and 4 times for m = 4. The transformed operands are rounded, so the result
differs from that of a plain convolution. In float32, over uniform data and 64 channels, the largest
error against float64, relative to the largest result, was measured as 9e-7 for a plain sum of 576
products, 3e-7 for m = 2, whose sums are shorter, and 6e-6 for m = 4. So this is a separate
operator. The primitive `winograd` makes the same tiles of a convolution that allows their error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from compiler import te
from compiler.ops.error import Numbers, OperatorError
from compiler.ops.tensors.epilogue import apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import windows
from compiler.ops.tensors.winograd_transforms import IMAGE, KERNEL, PRODUCTS, WEIGHTS, Matrix

Naming: TypeAlias = Callable[[str], str]
"""Makes unique names of tensors."""


@dataclass(frozen=True, slots=True)
class TileGrid:
    """The tiles that cover the outputs of a convolution.

    Attributes:
        tile: The number of outputs of a tile in each dimension.
        rows: The number of tiles along the height.
        columns: The number of tiles along the width.
    """

    tile: int
    rows: int
    columns: int

    @classmethod
    def over(cls, tile: int, count: Sequence[int]) -> TileGrid:
        """Return the tiles over a number of outputs in each dimension."""
        rows, columns = (-(-outputs // tile) for outputs in count)
        return cls(tile, rows, columns)

    @property
    def points(self) -> int:
        """Return the extent of a transformed tile in each dimension."""
        return self.tile + KERNEL - 1

    @property
    def image_shape(self) -> tuple[int, int]:
        """Return the height and the width of the image that all tiles read."""
        return self.rows * self.tile + KERNEL - 1, self.columns * self.tile + KERNEL - 1

    def number(self, b: te.Value, y: te.Value, x: te.Value) -> te.Value:
        """Return the number of the tile of an output of an image."""
        return (b * self.rows + y // self.tile) * self.columns + x // self.tile


def conv2d_winograd(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    *,
    padding: Numbers = 0,
    tile: int = 2,
    activation: str | None = None,
) -> te.Tensor:
    """Convolve `data[n, ci, h, w]` with `weight[co, ci, 3, 3]` in steps of one, by tiles.

    Args:
        data: The image, of float32 or float64.
        weight: The kernels.
        bias: `[co]`, added to each channel.
        padding: The number of zeros on each side; see `ops.conv2d`.
        tile: The number of outputs of a tile in each dimension: 2, or 4, which is faster and
            less exact.
        activation: The function applied last; see `ops.matmul`.

    Raises:
        OperatorError: If a shape, a type or an option does not fit.
    """
    operator = "conv2d_winograd"
    if tile not in IMAGE:
        raise OperatorError(f"{operator}: tile is {tile!r}: expected 2 or 4")
    if data.dtype not in ("float32", "float64"):
        raise OperatorError(
            f"{operator}: type {data.dtype!r} is not supported: expected float32 or float64"
        )
    check_same_dtype(operator, data, weight)
    n, ci, h, w = dims_of(operator, data, 4)
    co = dims_of(operator, weight, 4)[0]
    check_dims(operator, weight, (co, ci, KERNEL, KERNEL))
    window = windows(operator, (h, w), KERNEL, 1, padding, 1)
    types = check_types(operator, data.dtype, None, None)
    grid = TileGrid.over(tile, window.count)
    top, left = window.before

    def padded(b: te.Value, y: te.Value, x: te.Value, c: te.Value) -> te.Value:
        inside = te.all(y >= top, y < h + top, x >= left, x < w + left)
        return te.if_then_else(inside, data[b, c, y - top, x - left], 0.0)

    image = te.compute((n, *grid.image_shape, ci), padded, name="data_pad")
    kernel = te.compute(
        (KERNEL, KERNEL, ci, co), lambda y, x, c, o: weight[o, c, y, x], name="kernel_turned"
    )
    tiles = convolved_tiles(image, kernel, grid)
    total = te.compute(
        (n, co, *window.count),
        lambda b, o, y, x: tiles[y % tile, x % tile, grid.number(b, y, x), o],
        name=operator,
    )
    return apply_epilogue(operator, total, 1, types, bias, activation)


def convolved_tiles(
    image: te.Tensor, kernel: te.Tensor, grid: TileGrid, naming: Naming = str
) -> te.Tensor:
    """Return the tiles of outputs, as `[y, x, number of the tile, co]`.

    Channels come last inside, so that all steps vectorize along them. The tiles of all images are
    numbered row by row, so that the products are one batch of matrix products.

    Args:
        image: The image as `[n, height, width, ci]`, of the height and width of the grid.
        kernel: The weights as `[3, 3, ci, co]`.
        grid: The tiles.
        naming: Makes the names of the tensors.
    """
    image_tiles = _image_tiles(image, grid, naming)
    products = _products(image_tiles, _kernel_tiles(kernel, grid, naming), naming)
    return _output_tiles(products, grid, naming)


def _image_tiles(image: te.Tensor, grid: TileGrid, naming: Naming) -> te.Tensor:
    """Return the transformed tiles of the image."""
    n, _, width, ci = image.shape
    tile, points, rows, columns = grid.tile, grid.points, grid.rows, grid.columns
    by_rows = te.compute(
        (points, n, rows, width, ci),
        lambda i, b, y, x, c: _row(IMAGE[tile], i, lambda k: image[b, y * tile + k, x, c]),
        name=naming("data_rows"),
    )

    def at(p: te.Value) -> tuple[te.Value, te.Value]:
        return p // (rows * columns), p // columns % rows

    return te.compute(
        (points, points, n * rows * columns, ci),
        lambda i, j, p, c: _row(
            IMAGE[tile], j, lambda k: by_rows[(i, *at(p), p % columns * tile + k, c)]
        ),
        name=naming("data_tiles"),
    )


def _kernel_tiles(kernel: te.Tensor, grid: TileGrid, naming: Naming) -> te.Tensor:
    """Return the transformed kernels, with the output channels last."""
    _, _, ci, co = kernel.shape
    transform, points = WEIGHTS[grid.tile], grid.points
    by_rows = te.compute(
        (points, KERNEL, ci, co),
        lambda i, x, c, o: _row(transform, i, lambda k: kernel[k, x, c, o]),
        name=naming("kernel_rows"),
    )
    return te.compute(
        (points, points, ci, co),
        lambda i, j, c, o: _row(transform, j, lambda k: by_rows[i, k, c, o]),
        name=naming("kernel_tiles"),
    )


def _products(image_tiles: te.Tensor, kernel_tiles: te.Tensor, naming: Naming) -> te.Tensor:
    """Return the product of images and kernels at each point of a tile, summed over channels."""
    *dims, ci = image_tiles.shape
    co = kernel_tiles.shape[-1]
    rc = te.reduce_axis((0, ci), name="rc")
    return te.compute(
        (*dims, co),
        lambda i, j, p, o: te.sum(image_tiles[i, j, p, rc] * kernel_tiles[i, j, rc, o], axis=rc),
        name=naming("products"),
    )


def _output_tiles(products: te.Tensor, grid: TileGrid, naming: Naming) -> te.Tensor:
    """Return the tiles of outputs that the products of transformed operands stand for."""
    _, points, *dims = products.shape
    transform, tile = PRODUCTS[grid.tile], grid.tile
    by_rows = te.compute(
        (tile, points, *dims),
        lambda i, j, p, o: _row(transform, i, lambda k: products[k, j, p, o]),
        name=naming("product_rows"),
    )
    return te.compute(
        (tile, tile, *dims),
        lambda i, j, p, o: _row(transform, j, lambda k: by_rows[i, k, p, o]),
        name=naming("product_tiles"),
    )


def _row(matrix: Matrix, index: te.Value, element: Callable[[int], te.Value]) -> te.Value:
    """Return the product of a row of a matrix of constants with a vector of elements."""
    sums = [_combined(row, element) for row in matrix]
    chosen = sums[-1]
    for number in range(len(sums) - 2, -1, -1):
        chosen = te.if_then_else(index == number, sums[number], chosen)
    return chosen


def _combined(factors: Sequence[Fraction], element: Callable[[int], te.Value]) -> te.Value:
    terms = [
        element(number) if factor == 1 else element(number) * float(factor)
        for number, factor in enumerate(factors)
        if factor
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total

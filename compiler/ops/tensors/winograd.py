"""Winograd convolutions: fewer multiplications for 3 x 3 windows.

Lavin and Gray, "Fast algorithms for convolutional neural networks" (CVPR 2016): a tile of m x m
outputs of a 3 x 3 window takes (m + 2)^2 multiplications a channel instead of 9 m^2. That is 2.25
times fewer for m = 2, and 4 times for m = 4. The transformed operands are rounded, so the result
differs from that of a plain convolution. In float32, over uniform data and 64 channels, the largest
error against float64, relative to the largest result, was measured as 9e-7 for a plain sum of 576
products, 3e-7 for m = 2, whose sums are shorter, and 6e-6 for m = 4. So this is a separate
operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler import te
from compiler.ops.error import Numbers, OperatorError
from compiler.ops.tensors.epilogue import apply_epilogue, check_types
from compiler.ops.tensors.operands import check_dims, check_same_dtype, dims_of
from compiler.ops.tensors.windows import windows

Matrix = tuple[tuple[float, ...], ...]
KERNEL = 3

# By the extent of a tile: the transforms of the image, the weights, and the products.
_IMAGE: dict[int, Matrix] = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
_WEIGHTS: dict[int, Matrix] = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}
_PRODUCTS: dict[int, Matrix] = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
}


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
    if tile not in _IMAGE:
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
    rows, columns = (-(-count // tile) for count in window.count)
    image_tiles = _image_tiles(data, tile, (rows, columns), window.before)
    tiles = _output_tiles(_products(image_tiles, _kernel_tiles(weight, tile)), tile)
    total = te.compute(
        (n, co, *window.count),
        lambda b, o, y, x: tiles[y % tile, x % tile, b, y // tile, x // tile, o],
        name=operator,
    )
    return apply_epilogue(operator, total, 1, types, bias, activation)


def _image_tiles(
    data: te.Tensor, tile: int, counts: tuple[int, int], before: Sequence[int]
) -> te.Tensor:
    """Return the transformed tiles of the padded image.

    Channels come last inside, so that all steps but the first and last of the operator vectorize
    along them.

    Args:
        data: The image.
        tile: The number of outputs of a tile in each dimension.
        counts: The number of tiles in each dimension.
        before: The number of zeros before the image in each dimension.
    """
    n, ci, h, w = data.shape
    rows, columns = counts
    top, left = before
    points = tile + KERNEL - 1
    height, width = (count * tile + KERNEL - 1 for count in counts)

    def padded(b: te.Value, y: te.Value, x: te.Value, c: te.Value) -> te.Value:
        inside = te.all(y >= top, y < h + top, x >= left, x < w + left)
        return te.if_then_else(inside, data[b, c, y - top, x - left], 0.0)

    image = te.compute((n, height, width, ci), padded, name="data_pad")
    by_rows = te.compute(
        (points, n, rows, width, ci),
        lambda i, b, y, x, c: _row(_IMAGE[tile], i, lambda k: image[b, y * tile + k, x, c]),
        name="data_rows",
    )
    return te.compute(
        (points, points, n, rows, columns, ci),
        lambda i, j, b, y, x, c: _row(_IMAGE[tile], j, lambda k: by_rows[i, b, y, x * tile + k, c]),
        name="data_tiles",
    )


def _kernel_tiles(weight: te.Tensor, tile: int) -> te.Tensor:
    """Return the transformed kernels, with the output channels last."""
    co, ci, _, _ = weight.shape
    points = tile + KERNEL - 1
    turned = te.compute(
        (KERNEL, KERNEL, ci, co), lambda y, x, c, o: weight[o, c, y, x], name="kernel_turned"
    )
    by_rows = te.compute(
        (points, KERNEL, ci, co),
        lambda i, x, c, o: _row(_WEIGHTS[tile], i, lambda k: turned[k, x, c, o]),
        name="kernel_rows",
    )
    return te.compute(
        (points, points, ci, co),
        lambda i, j, c, o: _row(_WEIGHTS[tile], j, lambda k: by_rows[i, k, c, o]),
        name="kernel_tiles",
    )


def _products(image_tiles: te.Tensor, kernel_tiles: te.Tensor) -> te.Tensor:
    """Return the product of images and kernels at each point of a tile, summed over channels."""
    *dims, ci = image_tiles.shape
    co = kernel_tiles.shape[-1]
    rc = te.reduce_axis((0, ci), name="rc")
    return te.compute(
        (*dims, co),
        lambda i, j, b, y, x, o: te.sum(
            image_tiles[i, j, b, y, x, rc] * kernel_tiles[i, j, rc, o], axis=rc
        ),
        name="products",
    )


def _output_tiles(products: te.Tensor, tile: int) -> te.Tensor:
    """Return the tiles of outputs that the products of transformed operands stand for."""
    _, points, *dims = products.shape
    by_rows = te.compute(
        (tile, points, *dims),
        lambda i, j, b, y, x, o: _row(_PRODUCTS[tile], i, lambda k: products[k, j, b, y, x, o]),
        name="product_rows",
    )
    return te.compute(
        (tile, tile, *dims),
        lambda i, j, b, y, x, o: _row(_PRODUCTS[tile], j, lambda k: by_rows[i, k, b, y, x, o]),
        name="product_tiles",
    )


def _row(matrix: Matrix, index: te.Value, element: Callable[[int], te.Value]) -> te.Value:
    """Return the product of a row of a matrix of constants with a vector of elements."""
    sums = [_combined(row, element) for row in matrix]
    chosen = sums[-1]
    for number in range(len(sums) - 2, -1, -1):
        chosen = te.if_then_else(index == number, sums[number], chosen)
    return chosen


def _combined(factors: Sequence[float], element: Callable[[int], te.Value]) -> te.Value:
    terms = [
        element(number) if factor == 1 else element(number) * factor
        for number, factor in enumerate(factors)
        if factor
    ]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total

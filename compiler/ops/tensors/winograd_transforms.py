"""Winograd's transforms for windows of 3, and the rounding errors that they cause.

Lavin and Gray, "Fast algorithms for convolutional neural networks" (CVPR 2016): with the matrices
`A`, `G` and `B` of a tile of m outputs, the outputs of a window `g` over m + 2 elements `d` are
`A ((G g) * (B d))`, with m + 2 multiplications instead of 3 m. In two dimensions each matrix is
applied along both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]
KERNEL = 3


def _matrix(*rows: tuple[int, ...], divisors: tuple[int, ...] = ()) -> Matrix:
    """Return a matrix of integers, each row divided by a number."""
    by_row = divisors or (1,) * len(rows)
    return tuple(tuple(Fraction(n, d) for n in row) for row, d in zip(rows, by_row, strict=True))


IMAGE: Mapping[int, Matrix] = {
    2: _matrix((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: _matrix(
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
}
"""The transforms of the image, by the number of outputs of a tile along a dimension: `B`."""

WEIGHTS: Mapping[int, Matrix] = {
    2: _matrix((1, 0, 0), (1, 1, 1), (1, -1, 1), (0, 0, 1), divisors=(1, 2, 2, 1)),
    4: _matrix(
        (1, 0, 0),
        (-1, -1, -1),
        (-1, 1, -1),
        (1, 2, 4),
        (1, -2, 4),
        (0, 0, 1),
        divisors=(4, 6, 6, 24, 24, 1),
    ),
}
"""The transforms of the weights: `G`."""

PRODUCTS: Mapping[int, Matrix] = {
    2: _matrix((1, 1, 1, 0), (0, 1, -1, -1)),
    4: _matrix(
        (1, 1, 1, 1, 1, 0),
        (0, 1, -1, 2, -2, 0),
        (0, 1, 1, 4, 4, 0),
        (0, 1, -1, 8, -8, 1),
    ),
}
"""The transforms of the products: `A`."""


def amplification(tile: int) -> float:
    """Return the factor by which a relative error of the products is larger in an output.

    For independent elements of one variance, the transformed ones have the norms of the rows of
    `G` and `B` as deviations. An output is the sum of their products, weighted by `A`; its own
    deviation is that of a sum over the window. The factor is 1.7 for tiles of 2, and 31 for tiles
    of 4: that of the last row and column, where the other outputs have 3 to 10. Barabasz et al.,
    "Error analysis and improving the accuracy of Winograd convolution for deep neural networks"
    (ACM TOMS 2020), bound the error of any input by the norms of the same matrices.
    """
    deviations = [
        math.hypot(*image) * math.hypot(*weights)
        for image, weights in zip(IMAGE[tile], WEIGHTS[tile], strict=True)
    ]
    rows = (
        math.hypot(*(float(a) * d for a, d in zip(row, deviations, strict=True)))
        for row in PRODUCTS[tile]
    )
    return max(rows) ** 2 / KERNEL


def rounding_error(tile: int, channels: int) -> float:
    """Return the error to expect of a result, in epsilons of the largest magnitude.

    Each rounding moves a value by an even share of half an epsilon. The sum over channels adds one
    to each partial sum, of which half count on average; the transforms add at most as many as their
    matrices have columns, in both dimensions. Of many outputs, the largest error is about five
    deviations, and the largest magnitude more than two and a half. Measured errors are a third to a
    half of this.

    Args:
        tile: The number of outputs of a tile along a dimension.
        channels: The number of channels that are summed.
    """
    points = tile + KERNEL - 1
    roundings = channels / 2 + 2 * (points + KERNEL + points)
    deviation = 1 / (2 * math.sqrt(3)) * math.sqrt(roundings)
    return 5 / 2.5 * amplification(tile) * deviation

"""Winograd's transforms: an identity of rational numbers, and their rounding errors."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from compiler.ops.tensors.winograd_transforms import (
    IMAGE,
    KERNEL,
    PRODUCTS,
    WEIGHTS,
    Matrix,
    amplification,
    rounding_error,
)

TILES = (2, 4)


@pytest.mark.parametrize("tile", TILES)
def test_the_transforms_compute_a_convolution_exactly(tile: int) -> None:
    """Both sides are linear in windows and elements, so their coefficients decide."""
    points = tile + KERNEL - 1
    for output in range(tile):
        for position in range(KERNEL):
            for element in range(points):
                coefficient = sum(
                    PRODUCTS[tile][output][i] * WEIGHTS[tile][i][position] * IMAGE[tile][i][element]
                    for i in range(points)
                )
                assert coefficient == Fraction(element == output + position)


def test_a_wrong_transform_does_not_satisfy_the_identity() -> None:
    tile = 4
    points = tile + KERNEL - 1
    wrong = [list(row) for row in IMAGE[tile]]
    wrong[1][2] = -wrong[1][2]
    total = sum(PRODUCTS[tile][0][i] * WEIGHTS[tile][i][2] * wrong[i][2] for i in range(points))
    assert total != 1


@pytest.mark.parametrize(("tile", "factor"), [(2, 5 / 3), (4, 283 / 9)])
def test_the_amplification_is_that_of_the_norms(tile: int, factor: float) -> None:
    assert amplification(tile) == pytest.approx(factor)


def tiled(tile: int, image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the outputs of tiles `[n, c, y, x]`, in float32."""

    def matrix(rows: Matrix) -> np.ndarray:
        return np.array([[float(number) for number in row] for row in rows], np.float32)

    b, g, a = (matrix(transforms[tile]) for transforms in (IMAGE, WEIGHTS, PRODUCTS))
    image = b @ image @ b.T
    weights = g @ weights @ g.T
    total = np.zeros((len(image), *image.shape[2:]), np.float32)
    for channel in range(image.shape[1]):
        total += image[:, channel] * weights[channel]
    outputs: np.ndarray = a @ total @ a.T
    return outputs


@pytest.mark.parametrize("channels", [16, 64, 256])
@pytest.mark.parametrize("tile", TILES)
def test_errors_stay_below_the_expected_one(tile: int, channels: int) -> None:
    rng = np.random.default_rng(channels)
    points = tile + KERNEL - 1
    shapes = (200, channels, points, points), (channels, KERNEL, KERNEL)
    for operands in (
        [rng.standard_normal(shape) for shape in shapes],
        [rng.uniform(-1, 1, shape) for shape in shapes],
    ):
        image, weights = (operand.astype(np.float32) for operand in operands)
        exact = np.zeros((200, tile, tile))
        for y in range(KERNEL):
            for x in range(KERNEL):
                window = image[:, :, y : y + tile, x : x + tile].astype(np.float64)
                exact += np.einsum("ncyx,c->nyx", window, weights[:, y, x].astype(np.float64))
        error = np.abs(tiled(tile, image, weights) - exact).max() / np.abs(exact).max()
        expected = rounding_error(tile, channels) * np.finfo(np.float32).eps
        assert expected / 12 < error < expected

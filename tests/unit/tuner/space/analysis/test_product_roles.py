"""Rows, columns and sums of matrix products in all layouts, and what is no product."""

from __future__ import annotations

import itertools

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.product_roles import Product, find_product


def product_of(func: PrimFunc) -> Product | None:
    facts = [block_facts(site) for site in sites(func)]
    found = [find_product(f) for f in facts if f is not None]
    return next((product for product in found if product is not None), None)


@pytest.mark.parametrize(
    ("transpose_a", "transpose_b"), list(itertools.product((False, True), repeat=2))
)
def test_each_layout_has_its_dimensions(transpose_a: bool, transpose_b: bool) -> None:
    product = product_of(ops.matmul(8, 16, 32, transpose_a=transpose_a, transpose_b=transpose_b))
    assert product is not None
    assert product.tiled == (0, 1, 2)
    assert product.left.read.buffer == "A"
    assert product.right.read.buffer == "B"
    assert (product.left.across, product.left.along) == ((1, 0) if transpose_a else (0, 1))
    assert (product.right.across, product.right.along) == ((0, 1) if transpose_b else (1, 0))


def test_axes_of_a_batch_are_outside() -> None:
    product = product_of(ops.matmul(8, 16, 32, batch=3))
    assert product is not None
    assert product.tiled == (1, 2, 3)


@pytest.mark.parametrize(
    "func",
    [
        ops.matmul(8, 16, 4),  # a sum of 4 is too short for a tile
        ops.matmul(1, 16, 32),  # a vector has no rows
        ops.matmul(8, 1, 32),  # nor columns
        ops.conv2d(1, 16, 8, 8, 16, 3),  # three axes are summed over
        ops.relu(8, 8),
    ],
    ids=["short", "row", "column", "window", "relu"],
)
def test_other_blocks_are_no_product(func: PrimFunc) -> None:
    assert product_of(func) is None

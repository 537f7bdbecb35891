"""Image and weights of convolutions."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.operand_roles import OperandRoles, dimension, find_roles

LANES = 8


def roles_of(func: PrimFunc, cpu: str = "znver3") -> OperandRoles | None:
    facts = [block_facts(site) for site in sites(func)]
    found = [find_roles(f, CpuTarget(f"cpu -mcpu={cpu}")) for f in facts if f is not None]
    return next((roles for roles in found if roles is not None), None)


def test_windows_slide_over_the_image() -> None:
    roles = roles_of(ops.conv2d(1, 32, 14, 14, 64, 3, padding=1))
    assert roles is not None
    sizes = (roles.weights.size_bytes, roles.image.size_bytes)
    assert sizes == (64 * 32 * 3 * 3 * 4, 32 * 16 * 16 * 4)
    assert dimension(roles.weights, roles.vector) is not None
    assert dimension(roles.image, roles.channel) is not None
    assert dimension(roles.image, roles.vector) is None


def test_tiles_divide_their_axes() -> None:
    roles = roles_of(ops.conv2d(1, 48, 14, 14, 40, 3, padding=1))
    assert roles is not None
    assert roles.vector_tile % LANES == 0
    assert 40 % roles.vector_tile == 0
    assert 48 % roles.channel_tile == 0


@pytest.mark.parametrize(
    ("cpu", "size", "lanes"),
    [
        ("znver3", 14, 3 * 8),  # three vectors share the load of an element
        ("znver4", 14, 16),  # the multiply-add loads it; a vector is loaded in two parts
        ("znver4", 7, 16),
        ("znver4", 149, 16),  # tiles need not divide a prime number
        ("znver4", 1, 3 * 16),  # with one row, more vectors are more independent sums
        ("znver5", 14, 16),  # 28 rows hide all loads but one
        ("znver5", 7, 2 * 16),  # 7 would wait for loads
    ],
)
def test_a_tile_has_the_vectors_that_keep_the_units_busy(cpu: str, size: int, lanes: int) -> None:
    roles = roles_of(ops.conv2d(1, 48, size, size, 96, 3, padding=1), cpu)
    assert roles is not None
    assert roles.vector_tile == lanes


def test_bytes_are_not_read_by_dot_products_for_all_lanes() -> None:
    roles = roles_of(ops.from_spec("conv2d:1,48,14,14,96,3,1,1,out_dtype=int32:int8"), "znver4")
    assert roles is not None
    assert roles.vector_tile == 3 * 16


def test_few_channels_stay_contiguous() -> None:
    roles = roles_of(ops.conv2d(1, 3, 16, 16, 64, 3, padding=1))
    assert roles is not None
    assert roles.channel_tile == 1


def test_a_depthwise_convolution_has_no_such_roles() -> None:
    assert roles_of(ops.depthwise_conv2d(1, 32, 14, 14, 3, padding=1)) is None


def test_a_matrix_product_has_no_image() -> None:
    assert roles_of(ops.matmul(64, 64, 64)) is None

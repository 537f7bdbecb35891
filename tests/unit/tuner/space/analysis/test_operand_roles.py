"""Image and weights of convolutions."""

from __future__ import annotations

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.operand_roles import OperandRoles, dimension, find_roles

LANES, REGISTERS = 8, 16


def roles_of(func: PrimFunc) -> OperandRoles | None:
    facts = [block_facts(site) for site in sites(func)]
    found = [find_roles(f, LANES, REGISTERS) for f in facts if f is not None]
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


def test_few_channels_stay_contiguous() -> None:
    roles = roles_of(ops.conv2d(1, 3, 16, 16, 64, 3, padding=1))
    assert roles is not None
    assert roles.channel_tile == 1


def test_a_depthwise_convolution_has_no_such_roles() -> None:
    assert roles_of(ops.depthwise_conv2d(1, 32, 14, 14, 3, padding=1)) is None


def test_a_matrix_product_has_no_image() -> None:
    assert roles_of(ops.matmul(64, 64, 64)) is None

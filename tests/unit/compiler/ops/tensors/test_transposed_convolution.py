"""Transposed convolutions whose stride divides the kernel, and others."""

from __future__ import annotations

from math import prod

import pytest

from compiler import ops
from compiler.ir.analysis.flops import flops
from compiler.ir.core.nodes import IntImm
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs


@pytest.mark.parametrize(
    "options",
    [
        *("3,2,0", "3,2,2", "5,3,1,2", "1,2,0,1", "4x3,2,1x2,1x0", "3,2,1,1,bias=true"),
        *("4,2,1", "4,2,0,1", "6,2,3", "4,2,2", "2,2,0", "6,3,1", "6x4,3x2,5x1", "3x4,1x4,1x3"),
    ],
)
def test_each_result_is_the_sum_of_its_products(options: str) -> None:
    spec = f"conv2d_transpose:2,2,3,5,3,{options}"
    func = ops.from_spec(spec)
    inputs = random_inputs(func, 2)
    *given, output = func.buffers
    expected = ops.reference(spec)(*(inputs[b.name] for b in given))
    compare(func, {output.name: expected}, interpret(func, inputs))


@pytest.mark.parametrize("options", [(4, 2, 1), (4, 2, 0, 1), (6, 2, 2), (2, 2, 0), (9, 3, 3)])
def test_phases_compute_no_result_twice(options: tuple[int, ...]) -> None:
    func = ops.from_spec(f"conv2d_transpose:1,8,27,27,8,{','.join(map(str, options))}")
    result = [extent.value for extent in func.buffers[-1].shape if isinstance(extent, IntImm)]
    products = prod(result) * 8 * (options[0] // options[1]) ** 2
    padding = (1 + 1 / 27) ** 2  # of odd results: one of the phases ends a pixel earlier
    assert flops(func) <= 2 * products * padding


def test_each_pixel_is_multiplied_by_the_kernel_once() -> None:
    func = ops.conv2d_transpose(1, 8, 28, 28, 8, 3, 2, 1, 1)
    products, gathered = 8 * 8 * 28 * 28 * 9, 8 * 56 * 56 * 4
    assert flops(func) <= 2 * products + gathered

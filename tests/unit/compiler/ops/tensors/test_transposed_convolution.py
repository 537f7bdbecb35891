"""Transposed convolutions whose stride does not divide the kernel."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.analysis.flops import flops
from compiler.ir.interpret.oracle.oracle import compare, interpret, random_inputs


@pytest.mark.parametrize(
    "options", ["3,2,0", "3,2,2", "5,3,1,2", "1,2,0,1", "4x3,2,1x2,1x0", "3,2,1,1,bias=true"]
)
def test_each_result_is_the_sum_of_its_products(options: str) -> None:
    spec = f"conv2d_transpose:2,2,3,5,3,{options}"
    func = ops.from_spec(spec)
    inputs = random_inputs(func, 2)
    *given, output = func.buffers
    expected = ops.reference(spec)(*(inputs[b.name] for b in given))
    compare(func, {output.name: expected}, interpret(func, inputs))


def test_each_pixel_is_multiplied_by_the_kernel_once() -> None:
    func = ops.conv2d_transpose(1, 8, 28, 28, 8, 3, 2, 1, 1)
    num_products = 8 * 8 * 28 * 28 * 9
    assert flops(func) < 2 * num_products * 1.25

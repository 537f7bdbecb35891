"""Rates of tensor cores by GPU, instruction and type."""

from __future__ import annotations

import pytest

from compiler.target.gpus import GPUS
from compiler.target.matrix_rates import matrix_rate


@pytest.mark.parametrize(
    ("gpu", "operand", "is_warpgroup", "tera"),
    [
        ("h200", "bf16", True, 989),
        ("h200", "bf16", False, 0.64 * 989),
        ("h200", "e4m3", True, 1979),
        ("a100", "f16", False, 312),
        ("a100", "tf32", False, 156),
        ("a100", "s8", False, 624),  # no 8-bit floats, and twice the rate of 16 bits
        ("l40s", "s8", False, 733),
    ],
)
def test_rates_are_those_of_data_sheets(
    gpu: str, operand: str, is_warpgroup: bool, tera: float
) -> None:
    rate = matrix_rate(GPUS[gpu], operand, is_warpgroup=is_warpgroup)
    assert rate == pytest.approx(tera * 1e12)

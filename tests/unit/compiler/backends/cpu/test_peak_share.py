"""The peak of narrow types as a multiple of float32's."""

from __future__ import annotations

import pytest

from compiler.backends.backend import backend_of
from compiler.target.cpu import CpuTarget


@pytest.mark.parametrize(
    ("cpu", "dtype", "expected"),
    [
        ("znver3", "float64", 0.5),
        ("znver3", "bfloat16", 1.0),  # converted to float32
        ("znver3", "int8", None),  # vpmaddwd and an addition
        ("znver4", "bfloat16", 2.0),
        ("znver4", "int8", 4.0),
        ("neoverse-n1", "int8", 4.0),
        ("znver4", "int32", None),
    ],
)
def test_a_dot_product_counts_as_its_products(cpu: str, dtype: str, expected: float | None) -> None:
    target = CpuTarget(f"cpu -mcpu={cpu} -num-cores=1")
    assert backend_of(target).peak_share(target, dtype) == expected

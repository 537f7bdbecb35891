"""Functions of PyTorch as calls of kernels."""

from __future__ import annotations

import pytest

from compiler.ir.core.program import PrimFunc
from tests.unit.compiler.schedule.legality.test_library_operators import CONVOLUTIONS
from tests.unit.compiler.schedule.primitives.blocks.test_call_library import (
    PRODUCTS,
    check_call,
)

pytest.importorskip("torch", reason="this host has no PyTorch")


@pytest.mark.parametrize("func", PRODUCTS.values(), ids=PRODUCTS)
def test_a_call_computes_the_product(func: PrimFunc) -> None:
    check_call(func, "torch.matmul")


@pytest.mark.parametrize("func", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_a_call_computes_the_convolution(func: PrimFunc) -> None:
    check_call(func, "torch.conv2d")

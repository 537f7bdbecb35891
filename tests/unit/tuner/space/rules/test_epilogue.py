"""Which blocks run on finished tiles of another block."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ops import tensors
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.generate import design_space
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder
from tuner.task import Task


def convolution(window: int, batch: int = 1) -> PrimFunc:
    """Return a convolution, with a bias and a residual sum as operators of their own.

    A sum that is broadcast reads its operands at the index 0 along axes of one element.
    """
    image = te.placeholder((batch, 8, 8, 8), name="image")
    weights = te.placeholder((16, 8, window, window), name="weights")
    bias = te.placeholder((16, 1, 1), name="bias")
    residual = te.placeholder((batch, 16, 8, 8), name="residual")
    result = tensors.conv2d(image, weights, padding=window // 2)
    total = tensors.relu(tensors.add(tensors.add(result, bias), residual))
    return te.create_prim_func([image, weights, bias, residual, total], "convolution")


def product(read: Callable[[te.Value, te.Value], tuple[te.Value | int, ...]]) -> PrimFunc:
    """Return a product of square matrices, and another block that reads it."""
    a, b = te.placeholder((16, 16), name="a"), te.placeholder((16, 16), name="b")
    k = te.reduce_axis((0, 16), "k")
    c = te.compute((16, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="product")
    d = te.compute((16, 16), lambda i, j: c[read(i, j)] + a[i, j], name="consumer")
    return te.create_prim_func([a, b, d], "product")


def epilogue(func: PrimFunc) -> str | None:
    (draft,) = AutoInline().apply(SketchBuilder.begin(func, level(3)))
    (product,) = (facts for facts in draft.block_facts().values() if facts.is_reduction)
    return elementwise_consumer(draft, product)


@pytest.mark.parametrize("batch", [1, 2])
def test_sums_over_a_batch_are_an_epilogue(batch: int) -> None:
    assert epilogue(convolution(1, batch)) is not None


def test_a_block_that_reads_other_elements_is_no_epilogue() -> None:
    assert epilogue(product(lambda i, j: (i, j))) == "consumer"
    assert epilogue(product(lambda i, j: (j, i))) is None
    assert epilogue(product(lambda _, j: (0, j))) is None


@pytest.mark.parametrize("window", [1, 3])
def test_every_candidate_with_sums_over_a_batch_of_one_is_correct(window: int) -> None:
    func = convolution(window)
    space = design_space(Task(func, here()))
    check_candidates(func, space, each=3)

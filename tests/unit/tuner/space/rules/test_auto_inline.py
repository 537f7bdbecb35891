"""Elementwise blocks that are inlined."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import space_of
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.task import Task


def test_a_chain_of_elementwise_blocks_becomes_one() -> None:
    a = te.placeholder((64,), "float32", name="A")
    b = te.compute((64,), lambda i: a[i] + 1, name="B")
    c = te.compute((64,), lambda i: b[i] * 2, name="C")
    d = te.compute((64,), lambda i: te.max(c[i], 0), name="D")
    func = te.create_prim_func([a, d])
    (sketch,) = space_of(func).sketches
    assert sketch.name == "spatial"
    scheduled = sketch.trace.apply_to(func).func
    assert [site.block.name for site in sites(scheduled)] == ["D"]


def test_what_a_reduction_reads_again_is_not_inlined() -> None:
    """It would be computed again at each step."""
    a = te.placeholder((8, 16), "float32", name="A")
    w = te.placeholder((16, 8), "float32", name="W")
    b = te.compute((8, 16), lambda i, j: te.exp(a[i, j]), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8, 8), lambda i, j: te.sum(b[i, k] * w[k, j], axis=k), name="C")
    func = te.create_prim_func([a, w, c])
    for sketch in space_of(func).sketches:
        blocks = {site.block.name for site in sites(sketch.trace.apply_to(func).func)}
        assert "B" in blocks


def transposed_channels(num: int) -> PrimFunc:
    """Return a transpose of two tensors that are concatenated along their last axis."""
    parts = [te.placeholder((6, 40, num), "float32", name=name) for name in "AB"]

    def joined(y: te.Value, x: te.Value, c: te.Value) -> te.Value:
        first, second = parts
        return te.if_then_else(c < num, first[y, x, c], second[y, x, c - num])

    concat = te.compute((6, 40, 2 * num), joined, name="C")
    result = te.compute((2 * num, 6, 40), lambda c, y, x: concat[y, x, c], name="D")
    return te.create_prim_func([*parts, result])


def test_a_transposed_concatenation_of_single_channels_reads_rows() -> None:
    """Channel by channel, eight vectors would be gathered, and transposed afterwards."""
    func = transposed_channels(1)
    (sketch,) = space_of(func).sketches
    assert [site.block.name for site in sites(sketch.trace.apply_to(func).func)] == ["D"]
    check_candidates(func, design_space(Task(func, here())), each=3)


@pytest.mark.parametrize("num", [3, 4])
def test_a_transposed_concatenation_of_several_channels_stays(num: int) -> None:
    """It would read elements apart, instead of tiles that registers transpose."""
    func = transposed_channels(num)
    for sketch in space_of(func).sketches:
        names = [site.block.name for site in sites(sketch.trace.apply_to(func).func)]
        assert "C" in names

"""Elementwise blocks that are inlined."""

from __future__ import annotations

from compiler import te
from tests.unit.tuner.space.spaces import space_of
from tuner.space.analysis.block_facts import sites


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

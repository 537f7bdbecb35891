"""Dispatchers call a fast kernel for each size, and are modules that compute the program."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.driver import build, compile_kernel
from compiler.executor.artifact import Artifact
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.analysis.symbols import timed_at, with_ranges
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.script import parse_module
from tuner.shapes.dispatcher import (
    KernelLeaf,
    SizeComparison,
    dispatching_module,
    grow_tree,
    kernel_of,
    kernels_in,
    renumbered,
)


def scaled(by: float = 2.0) -> PrimFunc:
    m = te.var("M")
    x = te.placeholder((m, 8), "float32", name="x")
    y = te.compute((m, 8), lambda i, j: x[i, j] * by, name="y")
    return with_ranges(te.create_prim_func([x, y], name="scaled"), {"M": 512})


def tiled(func: PrimFunc, tile: int) -> PrimFunc:
    sch = Schedule(func)
    _, inner = sch.split(sch.get_loops("y")[0], [None, tile])
    sch.unroll(inner)
    return sch.func


def test_sizes_with_one_best_kernel_need_no_comparison() -> None:
    sizes = [{"M": m} for m in (2, 4, 8)]
    assert grow_tree(sizes, np.log([[1.03, 1.0, 1.0], [1.0, 1.3, 1.3]])) == KernelLeaf(0)


def test_comparisons_are_sorted_intervals() -> None:
    sizes = [{"M": m} for m in (2, 4, 8, 16, 32)]
    losses = np.log([[1, 1, 2, 2, 2], [2, 2, 1, 2, 2], [2, 2, 2, 1, 1]])
    tree = grow_tree(sizes, losses)
    expected = SizeComparison(
        "M", 5, KernelLeaf(0), SizeComparison("M", 11, KernelLeaf(1), KernelLeaf(2))
    )
    assert tree == expected
    assert [kernel_of(tree, {"M": m}) for m in (1, 5, 6, 11, 12, 512)] == [0, 0, 1, 1, 2, 2]


def test_a_comparison_that_only_prepares_another_is_made() -> None:
    sizes = [{"M": m} for m in (2, 4, 8, 16)]
    losses = np.log([[1, 2, 2, 1], [2, 1, 1, 2]])
    tree = grow_tree(sizes, losses)
    assert [kernel_of(tree, size) for size in sizes] == [0, 1, 1, 0]


def test_a_single_row_has_an_interval_of_its_own() -> None:
    sizes = [{"M": m} for m in (1, 2, 4)]
    losses = np.log([[1, 1, 1], [2, 2, 2]])
    assert grow_tree(sizes, losses) == SizeComparison("M", 1, KernelLeaf(0), KernelLeaf(0))


def test_several_extents_are_compared_where_it_matters() -> None:
    sizes = [{"M": m, "N": n} for m in (8, 64) for n in (8, 64)]
    losses = np.log([[1, 2, 1, 2], [2, 1, 2, 1]])
    assert grow_tree(sizes, losses) == SizeComparison("N", 22, KernelLeaf(0), KernelLeaf(1))


def test_kernels_are_renumbered() -> None:
    tree = SizeComparison(
        "M", 22, KernelLeaf(4), SizeComparison("M", 50, KernelLeaf(1), KernelLeaf(4))
    )
    expected = SizeComparison(
        "M", 22, KernelLeaf(1), SizeComparison("M", 50, KernelLeaf(0), KernelLeaf(1))
    )
    assert renumbered(tree, {1: 0, 4: 1}) == expected


TREE = SizeComparison("M", 1, KernelLeaf(2), SizeComparison("M", 20, KernelLeaf(0), KernelLeaf(2)))


def test_a_module_has_the_kernels_that_are_called_and_a_readable_dispatcher() -> None:
    func = timed_at(scaled(), {"M": 7})
    assert kernels_in(TREE) == {0, 2}
    module = dispatching_module(func, [tiled(func, tile) for tile in (2, 3, 4)], TREE)
    assert [f.name for f in module.functions] == ["scaled_0", "scaled_1", "scaled"]
    assert "timed_sizes" not in module.script()
    text = module["scaled"].script()
    assert text.splitlines()[-6:] == [
        "    if M <= 1:",
        "        Module.scaled_1(x.data, y.data)",
        "    elif M <= 20:",
        "        Module.scaled_0(x.data, y.data)",
        "    else:",
        "        Module.scaled_1(x.data, y.data)",
    ]
    assert structural_equal(parse_module(module.script()), module)


@pytest.mark.parametrize("by", [2.0, -0.5])
def test_a_module_calls_the_kernel_of_the_size(by: float) -> None:
    func = scaled()
    others = tiled(scaled(by), 4)  # a mark of the kernel that is called
    kernel = build(dispatching_module(func, [tiled(func, 2), func, others], TREE), "cpu")
    for m in (1, 2, 20, 21, 512):
        x, y = np.ones((m, 8), "float32"), np.full((m, 8), np.nan, "float32")
        kernel(x, y)
        assert (y == (by if m == 1 or m > 20 else 2.0)).all()


def test_an_artifact_contains_the_text_of_the_dispatcher() -> None:
    func = scaled()
    module = dispatching_module(func, [tiled(func, 2), func, tiled(func, 4)], TREE)
    artifact = compile_kernel(module, "cpu")
    assert artifact.dispatcher == module["scaled"].script()
    assert Artifact.from_bytes(artifact.to_bytes()) == artifact
    assert not compile_kernel(func, "cpu").dispatcher

"""Rows that all blocks of a program share."""

from __future__ import annotations

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tuner.space.analysis.block_facts import block_facts, sites
from tuner.space.analysis.row_axes import RowAxes, row_axes


def rows_of(func: PrimFunc) -> RowAxes:
    facts = [block_facts(site) for site in sites(func)]
    return row_axes([f for f in facts if f is not None])


def test_blocks_of_a_softmax_share_its_rows() -> None:
    func = ops.softmax(6, 10)
    rows = rows_of(func)
    assert rows.sink == sites(func)[-1].block.name
    assert set(rows.of) == {site.block.name for site in sites(func)}
    assert all(axes == (0,) for axes in rows.of.values())


def test_the_axis_that_is_summed_over_is_no_row() -> None:
    func = ops.layer_norm(6, 10)
    assert all(len(axes) == 1 for axes in rows_of(func).of.values())


def test_all_axes_of_elementwise_blocks_are_rows() -> None:
    func = ops.relu(6, 10)
    rows = rows_of(func)
    assert rows.of[rows.sink] == (0, 1)

"""Facts of blocks against what the operators' definitions say."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites, special_facts


def facts_of(func: PrimFunc, block: str) -> BlockFacts:
    facts = {site.block.name: block_facts(site) for site in sites(func)}[block]
    assert facts is not None
    return facts


def test_a_product_has_its_axes_accesses_and_arithmetic() -> None:
    facts = facts_of(ops.matmul(8, 12, 5), "C")
    assert [(axis.extent, axis.is_reduction) for axis in facts.axes] == [
        (8, False),
        (12, False),
        (5, True),
    ]
    assert facts.points == 8 * 12 * 5
    assert facts.flops_per_point == 2
    assert facts.is_reduction
    assert facts.is_affine
    assert facts.write.strides == (12, 1, 0)
    # The largest buffer is first: B has 5 * 12 elements, A has 8 * 5.
    assert [(read.buffer, read.strides) for read in facts.reads] == [
        ("B", (0, 1, 12)),
        ("A", (5, 0, 1)),
    ]
    assert facts.reads[0].size_bytes == 5 * 12 * 4


def test_vectors_run_where_the_output_is_contiguous() -> None:
    assert facts_of(ops.matmul(8, 12, 5), "C").vector_axis == 1


def test_a_sum_of_rows_has_lanes_along_the_sum() -> None:
    facts = facts_of(ops.row_sum(8, 64), "B")
    assert facts.vector_axis is None  # neighbours along the rows are 64 elements apart
    assert facts.lane_axis == 1


def test_a_strided_window_is_affine_with_its_stride() -> None:
    facts = facts_of(ops.conv2d(1, 4, 9, 9, 8, 3, stride=2), "conv2d_nchw")
    image = next(read for read in facts.reads if max(map(max, read.coefficients)) == 2)
    assert image.is_affine
    assert any(sum(map(bool, row)) == 2 for row in image.coefficients)


def test_axes_that_continue_each_other_may_be_one() -> None:
    facts = facts_of(ops.relu(4, 6), next(s.block.name for s in sites(ops.relu(4, 6))))
    assert facts.runs_on(0, 1)
    assert not facts.runs_on(1, 0)


def test_a_block_under_a_shared_loop_is_not_alone() -> None:
    sch = lw.Schedule(ops.softmax(4, 8))
    sch.compute_at(sch.get_sblock("total"), sch.get_loops(sch.get_sblock("B"))[0])
    alone = {site.block.name: site.is_alone for site in sites(sch.func)}
    assert alone == {"largest": True, "powers": True, "total": False, "B": False}


def test_a_scan_has_special_facts_only() -> None:
    (site,) = (s for s in sites(ops.cumsum(4, 8)) if special_facts(s) is not None)
    assert block_facts(site) is None
    facts = special_facts(site)
    assert facts is not None
    assert [axis.is_reduction for axis in facts.axes] == [False, True]


@pytest.mark.parametrize("axis", [0, 1])
def test_the_size_of_a_buffer_counts_its_items(axis: int) -> None:
    facts = facts_of(ops.matmul(8, 12, 5, "float64"), "C")
    assert facts.reads[axis].size_bytes == (5 * 12 * 8, 8 * 5 * 8)[axis]


def test_an_address_may_be_linear_although_its_indices_are_not() -> None:
    """Rows of 7 elements follow each other in memory; rows of 8 of which 7 are read do not."""

    def copy_of(length: int) -> BlockFacts:
        A = te.placeholder((4, 7, length), "float32", name="A")
        B = te.compute((4, 49), lambda k, p: A[k, p // 7, p % 7], name="B")
        found = block_facts(sites(te.create_prim_func([A, B]))[0])
        assert found is not None
        return found

    assert not copy_of(7).is_affine
    assert copy_of(7).reads[0].strides == (49, 1)
    assert copy_of(8).reads[0].linear_strides is None


def test_channels_of_a_group_read_the_same_elements() -> None:
    facts = facts_of(ops.conv2d(1, 12, 9, 9, 24, 3, groups=3), "conv2d_nchw")
    image = next(read for read in facts.reads if not read.is_affine)
    assert image.divisors is not None
    channel, dim = 1, 1
    assert image.divisors[dim][channel] == 8  # output channel c reads the images of group c // 8
    assert image.coefficients[dim][channel] == 4
    assert sum(divisor > 1 for row in image.divisors for divisor in row) == 1

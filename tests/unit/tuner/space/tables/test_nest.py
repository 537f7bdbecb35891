"""Tables of nests, checked against numbers worked out by hand."""

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from tuner.space.analysis.block_facts import BlockFacts, block_facts, sites
from tuner.space.tables.nest import NestTables, TiledNest
from tuner.space.tables.register_tile import RegisterTile

AVX2 = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")


def facts_of(func: PrimFunc, block: str) -> BlockFacts:
    facts = {s.block.name: block_facts(s) for s in sites(func)}[block]
    assert facts is not None
    return facts


@pytest.fixture
def tables() -> NestTables:
    """A 64^3 product: i = 2*2*4*4 and j = 1*2*2*16 at levels S S S S, k = 2*8*4 at R R R."""
    nest = TiledNest(
        facts_of(ops.matmul(64, 64, 64), "C"),
        columns=(
            (0, 1, None, 2, None, None, 3),
            (4, 5, None, 6, None, None, 7),
            (None, None, 8, None, 9, 10, None),
        ),
        remainder_levels=(None, None, None),
        vector_axis=1,
    )
    return nest.tables(np.array([[2, 2, 4, 4, 1, 2, 2, 16, 2, 8, 4]]))


def test_tiles_grow_outwards(tables: NestTables) -> None:
    i, j, k = tables.tiles[:, :, 0].T.astype(int).tolist()
    assert i == [64, 32, 16, 16, 4, 4, 4]
    assert j == [64, 64, 32, 32, 16, 16, 16]
    assert k == [64, 64, 64, 32, 32, 4, 1]


def test_trips_count_how_often_a_level_is_entered(tables: NestTables) -> None:
    assert tables.trips[:, 0].tolist() == [1, 2, 8, 16, 128, 1024, 4096, 64**3]


def test_elements_are_the_box_that_a_tile_touches(tables: NestTables) -> None:
    c, a, b = tables.elements[:, :, 0]
    assert [x.buffer for x in tables.nest.accesses] == ["C", "A", "B"]
    assert c[1] == 32 * 64
    assert a[4] == 4 * 32
    assert b[3] == 32 * 32


def test_footprints_count_lines(tables: NestTables) -> None:
    c, a, _ = tables.footprints[:, :, 0]
    assert a[4] == 4 * (128 + 32)  # 4 rows of 128 bytes, each straddling half a line more
    assert c[1] == 32 * 256  # whole rows straddle nothing


def test_traffic_stops_where_loops_do_not_move_the_data(tables: NestTables) -> None:
    c = tables.traffic[0, :, 0]
    assert c[2] == 8 * 16 * (128 + 32)
    assert c[3] == c[2]  # the reduction's loop around level 3 accumulates in the same place


def test_a_window_reaches_over_its_neighbours() -> None:
    facts = facts_of(ops.conv2d(1, 4, 10, 10, 8, 3), "conv2d_nchw")
    names = [a.extent for a in facts.axes]
    assert names == [1, 8, 8, 8, 4, 3, 3]
    level: list[tuple[int | None, ...]] = [(None,) * 7 for _ in names]
    level[3] = (0, None, None, None, None, None, 1)  # x = 2*4
    whole = (0, 1, 3, None, 2, 4, 4)
    tables = TiledNest(facts, tuple(level), whole, 3).tables(np.array([[2, 4]]))
    image = next(i for i, a in enumerate(tables.nest.accesses) if a.buffer == "A")
    rows, columns = tables.spans[image][2], tables.spans[image][3]
    assert rows[3, 0] == 10  # y is whole from level 3 inwards: 8 + 3 - 1
    assert columns[4, 0] == 4 + 3 - 1
    assert columns[6, 0] == 4  # the window's loops are outside


def test_a_register_tile_counts_registers_and_loads(tables: NestTables) -> None:
    tile = RegisterTile(tables, AVX2)
    assert tile.vectors.tolist() == [2]
    assert tile.accumulators.tolist() == [8]
    assert tile.registers.tolist() == [8 + 2 + 1]
    assert tile.loads.tolist() == [4 + 2]  # four broadcasts of A, two vectors of B
    assert tile.unrolled_body.tolist() == [8 * 4]
    assert tile.efficiency.tolist() == [1]


def test_a_row_that_is_no_whole_vectors_ends_in_shorter_ones(tables: NestTables) -> None:
    tables.extents[6, 1] = 14
    tile = RegisterTile(tables, AVX2)
    assert tile.vectors.tolist() == [3]  # 8 + 4 + 2
    assert tile.efficiency.tolist() == [14 / 24]


def test_facts_leave_out_the_accumulator() -> None:
    facts = facts_of(ops.matmul(8, 16, 32), "C")
    assert [(a.extent, a.is_reduction) for a in facts.axes] == [(8, False), (16, False), (32, True)]
    assert [r.buffer for r in facts.reads] == ["B", "A"]  # the larger one first
    assert facts.flops_per_point == 2
    assert facts.vector_axis == 1


def test_vectors_run_along_the_contiguous_axis_of_the_output() -> None:
    assert facts_of(ops.conv2d(1, 4, 10, 10, 8, 3), "conv2d_nchw").vector_axis == 3


def test_an_input_may_be_gathered_if_it_is_reused() -> None:
    """A product with a transposed matrix: what is gathered serves every row of the output."""
    assert facts_of(ops.dense(8, 16, 32), "C").vector_axis == 1


def test_an_input_is_not_gathered_for_one_use() -> None:
    (total,) = (s.block.name for s in sites(ops.row_sum(8, 16)))
    assert facts_of(ops.row_sum(8, 16), total).vector_axis is None


def test_dimensions_of_full_extent_run_on_in_memory() -> None:
    """Rows of a window are 12 bytes, but all windows of a channel lie one after another."""
    facts = facts_of(ops.conv2d(1, 8, 10, 10, 8, 3), "conv2d_nchw")
    whole = (0, 0, 0, 0, 4, 4, 4)
    tables = TiledNest(facts, ((None,) * 7,) * 7, whole, None).tables(np.empty((1, 0), np.int64))
    weights = next(i for i, a in enumerate(tables.nest.accesses) if a.buffer == "W")
    assert tables.footprints[weights, 4, 0] == 8 * 3 * 3 * 4


@pytest.mark.parametrize(("tile", "images"), [(1, 1), (8, 1), (12, 2), (24, 3)])
def test_tiles_within_a_group_touch_the_image_of_one(tile: int, images: int) -> None:
    """24 channels in three groups, each of four images."""
    facts = facts_of(ops.conv2d(1, 12, 7, 7, 24, 1, groups=3), "conv2d_nchw")
    columns: list[list[int | None]] = [[None] * 7 for _ in facts.axes]
    columns[1][0], columns[1][6] = 0, 1
    nest = TiledNest(facts, tuple(map(tuple, columns)), (0,) * len(facts.axes), None)
    tables = nest.tables(np.array([[24 // tile, tile]]))
    index = next(i for i, access in enumerate(nest.accesses) if access.divisors)
    dim = 1
    assert tables.spans[index][dim][6, 0] == 1 + 4 * (images - 1)

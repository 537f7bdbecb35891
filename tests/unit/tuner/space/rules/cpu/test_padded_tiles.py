"""Tiles of axes without a good divisor: which axes these are, and what the tiles waste."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.model_shapes.shapes import FEW_SCHEDULES
from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import Allocate, static_shape
from compiler.ir.core.visit import walk_stmts
from tests.targets import level
from tuner.space.filter.static_filter import MAX_PADDED
from tuner.space.generate import design_space
from tuner.space.rules.cpu.padded_tiles import has_no_tile, vector_sizes
from tuner.task import Task


@pytest.mark.parametrize(
    ("extent", "is_missing"),
    [
        (64, False),  # itself
        (37, False),  # itself: it is no longer than the longest tile
        (96, False),  # 48
        (100, False),  # 50 fills 7 vectors almost
        (50257, True),  # 29 x 1733: 29 elements take 5 vectors
        (131, True),
        (8 * 1733, True),  # single vectors only
    ],
)
def test_columns_without_a_good_divisor(extent: int, is_missing: bool) -> None:
    assert has_no_tile(extent, 16, 64, 8) is is_missing


@pytest.mark.parametrize(
    ("extent", "lanes", "sizes"),
    [
        (20, 16, (20,)),  # a vector and a quarter
        (24, 16, (24,)),
        (28, 16, (16, 32)),  # 16, 8 and 4 take as long as two vectors
        (7, 16, (8,)),
        (3, 16, (4,)),
        (61, 16, (16, 32, 64)),
        (17, 8, (20,)),
        (3, 4, (4,)),  # no shorter vectors
        (512, 16, (16, 32, 48, 64)),
    ],
)
def test_short_rows_end_in_a_half_or_a_quarter_of_a_vector(
    extent: int, lanes: int, sizes: tuple[int, ...]
) -> None:
    assert vector_sizes(extent, lanes) == sizes


@pytest.mark.parametrize(("extent", "is_missing"), [(13, False), (17, True), (2 * 97, True)])
def test_rows_without_a_good_divisor(extent: int, is_missing: bool) -> None:
    assert has_no_tile(extent, 3, 16) is is_missing


def test_a_prime_number_of_columns_is_computed_in_several_whole_vectors() -> None:
    func = ops.matmul(1, 50257, 768)
    space = design_space(Task(func, level(3)))
    for index, sketch in enumerate(space.sketches):
        assert space.count(index).number >= FEW_SCHEDULES
        drawn = space.draw(index, 32, np.random.default_rng(0))
        tables = sketch.nests[0].tables(sketch.values(drawn))
        widths = tables.vector_length
        assert (widths % 8 == 0).all()
        assert widths.max() >= 32
        # Blocks of tiles reach little beyond the last column.
        assert (tables.extents[:, 1].prod(axis=0) <= MAX_PADDED * 50257).all()


def test_the_buffer_of_a_tile_has_room_for_one_tile() -> None:
    """A condition on its columns leaves all of its rows written, so it can shrink."""
    func = ops.matmul(3, 131, 20)
    space = design_space(Task(func, level(3)))
    (cached,) = (s for s in space.sketches if s.name == "cached")
    drawn = [0, *([1] * (len(cached.knobs) - 1))]
    tiles, width = (int(knob.options[1, 0]) for knob in cached.knobs[1:3])
    lowered = lower(cached.candidate(np.array(drawn)).trace.apply_to(func).func, level(3))
    buffers = [n.buffer for n in walk_stmts(lowered) if isinstance(n, Allocate)]
    (columns,) = {static_shape(b)[1] for b in buffers if b.name == "C_local"}
    assert columns == tiles * width < 131

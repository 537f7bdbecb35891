"""Blocks of a scope: positions, producers and consumers."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.schedule.error import ScheduleError
from tests.unit.compiler.schedule.legality.positions import placed

FUNC = ops.softmax(4, 8)


def test_blocks_are_in_program_order_with_their_loops() -> None:
    scope, block = placed(FUNC, "powers")
    assert [site.name for site in scope.sites] == ["largest", "powers", "total", "B"]
    assert scope.position(block) == 1
    assert [loop.extent.value for loop in block.loops] == [4, 8]  # type: ignore[union-attr]
    assert scope.site(block.realize) is block
    assert scope.whole_path(block)[0] is FUNC.body


def test_writers_and_readers_of_a_buffer() -> None:
    scope, block = placed(FUNC, "powers")
    (powers,) = {access.buffer for access in block.facts.writes}
    assert [site.name for site in scope.writers(powers)] == ["powers"]
    assert [site.name for site in scope.readers(powers)] == ["total", "B"]


def test_the_root_and_unknown_blocks_are_refused() -> None:
    with pytest.raises(ScheduleError, match="is the root block"):
        placed(FUNC, "root")
    with pytest.raises(ScheduleError, match="there is no block"):
        placed(FUNC, "nothing")


def test_a_block_is_under_its_loops_only() -> None:
    scope, block = placed(FUNC, "total")
    other = scope.sites[0]
    assert block.is_under(block.loops[0])
    assert not block.is_under(other.loops[0])

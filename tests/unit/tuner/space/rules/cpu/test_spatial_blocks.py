"""Spatial blocks that select their source by a remainder."""

from __future__ import annotations

import pytest

from compiler import ops
from tests.unit.tuner.space.spaces import space_of
from tuner.space.analysis.block_facts import sites


@pytest.mark.parametrize("spec", ["4,2,1", "3,2,1,1", "3,3,0"])
def test_phases_are_interleaved_without_remainders_at_run_time(spec: str) -> None:
    func = ops.from_spec(f"conv2d_transpose:1,8,5,7,8,{spec}")
    loops = sites(space_of(func).sketches[0].trace.apply_to(func).func)[-1].loops
    assert [loop.kind for loop in loops].count("unrolled") == 2

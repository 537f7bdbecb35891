"""Elementwise blocks with rows of any length."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import (
    IntImm,
)
from tests.unit.tuner.space.spaces import space_of
from tuner.space.analysis.block_facts import sites


def test_ragged_rows_become_one_row_or_stay_whole() -> None:
    (joined,) = space_of(ops.from_spec("relu:16,20,3")).sketches
    assert any(i.name == "fuse" for i in joined.trace.instructions)
    (rows,) = space_of(ops.from_spec("relu:33,77")).sketches
    site = sites(rows.trace.apply_to(ops.from_spec("relu:33,77")).func)[0]
    assert site.loops[-1].kind == "vectorized"
    assert site.loops[-1].extent == IntImm(77)


@pytest.mark.parametrize("spec", ["4,2,1", "3,2,1,1", "3,3,0"])
def test_phases_are_interleaved_without_remainders_at_run_time(spec: str) -> None:
    func = ops.from_spec(f"conv2d_transpose:1,8,5,7,8,{spec}")
    loops = sites(space_of(func).sketches[0].trace.apply_to(func).func)[-1].loops
    assert [loop.kind for loop in loops].count("unrolled") == 2

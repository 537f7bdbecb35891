"""Vectors of a loop over several dimensions have contiguous addresses."""

from __future__ import annotations

from compiler import ops
from compiler.driver import emit
from compiler.schedule.schedule import Schedule
from tests.targets import level


def text(spec: str, streams: int, length: int) -> str:
    """Return the code of an elementwise operator in vectors of one fused loop."""
    schedule = Schedule(ops.from_spec(spec))
    loop = schedule.fuse(*schedule.get_loops("B"))
    stream, step, vector = schedule.split(loop, [streams, None, length])
    schedule.reorder(step, stream, vector)
    schedule.unroll(stream)
    schedule.vectorize(vector)
    return emit(schedule.func, level(3)).text


def test_vectors_that_are_whole_rows_of_a_tensor_are_contiguous() -> None:
    # Each step is one row of 56 elements: its row and its image follow from the step alone.
    for streams in (1, 4):
        code = text("relu:1,8,56,56", streams, 56)
        assert "load <8 x float>" in code
        assert not any(word in code for word in ("gather", "scatter", "udiv", "urem"))

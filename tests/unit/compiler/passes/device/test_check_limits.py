"""What a GPU can't run is refused with the limit, the number and what to do."""

from __future__ import annotations

import pytest

from compiler.ops.spec import from_spec
from compiler.passes.common.error import LoweringError
from compiler.passes.device.lower import lower_for_device
from compiler.schedule.schedule import Schedule
from compiler.target.gpus import ARCHS
from tests.unit.compiler.passes.device.checked_lowering import LIMITS


def bound(spec: str, block: str, *axes: str) -> Schedule:
    sch = Schedule(from_spec(spec))
    for loop, axis in zip(sch.get_loops(sch.get_block(block)), axes, strict=False):
        sch.bind(loop, axis)
    return sch


@pytest.mark.parametrize(
    ("spec", "axes", "message"),
    [
        ("add:64,32", ("threadIdx.y", "threadIdx.x"), r"2048 threads \(32 x 64\): at most 1024"),
        ("add:65,2", ("threadIdx.z", "blockIdx.x"), r"65 threads along threadIdx\.z: at most 64"),
        ("add:65536,2", ("blockIdx.y", "threadIdx.x"), r"65536 blocks along blockIdx\.y: at most"),
        ("add:16,2", ("vthread.x", "threadIdx.x"), "16 virtual threads: at most 8"),
    ],
)
def test_numbers_of_threads(spec: str, axes: tuple[str, ...], message: str) -> None:
    with pytest.raises(LoweringError, match=message):
        lower_for_device(bound(spec, "C", *axes).func, LIMITS)


def test_shared_memory_of_the_architecture() -> None:
    sch = bound("add:2,30000", "C", "blockIdx.x")
    copy = sch.cache_read(sch.get_block("C"), 0, "shared")
    sch.compute_at(copy, sch.get_loops(sch.get_block("C"))[0])
    for loop in (sch.get_loops(copy)[-1], sch.get_loops(sch.get_block("C"))[-1]):
        sch.bind(sch.split(loop, [None, 1000])[-1], "threadIdx.x")
    lower_for_device(sch.func, ARCHS["sm_90a"])
    with pytest.raises(LoweringError, match=r"needs 120000 bytes of shared memory: .* 101376"):
        lower_for_device(sch.func, ARCHS["sm_86"])

"""Lock files of a small product with a schedule written by hand."""

from __future__ import annotations

import loopwright as lw
from compiler.target.target import Target
from loopwright.locks.lock import lock_schedule
from loopwright.locks.lock_file import LockedKernel, TimeRecord
from service.wire.times import TimeKind
from tests.targets import here

OPERATOR = "matmul:16,16,24:float32"
OTHER_CPU = Target("cpu -mcpu=cortex-a72 -num-cores=1")
"""A CPU that no host of the tests is, or is reported as."""
RECORD = TimeRecord(
    run_secs=2e-6,
    kind=TimeKind.CONFIRMED,
    interval=(1.9e-6, 2.1e-6),
    default_secs=4e-6,
    worker="builder/7",
    toolchain="loopwright-codegen 7, LLVM 21.1.0",
    measured_at="2026-11-23T20:00:00+00:00",
)


def locked(
    operator: str = OPERATOR,
    target: Target | None = None,
    *,
    factor: int = 8,
    record: TimeRecord | None = RECORD,
) -> LockedKernel:
    """Return the locked kernel of an operator under a split of its first loop."""
    func = lw.ops.from_spec(operator)
    schedule = lw.Schedule(func)
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    schedule.split(schedule.get_loops(block)[0], [None, factor])
    return lock_schedule(func, target or here(), schedule.trace, record)

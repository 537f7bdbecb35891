"""Copies in two stages, through memory of the thread."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.passes.common.local_stages import KEY
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE, check_against_evaluation
from tests.unit.compiler.passes.device.gpu_schedules import pipelined_matmul


def test_threads_of_a_cpu_keep_their_own_elements() -> None:
    check_against_evaluation(pipelined_matmul(2, has_local_stages=True).func)


def test_only_copies_have_stages() -> None:
    schedule = Schedule(ops.from_spec("matmul:4,4,4"))
    schedule.annotate("C", KEY, 1)
    with pytest.raises(BuildError, match=f"block C has the annotation {KEY}: expected a block"):
        build(schedule, ONE_CORE)

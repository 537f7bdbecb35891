"""Random programs without their blocks get blocks with the same iterators and results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.ir.core.nodes import BlockRealize, For, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import VerifyError, verify
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from tests.property.acceptance import Acceptance
from tests.property.check_schedule import numbered
from tests.property.generators.plain_loops import plain_program
from tests.property.generators.schedules import RandomTrace, whole_number_inputs
from tests.property.generators.stripped import kinds_by_block, kinds_of, stripped
from tests.property.generators.threads import THREADS
from tests.property.generators.workloads import WORKLOADS

# Blocks that contain blocks or loops, views, threads, and `while`; a block that computes elements
# twice; a sum whose start is a block of its own, and becomes its init.
_OTHERS = {
    *("nested_sums", "point_views", "row_views", "tiled", "overcomputed", "masked", "searched"),
    *THREADS,
}
NAMES = [name for name in WORKLOADS if name not in _OTHERS]


def transformed(func: PrimFunc, choose: Any, steps: int) -> PrimFunc:
    """Return a program with some loops split, fused or reordered."""
    sch = Schedule(func)
    blocks = [s.block.name for s in walk_stmts(func.root.body) if isinstance(s, BlockRealize)]
    for _ in range(steps):
        loops = sch.get_loops(choose(blocks))
        number = choose(range(len(loops) or 1))
        part = loops[number : number + 2]
        step, factor = choose(("split", "fuse", "reorder")), choose((2, 3, 4))
        kinds = [_kinds(sch, loop) for loop in part]
        # The order of a scan is one of several loops once it is split.
        if not part or "scan" in kinds[0]:
            continue
        with suppress(ScheduleError):
            if step == "split":
                sch.split(part[0], factors=[None, factor])
            elif step == "reorder":
                sch.reorder(*reversed(part))
            elif len(part) == 2 and kinds[0] == kinds[1] and len(kinds[0]) == 1:
                sch.fuse(*part)
    return sch.func


def _kinds(sch: Schedule, handle: LoopRV) -> set[str]:
    """Return what a loop is for the blocks in it."""
    loop = sch.get(handle)
    assert isinstance(loop, For)
    return {
        kinds_of(realize, loop.var)
        for realize in walk_stmts(loop.body)
        if isinstance(realize, BlockRealize)
    }


stripping = Acceptance()


@stripping.at_least(0.8)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_stripped_program_gets_its_blocks_back(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    func = transformed(WORKLOADS[choose(NAMES)](choose), choose, choose((0, 1, 3)))
    plain = stripped(func)
    try:
        verify(plain)
    except VerifyError:
        # Iterators told the verifier what loops of varying extents do not.
        stripping.count(False)
        return
    stripping.count(True)
    derived = Schedule(plain).func
    verify(derived)
    for after, before in zip(kinds_by_block(derived), kinds_by_block(func), strict=True):
        # No iterator follows a loop of which a condition leaves one iteration.
        assert all(got == (known or got) for got, known in zip(after, before, strict=True))

    runnable = numbered(func)
    inputs = whole_number_inputs(runnable, seed=1)
    expected, got = evaluate(runnable, inputs), evaluate(numbered(derived), inputs)
    for buffer in runnable.buffers:
        if buffer.name in expected:
            np.testing.assert_array_equal(got[buffer.name], expected[buffer.name])


derivable = Acceptance()


@derivable.at_least(0.5)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_blocks_of_random_loops_compute_what_the_loops_do(data: st.DataObject) -> None:
    def choose(options: Sequence[Any]) -> Any:
        return data.draw(st.sampled_from(list(options)))

    func = plain_program(choose)
    rng = np.random.default_rng(0)
    inputs = {p.name: rng.integers(-3, 4, static_shape(p)).astype("int32") for p in func.buffers}
    expected = evaluate(func, inputs)
    try:
        steps = RandomTrace(Schedule(func, seed=0), choose)
    except ScheduleError:
        derivable.count(False)
        return
    derivable.count(True)
    for _ in range(3):
        got = evaluate(steps.schedule.func, inputs)
        for buffer in func.buffers:
            if buffer.name in expected:
                np.testing.assert_array_equal(got[buffer.name], expected[buffer.name])
        steps.step()

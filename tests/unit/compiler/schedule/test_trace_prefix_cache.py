"""What many traces begin with alike is done once, and to the same end."""

from __future__ import annotations

from unittest import mock

import pytest

from compiler import ops
from compiler.schedule import trace_prefix_cache as beginnings
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.replay import replay as replay_in_full
from compiler.schedule.trace.trace import Trace
from compiler.schedule.trace_prefix_cache import TracePrefixCache


def tiled(n: int = 16) -> Trace:
    schedule = Schedule(ops.mm_relu(n, n, n), seed=0)
    schedule.compute_inline(schedule.cache_read("C", 0, "global"))
    block = schedule.cache_write("Y", 0, "local")
    i, j, _ = schedule.get_loops("Y")
    rows = schedule.split(i, schedule.sample_perfect_tile(i, 2, 8))
    schedule.split(j, schedule.sample_perfect_tile(j, 2, 8))
    schedule.reverse_compute_at(block, rows[0])
    return schedule.trace


def test_traces_become_what_they_become_from_the_first_instruction_on() -> None:
    trace, func, begun = tiled(), ops.mm_relu(16, 16, 16), TracePrefixCache()
    for decisions in ([(4, 4), (2, 8)], [(16, 1), (8, 2)], [(2, 8), (4, 4)]):
        candidate = trace.with_decisions(decisions)
        plain, fast = candidate.apply_to(func), begun.apply(candidate, func)
        assert fast.func.script() == plain.func.script()
        assert fast.trace.to_json() == plain.trace.to_json() == candidate.to_json()


def test_a_beginning_is_done_once_a_program() -> None:
    trace, begun = tiled(), TracePrefixCache()
    small, large = ops.mm_relu(16, 16, 16), ops.mm_relu(32, 32, 32)
    with mock.patch.object(beginnings, "replay", wraps=replay_in_full) as replay:
        for _ in range(3):
            begun.apply(trace, small)
        assert replay.call_count == 1 + 3
        sizes = trace.with_decisions([(8, 4), (8, 4)])
        assert begun.apply(sizes, large).func.buffers[0].shape == large.buffers[0].shape
        assert replay.call_count == 1 + 3 + 2


def test_a_refused_beginning_is_refused_each_time() -> None:
    begun, other = TracePrefixCache(), ops.relu(16)
    for _ in range(2):
        with pytest.raises(ScheduleError, match='there is no block "C"'):
            begun.apply(tiled(), other)

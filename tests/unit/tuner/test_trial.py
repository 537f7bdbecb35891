"""Trials, tasks and candidates."""

from __future__ import annotations

import math

from compiler import ops
from compiler.ir.analysis.structural import structural_hash
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.cpu import CpuTarget
from tuner.candidate import DEFAULT_SKETCH, default_candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial, fastest

TARGET = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")


def trial(number: int, *run_secs: float) -> MeasuredTrial:
    failed = Measurement(error=ErrorKind.CRASH)
    return MeasuredTrial(number, default_candidate(), Measurement(run_secs) if run_secs else failed)


def test_the_fastest_is_the_earliest_correct_one() -> None:
    trials = [trial(0), trial(1, 3.0), trial(3, 1.0, 2.0), trial(2, 5.0, 1.0)]
    assert fastest(trials) == trials[3]
    assert fastest([trial(0)]) is None
    assert trial(0).best_secs == math.inf


def test_a_task_is_known_by_workload_and_target_not_by_weight() -> None:
    func = ops.matmul(8, 8, 8)
    task = Task(func, TARGET)
    assert task.workload_key == structural_hash(func)
    assert task.key == Task(ops.matmul(8, 8, 8), TARGET, weight=3.0).key
    assert task.key != Task(ops.matmul(8, 8, 9), TARGET).key
    assert task.key != Task(func, CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=2")).key
    assert task.flops == 2 * 8**3


def test_the_default_candidate_changes_nothing() -> None:
    candidate = default_candidate()
    assert candidate.sketch == DEFAULT_SKETCH
    assert candidate.key == default_candidate().key
    assert not candidate.trace.decisions

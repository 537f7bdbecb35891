"""Schedules of programs and of tensor expressions are built alike."""

from __future__ import annotations

from compiler.driver import Scheduled
from compiler.schedule.schedule import Schedule
from compiler.schedule.state import State
from compiler.te_schedule.tensor_schedule import TensorSchedule
from loopwright import te
from tests.contracts.scheduled import N, ScheduledContract

A = te.placeholder((N,), name="A")
D = te.compute((N,), lambda i: A[i] + 1.0, name="D")


class TestSchedule(ScheduledContract):
    def new(self) -> State:
        sch = Schedule(te.create_prim_func([A, D]))
        sch.split(sch.get_loops("D")[0], [None, 4])
        return sch


class TestTensorSchedule(ScheduledContract):
    def new(self) -> Scheduled:
        stages = te.create_schedule(D.op)
        assert isinstance(stages, TensorSchedule)
        stages[D].split(D.op.axis[0], factor=4)
        return stages

"""Schedules: legal program transformations by name, and the traces that record them."""

from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import provide_schedules

provide_schedules(lambda program, seed: Schedule(program, seed=seed))
